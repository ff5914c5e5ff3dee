// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: Service that sends the last thread's value of a
// channel as soon as it is there, before the creator wants it.
//
// The error: where a site has one mailbox, the message stays there as long as its creator waits for
// another family, and keeps that one's messages back (CLL1).
// Thread safety: as Service.
#pragma once

#include "svp/remote/service.h"

namespace tombolo::svp::broken {

class EagerService : public Service {
 public:
  using Service::Service;

  template <Link L>
  bool advance(L& link) {
    this->want_all();
    return Service::advance(link);
  }
};

}  // namespace tombolo::svp::broken
