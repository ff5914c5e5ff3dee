// SPDX-License-Identifier: Apache-2.0
// Purpose: families of simulated cores beside their data: channels, kills, breaks, errors, families
// of families, exclusive places, and places of the creator's core; each ends once, and leaves
// nothing. Random programs of these have the seeds of the day (svp/testing/random_choices.h).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.h"
#include "experiments/common/measure.h"
#include "experiments/common/testing.h"
#include "experiments/svp/chip/chip_sites.h"
#include "svp/api/include/tombolo/svp.hpp"
#include "svp/testing/random_choices.h"

namespace tombolo::experiments {
namespace {

using svp::ExitReason;
using svp::Index;
using svp::remote;
using svp::Transport;

constexpr std::uint32_t sites = 4;
// The creator's core, which needs no message, and another one.
constexpr svp::Site here_and_there[] = {0, 1};

// Of the threads of a test, which one thread of the system simulates.
int alive = 0;  // NOLINT: of a test
int begun = 0;  // NOLINT: of a test
struct Alive {
  Alive() { ++alive; }
  ~Alive() { --alive; }
};

Status run_limited(const std::function<void(ChipSite&)>& creator,
                   std::uint64_t events = simulator::Options().event_limit) {
  const Context context = test_context();
  simulator::Options options = options_of(context);
  options.time_limit = simulator::Time::after_start(simulator::Duration::milliseconds(200));
  options.event_limit = events;
  scc::Chip chip(context.chip, options);
  return ChipSites(chip, {.sites = sites, .copy_cores = {simulator::CoreId(47)}})
      .run(creator)
      .status;
}

class ChipFamilies : public ::testing::Test {
 protected:
  void run(const std::function<void(ChipSite&)>& creator) {
    const Status status = ended(creator);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  static Status ended(const std::function<void(ChipSite&)>& creator) {
    alive = begun = 0;
    const Status status = run_limited(creator);
    EXPECT_EQ(alive, 0);
    return status;
  }
  template <auto f, class... Args>
  static auto created(ChipSite& here, const ChipPlace& place, const svp::Range& range,
                      Args&&... args) {
    return std::make_unique<FamilyOf<svp::Remote<f>>>(here, place, remote<f>, range,
                                                      Transport::best, std::forward<Args>(args)...);
  }
};

// ---- Channels -----------------------------------------------------------------------------------

void add_up(Index i, svp::In<std::int64_t> by, svp::Global<std::int64_t>& start,
            svp::SharedEnd<std::int64_t>& sum) {
  const Alive here;
  sum.write(sum.read() + by * i + start.read());
}
using AddUp = svp::Remote<&add_up>;

// At that place, with values that are written before the create and after it.
void add_up_at(ChipSite& here, const ChipPlace& place, Transport way, Index n, bool early,
               bool reads) {
  svp::Global<std::int64_t> start;
  svp::Shared<std::int64_t> sum;
  if (early) start.write(1000);
  if (early) sum.write(5);
  FamilyOf<AddUp> family(here, place, AddUp(), {.limit = n}, way, std::int64_t{10}, start, sum);
  if (!early) sum.write(5);
  if (!early) start.write(1000);
  const std::int64_t expected = 5 + 10 * (n * (n - 1) / 2) + 1000 * n;
  if (reads) {
    EXPECT_EQ(sum.read(), expected);
  }
  EXPECT_EQ(family.sync().reason, ExitReason::done);
  EXPECT_EQ(sum.read(), expected);
}

TEST_F(ChipFamilies, HaveChannels) {
  run([](ChipSite& here) {
    for (const Index n : {0, 1, 3})
      for (int when = 0; when < 4; ++when) {
        const bool early = (when & 1) != 0;
        const bool reads = (when & 2) != 0;
        for (const Transport way : {Transport::best, Transport::stream, Transport::direct})
          add_up_at(here, 1, way, n, early, reads);
        add_up_at(here, 0, Transport::best, n, early, reads);
        add_up_at(here, ChipPlace::exclusive(0), Transport::best, n, early, reads);
        add_up_at(here, ChipPlace::exclusive(1), Transport::best, n, early, reads);
      }
  });
}

void changes(Index i, svp::InArray<int> from, svp::OutArray<int> to, svp::InOut<int> sum) {
  EXPECT_EQ(to.data(), from.data() + 3);
  to[static_cast<std::size_t>(i)] = from[static_cast<std::size_t>(i)];
  *sum += static_cast<int>(i);
}

TEST_F(ChipFamilies, OfTheirCreatorsCoreUseItsVariables) {
  run([](ChipSite& here) {
    std::vector<int> values{1, 2, 3, 0, 0, 0};
    int sum = 10;
    EXPECT_EQ(created<&changes>(here, 0, {.limit = 3}, std::span(values).first(3),
                                std::span(values).last(3), sum)
                  ->sync()
                  .reason,
              ExitReason::done);
    EXPECT_EQ(values, (std::vector<int>{1, 2, 3, 1, 2, 3}));
    EXPECT_EQ(sum, 13);
  });
}

// Their values come in the opposite order.
TEST_F(ChipFamilies, ThatBlockKeepBackNoOther) {
  run([](ChipSite& here) {
    constexpr std::size_t families = 20;
    std::vector<std::unique_ptr<svp::Global<std::int64_t>>> starts;
    std::vector<std::unique_ptr<svp::Shared<std::int64_t>>> sums;
    std::vector<std::unique_ptr<FamilyOf<AddUp>>> all;
    for (std::size_t i = 0; i < families; ++i) {
      starts.push_back(std::make_unique<svp::Global<std::int64_t>>());
      sums.push_back(std::make_unique<svp::Shared<std::int64_t>>(static_cast<std::int64_t>(i)));
      all.push_back(created<&add_up>(here, 2, {.limit = 2}, std::int64_t{0}, *starts[i], *sums[i]));
    }
    starts[3]->write(100);
    EXPECT_EQ(all[3]->sync().reason, ExitReason::done);
    for (std::size_t i = families; i-- > 0;)
      if (i != 3) starts[i]->write(100);
    for (std::size_t i = families; i-- > 0;) {
      if (i != 3) {
        EXPECT_EQ(all[i]->sync().reason, ExitReason::done);
      }
      EXPECT_EQ(sums[i]->read(), 200 + static_cast<std::int64_t>(i));
    }
  });
}

// Each thread has a family at the next core, which goes on with the sum.
void add_up_by_others(Index i, svp::In<int> levels, svp::SharedEnd<std::int64_t>& sum) {
  const Alive alive_here;
  if (levels == 0) return sum.write(sum.read() + i);
  ChipSite& here = ChipSite::here();
  svp::Shared<std::int64_t> part;
  FamilyOf<svp::Remote<&add_up_by_others>> family(here, (here.link().self() + 1) % sites,
                                                  remote<&add_up_by_others>, {.limit = 3},
                                                  Transport::best, *levels - 1, part);
  part.write(sum.read());
  sum.write(part.read());
  family.sync();
}

TEST_F(ChipFamilies, HaveFamiliesOfTheirOwn) {
  run([](ChipSite& here) {
    svp::Shared<std::int64_t> sum(0);
    auto family = created<&add_up_by_others>(here, 1, {.limit = 3}, 3, sum);
    EXPECT_EQ(sum.read(), 81);
    EXPECT_EQ(family->sync().reason, ExitReason::done);
  });
}

void goes_deeper(svp::In<int> levels, svp::SharedEnd<std::int64_t>& depth) {
  const Alive alive_here;
  ChipSite& here = ChipSite::here();
  if (levels == 0) return depth.write(depth.read() + 1);
  svp::Shared<std::int64_t> next(depth.read() + 1);
  FamilyOf<svp::Remote<&goes_deeper>> family(here, (here.link().self() + 1) % sites,
                                             remote<&goes_deeper>, {}, Transport::best, *levels - 1,
                                             next);
  family.sync();
  depth.write(next.read());
}

// All of them wait at once, some twenty of each core.
TEST_F(ChipFamilies, AreAsDeepAsTheProgramHasThem) {
  run([](ChipSite& here) {
    svp::Shared<std::int64_t> depth(0);
    auto family = created<&goes_deeper>(here, 1, {}, 80, depth);
    EXPECT_EQ(family->sync().reason, ExitReason::done);
    EXPECT_EQ(depth.read(), 81);
  });
}

// ---- Exclusive places ---------------------------------------------------------------------------

std::string order;  // NOLINT: of a test
int inside = 0;     // NOLINT: likewise

void takes_its_turn(Index i, svp::In<char> name, svp::Global<std::int64_t>& start) {
  const Alive here;
  ++begun;
  if (i == 0) {
    EXPECT_EQ(inside++, 0) << *name << order;
  }
  order += *name;
  start.read();
  if (i == 1) --inside;
}
using TakesItsTurn = svp::Remote<&takes_its_turn>;
constexpr svp::Range two{.limit = 2};

// Creates one, and says so before that ends.
void lets_take_a_turn(svp::In<svp::Site> site, svp::In<char> name, svp::Global<std::int64_t>& start,
                      svp::SharedEnd<bool>& is_created) {
  svp::Global<std::int64_t> its_start;
  FamilyOf<TakesItsTurn> family(ChipSite::here(), ChipPlace::exclusive(*site), TakesItsTurn(), two,
                                Transport::best, *name, its_start);
  is_created.write(true);
  its_start.write(start.read());
  family.sync();
}

// The creates are of two cores, in an order that the program has made.
TEST_F(ChipFamilies, OfAnExclusivePlaceRunInTheOrderOfTheirCreates) {
  for (const svp::Site site : here_and_there)
    run([site](ChipSite& here) {
      order.clear();
      inside = 0;
      const ChipPlace place = ChipPlace::exclusive(site);
      svp::Global<std::int64_t> starts[4];
      svp::Shared<bool> is_created(false);
      auto first = created<&takes_its_turn>(here, place, two, 'a', starts[0]);
      auto creator = created<&lets_take_a_turn>(here, 2, {}, site, 'b', starts[1], is_created);
      EXPECT_TRUE(is_created.read());
      auto third = created<&takes_its_turn>(here, place, two, 'c', starts[2]);
      auto last = created<&takes_its_turn>(here, place, two, 'd', starts[3]);
      add_up_at(here, site, Transport::best, 2, true, false);  // keeps no other place's back
      for (const std::size_t n : {3, 1, 2, 0}) starts[n].write(1);
      for (auto* const family : {last.get(), third.get(), first.get()})
        EXPECT_EQ(family->sync().reason, ExitReason::done);
      EXPECT_EQ(creator->sync().reason, ExitReason::done);
      EXPECT_EQ(order, "aabbccdd");
    });
}

// The first one has its turn for ever, or until it is killed as well.
TEST_F(ChipFamilies, AreKilledBeforeTheirTurn) {
  for (const svp::Site site : here_and_there)
    run([site](ChipSite& here) {
      order.clear();
      inside = 0;
      const ChipPlace place = ChipPlace::exclusive(site);
      svp::Global<std::int64_t> starts[4];
      auto first = created<&takes_its_turn>(here, place, two, 'a', starts[0]);
      auto second = created<&takes_its_turn>(here, place, two, 'b', starts[1]);
      auto third = created<&takes_its_turn>(here, place, two, 'c', starts[2]);
      here.wait([] { return begun == 1; }, false);
      second->kill();
      starts[1].write(1);
      EXPECT_EQ(second->sync().reason, ExitReason::killed);
      { auto left = created<&takes_its_turn>(here, place, two, 'd', starts[3]); }
      EXPECT_EQ(order, "a");
      first->kill();
      inside = 0;
      starts[2].write(1);
      EXPECT_EQ(third->sync().reason, ExitReason::done);
      EXPECT_EQ(first->sync().reason, ExitReason::killed);
      EXPECT_EQ(order, "acc");
    });
}

void goes_round(Index, svp::In<int> levels) {
  const Alive alive_here;
  if (levels == 0) return;
  ChipSite& here = ChipSite::here();
  FamilyOf<svp::Remote<&goes_round>> next(here, ChipPlace::exclusive(3 - here.link().self()),
                                          remote<&goes_round>, {}, Transport::best, *levels - 1);
  next.sync();
}

// A circle of two places is not found; the end of the run frees all.
TEST_F(ChipFamilies, ThatWaitForEverEndWithTheRun) {
  const auto with = [](int levels) {
    return ended([levels](ChipSite& here) {
      created<&goes_round>(here, ChipPlace::exclusive(1), {}, levels)->sync();
    });
  };
  EXPECT_TRUE(with(1).ok());
  const Status status = with(2);
  EXPECT_NE(status.message().find("limit"), std::string::npos) << status.message();
}

void begins() { ++begun; }

// By a request of a creator with other sources.
TEST_F(ChipFamilies, OfAPlaceThatThereIsNotFail) {
  run([](ChipSite& here) {
    svp::Call call(here.open(1),
                   {.function = &svp::Remote<&begins>::entry(), .place = svp::exclusive_place + 1},
                   {});
    call.open(here.reach());
    call.ask_sync();
    while (!call.ended()) {
      call.advance(here.link());
      here.link().poll([&](const svp::Message& m) { return call.take(m, here.reach()); });
      EXPECT_TRUE(here.link().wait().ok());
    }
    EXPECT_EQ(call.completion().reason, ExitReason::failed);
    EXPECT_EQ(call.completion().text, "there is no such place on a core");
    EXPECT_EQ(begun, 0);
  });
}

void creates_at_its_own_place(Index, svp::In<bool> between) {
  ChipSite& here = ChipSite::here();
  const svp::Site self = here.link().self();
  if (between)
    FamilyOf<svp::Remote<&creates_at_its_own_place>>(here, self, remote<&creates_at_its_own_place>,
                                                     {}, Transport::best, false)
        .sync();
  svp::Global<std::int64_t> start(1);
  FamilyOf<TakesItsTurn>(here, ChipPlace::exclusive(self), TakesItsTurn(), two, Transport::best,
                         'x', start)
      .sync();
}

template <auto f, class... Args>
void create_and_sync(const ChipPlace& place, Args&&... args) {
  (void)run_limited([&](ChipSite& here) {
    FamilyOf<svp::Remote<f>>(here, place, remote<f>, {}, Transport::best, args...).sync();
  });
}

TEST(ChipFamiliesDeathTest, MistakesStopTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const bool between : {false, true})
    EXPECT_DEATH(create_and_sync<&creates_at_its_own_place>(ChipPlace::exclusive(1), between),
                 "from within a family of that place");
  EXPECT_DEATH(create_and_sync<&creates_at_its_own_place>(sites, false),
               "create: by core 0 at core 4 of 4");
  for (const svp::Site site : here_and_there) {
    svp::Global<std::int64_t> not_written;
    EXPECT_DEATH(create_and_sync<&takes_its_turn>(site, 'a', not_written),
                 "the parent synced without a write to this global channel");
  }
}

// ---- Ends ---------------------------------------------------------------------------------------

void reads_for_ever(Index, svp::Global<std::int64_t>& never, svp::SharedEnd<std::int64_t>& end) {
  const Alive here;
  ++begun;
  never.read();
  end.write(1);
}

TEST_F(ChipFamilies, AreKilledWhileTheyBlock) {
  for (const svp::Site site : here_and_there)
    run([site](ChipSite& here) {
      svp::Global<std::int64_t> never;
      svp::Shared<std::int64_t> end(0);
      auto family = created<&reads_for_ever>(here, site, {.limit = 5}, never, end);
      here.wait([] { return begun == 1; }, false);
      family->kill();
      EXPECT_EQ(family->sync().reason, ExitReason::killed);
      EXPECT_THROW((void)end.read(), svp::NoValue);
      EXPECT_EQ(begun, 1);
      add_up_at(here, site, Transport::best, 2, true, false);
    });
}

// Of its own core's, none has begun yet.
TEST_F(ChipFamilies, AreKilledBeforeTheyBegin) {
  run([](ChipSite& here) {
    svp::Global<std::int64_t> never;
    svp::Shared<std::int64_t> end(0);
    auto family = created<&reads_for_ever>(here, 0, {.limit = 5}, never, end);
    family->kill();
    EXPECT_THROW((void)end.read(), svp::NoValue);
    EXPECT_EQ(family->sync().reason, ExitReason::killed);
    EXPECT_EQ(begun, 0);
    // One without threads would wait for this value.
    svp::Global<std::int64_t> never_too;
    svp::Shared<std::int64_t> not_written;
    auto empty = created<&reads_for_ever>(here, 0, {.limit = 0}, never_too, not_written);
    empty->kill();
    EXPECT_THROW((void)not_written.read(), svp::NoValue);
    EXPECT_EQ(empty->sync().reason, ExitReason::killed);
  });
}

// Before a core has a fibre for its first family, while it adds one, and after.
TEST_F(ChipFamilies, EndWithARunThatIsCutShortAtAnyEvent) {
  const auto program = [](ChipSite& here) {
    svp::Shared<std::int64_t> depth(0);
    created<&goes_deeper>(here, 0, {}, 0, depth)->sync();
  };
  for (std::uint64_t events = 1;; ++events) {
    const Status status = run_limited(program, events);
    if (status.ok()) break;
    EXPECT_NE(status.message().find(fmt::format("limit of {} events", events)), std::string::npos)
        << status.message();
    ASSERT_LT(events, 1000u);
  }
}

int unlisted = 0;  // NOLINT: of a test

void leaves_the_list(Index, svp::Global<std::int64_t>& never) {
  try {
    ++begun;
    never.read();
  } catch (const svp::Stopped&) {
    EXPECT_FALSE(never.parent_channel().awaited());
    ++unlisted;
    throw;
  }
}
// Waits for the last value of a family that waits itself.
void waits_for_the_last(Index, svp::In<svp::Site> site) {
  svp::Global<std::int64_t> never;
  svp::Shared<std::int64_t> end(0);
  FamilyOf<svp::Remote<&reads_for_ever>> family(ChipSite::here(), *site, remote<&reads_for_ever>,
                                                {}, Transport::best, never, end);
  try {
    end.read();
  } catch (const svp::Stopped&) {
    EXPECT_FALSE(end.last_channel().awaited());
    ++unlisted;
    throw;
  }
}

// A reader that is killed is in the list of its channel no more: the value that comes then, and the
// channel's end, find none.
TEST_F(ChipFamilies, LeaveTheListsOfChannelsWhenTheyAreKilled) {
  for (const svp::Site site : here_and_there)
    run([site](ChipSite& here) {
      unlisted = 0;
      svp::Global<std::int64_t> late;
      auto reader = created<&leaves_the_list>(here, site, {}, late);
      auto parent = created<&waits_for_the_last>(here, site, {}, svp::Site{2});
      auto own_parent = created<&waits_for_the_last>(here, site, {}, site);
      here.wait([] { return begun == 3; }, false);
      reader->kill();
      here.wait([] { return unlisted == 1; }, false);
      late.write(1);
      EXPECT_EQ(reader->sync().reason, ExitReason::killed);
      parent->kill();
      own_parent->kill();
      EXPECT_EQ(parent->sync().reason, ExitReason::killed);
      EXPECT_EQ(own_parent->sync().reason, ExitReason::killed);
      EXPECT_EQ(unlisted, 3);
    });
}

// A tree of families that only a kill ends.
void grows(Index, svp::In<int> levels) {
  const Alive alive_here;
  ++begun;
  ChipSite& here = ChipSite::here();
  svp::Global<std::int64_t> never;
  svp::Shared<std::int64_t> end(0);
  if (levels == 0) {
    FamilyOf<svp::Remote<&reads_for_ever>> leaf(here, (here.link().self() + 1) % sites,
                                                remote<&reads_for_ever>, {}, Transport::best, never,
                                                end);
    end.read();  // for ever, too; a sync would be a promise of no write
  }
  using Grows = svp::Remote<&grows>;
  FamilyOf<Grows> one(here, (here.link().self() + 1) % sites, Grows(), {}, Transport::best,
                      *levels - 1);
  FamilyOf<Grows> other(here, (here.link().self() + 2) % sites, Grows(), {}, Transport::best,
                        *levels - 1);
  one.sync();
  other.sync();
}

TEST_F(ChipFamilies, AreKilledWithAllDescendants) {
  run([](ChipSite& here) {
    auto family = created<&grows>(here, 1, {}, 2);
    here.wait([] { return begun == 7 + 4; }, false);
    family->kill();
    EXPECT_EQ(family->sync().reason, ExitReason::killed);
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(begun, 7 + 4);
  });
}

TEST_F(ChipFamilies, ThatAreLeftAreKilled) {
  for (const svp::Site site : here_and_there)
    run([site](ChipSite& here) {
      svp::Global<std::int64_t> never;
      svp::Shared<std::int64_t> end(0);
      {
        auto family = created<&reads_for_ever>(here, site, {}, never, end);
        here.wait([] { return begun == 1; }, false);
      }
      EXPECT_EQ(alive, 0);
    });
}

void ends_early(Index i, svp::In<int> how) {
  ++begun;
  if (i != 3) return;
  if (how == 0) svp::break_family(42);
  if (how == 1) throw std::runtime_error("no more");
  if (how == 2) throw svp::NumberedFailure("no more", 43);
  if (how == 4) throw 44;
}

TEST_F(ChipFamilies, EndAsAThreadOfTheirsSays) {
  for (const svp::Site site : here_and_there)
    run([site](ChipSite& here) {
      const auto ended = [&](int how) {
        begun = 0;
        return created<&ends_early>(here, site, {.limit = 10}, how)->sync();
      };
      const svp::Completion broken = ended(0);
      EXPECT_EQ(begun, 4);
      EXPECT_EQ(broken.reason, ExitReason::broken);
      EXPECT_EQ(broken.value, 42);
      const svp::Completion failed = ended(1);
      EXPECT_EQ(begun, 4);
      EXPECT_EQ(failed.reason, ExitReason::failed);
      EXPECT_EQ(failed.text, "no more");
      EXPECT_EQ(ended(2).value, 43);
      EXPECT_EQ(ended(4).text, "an exception that is no std::exception");
      EXPECT_EQ(ended(3).reason, ExitReason::done);
      EXPECT_EQ(begun, 10);
    });
}

// Between two threads, and at a checkpoint; an error that follows from the kill is not the end.
void works_until(Index i, svp::In<int> checks) {
  begun = static_cast<int>(i) + 1;
  try {
    while (checks != 0) svp::checkpoint();
  } catch (const svp::Stopped&) {
    if (checks == 2) throw std::runtime_error("it was stopped");
    throw;
  }
}

TEST_F(ChipFamilies, AreKilledWhileTheyWork) {
  run([](ChipSite& here) {
    for (const svp::Site site : here_and_there)
      for (const int checks : {0, 1, 2}) {
        begun = 0;
        auto family = created<&works_until>(here, site, {.limit = 1'000'000'000}, checks);
        here.wait([] { return begun != 0; }, false);
        family->kill();
        EXPECT_EQ(family->sync().reason, ExitReason::killed);
        EXPECT_LT(begun, 1000);
      }
  });
}

// ---- Random programs ----------------------------------------------------------------------------

// Families at random places whose threads have families of their own; the sum is known.
std::int64_t sum_of(std::uint64_t seed, int levels) {
  const auto threads = static_cast<Index>(Random(seed).below(4));
  std::int64_t sum = 0;
  for (Index i = 0; i < threads; ++i)
    sum +=
        i + 100 + (levels == 0 ? 0 : sum_of(seed * 31 + static_cast<std::uint64_t>(i), levels - 1));
  return sum;
}
void random_threads(Index i, svp::In<std::uint64_t> seed, svp::In<int> levels,
                    svp::InOutArray<std::uint32_t> marks, svp::Global<std::int64_t>& plus,
                    svp::SharedEnd<std::int64_t>& sum);
using RandomThreads = svp::Remote<&random_threads>;

// Memory of the chip for a few families, as flushes take the simulator long: some elements, or
// enough for copy cores.
std::span<std::uint32_t> random_marks(ChipSite& here, Random& random) {
  if (!random.one_in(20)) return {};
  const std::size_t bytes = random.one_in(2) ? 64 : ChipEngine::least_bytes;
  std::byte* const at = here.memory().allocate(here.cpu(), bytes);
  std::memset(at, 0, bytes);
  here.memory().stored(here.cpu(), at, bytes);
  return {reinterpret_cast<std::uint32_t*>(at), bytes / sizeof(std::uint32_t)};
}

std::int64_t random_family(std::uint64_t seed, int levels, std::int64_t before) {
  const svp::Range range{.limit = static_cast<Index>(Random(seed).below(4))};
  Random random(seed + (std::uint64_t{1} << 40));
  ChipSite& here = ChipSite::here();
  ChipPlace place = static_cast<svp::Site>(random.below(sites));
  place.is_exclusive = levels == 0 && random.one_in(2);  // further families could make a circle
  const auto way = static_cast<Transport>(random.below(std::size(svp::transport_names)));
  svp::Global<std::int64_t> plus;
  svp::Shared<std::int64_t> sum;
  const bool early = random.one_in(2);
  if (early) sum.write(before);
  const std::span<std::uint32_t> marks = random_marks(here, random);
  FamilyOf<RandomThreads> family(here, place, RandomThreads(), range, way, seed, levels, marks,
                                 plus, sum);
  if (!early) sum.write(before);
  if (random.one_in(3)) here.cpu().compute(simulator::Duration::microseconds(100));
  if (random.one_in(12)) {
    family.kill();
    if (random.one_in(2)) plus.write(100);
    if (random.one_in(2)) return before + sum_of(seed, levels);  // it is left
    (void)family.sync();
    return before + sum_of(seed, levels);  // of the whole program, as if it had run
  }
  plus.write(100);
  if (random.one_in(2)) (void)sum.read();
  EXPECT_EQ(family.sync().reason, ExitReason::done);
  EXPECT_EQ(std::accumulate(marks.begin(), marks.end(), std::uint64_t{0}),
            marks.empty() ? 0 : range.count());
  return sum.read();
}
void random_threads(Index i, svp::In<std::uint64_t> seed, svp::In<int> levels,
                    svp::InOutArray<std::uint32_t> marks, svp::Global<std::int64_t>& plus,
                    svp::SharedEnd<std::int64_t>& sum) {
  const Alive here;
  if (!marks.empty()) ++marks[marks.size() - 1 - static_cast<std::size_t>(i)];
  const std::int64_t before = sum.read() + i + plus.read();
  sum.write(levels == 0
                ? before
                : random_family(*seed * 31 + static_cast<std::uint64_t>(i), *levels - 1, before));
}

TEST_F(ChipFamilies, OfRandomProgramsEndAndLeaveNothing) {
  constexpr std::uint64_t programs = 100;
  const std::uint64_t first = svp::testing::first_seed_of_today();
  std::printf("random programs: seeds from %llu\n", static_cast<unsigned long long>(first));
  for (std::uint64_t seed = first; seed < first + programs && !HasFailure(); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const std::uint64_t number = Random(seed).next();
    run([&](ChipSite&) { EXPECT_EQ(random_family(number, 2, 3), 3 + sum_of(number, 2)); });
  }
}

}  // namespace
}  // namespace tombolo::experiments
