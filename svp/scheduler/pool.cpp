// SPDX-License-Identifier: Apache-2.0
#include "svp/scheduler/pool.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "host/faults/fault_router.h"
#include "host/processes/start_thread.h"
#include "machine/place.h"
#include "runtime/processes/processors_here.h"
#include "svp/records/process_records.h"
#include "svp/scheduler/read_or_end.h"
#include "svp/scheduler/svp_options.h"

namespace tombolo::svp {
namespace {

constexpr std::align_val_t line{64};

std::byte* zeroed(std::size_t bytes) {
  auto* const at = static_cast<std::byte*>(::operator new(bytes, line));
  std::memset(at, 0, bytes);
  return at;
}

// All pools of the process.
struct Pools {
  std::mutex mutex;
  std::vector<Pool*> all;
  std::uint64_t alarms = 0;  // raised, and not retired
  std::atomic<std::uint64_t> raised{0};

  // Never destroyed: static objects may have pools.
  static Pools& here() {
    static auto* const pools = new Pools;
    return *pools;
  }
};

// Where threads that are no workers wait, for whichever pool.
struct Outside {
  std::mutex mutex;
  std::condition_variable done;

  static Outside& here() {
    static auto* const outside = new Outside;
    return *outside;
  }
};

std::uint32_t next_number() {
  static constinit std::atomic<std::uint32_t> numbers{0};
  return numbers++;
}

std::size_t stack_bytes_wanted() {
  SvpOptions of_user;
  read_or_end(options::svp_stack, of_user.stack_bytes);
  return of_user.stack_bytes;
}

// Workers share the memory of a process. Where a library in front of the C library makes processes
// of a program's threads, they would wait for ever.
void refuse_threads_in_processes() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&pthread_create), &info) == 0 || info.dli_fname == nullptr)
    return;
  if (std::string_view(info.dli_fname).find("libtombolo_pthread") == std::string_view::npos) return;
  std::fprintf(
      stderr,
      "tombolo: families run on the threads of a process, and the threads of this program "
      "are processes: start it without `tombolo dsm run`, by itself or with `tombolo svp run`\n");
  std::_Exit(1);
}

// VPO3
void tell_of_fewer(unsigned workers, unsigned wanted, const Status& why) {
  static constinit std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  std::fprintf(stderr,
               "tombolo: %s; families run on %u workers instead of %u (TOMBOLO_SVP_WORKERS)\n",
               why.message().c_str(), workers, wanted);
}

}  // namespace

Pool::Block::~Block() {
  if (at != nullptr) ::operator delete(at, line);
}

Pool::Pool(const PoolSettings& settings) : settings_(settings), number_(next_number()) {
  if (settings_.workers == 0) settings_.workers = runtime::processors_for(1 + settings_.neighbours);
  if (settings_.stack_bytes == 0) settings_.stack_bytes = stack_bytes_wanted();
  refuse_threads_in_processes();
  (void)host::tell_faults(&Worker::explain_fault).ok();  // without it, faults are as ever
  try {
    start_threads();
    make_workers();
    begin();
  } catch (...) {
    open_gate(Gate::given_up);
    for (std::thread& thread : threads_) thread.join();
    throw;
  }
}

// VPO3: the layout of the workers' memory, and whom each asks for tasks, come from their number.
void Pool::start_threads() {
  threads_.reserve(settings_.workers);
  for (unsigned i = 0; i < settings_.workers; ++i) {
    std::thread thread;
    const Status started = host::start_thread(
        "for a worker of families",
        [this, i] {
          gate_.wait(Gate::closed);
          if (gate_.load() == Gate::open) workers_[i]->work();
        },
        thread);
    if (!started.ok() && threads_.empty()) throw host::NoThread(started);
    if (!started.ok()) {
      tell_of_fewer(i, settings_.workers, started);
      break;
    }
    threads_.push_back(std::move(thread));
  }
  settings_.workers = static_cast<unsigned>(threads_.size());
}

void Pool::make_workers() {
  const std::uint32_t processors = runtime::processors_for(1 + settings_.neighbours);
  waiting_ = machine::WaitPolicy::for_host(settings_.workers + settings_.neighbours, processors);
  const machine::Home workers = settings_.workers;
  machine::SyncLayout sync(Worker::Core::reserved_sync_bytes(workers));
  const Worker::Layout layout = Worker::take(sync, settings_.slots);
  const std::size_t data_bytes = Worker::Deque::data_bytes(settings_.slots);
  sync_.at = zeroed(workers * sync.bytes());
  data_.at = zeroed(workers * data_bytes);
  for (machine::Home self = 0; self < workers; ++self) {
    Worker::Core::Attachment at;
    at.self = self;
    at.cores = workers;
    at.sync = sync_.at;
    at.sync_bytes_per_home = sync.bytes();
    for (machine::Home home = 0; home < workers; ++home)
      at.data.push_back({.memory = data_.at + home * data_bytes, .bytes = data_bytes});
    at.waiting = waiting_;
    workers_.push_back(std::make_unique<Worker>(*this, at, layout));
  }
}

void Pool::begin() {
  Pools& pools = Pools::here();
  const std::lock_guard lock(pools.mutex);
  pools.all.push_back(this);
  for (std::uint64_t i = 0; i < pools.alarms; ++i) workers_[0]->alarm().raise();
  open_gate(Gate::open);
}

void Pool::open_gate(Gate how) {
  gate_.store(how);
  gate_.notify_all();
}

void Pool::stop() {
  stopping_.store(true);
  for (const auto& worker : workers_) worker->wake();
  for (std::thread& thread : threads_) thread.join();
  while (pins.load() != 0) sched_yield();
}

Pool::~Pool() {
  {
    Pools& pools = Pools::here();
    const std::lock_guard lock(pools.mutex);
    std::erase(pools.all, this);
  }
  stop();
}

void Pool::delegate(Task& task) {
  task.next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    (first_ == nullptr ? first_ : last_->next) = &task;
    last_ = &task;
    delegated_count_.fetch_add(1);
  }
  if (sleeping.load() != 0) rouse_one();
}

Task* Pool::delegated() {
  const std::lock_guard lock(mutex_);
  Task* const task = first_;
  if (task == nullptr) return nullptr;
  first_ = task->next;
  delegated_count_.fetch_sub(1);
  return task;
}

Task* Pool::delegated_within(const Scope& scope) {
  const std::lock_guard lock(mutex_);
  Task* before = nullptr;
  for (Task* task = first_; task != nullptr; before = task, task = task->next) {
    if (!task->scope.within(scope)) continue;
    (before == nullptr ? first_ : before->next) = task->next;
    if (task == last_) last_ = before;
    delegated_count_.fetch_sub(1);
    return task;
  }
  return nullptr;
}

std::size_t Pool::stacks() const {
  std::size_t stacks = 0;
  for (const auto& worker : workers_) stacks += worker->stacks();
  return stacks;
}

void Pool::rouse_one() {
  for (const auto& worker : workers_)
    if (worker->asleep() && worker->rouse()) return;
}

void Pool::finish_elsewhere(Task& task) {
  Worker* const creator = task.creator;
  if (creator == nullptr) return finish_outside(task);
  Pool& pool = creator->pool();
  pool.pins.fetch_add(1);  // as in Worker::finish
  task.state.store(Worker::Hand::done_value, std::memory_order_release);
  if (creator != Worker::here()) creator->wake();
  pool.pins.fetch_sub(1);
}

void Pool::finish_outside(Task& task) {
  if (task.slot == Task::reports) return task.ended(task);
  Outside& outside = Outside::here();
  const std::lock_guard lock(outside.mutex);
  task.state.store(Worker::Hand::done_value, std::memory_order_release);
  outside.done.notify_all();
}

bool Pool::wait_outside(const Task& task, bool unless_stopped) {
  Outside& outside = Outside::here();
  std::unique_lock lock(outside.mutex);
  const auto done = [&] { return task.state.load() == Worker::Hand::done_value; };
  outside.done.wait(lock, [&] { return done() || (unless_stopped && task.scope.stopped()); });
  return done();
}

void Pool::deliver_outside(Blocked& blocked) {
  Outside& outside = Outside::here();
  const std::lock_guard lock(outside.mutex);
  blocked.delivered = true;
  outside.done.notify_all();
}

void Pool::wait_outside(const Blocked& blocked) {
  Outside& outside = Outside::here();
  std::unique_lock lock(outside.mutex);
  outside.done.wait(lock, [&] { return blocked.delivered; });
}

void Pool::raise_alarm() {
  Pools& pools = Pools::here();
  const std::lock_guard lock(pools.mutex);
  ++pools.alarms;
  pools.raised.fetch_add(1);
  for (Pool* const pool : pools.all) {
    pool->worker(0).alarm().raise();
    for (const auto& worker : pool->workers_) worker->wake();
  }
  // Threads outside may wait for their turn.
  Outside& outside = Outside::here();
  { const std::lock_guard waiting(outside.mutex); }
  outside.done.notify_all();
}

void Pool::retire_alarm() {
  Pools& pools = Pools::here();
  const std::lock_guard lock(pools.mutex);
  --pools.alarms;
  for (Pool* const pool : pools.all) pool->worker(0).alarm().retire();
}

std::uint64_t Pool::alarms_raised() {
  // relaxed: a hint, which is looked at again and again.
  return Pools::here().raised.load(std::memory_order_relaxed);
}

std::atomic<std::uint64_t>& Pool::blocked_threads() {
  static constinit std::atomic<std::uint64_t> threads{0};
  return threads;
}

std::atomic<std::uint64_t>& Pool::outside_families() {
  static constinit std::atomic<std::uint64_t> families{0};
  return families;
}

void Pool::record_counts() {
  for (const auto& worker : workers_) ProcessRecords::here().add(worker->counts());
}

}  // namespace tombolo::svp
