// SPDX-License-Identifier: Apache-2.0
// The loop of lock and unlock: its samples, and the effect of back-off in each mix.
#include "experiments/passive_target/passive_target.h"

#include <map>
#include <set>

#include "experiments/common/measure.h"
#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

constexpr int pairs = 30;
constexpr std::uint32_t processes = 12;

std::vector<double> times(const LockScheme& scheme, unsigned exclusive_percent,
                          std::uint64_t seed = 1) {
  Context context = test_context();
  context.seed = seed;
  NoRows rows;
  std::vector<double> all;
  const Status status =
      measure_locks(context, rows, processes, pairs, {"mix", exclusive_percent}, scheme, &all);
  EXPECT_TRUE(status.ok()) << scheme.name << ": " << status.message();
  return all;
}

double median(const LockScheme& scheme, unsigned exclusive_percent) {
  return quartiles(times(scheme, exclusive_percent)).median;
}

std::vector<LockScheme> all_schemes() {
  return {gbh(),    gbh_with_backoff(), gbh_with_backoff_as_printed(),
          mcs_wp(), our_best_effort(),  our_writer_preference()};
}

TEST(PassiveTarget, HasASampleForEachPairOfEachProcess) {
  for (const LockScheme& scheme : all_schemes())
    for (const LockMix& mix : lock_mixes()) {
      const std::vector<double> found = times(scheme, mix.exclusive_percent);
      EXPECT_EQ(found.size(), std::size_t{processes} * pairs) << scheme.name << " " << mix.name;
      // Two calls of the library take more than a microsecond.
      EXPECT_GT(*std::min_element(found.begin(), found.end()), 1.0) << scheme.name;
    }
}

TEST(PassiveTarget, RepeatsItselfAndFollowsItsSeed) {
  EXPECT_EQ(times(mcs_wp(), 50, 3), times(mcs_wp(), 50, 3));
  EXPECT_NE(times(mcs_wp(), 50, 3), times(mcs_wp(), 50, 4));
}

TEST(PassiveTarget, NeedsNoBackOffWhereAllShare) {
  const std::vector<double> without = times(gbh(), 0);
  EXPECT_EQ(times(gbh_with_backoff(), 0), without);
  EXPECT_EQ(times(gbh_with_backoff_as_printed(), 0), without);
}

TEST(PassiveTarget, WaitsAtTheRegisterOfTheGlobalCounterUnlessItPauses) {
  const double paused = median(gbh_with_backoff(), 100);
  EXPECT_GT(median(gbh(), 100), 1.5 * paused);
  EXPECT_GT(median(gbh_with_backoff_as_printed(), 100), 1.5 * paused);
}

TEST(PassiveTarget, ExclusiveLocksTakeLongerThanSharedOnes) {
  for (const LockScheme& scheme : {gbh(), gbh_with_backoff_as_printed()})
    EXPECT_GT(median(scheme, 100), 1.5 * median(scheme, 0)) << scheme.name;
}

TEST(PassiveTarget, ThatDoesNotFitTheChipFails) {
  NoRows rows;
  std::vector<double> none;
  const Status status = measure_locks(test_context(), rows, 49, 1, {"shared", 0}, gbh(), &none);
  EXPECT_EQ(status.code(), Code::bad_configuration);
  EXPECT_TRUE(none.empty());
}

TEST(PassiveTarget, HasPointsForTheCoresThereAre) {
  Context context = test_context();
  context.quick = false;
  std::size_t largest = 0;
  for (const Point& point : passive_target().points(context))
    largest += point.name.ends_with("-48") ? 1 : 0;
  // Six schemes and both kinds of messages, in three mixes, and four with busy banks.
  EXPECT_EQ(largest, 3u * (6 + 2) + 4);
}

// The row of a point against the samples of the same run.
TEST(PassiveTargetRows, AreOfTheirSchemeAndMix) {
  constexpr int quick_pairs = 40;
  const Context context = test_context();
  for (const LockScheme& scheme : {gbh_with_backoff(), mcs_wp()})
    for (const LockMix& mix : lock_mixes()) {
      Rows rows;
      rows.measure(passive_target(), fmt::format("{}-{}-4", mix.name, scheme.name), context);
      NoRows none;
      std::vector<double> all;
      ASSERT_TRUE(measure_locks(context, none, 4, quick_pairs, mix, scheme, &all).ok());
      const Row& row = rows.at(mix.name + "/" + scheme.name, "4");
      const Quartiles q = quartiles(all);
      EXPECT_EQ(row.value, q.median) << scheme.name << " " << mix.name;
      EXPECT_EQ(row.quartile1, q.first);
      EXPECT_EQ(row.quartile3, q.third);
      EXPECT_EQ(row.unit, "us");
    }
}

// The same locks on a chip whose banks are busy for 100 ns.
TEST(PassiveTargetRows, OfBusyBanksAreOfAnotherChip) {
  constexpr int quick_pairs = 40;
  Context context = test_context();
  context.chip.path.bank_busy_memory_cycles = 1;  // another one takes its place
  Rows rows;
  rows.measure(passive_target(), "busy-banks-mixed-mcs-wp-48", context);
  context.chip.path.bank_busy_memory_cycles = 80;  // of 800 MHz
  NoRows none;
  std::vector<double> all;
  ASSERT_TRUE(measure_locks(context, none, 48, quick_pairs, lock_mixes()[1], mcs_wp(), &all).ok());
  EXPECT_EQ(rows.value("busy-banks/mixed/mcs-wp", "48"), quartiles(all).median);
}

TEST(PassiveTargetRows, OfSharesThatThePaperMeasured) {
  ASSERT_EQ(lock_mixes().size(), 3u);
  std::map<std::string, std::uint32_t> shares;
  for (const LockMix& mix : lock_mixes()) shares[mix.name] = mix.exclusive_percent;
  EXPECT_EQ(shares, (std::map<std::string, std::uint32_t>{
                        {"exclusive", 100}, {"mixed", 50}, {"shared", 0}}));
}

TEST(PassiveTargetPoints, HaveThePapersNumbersOfProcesses) {
  Context context = test_context();
  context.quick = false;
  std::set<std::string> all;
  for (const Point& point : passive_target().points(context)) all.insert(point.name);
  const int counts[] = {2, 4, 6, 8, 12, 16, 24, 32, 40, 48};
  std::size_t count = 0;
  for (const char* mix : {"shared", "mixed", "exclusive"})
    for (const char* scheme :
         {"gbh", "gbh-back-off", "gbh-back-off-as-printed", "mcs-wp", "tombolo-best-effort",
          "tombolo-writer-preference", "rckmpi", "rckmpi-immediate"})
      for (const int n : counts) {
        EXPECT_TRUE(all.contains(fmt::format("{}-{}-{}", mix, scheme, n)))
            << mix << " " << scheme << " " << n;
        ++count;
      }
  for (const char* name :
       {"shared-mcs-wp-6", "shared-mcs-wp-8", "shared-mcs-wp-24", "shared-mcs-wp-32",
        "shared-mcs-wp-48", "mixed-mcs-wp-48", "exclusive-mcs-wp-48", "shared-gbh-48"}) {
    EXPECT_TRUE(all.contains(fmt::format("busy-banks-{}", name))) << name;
    ++count;
  }
  EXPECT_EQ(all.size(), count);
}

// Half of the locks of the mix are exclusive: by chance, and more or fewer with another share.
TEST(PassiveTarget, TakesLongerTheMoreLocksAreExclusive) {
  double before = 0;
  for (const unsigned share : {0u, 50u, 100u}) {
    std::vector<double> all = times(gbh(), share);
    double sum = 0;
    for (const double each : all) sum += each;
    EXPECT_GT(sum, before) << share;
    before = sum;
  }
}

}  // namespace
}  // namespace tombolo::experiments
