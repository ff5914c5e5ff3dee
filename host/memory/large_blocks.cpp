// SPDX-License-Identifier: Apache-2.0
#include "host/memory/large_blocks.h"

#include <malloc.h>

#include <string>

#include "base/options.h"

namespace tombolo::host {
namespace {

constexpr Option threshold{.variable = "MALLOC_MMAP_THRESHOLD_"};
constexpr Option most_mappings{.variable = "MALLOC_MMAP_MAX_"};
constexpr Option trim{.variable = "MALLOC_TRIM_THRESHOLD_"};
constexpr Option tunables{.variable = "GLIBC_TUNABLES"};

bool set_by_user() {
  return is_set(threshold) || is_set(most_mappings) || is_set(trim) ||
         text_of(tunables).find("glibc.malloc.") != std::string::npos;
}

}  // namespace

bool take_large_blocks_from_heap() {
  if (set_by_user()) return false;
  constexpr int bytes = static_cast<int>(most_on_heap_bytes);
  return mallopt(M_MMAP_THRESHOLD, bytes) == 1 && mallopt(M_TRIM_THRESHOLD, 2 * bytes) == 1;
}

}  // namespace tombolo::host
