// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/remote_memories.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "dsm/memory/cached_memory.h"
#include "dsm/memory/program_shape.h"
#include "dsm/records/count_lines.h"
#include "host/memory/fixed_range.h"
#include "runtime/counters/counters.h"

namespace tombolo::dsm {

runtime::Agreed RemoteMemories::make(runtime::Collective<Job>& all, const MemoryPlan& plan) {
  plan_ = plan;
  TOMBOLO_AGREE(all.step({}, [&] { return prepare(); }));
  // None is missing in the host MPI's collective call.
  return all.step({}, [&] {
    const MemoryKind::Sizes sizes = kind_->sizes(shape_, plan_.words, self());
    return job_.make(sizes.sync_bytes, sizes.data_bytes);
  });
}

Status RemoteMemories::prepare() {
  TOMBOLO_TRY(shape_of(needs_of_pthreads,
                       {.memory_bytes = plan_.at.size(),
                        .cache_bytes = settings_.cache_bytes,
                        .threads = plan_.threads,
                        .servers = settings_.memory_servers,
                        .locks = plan_.locks,
                        .tuning = settings_.tuning},
                       shape_));
  if (!has_thread()) return {};
  TOMBOLO_TRY(can_cache_pages());
  // That nothing else lies there, before the host MPI is asked for memory; enter() takes the place.
  host::FixedRange behind;
  const std::span<std::byte> rest = plan_.at.subspan(plan_.filled);
  return host::FixedRange::reserve(reinterpret_cast<std::uint64_t>(rest.data()), rest.size(),
                                   behind);
}

Status RemoteMemories::enter(Thread thread, std::unique_ptr<ProgramMemory>& out) {
  MemoryKind::Parts parts;
  parts.attachment.self = thread;
  parts.attachment.cores = shape_.cores();
  parts.attachment.waiting = waiting_of(shape_.threads);
  parts.shape = shape_;
  parts.give_up = settings_.give_up;
  parts.observer = observer();
  parts.one_sided = &job_;
  return make_cached_memory(plan_, *kind_, std::move(parts), out);
}

Observer RemoteMemories::observer() {
  return {.timed = settings_.statistics != runtime::Statistics::off};
}

void RemoteMemories::tell_counts(Thread /*memory_servers*/) {
  if (settings_.statistics == runtime::Statistics::off || !has_thread()) return;
  using runtime::Counters;
  const std::array facts{Counters::Fact{"transport", "mpi"}, Counters::Fact{"protocol", "release"}};
  CountLines lines(settings_.statistics, facts);
  lines.add("rank", self(), runtime::counters());
  lines.tell(STDERR_FILENO);
}

}  // namespace tombolo::dsm
