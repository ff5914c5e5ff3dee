# SPDX-License-Identifier: Apache-2.0
"""Experiments on the simulated SCC: the papers' values, the native program's, and both side by
side."""
