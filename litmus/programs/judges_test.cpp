// SPDX-License-Identifier: Apache-2.0
// Purpose: shows that the programs ask what they say: each judge accepts right results and names
// the fault of wrong ones, of algorithms that do nothing at all as well; and that the scripts, the
// epochs and the broken machines are as their comments say.
// Thread safety: -
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "litmus/explorer/explorer.h"
#include "litmus/explorer/testing/bodies.h"
#include "litmus/programs/barrier_program.h"
#include "litmus/programs/counter_program.h"
#include "litmus/programs/omitting.h"
#include "litmus/programs/protocols.h"
#include "litmus/programs/registry.h"
#include "litmus/programs/scripts.h"
#include "sync/barriers/dissemination_barrier.h"

namespace tombolo::litmus {
namespace {

using machine::Home;

// The explorer's result: the failure, or all outcomes.
std::string found(Program& program, const Bounds& bounds = {}) {
  const Coverage coverage = explore(program, bounds);
  if (coverage.counterexample) return coverage.counterexample->what;
  EXPECT_TRUE(coverage.within_bounds());
  std::string text;
  for (const auto& [outcome, count] : coverage.outcomes) text += outcome + "; ";
  return text;
}
template <class P, class... Arguments>
std::string found_of(Arguments&&... arguments) {
  P program(std::forward<Arguments>(arguments)...);
  return found(program);
}

struct NoLayout {};

// ---- Locks --------------------------------------------------------------------------------------

struct NoLocks {
  using Layout = NoLayout;
  static Layout take(machine::SyncLayout&, Home) { return {}; }
  NoLocks(Explored&, Layout) {}
  Status lock(const Section&) { return {}; }
  void unlock(const Section&) {}
};
using NotLocked = SectionProgram<Explored, NoLocks>;
template <class C>
using SpinLocked = SectionProgram<C, SpinMutexes<C>>;

TEST(JudgeOfLocks, AcceptsSectionsThatMayMeet) {
  EXPECT_EQ(found_of<NotLocked>(Script{{shared0}, {shared0}}, Writing::cached),
            "sections completed: 0 0; ");
  EXPECT_EQ(found_of<NotLocked>(Script{{all_homes}, {all_homes}}, Writing::cached),
            "sections completed: 0 0; ");
  EXPECT_EQ(found_of<NotLocked>(Script{{exclusive0}, {exclusive1}}, Writing::cached),
            "sections completed: 1 1; ");
  EXPECT_EQ(found_of<NotLocked>(Script{{shared0}, {exclusive1}}, Writing::through),
            "sections completed: 0 1; ");
}

TEST(JudgeOfLocks, NamesSectionsThatMustNotMeet) {
  const auto is_exclusion = [](Script script) {
    const std::string what = found_of<NotLocked>(std::move(script), Writing::cached);
    return what.substr(0, what.find(':')) == "exclusion";
  };
  EXPECT_TRUE(is_exclusion({{exclusive0}, {exclusive0}}));
  EXPECT_TRUE(is_exclusion({{shared0}, {exclusive0}}));
  EXPECT_TRUE(is_exclusion({{exclusive0}, {shared0}}));
  EXPECT_TRUE(is_exclusion({{all_homes}, {exclusive1}})) << "the last home as well";
  EXPECT_TRUE(is_exclusion({{exclusive1}, {all_homes}}));
}

TEST(JudgeOfLocks, AcceptsALockAndCountsItsSections) {
  for (const Writing writing : {Writing::cached, Writing::through})
    EXPECT_EQ(
        found_of<SpinLocked<Explored>>(Script{{exclusive0, exclusive1}, {exclusive0}}, writing),
        "sections completed: 2 1; ");
}

template <Omit What>
std::string without(Writing writing) {
  return found_of<SpinLocked<Omitting<Explored, What>>>(writers_once(2), writing);
}

TEST(JudgeOfLocks, NamesDataThatIsLostOrStale) {
  const std::string lost = "lost or stale data: 0 at home 0 after 1 sections";
  EXPECT_EQ(without<Omit::publish>(Writing::cached), lost);
  EXPECT_EQ(without<Omit::refresh>(Writing::cached), lost);
  EXPECT_EQ(without<Omit::drain>(Writing::through), lost);
  // Operations that this way of writing does not need are no loss.
  const std::string completed = "sections completed: 2 0; ";
  EXPECT_EQ(without<Omit::publish>(Writing::through), completed);
  EXPECT_EQ(without<Omit::drain>(Writing::cached), completed);
}

// ---- Barriers -----------------------------------------------------------------------------------

struct NoBarrier {
  static NoLayout take(machine::SyncLayout&, Home) { return {}; }
  NoBarrier(Explored&, NoLayout) {}
  Status arrive_and_wait() { return {}; }
};
struct FailingBarrier : NoBarrier {
  using NoBarrier::NoBarrier;
  Status arrive_and_wait() { return Status::io("no barrier today"); }
};
template <class C>
using Dissemination = BarrierProgram<C, sync::DisseminationBarrier<C>>;

TEST(JudgeOfBarriers, AcceptsABarrier) {
  EXPECT_EQ(found_of<Dissemination<Explored>>(Home{2}, 2u), "all have left; ");
}

TEST(JudgeOfBarriers, NamesWhatIsWrong) {
  EXPECT_EQ((found_of<BarrierProgram<Explored, NoBarrier>>(Home{2}, 1u)),
            "barrier: core 0 has left round 1, core 1 has not arrived");
  EXPECT_EQ((found_of<BarrierProgram<Explored, FailingBarrier>>(Home{2}, 1u)), "no barrier today");
  EXPECT_EQ((found_of<Dissemination<Omitting<Explored, Omit::publish>>>(Home{2}, 1u)).substr(0, 18),
            "lost or stale data");
  EXPECT_EQ((found_of<Dissemination<Omitting<Explored, Omit::refresh>>>(Home{2}, 1u)).substr(0, 18),
            "lost or stale data");
}

// ---- Atomics ------------------------------------------------------------------------------------

TEST(JudgeOfAtomics, AcceptsAtomics) {
  EXPECT_EQ(found_of<CounterProgram<Explored>>(Home{2}, 2u, false), "each number drawn once; ");
  EXPECT_EQ(found_of<CounterProgram<Explored>>(Home{2}, 1u, true), "each number drawn once; ");
}

TEST(JudgeOfAtomics, NamesWhatIsNotAtomic) {
  const std::string drawn = found_of<CounterProgram<Divided<Explored>>>(Home{2}, 1u, false);
  EXPECT_EQ(drawn, "atomicity: number 1 was drawn by two, or lost");
  // Without draws only the flag is asked for.
  EXPECT_EQ(found_of<CounterProgram<Divided<Explored>>>(Home{2}, 0u, false),
            "each number drawn once; ");
}

// ---- Epochs -------------------------------------------------------------------------------------

struct NoProtocol {
  static NoLayout take(machine::SyncLayout&, Home) { return {}; }
  NoProtocol(Explored&, NoLayout) {}
  void post(const std::vector<Home>&) {}
  Status start(const std::vector<Home>&) { return {}; }
  Status before_access(Home) { return {}; }
  Status complete(const std::vector<Home>&) { return {}; }
  Status wait() { return {}; }
};

// A protocol that only lets the origin in when the target has posted.
struct NoWait : NoProtocol {
  Explored& core;
  NoWait(Explored& c, NoLayout layout) : NoProtocol(c, layout), core(c) {}
  static NoLayout take(machine::SyncLayout& layout, Home) {
    return layout.take_lines(1), NoLayout{};
  }
  void post(const std::vector<Home>&) {
    core.store(core.word({0, 0}), 1);
    core.notify(0);
  }
  Status before_access(Home) {
    return core.wait_until(core.word({0, 0}), [](std::uint64_t v) { return v == 1; });
  }
};

TEST(JudgeOfEpochs, NamesWhatIsWrong) {
  Epoch epoch = epoch_among(2);
  const std::vector<Epoch> one{with(epoch, 0, 1)};
  EXPECT_EQ((found_of<EpochProgram<Explored, NoProtocol>>(Home{2}, one)),
            "epoch: origin 0 reaches target 1 outside its epoch 1");
  EXPECT_EQ((found_of<EpochProgram<Explored, NoWait>>(Home{2}, one)),
            "lost or stale data: target 1 sees 0 of origin 0 in epoch 1");
}

TEST(JudgeOfEpochs, AcceptsAProtocolAndAnEmptyEpoch) {
  EXPECT_EQ((found_of<EpochProgram<Explored, TriggerOnly<Explored>>>(Home{2}, ring(2))),
            "all epochs have ended; ");
  EXPECT_EQ(
      (found_of<EpochProgram<Explored, NoProtocol>>(Home{2}, std::vector<Epoch>{epoch_among(2)})),
      "all epochs have ended; ");
}

std::string text_of(const std::vector<Epoch>& epochs) {
  std::string text;
  for (const Epoch& epoch : epochs) {
    text += '[';
    for (std::size_t origin = 0; origin < epoch.targets_of.size(); ++origin)
      for (const Home target : epoch.targets_of[origin]) {
        text += fmt::format(" {}>{}", origin, target);
        const auto& back = epoch.origins_of[target];
        EXPECT_EQ(std::count(back.begin(), back.end(), origin), 1);
      }
    text += " ]";
  }
  return text;
}

TEST(Epochs, AreAmongTheCoresOfTheirName) {
  EXPECT_EQ(text_of(one_origin_two_targets(3)), "[ 0>1 ][ 0>2 ]");
  EXPECT_EQ(text_of(one_origin_two_targets(2)), "[ 0>1 ][ 0>1 ]");
  EXPECT_EQ(text_of(many_origins(4)), "[ 1>0 2>0 3>0 ]");
  EXPECT_EQ(text_of(many_targets(4)), "[ 0>1 0>2 0>3 ]");
  EXPECT_EQ(text_of(ring(2)), "[ 0>1 1>0 ][ 0>1 1>0 ]");
  EXPECT_EQ(text_of(ring(3)), "[ 0>1 1>2 2>0 ]");
}

// ---- Scripts ------------------------------------------------------------------------------------

std::string text_of(const Script& script) {
  std::string text;
  for (const auto& sections : script) {
    for (const Section& section : sections)
      text += fmt::format("{}{} ", "sxa"[static_cast<int>(section.kind)], section.target);
    text += "| ";
  }
  return text;
}

TEST(Scripts, AreWhatTheirCommentsSay) {
  EXPECT_EQ(text_of(writers(2)), "x0 x0 | x0 x0 | ");
  EXPECT_EQ(text_of(writers(3)), "x0 | x0 | x0 | ");
  EXPECT_EQ(text_of(writers_once(2)), "x0 | x0 | ");
  EXPECT_EQ(text_of(reader_and_writer_once(3)), "s0 | x0 | s0 | ");
  EXPECT_EQ(text_of(readers_and_writer(3)), "s0 s0 | x0 | s0 | ");
  EXPECT_EQ(text_of(lock_all_and_writers(3)), "a0 | x1 x1 | x0 | ");
  EXPECT_EQ(text_of(lock_alls_and_writer(3)), "a0 | x0 | a0 | ");
}

// ---- Broken machines ----------------------------------------------------------------------------

// Six times a store and a fence: the outcome says after which of them the store is in memory.
template <class C>
class Fences final : public Program {
 public:
  MemoryShape shape() const override { return {.cores = 1, .sync_bytes = 8, .data_bytes = 8}; }
  void begin() override { text_.clear(); }
  void run(const machine::Attachment& at, Run&) override {
    C core(at);
    for (int i = 0; i < 6; ++i) {
      core.store(core.word({0, 0}), 1 + i);
      core.fence();
      text_ += memory_has(1 + i) ? "f" : "-";
    }
  }
  std::string outcome(const Memory&, Run&) override { return text_; }
  void look_at(const Memory& memory) { memory_ = &memory; }

 private:
  bool memory_has(std::uint64_t v) const { return memory_->load(0) == v; }
  const Memory* memory_ = nullptr;
  std::string text_;
};

template <class C>
std::string fences_done() {
  Fences<C> program;
  litmus::Run run(program, {});
  program.look_at(run.memory());
  run.restart();
  std::vector<Transition> choices;
  while (run.enabled(choices)) run.apply(choices.front());
  return run.outcome();
}

TEST(Omitting, LeavesOutTheOneOfSoMany) {
  EXPECT_EQ(fences_done<Explored>(), "ffffff");
  EXPECT_EQ((fences_done<Omitting<Explored, Omit::fence>>()), "------");
  EXPECT_EQ((fences_done<Omitting<Explored, Omit::fence, 2, 0>>()), "-f-f-f");
  EXPECT_EQ((fences_done<Omitting<Explored, Omit::fence, 2, 1>>()), "f-f-f-");
  EXPECT_EQ((fences_done<Omitting<Explored, Omit::fence, 3, 1>>()), "f-ff-f");
  EXPECT_EQ((fences_done<Omitting<Explored, Omit::drain>>()), "ffffff") << "another operation";
}

// ---- The list -----------------------------------------------------------------------------------

TEST(List, HasEachNameOnceAndSaysWhatIsBroken) {
  std::set<std::string> names;
  for (const ExploredProgram& program : explored_programs()) {
    EXPECT_TRUE(names.insert(program.name).second) << program.name;
    EXPECT_EQ(program.broken, program.name.substr(0, 7) == "broken/") << program.name;
    EXPECT_FALSE(program.about.empty()) << program.name;
    EXPECT_EQ(program.make(program.cores)->shape().cores, program.cores) << program.name;
  }
  EXPECT_EQ(names.size(), lock_programs().size() + other_programs().size() +
                              window_programs().size() + memory_programs().size() +
                              family_programs().size() + broken_programs().size() +
                              broken_window_programs().size() + broken_memory_programs().size() +
                              broken_family_programs().size());
}

// A twin that fell by another failure than its own would show nothing of the step it leaves out.
TEST(Twins, FallByWhatTheyLeaveOut) {
  const auto ends_with = [](const std::string& name, const std::string& end) {
    return name.size() > end.size() && name.substr(name.size() - end.size()) == end;
  };
  const std::map<std::string, std::string> failures{{"/no-publish", "lost or stale data"},
                                                    {"/no-refresh", "lost or stale data"},
                                                    {"/no-drain", "lost or stale data"},
                                                    {"/no-notify", "R6: core "}};
  // A stale entry of a deque is none: the task is lost, and its creator waits for it.
  const std::string lost_task = "deadlock: core 0: ";
  unsigned twins = 0;
  for (const ExploredProgram& program : explored_programs())
    for (const auto& [end, of_data] : failures) {
      if (!ends_with(program.name, end)) continue;
      const bool of_deque = end != "/no-notify" && ends_with(program.name, "/deque" + end);
      const std::string& failure = of_deque ? lost_task : of_data;
      SCOPED_TRACE(program.name);
      ++twins;
      const auto instance = program.make(program.cores);
      const std::string what = found(*instance, program.bounds);
      EXPECT_EQ(what.substr(0, failure.size()), failure);
    }
  EXPECT_GT(twins, 15u);
}

}  // namespace
}  // namespace tombolo::litmus
