// SPDX-License-Identifier: Apache-2.0
// Purpose: a place of another process, and the part of this process that reaches it.
// Thread safety: yes.
#pragma once

#include <optional>
#include <span>

#include "svp/family/family_base.h"
#include "svp/remote/call.h"
#include "svp/remote/change_list.h"
#include "svp/scheduler/remote_poller.h"

namespace tombolo::svp {

struct RemoteRecord {
  Site site = 0;
  std::uint32_t place = 0;  // of that site: 0: its default place, 1: its exclusive one
  Transport transport = Transport::best;
};

// The call of a family that runs in another process. It lies with the family.
struct OpenCall final : ChannelListener {
  explicit OpenCall(FamilyBase& of, std::span<ParentEnd* const> channels = {})
      : family(of), ends(channels) {}
  void channel_changed() noexcept override;

  FamilyBase& family;
  std::span<ParentEnd* const> ends;
  std::optional<Call> call;  // the exchange's, as long as the family is not done
  bool unsent = false;
  ChangeLink<OpenCall> told;
};

// Where families go to other processes and come from them. Its families' tasks are done (as
// Pool::finish_elsewhere) once the completion is here.
class Exchange : public RemotePoller {
 public:
  // Creates the family there. Stops the program if an argument cannot travel so. Throws
  // std::bad_alloc.
  virtual void open(OpenCall& call, const RemoteRecord& place, const CallPlan& plan,
                    std::span<const Piece> pieces) = 0;
  // The creator waits from now on. `stopped`: it has been stopped, and the family with it.
  virtual void ask_sync(OpenCall& call, bool stopped) = 0;
  // By any thread, under the lock of a channel: something has happened in one of the call's.
  virtual void told(OpenCall& call) noexcept = 0;
  // No channel tells of the call any more, and the exchange looks at none of them.
  virtual void forget(OpenCall& call) = 0;

  // Null: this process has no remote places.
  static Exchange* here() { return static_cast<Exchange*>(RemotePoller::here()); }
};

inline void OpenCall::channel_changed() noexcept { Exchange::here()->told(*this); }

}  // namespace tombolo::svp
