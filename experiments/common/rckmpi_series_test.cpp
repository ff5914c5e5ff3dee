// SPDX-License-Identifier: Apache-2.0
// Tests that the message passing libraries come out near the papers' figures, and that a point
// gives the same rows each time.
#include "experiments/common/rckmpi_series.h"

#include <gtest/gtest.h>

#include <map>

namespace tombolo::experiments {
namespace {

class Rows final : public Recorder {
 public:
  void row(const Row& row) override { values[row.series] = row.value; }
  void progress(double) override {}
  void cost(const Cost& cost) override { events += cost.events; }

  std::map<std::string, double> values;
  std::uint64_t events = 0;
};

Rows run(std::vector<Point> (*points)(const Context&), const std::string& name, bool quick = true) {
  Context context;
  context.quick = quick;
  EXPECT_TRUE(scc::find_parameters("scc", &context.chip).ok());
  Rows rows;
  for (const Point& point : points(context)) {
    if (point.name != name) continue;
    const Status status = point.run(context, rows);
    EXPECT_TRUE(status.ok()) << status.message();
    return rows;
  }
  ADD_FAILURE() << "there is no point " << name;
  return rows;
}

TEST(RckmpiSeries, WhatThePathLengthsAreDerivedFrom) {
  const Rows message = run(rckmpi_osu_points, "rckmpi-latency-two-sided-1");
  EXPECT_NEAR(message.values.at("latency/rckmpi-two-sided"), 6.4, 0.2);
  const Rows gats = run(rckmpi_gats_points, "rckmpi-10");
  EXPECT_NEAR(gats.values.at("origin/rckmpi"), 89.2, 2);
}

// The contents of the receiver's caches were chosen for these (decision 0013); no number was
// fitted.
TEST(RckmpiSeries, WhatFollows) {
  const Rows put = run(rckmpi_osu_points, "rckmpi-latency-one-sided-1");
  EXPECT_NEAR(put.values.at("latency/rckmpi-one-sided"), 24.8, 0.25 * 24.8);
  const Rows deferred = run(rckmpi_passive_target_points, "shared-rckmpi-48");
  EXPECT_GT(deferred.values.at("shared/rckmpi"), 3.35);
  EXPECT_LT(deferred.values.at("shared/rckmpi"), 1.5 * 3.35);
  // Up to about four times the queue's 16.9.
  const Rows immediate = run(rckmpi_passive_target_points, "exclusive-rckmpi-immediate-48");
  EXPECT_NEAR(immediate.values.at("exclusive/rckmpi-immediate"), 4 * 16.9, 0.25 * 4 * 16.9);
  const Rows large = run(rckmpi_osu_points, "rckmpi-bandwidth-one-sided-262144", false);
  const Rows rendezvous = run(rckmpi_osu_points, "rckmpi-bandwidth-two-sided-262144", false);
  EXPECT_GT(rendezvous.values.at("bandwidth/rckmpi-two-sided"),
            2 * large.values.at("bandwidth/rckmpi-one-sided"));
  // Two-sided messages are quicker than puts (12.1 us here) up to 512 bytes.
  const Rows small = run(rckmpi_osu_points, "rckmpi-latency-two-sided-512", false);
  EXPECT_LT(small.values.at("latency/rckmpi-two-sided"), 12.1);
  // Their latency rises to that of one-sided ones.
  const double two_sided = run(rckmpi_osu_points, "rckmpi-latency-two-sided-16384", false)
                               .values.at("latency/rckmpi-two-sided");
  const double one_sided = run(rckmpi_osu_points, "rckmpi-latency-one-sided-16384", false)
                               .values.at("latency/rckmpi-one-sided");
  EXPECT_NEAR(two_sided, one_sided, 0.25 * one_sided);
  // Both pass 40 MB/s somewhere (000 section 4.1.3).
  for (const char* kind : {"one-sided", "two-sided"}) {
    const Rows rows = run(rckmpi_osu_points, fmt::format("rckmpi-bandwidth-{}-4096", kind), false);
    EXPECT_GT(rows.values.at(fmt::format("bandwidth/rckmpi-{}", kind)), 40) << kind;
  }
}

TEST(RckmpiSeries, PipelinedMessagesAreFaster) {
  const double rcce = run(rcce_memory_points, "message-rcce-131072").values.at("message/rcce");
  const double ircce = run(rcce_memory_points, "message-ircce-131072").values.at("message/ircce");
  EXPECT_NEAR(ircce, 145, 0.25 * 145);
  EXPECT_GT(ircce, 2 * rcce);
}

TEST(RckmpiSeries, APointRepeats) {
  const Rows first = run(rckmpi_passive_target_points, "mixed-rckmpi-immediate-12");
  const Rows second = run(rckmpi_passive_target_points, "mixed-rckmpi-immediate-12");
  EXPECT_EQ(first.values, second.values);
  EXPECT_EQ(first.events, second.events);
}

// ---- Sources of data ----------------------------------------------------------------------------

// 32 puts of 16 KB have a source of 512 KB, which no cache holds; of 1 KB they have 32 KB, which
// the second level does.
TEST(RckmpiSeries, PutsOfAnEpochHaveEachASourceOfTheirOwn) {
  const double cached = run(rckmpi_osu_points, "rckmpi-bandwidth-one-sided-1024", false)
                            .values.at("bandwidth/rckmpi-one-sided");
  const double beyond = run(rckmpi_osu_points, "rckmpi-bandwidth-one-sided-16384", false)
                            .values.at("bandwidth/rckmpi-one-sided");
  EXPECT_LT(beyond, 0.7 * cached);
}

// ---- Mappings of RCCE's data --------------------------------------------------------------------

double mapped(const std::string& mapping, int bytes) {
  return run(rcce_mapping_points, fmt::format("mapped-{}-{}", mapping, bytes), false)
      .values.at("mapped/" + mapping);
}

TEST(RcceMappings, BypassTheSecondLevelAtTheSenderOrAtTheReceiver) {
  // Beyond the second level a source of either kind comes from memory.
  EXPECT_GT(mapped("normal-normal", 65'536), mapped("mpbt-normal", 65'536));
  // Stores of the receiver: by words around the caches, or combined.
  EXPECT_GT(mapped("normal-mpbt", 65'536), 1.5 * mapped("normal-normal", 65'536));
}

// A place of its own for the target, which nothing ever reads, or one that is the source as well.
TEST(RcceMappings, ATargetThatIsNotReadIsSlowerThanOneBufferForBoth) {
  const double one_buffer =
      run(rcce_memory_points, "message-rcce-4096", false).values.at("message/rcce");
  EXPECT_LT(mapped("normal-normal", 4096), 0.8 * one_buffer);
}

}  // namespace
}  // namespace tombolo::experiments
