// SPDX-License-Identifier: Apache-2.0
// Purpose: shows that steps that the explorer takes for independent are so, by doing both in both
// orders at every state of random programs; and that it takes for dependent only steps that share a
// word, a line or a buffer, since the reduction would be none otherwise.
// Thread safety: -
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/random.h"
#include "litmus/explorer/run.h"
#include "litmus/explorer/testing/bodies.h"

namespace tombolo::litmus {
namespace {

using testing::Actor;
using testing::Bodies;
using testing::steer;
using Transitions = std::vector<Transition>;

// ---- Both orders --------------------------------------------------------------------------------

// Either writes to the cache or past it, and no fence, drain or publish: where these have nothing
// to do they are no step, so that one state has several keys.
void one_operation(Actor& core, Random& random, bool cached, unsigned number) {
  const auto word = static_cast<unsigned>(random.below(3));
  const auto line = static_cast<unsigned>(random.below(2));
  const auto unit = static_cast<unsigned>(random.below(2));
  const std::uint64_t v = 1 + random.below(2);
  switch (random.below(10)) {
    case 0:
      core.load(word);
      break;
    case 1:
    case 2:
      core.store(word, v);
      break;
    case 3:
      core.add(word, v);
      break;
    case 4:
      core.change(word, v, 3);
      break;
    case 5:
      core.read(line, unit);
      break;
    case 6:
      core.refresh(line);
      break;
    case 7:
      core.pause();
      break;
    case 8:
      core.fence_all();  // always a step, with another core
      break;
    default:
      if (cached)
        core.write(line, unit, v);
      else
        core.through(line, number, v);  // a unit of its own
  }
}

Bodies random_program(std::uint64_t seed) {
  std::vector<Bodies::Body> bodies;
  for (std::uint64_t self : {0u, 1u})
    bodies.emplace_back([=](Actor& core) {
      Random random = Random::stream(seed, self);
      for (unsigned i = 0; i < 4; ++i) one_operation(core, random, seed % 2 == 0, i);
    });
  return Bodies(std::move(bodies));
}

bool contains(const Transitions& choices, const Transition& one) {
  return std::find(choices.begin(), choices.end(), one) != choices.end();
}

// A step that is forced changes nothing that another could notice: it is done at once.
void do_what_is_forced(Run& run, Transitions& choices) {
  while (run.enabled(choices) && run.is_forced(choices.front())) run.apply(choices.front());
}

// The state after the path, then `first`, then `second`; 0 if the second is not possible then.
// Nothing if the first is the end: evictions that are still possible are not waited for.
std::optional<std::uint64_t> key_after(Run& run, const Transitions& path, const Transition& first,
                                       const Transition& second) {
  run.restart();
  for (const Transition& transition : path) run.apply(transition);
  run.apply(first);
  Transitions choices;
  do_what_is_forced(run, choices);
  if (run.ended()) return std::nullopt;
  if (!contains(choices, second)) return 0;
  run.apply(second);
  do_what_is_forced(run, choices);
  return run.key();
}

// The number of pairs that are independent here.
unsigned expect_both_orders(Run& run, Run& other, const Transitions& path,
                            const Transitions& choices) {
  unsigned independent = 0;
  for (const Transition& a : choices)
    for (const Transition& b : choices) {
      if (a == b || run.dependent(a, b)) continue;
      EXPECT_FALSE(run.dependent(b, a));
      const auto key = key_after(other, path, a, b);
      const auto other_key = key_after(other, path, b, a);
      if (!key || !other_key) continue;
      ++independent;
      EXPECT_NE(*key, 0u) << to_text(b) << " is not possible after " << to_text(a);
      EXPECT_EQ(*key, *other_key) << to_text(a) << " and " << to_text(b);
    }
  return independent;
}

TEST(Independent, TransitionsMayBeDoneInBothOrders) {
  unsigned independent = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Bodies program = random_program(seed);
    Bodies same = random_program(seed);
    // So many evictions that none is the last one.
    litmus::Run run(program, {.evictions = 100});
    litmus::Run other(same, {.evictions = 100});
    Random random = Random::stream(seed, 7);
    run.restart();
    Transitions path;
    Transitions choices;
    while (run.enabled(choices)) {
      SCOPED_TRACE(to_text(path));
      if (!run.is_forced(choices.front()))
        independent += expect_both_orders(run, other, path, choices);
      path.push_back(choices[random.below(choices.size())]);
      run.apply(path.back());
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(independent, 2000u) << "the test tests something";
}

// ---- Which ones ---------------------------------------------------------------------------------

struct Pair {
  const char* what;
  Bodies::Body first, second;  // of cores 0 and 1
  const char* path;            // the steps before
  const char* a;
  const char* b;
  bool dependent;
};

const Bodies::Body nothing = [](Actor&) {};
const Bodies::Body load0 = [](Actor& core) { core.load(0); };
const Bodies::Body load1 = [](Actor& core) { core.load(1); };
const Bodies::Body add0 = [](Actor& core) { core.add(0, 1); };
const Bodies::Body add1 = [](Actor& core) { core.add(1, 1); };
const Bodies::Body store0 = [](Actor& core) { core.store(0, 1), core.load(1); };
const Bodies::Body store1 = [](Actor& core) { core.store(1, 1), core.load(1); };
const Bodies::Body fences_all = [](Actor& core) { core.fence_all(), core.load(1); };
const Bodies::Body fails0 = [](Actor& core) { core.change(0, 1, 2); };
const Bodies::Body works0 = [](Actor& core) { core.change(0, 0, 2); };
const Bodies::Body await0 = [](Actor& core) { core.await(0, 0); };
const Bodies::Body read0 = [](Actor& core) { core.read(0); };
const Bodies::Body refresh0 = [](Actor& core) { core.refresh(0); };
const Bodies::Body publish0 = [](Actor& core) { core.write(0, 0, 1), core.publish(0); };
const Bodies::Body publish1 = [](Actor& core) { core.write(1, 0, 1), core.publish(1); };
const Bodies::Body rereads0 = [](Actor& core) { core.write(0, 0, 1), core.read(0); };
const Bodies::Body through0 = [](Actor& core) {
  core.through(0, 0, 1), core.through(0, 1, 1), core.through(1, 0, 1), core.read(0);
};
const Bodies::Body through1 = [](Actor& core) { core.through(1, 0, 1), core.read(0); };

const Pair pairs[] = {
    {"two loads", load0, load0, "", "0", "1", false},
    {"load and atomic", load0, add0, "", "0", "1", true},
    {"atomics", add0, add0, "", "0", "1", true},
    {"atomics of two words", add0, add1, "", "0", "1", false},
    {"load and atomic of two words", load1, add0, "", "0", "1", false},
    {"load and a compare_exchange that fails", load0, fails0, "", "0", "1", false},
    {"load and one that does not", load0, works0, "", "0", "1", true},
    {"two that fail", fails0, fails0, "", "0", "1", false},
    {"wait and load", await0, load0, "", "0", "1", false},
    {"wait and atomic", await0, add0, "", "0", "1", true},
    {"store that leaves, and load", store0, load0, "", "s0", "1", true},
    {"store that leaves, and load of another word", store0, load1, "", "s0", "1", false},
    {"stores that leave", store0, store0, "", "s0", "s1", true},
    {"stores that leave, to two words", store0, store1, "", "s0", "s1", false},
    {"store that leaves, and its core's load", store0, nothing, "", "s0", "0", false},
    {"store that leaves, and its core's pause",
     [](Actor& core) { core.load(0), core.load(0), core.store(1, 1), core.pause(); }, add0, "0 1 0",
     "s0", "0", true},
    {"load before a store, and a change of the word that is stored to",
     [](Actor& core) { core.load(1), core.load(0), core.store(1, 2), core.pause(); },
     [](Actor& core) { core.swap(1, 2), core.load(0); }, "0", "0", "1", false},
    {"store that leaves, and a change of its word",
     [](Actor& core) { core.load(1), core.store(1, 2), core.pause(); },
     [](Actor& core) { core.swap(1, 2), core.load(0); }, "0", "s0", "1", true},
    {"fence of a core, and its step, which may store", fences_all, load0, "", "0", "1", true},
    {"fences of each other", fences_all, fences_all, "", "0", "1", true},
    {"fence of a core, and its store that leaves", fences_all, store1, "", "0", "s1", false},
    {"store that leaves, and a fence behind it",
     [](Actor& core) { core.store(0, 1), core.load(1), core.fence_all(); }, load0, "0", "s0", "1",
     true},
    {"reads", read0, read0, "", "0v0", "1v0", false},
    {"read and refresh", read0, refresh0, "", "0v0", "1", false},
    {"read and publish", read0, publish0, "1v0", "0v0", "1", true},
    {"read and publish of another line", read0, publish1, "1v0", "0v0", "1", false},
    {"refresh and publish", refresh0, publish0, "1v0", "0", "1", true},
    {"two publishes", publish0, publish0, "0v0 1v0", "0", "1", true},
    {"read of a dirty line, and publish", rereads0, publish0, "0v0 1v0", "0", "1", false},
    {"publish of an evicted line, and read", publish0, read0, "0v0 e0.0", "0", "1v1", false},
    {"eviction and read", publish0, read0, "0v0", "e0.0", "1v0", true},
    {"eviction and read of another line", publish1, read0, "0v0", "e0.1", "1v0", false},
    {"eviction and its core's access", rereads0, nothing, "0v0", "e0.0", "0", true},
    {"eviction and its core's access of another line",
     [](Actor& core) { core.write(0, 0, 1), core.read(1); }, nothing, "0v0", "e0.0", "0v0", false},
    {"evictions of two lines",
     [](Actor& core) { core.write(0, 0, 1), core.write(1, 0, 1), core.load(0); }, nothing,
     "0v0 0v0", "e0.0", "e0.1", false},
    {"a write-through, and a read", through0, read0, "", "w0.0", "1v0", true},
    {"a write-through, and a read of another line", through1, read0, "", "w0.8", "1v0", false},
    {"a write-through, and its core's read", through0, nothing, "", "w0.0", "0v0", true},
    {"a write-through, and its core's read of another line", through1, nothing, "", "w0.8", "0v0",
     false},
    {"two write-throughs to one line", through0, nothing, "", "w0.0", "w0.1", true},
    {"write-throughs to two lines", through0, nothing, "", "w0.0", "w0.8", false},
    {"write-throughs to one line by two cores", through0, through1, "", "w0.8", "w1.8", true},
    {"a write-through and a store",
     [](Actor& core) { core.store(0, 1), core.through(0, 0, 1), core.load(1); }, nothing, "", "s0",
     "w0.0", false},
    {"an eviction and a write-through to its line",
     [](Actor& core) { core.write(0, 0, 1), core.through(0, 1, 1), core.load(0); }, nothing,
     "0v0 0", "e0.0", "w0.1", true},
    {"pause and a change of it", [](Actor& core) { core.load(0), core.load(0), core.pause(); },
     [](Actor& core) { core.add(0, 1), core.add(0, 1); }, "0 1 0", "0", "1", true},
    {"pause and a change of another", [](Actor& core) { core.load(0), core.load(0), core.pause(); },
     [](Actor& core) { core.add(0, 1), core.add(1, 1); }, "0 1 0", "0", "1", false},
    {"steps of two cores that are let go on", [](Actor& core) { core.load(0), core.pause(); },
     [](Actor& core) { core.load(1), core.pause(); }, "0 1", "0", "1", true},
};

TEST(Dependent, AreThoseThatShareSomething) {
  for (const Pair& pair : pairs) {
    SCOPED_TRACE(pair.what);
    Bodies program({pair.first, pair.second});
    litmus::Run run(program, {.evictions = 3});
    run.restart();
    const std::string choices = steer(run, pair.path);
    Transitions both;
    ASSERT_TRUE(from_text(fmt::format("{} {}", pair.a, pair.b), both));
    Transitions possible;
    run.enabled(possible);
    ASSERT_TRUE(contains(possible, both[0]) && contains(possible, both[1])) << choices;
    EXPECT_EQ(run.dependent(both[0], both[1]), pair.dependent);
    EXPECT_EQ(run.dependent(both[1], both[0]), pair.dependent);
  }
}

}  // namespace
}  // namespace tombolo::litmus
