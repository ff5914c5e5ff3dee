// SPDX-License-Identifier: Apache-2.0
// Purpose: runs a program's threads on virtual shared memory: each protocol on every machine, as
// cases of typed tests.
//
//   run<Case>(shape, seed, [](auto& thread) { thread.store(0, 7); thread.barrier(); ... });
//
// Thread safety: run() from one thread at a time.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <type_traits>

#include "backends/machines.h"
#include "dsm/protocol/regional.h"
#include "dsm/protocol/release.h"
#include "dsm/protocol/sequential.h"
#include "dsm/testing/deferring.h"
#include "dsm/testing/exposed_pages.h"
#include "dsm/testing/private_pages.h"
#include "dsm/testing/program_thread.h"
#include "dsm/transport/core_transport.h"
#include "machine/testing/ensemble.h"
#ifdef TOMBOLO_HAS_SCC
#include "backends/scc/scc.h"
#include "backends/scc/testing/host.h"
#endif

namespace tombolo::dsm::testing {

template <class C, template <class, class> class P, class S = PrivatePages>
struct Case {
  using Machine = C;
  using Thread = ProgramThread<Deferring<CoreTransport<C>>, S, P>;
  static constexpr bool in_place = std::is_same_v<S, ExposedPages>;
  using Protocol = typename Thread::Protocol;
};

// All protocols on every machine, and on the chip in virtual time; and pages in place.
template <class... Machines>
struct CasesOf {
  using type = ::testing::Types<
      Case<Machines, Regional>..., Case<Machines, Release>..., Case<Machines, Sequential>...,
      Case<coherent::Core, Regional, ExposedPages>, Case<stale::Core, Regional, ExposedPages>,
      Case<coherent::Core, Release, ExposedPages>, Case<stale::Core, Release, ExposedPages>>;
};
// Cases whose spans show their stores to threads that take any lock.
template <class... Machines>
struct CasesThatTellAllOf {
  using type = ::testing::Types<Case<Machines, Release>..., Case<Machines, Sequential>...,
                                Case<coherent::Core, Release, ExposedPages>,
                                Case<stale::Core, Release, ExposedPages>>;
};
#ifdef TOMBOLO_HAS_SCC
using TestedMachines = AllMachines::and_also<scc::Core>;
#else
using TestedMachines = AllMachines;
#endif
using Cases = TestedMachines::apply<CasesOf>::type;
using CasesThatTellAll = TestedMachines::apply<CasesThatTellAllOf>::type;

// "regional_on_stale"
struct CaseNames {
  template <class Case>
  static std::string GetName(int index) {
    return std::string(Case::Protocol::name) + (Case::in_place ? "_in_place" : "") + "_on_" +
           MachineNames::GetName<typename Case::Machine>(index);
  }
};

// Ends every wait once the time is over, or a thread is given up: a deadlock fails the test.
class Deadline : public machine::IdleHook {
 public:
  void give_up() { given_up_ = true; }
  Status idle() override {
    if (given_up_) return Status::io("another thread has failed");
    return Clock::now() < end_ ? Status{} : Status::io("deadlock: the deadline has passed");
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_ = Clock::now() + std::chrono::seconds(60);
  std::atomic<bool> given_up_{false};
};

// A thread that is given up leaves its body by this.
struct GivenUp {};

// Calls body(thread) for each thread of the program, each on its core.
template <class Case, class Body>
void run(const Shape& shape, std::uint64_t seed, Body&& body) {
  using C = typename Case::Machine;
  using Thread = typename Case::Thread;
  const auto layout = Thread::take(shape);
  Deadline deadline;
  machine::testing::Ensemble<C> ensemble({.cores = shape.cores(),
                                          .sync_bytes = layout.sync_bytes,
                                          .data_bytes = layout.data_bytes,
                                          .seed = seed,
                                          .idle = &deadline});
  ensemble.run([&](C& core) {
    // A memory server has memory, and nothing to do.
    if (core.self() >= shape.threads) return;
    Thread thread(core, layout, shape);
    thread.on_error([](const Status& status) {
      ADD_FAILURE() << status.message();
      throw GivenUp();
    });
    try {
      body(thread);
    } catch (const GivenUp&) {
      deadline.give_up();
    }
  });
}

}  // namespace tombolo::dsm::testing
