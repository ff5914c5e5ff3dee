# SPDX-License-Identifier: Apache-2.0
"""MPICH's own test programs: fetched from Debian's source package, built, run, judged."""
