// SPDX-License-Identifier: Apache-2.0
#include "host/processes/ancestors.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tombolo::host {
namespace {

// 0 if there is none.
int parent_of(int process) {
  std::ifstream stat(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(stat, line);
  // The name in brackets may hold anything.
  const std::size_t name_end = line.rfind(')');
  int parent = 0;
  if (name_end == std::string::npos ||
      std::sscanf(line.c_str() + name_end, ") %*c %d", &parent) != 1)
    return 0;
  return parent;
}

}  // namespace

std::vector<std::string> programs_of_ancestors() {
  std::vector<std::string> programs;
  for (int process = getppid(); process > 1; process = parent_of(process)) {
    std::error_code error;
    const auto program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", process), error);
    if (!error) programs.push_back(program.string());
  }
  return programs;
}

}  // namespace tombolo::host
