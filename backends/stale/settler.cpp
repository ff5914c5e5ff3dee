// SPDX-License-Identifier: Apache-2.0
#include "backends/stale/settler.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace tombolo::stale::settler {
namespace {

constexpr auto period = std::chrono::microseconds(500);

struct State {
  std::mutex mutex;  // guards cores, running
  std::condition_variable wake;
  std::vector<Settleable*> cores;
  bool running = false;
  long process = syscall(SYS_getpid);
  // seq_cst on both: either arm() sees that the thread rests, or the thread sees that it is armed.
  std::atomic<bool> armed{false};
  std::atomic<bool> resting{false};
};

// Storage that is never destroyed (SE2) and can be constructed anew in a forked child (SE3).
alignas(State) unsigned char storage[sizeof(State)];

State& state() {
  static State* const the_state = [] {
    pthread_atfork(nullptr, nullptr, [] { new (storage) State; });
    return new (storage) State;
  }();
  return *std::launder(the_state);
}

void work(State& s) {
  for (;;) {
    {
      std::unique_lock lock(s.mutex);
      s.resting = true;
      s.wake.wait(lock, [&] { return s.armed.load(); });
      s.resting = false;
    }
    std::this_thread::sleep_for(period);
    s.armed = false;
    const std::lock_guard lock(s.mutex);
    for (Settleable* core : s.cores)
      if (!core->settle_if_free()) s.armed = true;
  }
}

// The program's signals are not for this thread.
void start(State& s) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(work, std::ref(s)).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  s.running = true;
}

}  // namespace

bool add(Settleable& core) {
  State& s = state();
  // SE5
  if (s.process != syscall(SYS_getpid)) return false;
  const std::lock_guard lock(s.mutex);
  if (!s.running) start(s);
  s.cores.push_back(&core);
  return true;
}

void remove(Settleable& core) {
  State& s = state();
  if (s.process != syscall(SYS_getpid)) return;
  const std::lock_guard lock(s.mutex);
  std::erase(s.cores, &core);
}

void arm() {
  State& s = state();
  if (s.armed.exchange(true)) return;
  if (!s.resting) return;
  const std::lock_guard lock(s.mutex);
  s.wake.notify_one();
}

}  // namespace tombolo::stale::settler
