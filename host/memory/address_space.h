// SPDX-License-Identifier: Apache-2.0
// Purpose: the kernel's answers about this process's memory: its mappings, which of them could be
// replaced by other memory without the program noticing, and which of their pages hold something.
// Thread safety: yes; the answers are those of the moment.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tombolo::host {

// The addresses [low, high).
struct AddressRange {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::uint64_t bytes() const { return high > low ? high - low : 0; }
  bool empty() const { return high <= low; }
  bool overlaps(const AddressRange& other) const {
    return low < other.high && other.low < high && !empty() && !other.empty();
  }
  bool operator==(const AddressRange&) const = default;
};
AddressRange common_part(const AddressRange& a, const AddressRange& b);

// One line of /proc/self/maps.
struct Mapping {
  AddressRange range;
  std::string access;  // "rw-p"
  std::uint64_t offset = 0;
  std::uint64_t device = 0;  // as stat's st_dev; 0 without a file
  std::uint64_t inode = 0;   // 0 without a file
  std::string name;          // a path, "[heap]", or nothing
};

// The bytes of the file that it maps.
AddressRange file_range(const Mapping& mapping);

// The lines that have the format of /proc/self/maps; others are left out.
std::vector<Mapping> parse_mappings(std::string_view text);
Status read_mappings(std::vector<Mapping>& out);

// The pages of `page` bytes that lie entirely inside the range.
AddressRange whole_pages(const AddressRange& range, std::uint64_t page);

// True for private memory of this process without a file, to be read and written: the memory of
// malloc, new, mmap and uninitialized variables. Not a stack, as far as it can be known.
bool is_plain_memory(const Mapping& mapping);

// True if a device may use this process's memory by its physical address: a device's file is
// mapped, or the kernel counts pages as locked or pinned (`status` is that of /proc/self/status).
bool memory_may_be_registered(const std::vector<Mapping>& mappings, std::string_view status);

// The contents of a page of private memory.
enum class Page : std::uint8_t {
  absent,   // never touched: zero
  read,     // may be the kernel's shared page of zeros, or shared with a forked process
  present,  // the process's own page, in memory or swapped out
};
// For the pages that cover `range` (whole pages). An error if the kernel does not tell.
Status read_pages(const AddressRange& range, std::uint64_t page, std::vector<Page>& out);
// The same without allocating: false and errno if the kernel does not tell.
bool read_pages(const AddressRange& range, std::uint64_t page, std::span<Page> out);

// The whole text of a file of /proc.
Status read_proc(const std::string& path, std::string& out);

}  // namespace tombolo::host
