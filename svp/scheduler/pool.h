// SPDX-License-Identifier: Apache-2.0
// Purpose: workers that take tasks from each other, and the queue of tasks that other threads
// delegate to them.
//
// Invariants: VPO1 a pool ends after the last task that was delegated to it is done, and after the
//                 last one that its workers wait for elsewhere.
//             VPO2 an alarm is raised in all pools of the process: a family's descendants may be in
//                 any of them.
//             VPO3 where the host has fewer threads than workers were asked for, the pool has as
//                 many workers as there are threads, and that is told once.
// Thread safety: yes, but for constructor and destructor.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "svp/scheduler/worker.h"

namespace tombolo::svp {

struct PoolSettings {
  unsigned workers = 0;          // 0: one for each processor
  std::size_t stack_bytes = 0;   // of a thread that blocks, or is beside one; 0: TOMBOLO_SVP_STACK
  std::uint32_t slots = 8192;    // tasks that a worker offers at a time
  std::uint32_t neighbours = 0;  // workers of other processes on this host
};

class Pool {
 public:
  // Throws std::bad_alloc, host::NoThread (the host has no thread at all).
  explicit Pool(const PoolSettings& settings);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  unsigned size() const { return static_cast<unsigned>(workers_.size()); }
  Worker& worker(unsigned number) { return *workers_[number]; }
  // Those of all workers besides their threads' own.
  std::size_t stacks() const;
  const PoolSettings& settings() const { return settings_; }
  PlaceName name() const { return {.kind = PlaceName::Kind::local, .number = number_}; }
  const machine::WaitPolicy& waiting() const { return waiting_; }

  // Some worker runs the task.
  void delegate(Task& task);
  Task* delegated();
  // One that is a descendant of the scope's family.
  Task* delegated_within(const Scope& scope);
  bool has_delegated() const { return delegated_count_.load() != 0; }

  // By any thread: a task that no worker runs is done. It may be gone afterwards.
  static void finish_elsewhere(Task& task);
  // For threads that are no workers: the task is done, and until it is.
  static void finish_outside(Task& task);
  // The same as Worker::wait().
  static bool wait_outside(const Task& task, bool unless_stopped = false);
  // The same for blocked threads.
  static void deliver_outside(Blocked& blocked);
  static void wait_outside(const Blocked& blocked);

  // A family was stopped, and has ended, for all pools of the process.
  static void raise_alarm();
  static void retire_alarm();
  // Alarms that were raised so far. A hint: it may be late.
  static std::uint64_t alarms_raised();

  // Of workers that the program ends without waiting for them.
  void record_counts();

  // Wakes a worker that sleeps, if one does.
  void rouse_one();
  bool stopping() const { return stopping_.load(); }

  std::atomic<std::uint32_t> idle{0};      // workers that find nothing to do
  std::atomic<std::uint32_t> sleeping{0};  // those of them that sleep
  std::atomic<std::uint32_t> hungry{0};    // those of them that have asked all others for tasks
  std::atomic<std::uint32_t> pins{0};      // threads of other pools that are about to wake one

  // Threads of the process that are blocked in a channel.
  static std::atomic<std::uint64_t>& blocked_threads();
  // Families of threads that are no workers, which have not been synced.
  static std::atomic<std::uint64_t>& outside_families();

 private:
  struct Block {
    std::byte* at = nullptr;
    ~Block();
  };
  enum class Gate : std::uint8_t { closed, open, given_up };
  void start_threads();
  void make_workers();
  void begin();
  void open_gate(Gate how);
  void stop();

  PoolSettings settings_;
  const std::uint32_t number_;  // among the pools of the process
  machine::WaitPolicy waiting_;
  Block sync_;
  Block data_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
  std::atomic<Gate> gate_{Gate::closed};  // in front of the threads, until the workers are made
  std::mutex mutex_;
  Task* first_ = nullptr;
  Task* last_ = nullptr;
  std::atomic<std::uint64_t> delegated_count_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace tombolo::svp
