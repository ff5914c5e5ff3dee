// SPDX-License-Identifier: Apache-2.0
// Purpose: memory of a program that is as stale as can be: each thread has a copy of its own, which
// nothing brings up to date but renew(), and its stores come home at no other time, as differences
// by exclusive or. Each place of the heap is at the same offset of all copies.
// Thread safety: one StaleMemory for each thread.
#pragma once

#include <mutex>

#include "dsm/allocator/testing/plain_memory.h"

namespace tombolo::dsm::testing {

class StaleMemory : public PlainMemory {
 public:
  StaleMemory(PlainProgram& program, Thread self, Turns* turns = nullptr)
      : PlainMemory(program, self, turns),
        room_(program.shape().bytes + group_bytes),
        twin_(program.shape().bytes),
        start_(PlainProgram::aligned(room_.as<std::byte>())) {}

  std::span<std::byte> memory() const override { return {start_, twin_.size()}; }

  Status renew(const void* address, std::size_t bytes) override {
    const std::size_t page = page_bytes();
    const std::size_t offset =
        static_cast<std::size_t>(static_cast<const std::byte*>(address) - start_);
    const std::lock_guard lock(homes());
    for (std::size_t at = offset / page * page; at < offset + bytes; at += page) exchange_page(at);
    return {};
  }

 private:
  // One for all programs: the tests run one after the other.
  static std::mutex& homes() {
    static std::mutex mutex;
    return mutex;
  }

  void exchange_page(std::size_t at) {
    std::byte* const home = program().memory().data() + at;
    for (std::size_t i = 0; i < page_bytes(); ++i) {
      home[i] ^= start_[at + i] ^ twin_[at + i];
      start_[at + i] = twin_[at + i] = home[i];
    }
  }

  host::ZeroMemory room_;
  std::vector<std::byte> twin_;
  std::byte* start_;
};

}  // namespace tombolo::dsm::testing
