// SPDX-License-Identifier: Apache-2.0
// The distributed transform has the checksums of one process, which has those that were published,
// over windows and over messages; and stale windows have others.
#include "experiments/ft/ft.h"

#include <gtest/gtest.h>

#include "experiments/common/testing.h"
#include "experiments/ft/ft_messages.h"

namespace tombolo::experiments {
namespace {

std::vector<Complex> checksums(FtVariant variant, const FtClass& problem, int iterations) {
  FtResult result;
  NoRows rows;
  const Status status = ft_by_windows(test_context(), rows, variant, problem, iterations, &result);
  EXPECT_TRUE(status.ok()) << status.message();
  return result.checksums;
}

FtResult by_messages(FtMessages messages, const FtClass& problem, int iterations) {
  FtResult result;
  NoRows rows;
  const Status status =
      ft_by_messages(test_context(), rows, messages, problem, iterations, &result);
  EXPECT_TRUE(status.ok()) << status.message();
  return result;
}

const FtClass& small() {
  static const FtClass problem{"small", 32, 16, 16, 3, {}};
  return problem;
}

TEST(FtKernel, OneProcessHasThePublishedChecksums) {
  const FtClass& s = ft_class('S');
  EXPECT_TRUE(ft_equal(ft_serial(s, 2), s.checksums));
}

TEST(FtKernel, AnErrorInTheTwelfthPlaceIsOne) {
  const FtClass& s = ft_class('S');
  std::vector<Complex> off = s.checksums;
  EXPECT_TRUE(ft_equal(off, s.checksums));
  off[3].im *= 1 + 1e-11;
  EXPECT_FALSE(ft_equal(off, s.checksums));
}

TEST(Ft, SaysHowFarItIs) {
  Told told;
  Progress progress(told);
  FtResult result;
  result.progress = &progress;
  ASSERT_TRUE(ft_by_windows(test_context(), told, FtVariant::mpbt_wt, small(), 2, &result).ok());
  told.expect_all();
}

TEST(Ft, IsRightWithOwnWindowsWrittenThrough) {
  const std::vector<Complex> expected = ft_serial(small(), 3);
  EXPECT_TRUE(ft_equal(checksums(FtVariant::mpbt_wt, small(), 3), expected));
  EXPECT_TRUE(ft_equal(checksums(FtVariant::no_erratum, small(), 3), expected));
}

TEST(Ft, IsWrongWithOwnWindowsInAllCaches) {
  const std::vector<Complex> found = checksums(FtVariant::dcm, small(), 2);
  EXPECT_FALSE(ft_equal(found, ft_serial(small(), 2)));
}

TEST(Ft, FiguresHaveThePapersSynchronizationAndNotOurs) {
  FtResult published;
  FtResult ours;
  NoRows rows;
  ASSERT_TRUE(ft_by_windows(test_context(), rows, FtVariant::mpbt_wt, small(), 2, &published).ok());
  ASSERT_TRUE(ft_by_windows(test_context(), rows, scc::Placement(), small(), 2, &ours).ok());
  EXPECT_GT(published.iterations.synchronization, 1.2 * ours.iterations.synchronization);
}

TEST(Ft, ClassSHasThePublishedChecksums) {
  const FtClass& s = ft_class('S');
  EXPECT_TRUE(ft_equal(checksums(FtVariant::no_erratum, s, 1), s.checksums));
}

TEST(FtMessages, AreRight) {
  const std::vector<Complex> expected = ft_serial(small(), 3);
  for (const FtMessages messages : {FtMessages::two_sided, FtMessages::one_sided})
    EXPECT_TRUE(ft_equal(by_messages(messages, small(), 3).checksums, expected));
}

// 000 Table 4.1: 15,360 messages of 39 MB in 6 iterations of class S. The exchanges before the
// first iteration do not count.
TEST(FtMessages, ClassSHasThePapersNumberOfMessages) {
  const FtResult result = by_messages(FtMessages::two_sided, ft_class('S'), 1);
  EXPECT_EQ(result.messages, 15'360u / 6);
  EXPECT_NEAR(double(result.message_bytes) / (1 << 20), 39.0 / 6, 0.01);
}

// 000 Figure B.2: data go within the rows of 8 processes and the columns of 4, and come from all of
// them alike.
TEST(FtMessages, GoWithinRowsAndColumnsOfTheGrid) {
  for (const FtMessages messages : {FtMessages::two_sided, FtMessages::one_sided}) {
    const FtResult result = by_messages(messages, small(), 1);
    ASSERT_EQ(result.received.size(), ft_processes);
    const std::uint64_t local = small().points() / ft_processes * sizeof(Complex);
    for (std::size_t to = 0; to < ft_processes; ++to)
      for (std::size_t from = 0; from < ft_processes; ++from) {
        const bool in_row = to / 8 == from / 8;
        const bool in_column = to % 8 == from % 8;
        // Two transforms: that before the iteration, and the iteration's.
        const std::uint64_t expected = to == from  ? 0
                                       : in_row    ? 2 * local / 8
                                       : in_column ? 2 * local / 4
                                                   : 0;
        EXPECT_EQ(result.received[to][from], expected) << from << " to " << to;
      }
  }
}

TEST(FtMessages, WindowsBringNone) {
  FtResult result;
  NoRows rows;
  ASSERT_TRUE(ft_by_windows(test_context(), rows, FtVariant::mpbt_wt, small(), 1, &result).ok());
  EXPECT_TRUE(result.received.empty());
}

TEST(FtMessages, TakeTheSameTimeAgain) {
  for (const FtMessages messages : {FtMessages::two_sided, FtMessages::one_sided}) {
    const FtResult first = by_messages(messages, small(), 1);
    const FtResult second = by_messages(messages, small(), 1);
    EXPECT_EQ(first.seconds, second.seconds);
    EXPECT_EQ(first.iterations.sum(), second.iterations.sum());
  }
}

TEST(FtMessages, ClassSHasThePublishedChecksums) {
  const FtClass& s = ft_class('S');
  EXPECT_TRUE(ft_equal(by_messages(FtMessages::two_sided, s, 1).checksums, s.checksums));
}

// ---- Rows ---------------------------------------------------------------------------------------

// Times that differ from each other, of two iterations: the rows are of six.
FtResult made_up() {
  FtResult result;
  result.before = {.fft = 1,
                   .transfer = 2,
                   .synchronization = 3,
                   .transpose = 4,
                   .bookkeeping = 5,
                   .barrier = 6};
  result.iterations = {.fft = 10,
                       .transfer = 20,
                       .synchronization = 40,
                       .transpose = 80,
                       .bookkeeping = 160,
                       .barrier = 320};
  result.seconds_before = 7;
  result.seconds = 9;
  result.messages = 100;
  result.message_bytes = 3 << 20;
  result.checksums = {ft_class('S').checksums[0], ft_class('S').checksums[1]};
  return result;
}

TEST(FtRows, NameEachPartAndScaleIt) {
  Rows rows;
  report_ft(rows, "scosco", ft_class('S'), 2, made_up());
  const auto part = [&](const char* name) {
    const Row& row = rows.at(fmt::format("breakdown/scosco/{}", name), "S");
    EXPECT_EQ(row.unit, "s") << name;
    EXPECT_EQ(row.note, "of 2 iterations, scaled to 6") << name;
    return row.value;
  };
  EXPECT_DOUBLE_EQ(part("fft"), 1 + 3 * 10);
  EXPECT_DOUBLE_EQ(part("communication"), 2 + 3 + 3 * (20 + 40));
  EXPECT_DOUBLE_EQ(part("transpose"), 4 + 3 * 80);
  EXPECT_DOUBLE_EQ(part("bookkeeping"), 5 + 3 * 160);
  EXPECT_DOUBLE_EQ(part("barrier"), 6 + 3 * 320);
  // Synchronization over transfer, in percent.
  const Row& share = rows.at("synchronization/scosco", "S");
  EXPECT_DOUBLE_EQ(share.value, 100.0 * (3 + 3 * 40) / (2 + 3 * 20));
  EXPECT_EQ(share.unit, "%");
}

TEST(FtRows, AreRatesOfAllIterations) {
  Rows rows;
  report_ft(rows, "scosco-dcm", ft_class('S'), 2, made_up());
  const Row& rate = rows.at("mflops/scosco-dcm", "S");
  EXPECT_DOUBLE_EQ(rate.value, ft_operations(ft_class('S'), 6) / (7 + 3 * 2) / 1e6);
  EXPECT_EQ(rate.unit, "MFLOPS");
  EXPECT_EQ(rows.by_place.count({"synchronization/scosco", "S"}), 0u);  // another variant's
}

TEST(FtRows, CountTheMessagesOfTheTwoSidedProgramAlone) {
  Rows two_sided;
  report_ft(two_sided, "rckmpi-two-sided", ft_class('S'), 2, made_up());
  EXPECT_DOUBLE_EQ(two_sided.value("messages", "S"), 300);
  EXPECT_DOUBLE_EQ(two_sided.value("transferred", "S"), 9);
  EXPECT_EQ(two_sided.at("transferred", "S").unit, "MiB");
  Rows one_sided;
  report_ft(one_sided, "rckmpi-one-sided", ft_class('S'), 2, made_up());
  EXPECT_EQ(one_sided.by_place.count({"messages", "S"}), 0u);
}

TEST(FtRows, SayWhetherTheChecksumsAreThePublishedOnes) {
  FtResult result = made_up();
  Rows right;
  report_ft(right, "scosco", ft_class('S'), 2, result);
  EXPECT_EQ(right.value("checksum/scosco", "S"), 1);
  result.checksums[1].re += 1e-3;
  Rows wrong;
  report_ft(wrong, "scosco", ft_class('S'), 2, result);
  EXPECT_EQ(wrong.value("checksum/scosco", "S"), 0);
}

TEST(FtRows, OfAllIterationsAreNotScaled) {
  Rows rows;
  report_ft(rows, "scosco", ft_class('S'), 6, made_up());
  EXPECT_DOUBLE_EQ(rows.value("breakdown/scosco/fft", "S"), 11);
  EXPECT_EQ(rows.at("breakdown/scosco/fft", "S").note, "");
}

TEST(FtPoints, AreOfEachClassAndVariant) {
  Context context = test_context();
  const auto names = [&](const Experiment& experiment, bool quick) {
    context.quick = quick;
    std::vector<std::string> all;
    for (const Point& point : experiment.points(context)) all.push_back(point.name);
    return all;
  };
  EXPECT_EQ(names(ft(), false).size(), 3u * 5);
  EXPECT_EQ(names(ft(), true),
            (std::vector<std::string>{"scosco-S", "scosco-dcm-S", "scosco-no-erratum-S",
                                      "rckmpi-two-sided-S", "rckmpi-one-sided-S"}));
  EXPECT_EQ(names(ft_class_b(), false),
            (std::vector<std::string>{"scosco-B", "scosco-dcm-B", "rckmpi-two-sided-B",
                                      "rckmpi-one-sided-B"}));
  EXPECT_TRUE(names(ft_class_b(), true).empty());
}

// Class B has 128 times the points of class S: so much more of a host's memory, and more than the
// windows of a process, which the chip has to have room for.
TEST(FtPoints, SayThatClassBIsLarge) {
  EXPECT_GT(ft_memory(ft_class('B')), std::uint64_t{5} << 30);
  const std::uint64_t window = ft_bytes_received(ft_class('B'));
  EXPECT_EQ(window, std::uint64_t{2} * 512 * 256 * 256 / 32 * 16);
  const scc::Parameters chip = test_context().chip;
  EXPECT_LE(window, static_cast<std::uint64_t>(chip.layout.public_pages) * chip.page_bytes());
}

}  // namespace
}  // namespace tombolo::experiments
