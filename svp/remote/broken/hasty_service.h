// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: Service that sends its completion as soon as
// the family has ended, before the creator has asked for it.
//
// The error: where a site has one mailbox, the message stays there as long as its creator waits for
// another family, and keeps that one's completion back (002 section 5.2.2).
// Thread safety: as Service.
#pragma once

#include "svp/remote/service.h"

namespace tombolo::svp::broken {

class HastyService : public Service {
 public:
  using Service::Service;

  template <Link L>
  bool advance(L& link) {
    return answer(link);
  }
};

}  // namespace tombolo::svp::broken
