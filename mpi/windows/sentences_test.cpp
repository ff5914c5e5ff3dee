// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/sentences.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

namespace tombolo::mpi {
namespace {

using machine::Loss;
using machine::LossFact;

TEST(Sentences, NameBothCallsTheBytesAndHowOften) {
  const LossFact fact{.loss = Loss::lost_update,
                      .culprit = {0, 5},
                      .victim = {1, 6},
                      .home = 0,
                      .begin = 8,
                      .end = 59,
                      .bytes = 491,
                      .times = 32,
                      .evicted = 1};
  EXPECT_EQ(
      sentence(fact, "a.c:36", "a.c:44"),
      "lost update: 491 bytes that rank 1 at a.c:44 wrote were overwritten with old values when "
      "rank 0 at a.c:36 wrote back its cache line; 32 times, once by eviction; bytes 8 to 58 "
      "of rank 0's memory, and others");
}

TEST(Sentences, LeaveOutWhatIsNotKnown) {
  const LossFact fact{.loss = Loss::broken_no_put, .culprit = {3, 0}, .times = 1};
  EXPECT_EQ(
      sentence(fact, "", ""),
      "broken promise: MPI_MODE_NOPUT was said for the epoch that ends in rank 3, but another "
      "process wrote bytes to that memory, which its owner does not see; once");
}

TEST(Sentences, AReportHasALineForEachFact) {
  const LossFact fact{.loss = Loss::late,
                      .culprit = {2, 0},
                      .victim = {1, 0},
                      .home = 2,
                      .begin = 0,
                      .end = 8,
                      .bytes = 8,
                      .times = 1};
  EXPECT_EQ(report({.name = "forest", .size = 3}, {fact}),
            "tombolo: stale: window \"forest\" of 3 processes:\n"
            "tombolo:   note, no mistake: 8 bytes that rank 1 wrote came to the memory of rank 2 "
            "only when the window was freed, since it neither locked nor synchronized its window "
            "after them; once; bytes 0 to 7 of rank 2's memory\n");
}

TEST(Sentences, TheCommandIsThisPrograms) {
  const std::string command = command_again(3, 7, 50);
  EXPECT_TRUE(command.starts_with("tombolo run -n 3 --machine stale --seed 7 --evictions 50 "))
      << command;
  EXPECT_NE(command.find("sentences_test"), std::string::npos) << command;
}

class OwnSettings : public testing::Test {
 protected:
  static constexpr std::array<const char*, 5> names = {"TOMBOLO_PASSIVE_SYNC", "TOMBOLO_BACKOFF",
                                                       "TOMBOLO_READER_BIAS", "TOMBOLO_ATOMICS",
                                                       "TOMBOLO_SHARED_NONCONTIG"};
  void TearDown() override {
    for (const char* const name : names) unsetenv(name);
  }
};

TEST_F(OwnSettings, StandInFrontOfTheCommandIfTheyAreSet) {
  for (const char* const name : names) {
    setenv(name, "a b", 1);
    const std::string command = command_again(2, 1, 0);
    EXPECT_TRUE(command.starts_with(std::string(name) + "='a b' tombolo run -n 2 ")) << command;
    setenv(name, "", 1);
    EXPECT_TRUE(command_again(2, 1, 0).starts_with("tombolo run ")) << name << " set to nothing";
  }
}

TEST_F(OwnSettings, StandBesideEachOther) {
  setenv("TOMBOLO_PASSIVE_SYNC", "fifo", 1);
  setenv("TOMBOLO_SHARED_NONCONTIG", "on", 1);
  EXPECT_TRUE(command_again(2, 1, 0).starts_with(
      "TOMBOLO_PASSIVE_SYNC=fifo TOMBOLO_SHARED_NONCONTIG=on tombolo run -n 2 "));
}

}  // namespace
}  // namespace tombolo::mpi
