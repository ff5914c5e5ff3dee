# SPDX-License-Identifier: Apache-2.0
"""Experiments on the simulated SCC: what the papers say, what the native program measures, and both
side by side."""
