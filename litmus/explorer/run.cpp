// SPDX-License-Identifier: Apache-2.0
#include "litmus/explorer/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

namespace tombolo::litmus {

using Kind = Operation::Kind;
using machine::DataPlace;
using machine::Home;

namespace {

constexpr std::size_t stack_bytes = 131'072;
// How often a core goes on although nothing can change any more, in case its loop counts.
constexpr std::uint32_t idle_max = 2;
constexpr std::uint32_t idle_loads_max = 8;

constexpr LineMask mask_of(std::size_t offset, std::size_t bytes) {
  const LineMask low = bytes >= line_bytes ? ~LineMask{0} : (LineMask{1} << bytes) - 1;
  return low << offset;
}

LineBytes placed(std::size_t offset, const std::byte* in, std::size_t bytes) {
  LineBytes line{};
  std::memcpy(line.data() + offset, in, bytes);
  return line;
}

bool is_access(Kind kind) { return kind == Kind::read || kind == Kind::write; }
bool is_data(Kind kind) { return kind >= Kind::read && kind != Kind::drain; }

// Lets the bakery, which waits by polling through a machine::Waiter, poll for ever without asking
// the operating system for anything.
constexpr std::uint32_t many_polls = ~std::uint32_t{0};

std::uint64_t number(const std::byte* bytes) {
  std::uint64_t v = 0;
  std::memcpy(&v, bytes, sizeof v);
  return v;
}

}  // namespace

// ---- Executions ---------------------------------------------------------------------------------

Run::Run(Program& program, const Bounds& bounds)
    : program_(program), bounds_(bounds), memory_(program.shape()) {
  const Home cores = memory_.shape().cores;
  cores_.reserve(cores);
  for (Home self = 0; self < cores; ++self) {
    CoreState& core = cores_.emplace_back(memory_);
    core.run = this;
    core.self = self;
    core.fibre = std::make_unique<host::Fibre>(stack_bytes, &Run::enter, &core);
  }
}

Run::~Run() {
  give_up();
  quitting_ = true;
  for (CoreState& core : cores_) here_.switch_to(*core.fibre);
}

void Run::enter(void* argument) {
  CoreState& core = *static_cast<CoreState*>(argument);
  Run& run = *core.run;
  while (!run.quitting_) {
    try {
      machine::Attachment at;
      at.self = core.self;
      at.cores = run.memory_.shape().cores;
      at.sync = reinterpret_cast<std::byte*>(&run);
      at.sync_bytes_per_home = run.memory_.shape().sync_bytes;
      at.waiting.polls = many_polls;
      run.program_.run(at, run);
    } catch (const GivenUp&) {
    }
    core.ended = true;
    core.fibre->switch_to(run.here_);
  }
  core.fibre->finish(run.here_);
}

void Run::run_fibre(CoreState& core) { here_.switch_to(*core.fibre); }

void Run::give_up() {
  giving_up_ = true;
  for (CoreState& core : cores_)
    if (!core.ended) run_fibre(core);
  giving_up_ = false;
}

void Run::restart() {
  give_up();
  memory_.clear();
  evictions_ = 0;
  preemptions_ = 0;
  turn_ = 0;
  failure_.clear();
  program_.begin();
  for (CoreState& core : cores_) {
    core.own.clear();
    core.history = 0;
    core.new_stores = 0;
    core.looks.clear();
    core.waited.clear();
    core.unnotified.clear();
    core.saw_change = false;
    core.round = core.last_round = 0;
    core.pauses = core.retries = core.idle = core.same_loads = 0;
    core.last_was_load = false;
    core.ended = false;
    said_.clear();
    run_fibre(core);
    if (telling() && !said_.empty())
      listener_(fmt::format("start   core {}  {}", core.self, said_));
  }
}

void Run::stop(Home self, const Operation& operation) {
  CoreState& core = cores_[self];
  // A destructor's operation while its fibre is given up has no visible effect.
  if (giving_up_ && std::uncaught_exceptions() != 0) return;
  core.next = operation;
  core.fibre->switch_to(here_);
  if (giving_up_) throw GivenUp{};
}

void Run::fail(const std::string& why) {
  if (failure_.empty() && !giving_up_) failure_ = why;
}

bool Run::ended() const {
  return std::all_of(cores_.begin(), cores_.end(),
                     [](const CoreState& core) { return core.ended && core.own.stores().empty(); });
}

std::string Run::outcome() {
  check_notifications();
  return program_.outcome(memory_, *this);
}

// ---- Choices ------------------------------------------------------------------------------------

bool Run::sees_change(const CoreState& core) const {
  // A pause that waits for nothing, or comes too late to wait.
  if (core.looks.empty() || core.saw_change) return true;
  return std::any_of(core.looks.begin(), core.looks.end(), [&](const Look& look) {
    return look.is_line ? memory_.latest(static_cast<std::uint32_t>(look.at)) != look.value
                        : core.own.visible(look.at) != look.value;
  });
}

bool Run::spins(const CoreState& core) const {
  return core.last_was_load && core.last_word == core.next.word &&
         core.same_loads + 1 >= bounds_.loads &&
         core.own.visible(core.next.word) == core.last_value;
}

bool Run::may_step(const CoreState& core) const {
  switch (core.next.kind) {
    case Kind::load:
      return !spins(core);
    case Kind::atomic:
    case Kind::fence:
      return core.own.stores().empty();
    case Kind::fence_other:
      return core.own.stores().empty() && cores_[core.next.other].old_stores() == 0;
    case Kind::wait:
      return core.next.holds(core.next.predicate, core.own.visible(core.next.word));
    case Kind::pause:
      return core.pauses < bounds_.pauses && (sees_change(core) || core.retries < bounds_.retries);
    case Kind::drain:
      return core.own.drained();
    default:
      return true;
  }
}

// Only if no core can step.
bool Run::may_be_woken(const CoreState& core) const {
  if (core.next.kind == Kind::pause) return sees_change(core) || core.idle < idle_max;
  return core.next.kind == Kind::load && spins(core) && core.same_loads < idle_loads_max;
}

void Run::add_steps(CoreState& core, std::vector<Transition>& choices) {
  Transition step{.kind = Transition::Kind::step, .core = static_cast<std::uint8_t>(core.self)};
  if (!is_access(core.next.kind) || core.own.dirty(core.next.line)) {
    choices.push_back(step);
    return;
  }
  // A write fetches the bytes that it does not write itself.
  const LineMask mask = core.next.kind == Kind::read ? core.next.mask : ~core.next.mask;
  core.own.versions(core.next.line, mask, versions_);
  step.kind = Transition::Kind::step_with_age;
  for (const std::uint32_t version : versions_) {
    step.index = memory_.latest(core.next.line) - version;
    choices.push_back(step);
  }
}

// A fence or drain that need not wait any more: other cores cannot tell when it is done.
bool Run::is_private_now(const CoreState& core) const {
  return (core.next.kind == Kind::fence || core.next.kind == Kind::drain) && may_step(core);
}

// It may step, or waits only for stores and write-throughs to leave.
bool Run::could_go_on(const CoreState& core) const {
  const Kind kind = core.next.kind;
  return !core.ended && (kind == Kind::atomic || kind == Kind::fence || kind == Kind::fence_other ||
                         kind == Kind::drain || may_step(core));
}

// Whether a step of this core is within the bound on preemptions.
bool Run::has_turn(const CoreState& core) const {
  if (bounds_.preemptions == no_bound || core.self == turn_ || preemptions_ < bounds_.preemptions)
    return true;
  return !could_go_on(cores_[turn_]);
}

void Run::pass_turn(const CoreState& core) {
  if (core.self != turn_ && could_go_on(cores_[turn_])) ++preemptions_;
  turn_ = core.self;
}

// The steps of its cache, possible at any time: write-throughs reach memory, written lines are
// evicted.
void Run::add_cache_steps(const CoreState& core, std::vector<Transition>& choices) {
  Transition choice{.kind = Transition::Kind::settle, .core = static_cast<std::uint8_t>(core.self)};
  for (const PrivateMemory::Piece& piece : core.own.pieces()) {
    if (piece.settled != PrivateMemory::pending) continue;
    choice.index = piece.unit;
    choices.push_back(choice);
  }
  choice.kind = Transition::Kind::evict;
  for (choice.index = 0; choice.index < memory_.lines(); ++choice.index) {
    if (!core.own.dirty(choice.index)) continue;
    if (evictions_ < bounds_.evictions)
      choices.push_back(choice);
    else
      met_.evictions = true;
  }
}

void Run::note_bound(const CoreState& core) {
  if (core.next.kind == Kind::load) met_.loads = true;
  if (core.next.kind != Kind::pause) return;
  if (core.pauses >= bounds_.pauses) met_.pauses = true;
  if (!sees_change(core) && core.retries >= bounds_.retries) met_.retries = true;
}

bool Run::enabled(std::vector<Transition>& choices) {
  choices.clear();
  if (ended()) return false;
  const auto is_private =
      std::ranges::find_if(cores_, [&](auto& core) { return !core.ended && is_private_now(core); });
  if (is_private != cores_.end()) {
    add_steps(*is_private, choices);
    return true;
  }
  for (CoreState& core : cores_) add_own_steps(core, choices);
  add_held_back(choices);
  for (const CoreState& core : cores_) add_cache_steps(core, choices);
  return !choices.empty();
}

void Run::add_own_steps(CoreState& core, std::vector<Transition>& choices) {
  if (!core.ended && may_step(core)) {
    if (has_turn(core))
      add_steps(core, choices);
    else
      met_.preemptions = true;
  }
  if (!core.own.stores().empty())
    choices.push_back(
        {.kind = Transition::Kind::leave_buffer, .core = static_cast<std::uint8_t>(core.self)});
}

// Cores that are held back go on if there is nothing else to choose.
void Run::add_held_back(std::vector<Transition>& choices) {
  const bool none = choices.empty();
  for (CoreState& core : cores_) {
    if (core.ended || may_step(core)) continue;
    if (!none)
      note_bound(core);
    else if (may_be_woken(core))
      add_steps(core, choices);
  }
}

void Run::apply(const Transition& transition) {
  CoreState& core = cores_[transition.core];
  chosen_ = transition;
  said_.clear();
  switch (transition.kind) {
    case Transition::Kind::step:
    case Transition::Kind::step_with_age:
      woken_ = !may_step(core);
      if (bounds_.preemptions != no_bound && !is_private_now(core)) pass_turn(core);
      core.new_stores = 0;
      run_fibre(core);
      break;
    case Transition::Kind::leave_buffer:
      if (telling())
        say(fmt::format("its store of {} to {} reaches memory", core.own.stores().front().value,
                        word_name(core.own.stores().front().word)));
      if (core.own.oldest_store_to_memory()) core.saw_change = true;
      core.new_stores = std::min(core.new_stores, core.own.stores().size());
      break;
    case Transition::Kind::settle:
      core.own.settle(transition.index);
      if (telling()) {
        const std::uint32_t line = transition.index / units_per_line;
        const std::size_t offset = transition.index % units_per_line * unit_bytes;
        say(fmt::format("its write-through to {} + {} reaches memory: {}", line_name(line), offset,
                        number(memory_.at(line, memory_.latest(line)).data() + offset)));
      }
      break;
    case Transition::Kind::evict:
      ++evictions_;
      core.own.write_back(transition.index);
      if (telling())
        say(fmt::format("evicts the written {}: all of it overwrites memory",
                        line_name(transition.index)));
      break;
  }
  if (telling())
    listener_(fmt::format("{:<7} core {}  {}", to_text(transition), transition.core, said_));
}

std::uint64_t Run::key() const {
  std::uint64_t key = mix(memory_.words_hash(), evictions_);
  key = mix(mix(key, preemptions_), turn_);
  for (std::uint32_t line = 0; line < memory_.lines(); ++line)
    key = mix(key, memory_.hash_at(line, memory_.latest(line)));
  for (const CoreState& core : cores_) {
    key = mix(mix(key, core.history), core.own.hash());
    // A fence or drain with nothing to do did not stop and is in no history: two places may share
    // one.
    if (!core.ended) {
      key = mix(mix(key, static_cast<std::uint64_t>(core.next.kind)), core.next.mask);
      key = mix(mix(key, core.next.word), core.next.line);
      key = mix(key, core.next.other);
    }
    key = mix(key, core.saw_change ? 1 : 0);
    for (const Look& look : core.looks)
      key = mix(key, look.is_line ? memory_.latest(static_cast<std::uint32_t>(look.at)) - look.value
                                  : look.value);
  }
  return key;
}

// ---- Independence -------------------------------------------------------------------------------

// The shared objects that a transition reads or changes: body(object, changes). Objects are words,
// then lines.
template <class Body>
void Run::each_object(const Transition& transition, Body&& body) const {
  const CoreState& core = cores_[transition.core];
  const std::size_t words = memory_.words();
  switch (transition.kind) {
    case Transition::Kind::leave_buffer:
      return body(core.own.stores().front().word, true);
    case Transition::Kind::settle:
      return body(words + transition.index / units_per_line, true);
    case Transition::Kind::evict:
      return body(words + transition.index, true);
    default:
      break;
  }
  const Operation& next = core.next;
  switch (next.kind) {
    case Kind::load:
    case Kind::wait:
      return body(next.word, false);
    case Kind::atomic:
      return body(next.word, !next.compares || memory_.load(next.word) == next.expected);
    case Kind::pause:
      for (const Look& look : core.looks) body(look.is_line ? words + look.at : look.at, false);
      return;
    case Kind::read:
    case Kind::write:
      if (!core.own.dirty(next.line)) body(words + next.line, false);
      return;
    case Kind::publish:
      return body(words + next.line, core.own.dirty(next.line));
    case Kind::refresh:
      return body(words + next.line, false);
    default:
      return;  // only the core itself
  }
}

bool Run::dependent_in_one_core(const Transition& a, const Transition& b) const {
  if (a.is_step() && b.is_step()) return true;
  if (b.is_step()) return dependent_in_one_core(b, a);
  if (!a.is_step()) {
    // A store buffer has nothing to do with lines; two lines have nothing to do with each other.
    if (a.kind == Transition::Kind::leave_buffer || b.kind == Transition::Kind::leave_buffer)
      return a.kind == b.kind;
    const auto line = [](const Transition& t) {
      return t.kind == Transition::Kind::settle ? t.index / units_per_line : t.index;
    };
    return line(a) == line(b);
  }
  const Operation& next = cores_[a.core].next;
  if (next.kind == Kind::pause) return true;
  switch (b.kind) {
    case Transition::Kind::leave_buffer:
      return next.kind == Kind::atomic || next.kind == Kind::fence ||
             next.kind == Kind::fence_other;
    case Transition::Kind::settle:
      return next.kind == Kind::drain ||
             (is_data(next.kind) && next.line == b.index / units_per_line);
    default:
      return is_data(next.kind) && next.line == b.index;
  }
}

// Whether a step that is possible now is so only because no core can step.
bool Run::wakes(const Transition& transition) const {
  return transition.is_step() && !may_step(cores_[transition.core]);
}

bool Run::is_forced(const Transition& transition) const {
  return transition.is_step() && is_private_now(cores_[transition.core]);
}

// Whether the step waits for the other core's stores: each step of that core makes some of these.
bool Run::fences(const Transition& transition, Home other) const {
  const Operation& next = cores_[transition.core].next;
  return transition.is_step() && next.kind == Kind::fence_other && next.other == other;
}

bool Run::dependent(const Transition& a, const Transition& b) const {
  // After the one, another core may be able to step, and the other is not possible any more.
  if (wakes(a) || wakes(b)) return true;
  if (a.core == b.core) return dependent_in_one_core(a, b);
  if ((b.is_step() && fences(a, b.core)) || (a.is_step() && fences(b, a.core))) return true;
  bool conflict = false;
  each_object(a, [&](std::size_t object, bool changes) {
    each_object(b, [&](std::size_t other, bool other_changes) {
      conflict = conflict || (object == other && (changes || other_changes));
    });
  });
  return conflict;
}

// ---- The memory of a core -----------------------------------------------------------------------

void Run::remember(CoreState& core, std::uint64_t saw, std::uint64_t gave) {
  const Operation& next = core.next;
  const std::uint64_t what = saw + (static_cast<std::uint64_t>(next.kind) << 56);
  core.history = mix(core.history, what);
  const std::uint64_t where = mix(mix(next.word + next.other, next.line), next.mask);
  core.round = mix(mix(mix(core.round, what), where), gave);
  if (next.kind != Kind::load) core.last_was_load = false;
}

Run::Look* Run::look_of(CoreState& core, bool is_line, std::size_t at) {
  const auto look = std::ranges::find_if(
      core.looks, [=](const Look& one) { return one.is_line == is_line && one.at == at; });
  return look == core.looks.end() ? nullptr : &*look;
}

void Run::look_at_word(CoreState& core, std::size_t word, std::uint64_t seen, std::uint64_t now) {
  if (Look* const look = look_of(core, false, word)) {
    core.saw_change = core.saw_change || look->value != seen;
    look->value = now;
  } else {
    core.looks.push_back({.is_line = false, .at = word, .value = now});
  }
}

void Run::look_at_line(CoreState& core, std::uint32_t line) {
  const std::uint64_t version = core.own.floor(line);
  if (Look* const look = look_of(core, true, line)) {
    core.saw_change = core.saw_change || look->value != version;
    look->value = version;
  } else {
    core.looks.push_back({.is_line = true, .at = line, .value = version});
  }
}

// ---- Sync words ---------------------------------------------------------------------------------

std::uint64_t Run::load(Home self, std::size_t word) {
  stop(self, {.kind = Kind::load, .word = word});
  CoreState& core = cores_[self];
  const std::uint64_t value = core.own.visible(word);
  const bool same = core.last_was_load && core.last_word == word && core.last_value == value;
  core.same_loads = same ? core.same_loads + 1 : 0;
  core.last_was_load = true;
  core.last_word = word;
  core.last_value = value;
  remember(core, value);
  look_at_word(core, word, value, value);
  if (telling()) say(fmt::format("loads {} from {}", value, word_name(word)));
  return value;
}

void Run::store(Home self, std::size_t word, std::uint64_t v) {
  CoreState& core = cores_[self];
  // It is invisible before it leaves the buffer, so it needs no turn. Nor does it look at memory
  // (RU3): whether another core has changed the word shows when it leaves.
  core.next = {.kind = Kind::store, .word = word};
  remember(core, 0, v);
  const Look* const look = look_of(core, false, word);
  const auto believed = look != nullptr ? std::optional(look->value) : std::nullopt;
  look_at_word(core, word, believed.value_or(v), v);
  core.own.stores().push_back({.word = word, .value = v, .believed = believed});
  ++core.new_stores;
  note_change(core, word);
  if (telling()) say(fmt::format("stores {} to {}: in its buffer", v, word_name(word)));
}

void Run::finish_atomic(Home self, std::size_t word, std::uint64_t old, std::uint64_t now) {
  CoreState& core = cores_[self];
  memory_.store(word, now);
  remember(core, old, now);
  look_at_word(core, word, old, now);
  if (old != now) note_change(core, word);
  if (telling())
    say(old == now ? fmt::format("atomically finds {} in {} and leaves it", old, word_name(word))
                   : fmt::format("atomically changes {} from {} to {}", word_name(word), old, now));
}

void Run::fence(Home self) {
  if (cores_[self].own.stores().empty()) return;
  stop(self, {.kind = Kind::fence});
  remember(cores_[self], 0);
  if (telling()) say("fence: its store buffer is empty");
}

void Run::fence_all(Home self) {
  if (cores_.size() == 1) return fence(self);
  for (const CoreState& other : cores_) {
    if (other.self == self) continue;
    stop(self, {.kind = Kind::fence_other, .other = other.self});
    remember(cores_[self], 0);
    if (telling())
      say(fmt::format("fence of core {}: its earlier stores are in memory", other.self));
  }
}

void Run::finish_wait(Home self, std::size_t word) {
  CoreState& core = cores_[self];
  const std::uint64_t value = core.own.visible(word);
  // The last look is the one that counts: some predicates remember the values that they saw.
  (void)core.next.holds(core.next.predicate, value);
  remember(core, value);
  look_at_word(core, word, value, value);
  if (telling()) say(fmt::format("has waited for {}: {}", word_name(word), value));
}

void Run::note_wait(Home self, std::size_t word) {
  if (memory_.place_of_word(word).home != self)
    fail(fmt::format("R6: core {} waits for {}, which is at another home", self, word_name(word)));
  cores_[self].waited.push_back(word);
}

void Run::note_change(CoreState& core, std::size_t word) {
  if (memory_.place_of_word(word).home != core.self) core.unnotified.push_back(word);
}

void Run::notify(Home self, Home home) {
  std::erase_if(cores_[self].unnotified,
                [&](std::size_t word) { return memory_.place_of_word(word).home == home; });
}

void Run::check_notifications() {
  for (const CoreState& core : cores_)
    for (const std::size_t word : core.unnotified) {
      const CoreState& waiting = cores_[memory_.place_of_word(word).home];
      if (std::ranges::find(waiting.waited, word) != waiting.waited.end())
        fail(fmt::format("R6: core {} changes {}, for which core {} waits, and does not notify it",
                         core.self, word_name(word), waiting.self));
    }
}

void Run::pause(Home self) {
  stop(self, {.kind = Kind::pause});
  CoreState& core = cores_[self];
  const bool change = sees_change(core);
  if (!change && !woken_) ++core.retries;
  core.idle = woken_ && !change && core.round == core.last_round ? core.idle + 1 : 0;
  ++core.pauses;
  core.looks.clear();
  core.saw_change = false;
  core.last_round = core.round;
  core.round = 0;
  core.history = mix(core.history, core.idle * 2 + (change ? 1 : 0) + (core.retries << 8));
  core.last_was_load = false;
  if (telling()) say("has paused");
}

// ---- Data ---------------------------------------------------------------------------------------

template <class Body>
void Run::each_line(DataPlace place, std::size_t bytes, Body&& body) const {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t offset = (place.offset + done) % line_bytes;
    const std::size_t count = std::min(bytes - done, line_bytes - offset);
    body(memory_.line_index(place + done), offset, count, done);
    done += count;
  }
}

std::uint32_t Run::version_of(const CoreState& core, std::uint32_t line) const {
  return core.own.dirty(line) ? 0 : memory_.latest(line) - chosen_.index;
}

void Run::read(Home self, DataPlace place, std::byte* out, std::size_t bytes) {
  CoreState& core = cores_[self];
  each_line(place, bytes, [&](auto line, auto offset, auto count, auto done) {
    const Operation access{.kind = Kind::read, .line = line, .mask = mask_of(offset, count)};
    // Of a written line there is one copy, which only an eviction could take.
    if (!core.own.dirty(line) || bounds_.evictions != 0) stop(self, access);
    core.next = access;
    const bool own = core.own.dirty(line);
    const LineBytes seen = core.own.read(line, version_of(core, line));
    std::memcpy(out + done, seen.data() + offset, count);
    for (std::size_t i = 0; i < count; i += 8) {
      std::uint64_t v = 0;
      std::memcpy(&v, out + done + i, std::min<std::size_t>(8, count - i));
      remember(core, v);
    }
    look_at_line(core, line);
    if (telling())
      say(fmt::format("reads {} + {}: {}{}", line_name(line), offset, number(seen.data() + offset),
                      own ? " (its own copy)"
                      : chosen_.index != 0
                          ? fmt::format(" (as it was {} changes ago)", chosen_.index)
                          : ""));
  });
}

void Run::write(Home self, DataPlace place, const std::byte* in, std::size_t bytes) {
  CoreState& core = cores_[self];
  each_line(place, bytes, [&](auto line, auto offset, auto count, auto done) {
    const LineMask mask = mask_of(offset, count);
    if (!core.own.dirty(line) || bounds_.evictions != 0)
      stop(self, {.kind = Kind::write, .line = line, .mask = mask});
    const bool stale = !core.own.dirty(line) && chosen_.index != 0;
    core.own.write(line, version_of(core, line), placed(offset, in + done, count), mask);
    core.next = {.kind = Kind::write, .line = line, .mask = mask};
    const std::uint64_t first =
        number(placed(0, in + done, std::min<std::size_t>(count, 8)).data());
    remember(core, 0, first);
    if (telling())
      say(fmt::format("writes {} to {} + {}: in its cache{}", first, line_name(line), offset,
                      stale ? ", beside neighbours that are stale" : ""));
  });
}

void Run::write_through(Home self, DataPlace place, const std::byte* in, std::size_t bytes) {
  CoreState& core = cores_[self];
  // A write-through stops or not by the time at which earlier ones settle; which stores a fence of
  // this core waits for must follow from the core's history alone (RU2).
  core.new_stores = 0;
  each_line(place, bytes, [&](auto line, auto offset, auto count, auto done) {
    const LineBytes line_of_bytes = placed(offset, in + done, count);
    for (std::size_t unit = offset / unit_bytes; unit * unit_bytes < offset + count; ++unit) {
      const LineMask mask = mask_of(offset, count) & mask_of(unit * unit_bytes, unit_bytes);
      const auto number_of_unit = static_cast<std::uint32_t>(line * units_per_line + unit);
      // It is invisible before it settles; but bytes that are there already may settle first.
      if (core.own.is_pending(number_of_unit) || (bounds_.evictions != 0 && core.own.dirty(line)))
        stop(self, {.kind = Kind::write_through, .line = line, .mask = mask});
      core.own.write_through(number_of_unit, line_of_bytes, mask);
      core.next = {.kind = Kind::write_through, .line = line, .mask = mask};
      remember(core, 0, number(line_of_bytes.data() + unit * unit_bytes));
      if (telling())
        say(fmt::format("writes {} through to {} + {}: on its way",
                        number(line_of_bytes.data() + unit * unit_bytes), line_name(line),
                        unit * unit_bytes));
    }
  });
}

void Run::publish(Home self, DataPlace place, std::size_t bytes) {
  CoreState& core = cores_[self];
  each_line(place, bytes, [&](auto line, auto offset, auto count, auto) {
    if (!core.own.dirty(line)) return;
    stop(self, {.kind = Kind::publish, .line = line, .mask = mask_of(offset, count)});
    if (core.own.dirty(line)) core.own.write_back(line);
    remember(core, 0);
    if (telling()) say(fmt::format("publishes {}: all of it is in memory", line_name(line)));
  });
}

void Run::refresh(Home self, DataPlace place, std::size_t bytes) {
  CoreState& core = cores_[self];
  each_line(place, bytes, [&](auto line, auto offset, auto count, auto) {
    stop(self, {.kind = Kind::refresh, .line = line, .mask = mask_of(offset, count)});
    const bool loses = core.own.dirty(line);
    core.own.refresh(line, mask_of(offset, count));
    remember(core, 0);
    if (telling())
      say(fmt::format("refreshes {}{}", line_name(line),
                      loses ? ": its unpublished bytes there are lost" : ""));
  });
}

void Run::drain(Home self) {
  CoreState& core = cores_[self];
  if (core.own.drained()) return;
  stop(self, {.kind = Kind::drain});
  remember(core, 0);
  if (telling()) say("drain: its write-throughs are in memory");
}

// ---- Names --------------------------------------------------------------------------------------

std::string Run::word_name(std::size_t word) const {
  const machine::SyncPlace place = memory_.place_of_word(word);
  return fmt::format("word {}:{}", place.home, place.offset);
}

std::string Run::line_name(std::uint32_t line) const {
  const DataPlace place = memory_.place_of_line(line);
  return fmt::format("line {}:{}", place.home, place.offset);
}

std::string Run::operation_name(const Operation& operation) const {
  switch (operation.kind) {
    case Kind::load:
      return "load " + word_name(operation.word);
    case Kind::store:
      return "store " + word_name(operation.word);
    case Kind::atomic:
      return "atomic on " + word_name(operation.word);
    case Kind::fence:
      return "fence";
    case Kind::fence_other:
      return fmt::format("fence of core {}", operation.other);
    case Kind::wait:
      return fmt::format("wait for {}, which holds {}", word_name(operation.word),
                         memory_.load(operation.word));
    case Kind::pause:
      return "pause, and nothing has changed that it looked at";
    case Kind::read:
      return "read " + line_name(operation.line);
    case Kind::write:
      return "write " + line_name(operation.line);
    case Kind::write_through:
      return "write through " + line_name(operation.line);
    case Kind::publish:
      return "publish " + line_name(operation.line);
    case Kind::refresh:
      return "refresh " + line_name(operation.line);
    case Kind::drain:
      break;
  }
  return "drain";
}

std::string Run::where_everybody_is() const {
  std::string text;
  for (const CoreState& core : cores_)
    text += fmt::format("{}core {}: {}", text.empty() ? "" : "; ", core.self,
                        core.ended ? "has ended" : operation_name(core.next));
  return text;
}

}  // namespace tombolo::litmus
