#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Asks clang-format whether every C and C++ file is as it would write it, and ruff about every
# Python file; --fix lets them write. `make env-test` installs ruff.
set -euo pipefail

cd "$(dirname "$0")/.."
of_c=(--dry-run --Werror)
of_python=(--check)
[ "${1:-}" != --fix ] || { of_c=(-i) of_python=(); }
status=0
git ls-files -z --cached --others --exclude-standard -- '*.h' '*.hpp' '*.c' '*.cpp' |
  while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
  xargs -0 --no-run-if-empty clang-format "${of_c[@]}" || status=1
.env/cli/bin/python -m ruff format --quiet "${of_python[@]}" || status=1
[ "$status" = 0 ] && echo "format: checked"
exit "$status"
