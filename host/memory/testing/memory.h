// SPDX-License-Identifier: Apache-2.0
// Purpose: memory for tests, and the kernel's view of it.
// Thread safety: none of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "host/memory/address_space.h"
#include "host/memory/page.h"

namespace tombolo::host::testing {

// Private memory of the test's own, between two pages that cannot be written to, so that no other
// memory joins it.
class Plain {
 public:
  explicit Plain(std::uint64_t pages) : bytes_(pages * page_bytes()) {
    void* const start = mmap(nullptr, bytes_ + 2 * page_bytes(), PROT_READ,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(start, MAP_FAILED);
    start_ = static_cast<char*>(start) + page_bytes();
    EXPECT_EQ(mprotect(start_, bytes_, PROT_READ | PROT_WRITE), 0);
    madvise(start_, bytes_, MADV_NOHUGEPAGE);
  }
  ~Plain() { munmap(start_ - page_bytes(), bytes_ + 2 * page_bytes()); }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;

  char* at(std::uint64_t offset) const { return start_ + offset; }
  char* page(std::uint64_t index) const { return start_ + index * page_bytes(); }
  std::uint64_t bytes() const { return bytes_; }
  AddressRange range() const { return pages(0, bytes_ / page_bytes()); }
  AddressRange pages(std::uint64_t first, std::uint64_t n) const {
    const auto low = reinterpret_cast<std::uint64_t>(page(first));
    return {low, low + n * page_bytes()};
  }

 private:
  std::uint64_t bytes_;
  char* start_;
};

inline std::optional<Mapping> mapping_of(const void* address) {
  std::vector<Mapping> mappings;
  EXPECT_TRUE(read_mappings(mappings).ok());
  const auto at = reinterpret_cast<std::uint64_t>(address);
  for (const Mapping& mapping : mappings)
    if (mapping.range.low <= at && at < mapping.range.high) return mapping;
  return {};
}
inline bool is_shared(const void* address) {
  const auto mapping = mapping_of(address);
  return mapping && mapping->access == "rw-s";
}
inline bool is_private(const void* address) {
  const auto mapping = mapping_of(address);
  return mapping && mapping->access == "rw-p";
}

inline std::size_t present_pages(const AddressRange& range) {
  std::vector<Page> pages;
  EXPECT_TRUE(read_pages(range, page_bytes(), pages).ok());
  return static_cast<std::size_t>(std::count(pages.begin(), pages.end(), Page::present));
}

// Its exit status, or 200 and the signal that ended it.
inline int status_of(pid_t process) {
  int state = 0;
  while (waitpid(process, &state, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(state) ? WEXITSTATUS(state) : 200 + WTERMSIG(state);
}
inline int in_child(const std::function<int()>& body) {
  const pid_t process = fork();
  if (process == 0) _exit(body());
  return status_of(process);
}

}  // namespace tombolo::host::testing
