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

// `flag`: that of the command `tombolo dsm run` which sets the variable.
template <class T>
Status read_given(const Option& option, std::string_view flag, T& value) {
  const Status read = read_option(option, value);
  if (read.ok()) return {};
  return Status::bad_configuration(fmt::format("{}; see {}", read.message(), flag));
}

Status read(ProgramOptions& out) {
  TOMBOLO_TRY(read_given(options::dsm_processes, "-n", out.processes));
  // The name that the heap has for programs of tombolo/dsm.h will do.
  Option heap = options::dsm_heap;
  if (!is_set(heap)) heap.variable = options::dsm_memory.variable;
  return read_given(heap, "--memory", out.heap_bytes);
}

std::uint64_t usual_heap(const ProgramLayout& layout, bool launched) {
  // A host MPI's memory is zeroed at the start.
  constexpr std::uint64_t launched_heap = std::uint64_t{256} << 20;
  if (launched) return std::min(host::memory_room().bytes / 8, launched_heap);
  const std::uint64_t room = host::memory_room().bytes;
  const std::uint64_t others = layout.heap() - layout.variables.low;
  return std::min(options::dsm_heap.most,
                  layout.has_pages ? default_heap_bytes(room, layout.servers, others) : room / 2);
}

}  // namespace

Status lay_out(const ProgramMemories& kind, Thread launched, ProgramLayout& out) {
  ProgramOptions given;
  TOMBOLO_TRY(read(given));
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
  out.heap_bytes = round_up(given.heap_bytes ? *given.heap_bytes : usual_heap(out, launched != 0),
                            host::page_bytes());
  return {};
}

}  // namespace tombolo::dsm
