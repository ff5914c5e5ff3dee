// SPDX-License-Identifier: Apache-2.0
// Purpose: servers that are forked from the first process when a thread wants one, on its host.
// Thread safety: as ServerTeam.
#pragma once

#include <memory>

#include "pthreads/program/server_team.h"
#include "runtime/processes/forked_team.h"

namespace tombolo::dsm {

class ForkedServers final : public ServerTeam {
 public:
  // As ForkedTeam::start(): this object is there in all that are forked.
  Status start(runtime::ForkedTeamPlan plan) {
    return runtime::ForkedTeam::start(std::move(plan), team_);
  }

  Status add(Thread server) override { return team_->add(static_cast<int>(server)); }
  int signal(Thread server, int number) override;
  void wake_up(Thread server) override;
  void ask_exit(int status) override { team_->ask_exit(status); }
  int asked_status() const override { return team_->asked_status(); }
  bool asked_at_once() const override { return team_->asked_at_once(); }
  void end() override { team_->end(); }
  void leave() override {}  // the keeper ends it

 private:
  pid_t process(Thread server) const {
    return server == 0 ? team_->starter() : team_->process(static_cast<int>(server));
  }

  std::unique_ptr<runtime::ForkedTeam> team_;
};

}  // namespace tombolo::dsm
