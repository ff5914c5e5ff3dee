// SPDX-License-Identifier: Apache-2.0
#include "host/segments/lost_memory.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace tombolo::host {
namespace {

// Looked at by a signal handler: it takes no lock and frees nothing.
struct Mapping {
  std::atomic<std::uintptr_t> start{0};  // 0: free; written last
  std::atomic<std::uintptr_t> end{0};
  std::array<char, 200> path{};
};
constinit std::array<Mapping, 512> mappings;
struct sigaction before;

std::mutex& mappings_mutex() {
  static std::mutex& the_mutex = *new std::mutex;
  return the_mutex;
}

void say(const char* text) { (void)!write(STDERR_FILENO, text, std::strlen(text)); }

void lost(int, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const Mapping& mapping : mappings) {
    const std::uintptr_t start = mapping.start.load(std::memory_order_acquire);
    if (start == 0 || at < start || at >= mapping.end.load(std::memory_order_relaxed)) continue;
    say("tombolo: the pool ");
    say(mapping.path.data());
    say(" has lost memory that is in use: it was made shorter, or its device failed\n");
    break;
  }
  // The access is made again, and meets the handler from before us.
  sigaction(SIGBUS, &before, nullptr);
}

void install() {
  struct sigaction action {};
  action.sa_sigaction = lost;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &before);
}

}  // namespace

void tell_if_lost(const std::byte* start, std::size_t bytes, const std::string& path) {
  static std::once_flag once;
  std::call_once(once, install);
  const std::lock_guard lock(mappings_mutex());
  auto* const free = std::find_if(mappings.begin(), mappings.end(), [](const Mapping& mapping) {
    return mapping.start.load(std::memory_order_relaxed) == 0;
  });
  if (free == mappings.end()) return;
  const auto at = reinterpret_cast<std::uintptr_t>(start);
  free->path = {};
  path.copy(free->path.data(), free->path.size() - 1);
  free->end.store(at + bytes, std::memory_order_relaxed);  // told by `start`
  free->start.store(at, std::memory_order_release);        // the handler reads the rest after it
}

void is_unmapped(const std::byte* start) {
  const std::lock_guard lock(mappings_mutex());
  for (Mapping& mapping : mappings)
    if (mapping.start.load(std::memory_order_relaxed) == reinterpret_cast<std::uintptr_t>(start))
      mapping.start.store(0, std::memory_order_relaxed);  // the slot may be taken; nothing else
}

}  // namespace tombolo::host
