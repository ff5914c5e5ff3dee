// SPDX-License-Identifier: Apache-2.0
// Purpose: the common parts of the validators of sync: every algorithm of a family times every
// machine, one of it for each core, hooks that end a wait, and protected data whose damage shows.
//
//   using Cases = Product<AnyMachines, CaseOf<McsLock>::On, CaseOf<Ticket>::On>;   // typed tests
//
// Thread safety: Deadline and Obituary may be used by several threads at once.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "backends/machines.h"
#include "base/status.h"
#include "machine/contract.h"
#include "machine/testing/ensemble.h"
#ifdef TOMBOLO_HAS_SCC
#include "backends/scc/scc.h"
#include "backends/scc/testing/host.h"
#endif

namespace tombolo::sync::testing {

// All machines, and the simulated chip where it is built: for tests that do everything in their
// cores.
#ifdef TOMBOLO_HAS_SCC
using AnyMachines = AllMachines::and_also<scc::Core>;
#else
using AnyMachines = AllMachines;
#endif

// ::testing::Types of Case<M> for every machine M and every Case.
template <class Machines, template <class> class... Cases>
struct ProductOf;
template <class... Machines, template <class> class... Cases>
struct ProductOf<TypeList<Machines...>, Cases...> {
  template <class M>
  using Row = TypeList<Cases<M>...>;
  template <class... Lists>
  struct Joined;
  template <class... Ts>
  struct Joined<TypeList<Ts...>> {
    using type = ::testing::Types<Ts...>;
  };
  template <class... Ts, class... Us, class... Rest>
  struct Joined<TypeList<Ts...>, TypeList<Us...>, Rest...>
      : Joined<TypeList<Ts..., Us...>, Rest...> {};
  using type = typename Joined<Row<Machines>...>::type;
};
template <class Machines, template <class> class... Cases>
using Product = typename ProductOf<Machines, Cases...>::type;

// Test names "<algorithm>_on_<machine>"; a case has `Machine` and `name`.
struct CaseNames {
  template <class Case>
  static std::string GetName(int index) {
    std::string name =
        std::string(Case::name) + "_on_" + MachineNames::GetName<typename Case::Machine>(index);
    for (char& c : name)
      if (c == '-' || c == ' ') c = '_';
    return name;
  }
};

// Fewer steps where each takes long.
template <class C>
constexpr int scaled(int steps) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  steps /= 5;
#endif
  return C::properties.native_atomics == machine::Atomics::full ? steps : steps / 5;
}

// Ends every wait with a fault once the time is over: a deadlock fails the test, it does not hang.
class Deadline : public machine::IdleHook {
 public:
  explicit Deadline(std::chrono::seconds limit) : end_(Clock::now() + limit) {}
  Status idle() override {
    return Clock::now() < end_ ? Status{} : Status::io("deadlock: the deadline has passed");
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_;
};

// Reports the death of a core once it was announced, and a deadlock as Deadline does.
class Obituary : public Deadline {
 public:
  using Deadline::Deadline;
  void announce(machine::Home core) { dead_.store(static_cast<int>(core)); }
  Status idle() override {
    const int dead = dead_.load();
    if (dead < 0) return Deadline::idle();
    return Status::process_failed(dead, "core " + std::to_string(dead) + " died");
  }

 private:
  std::atomic<int> dead_{-1};
};

// Gives each of `shape.cores` cores its Algorithm, and calls body(core, algorithm) on a thread for
// each. The shape says all but the room for sync words.
template <class Algorithm, machine::Core C, class Body>
void run_each(machine::testing::EnsembleShape shape, Body&& body) {
  machine::SyncLayout layout(C::reserved_sync_bytes(shape.cores));
  const auto at = Algorithm::take(layout, shape.cores);
  shape.sync_bytes = layout.bytes();
  machine::testing::Ensemble<C>(shape).run([&](C& core) {
    Algorithm algorithm(core, at);
    body(core, algorithm);
  });
}

// A record of equal numbers over several lines of the data of one home. A core that reads it while
// another writes it, or reads a stale part of it, finds numbers that differ.
template <machine::Core C>
class Record {
 public:
  static constexpr std::size_t bytes = 320;

  Record(C& core, machine::Home home) : core_(core), place_{home, 64} {}

  // The number in the record; fails the test if there are several.
  std::uint64_t read() {
    Numbers numbers;
    core_.refresh(place_, sizeof numbers);
    EXPECT_TRUE(core_.read(place_, numbers.data(), sizeof numbers).ok());
    for (const std::uint64_t number : numbers)
      if (number != numbers[0]) {
        ADD_FAILURE() << "torn record at home " << place_.home << ": " << numbers[0] << " and "
                      << number;
        break;
      }
    return numbers[0];
  }

  // `cached`: by write and publish, else by write_through and drain.
  void write(std::uint64_t number, bool cached) {
    Numbers numbers;
    numbers.fill(number);
    if (cached) {
      EXPECT_TRUE(core_.write(place_, numbers.data(), sizeof numbers).ok());
      core_.publish(place_, sizeof numbers);
    } else {
      EXPECT_TRUE(core_.write_through(place_, numbers.data(), sizeof numbers).ok());
      core_.drain();
    }
  }

 private:
  using Numbers = std::array<std::uint64_t, 24>;
  C& core_;
  machine::DataPlace place_;
};

}  // namespace tombolo::sync::testing
