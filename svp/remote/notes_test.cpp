// SPDX-License-Identifier: Apache-2.0
// Purpose: tests the news of channels between creator and family: their order and time, messages of
// all sizes, and streams that do not fit.
// Thread safety: -
#include "svp/remote/notes.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "svp/links/testing/queue_link.h"
#include "svp/remote/call.h"
#include "svp/remote/channel_parameters.h"
#include "svp/remote/service.h"

namespace tombolo::svp {
namespace {

using Triple = std::array<std::int32_t, 3>;

Global<Triple>* held = nullptr;  // of the family that ran last
void add(Index i, In<std::int64_t> by, Global<Triple>& start, SharedEnd<std::int64_t>& sum) {
  held = &start;
  sum.write(sum.read() + by * i + start.read()[2]);
}
void writes_nothing(SharedEnd<std::int64_t>&) {}
void holds(Global<Triple>& start) { held = &start; }
struct NoXdr {
  int a;
};
void of_structures(Global<NoXdr>&) {}

constexpr Triple start{1, 2, 100};
constexpr std::int64_t first = 7;

// Of a creator and a family, one message after the other.
class Conversation {
 public:
  explicit Conversation(Transport transport = Transport::best) : transport_(transport) {}

  template <auto f>
  void open(Index threads = 1) {
    In<std::int64_t> by(10);
    std::vector<Piece> pieces;
    if constexpr (std::tuple_size_v<typename Remote<f>::Data> != 0)
      pieces = {Parameter<In<std::int64_t>>::piece(by)};
    call.emplace(
        VirtualChannel{.opener = 0, .peer = 1, .number = 4},
        CallPlan{
            .function = &remote<f>.entry(), .range = {.limit = threads}, .transport = transport_},
        pieces);
    call->open(reach);
  }
  // Messages of at most so many bytes, one at a time: until nothing moves.
  void move(std::size_t most_bytes = 4096) {
    testing::QueueLink here(post, 0, 1, most_bytes);
    testing::QueueLink there(post, 1, 1, most_bytes);
    for (bool moved = true; moved;) {
      const auto take = [this](const Message& m) {
        return call->take(m, reach, [this](const Note& note) { note_of(note); });
      };
      call->advance(here);
      moved = there.poll([this](const Message& m) { return service.take(m); });
      if (!service.ended())
        service.advance_channels(there);
      else if (!closed)
        closed = service.advance(there);
      moved = here.poll(take) || moved;
    }
  }
  void note_of(const Note& note) {
    std::int64_t value = 0;
    if (note.news == News::value) std::memcpy(&value, note.value, sizeof value);
    told += std::to_string(note.channel) +
            (note.news == News::value  ? "=" + std::to_string(value)
             : note.news == News::none ? " none"
                                       : " none early") +
            "; ";
  }
  void run_threads() {
    ASSERT_TRUE(service.ready());
    ASSERT_TRUE(service.fetch(reach).ok());
    const std::uint64_t n = service.range().count();
    for (std::uint64_t i = 0; i < n; ++i) {
      for (FamilyEnd* const end : service.channels())
        end->begin(static_cast<Index>(i), i == 0, i + 1 == n);
      service.frame().call(static_cast<Index>(i));
    }
  }
  void settle(bool early) {
    for (FamilyEnd* const end : service.channels()) end->end(early);
  }
  std::string kinds() const {
    std::string all;
    for (const auto& letter : post.at(1)) all += "rdskcn"[static_cast<int>(letter.kind)];
    return all;
  }

  Transport transport_;
  testing::QueueLink::Post post;
  testing::NotingReach reach;
  std::optional<Call> call;
  Service service{{.opener = 0, .peer = 0, .number = 4}};
  std::string told;
  bool closed = false;
};

class SizedNotes : public ::testing::TestWithParam<std::tuple<Transport, int>> {
 protected:
  Conversation one{std::get<0>(GetParam())};
};
INSTANTIATE_TEST_SUITE_P(All, SizedNotes,
                         ::testing::Combine(::testing::Values(Transport::best, Transport::stream),
                                            ::testing::Values(1, 7, 20, 4096)));

TEST_P(SizedNotes, BringValuesThereAndTheLastOneBackWhenItIsWanted) {
  const auto most = static_cast<std::size_t>(std::get<1>(GetParam()));
  one.open<&add>(3);
  one.call->tell_value(1, &first);
  one.move(most);
  one.call->tell_value(0, &start);
  one.call->want_last(1);
  one.move(most);
  EXPECT_EQ(one.told, "");
  EXPECT_TRUE(one.service.is_ordered());
  one.run_threads();
  EXPECT_EQ(held->read(), start);
  one.move(most);
  EXPECT_EQ(one.told, "1=337; ");
  one.settle(false);
  one.service.end(one.reach, {});
  one.move(most);
  EXPECT_FALSE(one.call->ended());
  one.call->ask_sync();
  one.move(most);
  EXPECT_EQ(one.told, "1=337; ");
  EXPECT_TRUE(one.call->ended() && one.closed);
  EXPECT_EQ(one.call->completion().reason, ExitReason::done) << one.call->completion().text;
}

TEST_P(SizedNotes, BringTheLastValueWithTheEnd) {
  const auto most = static_cast<std::size_t>(std::get<1>(GetParam()));
  one.open<&add>();
  one.call->tell_value(0, &start);
  one.call->tell_value(1, &first);
  one.move(most);
  one.run_threads();
  one.settle(false);
  one.service.end(one.reach, {});
  one.move(most);
  EXPECT_TRUE(one.post[0].empty() && one.told.empty());  // CLL1
  one.call->ask_sync();
  one.move(most);
  EXPECT_EQ(one.told, "1=107; ");
  EXPECT_TRUE(one.call->ended());
}

TEST(Notes, AreInTheOrderOfTheProtocol) {
  Conversation one;
  one.open<&add>();
  one.call->ask_kill();
  one.call->tell_value(0, &start);
  one.call->tell_value(0, &first);  // once each
  one.call->want_last(1);
  one.call->want_last(1);
  one.call->ask_sync();
  one.call->tell_value(1, &first);  // CLL4: too late
  one.call->want_last(1);
  testing::QueueLink here(one.post, 0, 10, 4096);
  EXPECT_TRUE(one.call->advance(here));
  EXPECT_EQ(one.kinds(), "rkns");
  EXPECT_EQ(one.post[1][2].bytes.size(), sizeof(NoteHead) + sizeof(Triple) + sizeof(NoteHead));
}

TEST(Notes, CloseAChannelThatTheParentHasNotWrittenTo) {
  Conversation one;
  one.open<&holds>();
  one.move();
  EXPECT_FALSE(one.service.is_ordered());
  one.run_threads();
  EXPECT_FALSE(held->parent_channel().settled());
  one.call->ask_sync();
  one.move();
  EXPECT_TRUE(held->parent_channel().settled());
  EXPECT_EQ(held->parent_value(), nullptr);
}

TEST(Notes, SayThatTheLastThreadHasNotWritten) {
  for (const bool early : {false, true}) {
    Conversation one;
    one.open<&writes_nothing>();
    one.call->want_last(0);
    one.move();
    one.run_threads();
    one.move();
    EXPECT_EQ(one.told, "");
    one.settle(early);
    one.move();
    EXPECT_EQ(one.told, early ? "0 none early; " : "0 none; ");
    one.service.end(one.reach, {});
    one.call->ask_sync();
    one.move();
    EXPECT_EQ(one.told, early ? "0 none early; " : "0 none; ");
    EXPECT_TRUE(one.call->ended());
  }
}

// As one whose data could not be fetched.
TEST(Notes, SayThatAFamilyThatDidNotRunHasNoValue) {
  Conversation one;
  one.open<&writes_nothing>();
  one.move();
  one.service.end(one.reach, {.reason = ExitReason::failed, .value = 0, .text = "no data"});
  one.call->want_last(0);
  one.move();
  EXPECT_EQ(one.told, "0 none early; ");
  EXPECT_FALSE(one.call->ended());
}

// It knows no channels, and the creator may wait for one.
TEST(Notes, ToAFunctionThatIsNotThereAreAnsweredByItsEnd) {
  Conversation one;
  FunctionEntry unknown = remote<&add>.entry();
  unknown.id += 1;
  one.call.emplace(VirtualChannel{.opener = 0, .peer = 1, .number = 4},
                   CallPlan{.function = &unknown}, std::span<const Piece>());
  one.call->open(one.reach);
  one.call->want_last(1);
  one.move();
  one.service.end(one.reach, Service::refusal(one.service.fetch(one.reach)));
  one.move();
  EXPECT_TRUE(one.call->ended());
  EXPECT_NE(one.call->completion().text.find("same program"), std::string::npos)
      << one.call->completion().text;
}

TEST(Notes, ThatDoNotFitAreFoundOut) {
  const NoteHead behind{2, News::none};
  const NoteHead unknown{0, static_cast<News>(4)};
  for (const NoteHead& head : {behind, unknown}) {
    const auto bytes = std::as_bytes(std::span(&head, 1));
    Conversation one;
    one.open<&add>();
    one.move();
    one.service.take({.channel = {0, 0, 4}, .kind = Kind::notes, .bytes = bytes});
    one.service.end(one.reach, {});
    one.move();
    EXPECT_EQ(one.call->completion().reason, ExitReason::failed);
    EXPECT_NE(one.call->completion().text.find("not fit"), std::string::npos);
    Conversation other;
    other.open<&add>();
    other.call->take({.channel = {0, 1, 4}, .kind = Kind::notes, .bytes = bytes}, other.reach);
    other.call->ask_sync();
    other.move();
    other.service.end(other.reach, {});
    other.move();
    EXPECT_EQ(other.call->completion().reason, ExitReason::failed);
  }
}

TEST(NoteStreams, AreNoLongerThanAllTheirNotes) {
  const std::span<const ChannelForm> channels = remote<&add>.entry().channels;
  ASSERT_EQ(channels.size(), 2u);
  NotesIn in(NoteForm(channels, false));
  const std::vector<std::byte> most(4 * sizeof(NoteHead) + sizeof(Triple) + sizeof(std::int64_t));
  unsigned notes = 0;
  EXPECT_FALSE(in.take(std::vector<std::byte>(most.size() + 1), [&](const Note&) { ++notes; }));
  EXPECT_EQ(notes, 0u);
  EXPECT_TRUE(in.take(most, [&](const Note&) { ++notes; }));
  EXPECT_EQ(notes, 2u);  // of zeros: values of channel 0
}

TEST(Notes, KnowValuesWithoutAFormInAStream) {
  const CallPlan plan{.function = &remote<&of_structures>.entry(), .transport = Transport::stream};
  EXPECT_TRUE(Call({}, plan, {}).has_unfit_channel());
  CallPlan other = plan;
  other.transport = Transport::buffer;
  EXPECT_FALSE(Call({}, other, {}).has_unfit_channel());
  other.transport = Transport::stream;
  other.function = &remote<&add>.entry();
  EXPECT_FALSE(Call({}, other, {}).has_unfit_channel());
}

}  // namespace
}  // namespace tombolo::svp
