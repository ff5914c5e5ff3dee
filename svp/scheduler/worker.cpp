// SPDX-License-Identifier: Apache-2.0
#include "svp/scheduler/worker.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/random.h"
#include "host/stacks/alternate_stack.h"
#include "svp/records/process_records.h"
#include "svp/scheduler/pool.h"
#include "svp/scheduler/remote_poller.h"

namespace tombolo::svp {

thread_local constinit Worker* Worker::here_ = nullptr;

Worker::Worker(Pool& pool, const Core::Attachment& at, const Layout& layout)
    : core_(at),
      deque_(core_, layout.deque),
      alarm_(core_, layout.alarm),
      wanted_(deque_.wanted_word()),
      signal_(core_.word({core_.self(), layout.signal})),
      pool_(pool),
      idle_policy_(pool.waiting()),
      next_victim_(Random::stream(at.seed, at.self).next()) {
  if (!ProcessRecords::here().traced()) return;
  trace_ = std::make_unique<FamilyTrace>(pool.name(), at.self);
  if (!trace_->ready()) throw std::bad_alloc();
  deque_.want();
}

Worker::~Worker() {
  ProcessRecords::here().add(counts_);
  if (trace_ != nullptr) ProcessRecords::here().add(std::move(trace_));
}

PlaceName Worker::place() const { return pool_.name(); }

// ---- Tasks of the running thread ----------------------------------------------------------------

void Worker::keep(Task& task) {
  task.slot = kept_slot;
  task.previous = nullptr;
  task.next = kept_;
  if (kept_ != nullptr) kept_->previous = &task;
  kept_ = &task;
}

void Worker::drop_kept(const Task& task) {
  (task.previous == nullptr ? kept_ : task.previous->next) = task.next;
  if (task.next != nullptr) task.next->previous = task.previous;
}

bool Worker::take_back_slowly(Task& task) {
  if (task.slot == Deque::no_slot) return false;
  if (task.slot == kept_slot) {
    drop_kept(task);
    return true;
  }
  Deque::Entry moved = 0;
  if (!deque_.claim(task.slot, moved)) return false;
  if (moved != 0) reinterpret_cast<Task*>(moved)->slot = task.slot;
  return true;
}

bool Worker::wait(Task& task, bool unless_stopped) {
  unsigned tries = 0;
  bool done = false;
  note_begin(FamilyTrace::Event::wait, task, {});
  while (!(done = Hand::done(core_, &task.state))) {
    if (unless_stopped && task.scope.stopped()) break;
    if (wanted()) attend();
    if (!leap(task, tries)) park_until(task, unless_stopped);
  }
  if (done && task.slot != Deque::no_slot) deque_.forget(task.slot);
  note_end(task);
  return done;
}

// False: the stack had better be parked.
bool Worker::leap(const Task& task, unsigned& tries) {
  if (has_ready() || handed_on_ != nullptr) return false;
  // It may be the next at an exclusive place, for which others wait.
  if (task.slot == Deque::no_slot && pool_.has_delegated()) return false;
  RemotePoller* const poller = RemotePoller::here();
  if (poller != nullptr) poller->poll();
  if (task.slot == Deque::no_slot) return look_away(task, poller, tries);
  machine::relax_processor();
  machine::Home taker = 0;
  const bool taken =
      Hand::taken(core_, const_cast<std::atomic<std::uint64_t>*>(&task.state), taker);
  if (!taken) return ++tries < short_tries;
  if (!may_park()) {
    // Delegated tasks have no creator here that would run them.
    if (pool_.has_delegated()) return false;
    sched_yield();
    return true;
  }
  Task* const other = steal_from(taker);
  if (other == nullptr) return ++tries < leap_tries;
  tries = 0;
  if (other->scope.within(task.scope)) {
    run_taken(*other);
    return true;
  }
  handed_on_ = other;  // WK2
  return false;
}

bool Worker::look_away(const Task& task, RemotePoller* poller, unsigned& tries) {
  if (tries == 0 && poller != nullptr && poller->has_woken()) give_way();
  const unsigned pauses = task.queued ? pauses_of_queued : pauses_of_far;
  for (unsigned i = 0; i < pauses; ++i) {
    machine::relax_processor();
    if (poller != nullptr && poller->poll()) break;
  }
  return ++tries < far_tries;
}

// The kernel often wakes a thread on the processor of the thread that wakes it, although another
// one is idle. So both give theirs away once: the waker before it waits for the woken one, and the
// woken one after its work.
void Worker::give_way() {
  using Cost = machine::YieldCost;
  const auto start = Cost::Clock::now();
  if (Cost::here().is_high(start)) return;
  sched_yield();
  Cost::here().note(start, Cost::Clock::now());
}

// WK3.
bool Worker::may_park() const {
  return awaiting_.size() < most_parked || Pool::blocked_threads().load() != 0;
}

void Worker::run_taken(Task& task) {
  Scope* const before = scope_;
  task.run(task, *this);
  scope_ = before;
}

void Worker::finish(Task& task) {
  note_end(task);
  Worker* const creator = task.creator;
  if (creator == nullptr) return Pool::finish_outside(task);
  Pool& pool = creator->pool_;
  // A pool of another place may end as soon as its last task is done.
  const bool elsewhere = &pool != &pool_;
  if (elsewhere) pool.pins.fetch_add(1);
  Hand::finish(core_, &task.state);
  if (creator != this && Rest::must_wake(core_, &creator->asleep_)) creator->wake();
  if (elsewhere) pool.pins.fetch_sub(1);
}

void Worker::run_from_loop(Task& task) {
  using Clock = std::chrono::steady_clock;
  from_loop_ = &task;
  const bool measured = idle_policy_.measures();
  const Clock::time_point start = measured ? Clock::now() : Clock::time_point();
  run_taken(task);
  from_loop_ = nullptr;
  if (measured) idle_policy_.worked(Clock::now() - start);
}

bool Worker::attend() {
  const bool active = alarm_.active();
  unsigned parts = 0;
  while (ranges_ != nullptr && pool_.idle.load() > deque_.untaken() && divide_range()) ++parts;
  if (deque_.own() != 0) {
    deque_.no_longer_wanted();
    // As long as others sleep that want tasks, a family is being stopped, or a trace is kept, each
    // step looks here. Those that are up ask again.
    if (pool_.hungry.load() != 0 || alarm_.active() || trace_ != nullptr) deque_.want();
    deque_.share(pool_.idle.load());
    // One for each part: those that sleep do not look again, and the next look here may be late.
    do
      if (pool_.hungry.load() != 0) pool_.rouse_one();
    while (parts-- > 1);
  } else if (!active && pool_.idle.load() == 0) {
    deque_.no_longer_wanted();
    if (pool_.idle.load() != 0 || alarm_.active() || trace_ != nullptr) deque_.want();
  }
  if (alarm_.heard()) poke_stopped();
  return active && scope_ != nullptr && scope_->stopped();
}

bool Worker::has_answer() {
  if (deque_.own() != 0 || alarm_.active()) return true;
  unsigned n = 0;
  for (const OpenRange* range = ranges_; range != nullptr && n < most_ranges_looked_at;
       range = range->outer, ++n)
    if (range->next != range->end && range->may_divide(*range)) return true;
  return false;
}

// The outermost range that has threads left: a part of it is likely to be the most work.
bool Worker::divide_range() {
  OpenRange* open[most_ranges_looked_at];
  unsigned n = 0;
  for (OpenRange* range = ranges_; range != nullptr && n < most_ranges_looked_at;
       range = range->outer)
    open[n++] = range;
  while (n != 0)
    if (OpenRange& range = *open[--n]; range.next != range.end && range.divide(range, *this))
      return true;
  return false;
}

// ---- Blocking -----------------------------------------------------------------------------------

void Worker::add_spare_strand() {
  free_numbers_.reserve(strands_.size() + 1);
  const bool anew = free_numbers_.empty();  // then the others have the numbers from 1 on
  const auto number = anew ? static_cast<unsigned>(strands_.size()) + 1 : free_numbers_.back();
  strands_.push_back(std::make_unique<Strand>(*this, pool_.settings().stack_bytes, number));
  if (!anew) free_numbers_.pop_back();
  spare_.push_back(strands_.back().get());
  stacks_.store(strands_.size(), std::memory_order_relaxed);
}

// After many threads have blocked at a time.
void Worker::free_spare_stacks() {
  if (spare_.size() <= most_parked) return;
  // The thread's own stack stays in use.
  const auto own = std::ranges::find(spare_, &*main_);
  if (own != spare_.end()) std::swap(*own, spare_.front());
  for (std::size_t i = most_parked; i < spare_.size(); ++i) {
    spare_[i]->dropped = true;
    free_numbers_.push_back(spare_[i]->number);  // there is room for all
  }
  spare_.resize(most_parked);
  std::erase_if(strands_, [](const auto& strand) { return strand->dropped; });
  stacks_.store(strands_.size(), std::memory_order_relaxed);
}

void Worker::prepare_to_block() {
  if (spare_.empty()) add_spare_strand();
}

bool Worker::block(Blocked& blocked) {
  blocked.strand = running_;
  blocked_.push_back(&blocked);
  Pool::blocked_threads().fetch_add(1);
  // An alarm that was heard before the thread was listed.
  const bool stopped = alarm_.active() && scope_ != nullptr && scope_->stopped();
  if (!stopped) {
    counts_.blocked.add();
    if (trace_ != nullptr) trace_->begin(stack(), FamilyTrace::Event::read, &blocked, {});
    blocked.parked = true;
    suspend();
    blocked.parked = false;
    if (trace_ != nullptr) trace_->end(stack(), &blocked, 0);
  }
  Pool::blocked_threads().fetch_sub(1);
  std::erase(blocked_, &blocked);
  return blocked.delivered;
}

void Worker::await_delivery(Blocked& blocked) {
  receive();
  while (!blocked.delivered) {
    blocked.parked = true;
    suspend();
  }
}

void Worker::poke_stopped() {
  for (Blocked* const blocked : blocked_) {
    const Scope* const scope = blocked->strand->scope;
    if (!blocked->parked || scope == nullptr || !scope->stopped()) continue;
    blocked->parked = false;
    ready_.push_back(blocked->strand);
  }
  for (std::size_t i = awaiting_.size(); i-- > 0;)
    if (awaiting_[i]->awaited->queued != 0 && awaiting_[i]->awaited->scope.stopped())
      end_awaiting(i);
}

void Worker::receive() {
  for (std::uint64_t first = Mail::take(core_, &inbox_, Blocked::link_of); first != 0;) {
    Blocked& blocked = *Blocked::of(first);
    first = blocked.next.load(std::memory_order_relaxed);  // this worker's own since the take
    blocked.delivered = true;
    if (!blocked.parked) continue;
    blocked.parked = false;
    ready_.push_back(blocked.strand);
  }
}

void Worker::look_at_awaited() {
  for (std::size_t i = 0; i < awaiting_.size();) {
    Strand& strand = *awaiting_[i];
    if (strand.awaited->state.load(std::memory_order_acquire) != Hand::done_value) {
      ++i;
      continue;
    }
    end_awaiting(i);
  }
}

void Worker::end_awaiting(std::size_t i) {
  awaiting_[i]->awaited = nullptr;
  ready_.push_back(awaiting_[i]);
  awaiting_.erase(awaiting_.begin() + static_cast<std::ptrdiff_t>(i));
}

bool Worker::has_ready() {
  receive();
  look_at_awaited();
  return !ready_.empty();
}

Strand* Worker::next_ready() {
  if (!has_ready()) return nullptr;
  Strand* const next = ready_.front();
  ready_.pop_front();
  return next;
}

// False: no memory for a stack to go on with.
bool Worker::may_suspend() try {
  if (!has_ready()) prepare_to_block();
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

// Without a further stack this one has to do. At a place with one worker a task that the awaited
// one has delegated has no other either (WK2).
void Worker::go_on_here(const Task& awaited) {
  Task* task = std::exchange(handed_on_, nullptr);
  if (task == nullptr && pool_.has_delegated()) {
    task = pool_.delegated_within(awaited.scope);
    if (task != nullptr) begin_delegated(*task);
  }
  if (task != nullptr)
    run_taken(*task);
  else
    sched_yield();
}

void Worker::park_until(const Task& task, bool unless_stopped) {
  if (!may_suspend()) return go_on_here(task);
  running_->awaited = &task;
  awaiting_.push_back(running_);
  // An alarm that was heard before the stack was listed. Behind this look another one comes first.
  if (unless_stopped && task.scope.stopped()) end_awaiting(awaiting_.size() - 1);
  counts_.parked.add();
  suspend();
}

// The caller has listed the running strand somewhere, and there is a spare one.
void Worker::suspend() {
  Strand* next = next_ready();
  if (next == running_) return;
  if (next == nullptr) {
    next = spare_.back();
    spare_.pop_back();
  }
  switch_to(*next);
}

void Worker::switch_to(Strand& next) {
  Strand& self = *running_;
  self.scope = scope_;
  self.ranges = ranges_;
  running_ = &next;
  scope_ = next.scope;
  ranges_ = next.ranges;
  self.fibre.switch_to(next.fibre);
}

bool Worker::run_beside(Task& task) {
  if (handed_on_ != nullptr) return false;  // another stack has gone on before loop() took it
  try {
    prepare_to_block();
  } catch (const std::bad_alloc&) {
    return false;
  }
  handed_on_ = &task;
  ready_.push_front(running_);
  Strand& beside = *spare_.back();
  spare_.pop_back();
  switch_to(beside);
  return true;
}

void Worker::leave_to(Strand& next) {
  spare_.push_back(running_);
  scope_ = nullptr;
  switch_to(next);
}

// ---- Any thread ---------------------------------------------------------------------------------

void Worker::wake() {
  core_.fetch_add(signal_, 1);
  core_.notify(core_.self());
  if (number() != 0) return;
  if (RemotePoller* const poller = RemotePoller::here()) poller->wake();
}

bool Worker::rouse() {
  if (asleep_.exchange(0) == 0) return false;
  wake();
  return true;
}

void Worker::deliver(Blocked& blocked) {
  Mail::put(core_, &inbox_, Blocked::number_of(blocked), &blocked.next);
  wake();
}

void Blocked::deliver() {
  if (worker != nullptr)
    worker->deliver(*this);
  else
    Pool::deliver_outside(*this);
}

// ---- The worker's thread ------------------------------------------------------------------------

void Strand::begin(void* self) {
  auto& strand = *static_cast<Strand*>(self);
  strand.worker.loop();
}

const char* Worker::explain_fault(const void* address) {
  const Worker* const worker = here_;
  if (worker == nullptr || worker->running_ == nullptr) return "";
  if (worker->running_->fibre.is_overflow(address))
    return ": the stack of a family's thread has overflowed (PoolSettings::stack_bytes, "
           "TOMBOLO_SVP_STACK)";
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (worker->running_ == &*worker->main_ && at < worker->thread_guard_ &&
      at >= worker->thread_guard_ - worker->thread_guard_bytes_)
    return ": the stack of a worker has overflowed, on which threads of families run (ulimit -s)";
  return "";
}

// C libraries differ in whether the pages that are protected count as part of the stack.
void Worker::find_thread_guard() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;  // no sentence at an overflow
  void* lowest = nullptr;
  std::size_t bytes = 0;
  std::size_t guard = 0;
  if (pthread_attr_getstack(&attributes, &lowest, &bytes) == 0 &&
      pthread_attr_getguardsize(&attributes, &guard) == 0) {
    thread_guard_ = reinterpret_cast<std::uintptr_t>(lowest) + guard;
    thread_guard_bytes_ = 2 * guard;
  }
  (void)pthread_attr_destroy(&attributes);
}

void Worker::work() {
  // Without one, an overflow of a stack ends the program all the same, with no sentence.
  (void)host::ensure_alternate_stack().ok();
  find_thread_guard();
  here_ = this;
  main_.emplace(*this);
  running_ = &*main_;
  loop();
  spare_.clear();
  strands_.clear();
  here_ = nullptr;
}

void Worker::loop() {
  for (;;) {
    if (wanted()) attend();
    Strand* const next = handed_on_ == nullptr ? next_ready() : nullptr;
    if (next != nullptr) {
      idle_policy_.end_wait();
      leave_to(*next);
    } else if (Task* const task = find_task()) {
      no_longer_idle();
      idle_policy_.end_wait();
      run_from_loop(*task);
    } else if (pool_.stopping()) {
      if (running_ == &*main_) break;
      std::erase(spare_, &*main_);
      leave_to(*main_);
    } else {
      if (!idle_policy_.waits()) idle_policy_.begin_wait(awaited());
      idle();
    }
  }
  no_longer_idle();
}

Task* Worker::own_task() {
  Task* task = reinterpret_cast<Task*>(deque_.pop());
  if (task == nullptr && kept_ != nullptr) {
    task = kept_;
    drop_kept(*task);
  }
  if (task == nullptr) return nullptr;
  task->slot = Deque::no_slot;
  Hand::begin(core_, &task->state);
  return task;
}

Task* Worker::steal_from(machine::Home victim) {
  auto* const task = reinterpret_cast<Task*>(deque_.steal(victim));
  if (task == nullptr) return nullptr;
  Hand::begin(core_, &task->state);
  counts_.stolen.add();
  note(FamilyTrace::Event::steal, {.range = {.start = victim}, .place = place()});
  return task;
}

Task* Worker::steal_from_any() {
  const auto others = static_cast<std::uint64_t>(core_.cores()) - 1;
  if (others == 0) return nullptr;
  next_victim_ = next_victim_ * 6364136223846793005u + 1442695040888963407u;
  const std::uint64_t first = (next_victim_ >> 33) % others;
  for (std::uint64_t i = 0; i < others; ++i) {
    const auto victim =
        static_cast<machine::Home>((core_.self() + 1 + (first + i) % others) % core_.cores());
    if (Task* const task = steal_from(victim)) return task;
  }
  return nullptr;
}

Task* Worker::delegated_task() {
  Task* const task = pool_.has_delegated() ? pool_.delegated() : nullptr;
  if (task != nullptr) begin_delegated(*task);
  return task;
}

void Worker::begin_delegated(Task& task) {
  Hand::begin(core_, &task.state);
  counts_.delegated.add();
}

Task* Worker::find_task() {
  if (handed_on_ != nullptr) return std::exchange(handed_on_, nullptr);
  if (Task* const task = own_task()) return task;
  if (Task* const task = delegated_task()) return task;
  return idle_policy_.look() ? steal_from_any() : nullptr;
}

void Worker::no_longer_idle() {
  if (!is_idle_) return;
  is_idle_ = false;
  pool_.idle.fetch_sub(1);
}

void Worker::idle() {
  if (!is_idle_) {
    is_idle_ = true;
    pool_.idle.fetch_add(1);
  }
  RemotePoller* const poller = RemotePoller::here();
  if (poller != nullptr && poller->poll()) return;
  if (poller != nullptr && std::exchange(has_slept_, false)) return give_way();
  if (!idle_policy_.wants_sleep()) {
    const std::uint32_t steps = idle_policy_.steps_to_look();
    for (std::uint32_t i = 0; i < steps && (i == 0 || idle_policy_.polls()); ++i) {
      if (i != 0 && poller != nullptr && poller->poll()) return;
      idle_policy_.step();
    }
    return;
  }
  fall_asleep(number() == 0 ? poller : nullptr);
}

IdlePolicy::For Worker::awaited() const {
  // The others do not sleep at the poller.
  const RemotePoller* const poller = RemotePoller::here();
  const bool there = number() == 0 && poller != nullptr && poller->wakes_at_once();
  return there ? IdlePolicy::For::processes : IdlePolicy::For::workers;
}

void Worker::fall_asleep(RemotePoller* poller) {
  free_spare_stacks();
  const std::uint64_t seen = core_.load(signal_);
  const bool naps = idle_policy_.sleeps(seen);
  Rest::announce(core_, &asleep_);
  pool_.sleeping.fetch_add(1);
  if (!naps) pool_.hungry.fetch_add(1);
  if (!has_something_to_do(naps)) sleep(seen, naps, poller);
  if (!naps) pool_.hungry.fetch_sub(1);
  pool_.sleeping.fetch_sub(1);
  Rest::end(core_, &asleep_);
  has_slept_ = true;
  idle_policy_.wakes(core_.load(signal_));
}

void Worker::sleep(std::uint64_t seen, bool naps, RemotePoller* poller) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = naps ? Clock::now() + IdlePolicy::nap : Clock::time_point::max();
  const auto signalled = [&](std::uint64_t v) {
    return v != seen || (naps && Clock::now() >= end);
  };
  if (poller == nullptr)
    (void)core_.wait_until(signal_, signalled).ok();  // as above
  else
    poller->sleep([&] { return signalled(core_.load(signal_)); });
}

bool Worker::has_something_to_do(bool naps) {
  if (pool_.stopping() || pool_.has_delegated() || alarm_.pending() || has_ready()) return true;
  if (kept_ != nullptr || deque_.untaken() != 0) return true;
  for (machine::Home other = 0; other < core_.cores(); ++other) {
    if (other == core_.self()) continue;
    if (!naps) deque_.ask(other);
    if (deque_.shares(other)) return true;
  }
  return false;
}

}  // namespace tombolo::svp
