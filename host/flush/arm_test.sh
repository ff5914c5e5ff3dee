#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Purpose: builds the tests of the flush instructions, of `flushed` and of the emulated atomics for
# 64-bit Arm and runs them in qemu's user mode. It shows that the instructions assemble, are allowed
# to programs and copy the right bytes; qemu has no caches and keeps accesses in order, so it cannot
# show a missing barrier.
#
#   apt-get install g++-aarch64-linux-gnu qemu-user libgtest-dev libfmt-dev
#   host/flush/arm_test.sh [FOLDER FOR BUILDS]
#
# Ends with 77 (skipped) and a hint if a tool is missing.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-${TMPDIR:-/tmp}/tombolo_arm_test}
compiler=aarch64-linux-gnu-g++
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static || true)
gtest=/usr/src/googletest/googletest

skip() { echo "arm_test: skipped: $1" >&2; exit 77; }
command -v "$compiler" > /dev/null || skip "apt-get install g++-aarch64-linux-gnu"
[ -n "$emulator" ] || skip "apt-get install qemu-user"
[ -e "$gtest/src/gtest-all.cc" ] || skip "apt-get install libgtest-dev"
[ -e /usr/include/fmt/format.h ] || skip "apt-get install libfmt-dev"

mkdir -p "$build/include"
# Only these two folders of the host's headers: the rest must be the target's own.
ln -sfn /usr/include/fmt "$build/include/fmt"
ln -sfn /usr/include/gtest "$build/include/gtest"

# Static: the emulator then needs no libraries of the target.
flags=(-std=c++20 -O2 -Wall -Wextra -Wshadow -Werror -DFMT_HEADER_ONLY -static
       -I"$root" -isystem "$build/include")
[ -e "$build/gtest.o" ] ||
  "$compiler" -std=c++20 -O1 -I"$gtest" -c "$gtest/src/gtest-all.cc" -o "$build/gtest.o"
[ -e "$build/main.o" ] ||
  "$compiler" -std=c++20 -O1 -I"$gtest" -c "$gtest/src/gtest_main.cc" -o "$build/main.o"

objects=("$build/gtest.o" "$build/main.o")
for source in "$root"/base/options.cpp "$root"/host/{flush,memory,processes,segments}/*.cpp "$root"/backends/flushed/*.cpp; do
  case $source in *_test.cpp | *_bench.cpp) continue ;; esac
  objects+=("$build/$(basename "$source" .cpp).o")
  "$compiler" "${flags[@]}" -c "$source" -o "${objects[-1]}"
done
for test in host/flush/flush_test backends/flushed/flushed_test machine/emulation/{bakery,atomics}_test; do
  name=$(basename "$test")
  "$compiler" "${flags[@]}" "$root/$test.cpp" "${objects[@]}" -o "$build/$name" -pthread
  "$emulator" "$build/$name" --gtest_brief=1
done
echo "arm_test: passed"
