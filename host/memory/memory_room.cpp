// SPDX-License-Identifier: Apache-2.0
#include "host/memory/memory_room.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "host/processes/control_groups.h"

namespace tombolo::host {
namespace {

constexpr std::uint64_t unlimited = MemoryRoom::unlimited;

// All anonymous segments of this process; see promise_memory.
std::atomic<std::uint64_t> promised{0};

std::uint64_t minus(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }
std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  return a > unlimited - b ? unlimited : a + b;
}

// A file that holds one number, or "max".
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  if (!(file >> text)) return {};
  if (text == "max") return unlimited;
  std::istringstream number(text);
  std::uint64_t value = 0;
  if (!(number >> value)) return {};
  return value;
}

// A file read once, so that its fields are of one moment; empty if it cannot be read.
std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The value behind `key` in lines "key value" or "key: value kB"; nullopt if absent.
std::optional<std::uint64_t> field_in(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string name;
    std::string unit;
    std::uint64_t value = 0;
    if (!(words >> name >> value)) continue;
    if (name == key || name == key + ":")
      return words >> unit && unit == "kB" ? value * 1024 : value;
  }
  return {};
}

struct Names {
  const char* limit;
  const char* used;
  const char* active_file;
  const char* inactive_file;
};
constexpr Names version_2{"memory.max", "memory.current", "active_file", "inactive_file"};
constexpr Names version_1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file",
                          "total_inactive_file"};

// Bytes that one control group still allows; nullopt if that is not known. Cached file pages count
// as used but are given back.
std::optional<std::uint64_t> room_in_group(const std::string& folder, const Names& names,
                                           std::uint64_t swap_free) {
  const auto limit = number_in(folder + "/" + names.limit);
  const auto used = number_in(folder + "/" + names.used);
  // Version 1 writes "no limit" as a number near 2^63.
  if (!limit || !used || *limit >= unlimited / 4) return {};
  const std::string statistics = text_of(folder + "/memory.stat");
  const auto active = field_in(statistics, names.active_file);
  const auto inactive = field_in(statistics, names.inactive_file);
  if (!active || !inactive) return {};
  const std::uint64_t cached = *active + *inactive;
  std::uint64_t swap = swap_free;
  if (const auto most = number_in(folder + "/memory.swap.max"); most && *most != unlimited)
    swap = std::min(swap, minus(*most, number_in(folder + "/memory.swap.current").value_or(0)));
  return plus(plus(minus(*limit, *used), cached), swap);
}

}  // namespace

MemoryRoom memory_room(const std::string& root) {
  const std::string meminfo = text_of(root + "/proc/meminfo");
  const std::uint64_t swap_free =
      field_in(meminfo, "SwapFree").value_or(meminfo.empty() ? unlimited : 0);
  MemoryRoom room;
  if (const auto available = field_in(meminfo, "MemAvailable"))
    room = {plus(*available, swap_free), "the host's free memory"};
  for (const ControlGroup& group : control_groups("memory", root)) {
    const Names& names = group.version == ControlGroup::Version::second ? version_2 : version_1;
    const auto left = room_in_group(group.folder, names, swap_free);
    if (left && *left < room.bytes)
      room = {*left, "the control group's " + std::string(names.limit)};
  }
  if (room.bytes == unlimited) return room;
  // Touched pages of our segments are part of the host's "Shmem", so that bytes beyond it are
  // certainly untouched. relaxed: a counter, nothing is ordered by it.
  const std::uint64_t touched = field_in(meminfo, "Shmem").value_or(unlimited);
  const std::uint64_t untouched = minus(promised.load(std::memory_order_relaxed), touched);
  if (untouched > 0)
    room.limit += ", less the bytes that earlier segments of this process may still use";
  room.bytes = minus(room.bytes, untouched);
  return room;
}

bool strict_overcommit(const std::string& root) {
  return number_in(root + "/proc/sys/vm/overcommit_memory").value_or(0) == 2;
}

// relaxed (both): a counter, nothing is ordered by it.
void promise_memory(std::uint64_t bytes) { promised.fetch_add(bytes, std::memory_order_relaxed); }
void release_promise(std::uint64_t bytes) { promised.fetch_sub(bytes, std::memory_order_relaxed); }

}  // namespace tombolo::host
