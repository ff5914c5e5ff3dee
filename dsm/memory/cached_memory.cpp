// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/cached_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsm/memory/default_sizes.h"
#include "host/faults/caught_calls.h"
#include "host/memory/memory_room.h"

namespace tombolo::dsm {
namespace {

// The buffers of one system call are open together (system_calls.h), and the pages of the
// instructions around it.
constexpr std::uint64_t fewest_cached_pages = 256;
constexpr std::uint32_t notices = 16384;
// Each release names the pages it has changed to all: the logs of locks are for small changes.
constexpr std::uint32_t updates = 16;
// As programs of tombolo/dsm.h have it (compute_server.cpp), where the quarter of the cache that
// clean pages have at least (DFP3) is for four streams of these.
constexpr std::uint32_t read_ahead = 32;
constexpr std::uint32_t streams_in_cache = 16;

}  // namespace

Status can_cache_pages() {
  if (!host::calls_on_stacks)
    return Status::unsupported("programs of Pthreads that cache pages, on this processor");
  TOMBOLO_TRY(host::can_catch_calls());
  return host::available(host::FaultMechanism::automatic);
}

std::uint64_t default_cache_bytes(Thread threads) {
  return default_cache_bytes(host::memory_room().bytes, threads,
                             fewest_cached_pages * host::page_bytes());
}

Status shape_of_caches(const MemoryPlan& plan, std::uint64_t cache_bytes, Shape& out) {
  const std::uint64_t page = host::page_bytes();
  const std::uint64_t pages = plan.at.size() / page;
  const std::uint64_t cached = cache_bytes / page;
  if (pages > std::uint64_t{1} << 31)
    return Status::bad_configuration(fmt::format(
        "a memory of {} bytes cannot be cached: 8 TiB at most; see TOMBOLO_DSM_HEAP and "
        "--memory",
        plan.at.size()));
  if (cached < fewest_cached_pages)
    return Status::bad_configuration(
        fmt::format("a cache of {} bytes is too small for a program of Pthreads: at least {}; see "
                    "TOMBOLO_DSM_CACHE and --cache",
                    cache_bytes, fewest_cached_pages * page));
  out = {.threads = plan.threads,
         .pages = pages,
         .page_bytes = page,
         .cached_pages = static_cast<std::uint32_t>(std::min(cached, pages)),
         .locks = plan.locks,
         .notices = notices,
         .updates = updates,
         .read_ahead = std::min(read_ahead, static_cast<std::uint32_t>(cached / streams_in_cache)),
         .spans_tell_all = true};
  return {};
}

}  // namespace tombolo::dsm
