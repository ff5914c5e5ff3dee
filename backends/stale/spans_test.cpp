// SPDX-License-Identifier: Apache-2.0
// Lines are those of the hardware: which regions share them, and the effect on their bytes.
#include "backends/stale/spans.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "backends/stale/stale.h"

namespace tombolo::stale {
namespace {

constexpr std::uintptr_t base = 0x100000;

// Never looked at: spans are made from addresses alone.
machine::DataRegion region(std::uintptr_t address, std::uint64_t bytes) {
  return {.memory = reinterpret_cast<std::byte*>(address), .bytes = bytes};
}
Attachment attached(std::initializer_list<machine::DataRegion> regions) {
  Attachment at;
  at.cores = static_cast<Home>(regions.size());
  at.data = regions;
  return at;
}

TEST(Spans, JoinRegionsThatShareALine) {
  const Spans spans(attached({region(base, 100), region(base + 100, 0), region(base + 100, 28),
                              region(base + 128, 10), region(base + 138, 5), region(0, 0),
                              region(base + 4096, 64)}));
  EXPECT_EQ(spans.of(0), spans.of(2)) << "past an empty one";
  EXPECT_EQ(spans.start_of(2), 100u);
  EXPECT_NE(spans.of(3), spans.of(2)) << "a line begins between them";
  EXPECT_EQ(spans.of(4), spans.of(3));
  EXPECT_EQ(spans.start_of(4), 10u);
  EXPECT_NE(spans.of(6), spans.of(4));
  EXPECT_EQ(spans[spans.of(0)].bytes, 128u);
  EXPECT_EQ(spans[spans.of(5)].memory, nullptr);
  using Part = std::tuple<Home, Offset, Offset>;
  std::vector<Part> parts;
  spans.each_region(spans.of(0), 64, 128, [&](Home home, Offset begin, Offset end) {
    parts.emplace_back(home, begin, end);
  });
  EXPECT_EQ(parts, (std::vector<Part>{{0, 64, 100}, {2, 0, 28}}));
}

TEST(Spans, MemoryOfTheProgramIsApart) {
  std::array<std::byte, 100> program{};
  Attachment at = attached({region(base, 100), region(base + 100, 100), region(base + 200, 100)});
  at.self = 1;
  at.own_view = program.data();
  const Spans spans(at);
  EXPECT_NE(spans.of(0), spans.of(1));
  EXPECT_NE(spans.of(1), spans.of(2));
}

TEST(Spans, CountLinesByAddress) {
  const Spans spans(attached({region(base + 50, 100), region(base + 4096 + 60, 3)}));
  const Span& span = spans[0];
  EXPECT_EQ(span.lines(), 3u);
  EXPECT_EQ(span.bytes_of(0), 14u);
  EXPECT_EQ(span.bytes_of(1), 64u);
  EXPECT_EQ(span.bytes_of(2), 22u);
  EXPECT_EQ(span.start_of(1), 14u);
  EXPECT_EQ(span.start_of(2), 78u);
  EXPECT_EQ(span.line_of(13), 0u);
  EXPECT_EQ(span.line_of(14), 1u);
  EXPECT_EQ(span.line_of(99), 2u);
  EXPECT_EQ(spans[1].lines(), 1u);
  EXPECT_EQ(spans[1].bytes_of(0), 3u);
}

// Two cores whose regions lie behind one another from `start` of a line on.
struct Neighbours {
  Neighbours(std::size_t start, std::size_t bytes) {
    at.cores = 2;
    at.sync = sync.data();
    at.sync_bytes_per_home = 4096;
    at.data = {{.memory = memory.data() + start, .bytes = bytes},
               {.memory = memory.data() + start + bytes, .bytes = bytes}};
    shared.resize(Core::shared_bytes(at.data) / 8);
    at.shared = reinterpret_cast<std::byte*>(shared.data());
    a.emplace(at);
    at.self = 1;
    b.emplace(at);
  }
  struct alignas(64) Block : std::array<std::byte, 2 * std::size_t{4096}> {};
  Block sync{};
  Block memory{};
  std::vector<std::uint64_t> shared;
  Attachment at;
  std::optional<Core> a;
  std::optional<Core> b;
};

TEST(Stale, ShowsNeighboursThatOverwriteEachOtherInALine) {
  Neighbours pair(0, 24);
  *pair.b->view({1, 0}) = std::byte{7};
  *pair.b->view({1, 23}) = std::byte{9};
  pair.b->set_site(0xb);
  pair.b->publish({1, 0}, 24);
  EXPECT_EQ(pair.memory[24], std::byte{7});
  *pair.a->view({0, 8}) = std::byte{5};
  pair.a->set_site(0xa);
  pair.a->publish({0, 0}, 24);  // of its own region alone
  EXPECT_EQ(pair.memory[8], std::byte{5});
  EXPECT_EQ(pair.memory[24], std::byte{0}) << "the stale half of the line";
  ASSERT_EQ(pair.a->findings().details().size(), 1u);
  const Finding& found = pair.a->findings().details()[0];
  EXPECT_EQ(found.loss, Loss::lost_update);
  EXPECT_EQ(found.home, 1u);
  EXPECT_EQ(found.begin, 0u);
  EXPECT_EQ(found.end, 24u);
  EXPECT_EQ(found.bytes, 2u);
  EXPECT_EQ(found.culprit, (Writer{0, 0xa}));
  EXPECT_EQ(found.victim, (Writer{1, 0xb}));
}

TEST(Stale, NeighboursInLinesOfTheirOwnLeaveEachOtherAlone) {
  for (const std::size_t bytes : {64u, 128u}) {
    Neighbours pair(0, bytes);
    *pair.b->view({1, 0}) = std::byte{7};
    pair.b->publish({1, 0}, bytes);
    *pair.a->view({0, bytes - 1}) = std::byte{5};
    pair.a->publish({0, 0}, bytes);
    EXPECT_EQ(pair.memory[bytes - 1], std::byte{5});
    EXPECT_EQ(pair.memory[bytes], std::byte{7});
    EXPECT_TRUE(pair.a->findings().clean());
  }
}

// All of it goes to memory and comes from there, in the lines of any regions.
TEST(Stale, SharedLinesKeepEveryByteThatIsInTurn) {
  for (const std::size_t start : {0u, 1u, 40u, 63u})
    for (const std::size_t bytes : {1u, 24u, 63u, 64u, 65u, 200u}) {
      SCOPED_TRACE(::testing::Message() << bytes << " bytes from " << start);
      Neighbours pair(start, bytes);
      for (int turn = 1; turn <= 4; ++turn)
        for (Core* core : {&*pair.a, &*pair.b}) {
          const Home own = core->self();
          for (const Home home : {0u, 1u}) core->refresh({home, 0}, bytes);
          const Home peer = 1 - own;
          const auto before = static_cast<std::byte>(turn * 2 + static_cast<int>(own) - 1);
          if (turn > 1 || own == 1) {
            EXPECT_EQ(core->view({peer, 0})[bytes - 1], before);
          }
          const auto value = static_cast<std::byte>(turn * 2 + static_cast<int>(own));
          for (std::size_t i = 0; i < bytes; ++i) core->view({own, 0})[i] = value;
          core->publish({own, 0}, bytes);
        }
      EXPECT_EQ(pair.memory[start], std::byte{8});
      EXPECT_EQ(pair.memory[start + bytes], std::byte{9});
      EXPECT_EQ(pair.memory[start + 2 * bytes], std::byte{0});
      if (start > 0) {
        EXPECT_EQ(pair.memory[start - 1], std::byte{0});
      }
      EXPECT_TRUE(pair.a->findings().clean() && pair.b->findings().clean());
    }
}

}  // namespace
}  // namespace tombolo::stale
