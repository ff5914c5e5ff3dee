// SPDX-License-Identifier: Apache-2.0
#include "svp/remote/function.h"

#include <unordered_map>

#include "base/check.h"

namespace tombolo::svp {
namespace {

// Never destroyed: static objects may be used after it.
std::unordered_map<std::uint64_t, FunctionEntry>& functions() {
  static auto* const all = new std::unordered_map<std::uint64_t, FunctionEntry>;
  return *all;
}

}  // namespace

const FunctionEntry* find_function(std::uint64_t id) {
  const auto found = functions().find(id);
  return found == functions().end() ? nullptr : &found->second;
}

void enter_function(const FunctionEntry& entry) {
  const auto [at, is_new] = functions().emplace(entry.id, entry);
  TOMBOLO_CHECK(is_new || (at->second.frame == entry.frame && at->second.program == entry.program),
                "remote<>: there are two functions {}; give them different names", entry.name);
}

}  // namespace tombolo::svp
