// SPDX-License-Identifier: Apache-2.0
#include "host/faults/signal_chain.h"

namespace tombolo::host {

bool has_handler(const struct sigaction& action) {
  // Of one address with sa_sigaction.
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

void pass_on(int signal, siginfo_t* info, void* context, const struct sigaction& next) {
  if (has_handler(next)) {
    if ((next.sa_flags & SA_SIGINFO) != 0)
      next.sa_sigaction(signal, info, context);
    else
      next.sa_handler(signal);
  } else if (info->si_code > 0) {
    sigaction(signal, &next, nullptr);      // the fault comes again, and ends the process
  } else if (next.sa_handler == SIG_DFL) {  // a process has sent it
    sigaction(signal, &next, nullptr);
    raise(signal);
  }
}

}  // namespace tombolo::host
