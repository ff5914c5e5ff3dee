// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls that change the user that the program runs for. Under Pthreads they do so for
// all threads; here they would for one process, and leave the others with rights that the program
// has given up. So they are refused by name once there are several.
#include <grp.h>
#include <unistd.h>

#include <cerrno>

#include "pthreads/calls/calls.h"

using tombolo::dsm::refuse;
using tombolo::dsm::ThreadedProgram;

namespace {

template <class Call>
int for_all(const char* name, Call&& call) {
  ThreadedProgram* const program = ThreadedProgram::here();
  if (program == nullptr || !program->has_processes()) return call();
  errno = refuse(name,
                 "after the first pthread_create, and between hosts, the rights of one process "
                 "only would change");
  return -1;
}

}  // namespace

TOMBOLO_PTHREAD_CALL int setuid(uid_t user) noexcept {
  return for_all("setuid", [=] { return TOMBOLO_HOST(setuid)(user); });
}
TOMBOLO_PTHREAD_CALL int setgid(gid_t group) noexcept {
  return for_all("setgid", [=] { return TOMBOLO_HOST(setgid)(group); });
}
TOMBOLO_PTHREAD_CALL int seteuid(uid_t user) noexcept {
  return for_all("seteuid", [=] { return TOMBOLO_HOST(seteuid)(user); });
}
TOMBOLO_PTHREAD_CALL int setegid(gid_t group) noexcept {
  return for_all("setegid", [=] { return TOMBOLO_HOST(setegid)(group); });
}
TOMBOLO_PTHREAD_CALL int setreuid(uid_t real, uid_t effective) noexcept {
  return for_all("setreuid", [=] { return TOMBOLO_HOST(setreuid)(real, effective); });
}
TOMBOLO_PTHREAD_CALL int setregid(gid_t real, gid_t effective) noexcept {
  return for_all("setregid", [=] { return TOMBOLO_HOST(setregid)(real, effective); });
}
TOMBOLO_PTHREAD_CALL int setresuid(uid_t real, uid_t effective, uid_t saved) noexcept {
  return for_all("setresuid", [=] { return TOMBOLO_HOST(setresuid)(real, effective, saved); });
}
TOMBOLO_PTHREAD_CALL int setresgid(gid_t real, gid_t effective, gid_t saved) noexcept {
  return for_all("setresgid", [=] { return TOMBOLO_HOST(setresgid)(real, effective, saved); });
}
TOMBOLO_PTHREAD_CALL int setgroups(std::size_t count, const gid_t* groups) noexcept {
  return for_all("setgroups", [=] { return TOMBOLO_HOST(setgroups)(count, groups); });
}
TOMBOLO_PTHREAD_CALL int initgroups(const char* user, gid_t group) {
  return for_all("initgroups", [=] { return TOMBOLO_HOST(initgroups)(user, group); });
}
