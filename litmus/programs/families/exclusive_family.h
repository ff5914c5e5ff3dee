// SPDX-License-Identifier: Apache-2.0
// Purpose: the parts that the explored programs of exclusive places share. A family raises a number
// that all families of the place read, and leaves its own for its creator, which looks for it after
// the sync.
// Thread safety: plain functions.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "litmus/explorer/run.h"
#include "svp/scheduler/handover.h"

namespace tombolo::litmus {

// Runs the family in its turn. `count`: the number of all; `result`: of its creator. Appends the
// family and the number as which it ran.
template <class C>
void run_family(C& core, std::uint64_t turn, machine::DataPlace count, machine::DataPlace result,
                std::vector<std::pair<std::uint64_t, std::uint64_t>>& ran) {
  std::uint64_t value = 0;
  core.refresh(count, sizeof value);  // the families before it may be other cores'
  (void)core.read(count, &value, sizeof value).ok();
  ran.emplace_back(turn, ++value);
  (void)core.write(count, &value, sizeof value).ok();
  core.publish(count, sizeof value);  // for the next family
  (void)core.write(result, &turn, sizeof turn).ok();
  core.publish(result, sizeof turn);  // for the creator
}

// By the creator of a family that another core runs: waits for its end, and looks at its result.
template <class C>
void sync_family(C& core, Run& run, std::uint64_t turn, typename C::Word state,
                 machine::DataPlace result) {
  const Status status =
      core.wait_until(state, [](std::uint64_t v) { return v == svp::Handover<C>::done_value; });
  if (!status.ok()) run.fail(status.message());
  std::uint64_t seen = 0;
  core.refresh(result, sizeof seen);  // another core has written it
  (void)core.read(result, &seen, sizeof seen).ok();
  if (seen != turn)
    run.fail(fmt::format("lost or stale data: after the sync of family {} its creator sees {}",
                         turn, seen));
}

}  // namespace tombolo::litmus
