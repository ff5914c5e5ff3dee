// SPDX-License-Identifier: Apache-2.0
#include "simulator/kernel/simulation.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace tombolo::simulator {
namespace {

// How far a core runs ahead before it looks at limits and the interrupt flag.
constexpr Duration far = Duration::milliseconds(1);
constexpr Time before_start = Time::after_start(Duration::ticks(-1));
// Waiting cores that a report of a deadlock names.
constexpr int named = 64;

std::uint64_t word_number(Address a) { return a.byte() / 8; }

std::string what_was_thrown(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

std::string label(const Core& core) {
  return fmt::format("core {} ({})", core.id().index(), core.name());
}

}  // namespace

// ---- Core ---------------------------------------------------------------------------------------

Core::Core(Simulation& simulation, CoreId id, std::string name, std::uint64_t seed,
           std::function<void(Core&)> program)
    : simulation_(simulation),
      id_(id),
      random_(Random::stream(seed, id.index())),
      name_(std::move(name)),
      program_(std::move(program)) {}

void Core::body(void* core) { static_cast<Core*>(core)->run_program(); }

void Core::run_program() {
  started_ = true;
  Core* next = nullptr;
  try {
    program_(*this);
    await_turn();
    if (!cancelled_) {
      simulation_.record(Action::finish, id_, now_, 0);
      finished_ = true;
      next = simulation_.choose();
    }
  } catch (const Cancelled&) {
  } catch (...) {
    if (!cancelled_) simulation_.stop_for_exception(label(*this), std::current_exception());
  }
  finished_ = true;
  fibre_->finish(next != nullptr ? *next->fibre_ : *simulation_.main_);
}

void Core::advance_far() {
  check_at_ = Time::never();
  if (cancelled_) return;
  if (simulation_.check_interrupt() || now_ > simulation_.options_.time_limit) {
    wait_for_turn();
  } else {
    check_at_ = std::min(now_ + far, simulation_.options_.time_limit);
  }
}

void Core::leave_if_cancelled() const {
  if (cancelled_ && std::uncaught_exceptions() == 0) throw Cancelled();
}

bool Core::wait_for_turn() {
  if (!cancelled_) simulation_.hand_over(*this, now_);
  leave_if_cancelled();
  return !cancelled_;
}

bool Core::park(Address word, const char* what, Time deadline) {
  if (!has_turn() && !wait_for_turn()) return false;
  const Time since = now_;
  word_ = word;
  what_ = what;
  parked_ = true;
  Core*& first = simulation_.parked_at_[word_number(word)];
  next_parked_ = std::exchange(first, this);
  ++simulation_.parked_;
  simulation_.record(Action::park, id_, now_, word.byte());
  simulation_.hand_over(*this, std::max(now_, deadline));
  leave_if_cancelled();
  idle_ += now_ - since;
  return !std::exchange(expired_, false);
}

// ---- Simulation: turns --------------------------------------------------------------------------

Simulation::Simulation(Options options) : options_(std::move(options)), limit_(Time::never()) {
  TOMBOLO_CHECK(options_.time_limit <= latest_time_limit, "a time limit of {}; {} at most",
                to_string(options_.time_limit), to_string(latest_time_limit));
  check_events_at_ = std::min(events_between_checks, options_.event_limit + 1);
}

CoreId Simulation::spawn(std::string name, std::function<void(Core&)> program) {
  if (stopped_) return no_core;
  TOMBOLO_CHECK(!started_ || running_ != nullptr, "spawn(\"{}\") after run()", name);
  check_may_act("spawn()");
  const CoreId id(cores());
  cores_.push_back(
      std::make_unique<Core>(*this, id, std::move(name), options_.seed, std::move(program)));
  if (started_ && !begin(*cores_.back())) return no_core;
  return id;
}

// The turn stays with the core that calls, whose number is smaller. False: the run has ended, and
// that core is in a destructor while an exception unwinds it; else it leaves by Cancelled.
bool Simulation::begin(Core& core) {
  if (!make_fibre(core)) {
    running_->await_turn();
    return false;
  }
  core.now_ = now();
  turns_.grow(cores() + 1);
  turns_.set(entrant(core), core.now_);
  set_limit();
  return true;
}

RunResult Simulation::run() {
  TOMBOLO_CHECK(!started_, "a simulation runs once");
  started_ = true;
  main_.emplace();
  if (std::all_of(cores_.begin(), cores_.end(),
                  [this](const auto& core) { return make_fibre(*core); })) {
    turns_ = TurnTree(cores() + 1);
    turns_.set(events_entry, queue_.first());
    for (const auto& core : cores_) turns_.set(entrant(*core), core->now_);
    if (Core* first = choose()) main_->switch_to(*first->fibre_);
    cancel_unfinished();
  }
  running_ = nullptr;
  result_.events = events_;
  result_.digest = digest_.value();
  return result_;
}

// False: there is no memory for it, and the run has ended.
bool Simulation::make_fibre(Core& core) {
  try {
    core.fibre_ = std::make_unique<host::Fibre>(options_.stack_bytes, &Core::body, &core);
  } catch (const std::bad_alloc&) {
    stop(Ending::no_memory, Status::no_memory(fmt::format("{} stacks of {} bytes for the cores",
                                                          cores(), options_.stack_bytes)));
  }
  return !stopped_;
}

// Takes the turn from `from`, whose next one is at `until`; returns when that has come, or when the
// run has ended and `from` is to unwind.
void Simulation::hand_over(Core& from, Time until) {
  turns_.set(entrant(from), until);
  Core* next = choose();
  if (next != &from) from.fibre_->switch_to(next != nullptr ? *next->fibre_ : *main_);
}

// Runs the events that are due and gives the turn to the earliest core; null when the run is over.
Core* Simulation::choose() {
  running_ = nullptr;
  while (!stopped_) {
    const TurnTree::Entry first = turns_.first();
    if (first.time == Time::never()) {
      end_of_turns();
      return nullptr;
    }
    if (first.time > options_.time_limit) {
      stop(Ending::time_limit,
           Status::stopped(fmt::format("the limit of {} of virtual time was reached",
                                       to_string(options_.time_limit))));
      return nullptr;
    }
    time_ = first.time;
    if (first.entrant == events_entry) {
      run_event();
      continue;
    }
    Core& core = *cores_[first.entrant - 1];
    core.now_ = first.time;
    if (core.parked_) {
      forget_parked(core);
      core.expired_ = true;
      record(Action::expire, core.id_, core.now_, core.word_.byte());
    }
    turns_.set(first.entrant, Time::never());
    running_ = &core;
    set_limit();
    return &core;
  }
  return nullptr;
}

void Simulation::set_limit() {
  if (stopped_) {
    limit_ = before_start;
    return;
  }
  const TurnTree::Entry next = turns_.first();
  limit_ = options_.time_limit;
  if (next.time <= limit_) {
    limit_ = next.entrant > entrant(*running_) ? next.time : next.time - Duration::ticks(1);
  }
}

// ---- Simulation: events, waiting ----------------------------------------------------------------

void Simulation::insert(Time time, const Event& event) {
  if (stopped_) return;
  check_may_act("at()");
  TOMBOLO_CHECK(time >= now() && time < Time::never(), "an event for {}, and it is {}",
                to_string(time), to_string(now()));
  queue_.push(time, event);
  turns_.set(events_entry, queue_.first());
  if (running_ != nullptr) set_limit();
}

void Simulation::run_event() {
  const Event event = queue_.pop();
  turns_.set(events_entry, queue_.first());
  record(Action::event, no_core, time_, events_run_++);
  try {
    event(time_);
  } catch (...) {
    stop_for_exception("an event", std::current_exception());
  }
}

void Simulation::wake_parked(Address first, std::size_t bytes, Time time) {
  if (stopped_) return;
  TOMBOLO_CHECK(bytes > 0 && time >= now(), "wake of {} bytes for {}, and it is {}", bytes,
                to_string(time), to_string(now()));
  const std::uint64_t last = word_number(first + (bytes - 1));
  for (std::uint64_t word = word_number(first); word <= last; ++word) {
    const auto at = parked_at_.find(word);
    if (at == parked_at_.end()) continue;
    while (Core* core = at->second) {
      forget_parked(*core);
      const Time then = std::min(time, turns_.time_of(entrant(*core)));
      record(Action::wake, core->id_, then, core->word_.byte());
      turns_.set(entrant(*core), then);
    }
  }
  if (running_ != nullptr) set_limit();
}

void Simulation::forget_parked(Core& core) {
  Core** link = &parked_at_[word_number(core.word_)];
  while (*link != &core) link = &(*link)->next_parked_;
  *link = core.next_parked_;
  core.parked_ = false;
  --parked_;
}

// ---- Simulation: the end ------------------------------------------------------------------------

void Simulation::stop(Ending ending, Status status) {
  if (stopped_) return;
  stopped_ = true;
  limit_ = before_start;
  result_.ending = ending;
  result_.status = std::move(status);
  result_.end = now();
}

void Simulation::stop_for_exception(const std::string& who, const std::exception_ptr& exception) {
  stop(Ending::exception, Status::stopped(fmt::format("{} at {} threw: {}", who, to_string(now()),
                                                      what_was_thrown(exception))));
}

bool Simulation::check_interrupt() {
  if (options_.interrupt != nullptr && options_.interrupt->load(std::memory_order_relaxed)) {
    stop(Ending::interrupted,
         Status::stopped(fmt::format("interrupted at {} of virtual time", to_string(now()))));
  }
  return stopped_;
}

void Simulation::check_events() {
  if (events_ > options_.event_limit) {
    stop(Ending::event_limit,
         Status::stopped(fmt::format("the limit of {} events was reached at {}",
                                     options_.event_limit, to_string(now()))));
  }
  check_interrupt();
  check_events_at_ = std::min(events_ + events_between_checks, options_.event_limit + 1);
}

void Simulation::end_of_turns() {
  std::string waiting;
  int count = 0;
  Time last = time_;
  for (const auto& core : cores_) {
    last = std::max(last, core->now_);
    if (core->finished_) continue;
    if (++count > named) continue;
    waiting += fmt::format("\n  {} since {} for {} at {:#x}", label(*core), to_string(core->now_),
                           core->what_, core->word_.byte());
  }
  if (count == 0) {
    result_.end = last;
    return;
  }
  if (count > named) waiting += fmt::format("\n  and {} more", count - named);
  stop(Ending::deadlock, Status::stopped(fmt::format("deadlock: {} of {} cores wait for ever:{}",
                                                     count, cores(), waiting)));
  result_.end = last;
}

void Simulation::cancel_unfinished() {
  for (const auto& core : cores_) {
    core->cancelled_ = true;
    if (core->started_ && !core->finished_ && options_.unfinished == Unfinished::unwind) {
      main_->switch_to(*core->fibre_);
    }
    core->fibre_.reset();
  }
}

}  // namespace tombolo::simulator
