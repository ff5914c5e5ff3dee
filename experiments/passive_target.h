// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiment `passive-target`: pairs of lock and unlock in a tight loop, without
// communication, with random targets (001 sections 6.2 and 6.3).
//
// Best effort is measured as 001 section 4.2 has it: an exclusive lock counts itself at rank 0 as
// well. Our windows do so from their first lock-all on (sync/locks/first_lock_all.h), so one comes
// before the measurement. `best-effort` is ours: without it, and with the machine's own way to get
// a register. Writer preference knows no
// lock-all there (001 section 7.2), and gets none.
// Thread safety: see experiment.h.
#pragma once

#include <string>
#include <vector>

#include "experiments/experiment.h"
#include "sync/locks/lock_kind.h"

namespace tombolo::experiments {

// How atomics get the register of a home: as the machine does, or as in register_locks.h.
enum class Registers : std::uint8_t { machine, spinning, backing_off };

// A lock by the name of its series.
struct LockScheme {
  std::string name;
  sync::LockKind kind = sync::LockKind::best_effort;
  bool backoff = true;
  Registers registers = Registers::machine;
  bool with_lock_all = true;  // a lock-all comes before
};

// A mix of locks by the name of its series.
struct LockMix {
  std::string name;
  std::uint32_t exclusive_percent = 0;
};

const std::vector<LockMix>& lock_mixes();
LockScheme gbh_with_backoff();
LockScheme mcs_wp();

// Microseconds of each pair, of all processes together; rank r on core r.
Status measure_locks(const Context& context, Recorder& recorder, std::uint32_t processes, int pairs,
                     const LockMix& mix, const LockScheme& scheme, std::vector<double>* times);

Experiment passive_target();

}  // namespace tombolo::experiments
