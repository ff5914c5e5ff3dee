// SPDX-License-Identifier: Apache-2.0
#include "pthreads/program/forked_servers.h"

#include <signal.h>

#include <cerrno>

#include "host/interrupts/wake_up.h"
#include "pthreads/program/carried_signals.h"

namespace tombolo::dsm {

int ForkedServers::signal(Thread server, int number) {
  const pid_t to = process(server);
  if (to == 0) return 0;
  if (server != 0 && is_withheld(number)) return carry_signal(to, number);
  return kill(to, number) == 0 ? 0 : errno;
}

void ForkedServers::wake_up(Thread server) {
  if (const pid_t to = process(server); to != 0) host::wake_up(to);
}

}  // namespace tombolo::dsm
