// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: Call that sends the request to sync before the
// values of channels that are still to go.
//
// The error: that request closes the channels at the other side (CLL4): a thread that reads one
// finds none, though the parent has written.
// Thread safety: as Call.
#pragma once

#include "svp/remote/call.h"

namespace tombolo::svp::broken {

class HastyCall : public Call {
 public:
  using Call::Call;

  template <Link L>
  bool advance(L& link) {
    if (this->ended()) return true;
    return this->advance_request(link) && this->tell_kill(link) && this->tell_sync(link) &&
           this->advance_notes(link);
  }
};

}  // namespace tombolo::svp::broken
