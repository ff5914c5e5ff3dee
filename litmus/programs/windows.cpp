// SPDX-License-Identifier: Apache-2.0
#include "litmus/explorer/explored.h"
#include "litmus/explorer/overtaken.h"
#include "litmus/programs/late.h"
#include "litmus/programs/omitting.h"
#include "litmus/programs/registry.h"
#include "litmus/programs/window_bodies.h"

namespace tombolo::litmus {
namespace {

using NoPublish = Omitting<Explored, Omit::publish>;
using NoRefresh = Omitting<Explored, Omit::refresh>;
using NoDrain = Omitting<Explored, Omit::drain>;
using NoWait = Omitting<Explored, Omit::wait>;
using LateOnes = Late<Explored>;
// The second fence of a call that tells its target.
using LateFlags = Omitting<Explored, Omit::fence, 2, 1>;
using Overtakes = Overtaken<Explored>;
using OvertakesUnfenced = Omitting<Overtakes, Omit::fence>;

constexpr windows::EngineOptions usual{};
constexpr windows::EngineOptions shared{.program_reads_peers = true};

template <class C>
ExploredProgram program(const std::string& name, const std::string& about,
                        typename WindowProgram<C>::Body body,
                        const windows::EngineOptions& options = usual) {
  return {.name = "window/" + name,
          .about = about,
          .make = [=](machine::Home n) -> std::unique_ptr<Program> {
            return std::make_unique<WindowProgram<C>>(n, body, options);
          }};
}

template <class C>
ExploredProgram twin(const std::string& name, const std::string& about,
                     typename WindowProgram<C>::Body body,
                     const windows::EngineOptions& options = usual) {
  ExploredProgram made = program<C>(name, about, body, options);
  made.name = "broken/" + made.name;
  made.broken = true;
  return made;
}

template <class C>
std::vector<ExploredProgram> programs() {
  return {
      program<C>("locks-and-puts", "lock, get, put and unlock by both", locks_and_puts),
      program<C>("locks-and-stores", "the same; the owner loads and stores", locks_and_stores),
      program<C>("lock-alls", "a put and the owner's store under lock_all", lock_alls),
      program<C>("lock-all-and-lock", "a put under lock_all beside the owner's lock",
                 lock_all_and_lock),
      program<C>("fences", "a put and the owner's store between fences", fences),
      program<C>("posts", "post, start, complete and wait, twice", posts),
      program<C>("accumulates", "both draw a number at once", accumulates),
      program<C>("accumulates-and-stores", "numbers drawn beside a store of the owner",
                 accumulates_and_stores),
      program<C>("shared-stores", "both store to one region under its lock", shared_stores, shared),
      program<C>("shared-promises", "promises of a fence speak of the own region", shared_promises,
                 shared),
      program<C>("flush-and-flag", "put, flush, and a flag that another polls", flush_and_flag),
      program<C>("flushes-and-flag", "the second flush may find the target told", flushes_and_flag),
      program<C>("unlock-and-flag", "put, unlock, and a flag under a lock without a check",
                 unlock_and_flag),
  };
}

}  // namespace

std::vector<ExploredProgram> window_programs() { return programs<Explored>(); }

std::vector<ExploredProgram> overtaken_window_programs() { return programs<Overtakes>(); }

std::vector<ExploredProgram> broken_window_programs() {
  const std::string late = "announced puts are in memory only later";
  return {
      twin<NoDrain>("locks-and-puts/no-drain", "unlock does not drain", locks_and_puts),
      twin<NoRefresh>("locks-and-puts/no-refresh", "get does not refresh", locks_and_puts),
      twin<LateOnes>("locks-and-puts/late", late, locks_and_puts),
      twin<NoPublish>("locks-and-stores/no-publish", "unlock does not publish", locks_and_stores),
      twin<NoRefresh>("locks-and-stores/no-refresh", "lock does not refresh", locks_and_stores),
      twin<LateOnes>("locks-and-stores/late", late, locks_and_stores),
      twin<LateOnes>("lock-alls/late", late, lock_alls),
      twin<NoDrain>("fences/no-drain", "a fence does not drain", fences),
      twin<NoPublish>("fences/no-publish", "a fence does not publish", fences),
      twin<NoRefresh>("fences/no-refresh", "a fence does not refresh", fences),
      twin<NoWait>("fences/no-wait", "waits end at once", fences),
      twin<LateOnes>("fences/late", late, fences),
      twin<NoDrain>("posts/no-drain", "complete does not drain", posts),
      twin<NoPublish>("posts/no-publish", "post does not publish", posts),
      twin<NoRefresh>("posts/no-refresh", "wait and get do not refresh", posts),
      twin<NoWait>("posts/no-wait", "waits end at once", posts),
      twin<LateOnes>("posts/late", late, posts),
      twin<NoDrain>("accumulates/no-drain", "the mutex is free before the sum is there",
                    accumulates),
      twin<NoRefresh>("accumulates/no-refresh", "old elements are summed up", accumulates),
      twin<LateOnes>("accumulates/late", late, accumulates),
      twin<NoPublish>("accumulates-and-stores/no-publish", "the owner's store is lost",
                      accumulates_and_stores),
      twin<NoPublish>("shared-stores/no-publish", "unlock does not publish", shared_stores, shared),
      twin<NoRefresh>("shared-stores/no-refresh", "lock does not refresh", shared_stores, shared),
      twin<NoDrain>("flush-and-flag/no-drain", "flush does not drain", flush_and_flag),
      twin<NoRefresh>("flush-and-flag/no-refresh", "get and sync do not refresh", flush_and_flag),
      twin<LateFlags>("flushes-and-flag/late-flag", "a later put overtakes the news of a flush",
                      flushes_and_flag),
      twin<LateFlags>("unlock-and-flag/late-flag", "a later put overtakes the news of an unlock",
                      unlock_and_flag),
      twin<OvertakesUnfenced>("flushes-and-flag/no-fence",
                              "the look whether the target is told overtakes the drain",
                              flushes_and_flag),
  };
}

}  // namespace tombolo::litmus
