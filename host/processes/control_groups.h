// SPDX-License-Identifier: Apache-2.0
// Purpose: the control groups that this process is in, by which a host gives containers and jobs
// their parts of it. A limit of one counts for all groups below it.
// Thread safety: yes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tombolo::host {

struct ControlGroup {
  enum class Version : std::uint8_t { first = 1, second = 2 };
  std::string folder;  // with the group's files, if the host shows it
  Version version;
};

// Those that `controller` ("memory", "cpu") may have limits in: this process's own group, and those
// above it up to the root; of both versions, where a host has both. None if the kernel does not
// tell. `root` replaces "/" in tests.
std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root);

}  // namespace tombolo::host
