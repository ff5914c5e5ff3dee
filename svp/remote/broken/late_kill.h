// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: Service that is begun by a kill that comes
// after the family's end.
//
// The error: the kill stays for the next family of that number, whose creator has asked for none
// (CLL5).
// Thread safety: as Service.
#pragma once

#include "svp/remote/service.h"

namespace tombolo::svp::broken {

class LateKill : public Service {
 public:
  using Service::Service;

  static bool begins(const Message&) { return true; }
};

}  // namespace tombolo::svp::broken
