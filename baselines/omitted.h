// SPDX-License-Identifier: Apache-2.0
// Purpose: steps of a protocol that tests leave out to see that they are needed. Programs leave out
// none.
// Thread safety: values.
#pragma once

namespace tombolo::baselines {

struct Omitted {
  bool invalidation = false;  // CL1INVMB before looks at a message passing buffer
  bool flush = false;         // of the combining buffer after stores into one
};

}  // namespace tombolo::baselines
