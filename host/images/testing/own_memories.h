// SPDX-License-Identifier: Apache-2.0
// Purpose: images of memory for tests, apart from that of the process.
// Thread safety: none of its own.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "host/images/own_memory.h"
#include "host/memory/testing/memory.h"

namespace tombolo::host::testing {

// A clock that stands still: how long a use lives is no matter of luck.
inline OwnMemory::Time no_time() { return {}; }

// One that is never destroyed, as that of a process. `root` replaces "/", and `now` the clock.
inline OwnMemory& fresh(const std::string& root = "/", OwnMemory::Time (*now)() = &no_time) {
  static auto* const all = new std::vector<OwnMemory*>;  // so that none counts as lost
  return *all->emplace_back(new OwnMemory(root, now));
}

// A test that needs memory that can be shared.
class NeedsSharing : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<Page> pages;
    const Status status = read_pages(Plain(1).range(), page_bytes(), pages);
    if (!status.ok()) GTEST_SKIP() << status.message();
    Plain plain(1);
    OwnMemory& own = fresh();
    const auto use = own.enter(plain.at(0), page_bytes());
    if (own.share(use).empty()) GTEST_SKIP() << "no memory can be shared here";
  }
};

// Pages of the heap in the middle of a block of malloc's.
class HeapBlock {
 public:
  explicit HeapBlock(std::uint64_t bytes = 100'000)
      : bytes_(bytes), data_(static_cast<char*>(std::malloc(bytes))) {
    std::memset(data_, 1, bytes);
  }
  ~HeapBlock() { std::free(data_); }
  HeapBlock(const HeapBlock&) = delete;
  HeapBlock& operator=(const HeapBlock&) = delete;
  char* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t bytes_;
  char* data_;
};

}  // namespace tombolo::host::testing
