// SPDX-License-Identifier: Apache-2.0
// Purpose: tests how the launchers of MPIs are understood.
// Thread safety: -
#include "runtime/host_mpi/launched.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tombolo::runtime {
namespace {

class Launched : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"PMI_SIZE", "PMI_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
                             "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"})
      unsetenv(name);
  }
};

TEST_F(Launched, NoLauncherMeansOneProcess) {
  EXPECT_EQ(processes_of_mpi_job(), 1);
  EXPECT_EQ(rank_in_mpi_job(), 0);
  EXPECT_EQ(tasks_of_srun(), 1);
}

TEST_F(Launched, EachLauncherIsUnderstood) {
  setenv("SLURM_STEP_NUM_TASKS", "7", 1);
  setenv("SLURM_PROCID", "6", 1);
  EXPECT_EQ(processes_of_mpi_job(), 7);
  EXPECT_EQ(rank_in_mpi_job(), 6);
  EXPECT_EQ(tasks_of_srun(), 7);
  setenv("OMPI_COMM_WORLD_SIZE", "5", 1);
  setenv("OMPI_COMM_WORLD_RANK", "4", 1);
  EXPECT_EQ(processes_of_mpi_job(), 5);
  EXPECT_EQ(rank_in_mpi_job(), 4);
  setenv("PMI_SIZE", "3", 1);
  setenv("PMI_RANK", "2", 1);
  EXPECT_EQ(processes_of_mpi_job(), 3);
  EXPECT_EQ(rank_in_mpi_job(), 2);
}

TEST_F(Launched, TextThatIsNoNumberOfProcessesSaysNothing) {
  for (const char* text : {"", "many", "-3", "99999999999"}) {
    setenv("PMI_SIZE", text, 1);
    EXPECT_EQ(processes_of_mpi_job(), 1) << text;
  }
}

}  // namespace
}  // namespace tombolo::runtime
