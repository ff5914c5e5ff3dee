// SPDX-License-Identifier: Apache-2.0
#include "pthreads/program/program_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/rounding.h"
#include "dsm/memory/default_sizes.h"
#include "dsm/memory/program_shape.h"
#include "dsm/memory/settings.h"
#include "host/memory/memory_room.h"
#include "host/memory/page.h"
#include "host/memory/program_variables.h"
#include "runtime/options/dsm_options.h"
#include "runtime/options/pthreads_options.h"

namespace tombolo::dsm {
namespace {

constexpr std::uint64_t least_heap = std::uint64_t{1} << 20;
constexpr std::uint64_t most_heap = std::uint64_t{1} << 44;

// `named`: the bounds, and the option of the command that sets the variable.
Status read_number(const Option& option, std::uint64_t least, std::uint64_t most,
                   std::string_view named, std::uint64_t& value) {
  if (!is_set(option)) return {};
  const std::string text = text_of(option);
  const std::optional<std::uint64_t> number = bytes_in(text);
  if (!number || *number < least || *number > most)
    return Status::bad_configuration(
        fmt::format("{}, {}", not_understood(option, text).message(), named));
  value = *number;
  return {};
}

Status read_heap(std::uint64_t& bytes) {
  // The name that it has for programs of tombolo/dsm.h will do.
  const Option& given =
      is_set(runtime::world_heap_option) ? runtime::world_heap_option : runtime::dsm_memory_option;
  return read_number(given, least_heap, most_heap,
                     "from 1MiB to 16TiB (--memory of tombolo dsm run)", bytes);
}

std::uint64_t usual_heap(const ProgramLayout& layout, bool launched) {
  // A host MPI's memory is zeroed at the start.
  constexpr std::uint64_t launched_heap = std::uint64_t{256} << 20;
  if (launched) return std::min(host::memory_room().bytes / 8, launched_heap);
  const std::uint64_t room = host::memory_room().bytes;
  const std::uint64_t others = layout.heap() - layout.variables.low;
  return std::min(most_heap,
                  layout.has_pages ? default_heap_bytes(room, layout.servers, others) : room / 2);
}

}  // namespace

Status lay_out(const ProgramMemories& kind, Thread launched, ProgramLayout& out) {
  constexpr std::uint64_t most_servers = 4096;
  const bool has_pages = kind.has_pages();
  const Thread memory_servers = kind.memory_servers();
  // Each process that caches pages has memory for them.
  std::uint64_t servers = has_pages ? 16 : 128;
  TOMBOLO_TRY(read_number(runtime::world_processes_option, 2, most_servers,
                          "4096 at most (-n of tombolo dsm run)", servers));
  if (launched != 0) {
    TOMBOLO_TRY(check_memory_servers(memory_servers, launched));
    servers = launched - memory_servers;
  }
  TOMBOLO_TRY(host::program_variables(out.variables));
  if (out.variables.empty())
    return Status::unsupported(
        "the program has no variables of its own: not a dynamic executable?");
  out.has_pages = has_pages;
  out.servers = static_cast<Thread>(servers);
  out.memory_servers = memory_servers;
  std::uint64_t heap = usual_heap(out, launched != 0);
  TOMBOLO_TRY(read_heap(heap));
  out.heap_bytes = round_up(heap, host::page_bytes());
  return {};
}

}  // namespace tombolo::dsm
