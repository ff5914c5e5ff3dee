// SPDX-License-Identifier: Apache-2.0
// Purpose: reads a number from an environment variable that the user may have set.
// Thread safety: yes, as long as the environment does not change.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/options.h"
#include "runtime/options/options.h"

namespace tombolo::svp {

// `unset` where the option is not set. A number that is none ends the program: it would run, and
// measure, another thing than was asked for.
inline std::uint64_t number_setting(const Option& option, std::uint64_t least, std::uint64_t most,
                                    std::uint64_t unset) {
  const std::string text = text_of(option);
  if (text.empty()) return unset;
  const auto number = number_in(text);
  if (number && *number >= least && *number <= most) return *number;
  std::fprintf(stderr, "tombolo: %s\n", not_understood(option, text).message().c_str());
  std::_Exit(1);
}

}  // namespace tombolo::svp
