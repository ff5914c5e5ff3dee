// SPDX-License-Identifier: Apache-2.0
// Purpose: the processes of one world form the same name for it, and those of another world a
// different one, under each launcher; MPICH's, which is asked, is played by a child.
// Thread safety: -
#include "runtime/host_mpi/world_name.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace tombolo::runtime {
namespace {

class World : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"PMIX_NAMESPACE", "PMIX_RANK", "PMIX_SERVER_TMPDIR", "PMIX_SERVER_URI41",
          "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI2", "PMIX_SERVER_URI21", "PMI_FD",
          "PMI_RANK", "PMI_SIZE", "PMI_SPAWNED", "PMI_PORT", "PMI_ID", "PMI_DEBUG", "MPI_APPNUM",
          "MPI_UNIVERSE_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"})
      unsetenv(name);
  }
  void TearDown() override {
    for (const int end : ends_) close(end);
    for (const pid_t child : children_) waitpid(child, nullptr, 0);
  }

  // Two ends of a socket, as a launcher makes them.
  std::pair<int, int> socket_of_launcher() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ends_.insert(ends_.end(), {ends[0], ends[1]});
    setenv("PMI_FD", std::to_string(ends[0]).c_str(), 1);
    return {ends[0], ends[1]};
  }

  // A child that gives one answer after the other.
  void answer(int end, const std::vector<std::string>& answers) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    children_.push_back(child);
    if (child != 0) return;
    for (const std::string& each : answers) {
      char c = 0;
      while (read(end, &c, 1) == 1 && c != '\n') {
      }
      (void)!write(end, each.data(), each.size());
    }
    _exit(0);
  }

 private:
  std::vector<int> ends_;
  std::vector<pid_t> children_;
};

TEST_F(World, HasNoNameWithoutALauncher) {
  EXPECT_EQ(world_name().name, "");
  setenv("MPI_LOCALNRANKS", "2", 1);
  setenv("PMI_FD", "12345", 1);  // none that is open
  setenv("PMI_RANK", "1", 1);
  EXPECT_EQ(world_name().name, "");
}

TEST_F(World, IsNamedByPmixAlikeAtAllRanks) {
  setenv("PMIX_SERVER_TMPDIR", "/tmp/launcher.1", 1);
  setenv("PMIX_NAMESPACE", "job@1", 1);
  setenv("PMIX_RANK", "0", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "3", 1);
  const WorldName first = world_name();
  setenv("PMIX_RANK", "2", 1);
  const WorldName third = world_name();
  EXPECT_NE(first.name, "");
  EXPECT_EQ(first.name, third.name);
  EXPECT_EQ(first.rank, 0);
  EXPECT_EQ(third.rank, 2);
  EXPECT_EQ(third.here, 3);
  setenv("PMIX_NAMESPACE", "job@2", 1);
  EXPECT_NE(world_name().name, first.name);
}

// Containers that share the network have process numbers, and so namespaces, of their own.
TEST_F(World, OfAnotherServerHasAnotherNameInTheSameNamespace) {
  setenv("PMIX_SERVER_TMPDIR", "/tmp/ompi.7", 1);
  setenv("PMIX_NAMESPACE", "prterun-here-7@1", 1);
  setenv("PMIX_RANK", "0", 1);
  for (const char* variable : {"PMIX_SERVER_URI21", "PMIX_SERVER_URI2", "PMIX_SERVER_URI3",
                               "PMIX_SERVER_URI4", "PMIX_SERVER_URI41"}) {
    setenv(variable, "prterun-here-7@0.0;tcp4://127.0.0.1:40341", 1);
    const std::string one = world_name().name;
    EXPECT_EQ(world_name().name, one);
    setenv(variable, "prterun-here-7@0.0;tcp4://127.0.0.1:40342", 1);
    EXPECT_NE(world_name().name, one) << variable;
    unsetenv(variable);
  }
}

TEST_F(World, IsNamedByMpichsLaunchersKeys) {
  const auto asked = [this](const char* store) {
    answer(socket_of_launcher().second, {"cmd=response_to_init rc=0\n", store});
    return world_name();
  };
  setenv("MPI_LOCALNRANKS", "2", 1);
  setenv("PMI_RANK", "1", 1);
  setenv("PMI_SIZE", "2", 1);
  const WorldName first = asked("cmd=my_kvsname kvsname=kvs_47_0_11_here rc=0\n");
  EXPECT_EQ(first.name, "pmi kvs_47_0_11_here");
  EXPECT_EQ(first.rank, 1);
  EXPECT_EQ(first.here, 2);
  EXPECT_EQ(first.size, 2);
  EXPECT_EQ(first.spawned, 0);
  setenv("PMI_SPAWNED", "1", 1);
  const WorldName spawned = asked("cmd=my_kvsname rc=0 kvsname=kvs_47_1_12_here\n");
  EXPECT_EQ(spawned.name, "pmi kvs_47_1_12_here");
  EXPECT_EQ(spawned.spawned, 2);
  EXPECT_EQ(spawned.launcher, first.launcher);
  EXPECT_NE(asked("cmd=my_kvsname kvsname=kvs_48_0_11_here\n").launcher, first.launcher);
  EXPECT_NE(asked("cmd=my_kvsname kvsname=kvs_47_0_11_there\n").launcher, first.launcher);
  EXPECT_EQ(asked("cmd=my_kvsname kvsname=another\n").launcher, "");
  EXPECT_EQ(asked("cmd=my_kvsname rc=1\n").name, "");
}

// A key that is not there, as Hydra of MPICH 5 and of MPICH 4 answers.
TEST_F(World, HasKeysInTheLaunchersStore) {
  answer(socket_of_launcher().second,
         {"cmd=response_to_init rc=0\n", "cmd=my_kvsname rc=0 kvsname=kvs_47_0_11_here\n",
          "cmd=put_result rc=0\n", "cmd=put_result rc=-1 msg=duplicate_key\n",
          "cmd=get_result rc=0 value=1\n", "cmd=get_result rc=1\n",
          "cmd=get_result rc=-1 msg=key_1_not_found value=unknown\n"});
  setenv("MPI_LOCALNRANKS", "2", 1);
  setenv("PMI_RANK", "1", 1);
  setenv("PMI_SIZE", "4", 1);
  const WorldName world = world_name();
  EXPECT_EQ(world.size, 4);
  EXPECT_TRUE(world.keys.put("first"));
  EXPECT_FALSE(world.keys.put("first"));
  EXPECT_TRUE(world.keys.has("first"));
  EXPECT_FALSE(world.keys.has("second"));
  EXPECT_FALSE(world.keys.has("second"));
}

TEST_F(World, IsNamedByTheStoreOfALauncherThatForksAll) {
  answer(socket_of_launcher().second,
         {"cmd=response_to_init rc=0\n", "cmd=my_kvsname kvsname=kvs_47_0\n"});
  for (const char* variable : {"PMI_DEBUG", "MPI_APPNUM", "PMI_RANK"}) setenv(variable, "0", 1);
  setenv("PMI_SIZE", "3", 1);
  setenv("MPI_UNIVERSE_SIZE", "-1", 1);
  const WorldName world = world_name();
  EXPECT_TRUE(world.name.starts_with("pmi kvs_47_0 pid:[")) << world.name;
  EXPECT_EQ(world.here, 3);
  EXPECT_EQ(world.launcher, "");
}

TEST_F(World, IsNamedByThePortOfMpichsLauncher) {
  setenv("PMI_PORT", "here:35035", 1);
  setenv("PMI_ID", "1", 1);
  EXPECT_EQ(world_name().name, "") << "another launcher";
  setenv("MPI_LOCALNRANKS", "2", 1);
  EXPECT_EQ(world_name().name, "pmi at here:35035");
  EXPECT_EQ(world_name().rank, 1);
  EXPECT_EQ(world_name().here, 2);
}

TEST_F(World, HasNoNameUnderAnotherLauncherWithASocket) {
  socket_of_launcher();
  setenv("PMI_RANK", "0", 1);
  EXPECT_EQ(world_name().name, "");
}

}  // namespace
}  // namespace tombolo::runtime
