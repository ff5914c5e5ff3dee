// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: Call that sends a kill before the request.
//
// The error: the other side knows no family of that number yet, and drops the kill (CLL5): a family
// that ends by it alone runs for ever.
// Thread safety: as Call.
#pragma once

#include "svp/remote/call.h"

namespace tombolo::svp::broken {

class OvertakingKill : public Call {
 public:
  using Call::Call;

  template <Link L>
  bool advance(L& link) {
    if (this->ended()) return true;
    return this->tell_kill(link) && Call::advance(link);
  }
};

}  // namespace tombolo::svp::broken
