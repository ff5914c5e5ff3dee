// SPDX-License-Identifier: Apache-2.0
// Purpose: litmus tests of when memory is seen by families (docs/model/families.md): at create, at
// sync, on the same exclusive place, and not between two threads of a family. They use the deque,
// the word of a family and the queue of a place as svp/ has them, on every machine. A value of a
// channel goes as `message-passing` has it, or in a message.
//
// Core 0 creates a family, which core 1 runs if it finds it in time.
// Thread safety: types only.
#pragma once

#include "litmus/tests/board.h"
#include "litmus/tests/verdicts.h"
#include "svp/places/turns.h"
#include "svp/scheduler/handover.h"
#include "svp/scheduler/split_deque.h"

namespace tombolo::litmus {

// A family of core 0. Its word is z.
template <class B>
class LitmusFamily {
 public:
  explicit LitmusFamily(B& board) : board_(board), deque_(board.core(), layout(board)) {}

  // By core 0.
  void create() {
    deque_.push(1);
    board_.between();
    deque_.share(1);
  }
  bool is_done() {
    return some_tries([this] { return Hand::done(board_.core(), board_.word(z)); });
  }
  // By core 1.
  bool take() {
    if (!some_tries([this] { return deque_.steal(0) != 0; })) return false;
    Hand::begin(board_.core(), board_.word(z));
    return true;
  }
  void finish() {
    board_.between();
    Hand::finish(board_.core(), board_.word(z));
  }

 private:
  using Core = typename B::Core;
  using Deque = svp::SplitDeque<Core>;
  using Hand = svp::Handover<Core>;

  static typename Deque::Layout layout(const B& board) {
    machine::SyncLayout rest(board.room());
    return Deque::take(rest, B::data_room, 2);
  }
  template <class Try>
  bool some_tries(Try&& once) {
    for (unsigned i = 0; i < board_.looks(); ++i) {
      board_.between();
      if (once()) return true;
    }
    return false;
  }

  B& board_;
  Deque deque_;
};

// ---- Create -------------------------------------------------------------------------------------

template <bool publishes, bool refreshes, class B>
void create_with_argument(B& b) {
  LitmusFamily<B> family(b);
  if (b.self() == 0) {
    b.write(a0, 1);
    if (publishes) b.publish(a0);
    family.create();
    return;
  }
  if (!refreshes) b.saw(2, b.read(a0));
  if (!family.take()) return;
  b.saw(0, 1);
  if (refreshes) b.refresh(a0);
  b.saw(1, b.read(a0));
}

struct FamilySeesItsCreator {
  static constexpr LitmusInfo info{"family-create", "the family runs, its argument is old", 2,
                                   forbidden_everywhere,
                                   "published before the create, refreshed where it is taken"};
  template <class B>
  static void body(B& b) {
    create_with_argument<true, true>(b);
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 0; }
};
struct CreateWithoutPublish {
  static constexpr LitmusInfo info{"family-create-without-publish",
                                   "the family runs, its argument is old", 2, without_coherence,
                                   "the argument is in the creator's cache"};
  template <class B>
  static void body(B& b) {
    create_with_argument<false, true>(b);
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 0; }
};
struct CreateWithoutRefresh {
  static constexpr LitmusInfo info{"family-create-without-refresh",
                                   "the family runs, its argument is old", 2, without_coherence,
                                   "the worker has an old line of an earlier family"};
  template <class B>
  static void body(B& b) {
    create_with_argument<true, false>(b);
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 0 && r[2] == 0; }
};

// ---- Sync ---------------------------------------------------------------------------------------

template <bool publishes, bool refreshes, class B>
void sync_with_result(B& b) {
  LitmusFamily<B> family(b);
  if (b.self() == 0) {
    if (!refreshes) b.saw(2, b.read(a0));
    family.create();
    if (!family.is_done()) return;
    b.saw(0, 1);
    if (refreshes) b.refresh(a0);
    b.saw(1, b.read(a0));
  } else if (family.take()) {
    b.write(a0, 1);
    if (publishes) b.publish(a0);
    family.finish();
  }
}

struct CreatorSeesItsFamily {
  static constexpr LitmusInfo info{"family-sync", "the sync is over, the result is old", 2,
                                   forbidden_everywhere,
                                   "published before the end, refreshed at the sync"};
  template <class B>
  static void body(B& b) {
    sync_with_result<true, true>(b);
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 0; }
};
struct SyncWithoutPublish {
  static constexpr LitmusInfo info{"family-sync-without-publish",
                                   "the sync is over, the result is old", 2, without_coherence,
                                   "the result is in the worker's cache"};
  template <class B>
  static void body(B& b) {
    sync_with_result<false, true>(b);
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 0; }
};
struct SyncWithoutRefresh {
  static constexpr LitmusInfo info{"family-sync-without-refresh",
                                   "the sync is over, the result is old", 2, without_coherence,
                                   "the creator has the line of before the create"};
  template <class B>
  static void body(B& b) {
    sync_with_result<true, false>(b);
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 0 && r[2] == 0; }
};

// ---- Threads of a family ------------------------------------------------------------------------

struct SiblingsRace {
  static constexpr LitmusInfo info{"family-siblings", "both threads add to the same number", 2,
                                   on_every_machine, "between create and sync nothing orders them"};
  template <class B>
  static void body(B& b) {
    b.refresh(a0);
    const std::uint64_t seen = b.read(a0);
    b.write_through(a0, seen + 1);
    b.drain();
    b.saw(b.self(), seen);
  }
  static bool interesting(const Values& r) { return r[0] == r[1]; }
};

// ---- An exclusive place -------------------------------------------------------------------------

// Each core creates a family there that adds 1 to a number; the one that finds the place free runs
// those that come meanwhile. The queue's word is x, the links of turns are z and w.
template <bool publishes, bool refreshes, class B>
void add_at_exclusive_place(B& b) {
  using Turns = svp::Turns<typename B::Core>;
  using Number = typename Turns::Number;
  const auto link = [&b](Number turn) { return b.word(turn == 1 ? z : w); };
  const auto claim = [&b](Number turn) {
    return b.core().word({static_cast<machine::Home>(turn - 1), b.room()});
  };
  const auto await = [&b](typename B::Core::Word word) {
    while (b.core().load(word) == 0) (void)b.core().pause(1).ok();
  };
  if (!refreshes) (void)b.read(a0);
  b.between();
  const Number own = 1 + Number{b.self()};
  if (Turns::enter(b.core(), b.word(x), own, link, claim) != 0) return;
  for (Number turn = own; turn != 0;) {
    if (refreshes) b.refresh(a0);
    const std::uint64_t seen = b.read(a0);
    b.saw(static_cast<unsigned>(turn - 1), seen);
    b.write(a0, seen + 1);
    if (publishes) b.publish(a0);
    b.between();
    turn = Turns::leave(b.core(), b.word(x), turn, link, claim, await, [](Number) {});
  }
}

struct ExclusivePlaceIsInOrder {
  static constexpr LitmusInfo info{"exclusive-place", "both families add to the same number", 2,
                                   forbidden_everywhere,
                                   "a family sees the memory of those before it at the place"};
  template <class B>
  static void body(B& b) {
    add_at_exclusive_place<true, true>(b);
  }
  static bool interesting(const Values& r) { return r[0] == r[1]; }
};
struct ExclusivePlaceWithoutPublish {
  static constexpr LitmusInfo info{"exclusive-place-without-publish",
                                   "both families add to the same number", 2, without_coherence,
                                   "the number is in the cache of the first one's worker"};
  template <class B>
  static void body(B& b) {
    add_at_exclusive_place<false, true>(b);
  }
  static bool interesting(const Values& r) { return r[0] == r[1]; }
};
struct ExclusivePlaceWithoutRefresh {
  static constexpr LitmusInfo info{"exclusive-place-without-refresh",
                                   "both families add to the same number", 2, without_coherence,
                                   "the worker of the second one has an old line"};
  template <class B>
  static void body(B& b) {
    add_at_exclusive_place<true, false>(b);
  }
  static bool interesting(const Values& r) { return r[0] == r[1]; }
};

}  // namespace tombolo::litmus
