// SPDX-License-Identifier: Apache-2.0
// Purpose: the locks that `passive-target` and `dht` compare, and a job whose processes use one:
// those of 001 as published, and ours.
//
//   gbh, gbh-back-off,          published/best_effort.h
//   gbh-back-off-as-printed
//   mcs-wp                      published/mcs_writer_preference.h
//   tombolo-best-effort         ours, in a window without lock-all, with the machine's own way to
//   tombolo-writer-preference   get a register
//
// Thread safety: see experiment.h.
#pragma once

#include <string>

#include "experiments/common/chip_windows.h"
#include "experiments/common/library.h"
#include "experiments/common/measure.h"
#include "experiments/published/best_effort.h"
#include "experiments/published/lock_window.h"
#include "experiments/published/mcs_writer_preference.h"
#include "experiments/published/spinning_registers.h"

namespace tombolo::experiments {

enum class PublishedLock : std::uint8_t { none, best_effort, queue };

// A lock by the name of its series.
struct LockScheme {
  std::string name;
  PublishedLock published = PublishedLock::none;
  published::BackOff backoff = published::BackOff::none;  // of best effort
  sync::LockKind ours = sync::kind_of<sync::BestEffortFamily>;
};

inline LockScheme gbh() { return {.name = "gbh", .published = PublishedLock::best_effort}; }
inline LockScheme gbh_with_backoff() {
  return {.name = "gbh-back-off",
          .published = PublishedLock::best_effort,
          .backoff = published::BackOff::tries_and_global_counter};
}
inline LockScheme gbh_with_backoff_as_printed() {
  return {.name = "gbh-back-off-as-printed",
          .published = PublishedLock::best_effort,
          .backoff = published::BackOff::tries};
}
inline LockScheme mcs_wp() { return {.name = "mcs-wp", .published = PublishedLock::queue}; }
inline LockScheme our_best_effort() { return {.name = "tombolo-best-effort"}; }
inline LockScheme our_writer_preference() {
  return {.name = "tombolo-writer-preference", .ours = sync::kind_of<sync::WriterPreferenceFamily>};
}

namespace detail {

template <class Window, class Body, class... Options>
Status run_with_window(const Context& context, Recorder& recorder, scc::JobShape shape,
                       const Body& body, const Options&... options) {
  shape.sync_bytes = Window::sync_bytes(shape.processes);
  return run_job(context, recorder, shape, [&](const scc::Attachment& at, scc::Cpu& cpu) {
    Window window(at, options...);
    LibraryOf<Window> mpi(window, cpu, Software::report);
    mpi.barrier();
    body(window.core(), mpi);
  });
}

}  // namespace detail

// Runs body(core, library) on each process, with the locks of `scheme`.
template <class Body>
Status run_with_locks(const Context& context, Recorder& recorder, const scc::JobShape& shape,
                      const LockScheme& scheme, const Body& body) {
  using published::LockWindow;
  using published::SpinningCore;
  switch (scheme.published) {
    case PublishedLock::best_effort:
      return detail::run_with_window<LockWindow<SpinningCore, published::BestEffort>>(
          context, recorder, shape, body, scheme.backoff);
    case PublishedLock::queue:
      return detail::run_with_window<LockWindow<SpinningCore, published::McsWriterPreference>>(
          context, recorder, shape, body);
    default:
      return detail::run_with_window<windows::Window<scc::Core>>(
          context, recorder, shape, body, windows::EngineOptions{.locks = scheme.ours});
  }
}

}  // namespace tombolo::experiments
