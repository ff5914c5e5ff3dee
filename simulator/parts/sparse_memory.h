// SPDX-License-Identifier: Apache-2.0
// Purpose: bytes of simulated memory: as many as a chip has, of which the host holds only the pages
// that were touched. Untouched bytes are zero.
// Invariants: SP1 a page, once there, stays where it is: pointers into it stay valid.
// Thread safety: one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"

namespace tombolo::simulator {

class SparseMemory {
 public:
  static constexpr std::size_t sparse_page_bytes = std::size_t{1} << 16;

  explicit SparseMemory(std::uint64_t bytes) : bytes_(bytes) {}

  std::uint64_t bytes() const { return bytes_; }

  // Where the byte lies; up to the end of its page the bytes follow each other.
  std::byte* at(std::uint64_t offset) {
    TOMBOLO_CHECK(offset < bytes_, "byte {:#x} of a memory of {:#x}", offset, bytes_);
    const std::uint64_t chapter = offset / (sparse_page_bytes * pages);
    if (chapter >= chapters_.size()) chapters_.resize(chapter + 1);
    if (chapters_[chapter] == nullptr) [[unlikely]]
      chapters_[chapter] = std::make_unique<Chapter>();
    std::unique_ptr<std::byte[]>& page = (*chapters_[chapter])[offset / sparse_page_bytes % pages];
    if (page == nullptr) [[unlikely]] {
      page = std::make_unique<std::byte[]>(sparse_page_bytes);
      ++present_;
    }
    return page.get() + offset % sparse_page_bytes;
  }
  // Pages that the host holds.
  std::uint64_t present() const { return present_; }

 private:
  static constexpr std::size_t pages = 1024;  // of a chapter
  using Chapter = std::array<std::unique_ptr<std::byte[]>, pages>;

  std::uint64_t bytes_;
  std::uint64_t present_ = 0;
  std::vector<std::unique_ptr<Chapter>> chapters_;
};

}  // namespace tombolo::simulator
