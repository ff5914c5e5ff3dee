// SPDX-License-Identifier: Apache-2.0
// Purpose: families of simulated cores beside their data: channels, kills, breaks, errors, and
// families of families; each ends once, and leaves nothing. Random programs of these have the seeds
// of the day (svp/testing/random_choices.h).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.h"
#include "experiments/common/measure.h"
#include "experiments/common/testing.h"
#include "experiments/svp/chip_sites.h"
#include "svp/svp.h"
#include "svp/testing/random_choices.h"

namespace tombolo::experiments {
namespace {

using svp::Carriage;
using svp::ExitReason;
using svp::Index;
using svp::remote;

constexpr std::uint32_t sites = 4;

// Of the threads of a test, which one thread of the system simulates.
int alive = 0;  // NOLINT: of a test
int begun = 0;  // NOLINT: of a test
struct Alive {
  Alive() { ++alive; }
  ~Alive() { --alive; }
};

class ChipFamilies : public ::testing::Test {
 protected:
  void run(const std::function<void(ChipSite&)>& creator) {
    const Status status = ended(creator, ChipSites::families_at_a_time);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  static Status ended(const std::function<void(ChipSite&)>& creator, std::uint32_t families) {
    alive = begun = 0;
    const Context context = test_context();
    simulator::Options options = options_of(context);
    options.time_limit = simulator::Time::after_start(simulator::Duration::milliseconds(200));
    scc::Chip chip(context.chip, options);
    const simulator::RunResult result = ChipSites(chip, sites, {}, families).run(creator);
    EXPECT_EQ(alive, 0);
    return result.status;
  }
  template <auto f, class... Args>
  static auto created(ChipSite& here, svp::Site site, const svp::Range& range, Args&&... args) {
    return std::make_unique<FamilyOf<svp::Remote<f>>>(here, site, remote<f>, range, Carriage::best,
                                                      std::forward<Args>(args)...);
  }
};

// ---- Channels -----------------------------------------------------------------------------------

void add_up(Index i, svp::In<std::int64_t> by, svp::Global<std::int64_t>& start,
            svp::SharedEnd<std::int64_t>& sum) {
  const Alive here;
  sum.write(sum.read() + by * i + start.read());
}
using AddUp = svp::Remote<&add_up>;

TEST_F(ChipFamilies, HaveChannels) {
  run([](ChipSite& here) {
    for (const Carriage way : {Carriage::best, Carriage::stream, Carriage::direct})
      for (const Index n : {0, 1, 3})
        for (int when = 0; when < 4; ++when) {
          const bool early = (when & 1) != 0;
          svp::Global<std::int64_t> start;
          svp::Shared<std::int64_t> sum;
          if (early) start.write(1000);
          if (early) sum.write(5);
          FamilyOf<AddUp> family(here, 1, AddUp(), {.limit = n}, way, std::int64_t{10}, start, sum);
          if (!early) sum.write(5);
          if (!early) start.write(1000);
          const std::int64_t expected = 5 + 10 * (n * (n - 1) / 2) + 1000 * n;
          if ((when & 2) != 0) {
            EXPECT_EQ(sum.read(), expected);
          }
          EXPECT_EQ(family.sync().reason, ExitReason::done);
          EXPECT_EQ(sum.read(), expected);
        }
  });
}

// More than a core takes at a time, whose values come in the opposite order.
TEST_F(ChipFamilies, ThatBlockKeepBackNoOther) {
  run([](ChipSite& here) {
    constexpr std::size_t families = ChipSites::families_at_a_time + 2;
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
                                                  Carriage::best, *levels - 1, part);
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

// With too few at a time for the depth all wait for ever; the end of the run frees them.
TEST_F(ChipFamilies, ThatAreTooDeepEndWithTheRun) {
  const auto deep = [](ChipSite& here) {
    svp::Shared<std::int64_t> sum(0);
    auto family = created<&add_up_by_others>(here, 1, {.limit = 1}, 8, sum);
    family->sync();
  };
  EXPECT_TRUE(ended(deep, 3).ok());
  const Status status = ended(deep, 2);
  EXPECT_NE(status.message().find("limit"), std::string::npos) << status.message();
}

// ---- Ends ---------------------------------------------------------------------------------------

void reads_for_ever(Index, svp::Global<std::int64_t>& never, svp::SharedEnd<std::int64_t>& end) {
  const Alive here;
  ++begun;
  never.read();
  end.write(1);
}

TEST_F(ChipFamilies, AreKilledWhileTheyBlock) {
  run([](ChipSite& here) {
    svp::Global<std::int64_t> never;
    svp::Shared<std::int64_t> end(0);
    auto family = created<&reads_for_ever>(here, 1, {.limit = 5}, never, end);
    here.wait([] { return begun == 1; }, false);
    family->kill();
    EXPECT_EQ(family->sync().reason, ExitReason::killed);
    EXPECT_THROW((void)end.read(), svp::NoValue);
    EXPECT_EQ(begun, 1);
    svp::Global<std::int64_t> start(1);
    svp::Shared<std::int64_t> sum(0);
    EXPECT_EQ(created<&add_up>(here, 1, {.limit = 2}, std::int64_t{0}, start, sum)->sync().reason,
              ExitReason::done);
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
                                                remote<&reads_for_ever>, {}, Carriage::best, never,
                                                end);
    end.read();  // for ever, too; a sync would be a promise of no write
  }
  using Grows = svp::Remote<&grows>;
  FamilyOf<Grows> one(here, (here.link().self() + 1) % sites, Grows(), {}, Carriage::best,
                      *levels - 1);
  FamilyOf<Grows> other(here, (here.link().self() + 2) % sites, Grows(), {}, Carriage::best,
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
  run([](ChipSite& here) {
    svp::Global<std::int64_t> never;
    svp::Shared<std::int64_t> end(0);
    {
      auto family = created<&reads_for_ever>(here, 3, {}, never, end);
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
  run([](ChipSite& here) {
    const auto ended = [&](int how) {
      begun = 0;
      return created<&ends_early>(here, 1, {.limit = 10}, how)->sync();
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
    for (const int checks : {0, 1, 2}) {
      begun = 0;
      auto family = created<&works_until>(here, 1, {.limit = 1'000'000'000}, checks);
      here.wait([] { return begun != 0; }, false);
      family->kill();
      EXPECT_EQ(family->sync().reason, ExitReason::killed);
      EXPECT_LT(begun, 1000);
    }
  });
}

// ---- Random programs ----------------------------------------------------------------------------

// Families at random cores whose threads have families of their own; the sum is known.
std::int64_t sum_of(std::uint64_t seed, int levels) {
  const auto threads = static_cast<Index>(Random(seed).below(4));
  std::int64_t sum = 0;
  for (Index i = 0; i < threads; ++i)
    sum +=
        i + 100 + (levels == 0 ? 0 : sum_of(seed * 31 + static_cast<std::uint64_t>(i), levels - 1));
  return sum;
}
void random_threads(Index i, svp::In<std::uint64_t> seed, svp::In<int> levels,
                    svp::Global<std::int64_t>& plus, svp::SharedEnd<std::int64_t>& sum);
using RandomThreads = svp::Remote<&random_threads>;

std::int64_t random_family(std::uint64_t seed, int levels, std::int64_t before) {
  const svp::Range range{.limit = static_cast<Index>(Random(seed).below(4))};
  Random random(seed + (std::uint64_t{1} << 40));
  ChipSite& here = ChipSite::here();
  const auto away = 1 + static_cast<svp::Site>(random.below(sites - 1));
  const svp::Site site = (here.link().self() + away) % sites;
  const auto way = static_cast<Carriage>(random.below(std::size(svp::carriage_names)));
  svp::Global<std::int64_t> plus;
  svp::Shared<std::int64_t> sum;
  const bool early = random.one_in(2);
  if (early) sum.write(before);
  FamilyOf<RandomThreads> family(here, site, RandomThreads(), range, way, seed, levels, plus, sum);
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
  return sum.read();
}
void random_threads(Index i, svp::In<std::uint64_t> seed, svp::In<int> levels,
                    svp::Global<std::int64_t>& plus, svp::SharedEnd<std::int64_t>& sum) {
  const Alive here;
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
