// SPDX-License-Identifier: Apache-2.0
// Purpose: what tests leave out of a protocol to see that it is needed. Programs leave out nothing.
// Thread safety: values.
#pragma once

namespace tombolo::baselines {

struct Omitted {
  bool invalidation = false;  // CL1INVMB before looks at a message passing buffer
  bool flush = false;         // of the combining buffer after stores into one
};

}  // namespace tombolo::baselines
