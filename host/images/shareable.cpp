// SPDX-License-Identifier: Apache-2.0
#include "host/images/shareable.h"

#include <link.h>

#include <algorithm>
#include <string>

#include "host/memory/mapping_query.h"
#include "host/memory/page.h"

namespace tombolo::host {
namespace {

// glibc reserves the memory of a further arena in pieces of this size and alignment, and starts it
// with the arena itself, which it changes in a child before any handler of the program runs.
constexpr std::uint64_t arena_bytes = std::uint64_t{64} << 20;

bool contains(const AddressRange& range, std::uint64_t address) {
  return range.low <= address && address < range.high;
}

// Variables of the program or of a library.
bool holds_variables(const AddressRange& range) {
  struct Search {
    AddressRange range;
    bool found = false;
  } search{range};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        auto& s = *static_cast<Search*>(to);
        for (int i = 0; i < info->dlpi_phnum && !s.found; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) continue;
          const std::uint64_t page = page_bytes();
          const std::uint64_t low = (info->dlpi_addr + segment.p_vaddr) / page * page;
          const std::uint64_t end = info->dlpi_addr + segment.p_vaddr + segment.p_memsz;
          s.found = low <= s.range.low && s.range.high <= (end + page - 1) / page * page;
        }
        return s.found ? 1 : 0;
      },
      &search);
  return search.found;
}

// Threads' stacks have a page below them that cannot be accessed.
bool may_be_stack(const Mapping& mapping) {
  if (mapping.range.low % arena_bytes == 0 || !mapping.name.empty()) return false;
  std::vector<Mapping> below;
  return !read_mappings(AddressRange{mapping.range.low - 1, mapping.range.low}, below).ok() ||
         (!below.empty() && below.front().access == "---p" && below.front().inode == 0);
}

// The kernel stores to a thread's own data (rseq) whenever it likes.
bool holds_thread_data(const AddressRange& pages) {
  const auto data = reinterpret_cast<std::uint64_t>(__builtin_thread_pointer());
  return pages.overlaps({data, data + page_bytes()});
}

bool is_own_stack(const Mapping& mapping, std::uint64_t stack) {
  return stack != 0 && contains(mapping.range, stack);
}

// False if the pages may not be moved, as some of them hold other variables.
bool may_have_edges(const Mapping& mapping, std::uint64_t stack, const AddressRange& pages) {
  const bool is_arena = mapping.range.low % arena_bytes == 0 && pages.low == mapping.range.low;
  return !is_arena && !holds_thread_data(pages) &&
         (is_own_stack(mapping, stack) || !may_be_stack(mapping));
}

// False if they may not be moved.
bool judge(const Mapping& mapping, bool edges, std::uint64_t stack, PrivatePages& pages) {
  if (mapping.access != "rw-p") return false;
  if (mapping.name == "[stack]") return is_own_stack(mapping, stack);
  if (mapping.inode != 0) {
    pages.of_file = pages.may_stay = true;
    return holds_variables(pages.range);
  }
  if (mapping.name == "[heap]") {
    pages.may_stay = true;
    return true;
  }
  if (!is_plain_memory(mapping) || (edges && !may_have_edges(mapping, stack, pages.range)))
    return false;
  pages.may_stay = mapping.name.empty() && holds_variables(pages.range);
  return true;
}

bool may_be_registered(const std::vector<Mapping>& shared_files) {
  std::string status;
  return !read_proc("/proc/self/status", status).ok() ||
         memory_may_be_registered(shared_files, status);
}

}  // namespace

bool find_private_pages(const MemoryImage& image, const AddressRange& pages, bool edges,
                        std::uint64_t stack, std::vector<PrivatePages>& out) {
  out.clear();
  std::vector<Mapping> mappings;
  if (!read_mappings(pages, mappings).ok()) return false;
  std::uint64_t at = pages.low;
  for (const Mapping& mapping : mappings) {
    const AddressRange part = common_part(mapping.range, pages);
    if (part.empty()) continue;
    if (part.low != at) return false;
    at = part.high;
    if (image.is_at_home(mapping) && mapping.access == "rw-s") continue;
    PrivatePages found{part};
    if (!judge(mapping, edges, stack, found)) return false;
    out.push_back(found);
  }
  return at == pages.high;
}

bool may_be_registered() {
  std::vector<Mapping> mappings;
  return !read_shared_files(mappings).ok() || may_be_registered(mappings);
}

bool may_be_replaced(const MemoryImage& image, const std::vector<PrivatePages>& pages) {
  std::vector<Mapping> mappings;
  if (!read_shared_files(mappings).ok() || may_be_registered(mappings)) return false;
  return std::none_of(pages.begin(), pages.end(), [&](const PrivatePages& part) {
    return std::any_of(mappings.begin(), mappings.end(), [&](const Mapping& mapping) {
      return image.is_of_image(mapping) && part.range.overlaps(file_range(mapping));
    });
  });
}

}  // namespace tombolo::host
