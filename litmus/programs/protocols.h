// SPDX-License-Identifier: Apache-2.0
// Purpose: the protocols of sync/epochs as EpochProgram wants them, and the epochs that they run.
// Thread safety: plain types and functions.
#pragma once

#include "litmus/programs/epoch_program.h"
#include "sync/epochs/active_target.h"
#include "sync/epochs/broken/counter_only_target.h"

namespace tombolo::litmus {

template <class C>
class TriggerOnly : public sync::ActiveTarget<C> {
 public:
  using sync::ActiveTarget<C>::ActiveTarget;
  Status start(std::span<const machine::Home>) { return {}; }
  Status before_access(machine::Home target) { return this->await_post(target); }
};

// The same without looking for the post before complete, which has to wait for it then. A write
// that comes before the post of its target is the caller's error; so this one only completes.
template <class C>
class CounterOnly : public sync::broken::CounterOnlyTarget<C> {
 public:
  using sync::broken::CounterOnlyTarget<C>::CounterOnlyTarget;
  Status before_access(machine::Home) { return {}; }
};

// Core 0 writes to 1, then to the last core: 000 figure 3.6 with three cores, where the last posts
// as soon as it likes.
inline std::vector<Epoch> one_origin_two_targets(machine::Home cores) {
  Epoch first = epoch_among(cores);
  Epoch second = epoch_among(cores);
  return {with(first, 0, 1), with(second, 0, cores - 1)};
}
// All others write to core 0.
inline std::vector<Epoch> many_origins(machine::Home cores) {
  Epoch epoch = epoch_among(cores);
  for (machine::Home origin = 1; origin < cores; ++origin) with(epoch, origin, 0);
  return {epoch};
}
// Core 0 writes to all others in one epoch: their posts meet in one word.
inline std::vector<Epoch> many_targets(machine::Home cores) {
  Epoch epoch = epoch_among(cores);
  for (machine::Home target = 1; target < cores; ++target) with(epoch, 0, target);
  return {epoch};
}
// Each core writes to the next, in two epochs.
inline std::vector<Epoch> ring(machine::Home cores) {
  Epoch epoch = epoch_among(cores);
  for (machine::Home origin = 0; origin < cores; ++origin)
    with(epoch, origin, (origin + 1) % cores);
  if (cores > 2) return {epoch};
  return {epoch, epoch};
}

}  // namespace tombolo::litmus
