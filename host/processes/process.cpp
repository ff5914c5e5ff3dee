// SPDX-License-Identifier: Apache-2.0
#include "host/processes/process.h"

#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace tombolo::host {
namespace {

struct Life {
  char state = 0;
  std::uint64_t started = 0;
};

// State and start from /proc/PID/stat: "pid (name) state ...", where the name may hold anything, so
// that the words are counted from the last parenthesis; the start is the 22nd.
std::optional<Life> life_of(std::int32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return {};
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream words(line.substr(name_end + 1));
  Life life;
  words >> life.state;
  std::string skipped;
  for (int word = 4; word < 22; ++word) words >> skipped;
  if (!(words >> life.started)) return {};
  return life;
}

}  // namespace

ProcessName process_named(std::int32_t pid) { return {pid, life_of(pid).value_or(Life{}).started}; }

bool number_is_free(const ProcessName& process) {
  return kill(process.pid, 0) != 0 && errno == ESRCH;
}

bool has_ended(const ProcessName& process) {
  if (number_is_free(process)) return true;
  const auto life = life_of(process.pid);
  if (!life) return false;
  // A zombie's memory is no longer mapped.
  if (life->state == 'Z' || life->state == 'X') return true;
  return process.started != 0 && life->started != process.started;
}

bool is_uncollected(const ProcessName& process) {
  const auto life = life_of(process.pid);
  return life && life->state == 'Z' && life->started == process.started;
}

}  // namespace tombolo::host
