#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks all Python without running it: ruff looks for mistakes and habits, mypy for wrong types.
# The rules of both stand in pyproject.toml, and tools/check_format.sh checks the format.
set -euo pipefail

cd "$(dirname "$0")/.."
status=0
.env/cli/bin/python -m ruff check --quiet || status=1
.env/cli/bin/python -m mypy || status=1
exit "$status"
