// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/findings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/mpi/host.h"
#include "mpi/windows/sentences.h"
#include "runtime/processes/processes_here.h"

namespace tombolo::mpi {
namespace {

std::atomic<bool> found_mistakes{false};
std::atomic<bool> told_how_to_repeat{false};

// The facts that this process has told of any window, for programs that make the same window again
// and again.
class Told {
 public:
  // Takes out those that were told of an earlier window made at the same place.
  void leave_new(std::uint64_t made_at, std::vector<machine::LossFact>& facts) {
    const std::lock_guard lock(mutex_);
    const std::size_t all = facts.size();
    std::erase_if(facts, [&](const machine::LossFact& fact) {
      const bool known = !known_
                              .insert({made_at, static_cast<std::uint64_t>(fact.loss),
                                       fact.culprit.site, fact.victim.site})
                              .second;
      if (known) bytes_ += fact.bytes;
      return known;
    });
    if (facts.size() < all) ++windows_;
  }
  // A sentence about those that were taken out since the last call; may be empty.
  std::string take_summary() {
    const std::lock_guard lock(mutex_);
    const std::uint64_t windows = std::exchange(windows_, 0);
    if (windows == 0) return {};
    return fmt::format("tombolo: stale: the same in {} more window{} made there: {} bytes\n",
                       windows, windows == 1 ? "" : "s", std::exchange(bytes_, 0));
  }

 private:
  using Key = std::array<std::uint64_t, 4>;
  std::mutex mutex_;
  std::set<Key> known_;
  std::uint64_t windows_ = 0;
  std::uint64_t bytes_ = 0;
};

Told& told() {
  static Told* const the_told = new Told;  // never destroyed: looked at when the process exits
  return *the_told;
}

void write(const std::string& text) {
  // In one piece: other processes write, too.
  std::fwrite(text.data(), 1, text.size(), stderr);
}

// Empty where the program has set none, or MPI can no longer be asked.
std::string name_of(const MpiWindow& window) {
  int finalized = 0;
  char name[MPI_MAX_OBJECT_NAME + 1] = {};
  int length = 0;
  if (host().Finalized(&finalized) != MPI_SUCCESS || finalized != 0) return {};
  if (host().Win_get_name(window.handle, name, &length) != MPI_SUCCESS) return {};
  return name;
}

std::string told_anew(MpiWindow& window, const std::vector<machine::LossFact>& facts) {
  std::string text =
      report({.name = name_of(window), .made_at = window.made_at, .size = window.size}, facts);
  if (found_mistakes && !told_how_to_repeat.exchange(true))
    text += fmt::format("tombolo: to run it again: {}\n",
                        command_again(static_cast<int>(runtime::processes_here()),
                                      job().options().seed, job().options().evictions));
  return text;
}

void at_exit(int status, void* process) {
  if (static_cast<pid_t>(reinterpret_cast<std::intptr_t>(process)) != getpid()) return;  // FD3
  tell_all_findings();
  if (status != 0 || !found_mistakes || !job().options().fail_on_findings) return;
  std::fprintf(stderr,
               "tombolo: rank %d exits with status %d instead of 0, because of the findings of "
               "stale (TOMBOLO_ON_FINDINGS)\n",
               job().world_rank(), status_of_findings);
  // glibc goes on with the handlers that are left, and with this status.
  std::exit(status_of_findings);
}

}  // namespace

void watch_for_exit() {
  static const bool watching = [] {
    return on_exit(at_exit, reinterpret_cast<void*>(static_cast<std::intptr_t>(getpid()))) == 0;
  }();
  (void)watching;
}

void note_mistakes(MpiWindow& window) {
  if (window.tells_losses && window.engine().has_mistakes()) found_mistakes = true;
}

void tell_findings(MpiWindow& window) {
  if (!window.tells_losses) return;
  note_mistakes(window);
  std::vector<machine::LossFact> facts = window.engine().take_losses();
  if (facts.empty()) return;
  told().leave_new(window.made_at, facts);
  if (!facts.empty()) write(told_anew(window, facts));
  window.engine().losses_told();
}

void tell_all_findings() {
  for_each_window([](MpiWindow& window) { tell_findings(window); });
  write(told().take_summary());
}

}  // namespace tombolo::mpi
