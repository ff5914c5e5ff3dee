// SPDX-License-Identifier: Apache-2.0
// Purpose: tests the conversations of two sites of one process: each is freed at its end, with
// kills and losses at any time, values of channels, and links without room.
// Thread safety: -
#include "svp/remote/switchboard.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "svp/api/include/tombolo/svp.hpp"
#include "svp/links/testing/queue_link.h"
#include "svp/remote/channel_parameters.h"
#include "svp/remote/testing/scarce_memory.h"

namespace tombolo::svp {
namespace {

// A queue link that several threads may use, of two sites.
class SharedLink {
 public:
  struct Loss {
    Site site = 0;
    std::string how;
  };
  struct Post {
    std::mutex mutex;
    testing::QueueLink::Post letters;
    std::size_t room = 1000;
  };

  SharedLink(Post& post, Site self) : post_(post), self_(self) {}
  Site self() const { return self_; }
  Site sites() const { return 2; }
  std::size_t most_bytes() const { return 512; }
  bool try_send(const VirtualChannel& to, Kind kind, std::span<const std::byte> bytes) {
    const std::lock_guard lock(post_.mutex);
    return testing::QueueLink(post_.letters, self_, post_.room, 512).try_send(to, kind, bytes);
  }
  template <class Take>
  bool poll(Take&& take) {
    if (has_no_memory) throw std::bad_alloc();
    bool any = false;
    for (std::size_t taken = 0; taken != most_taken; ++taken) {
      const std::optional<testing::QueueLink::Letter> letter = next();
      if (!letter) break;
      take(Message{letter->channel, letter->kind, letter->bytes});
      any = true;
    }
    return any;
  }
  bool has_arrivals() {
    const std::lock_guard lock(post_.mutex);
    return !post_.letters[self_].empty();
  }
  Status wait() { return {}; }
  std::optional<Loss> next_loss() { return std::exchange(loss, std::nullopt); }

  // It moves no array, but may say so of a channel.
  bool moves(const VirtualChannel&) const { return false; }
  void move_out(const VirtualChannel&, std::span<const std::byte>) {}
  void move_in(const VirtualChannel&, std::span<std::byte>) {}
  void move_away(const VirtualChannel&, std::uint64_t) {}
  bool is_moving(const VirtualChannel& channel) const { return channel.number == moving; }

  std::optional<Loss> loss;
  std::optional<std::uint32_t> moving;
  std::size_t most_taken = 1000;
  bool has_no_memory = false;

 private:
  std::optional<testing::QueueLink::Letter> next() {
    const std::lock_guard lock(post_.mutex);
    auto& letters = post_.letters[self_];
    if (letters.empty()) return std::nullopt;
    auto first = std::move(letters.front());
    letters.pop_front();
    return first;
  }

  Post& post_;
  Site self_;
};

std::atomic<std::int64_t> running{0};
std::atomic<std::int64_t> sum{0};
struct Running {
  Running() { ++running; }
  ~Running() { --running; }
};
void adds(Index i) { sum += i; }
void runs_on(Index) {
  const Running one;
  for (;;) checkpoint();
}
void adds_and_fills(Index i, OutArray<std::int64_t> numbers) {
  sum += i;
  if (i == 0) numbers[0] = 3;
}
void tells(Out<std::int64_t> value) { *value = 42; }
void runs_on_and_fills(Index, OutArray<std::int64_t>) { runs_on(0); }
void of_array(InArray<std::int64_t> numbers) { sum += numbers[0]; }
void of_arrays(InArray<std::int64_t> numbers, OutArray<std::int64_t>) { of_array(numbers); }
void reads_on(Global<std::int64_t>& value, SharedEnd<std::int64_t>& end) {
  const Running one;
  end.write(value.read() + end.read());
}

void writes_and_runs_on(SharedEnd<std::int64_t>& end) {
  end.write(5);
  runs_on(0);
}

// Wakes no worker: the test pumps.
class NoPoller final : public RemotePoller {
 public:
  bool poll() override { return false; }
  void wake() override { ++wakes; }
  std::atomic<unsigned> wakes{0};

 protected:
  void sleep_unless(bool (*)(void*), void*) override {}
};

class Boards : public ::testing::Test {
 protected:
  using Board = Switchboard<SharedLink, NoReach>;

  // A family that site 0 has created at site 1.
  class Remote0 final : public FamilyBase {
   public:
    template <class R>
    Remote0(Boards& of, const R&, const Range& range, std::span<const Piece> pieces = {},
            std::span<ParentEnd* const> ends = {}, Transport way = Transport::buffer,
            bool stopped = false)
        : FamilyBase(nullptr), boards(of), call(*this, ends) {
      if (stopped) {
        kill();
        boards.here.pump();  // which looks for calls of stopped families
      }
      boards.here.open(call, {.site = 1},
                       {.function = &R::entry(), .range = range, .place = 0, .transport = way},
                       pieces);
    }
    bool done() const { return state.load() == Worker::Hand::done_value; }
    Exit sync() {
      boards.here.ask_sync(call, false);
      boards.until([this] { return done(); });
      return exit();
    }
    const Completion& completion() const { return call.call->completion(); }
    using FamilyBase::exit;

    Boards& boards;
    OpenCall call;
  };

  template <class Condition>
  void until(Condition&& condition) {
    while (!condition()) {
      here.pump();
      there.pump();
      std::this_thread::yield();
    }
  }
  void expect_nothing_left() {
    until([this] { return here.open_calls() + there.open_calls() == 0; });
    EXPECT_EQ(running.load(), 0);
  }

  SharedLink::Post post;
  SharedLink link_here{post, 0};
  SharedLink link_there{post, 1};
  NoReach reach;
  NoPoller poller;
  LocalPlace place{3};  // a family that runs on has two threads
  Board here{link_here, reach, {place}, poller};
  Board there{link_there, reach, {place}, poller};
};

TEST_F(Boards, UseTheNumbersOfCallsAgain) {
  for (int i = 0; i < 3; ++i) {
    sum = 0;
    Remote0 one(*this, remote<&adds>, {.limit = 5});
    Remote0 two(*this, remote<&adds>, {.limit = 3});
    EXPECT_EQ(one.call.call->channel().number + two.call.call->channel().number, 1u);
    EXPECT_EQ(here.open_calls(), 2u);
    EXPECT_TRUE(two.sync().done() && one.sync().done());
    EXPECT_EQ(sum.load(), 13);
    expect_nothing_left();
  }
}

TEST_F(Boards, SendWhatFoundNoRoomLater) {
  post.room = 1;
  std::vector<std::int64_t> numbers(1000, 7);
  InArray<std::int64_t> array(numbers);
  const std::array<Piece, 1> pieces{Parameter<InArray<std::int64_t>>::piece(array)};
  std::vector<std::int64_t> filled(1000);
  OutArray<std::int64_t> output(filled);
  const std::array<Piece, 2> with_output{pieces[0],
                                         Parameter<OutArray<std::int64_t>>::piece(output)};
  {
    sum = 0;
    Remote0 one(*this, remote<&of_array>, {}, pieces);
    Remote0 two(*this, remote<&of_array>, {}, pieces);
    until([] { return sum.load() == 14; });
    EXPECT_TRUE(one.sync().done() && two.sync().done());
    expect_nothing_left();
  }
  Remote0 one(*this, remote<&of_arrays>, {}, with_output);
  Remote0 two(*this, remote<&of_arrays>, {}, with_output);
  EXPECT_TRUE(one.sync().done() && two.sync().done());
  EXPECT_EQ(sum.load(), 28);
  expect_nothing_left();
}

// The kill goes before the sync. A long completion waits for that; a short one is kept.
TEST_F(Boards, PassKillsOnAtOnce) {
  std::vector<std::int64_t> numbers(1000, 7);
  OutArray<std::int64_t> output(numbers);
  const std::array<Piece, 1> filled{Parameter<OutArray<std::int64_t>>::piece(output)};
  const auto expect_killed = [this](Remote0& family, std::size_t left_there) {
    until([] { return running.load() != 0; });
    family.kill();
    until([&] { return running.load() == 0 && there.open_calls() == left_there; });
    here.pump();
    EXPECT_FALSE(family.done());
    EXPECT_EQ(family.sync().reason, ExitReason::killed);
    EXPECT_EQ(family.completion().reason, ExitReason::killed);
    expect_nothing_left();
  };
  Remote0 answered(*this, remote<&runs_on>, {.limit = 3});
  expect_killed(answered, 0);
  Remote0 asked(*this, remote<&runs_on_and_fills>, {.limit = 3}, filled);
  expect_killed(asked, 1);
}

TEST_F(Boards, KillAFamilyThatWasStoppedBeforeItsCall) {
  Remote0 family(*this, remote<&runs_on>, {}, {}, {}, Transport::buffer, true);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  until([&] { return family.call.call->is_answered() || std::chrono::steady_clock::now() > end; });
  EXPECT_TRUE(family.call.call->is_answered());
  EXPECT_EQ(family.sync().reason, ExitReason::killed);
  expect_nothing_left();
}

// Its number and the creator's memory are in use, and it keeps its answer.
TEST_F(Boards, CloseACallOnceItsArraysMoveNoMore) {
  for (const bool lost : {false, true}) {
    Remote0 family(*this, remote<&adds>, {.limit = 5});
    const std::uint32_t number = family.call.call->channel().number;
    until([&] { return family.call.call->is_answered(); });
    link_here.moving = number;
    here.ask_sync(family.call, false);
    EXPECT_TRUE(family.call.call->ended());
    EXPECT_FALSE(family.done());
    {
      Remote0 other(*this, remote<&adds>, {.limit = 5});
      EXPECT_NE(other.call.call->channel().number, number);
      EXPECT_TRUE(other.sync().done());
    }
    link_here.moving.reset();
    if (lost)
      here.site_ended(1, "it is gone");
    else
      EXPECT_TRUE(link_there.try_send({.opener = 0, .peer = 0, .number = number}, Kind::data, {}));
    until([&] { return family.done(); });
    EXPECT_EQ(family.completion().reason, ExitReason::done);
    EXPECT_EQ(here.open_calls(), 0u);
  }
}

TEST_F(Boards, FailACallWhoseOutputHasComeInPart) {
  std::vector<std::int64_t> numbers(1000, 7);
  OutArray<std::int64_t> output(numbers);
  const std::array<Piece, 1> filled{Parameter<OutArray<std::int64_t>>::piece(output)};
  sum = 0;
  Remote0 family(*this, remote<&adds_and_fills>, {.limit = 5}, filled);
  here.ask_sync(family.call, false);
  link_here.most_taken = 0;
  until([this] { return sum.load() == 10 && there.open_calls() == 0; });
  link_here.most_taken = 2;
  here.pump();
  EXPECT_FALSE(family.done());
  here.site_ended(1, "it is gone");
  EXPECT_TRUE(family.done());
  EXPECT_EQ(family.completion().text, "it is gone");
}

// It has crossed the completion; the next family has the same number.
TEST_F(Boards, DropAKillThatComesAfterTheEnd) {
  EXPECT_TRUE(Remote0(*this, remote<&adds>, {.limit = 5}).sync().done());
  until([this] { return there.open_calls() == 0; });
  EXPECT_TRUE(link_here.try_send({.opener = 0, .peer = 1, .number = 0}, Kind::kill, {}));
  until([this] { return !link_there.has_arrivals(); });
  EXPECT_EQ(there.open_calls(), 0u);
  Remote0 next(*this, remote<&adds>, {.limit = 5});
  EXPECT_EQ(next.call.call->channel().number, 0u);
  EXPECT_TRUE(next.sync().done());
  expect_nothing_left();
}

TEST_F(Boards, FailCallsToASiteThatIsLost) {
  std::optional<Remote0> before(std::in_place, *this, remote<&runs_on>, Range{.limit = 2});
  until([] { return running.load() != 0; });
  link_here.loss = {1, "it is gone"};
  until([&] { return before->done(); });
  EXPECT_EQ(before->completion().text, "it is gone");
  Remote0 after(*this, remote<&adds>, {.limit = 2});
  EXPECT_TRUE(after.done());
  EXPECT_EQ(after.completion().text, "it is gone");
  EXPECT_EQ(here.open_calls(), 0u);
  here.site_ended(1, "again");
  there.site_ended(0, "its creator is gone");
  expect_nothing_left();
}

// Its site keeps nothing of the family, and the creator's memory is as it was until the sync.
TEST_F(Boards, KeepAShortAnswerThatComesUnasked) {
  std::int64_t value = 7;
  Out<std::int64_t> out(value);
  const std::array<Piece, 1> pieces{Parameter<Out<std::int64_t>>::piece(out)};
  for (const bool lost : {false, true}) {
    value = 7;
    Remote0 family(*this, remote<&tells>, {}, pieces);
    until([&] { return family.call.call->is_answered(); });
    EXPECT_EQ(there.open_calls(), 0u);
    if (lost) here.site_ended(1, "it is gone");
    family.kill();
    here.pump();
    EXPECT_FALSE(family.done());
    EXPECT_EQ(value, 7);
    here.ask_sync(family.call, false);
    EXPECT_TRUE(family.done());
    EXPECT_EQ(value, 42);
    EXPECT_EQ(family.completion().reason, ExitReason::done);
    EXPECT_FALSE(there.has_arrivals()) << "neither the sync nor the kill is told";
    EXPECT_EQ(here.open_calls(), 0u);
    (void)family.exit();
  }
}

// Families of a site that is lost: one that runs, one that has ended, one whose data come no more.
TEST_F(Boards, FreeFamiliesOfASiteThatIsLost) {
  post.room = 4;
  std::vector<std::int64_t> numbers(1000, 7);
  InArray<std::int64_t> array(numbers);
  const std::array<Piece, 1> pieces{Parameter<InArray<std::int64_t>>::piece(array)};
  OutArray<std::int64_t> output(numbers);
  const std::array<Piece, 1> filled{Parameter<OutArray<std::int64_t>>::piece(output)};
  sum = 0;
  Remote0 runs(*this, remote<&runs_on>, {.limit = 2});
  Remote0 ended(*this, remote<&adds_and_fills>, {.limit = 5}, filled);
  until([] { return running.load() != 0 && sum.load() == 10; });
  Remote0 unsent(*this, remote<&of_array>, {}, pieces);
  while (there.open_calls() != 3) there.pump();
  there.site_ended(0, "gone");
  until([this] { return there.open_calls() == 0 && running.load() == 0; });
  here.site_ended(1, "gone");
  EXPECT_TRUE(runs.done() && ended.done() && unsent.done());
  expect_nothing_left();
}

TEST_F(Boards, TakeNoMessageOfASiteThatIsLost) {
  Remote0 late(*this, remote<&runs_on>, {});
  there.site_ended(0, "gone");
  EXPECT_TRUE(there.has_arrivals());
  until([this] { return !there.has_arrivals(); });
  EXPECT_EQ(there.open_calls(), 0u);
  here.site_ended(1, "gone");
  expect_nothing_left();
}

// Its number is free again.
TEST_F(Boards, OpenNoCallWithoutMemoryForIt) {
  if (!testing::memory_can_run_out) GTEST_SKIP() << "the sanitizer has operator new[]";
  const std::vector<std::int64_t> numbers(1000, 7);
  InArray<std::int64_t> array(numbers);
  const std::array<Piece, 1> pieces{Parameter<InArray<std::int64_t>>::piece(array)};
  for (int i = 0; i < 2; ++i) {
    testing::most_array_bytes = 300;
    EXPECT_THROW(Remote0(*this, remote<&of_array>, {}, pieces, {}, Transport::stream),
                 std::bad_alloc);
    testing::most_array_bytes = testing::any_bytes;
    EXPECT_EQ(here.open_calls(), 0u);
    Remote0 other(*this, remote<&adds>, {.limit = 3});
    EXPECT_EQ(other.call.call->channel().number, 0u);
    EXPECT_TRUE(other.sync().done());
  }
  expect_nothing_left();
}

// SWB4.
TEST_F(Boards, EndWithASentenceWithoutMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        link_here.has_no_memory = true;
        here.pump();
      },
      "tombolo: no memory for messages between the processes of a program");
}

class ChannelBoards : public Boards {
 protected:
  class Listener final : public ChannelListener {
   public:
    Listener(Board& board, OpenCall& call) : board_(board), call_(call) {}
    void channel_changed() noexcept override { board_.told(call_); }

   private:
    Board& board_;
    OpenCall& call_;
  };
  void listen(Listener& listener) {
    end.hand_over();  // by its create
    for (ParentEnd* const each : ends) EXPECT_TRUE(each->listen(listener));
  }
  void ignore(Remote0& family) {
    for (ParentEnd* const each : ends) each->ignore();
    here.forget(family.call);
  }

  Global<std::int64_t> value;
  Shared<std::int64_t> end;
  ChannelParameter<Global<std::int64_t>&>::Parent global{value};
  ChannelParameter<SharedEnd<std::int64_t>&>::Parent shared{end};
  std::array<ParentEnd*, 2> ends{&global, &shared};
};

TEST_F(ChannelBoards, BringValuesWhenToldOfThem) {
  Remote0 family(*this, remote<&reads_on>, {}, {}, ends);
  Listener listener(here, family.call);
  listen(listener);
  until([] { return running.load() == 1; });
  std::thread reader([this] { EXPECT_EQ(end.read(), 7); });
  until([this] { return end.last_channel().awaited(); });
  const unsigned before = poller.wakes;
  value.write(3);
  EXPECT_GT(poller.wakes.load(), before);
  EXPECT_TRUE(here.has_arrivals());
  end.write(4);
  until([this] { return end.last_channel().settled(); });
  reader.join();
  EXPECT_TRUE(family.sync().done());
  ignore(family);
  expect_nothing_left();
}

TEST_F(ChannelBoards, BringTheLastValueWithTheEndToACreatorThatDoesNotWait) {
  value.write(3);
  end.write(4);
  Remote0 family(*this, remote<&reads_on>, {}, {}, ends);
  Listener listener(here, family.call);
  listen(listener);
  listener.channel_changed();
  EXPECT_TRUE(family.sync().done());
  EXPECT_EQ(end.read(), 7);
  ignore(family);
  expect_nothing_left();
}

TEST_F(ChannelBoards, BringAValueThatWasWrittenBeforeItIsWanted) {
  const std::span<ParentEnd* const> one(&ends[1], 1);
  Remote0 family(*this, remote<&writes_and_runs_on>, {}, {}, one);
  Listener listener(here, family.call);
  listen(listener);
  until([] { return running.load() == 1; });
  EXPECT_FALSE(end.last_channel().settled());
  std::thread reader([this] { EXPECT_EQ(end.read(), 5); });
  until([this] { return end.last_channel().settled(); });
  reader.join();
  family.kill();
  EXPECT_EQ(family.sync().reason, ExitReason::killed);
  ignore(family);
  expect_nothing_left();
}

TEST_F(ChannelBoards, CloseThoseOfAFamilyWhoseSiteIsLost) {
  Remote0 family(*this, remote<&reads_on>, {}, {}, ends);
  Listener listener(here, family.call);
  listen(listener);
  until([] { return running.load() == 1; });
  link_here.loss = {1, "it is gone"};
  until([&] { return family.done(); });
  EXPECT_THROW(end.read(), NoValue);
  value.write(3);  // after its end
  EXPECT_TRUE(here.has_arrivals());
  ignore(family);
  EXPECT_FALSE(here.has_arrivals());
  there.site_ended(0, "gone");
  expect_nothing_left();
}

}  // namespace
}  // namespace tombolo::svp
