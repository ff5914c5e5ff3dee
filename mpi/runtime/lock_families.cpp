// SPDX-License-Identifier: Apache-2.0
// Purpose: tells the command, which loads the library for that alone, which lock families a window
// may use (cli/tombolo/starvation.py).
// Thread safety: any.
#include <fmt/format.h>

#include <string>

#include "sync/locks/families.h"

namespace tombolo::mpi {
namespace {

constexpr const char* name(sync::LockOrder order) {
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

std::string as_json() {
  std::string rows;
  sync::WindowLockFamilies::for_each([&]<class Family>() {
    rows += fmt::format(R"({}{{"name": "{}", "order": "{}", "reader_bias": {}}})",
                        rows.empty() ? "" : ", ", Family::traits.name, name(Family::traits.order),
                        Family::traits.reader_bias);
  });
  return "[" + rows + "]";
}

}  // namespace
}  // namespace tombolo::mpi

// A JSON list, the default first.
extern "C" __attribute__((visibility("default"))) const char* tombolo_lock_families() {
  static const std::string text = tombolo::mpi::as_json();
  return text.c_str();
}
