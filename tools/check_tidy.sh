#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy over translation units of a configured build: those given, or our own sources of
# the layers below the binding (their headers come with them).
#
#   tools/check_tidy.sh [FILE.cpp...]
set -euo pipefail

cd "$(dirname "$0")/.."
build=build/release
if [ $# -eq 0 ]; then
  mapfile -t files < <(git ls-files --cached --others --exclude-standard -- \
    'base/*.cpp' 'machine/*.cpp' 'simulator/*.cpp' 'backends/*.cpp' 'windows/*.cpp' \
    'baselines/*.cpp' 'experiments/*.cpp' 'litmus/*.cpp' 'runtime/*.cpp' 'host/*.cpp' |
    grep -v -e _test.cpp -e _bench.cpp)
  set -- "${files[@]}"
fi
[ $# -gt 0 ] || exit 0
printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p "$build" 2> >(
  grep -v -E 'warnings? generated|^Suppressed|^Use -header-filter' >&2)
echo "clang-tidy: $# files"
