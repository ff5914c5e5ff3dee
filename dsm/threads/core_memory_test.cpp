// SPDX-License-Identifier: Apache-2.0
// Purpose: words of a program lie at their homes, are ordered, and are used with the gate of
// interrupts closed; waits step back, and begin anew.
// Thread safety: -
#include "dsm/threads/core_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/coherent/coherent.h"
#include "host/interrupts/interrupts.h"
#include "machine/testing/ensemble.h"
#include "machine/testing/forwarding.h"

namespace tombolo::dsm {
namespace {

using Calls = std::vector<std::string>;
using Sleeps = std::vector<std::uint64_t>;

// Notes stores, fences and pauses, and places; lets the test act within each operation.
class NotingCore : public machine::testing::Forwarding<coherent::Core> {
 public:
  using Base = machine::testing::Forwarding<coherent::Core>;
  using Base::Base;
  Word word(machine::SyncPlace place) {
    places.push_back(place);
    return Base::word(place);
  }
  std::uint64_t load(Word word) { return act("load"), Base::load(word); }
  void store(Word word, std::uint64_t v) { act("store"), Base::store(word, v); }
  std::uint64_t fetch_add(Word word, std::uint64_t v) {
    return act("add"), Base::fetch_add(word, v);
  }
  std::uint64_t exchange(Word word, std::uint64_t v) {
    return act("exchange"), Base::exchange(word, v);
  }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    return act("swap"), Base::compare_exchange(word, expected, desired);
  }
  void fence() { act("fence"), Base::fence(); }
  Status pause(std::uint64_t ns) {
    act("pause");
    pauses.push_back(ns);
    return fails ? Status::io("no") : Status();
  }

  std::vector<machine::SyncPlace> places;
  std::vector<std::uint64_t> pauses;
  Calls calls;
  std::function<void()> during;
  bool fails = false;

 private:
  void act(const char* call) {
    calls.emplace_back(call);
    if (during) during();
  }
};

template <class Interrupts>
class WordsOf final : public CoreMemory<NotingCore, Interrupts> {
 public:
  using Base = CoreMemory<NotingCore, Interrupts>;
  using Base::Base;
  using Base::core;
  using Base::interrupts;
  std::span<std::byte> memory() const override { return {}; }
  std::size_t page_bytes() const override { return 0; }
  void record(const void*, std::size_t) override {}
  Lock locks() const override { return 0; }
  Status acquire(Lock) override { return {}; }
  Status try_acquire(Lock, bool&) override { return {}; }
  Status release(Lock) override { return {}; }
  Status barrier() override { return {}; }
  Status reduce(std::uint64_t&, ProgramMemory::Combine) override { return {}; }
  Status close() override { return {}; }
};

using Words = WordsOf<host::NotInterrupted>;

// Thread 1 of the program.
template <class Interrupts>
struct OneThreadOf {
  OneThreadOf(const Shape& shape, WordIndex words) {
    machine::SyncLayout layout(NotingCore::reserved_sync_bytes(shape.cores()));
    const auto taken = WordsOf<Interrupts>::take_words(layout, shape, words);
    first = taken.at;
    end = layout.bytes();
    host = std::make_unique<machine::testing::Host<NotingCore>>(machine::testing::EnsembleShape{
        .cores = shape.cores(), .sync_bytes = end, .data_bytes = 64});
    memory = std::make_unique<WordsOf<Interrupts>>(host->attachment(1), taken);
  }
  NotingCore& core() { return memory->core(); }

  machine::Offset first = 0;
  std::size_t end = 0;
  std::unique_ptr<machine::testing::Host<NotingCore>> host;
  std::unique_ptr<WordsOf<Interrupts>> memory;
};
using OneThread = OneThreadOf<host::NotInterrupted>;

// DCM1: no two have one place, and each is within the memory that was taken.
void expect_spread(const Shape& shape, Thread first_home, Thread homes) {
  constexpr WordIndex words = 11;
  OneThread one(shape, words);
  EXPECT_EQ(one.memory->words(), words);
  EXPECT_EQ(one.memory->self(), 1U);
  EXPECT_EQ(one.memory->threads(), shape.threads);
  for (WordIndex word = 0; word < words; ++word) one.memory->load(word);
  std::set<std::pair<machine::Home, machine::Offset>> all;
  WordIndex word = 0;
  for (const machine::SyncPlace& place : one.core().places) {
    EXPECT_EQ(place.home, first_home + word++ % homes);
    EXPECT_TRUE(one.first <= place.offset && place.offset + 8 <= one.end);
    all.emplace(place.home, place.offset);
  }
  EXPECT_EQ(all.size(), words);
}
TEST(CoreMemory, WordsAreSpreadOverTheThreads) { expect_spread({.threads = 3}, 0, 3); }
TEST(CoreMemory, WordsAreSpreadOverTheMemoryServers) {
  expect_spread({.threads = 3, .servers = 2}, 3, 2);
}

// The last of a home's words needs a line more than the one before it.
TEST(CoreMemory, TheLastWordHasRoom) {
  for (const WordIndex words : {8U, 9U, 16U, 17U}) {
    OneThread one({.threads = 2}, words);
    one.memory->load(words - 1);
    EXPECT_LE(one.core().places.back().offset + 8, one.end) << words;
  }
}

TEST(CoreMemory, AWordPastTheLastIsAMistake) {
  OneThread one({.threads = 2}, 4);
  one.memory->load(3);
  EXPECT_DEATH(one.memory->load(4), "word 4 is past the 4 words");
}

TEST(CoreMemory, WordsAreChangedAsTheyAreAskedTo) {
  OneThread one({.threads = 2}, 4);
  Words& memory = *one.memory;
  memory.store(2, 5);
  EXPECT_EQ(memory.exchange(2, 6), 5U);
  EXPECT_EQ(memory.fetch_add(2, 3), 6U);
  EXPECT_EQ(memory.compare_exchange(2, 8, 1), 9U);
  EXPECT_EQ(memory.compare_exchange(2, 9, 1), 9U);
  EXPECT_EQ(memory.load(2), 1U);
  EXPECT_EQ(memory.load(3), 0U);
}

// DCM2
TEST(CoreMemory, AFenceFollowsAStore) {
  OneThread one({.threads = 2}, 4);
  one.memory->store(1, 7);
  EXPECT_EQ(one.core().calls, (Calls{"store", "fence"}));
}

// ---- Waits --------------------------------------------------------------------------------------

TEST(CoreMemory, PausesGrowUntilTheWaitIsOver) {
  OneThread one({.threads = 2}, 4);
  Words& memory = *one.memory;
  const auto pauses_of = [&](int times) {
    one.core().pauses.clear();
    for (int i = 0; i < times; ++i) EXPECT_TRUE(memory.pause().ok());
    return one.core().pauses;
  };
  // Each is drawn from the upper half of its length.
  const std::vector<std::uint64_t> long_wait = pauses_of(160);
  EXPECT_LE(long_wait.front(), 100U);
  EXPECT_GE(long_wait.front(), 50U);
  std::uint64_t waited = 0;
  for (const std::uint64_t ns : long_wait) {
    const std::uint64_t part = waited / (waited < 100'000 ? 8 : 1);
    const std::uint64_t most = std::clamp<std::uint64_t>(part, 100, 500'000);
    EXPECT_LE(ns, most) << "after " << waited;
    EXPECT_GE(ns, most / 2) << "after " << waited;
    waited += ns;
  }
  EXPECT_GE(long_wait.back(), 250'000U);
  memory.paused_enough();
  EXPECT_LE(pauses_of(1).front(), 100U);
  one.core().fails = true;
  EXPECT_EQ(memory.pause().message(), "no");
}

// ---- Interrupts ---------------------------------------------------------------------------------

class Noted final : public host::InterruptGate {
 public:
  explicit Noted(Calls& calls) : calls_(calls) {}

  Sleeps sleeps;  // in nanoseconds

 private:
  void serve(std::uint64_t) override { calls_.emplace_back("served"); }
  void rest(std::uint64_t nanoseconds) override { sleeps.push_back(nanoseconds); }
  Calls& calls_;
};

struct Answering : OneThreadOf<host::Interrupted> {
  Answering() : OneThreadOf({.threads = 2}, 4) { memory->interrupts().by(gate); }
  Noted gate{core().calls};
};

// DCM3: its operations have none to look at.
TEST(CoreMemory, AThreadThatIsNotInterruptedHasNoGate) {
  EXPECT_EQ(sizeof(Words) + sizeof(host::InterruptGate*), sizeof(WordsOf<host::Interrupted>));
}

// DCM3: InterruptGate::sleep() stops a program that sleeps with the gate closed.
TEST(CoreMemory, AThreadThatAnswersIsDeafForShortTimesAndSleepsTheRest) {
  constexpr int times = 160;
  constexpr std::uint64_t longest_deaf_ns = 20'000;
  // Draws the same lengths, and has no interrupts.
  OneThread other({.threads = 2}, 4);
  Answering one;
  for (int i = 0; i < times; ++i) {
    ASSERT_TRUE(other.memory->pause().ok());
    one.gate.sleeps.clear();
    ASSERT_TRUE(one.memory->pause().ok());
    const std::uint64_t whole = other.core().pauses.back();
    const std::uint64_t deaf = one.core().pauses.back();
    EXPECT_EQ(deaf, std::min(whole, longest_deaf_ns));
    EXPECT_EQ(one.gate.sleeps, whole == deaf ? Sleeps{} : Sleeps{whole - deaf});
  }
  EXPECT_EQ(one.core().pauses.size(), static_cast<std::size_t>(times)) << "all live, it has looked";
  EXPECT_FALSE(one.gate.sleeps.empty());
}

TEST(CoreMemory, AThreadThatAnswersDoesNotSleepWhenAPeerHasDied) {
  Answering one;
  one.core().fails = true;
  for (int i = 0; i < 160; ++i) EXPECT_EQ(one.memory->pause().message(), "no");
  EXPECT_TRUE(one.gate.sleeps.empty());
}

// DCM3
TEST(CoreMemory, InterruptsAreServedBetweenOperations) {
  Answering one;
  auto& memory = *one.memory;
  Calls& calls = one.core().calls;
  ASSERT_TRUE(host::catch_interrupts(one.gate).ok());
  host::PeerInterrupts self({host::process_named(getpid())});
  one.core().during = [&] {
    self.interrupt(0);
    calls.emplace_back("interrupted");
  };
  const std::vector<std::pair<std::string, std::function<void()>>> all{
      {"load", [&] { memory.load(1); }},
      {"exchange", [&] { memory.exchange(1, 2); }},
      {"add", [&] { memory.fetch_add(1, 2); }},
      {"swap", [&] { memory.compare_exchange(1, 2, 3); }},
      {"pause", [&] { EXPECT_TRUE(memory.pause().ok()); }}};
  for (const auto& [name, call] : all) {
    calls.clear();
    call();
    EXPECT_EQ(calls, (Calls{name, "interrupted", "served"}));
  }
  calls.clear();
  memory.store(1, 2);
  EXPECT_EQ(calls, (Calls{"store", "interrupted", "fence", "interrupted", "served"}));
  host::leave_interrupts();
}

}  // namespace
}  // namespace tombolo::dsm
