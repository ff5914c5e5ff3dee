// SPDX-License-Identifier: Apache-2.0
// Purpose: the locks that `passive-target` and `dht` compare, and a job whose processes use one:
// those of 001 as published, and ours.
//
//   gbh, gbh-back-off           sync/locks/best_effort_lock.h as 001 section 4.2 has it: an
//                               exclusive lock counts itself at rank 0 as well. Our windows do so
//                               from their first lock-all on (sync/locks/first_lock_all.h), so one
//                               comes first. Registers: published/spinning_registers.h.
//   mcs-wp                      published/mcs_writer_preference.h, which spins on registers
//   tombolo-best-effort         ours, in a window without lock-all, with the machine's own way to
//   tombolo-writer-preference   get a register
//
// Thread safety: see experiment.h.
#pragma once

#include <string>

#include "experiments/library.h"
#include "experiments/measure.h"
#include "experiments/published/mcs_window.h"
#include "experiments/published/spinning_registers.h"
#include "windows/window.h"

namespace tombolo::experiments {

// How atomics get the register of a home: as the machine does, or as in spinning_registers.h.
enum class Registers : std::uint8_t { machine, spinning, backing_off };

// A lock by the name of its series.
struct LockScheme {
  std::string name;
  sync::LockKind kind = sync::LockKind::best_effort;
  bool backoff = true;
  Registers registers = Registers::machine;
  bool with_lock_all = false;    // a lock-all comes before
  bool published_queue = false;  // instead of `kind`
};

inline LockScheme gbh() {
  return {.name = "gbh", .backoff = false, .registers = Registers::spinning, .with_lock_all = true};
}
inline LockScheme gbh_with_backoff() {
  return {.name = "gbh-back-off", .registers = Registers::backing_off, .with_lock_all = true};
}
inline LockScheme mcs_wp() {
  return {.name = "mcs-wp", .registers = Registers::spinning, .published_queue = true};
}
inline LockScheme our_best_effort() { return {.name = "tombolo-best-effort"}; }
inline LockScheme our_writer_preference() {
  return {.name = "tombolo-writer-preference", .kind = sync::LockKind::writer_preference};
}

namespace detail {

template <class Core, class Body>
Status run_on(const Context& context, Recorder& recorder, scc::JobShape shape,
              const LockScheme& scheme, const Body& body) {
  if (scheme.published_queue) {
    using Window = published::McsWindow<Core>;
    shape.sync_bytes = Window::sync_bytes(shape.processes);
    return run_job(context, recorder, shape, [&](const machine::Attachment& at, scc::Cpu& cpu) {
      Window window(at);
      LibraryOf<Window> mpi(window, cpu);
      mpi.barrier();
      body(window.core(), mpi);
    });
  }
  using Window = windows::Window<Core>;
  shape.sync_bytes = Window::sync_bytes(shape.processes);
  return run_job(context, recorder, shape, [&](const machine::Attachment& at, scc::Cpu& cpu) {
    Window window(at, {.locks = scheme.kind, .backoff = scheme.backoff});
    Library mpi(window, cpu);
    if (scheme.with_lock_all && at.self == 0) {
      mpi.lock_all();
      mpi.unlock_all();
    }
    mpi.barrier();
    body(window.core(), mpi);
  });
}

}  // namespace detail

// Runs body(core, library) on each process, with the locks of `scheme`.
template <class Body>
Status run_with_locks(const Context& context, Recorder& recorder, const scc::JobShape& shape,
                      const LockScheme& scheme, const Body& body) {
  using published::BackingOffCore;
  using published::SpinningCore;
  switch (scheme.registers) {
    case Registers::spinning:
      return detail::run_on<SpinningCore>(context, recorder, shape, scheme, body);
    case Registers::backing_off:
      return detail::run_on<BackingOffCore>(context, recorder, shape, scheme, body);
    default:
      return detail::run_on<scc::Core>(context, recorder, shape, scheme, body);
  }
}

}  // namespace tombolo::experiments
