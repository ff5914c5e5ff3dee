// SPDX-License-Identifier: Apache-2.0
// Purpose: NAS FT whose data travel by RCKMPI's messages, the papers' baseline (000 section 4.4.4).
//
//   two-sided   a receive for each block of an exchange before its first plane is transformed, a
//               send for each block once its plane is, and a wait for all at the end
//   one-sided   as with the windows of shared memory: post and start, puts, complete and wait
//
// Blocks received lie in private memory, cached in both levels, and so do blocks sent, which have
// to stay until the exchange is closed.
//
// Thread safety: see experiment.h.
#pragma once

#include "experiments/common/experiment.h"
#include "experiments/ft/ft_solver.h"

namespace tombolo::experiments {

enum class FtMessages : std::uint8_t { two_sided, one_sided };

Status ft_by_messages(const Context& context, Recorder& recorder, FtMessages messages,
                      const FtClass& problem, int iterations, FtResult* result);

}  // namespace tombolo::experiments
