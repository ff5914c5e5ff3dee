// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/program_shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/option_table.h"
#include "host/memory/memory_room.h"
#include "host/memory/page.h"
#include "runtime/engines/engines.h"
#include "runtime/processes/processes_here.h"
#include "runtime/processes/processors_here.h"

namespace tombolo::dsm {
namespace {

constexpr std::uint32_t notices = 16384;
// 128 KiB, as the kernel reads files: most of the speed that larger pieces have.
constexpr std::uint32_t read_ahead = 32;
constexpr std::uint64_t most_pages = std::uint64_t{1} << 31;

}  // namespace

// An instruction may touch four pages, and store to each. Of its cache, clean pages have a quarter
// at least (DFP3).
const ProgramNeeds needs_of_calls{
    .of_program = "", .fewest_cached_pages = 8, .updates = Shape{}.updates, .streams_in_cache = 4};

// The buffers of one system call are open together (system_calls.h), and the pages of the
// instructions around it. Each release names the pages it has changed to all: the logs of locks are
// for small changes. Four streams have the quarter of the cache that clean pages have at least.
const ProgramNeeds needs_of_pthreads{.of_program = " for a program of Pthreads",
                                     .fewest_cached_pages = 256,
                                     .updates = 16,
                                     .streams_in_cache = 16};

Status shape_of(const ProgramNeeds& needs, const SizesOfProgram& sizes, Shape& out) {
  const std::uint64_t page = host::page_bytes();
  const std::uint64_t pages = sizes.memory_bytes / page;
  const std::uint64_t cached = sizes.cache_bytes / page;
  if (pages == 0 || pages > most_pages)
    return Status::bad_configuration(
        fmt::format("a memory of {} bytes cannot be: from {} to 8 TiB; see {} and --memory",
                    sizes.memory_bytes, page, options::dsm_memory.variable));
  if (cached < needs.fewest_cached_pages)
    return Status::bad_configuration(fmt::format(
        "a cache of {} bytes is too small{}: at least {} ({} pages); see {} and --cache",
        sizes.cache_bytes, needs.of_program, needs.fewest_cached_pages * page,
        needs.fewest_cached_pages, options::dsm_cache.variable));
  out = {.threads = sizes.threads,
         .servers = sizes.servers,
         .pages = pages,
         .page_bytes = page,
         .cached_pages = static_cast<std::uint32_t>(std::min(cached, pages)),
         .locks = sizes.locks,
         .notices = notices,
         .updates = needs.updates,
         .read_ahead = static_cast<std::uint32_t>(
             std::min<std::uint64_t>(read_ahead, cached / needs.streams_in_cache)),
         .tuning = sizes.tuning};
  return {};
}

Status check_memory_servers(Thread servers, Thread processes) {
  if (servers < processes) return {};
  return Status::bad_configuration(
      fmt::format("{} memory servers of {} processes leave none for a thread; see {} and --servers",
                  servers, processes, options::dsm_servers.variable));
}

bool can_lie_in_place(const runtime::Options& options, std::uint64_t memory_bytes,
                      Thread processes) {
  const std::uint64_t parts = std::uint64_t{processes} + 1;
  return options.pool.empty() &&
         runtime::served({options.machine, options.native_atomics()}).traits().coherent &&
         memory_bytes <= host::memory_room().bytes / parts;
}

machine::WaitPolicy waiting_of(Thread cores) {
  const std::uint32_t here = runtime::processes_here();
  return machine::WaitPolicy::for_host(std::max(cores, here), runtime::processors_for(here));
}

}  // namespace tombolo::dsm
