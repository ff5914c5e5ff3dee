// SPDX-License-Identifier: Apache-2.0
// Purpose: the litmus tests: a few operations for each core, and one outcome of interest, mostly
// an undesirable one. docs/model/litmus.md has the table of verdicts with reasons.
//
// A test is a struct with `info`, a template body(board) that every core runs, and interesting().
// A new one is a struct here and its name in `AllLitmusTests`.
// Thread safety: types only.
#pragma once

#include "backends/machines.h"
#include "litmus/tests/board.h"
#include "litmus/tests/family_tests.h"
#include "litmus/tests/verdicts.h"

namespace tombolo::litmus {

// ---- A flag and data ----------------------------------------------------------------------------

struct MessagePassing {
  static constexpr LitmusInfo info{
      "message-passing", "flag seen, datum old", 2, forbidden_everywhere,
      "write-through, drain, store against load, refresh, read: R4, R5"};
  template <class B>
  static void body(B& b) {
    if (b.self() == 0) {
      b.write_through(a0, 1);
      b.drain();
      b.store(x, 1);
    } else {
      b.saw(0, b.load(x));
      b.refresh(a0);
      b.saw(1, b.read(a0));
    }
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 0; }
};

struct MessagePassingCached {
  static constexpr LitmusInfo info{"message-passing-cached", "flag seen, datum old", 2,
                                   forbidden_everywhere, "the same by write and publish: R4, R5"};
  template <class B>
  static void body(B& b) {
    if (b.self() == 0) {
      b.write(a0, 1);
      b.publish(a0);
      b.store(x, 1);
    } else {
      b.saw(0, b.load(x));
      b.refresh(a0);
      b.saw(1, b.read(a0));
    }
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 0; }
};

struct MessagePassingByAtomic {
  static constexpr LitmusInfo info{"message-passing-atomic", "flag seen, datum old", 2,
                                   forbidden_everywhere, "atomics order as loads and stores do"};
  template <class B>
  static void body(B& b) {
    if (b.self() == 0) {
      b.write_through(a0, 1);
      b.drain();
      b.fetch_add(x, 1);
    } else {
      b.saw(0, b.fetch_add(x, 0));
      b.refresh(a0);
      b.saw(1, b.read(a0));
    }
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 0; }
};

struct MessagePassingOverThree {
  static constexpr LitmusInfo info{
      "causality", "third core sees the second flag, datum old", 3, forbidden_everywhere,
      "a value that a core has loaded is in memory before its later stores (R3, R4)"};
  template <class B>
  static void body(B& b) {
    if (b.self() == 0) {
      b.write_through(a0, 1);
      b.drain();
      b.store(x, 1);
    } else if (b.self() == 1) {
      b.store(y, b.load(x));
    } else {
      b.saw(0, b.load(y));
      b.refresh(a0);
      b.saw(1, b.read(a0));
    }
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 0; }
};

// ---- The same with one operation left out -------------------------------------------------------

struct PublishWithoutDrain {
  static constexpr LitmusInfo info{"store-without-drain", "flag seen, datum old", 2,
                                   on_scc_too(without_coherence),
                                   "a store does not wait for undrained write-throughs (R4)"};
  template <class B>
  static void body(B& b) {
    if (b.self() == 0) {
      b.write_through(a0, 1);
      b.store(x, 1);
    } else {
      b.saw(0, b.load(x));
      b.refresh(a0);
      b.saw(1, b.read(a0));
    }
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 0; }
};

struct StoreWithoutPublish {
  static constexpr LitmusInfo info{"store-without-publish", "flag seen, datum old", 2,
                                   on_scc_too(without_coherence),
                                   "the datum is still in the writer's cache"};
  template <class B>
  static void body(B& b) {
    if (b.self() == 0) {
      b.write(a0, 1);
      b.store(x, 1);
    } else {
      b.saw(0, b.load(x));
      b.refresh(a0);
      b.saw(1, b.read(a0));
    }
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 0; }
};

struct StaleReadAfterSync {
  static constexpr LitmusInfo info{"stale-read-after-sync", "flag seen, datum old", 2,
                                   on_scc_too(without_coherence),
                                   "a load makes nothing visible: the reader has an old line"};
  template <class B>
  static void body(B& b) {
    if (b.self() == 0) {
      b.write_through(a0, 1);
      b.drain();
      b.store(x, 1);
    } else {
      b.saw(2, b.read(a0));
      b.saw(0, b.load(x));
      b.saw(1, b.read(a0));
    }
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 0 && r[2] == 0; }
};

struct RefreshBeforeSync {
  static constexpr LitmusInfo info{"refresh-before-sync",
                                   "flag seen, datum old",
                                   2,
                                   {must_appear, allowed, allowed, must_appear, must_appear},
                                   "data refreshed before the load may be older than the flag"};
  template <class B>
  static void body(B& b) {
    if (b.self() == 0) {
      b.write_through(a0, 1);
      b.drain();
      b.store(x, 1);
    } else {
      b.refresh(a0);
      b.saw(2, b.read(a0));
      b.saw(0, b.load(x));
      b.saw(1, b.read(a0));
    }
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 0; }
};

struct WriteThroughsOvertake {
  static constexpr LitmusInfo info{"write-throughs-overtake",
                                   "second datum new, first old",
                                   2,
                                   {must_appear, allowed, allowed, must_appear, allowed},
                                   "before drain, write-throughs reach memory in any order"};
  template <class B>
  static void body(B& b) {
    if (b.self() == 0) {
      b.write_through(a0, 1);
      b.write_through(b0, 1);
      for (int i = 0; i < 6; ++i) b.load(i % 2 == 0 ? x : z);  // something else for a while
      b.drain();
    } else {
      b.refresh(b0);
      b.saw(0, b.read(b0));
      b.refresh(a0);
      b.saw(1, b.read(a0));
    }
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 0; }
};

// ---- Lines --------------------------------------------------------------------------------------

// Both write their half of a line, tell each other, and look at both halves.
template <class B, class Write>
void write_halves(B& b, Write&& write) {
  write(b.self() == 0 ? a0 : a1);
  b.signal(b.self() == 0 ? y : x, 1);
  b.await(b.self() == 0 ? x : y, 1);
  if (b.self() != 0) return;
  b.refresh(a0);
  b.refresh(a1);
  b.saw(0, b.read(a0));
  b.saw(1, b.read(a1));
}

struct LostUpdate {
  static constexpr LitmusInfo info{
      "lost-update-by-false-sharing", "one half is missing", 2, without_coherence,
      "publish writes whole lines back, the stale half of the other core with them (R2)"};
  template <class B>
  static void body(B& b) {
    write_halves(b, [&](Datum half) {
      b.write(half, 1);
      b.publish(half);
    });
  }
  static bool interesting(const Values& r) { return r[0] == 0 || r[1] == 0; }
};

// A cache that allocates no line for a write has the line only after a read.
struct LostUpdateOfALineRead {
  static constexpr LitmusInfo info{
      "lost-update-of-a-line-read", "one half is missing", 2, on_scc_too(without_coherence),
      "the same where both have read the line: it is in their caches, whatever they allocate (R2)"};
  template <class B>
  static void body(B& b) {
    b.saw(2 + b.self(), b.read(a0) + b.read(a1));
    b.signal(b.self() == 0 ? w : z, 1);
    b.await(b.self() == 0 ? z : w, 1);
    write_halves(b, [&](Datum half) {
      b.write(half, 1);
      b.publish(half);
    });
  }
  static bool interesting(const Values& r) { return r[0] == 0 || r[1] == 0; }
};

struct WriteThroughKeepsNeighbours {
  static constexpr LitmusInfo info{"write-through-keeps-neighbours", "one half is missing", 2,
                                   forbidden_everywhere,
                                   "write_through writes these bytes and no others"};
  template <class B>
  static void body(B& b) {
    write_halves(b, [&](Datum half) {
      b.write_through(half, 1);
      b.drain();
    });
  }
  static bool interesting(const Values& r) { return r[0] == 0 || r[1] == 0; }
};

struct InvalidateDropsDirty {
  static constexpr LitmusInfo info{"invalidate-drops-dirty", "own write is gone", 2,
                                   without_coherence, "refresh drops unpublished writes"};
  template <class B>
  static void body(B& b) {
    if (b.self() != 0) return;
    b.write(a0, 1);
    b.refresh(a0);
    b.saw(0, b.read(a0));
  }
  static bool interesting(const Values& r) { return r[0] == 0; }
};

struct EvictionOverwrites {
  static constexpr LitmusInfo info{
      "eviction-overwrites", "drained data is gone", 2, without_coherence,
      "an evicted line takes stale neighbours to memory, long after (R1, R2)"};
  template <class B>
  static void body(B& b) {
    if (b.self() == 0) {
      b.write(a0, 1);
      b.signal(y, 1);
      for (int i = 0; i < 4; ++i) b.read(b0);  // may make room in its cache
      b.signal(w, 1);
    } else {
      b.await(y, 1);
      b.write_through(a1, 1);
      b.drain();
      b.await(w, 1);
      b.refresh(a1);
      b.saw(0, b.read(a1));
    }
  }
  static bool interesting(const Values& r) { return r[0] == 0; }
};

struct EarlyWriteBack {
  static constexpr LitmusInfo info{"early-write-back",
                                   "seen before it was published",
                                   2,
                                   {must_appear, allowed, allowed, must_appear, must_appear},
                                   "a written line may be evicted at any moment (R1)"};
  template <class B>
  static void body(B& b) {
    if (b.self() == 0) {
      b.write(a0, 1);
      b.signal(y, 1);
      b.await(x, 1);
      b.publish(a0);
    } else {
      b.await(y, 1);
      b.refresh(a0);
      b.saw(0, b.read(a0));
      b.signal(x, 1);
    }
  }
  static bool interesting(const Values& r) { return r[0] == 1; }
};

// ---- Words --------------------------------------------------------------------------------------

struct StoreBuffering {
  static constexpr LitmusInfo info{"store-buffering", "neither store is seen", 2, on_every_machine,
                                   "a load may overtake an earlier store to another word (R3)"};
  template <class B>
  static void body(B& b) {
    b.store(b.self() == 0 ? x : y, 1);
    b.saw(b.self(), b.load(b.self() == 0 ? y : x));
  }
  static bool interesting(const Values& r) { return r[0] == 0 && r[1] == 0; }
};

struct StoreBufferingFenced {
  static constexpr LitmusInfo info{"store-buffering-fenced", "neither store is seen", 2,
                                   forbidden_everywhere, "a fence prevents it (R3)"};
  template <class B>
  static void body(B& b) {
    b.store(b.self() == 0 ? x : y, 1);
    b.fence();
    b.saw(b.self(), b.load(b.self() == 0 ? y : x));
  }
  static bool interesting(const Values& r) { return r[0] == 0 && r[1] == 0; }
};

struct StoreBufferingAtomic {
  static constexpr LitmusInfo info{"store-buffering-atomic", "neither atomic is seen", 2,
                                   forbidden_everywhere, "every atomic is a fence (R3)"};
  template <class B>
  static void body(B& b) {
    b.fetch_add(b.self() == 0 ? x : y, 1);
    b.saw(b.self(), b.load(b.self() == 0 ? y : x));
  }
  static bool interesting(const Values& r) { return r[0] == 0 && r[1] == 0; }
};

struct StoreThenRefresh {
  static constexpr LitmusInfo info{"refresh-overtakes-store",
                                   "neither the store nor the datum is seen", 2, on_every_machine,
                                   "a store does not order later refreshes (decision 6)"};
  template <class B>
  static void body(B& b) {
    if (b.self() == 0) {
      b.store(x, 1);
      b.refresh(a0);
      b.saw(0, b.read(a0));
    } else {
      b.write_through(a0, 1);
      b.drain();
      b.fence();
      b.saw(1, b.load(x));
    }
  }
  static bool interesting(const Values& r) { return r[0] == 0 && r[1] == 0; }
};

// A core tells of its data only if it finds that the other has not been told yet.
template <class B, class ToMemory>
void tell_unless_told(B& b, bool fenced, ToMemory&& to_memory) {
  if (b.self() == 0) {
    to_memory();
    if (fenced) b.fence();
    b.saw(0, b.load(x));
  } else {
    b.saw(2, b.fetch_add(x, 1));
    b.refresh(a0);
    b.saw(1, b.read(a0));
  }
}

struct DrainThenLoad {
  static constexpr LitmusInfo info{"drain-then-load", "found told, and the datum is old", 2,
                                   forbidden_everywhere,
                                   "a fence keeps the load behind the drain (R3)"};
  template <class B>
  static void body(B& b) {
    tell_unless_told(b, true, [&] { b.write_through(a0, 1), b.drain(); });
  }
  static bool interesting(const Values& r) { return r[0] == 0 && r[1] == 0; }
};

struct DrainThenLoadUnfenced {
  static constexpr LitmusInfo info{"drain-then-load-unfenced",
                                   "found told, and the datum is old",
                                   2,
                                   by_contract_only,
                                   "without it the load may overtake the drain (R3)",
                                   true};
  template <class B>
  static void body(B& b) {
    tell_unless_told(b, false, [&] { b.write_through(a0, 1), b.drain(); });
  }
  static bool interesting(const Values& r) { return r[0] == 0 && r[1] == 0; }
};

struct PublishThenLoad {
  static constexpr LitmusInfo info{"publish-then-load", "found told, and the datum is old", 2,
                                   forbidden_everywhere, "the same by write and publish (R3)"};
  template <class B>
  static void body(B& b) {
    tell_unless_told(b, true, [&] { b.write(a0, 1), b.publish(a0); });
  }
  static bool interesting(const Values& r) { return r[0] == 0 && r[1] == 0; }
};

struct PublishThenLoadUnfenced {
  static constexpr LitmusInfo info{"publish-then-load-unfenced",
                                   "found told, and the datum is old",
                                   2,
                                   by_contract_only,
                                   "without it the load may overtake the publish (R3)",
                                   true};
  template <class B>
  static void body(B& b) {
    tell_unless_told(b, false, [&] { b.write(a0, 1), b.publish(a0); });
  }
  static bool interesting(const Values& r) { return r[0] == 0 && r[1] == 0; }
};

struct LoadBuffering {
  static constexpr LitmusInfo info{"load-buffering", "both loads see the later stores", 2,
                                   forbidden_everywhere, "a store does not overtake a load (R3)"};
  template <class B>
  static void body(B& b) {
    b.saw(b.self(), b.load(b.self() == 0 ? y : x));
    b.store(b.self() == 0 ? x : y, 1);
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 1; }
};

struct WordsInOrder {
  static constexpr LitmusInfo info{"stores-in-order", "second store seen, first not", 2,
                                   forbidden_everywhere,
                                   "stores are done in program order, loads too (R3)"};
  template <class B>
  static void body(B& b) {
    if (b.self() == 0) {
      b.store(x, 1);
      b.store(y, 1);
    } else {
      b.saw(0, b.load(y));
      b.saw(1, b.load(x));
    }
  }
  static bool interesting(const Values& r) { return r[0] == 1 && r[1] == 0; }
};

struct IndependentReads {
  static constexpr LitmusInfo info{"independent-reads", "two cores see two stores in two orders", 4,
                                   forbidden_everywhere,
                                   "there is one memory: a store reaches all"};
  template <class B>
  static void body(B& b) {
    if (b.self() < 2) {
      b.store(b.self() == 0 ? x : y, 1);
    } else {
      const bool third = b.self() == 2;
      b.saw(third ? 0 : 2, b.load(third ? x : y));
      b.saw(third ? 1 : 3, b.load(third ? y : x));
    }
  }
  static bool interesting(const Values& r) {
    return r[0] == 1 && r[1] == 0 && r[2] == 1 && r[3] == 0;
  }
};

struct AtomicsLoseNothing {
  static constexpr LitmusInfo info{"atomic-counter", "both cores draw one number", 2,
                                   forbidden_everywhere, "fetch_add is one step"};
  template <class B>
  static void body(B& b) {
    b.saw(b.self(), b.fetch_add(x, 1));
  }
  static bool interesting(const Values& r) { return r[0] == r[1]; }
};

struct PlainCounter {
  static constexpr LitmusInfo info{"plain-counter", "both cores draw one number", 2,
                                   on_scc_too(on_every_machine),
                                   "a load and a store are two steps"};
  template <class B>
  static void body(B& b) {
    const std::uint64_t seen = b.load(x);
    b.store(x, seen + 1);
    b.saw(b.self(), seen);
  }
  static bool interesting(const Values& r) { return r[0] == r[1]; }
};

using AllLitmusTests =
    TypeList<MessagePassing, MessagePassingCached, MessagePassingByAtomic, MessagePassingOverThree,
             PublishWithoutDrain, StoreWithoutPublish, StaleReadAfterSync, RefreshBeforeSync,
             WriteThroughsOvertake, LostUpdate, LostUpdateOfALineRead, WriteThroughKeepsNeighbours,
             InvalidateDropsDirty, EvictionOverwrites, EarlyWriteBack, StoreBuffering,
             StoreBufferingFenced, StoreBufferingAtomic, StoreThenRefresh, DrainThenLoad,
             DrainThenLoadUnfenced, PublishThenLoad, PublishThenLoadUnfenced, LoadBuffering,
             WordsInOrder, IndependentReads, AtomicsLoseNothing, PlainCounter, FamilySeesItsCreator,
             CreateWithoutPublish, CreateWithoutRefresh, CreatorSeesItsFamily, SyncWithoutPublish,
             SyncWithoutRefresh, SiblingsRace, ExclusivePlaceIsInOrder,
             ExclusivePlaceWithoutPublish, ExclusivePlaceWithoutRefresh>;

}  // namespace tombolo::litmus
