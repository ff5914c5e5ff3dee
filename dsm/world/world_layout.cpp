// SPDX-License-Identifier: Apache-2.0
#include "dsm/world/world_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/rounding.h"
#include "host/memory/memory_room.h"
#include "host/memory/page.h"
#include "host/memory/program_variables.h"
#include "runtime/options/world_options.h"

namespace tombolo::dsm {
namespace {

// Of a setting: a number and a unit.
std::optional<std::uint64_t> size_in(std::string_view text) {
  constexpr auto units = std::to_array<std::pair<std::string_view, unsigned>>(
      {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}});
  unsigned shift = 0;
  for (const auto& [unit, bits] : units) {
    if (!text.ends_with(unit)) continue;
    shift = bits;
    text.remove_suffix(unit.size());
  }
  const std::optional<std::uint64_t> number = number_in(text);
  if (!number || *number > std::numeric_limits<std::uint64_t>::max() >> shift) return {};
  return *number << shift;
}

Status read_number(const Option& option, std::uint64_t least, std::uint64_t most,
                   std::uint64_t& value) {
  if (!is_set(option)) return {};
  const std::string text = text_of(option);
  const std::optional<std::uint64_t> number = size_in(text);
  if (!number || *number < least || *number > most) return not_understood(option, text);
  value = *number;
  return {};
}

}  // namespace

Status lay_out(bool has_pages, Thread launched, WorldLayout& out) {
  constexpr std::uint64_t most_servers = 4096;
  constexpr std::uint64_t least_heap = std::uint64_t{1} << 20;
  constexpr std::uint64_t most_heap = std::uint64_t{1} << 44;
  // A host MPI's memory is zeroed at the start.
  constexpr std::uint64_t launched_heap = std::uint64_t{256} << 20;
  // Each process that caches pages has memory for them.
  std::uint64_t servers = has_pages ? 16 : 128;
  TOMBOLO_TRY(read_number(runtime::world_processes_option, 2, most_servers, servers));
  if (launched != 0) servers = launched;
  std::uint64_t heap = std::min(host::memory_room().bytes / (has_pages ? 8 : 2),
                                launched != 0 ? launched_heap : most_heap);
  TOMBOLO_TRY(read_number(runtime::world_heap_option, least_heap, most_heap, heap));
  TOMBOLO_TRY(host::program_variables(out.variables));
  if (out.variables.empty())
    return Status::unsupported(
        "the program has no variables of its own: not a dynamic executable?");
  out.has_pages = has_pages;
  out.servers = static_cast<Thread>(servers);
  out.heap_bytes = round_up(heap, host::page_bytes());
  return {};
}

}  // namespace tombolo::dsm
