# SPDX-License-Identifier: Apache-2.0
"""The `tombolo` command: looks at a host, runs MPI programs under Tombolo, measures and checks it."""

__version__ = "0.1.0"
