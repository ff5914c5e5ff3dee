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
#include "pthreads/program/program_options.h"

namespace tombolo::dsm {
namespace {

constexpr std::uint64_t most_heap = std::uint64_t{16} << 40;

// `flag`: that of the command `tombolo dsm run` which sets the variable.
template <class T>
Status read_given(const Option& option, std::string_view flag, T& value) {
  const Status read = read_option(option, value);
  if (read.ok()) return {};
  return Status::bad_configuration(fmt::format("{}; see {}", read.message(), flag));
}

// The memory of the program, of which nothing but the heap has a size to choose.
Status read_heap(std::optional<std::uint64_t>& out) {
  Option memory = options::dsm_memory;
  memory.least = std::uint64_t{1} << 20;
  memory.most = most_heap;
  memory.values = "a size from 1MiB to 16TiB, such as 512MiB";
  return read_given(memory, "--memory", out);
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
  ProgramOptions given;
  std::optional<std::uint64_t> heap_bytes;
  TOMBOLO_TRY(read_given(options::dsm_processes, "-n", given.processes));
  TOMBOLO_TRY(read_heap(heap_bytes));
  const bool has_pages = kind.has_pages();
  const Thread memory_servers = kind.memory_servers();
  // Each process that caches pages has memory for them.
  std::uint64_t servers = given.processes.value_or(has_pages ? 16 : 128);
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
  out.heap_bytes =
      round_up(heap_bytes ? *heap_bytes : usual_heap(out, launched != 0), host::page_bytes());
  return {};
}

}  // namespace tombolo::dsm
