// SPDX-License-Identifier: Apache-2.0
#include "runtime/processes/processes_here.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tombolo::runtime {
namespace {

constexpr const char* launchers[] = {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                     "SLURM_NTASKS_PER_NODE"};
constexpr const char* step[] = {"SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID"};

class ProcessesHere : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* launcher : launchers) unsetenv(launcher);
    for (const char* each : step) unsetenv(each);
  }
  void TearDown() override { SetUp(); }
};

TEST_F(ProcessesHere, AreAsManyAsEachLauncherSays) {
  EXPECT_EQ(processes_here(), 1u);
  for (const char* launcher : launchers) {
    setenv(launcher, "12", 1);
    EXPECT_EQ(processes_here(), 12u) << launcher;
    unsetenv(launcher);
  }
}

TEST_F(ProcessesHere, AreSaidByTheInnermostLauncher) {
  // A job of Slurm in which a program is started by another launcher has the variables of both.
  setenv("SLURM_NTASKS_PER_NODE", "48", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4", 1);
  EXPECT_EQ(processes_here(), 4u);
  setenv("MPI_LOCALNRANKS", "3", 1);
  EXPECT_EQ(processes_here(), 3u);
}

TEST_F(ProcessesHere, AreThoseOfThisNodeInAStepOfSlurm) {
  const auto on = [](const char* node, const char* list) {
    setenv("SLURM_NODEID", node, 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", list, 1);
    return processes_here();
  };
  EXPECT_EQ(on("0", "4(x2),3"), 4u);
  EXPECT_EQ(on("1", "4(x2),3"), 4u);
  EXPECT_EQ(on("2", "4(x2),3"), 3u);
  EXPECT_EQ(on("0", "5"), 5u);
  EXPECT_EQ(on("1", "5,6"), 6u);
  for (const char* list : {"", "4(x2", "4(x)", "4(x0),3", "(x2)", "x", ",", "0(x4)"})
    EXPECT_EQ(on("0", list), 1u) << list;
  EXPECT_EQ(on("3", "4(x2),3"), 1u) << "a node that is not in the list";
  EXPECT_EQ(on("", "5"), 1u) << "no node";
  setenv("SLURM_NTASKS_PER_NODE", "7", 1);
  EXPECT_EQ(on("0", "2"), 2u) << "the step may have fewer than the job's nodes take";
}

TEST_F(ProcessesHere, AreNotTakenFromWhatIsNoSuchNumber) {
  for (const char* text : {"", "0", "-3", "4(x2)", "1000000", "99999999999999999999"}) {
    setenv("MPI_LOCALNRANKS", text, 1);
    EXPECT_EQ(processes_here(), 1u) << text;
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "5", 1);
    EXPECT_EQ(processes_here(), 5u) << text << ": the next launcher is asked";
    unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  }
  setenv("MPI_LOCALNRANKS", "999999", 1);
  EXPECT_EQ(processes_here(), 999'999u);
}

}  // namespace
}  // namespace tombolo::runtime
