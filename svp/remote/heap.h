// SPDX-License-Identifier: Apache-2.0
// Purpose: hands out parts of a range of addresses, in whole lines: first fit, as the thesis has it
// (002 section 5.2.4).
//
// Invariants: SVH1 the free parts are disjoint, and no two are adjacent.
// Thread safety: yes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace tombolo::svp {

class Heap {
 public:
  static constexpr std::uint64_t line = 64;

  Heap() = default;
  void begin(std::byte* at, std::uint64_t bytes);

  // Null: there is no part as large.
  std::byte* take(std::uint64_t bytes);
  // Of take(); stops the program otherwise.
  void give_back(std::byte* at);
  std::uint64_t largest() const;

  // Whether `end` is in the last line of the part that `at` lies in.
  bool ends_a_part(const std::byte* at, const std::byte* end) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::byte*, std::uint64_t> free_;
  std::map<std::byte*, std::uint64_t> taken_;
};

}  // namespace tombolo::svp
