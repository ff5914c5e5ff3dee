// SPDX-License-Identifier: Apache-2.0
// Purpose: reads an option from the environment where no error can be returned.
// Thread safety: yes, as long as the environment does not change.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "base/options.h"

namespace tombolo::svp {

// A value that is not understood ends the program: it would run, and measure, another thing than
// was asked for.
template <class T>
void read_or_end(const Option& option, T& out) {
  const Status read = read_option(option, out);
  if (read.ok()) return;
  std::fprintf(stderr, "tombolo: %s\n", read.message().c_str());
  std::_Exit(1);
}

}  // namespace tombolo::svp
