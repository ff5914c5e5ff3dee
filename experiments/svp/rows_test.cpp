// SPDX-License-Identifier: Apache-2.0
// The rows of the experiments with SVP's families: those of a run, under the names that the figures
// have, at the sizes and numbers of workers of 002.
#include <gtest/gtest.h>

#include <set>

#include "experiments/common/measure.h"
#include "experiments/common/testing.h"
#include "experiments/svp/matrix.h"
#include "experiments/svp/ping_pong.h"

namespace tombolo::experiments {
namespace {

std::set<std::string> names(const Experiment& experiment, bool quick) {
  Context context = test_context();
  context.quick = quick;
  std::set<std::string> all;
  for (const Point& point : experiment.points(context)) all.insert(point.name);
  return all;
}

double share(simulator::Duration of, simulator::Duration all) {
  return static_cast<double>(of.in_ticks()) / static_cast<double>(all.in_ticks());
}

// ---- Ping-pong ----------------------------------------------------------------------------------

TEST(PingPongRows, AreTheShortestOfARun) {
  const Context context = test_context();
  Rows rows;
  rows.measure(svp_ping_pong(), "direct-small", context);
  for (const std::uint64_t bytes : {4u, 1024u, 65'536u}) {
    PingPongResult result;
    ASSERT_TRUE(
        ping_pong(context, {.scheme = Scheme::direct, .bytes = bytes, .times = 2}, &result).ok());
    const Row& row = rows.at("direct", fmt::format("{}", bytes));
    EXPECT_DOUBLE_EQ(row.value, microseconds(result.shortest)) << bytes;
    EXPECT_EQ(row.unit, "us");
    EXPECT_EQ(row.note, "shortest of 2, not of 10");
  }
}

TEST(PingPongRows, GoFromFourBytesTo32Megabytes) {
  const std::set<std::string> all = names(svp_ping_pong(), false);
  for (const Scheme scheme : all_schemes) {
    EXPECT_TRUE(all.contains(name_of(scheme) + "-small")) << name_of(scheme);
    EXPECT_TRUE(all.contains(name_of(scheme) + "-131072")) << name_of(scheme);
    EXPECT_TRUE(all.contains(name_of(scheme) + "-33554432")) << name_of(scheme);
  }
  // From 128 KB to 32 MB by doubling, and one point for all below.
  EXPECT_EQ(all.size(), std::size(all_schemes) * (9 + 1));
}

TEST(PingPongRows, HaveNoRemappingBelow64Bytes) {
  Rows rows;
  rows.measure(svp_ping_pong(), "remapping-small", test_context());
  EXPECT_EQ(rows.by_place.count({"remapping", "4"}), 0u);
  EXPECT_EQ(rows.by_place.count({"remapping", "16"}), 0u);
  EXPECT_EQ(rows.by_place.count({"remapping", "64"}), 1u);
  EXPECT_EQ(rows.by_place.count({"remapping", "65536"}), 1u);
  PingPongResult result;
  ASSERT_TRUE(
      ping_pong(test_context(), {.scheme = Scheme::remapping, .bytes = 64, .times = 2}, &result)
          .ok());
  EXPECT_DOUBLE_EQ(rows.value("flushing/remapping", "64"),
                   share(result.meanwhile.flushing, result.shortest));
  EXPECT_DOUBLE_EQ(rows.value("mapping/remapping", "64"),
                   share(result.meanwhile.mapping, result.shortest));
}

TEST(PingPong, CountsEachIntegerThatComesBackWrong) {
  // The reader maps memory that its owner has not flushed: all but the first round is old.
  PingPong what{.scheme = Scheme::remapping, .bytes = 64, .times = 1};
  what.change = true;
  what.care.publish = false;
  PingPongResult result;
  ASSERT_TRUE(ping_pong(test_context(), what, &result).ok());
  EXPECT_GT(result.wrong_words, 0u);
  EXPECT_LE(result.wrong_words, 2u * 16);
}

TEST(PingPong, ThatDoesNotFitTheChipIsRefused) {
  Context context = test_context();
  context.chip.layout.mpb_bytes_per_tile = 8192;
  PingPongResult result;
  const Status status = ping_pong(context, {.scheme = Scheme::direct, .bytes = 64}, &result);
  EXPECT_EQ(status.code(), Code::bad_configuration) << status.message();
}

// ---- Matrices -----------------------------------------------------------------------------------

TEST(MatrixRows, AreOfTheirRun) {
  const Context context = test_context();
  Rows rows;
  rows.measure(svp_matrix(), "direct-128-8", context);
  MatrixResult result;
  ASSERT_TRUE(
      multiply_matrices(context, {.scheme = Scheme::direct, .size = 128, .workers = 8}, &result)
          .ok());
  EXPECT_TRUE(result.right);
  EXPECT_DOUBLE_EQ(rows.value("direct/128", "8"), result.took.in_nanoseconds() * 1e-9);
  EXPECT_EQ(rows.at("direct/128", "8").unit, "s");
  EXPECT_DOUBLE_EQ(rows.value("memory/direct/128", "8"),
                   static_cast<double>(result.most_bytes_used) / (1 << 20));
  EXPECT_EQ(rows.value("finished/direct/128", "8"), 1);
  EXPECT_EQ(result.worker_cores, 8u);
  EXPECT_DOUBLE_EQ(rows.value("in-functions/direct/128", "8"),
                   share(result.workers.running, result.took) / 8);
}

TEST(MatrixRows, OfTwoStepsHaveTheIdleTimesAndTheBytes) {
  const Context context = test_context();
  Rows rows;
  rows.measure(svp_matrix_two_steps(), "direct-256-20", context);
  MatrixResult result;
  const MatrixRun what{.scheme = Scheme::direct, .size = 256, .steps = 2, .workers = 20};
  ASSERT_TRUE(multiply_matrices(context, what, &result).ok());
  EXPECT_EQ(result.worker_cores, 20u);
  EXPECT_DOUBLE_EQ(rows.value("master-idle/direct/256", "20"),
                   share(result.master.idle, result.took));
  const double idle = rows.value("workers-idle/direct/256", "20");
  EXPECT_DOUBLE_EQ(idle, share(result.workers.idle, result.took) / 20);
  EXPECT_GT(idle, 0.5);
  EXPECT_LT(idle, 1);
  // 64 products, each two operands there and a result back.
  const double elements = 64 * 3 * 64 * 64;
  EXPECT_DOUBLE_EQ(rows.value("sent/direct/256", "20"), elements * 8 / (1 << 20));
  const double creating = rows.value("creating/direct/256", "20");
  EXPECT_DOUBLE_EQ(creating, result.distributing.in_nanoseconds() * 1e-9);
  EXPECT_GT(creating, 0);
  EXPECT_LT(creating, rows.value("direct/256", "20"));
}

TEST(MatrixRows, OfRemappingHaveTheFlushesOfTheMaster) {
  const Context context = test_context();
  Rows rows;
  rows.measure(svp_matrix(), "remapping-128-1", context);
  const double flushing = rows.value("flushing/remapping/128", "1");
  // One for each row of each operand, 1.6 ms each (Table 2.2).
  const double flushes = 8 * 2 * 64;
  EXPECT_NEAR(flushing * rows.value("remapping/128", "1") / flushes, 1.66e-3, 0.1e-3);
}

TEST(MatrixRows, HaveThePapersSizesAndWorkers) {
  const std::set<std::string> one = names(svp_matrix(), false);
  for (const char* size : {"128", "256", "512", "1024"})
    for (const char* scheme : {"original", "direct", "remapping"})
      for (const char* workers : {"1", "8"})
        EXPECT_TRUE(one.contains(fmt::format("{}-{}-{}", scheme, size, workers)));
  const std::set<std::string> two = names(svp_matrix_two_steps(), false);
  for (const char* name : {"original-1024-8", "original-1024-47", "direct-1024-20",
                           "direct-1024-47", "remapping-1024-20", "original-2048-20",
                           "direct-2048-20", "remapping-2048-20", "distributed-direct-2048-8"})
    EXPECT_TRUE(two.contains(name)) << name;
  EXPECT_EQ(two.count("direct-1024-48"), 0u);  // the master is one of the 48 cores
}

TEST(MatrixRows, AreOfTheSmallestSizeWhereTimeIsShort) {
  for (const std::string& name : names(svp_matrix_two_steps(), true))
    EXPECT_NE(name.find("-256-"), std::string::npos) << name;
  for (const std::string& name : names(svp_matrix(), true))
    EXPECT_TRUE(name.ends_with("-1") || name.ends_with("-8")) << name;
}

// A chip without room for the worker-masters and theirs has no such points.
TEST(MatrixRows, NeedTheCoresThatTheyName) {
  Context context = test_context();
  context.quick = false;
  context.chip.layout.mesh_columns = 3;
  ASSERT_LT(context.chip.cores(), 48u);
  for (const Point& point : svp_matrix_two_steps().points(context)) {
    const auto workers = std::stoul(point.name.substr(point.name.rfind('-') + 1));
    EXPECT_LT(workers, context.chip.cores()) << point.name;
  }
}

}  // namespace
}  // namespace tombolo::experiments
