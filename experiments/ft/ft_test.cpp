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

}  // namespace
}  // namespace tombolo::experiments
