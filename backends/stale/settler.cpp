// SPDX-License-Identifier: Apache-2.0
#include "backends/stale/settler.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "host/processes/no_signals.h"
#include "host/processes/shared_fork.h"
#include "host/processes/start_thread.h"

namespace tombolo::stale::settler {
namespace {

constexpr auto period = std::chrono::microseconds(500);

struct State {
  std::mutex
      mutex;  // guards cores, running, has_begun; the thread has it but where it sleeps (SE6)
  std::condition_variable wake;
  std::condition_variable begun;
  std::vector<Settleable*> cores;
  bool running = false;
  bool has_begun = false;
  std::optional<sigset_t> signals_at_fork;  // that the forking thread had blocked
  long process = syscall(SYS_getpid);
  // seq_cst on both: either arm() sees that the thread rests, or the thread sees that it is armed.
  std::atomic<bool> armed{false};
  std::atomic<bool> resting{false};
};

// Storage that is never destroyed (SE2) and can be constructed anew in a forked child (SE3).
alignas(State) unsigned char storage[sizeof(State)];

State& state();

bool is_here(const State& s) { return s.process == syscall(SYS_getpid); }

// The lock is given back meanwhile.
void wait_for_begin(State& s, std::unique_lock<std::mutex>& lock) {
  s.begun.wait(lock, [&] { return !s.running || s.has_begun; });
}

// SE6. A signal handler that interrupts a fork may call arm(). A child that was forked past the C
// library may fork, too: the state is its parent's, and this process's copy of it (SE5).
void before_fork() {
  State& s = state();
  if (!is_here(s)) return s.signals_at_fork.reset();
  const sigset_t signals = host::block_signals();
  std::unique_lock lock(s.mutex);
  wait_for_begin(s, lock);
  s.signals_at_fork = signals;
  lock.release();
}
void after_fork() {
  State& s = state();
  if (!is_here(s)) return;
  const sigset_t signals = *s.signals_at_fork;
  s.mutex.unlock();
  host::give_back_signals(signals);
}
void in_child() {
  const std::optional<sigset_t> signals = state().signals_at_fork;
  new (storage) State;  // SE3
  if (signals) host::give_back_signals(*signals);
}

State& state() {
  static State* const the_state = [] {
    host::around_forks(&before_fork, &after_fork, &in_child);
    return new (storage) State;
  }();
  return *std::launder(the_state);
}

void work(State& s) {
  std::unique_lock lock(s.mutex);
  s.has_begun = true;
  s.begun.notify_all();
  for (;;) {
    s.resting = true;
    s.wake.wait(lock, [&] { return s.armed.load(); });
    s.resting = false;
    s.wake.wait_for(lock, period);
    s.armed = false;
    for (Settleable* core : s.cores)
      if (!core->settle_if_free()) s.armed = true;
  }
}

// SE7
void tell(const Status& why) {
  static constinit std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  const std::string line = fmt::format(
      "tombolo: {}; the cores of this process defer no store, so fewer of the orders that the "
      "machine allows are tried\n",
      why.message());
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

// False: there is no thread to be had.
bool start(State& s) {
  std::thread thread;
  const Status started = host::start_thread(
      "that settles stores on stale", [&s] { work(s); }, thread);
  if (!started.ok()) {
    tell(started);
    return false;
  }
  thread.detach();
  s.running = true;
  return true;
}

}  // namespace

bool add(Settleable& core) {
  State& s = state();
  if (!is_here(s)) return false;  // SE5
  const host::NoSignals none;     // not for the thread, either
  std::unique_lock lock(s.mutex);
  if (!s.running && !start(s)) return false;
  wait_for_begin(s, lock);  // SE6
  s.cores.push_back(&core);
  return true;
}

void remove(Settleable& core) {
  State& s = state();
  if (!is_here(s)) return;
  const host::NoSignals none;
  const std::lock_guard lock(s.mutex);
  std::erase(s.cores, &core);
}

void arm() {
  State& s = state();
  if (s.armed.exchange(true)) return;
  if (!s.resting) return;
  const host::NoSignals none;
  const std::lock_guard lock(s.mutex);
  s.wake.notify_one();
}

}  // namespace tombolo::stale::settler
