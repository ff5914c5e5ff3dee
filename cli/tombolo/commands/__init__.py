# SPDX-License-Identifier: Apache-2.0
"""One sub-command, one file."""
