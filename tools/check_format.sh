#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Asks clang-format whether every C and C++ file is as it would write it; --fix lets it write.
set -euo pipefail

cd "$(dirname "$0")/.."
mode=(--dry-run --Werror)
[ "${1:-}" != --fix ] || mode=(-i)
git ls-files -z --cached --others --exclude-standard -- '*.h' '*.hpp' '*.c' '*.cpp' |
  while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
  xargs -0 --no-run-if-empty clang-format "${mode[@]}"
echo "format: checked"
