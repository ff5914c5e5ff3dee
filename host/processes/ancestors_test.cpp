// SPDX-License-Identifier: Apache-2.0
// Purpose: the programs of the processes that have started a process are found, the parent's first.
#include "host/processes/ancestors.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace tombolo::host {
namespace {

TEST(Ancestors, AreFoundFromTheParentOn) {
  const std::string here = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::size_t above = programs_of_ancestors().size();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto programs = programs_of_ancestors();
    _exit(!programs.empty() && programs.front() == here && programs.size() == above + 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace tombolo::host
