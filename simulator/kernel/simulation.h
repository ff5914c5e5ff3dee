// SPDX-License-Identifier: Apache-2.0
// Purpose: the discrete-event kernel: programs that run as cores in virtual time, each a fibre.
//
//   Simulation simulation({.seed = 7});
//   simulation.spawn("writer", [&](Core& core) {
//     core.advance(clock.cycles(100));   // own work: invisible to others, nothing is switched
//     core.await_turn();                 // now all that happens earlier has happened
//     flag = 1;                          // shared state is a plain variable
//     simulation.wake(flag);            // a core that waits for a store to it goes on
//   });
//   simulation.spawn("reader", [&](Core& core) {
//     core.wait_until(flag, "the flag", [&] { return flag == 1; });
//   });
//   RunResult result = simulation.run();
//
// How it works. Each core has a clock of its own. Work that others cannot see only advances it, so
// a core may run ahead of the rest. Before it touches shared state (a word, a Server, memory,
// post, wake) it calls await_turn(), which returns when the core is the earliest of all. If it
// already is, that is one comparison with the time of the next in line; else the fibres switch,
// directly from one to the other.
//
// Invariants:
//   SK1 Turns and events happen in order of time. At equal times events come first, in the order
//       in which they were posted, then cores by number; a core that is woken at that time and has
//       a smaller number comes next.
//   SK2 A turn lasts until the core advances past the next in line, waits or ends: all its
//       actions within it are atomic.
//   SK3 A run is a function of the programs, the options and the seed: nothing depends on addresses
//       of objects, hash orders or the host's time. Equal runs have equal digests. Only `interrupt`
//       may end a run at another place.
//   SK4 A parked core is woken at the time of the first later wake() of its word, or at its
//       deadline. If all that are left are parked for good, the run ends and names each waiting
//       core with its reason.
//   SK5 Errors (deadlock, an exception in a program, a limit, an interruption, no memory for
//       stacks) end the run with a Status; all that the programs did so far stays.
//       Misuse of the kernel stops the process (TOMBOLO_CHECK).
//   SK6 When a run ends early, the programs that are not done are unwound: each leaves the call
//       that it waits in by an exception of type Cancelled. While it unwinds, its calls to the
//       kernel do nothing. They are unwound in the order of their numbers, and a stack goes when
//       its program is unwound: destructors leave objects on other stacks alone. A destructor that
//       calls the kernel must be noexcept(false), or the run be made with Unfinished::abandon,
//       which frees the stacks without unwinding them.
// Thread safety: one simulation belongs to one thread at a time; different ones are independent.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "base/status.h"
#include "host/fibres/fibre.h"
#include "simulator/kernel/event_queue.h"
#include "simulator/kernel/identifiers.h"
#include "simulator/kernel/time.h"
#include "simulator/kernel/trace.h"
#include "simulator/kernel/turn_tree.h"

namespace tombolo::simulator {

class Simulation;

// Thrown through a program whose run has ended (SK6). A program that catches everything throws it
// again.
struct Cancelled {};

enum class Unfinished : std::uint8_t { unwind, abandon };

enum class Ending : std::uint8_t {
  finished,     // all programs returned and no event is left
  interrupted,  // the interrupt flag was set
  deadlock,     // SK4
  exception,    // a program or an event threw
  time_limit,
  event_limit,
  no_memory,  // for the stacks
};

// The largest limit on virtual time.
inline constexpr Time latest_time_limit = Time::after_start(Duration::seconds(14'400));

struct Options {
  std::uint64_t seed = 1;
  std::size_t stack_bytes = std::size_t{256} * 1024;  // of each core; occupied as far as it is used
  Time time_limit = latest_time_limit;
  std::uint64_t event_limit = ~std::uint64_t{0} - 1;
  // Looked at now and then, if not null: the run ends when it is true.
  const std::atomic<bool>* interrupt = nullptr;
  Tracer tracer = nullptr;
  Unfinished unfinished = Unfinished::unwind;
};

struct RunResult {
  Ending ending = Ending::finished;
  Status status;  // ok if finished
  Time end;       // of the last core or event; of the stop if the run was stopped
  std::uint64_t events = 0;
  std::uint64_t digest = 0;
};

// A core as its program sees it. It is used from that program only.
class Core {
 public:
  // The longest that a clock may be advanced in one call.
  static constexpr Duration longest_advance = Duration::seconds(3600);

  Core(Simulation& simulation, CoreId id, std::string name, std::uint64_t seed,
       std::function<void(Core&)> program);

  CoreId id() const { return id_; }
  const std::string& name() const { return name_; }
  Time now() const { return now_; }
  Duration idle() const { return idle_; }  // spent in pause and parked
  Random& random() { return random_; }     // a stream of its own

  // Own work, invisible to others.
  void advance(Duration d);
  void advance_to(Time t) {
    if (t > now_) advance(t - now_);
  }
  void pause(Duration d) {
    idle_ += d;
    advance(d);
  }

  void await_turn();
  bool has_turn() const;

  // Waits in its turn for a store to the 8-byte word around `word`. False: the deadline passed.
  // `what` names the reason in reports, and outlives the wait.
  bool park(Address word, const char* what, Time deadline = Time::never());

  // Waits until predicate() is true. It is evaluated in turns of this core: now, and after each
  // wake of the word. False: it was false at the deadline.
  template <class Predicate>
  bool wait_until(Address word, const char* what, Predicate&& predicate,
                  Time deadline = Time::never()) {
    while (true) {
      await_turn();
      if (predicate()) return true;
      if (now_ >= deadline || cancelled_) return false;
      park(word, what, deadline);
    }
  }

  // Lets function(Time) happen `delay` from now without this core; it may not wait for anything.
  template <class Function>
  void post(Duration delay, const Function& function);

  // Puts a value into the digest and the trace.
  void note(std::uint64_t value);

 private:
  friend class Simulation;

  static void body(void* core);
  void run_program();
  void advance_far();
  bool wait_for_turn();
  void leave_if_cancelled() const;

  Simulation& simulation_;
  Time now_;
  Time check_at_;  // advance() looks around beyond it
  CoreId id_;
  bool started_ = false;
  bool finished_ = false;
  bool cancelled_ = false;
  bool parked_ = false;
  bool expired_ = false;
  Address word_;
  const char* what_ = nullptr;
  Core* next_parked_ = nullptr;  // at the same word
  Duration idle_;
  Random random_;
  std::string name_;
  std::function<void(Core&)> program_;
  std::unique_ptr<host::Fibre> fibre_;
};

class Simulation {
 public:
  explicit Simulation(Options options = {});
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Before run(), or by a core in its turn: then the new one begins at that time. Cores are
  // numbered from 0 in the order of these calls. no_core: the run has ended early, also for want
  // of a stack.
  CoreId spawn(std::string name, std::function<void(Core&)> program);
  RunResult run();

  const Core& core(CoreId id) const { return *cores_.at(id.index()); }
  std::uint32_t cores() const { return static_cast<std::uint32_t>(cores_.size()); }

  // The core whose program runs; null: none does.
  const Core* running() const { return running_; }
  // The run has ended early: programs are unwound (SK6).
  bool stopped() const { return stopped_; }
  // The time of the event or of the core that has the turn.
  Time now() const { return running_ != nullptr ? running_->now_ : time_; }

  // From a core in its turn, an event, or before the run. `time` is not in the past.
  template <class Function>
  void at(Time time, const Function& function) {
    insert(time, Event(function));
  }

  // The bytes were stored to: cores parked at a word among them go on, at `time`.
  void wake(Address first, std::size_t bytes, Time time) {
    check_may_act("wake()");
    if (parked_ != 0) wake_parked(first, bytes, time);
  }
  void wake(Address word) { wake(word, 8, now()); }

 private:
  friend class Core;

  static constexpr std::uint64_t events_between_checks = 1024;
  static constexpr std::uint32_t events_entry = 0;  // their place in the tree; cores follow
  static std::uint32_t entrant(const Core& core) { return core.id_.index() + 1; }

  void record(Action action, CoreId core, Time time, std::uint64_t value) {
    const TraceRecord event{action, core, time, value};
    digest_.add(event);
    if (options_.tracer) [[unlikely]]
      options_.tracer(event);
    if (++events_ >= check_events_at_) [[unlikely]]
      check_events();
  }

  void insert(Time time, const Event& event);
  void wake_parked(Address first, std::size_t bytes, Time time);
  void forget_parked(Core& core);
  void hand_over(Core& from, Time until);
  Core* choose();
  void run_event();
  void set_limit();
  void check_events();
  bool check_interrupt();
  void stop(Ending ending, Status status);
  void stop_for_exception(const std::string& who, const std::exception_ptr& exception);
  void end_of_turns();
  bool make_fibre(Core& core);
  bool begin(Core& core);
  void cancel_unfinished();
  void check_may_act(const char* what) const;

  Options options_;
  Time limit_;  // up to and with it the running core has the turn
  Core* running_ = nullptr;
  std::uint64_t events_ = 0;
  std::uint64_t check_events_at_ = 0;
  Digest digest_;
  std::uint32_t parked_ = 0;
  Time time_;
  TurnTree turns_{0};
  EventQueue queue_;
  std::uint64_t events_run_ = 0;
  std::unordered_map<std::uint64_t, Core*> parked_at_;  // by word; looked up, never walked through
  std::vector<std::unique_ptr<Core>> cores_;
  std::optional<host::Fibre> main_;  // where run() was called
  bool started_ = false;
  bool stopped_ = false;
  RunResult result_;
};

inline void Core::advance(Duration d) {
  TOMBOLO_CHECK(static_cast<std::uint64_t>(d.in_ticks()) <=
                    static_cast<std::uint64_t>(longest_advance.in_ticks()),
                "{}: advance by {} ticks", name_, d.in_ticks());
  now_ += d;
  if (now_ > check_at_) [[unlikely]]
    advance_far();
}

inline void Simulation::check_may_act(const char* what) const {
  TOMBOLO_CHECK(running_ == nullptr || running_->has_turn() || stopped_,
                "core {} ({}) at {} calls {} without having the turn", running_->id_.index(),
                running_->name_, to_string(running_->now_), what);
}

inline bool Core::has_turn() const { return now_ <= simulation_.limit_; }

inline void Core::await_turn() {
  if (!has_turn() && !wait_for_turn()) return;
  simulation_.record(Action::turn, id_, now_, 0);
}

template <class Function>
void Core::post(Duration delay, const Function& function) {
  await_turn();
  if (!cancelled_) simulation_.at(now_ + delay, function);
}

inline void Core::note(std::uint64_t value) {
  if (!cancelled_) simulation_.record(Action::note, id_, now_, value);
}

}  // namespace tombolo::simulator
