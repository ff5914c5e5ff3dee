// SPDX-License-Identifier: Apache-2.0
#include "host/processes/host_identity.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tombolo::host {
namespace {

// A child that waits to be killed.
pid_t sleeper() {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  return child;
}

TEST(Process, LivesUntilItHasEnded) {
  const pid_t child = sleeper();
  const ProcessName name = process_named(child);
  EXPECT_NE(name.started, 0u);
  EXPECT_FALSE(has_ended(name));
  EXPECT_FALSE(has_ended({child, 0})) << "of unknown start";
  kill(child, SIGKILL);
  siginfo_t ended = {};
  waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  EXPECT_TRUE(has_ended(name)) << "not yet reaped";
  EXPECT_FALSE(number_is_free(name));
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(has_ended(name));
  EXPECT_TRUE(number_is_free(name));
}

TEST(Process, OfTheSameNumberIsAnotherOneIfItWasStartedLater) {
  ProcessName self = process_named(getpid());
  EXPECT_FALSE(has_ended(self));
  self.started -= 1;
  EXPECT_TRUE(has_ended(self));
}

TEST(Owner, IsGoneOnlyIfThisHostKnows) {
  const pid_t child = sleeper();
  Owner owner{this_host(), process_named(child)};
  EXPECT_FALSE(gone(owner));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(gone(owner));
  Owner elsewhere = owner;
  elsewhere.host.boot[15] ^= 1;
  EXPECT_FALSE(gone(elsewhere)) << "another boot";
  elsewhere = owner;
  elsewhere.host.pid_namespace ^= 1;
  EXPECT_FALSE(gone(elsewhere)) << "another namespace";
  elsewhere.host = {};
  EXPECT_FALSE(gone(elsewhere)) << "an unknown host";
}

TEST(HostIdentity, TellsBootsAndNamespacesApart) {
  const HostIdentity here = this_host();
  EXPECT_EQ(here, this_host());
  EXPECT_EQ(here.digest(), this_host().digest());
  EXPECT_EQ(boot_number(), boot_number(here));
  HostIdentity other = here;
  other.pid_namespace += 1;
  EXPECT_NE(other.digest(), here.digest());
  EXPECT_EQ(boot_number(other), boot_number(here));
  other = here;
  other.boot[0] ^= 1;
  EXPECT_NE(other.digest(), here.digest());
  EXPECT_NE(boot_number(other), boot_number(here));
  EXPECT_NE(boot_number(HostIdentity{}), 0u);
}

}  // namespace
}  // namespace tombolo::host
