// SPDX-License-Identifier: Apache-2.0
#include "host/processes/control_groups.h"

#include <fmt/format.h>

#include <fstream>

namespace tombolo::host {
namespace {

void add_with_those_above(const std::string& mount, std::string path, ControlGroup::Version version,
                          std::vector<ControlGroup>& groups) {
  while (true) {
    groups.push_back({mount + path, version});
    const auto slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return;
    path.resize(slash);
  }
}

}  // namespace

std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root) {
  std::vector<ControlGroup> groups;
  std::ifstream lines(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(lines, line)) {  // "number:controllers:path"
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    const std::string mounts = root + "/sys/fs/cgroup";
    if (controllers == ",,")
      add_with_those_above(mounts, path, ControlGroup::Version::second, groups);
    else if (controllers.find(fmt::format(",{},", controller)) != std::string::npos)
      add_with_those_above(fmt::format("{}/{}", mounts, controller), path,
                           ControlGroup::Version::first, groups);
  }
  return groups;
}

}  // namespace tombolo::host
