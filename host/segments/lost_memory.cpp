// SPDX-License-Identifier: Apache-2.0
#include "host/segments/lost_memory.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "host/faults/signal_chain.h"

namespace tombolo::host {
namespace {

// Looked at by a signal handler: it takes no lock and frees nothing.
struct Mapping {
  std::atomic<std::uintptr_t> start{0};  // 0: free; written last
  std::atomic<std::uintptr_t> end{0};
  std::array<char, 200> path{};
  Mapping* next = nullptr;

  bool holds(std::uintptr_t at) const {
    // acquire: the rest was written before it; relaxed: the same holds of the end
    const std::uintptr_t low = start.load(std::memory_order_acquire);
    return low != 0 && at >= low && at < end.load(std::memory_order_relaxed);
  }
};

// All that ever were, free ones among them: none is freed.
constinit std::atomic<Mapping*> mappings{nullptr};
struct sigaction before;

std::mutex& mappings_mutex() {
  static std::mutex& the_mutex = *new std::mutex;
  return the_mutex;
}

template <class Wanted>
Mapping* find(Wanted&& wanted) {
  // acquire: `next` and the rest were written before it was put there
  Mapping* each = mappings.load(std::memory_order_acquire);
  while (each != nullptr && !wanted(*each)) each = each->next;
  return each;
}

void say(const char* text) { (void)!write(STDERR_FILENO, text, std::strlen(text)); }

void lost(int signal, siginfo_t* info, void* context) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const bool of_access = info->si_code > 0;  // else a process has sent it, and there is no address
  const Mapping* const found =
      of_access ? find([at](const Mapping& each) { return each.holds(at); }) : nullptr;
  if (found != nullptr) {
    say("tombolo: the pool ");
    say(found->path.data());
    say(" has lost memory that is in use: it was made shorter, or its device failed\n");
  }
  pass_on(signal, info, context, before);
}

void install() {
  sigaction(SIGBUS, nullptr, &before);
  struct sigaction action = before;
  action.sa_sigaction = lost;
  action.sa_flags = (before.sa_flags & ~static_cast<int>(SA_RESETHAND)) | SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGBUS, &action, nullptr);
}

// relaxed, under the mutex: only its holders change it
bool is_free(const Mapping& each) { return each.start.load(std::memory_order_relaxed) == 0; }

Mapping& free_one() {
  if (Mapping* const free = find(is_free); free != nullptr) return *free;
  auto* const made = new Mapping;
  made->next = mappings.load(std::memory_order_relaxed);  // as above
  mappings.store(made, std::memory_order_release);        // the handler reads the rest after it
  return *made;
}

}  // namespace

void tell_if_lost(const std::byte* start, std::size_t bytes, const std::string& path) {
  static std::once_flag once;
  std::call_once(once, install);
  const std::lock_guard lock(mappings_mutex());
  Mapping& mapping = free_one();
  const auto at = reinterpret_cast<std::uintptr_t>(start);
  mapping.path = {};
  path.copy(mapping.path.data(), mapping.path.size() - 1);
  mapping.end.store(at + bytes, std::memory_order_relaxed);  // told by `start`
  mapping.start.store(at, std::memory_order_release);        // the handler reads the rest after it
}

void is_unmapped(const std::byte* start) {
  const std::lock_guard lock(mappings_mutex());
  const auto at = reinterpret_cast<std::uintptr_t>(start);
  // relaxed: the slot may be taken; nothing else is told by it
  Mapping* const found =
      find([at](const Mapping& each) { return each.start.load(std::memory_order_relaxed) == at; });
  if (found != nullptr) found->start.store(0, std::memory_order_relaxed);
}

}  // namespace tombolo::host
