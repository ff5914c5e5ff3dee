// SPDX-License-Identifier: Apache-2.0
// Purpose: finds names of environment variables that are no setting but look like one: a check on a
// machine that was asked for by TOMBOLO_MACHIN would run on another one without a word.
// Thread safety: plain functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace tombolo::runtime {

// How many letters one name has more, less, other, or exchanged with the next one than the other.
std::size_t difference(std::string_view a, std::string_view b);

// That of the names which `given` is likely to be meant for. None if it is one of them, or like
// none: other programs may have variables of their own.
std::optional<std::string_view> meant_by(std::string_view given,
                                         const std::vector<std::string_view>& names);

}  // namespace tombolo::runtime
