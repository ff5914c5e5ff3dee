// SPDX-License-Identifier: Apache-2.0
// Purpose: one execution of a program on the explored machine, steered from outside: cores are
// fibres that stop before each operation that others may notice or that has several outcomes, and
// everything that the rules R1 to R6 leave open is a Transition that the caller chooses.
//
//   Run run(program, bounds);
//   run.restart();
//   while (run.enabled(choices)) run.apply(pick(choices));
//
// A store needs no turn: it is in its core's buffer until a transition takes it to memory. Neither
// does a fence or drain with nothing to wait for.
//
// Open choices: the core that steps next; when a store leaves its core's buffer (R3); the version
// of a line that a read or the fetch of a write sees (R1); when a written line is evicted, within
// `Bounds::evictions`, taking its stale neighbours along (R1, R2); when and in which order
// write-throughs reach memory before drain. Fences, atomics and drain wait for the operations that
// they order; a fence of another core, for the stores of that core from before its last step: that
// fence may have been before those that follow the step, which are in the buffer at once.
//
// Loops that wait would make runs endless. A core that pauses goes on only when something that it
// has looked at since its last pause is different now, or was before a store of its own came over
// it: otherwise it would see the same again. This leaves out further failing attempts that others
// could notice; `Bounds::retries` allows so many per core. After `Bounds::pauses` pauses a core's
// pauses last until no other core can step. A core whose last `Bounds::loads` operations were loads
// of one word with one value does another only when the value has changed, whether that is a loop
// or not. If no core can step at all, each core that is held back so may go on, in any choice; when
// it has done and seen the same, at the same places, three times, or loaded so nine times, it is a
// deadlock.
//
// R6 is a duty of the program, and its breach a failure: a wait_until for a word of another home at
// once, a change without notify at the end.
//
// Invariants: RU1 a run depends on its program and the transitions applied, on nothing else.
//             RU2 the next step of a core depends on the results of its operations; `key` is the
//                 fingerprint of these for each core, and of all memory.
//             RU3 each_object() names all shared words and lines that a step reads or changes. The
//                 operations without a turn that follow it belong to the step, and concern the core
//                 alone.
// Thread safety: none; a run and all its fibres belong to the thread that made it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/fibres/fibre.h"
#include "litmus/explorer/bounds.h"
#include "litmus/explorer/memory.h"
#include "litmus/explorer/private_memory.h"
#include "litmus/explorer/program.h"
#include "litmus/explorer/transition.h"

namespace tombolo::litmus {

// Thrown by a fibre to leave a program that is given up.
struct GivenUp {};

// The next operation of a core.
struct Operation {
  enum class Kind : std::uint8_t {
    load,
    store,
    atomic,
    fence,
    fence_other,  // of the core `other`, and the own one
    wait,
    pause,  // sync words
    read,
    write,
    write_through,
    publish,
    refresh,
    drain  // data
  };
  Kind kind = Kind::pause;
  std::size_t word = 0;
  machine::Home other = 0;
  std::uint32_t line = 0;
  LineMask mask = 0;      // of the line
  bool compares = false;  // an atomic that changes nothing unless it finds `expected`
  std::uint64_t expected = 0;
  bool (*holds)(void*, std::uint64_t) = nullptr;  // of a wait
  void* predicate = nullptr;
};

class Run {
 public:
  Run(Program& program, const Bounds& bounds);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // From the outside -----------------------------------------------------------------------------

  // To the beginning of the program. The rest of the last execution is given up.
  void restart();
  // False if there is nothing to choose: all cores have ended, or none can go on.
  bool enabled(std::vector<Transition>& choices);
  void apply(const Transition& transition);
  bool ended() const;
  // Whether the order of two transitions of different processes that are both possible now makes a
  // difference. Never false if it does.
  bool dependent(const Transition& a, const Transition& b) const;
  // The only choice there is now, and the same later, whatever the others do before it.
  bool is_forced(const Transition& transition) const;
  std::uint64_t key() const;
  // Since this object was made: the bounds on evictions, pauses, retries, loads and preemptions
  // that have kept enabled() from telling a choice.
  const BoundsMet& met() const { return met_; }
  // The failure; empty if there is none.
  const std::string& failure() const { return failure_; }
  // The end: the program's outcome in words. May fail.
  std::string outcome();
  // Called with a sentence for each transition from now on.
  void tell(std::function<void(const std::string&)> listener) { listener_ = std::move(listener); }
  std::string where_everybody_is() const;

  // For the explored machine's cores -------------------------------------------------------------

  const Memory& memory() const { return memory_; }
  std::uint64_t load(machine::Home core, std::size_t word);
  void store(machine::Home core, std::size_t word, std::uint64_t v);
  template <class Change>
  std::uint64_t atomic(machine::Home core, Operation operation, Change&& change) {
    stop(core, operation);
    const std::uint64_t old = memory_.load(operation.word);
    finish_atomic(core, operation.word, old, change(old));
    return old;
  }
  void fence(machine::Home core);
  // Then of each other core, one after the other.
  void fence_all(machine::Home core);
  template <class Predicate>
  void wait(machine::Home core, std::size_t word, Predicate& predicate) {
    note_wait(core, word);
    sleep(core, word, predicate);
  }
  // Waits likewise, but without the duties of R6: a core may sleep on a word of any home.
  template <class Predicate>
  void sleep(machine::Home core, std::size_t word, Predicate& predicate) {
    stop(core, {.kind = Operation::Kind::wait,
                .word = word,
                .holds = [](void* p, std::uint64_t v) { return (*static_cast<Predicate*>(p))(v); },
                .predicate = &predicate});
    finish_wait(core, word);
  }
  void notify(machine::Home core, machine::Home home);
  void pause(machine::Home core);
  void read(machine::Home core, machine::DataPlace place, std::byte* out, std::size_t bytes);
  void write(machine::Home core, machine::DataPlace place, const std::byte* in, std::size_t bytes);
  void write_through(machine::Home core, machine::DataPlace place, const std::byte* in,
                     std::size_t bytes);
  void publish(machine::Home core, machine::DataPlace place, std::size_t bytes);
  void refresh(machine::Home core, machine::DataPlace place, std::size_t bytes);
  void drain(machine::Home core);
  void fail(const std::string& why);

 private:
  // Something that a core has looked at since its last pause.
  struct Look {
    bool is_line;
    std::size_t at;       // word or line
    std::uint64_t value;  // of the word; version of the line
  };
  struct CoreState {
    explicit CoreState(Memory& memory) : own(memory) {}
    std::size_t old_stores() const { return own.stores().size() - new_stores; }
    PrivateMemory own;
    std::unique_ptr<host::Fibre> fibre;
    Run* run = nullptr;
    machine::Home self = 0;
    bool ended = true;
    Operation next;
    std::size_t new_stores = 0;  // in its buffer, since its last step or write-through
    std::uint64_t history = 0;
    std::vector<Look> looks;       // since its last pause
    bool saw_change = false;       // some of them differed from the one before
    std::uint64_t round = 0;       // fingerprint of its operations and results since its last pause
    std::uint64_t last_round = 0;  // the same, before that pause
    std::uint32_t pauses = 0;
    std::uint32_t retries = 0;  // pauses after which nothing had changed, while others could step
    std::uint32_t idle = 0;     // such pauses, or loads, in a row, while none could
    std::vector<std::size_t> waited;      // words that it has waited for by wait_until
    std::vector<std::size_t> unnotified;  // of other homes, changed since it last notified those
    std::uint32_t same_loads = 0;         // in a row
    std::size_t last_word = 0;
    std::uint64_t last_value = 0;
    bool last_was_load = false;
  };

  static void enter(void* core);
  void run_fibre(CoreState& core);
  void give_up();
  void stop(machine::Home core, const Operation& operation);
  void finish_atomic(machine::Home core, std::size_t word, std::uint64_t old, std::uint64_t now);
  void finish_wait(machine::Home core, std::size_t word);

  // One line's part of a range: offset in the line, bytes, bytes before it in the range.
  template <class Body>
  void each_line(machine::DataPlace place, std::size_t bytes, Body&& body) const;

  // The duties of R6: waits for words of the own home, and a notify after each change of a word
  // that its home waits for, sooner or later. Both follow from each core's own progress (RU2).
  void note_wait(machine::Home core, std::size_t word);
  void note_change(CoreState& core, std::size_t word);
  void check_notifications();

  // The operation has shown `saw` and leaves `gave`.
  void remember(CoreState& core, std::uint64_t saw, std::uint64_t gave = 0);
  static Look* look_of(CoreState& core, bool is_line, std::size_t at);
  // It saw `seen` in the word, and left `now` there.
  void look_at_word(CoreState& core, std::size_t word, std::uint64_t seen, std::uint64_t now);
  void look_at_line(CoreState& core, std::uint32_t line);
  bool sees_change(const CoreState& core) const;
  bool spins(const CoreState& core) const;
  bool may_step(const CoreState& core) const;
  bool could_go_on(const CoreState& core) const;
  bool has_turn(const CoreState& core) const;
  // Of a core which may not step.
  void note_bound(const CoreState& core);
  void pass_turn(const CoreState& core);
  bool is_private_now(const CoreState& core) const;
  bool may_be_woken(const CoreState& core) const;
  bool fences(const Transition& transition, machine::Home other) const;
  bool wakes(const Transition& transition) const;
  void add_steps(CoreState& core, std::vector<Transition>& choices);
  void add_own_steps(CoreState& core, std::vector<Transition>& choices);
  void add_held_back(std::vector<Transition>& choices);
  void add_cache_steps(const CoreState& core, std::vector<Transition>& choices);
  std::uint32_t version_of(const CoreState& core, std::uint32_t line) const;

  bool dependent_in_one_core(const Transition& a, const Transition& b) const;
  template <class Body>
  void each_object(const Transition& transition, Body&& body) const;

  bool telling() const { return static_cast<bool>(listener_); }
  void say(const std::string& sentence) { said_ += said_.empty() ? sentence : "; " + sentence; }
  std::string word_name(std::size_t word) const;
  std::string line_name(std::uint32_t line) const;
  std::string operation_name(const Operation& operation) const;

  Program& program_;
  Bounds bounds_;
  Memory memory_;
  std::vector<CoreState> cores_;
  host::Fibre here_;
  Transition chosen_;
  bool woken_ = false;  // the chosen step is of a core that saw no change
  bool giving_up_ = false;
  bool quitting_ = false;
  BoundsMet met_;
  std::uint32_t evictions_ = 0;
  std::uint32_t preemptions_ = 0;
  machine::Home turn_ = 0;  // the core that stepped last; counts with a bound on preemptions
  std::string failure_;
  std::vector<std::uint32_t> versions_;
  std::function<void(const std::string&)> listener_;
  std::string said_;
};

}  // namespace tombolo::litmus
