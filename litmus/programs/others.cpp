// SPDX-License-Identifier: Apache-2.0
#include "litmus/explorer/explored.h"
#include "litmus/explorer/sleeper.h"
#include "litmus/programs/barrier_program.h"
#include "litmus/programs/counter_program.h"
#include "litmus/programs/protocols.h"
#include "litmus/programs/registry.h"
#include "litmus/programs/watched_program.h"
#include "sync/barriers/centralized_barrier.h"
#include "sync/barriers/dissemination_barrier.h"

namespace tombolo::litmus {
namespace {

template <class Barrier>
ExploredProgram barrier(const std::string& name, machine::Home cores) {
  return {.name = name,
          .about = "publish, barrier, look at the neighbour's; two rounds if the cores are two",
          .cores = cores,
          .make = [](machine::Home n) -> std::unique_ptr<Program> {
            return std::make_unique<BarrierProgram<Explored, Barrier>>(n, n == 2 ? 2 : 1);
          }};
}

ExploredProgram epochs(const std::string& name, const std::string& about, machine::Home cores,
                       std::vector<Epoch> (*among)(machine::Home)) {
  return {.name = "active-target/" + name,
          .about = about,
          .cores = cores,
          .make = [among](machine::Home n) -> std::unique_ptr<Program> {
            return std::make_unique<EpochProgram<Explored, TriggerOnly<Explored>>>(n, among(n));
          }};
}

template <class C>
ExploredProgram counter(const std::string& name, bool with_flag) {
  return {.name = name,
          .about = with_flag ? "fetch_add by each core, then a store against compare_exchanges"
                             : "fetch_add by each core, twice if they are two",
          .make = [=](machine::Home n) -> std::unique_ptr<Program> {
            return std::make_unique<CounterProgram<C>>(n, n == 2 && !with_flag ? 2 : 1, with_flag);
          }};
}

template <unsigned early>
ExploredProgram watched(const std::string& name, const std::string& about, machine::Home cores,
                        const Bounds& bounds = {}) {
  using C = ExploredSleeper<early>;
  return {.name = "watched-word/" + name,
          .about = about,
          .bounds = bounds,
          .cores = cores,
          .make = [](machine::Home n) -> std::unique_ptr<Program> {
            return std::make_unique<WatchedProgram<C, sync::WatchedWord<C>>>(n);
          }};
}

}  // namespace

std::vector<ExploredProgram> other_programs() {
  return {
      barrier<sync::DisseminationBarrier<Explored>>("dissemination-barrier", 3),
      barrier<sync::CentralizedBarrier<Explored>>("centralized-barrier", 3),
      epochs("figure-3.6", "core 0 writes to core 1, then to the last, which posts early", 3,
             one_origin_two_targets),
      epochs("ring", "each core writes to the next; two epochs if they are two", 2, ring),
      epochs("many-origins", "all others write to core 0", 3, many_origins),
      epochs("many-targets", "core 0 writes to all others", 3, many_targets),
      counter<ExploredTestAndSet>("atomics-by-test-and-set/draw", false),
      counter<ExploredTestAndSet>("atomics-by-test-and-set/store", true),
      counter<ExploredLoadsStores>("atomics-by-bakery/draw", false),
      counter<ExploredLoadsStores>("atomics-by-bakery/store", true),
      watched<0>("one", "core 1 changes a word twice, core 0 sleeps until it has", 2),
      watched<0>("two", "the same with two cores that sleep", 3,
                 {.evictions = 0, .preemptions = 3}),
      watched<1>("early", "core 0 sleeps, and the first time until the sleep ends by itself", 2),
  };
}

}  // namespace tombolo::litmus
