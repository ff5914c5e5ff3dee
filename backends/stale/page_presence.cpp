// SPDX-License-Identifier: Apache-2.0
#include "backends/stale/page_presence.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <memory>

#include "host/memory/page.h"

namespace tombolo::stale {
namespace {

constexpr std::size_t pages_at_once = 4096;

// Marks the blocks of [start, start + bytes) that page `page` of the address space covers.
void mark_page(std::uint64_t page, std::uint64_t start, std::size_t bytes,
               std::vector<std::uint8_t>& touched) {
  const std::uint64_t begin = std::max(page * host::page_bytes(), start) - start;
  const std::uint64_t end = std::min((page + 1) * host::page_bytes() - start, std::uint64_t{bytes});
  for (std::uint64_t block = begin / page_block; block * page_block < end; ++block)
    touched[block] = 1;
}

// Marks each page for which look(first, pages, i) is true: page i of the portion of `pages` pages
// that begins at `first`. i runs upward from 0, so that look can ask for a portion at once.
template <class Look>
void mark(const std::byte* at, std::size_t bytes, std::vector<std::uint8_t>& touched, Look&& look) {
  const auto start = reinterpret_cast<std::uint64_t>(at);
  const std::uint64_t end = (start + bytes + host::page_bytes() - 1) / host::page_bytes();
  for (std::uint64_t page = start / host::page_bytes(); page < end; page += pages_at_once) {
    const std::size_t pages = std::min<std::uint64_t>(pages_at_once, end - page);
    for (std::size_t i = 0; i < pages; ++i)
      if (look(page, pages, i)) mark_page(page + i, start, bytes, touched);
  }
}

struct File {
  explicit File(const char* path) : descriptor(open(path, O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (descriptor >= 0) close(descriptor);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int descriptor;
};

// mincore() does not see pages in the swap.
bool swap_is_unused() {
  struct sysinfo info = {};
  return sysinfo(&info) == 0 && info.totalswap == info.freeswap;
}

}  // namespace

bool is_mapped(const std::byte* start, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uint64_t>(start);
  const std::uint64_t first = address / host::page_bytes() * host::page_bytes();
  // Only looks whether there are holes.
  return msync(reinterpret_cast<void*>(first), address + bytes - first, MS_ASYNC) == 0 ||
         errno != ENOMEM;
}

bool is_anonymous(const std::byte* image, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uint64_t>(image);
  std::uint64_t covered = begin;  // up to here the maps are as they should be
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                             std::fclose);
  if (maps == nullptr) return false;
  char text[512];
  while (covered < begin + bytes && std::fgets(text, sizeof text, maps.get()) != nullptr) {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t inode = 0;
    char rights[5] = {};
    if (std::sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %*x %*s %" SCNu64, &from, &to, rights,
                    &inode) != 4)
      continue;  // the rest of an overlong line
    if (to <= covered) continue;
    if (from > covered || rights[3] != 'p' || inode != 0) return false;
    covered = to;
  }
  return covered >= begin + bytes;
}

void mark_touched_private(const std::byte* start, std::size_t bytes,
                          std::vector<std::uint8_t>& touched) {
  // Opened each time: it shows the address space of the process that opened it, and we may be a
  // fork.
  const File pagemap("/proc/self/pagemap");
  constexpr std::uint64_t present_or_swapped = std::uint64_t{3} << 62;
  std::vector<std::uint64_t> entries(std::min(pages_at_once, bytes / host::page_bytes() + 2));
  bool told = false;
  mark(start, bytes, touched, [&](std::uint64_t page, std::size_t pages, std::size_t i) {
    if (i == 0) {
      const auto wanted = static_cast<ssize_t>(pages * 8);
      told = pagemap.descriptor >= 0 && pread(pagemap.descriptor, entries.data(), pages * 8,
                                              static_cast<off_t>(page * 8)) == wanted;
    }
    return !told || (entries[i] & present_or_swapped) != 0;
  });
}

void mark_touched_shared(const std::byte* start, std::size_t bytes,
                         std::vector<std::uint8_t>& touched) {
  const bool possible = swap_is_unused();
  std::vector<unsigned char> resident(pages_at_once);
  bool told = false;
  mark(start, bytes, touched, [&](std::uint64_t page, std::size_t pages, std::size_t i) {
    if (i == 0)
      told = possible && mincore(reinterpret_cast<void*>(page * host::page_bytes()),
                                 pages * host::page_bytes(), resident.data()) == 0;
    return !told || (resident[i] & 1) != 0;
  });
}

}  // namespace tombolo::stale
