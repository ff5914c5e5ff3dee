// SPDX-License-Identifier: Apache-2.0
// Purpose: the program `tombolo-locks`: the lock families that a window may use, the default first,
// for programs: a line {"name": ..., "order": ..., "reader_bias": ...} for each.
// Thread safety: one thread.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "sync/locks/families.h"

namespace {

using namespace tombolo;

const char* name(sync::LockOrder order) {
  switch (order) {
    case sync::LockOrder::writers_first:
      return "writers-first";
    case sync::LockOrder::arrival:
      return "arrival";
    case sync::LockOrder::none:
      break;
  }
  return "none";
}

}  // namespace

int main() {
  sync::WindowLockFamilies::for_each([]<class Family>() {
    const std::string line =
        fmt::format(R"({{"name": "{}", "order": "{}", "reader_bias": {}}})", Family::traits.name,
                    name(Family::traits.order), Family::traits.reader_bias);
    std::puts(line.c_str());
  });
}
