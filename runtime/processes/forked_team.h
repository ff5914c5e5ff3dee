// SPDX-License-Identifier: Apache-2.0
// Purpose: processes that are forked from this one, as members of a team that ends with it. Between
// them stands the *keeper*, a process that is forked once, runs nothing of the program's, and forks
// the members on demand: so each starts from the state that the program had at start().
//
//   TOMBOLO_TRY(ForkedTeam::start({.most = 4, .naming = name_of, .member = serve}, team));
//   TOMBOLO_TRY(team->add(2));        // in any process of the team: serve(2) runs in a new one
//
// Members share the descriptors and the working directory of the starter.
//
// Invariants: TEM1 no member outlives the starter, however that ends; nor does the keeper.
//             TEM2 a member that is killed ends the starter by the same signal, after one message
//                 that names it; one that calls _exit() ends it with that status.
//             TEM3 the starter's wait() does not see the keeper or a member.
//             TEM4 the starter hears of the end that a member asks for, and of the keeper's, in the
//                  thread that called start(), whatever signals it blocks or waits for.
//             TEM5 a starter that is killed by SIGKILL is named, unless its parent has collected it
//                 before the keeper looks.
//             TEM6 the keeper holds to the rule of host/processes/shared_fork.h as long as it
//                 lives, whatever another thread of the starter held when it was forked.
// Thread safety: one thread at a time in each process. TEM1 holds as long as the thread that called
// start() lives.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "host/segments/segment.h"

namespace tombolo::runtime {

struct ForkedTeamPlan {
  int most = 1;  // members, which have the ranks below it
  // Of a member, by rank, for messages; asked at the start.
  std::function<std::string(int)> naming;
  std::function<void(int)> member;  // by rank; the member leaves the team when it returns
  // In the starter, by a signal's handler: a member ends the program with that status. Null:
  // _exit().
  void (*exit_asked)(int status) = nullptr;
};

class ForkedTeam {
 public:
  ForkedTeam(const ForkedTeam&) = delete;
  ForkedTeam& operator=(const ForkedTeam&) = delete;
  ~ForkedTeam();

  // Forks the keeper. This process has no other team. Errors: no_memory, io.
  static Status start(ForkedTeamPlan plan, std::unique_ptr<ForkedTeam>& out);

  // Starts the member `rank`, which is not there, and returns when its process is. io if the host
  // has no processes left. Distinct ranks may be added by distinct processes at once.
  Status add(int rank);

  // Process numbers: of the starter, and of a member; 0 if it is not there.
  pid_t starter() const { return starter_; }
  pid_t process(int rank) const;

  // In a member: the starter is to end the program with that status. Returns; the member waits for
  // its end by itself.
  void ask_exit(int status);
  // The status that was asked for; -1 if none was.
  int asked_status() const;
  // Not by ask_exit(): a member has called _exit().
  bool asked_at_once() const;

  // In the starter: ends the keeper and all members, and waits until they have.
  void end();

 private:
  struct Page;
  class Keeper;
  ForkedTeam() = default;
  Page& page() const;
  void start_keeper();
  static void on_signal(int signal, siginfo_t* info, void* context);

  ForkedTeamPlan plan_;
  std::vector<std::string> names_;  // of members
  host::Segment segment_;
  pid_t starter_ = 0;
  pid_t starters_thread_ = 0;
};

}  // namespace tombolo::runtime
