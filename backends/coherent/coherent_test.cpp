// SPDX-License-Identifier: Apache-2.0
// Purpose: regions that are mapped in part: which bytes come from the mapping and which by the
// kernel's copies. The mapping and the memory behind the kernel's copies differ here, so that a
// wrong way shows. Sleeps on words: how they begin and end.
#include "backends/coherent/coherent.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <utility>

namespace tombolo::coherent {
namespace {

constexpr std::size_t bytes = 64;
constexpr machine::Offset start = 16;
constexpr std::size_t length = 32;

class PartlyMapped : public testing::Test {
 protected:
  PartlyMapped() : core_(attachment()) {}

  Attachment attachment() {
    Attachment at;
    at.cores = 2;
    at.sync = sync_.data();
    at.sync_bytes_per_home = sync_.size() / 2;
    machine::DataRegion own;
    own.bytes = bytes;
    own.pid = getpid();
    own.foreign_address = reinterpret_cast<std::uint64_t>(own_.data());
    machine::DataRegion peer = own;
    peer.foreign_address = reinterpret_cast<std::uint64_t>(foreign_.data());
    at.data = {own, peer};
    at.parts = {{}, {reinterpret_cast<std::byte*>(mapped_.data()), start, length}};
    return at;
  }
  std::string read(machine::Home home, machine::Offset at, std::size_t n) {
    std::string text(n, '?');
    EXPECT_TRUE(core_.read({home, at}, text.data(), n).ok());
    return text;
  }

  alignas(64) std::array<std::byte, 1024> sync_{};
  std::string own_ = std::string(bytes, 'o');
  std::string foreign_ = std::string(bytes, 'f');
  std::string mapped_ = std::string(length, 'm');
  Core core_;
};

TEST_F(PartlyMapped, IsReadInPieces) {
  EXPECT_EQ(read(1, 0, start), std::string(start, 'f'));
  EXPECT_EQ(read(1, start, length), std::string(length, 'm'));
  EXPECT_EQ(read(1, start + length, 16), std::string(16, 'f'));
  EXPECT_EQ(read(1, start - 3, 8), "fffmmmmm");
  EXPECT_EQ(read(1, start + length - 3, 8), "mmmfffff");
  EXPECT_EQ(read(1, 0, bytes), std::string(16, 'f') + std::string(32, 'm') + std::string(16, 'f'));
  EXPECT_EQ(read(1, start, 1), "m");
  EXPECT_EQ(read(1, start - 1, 1), "f");
  EXPECT_EQ(read(0, 0, bytes), own_);
}

TEST_F(PartlyMapped, IsWrittenInPieces) {
  const std::string text = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl";
  ASSERT_EQ(text.size(), bytes);
  ASSERT_TRUE(core_.write_through({1, 0}, text.data(), bytes).ok());
  EXPECT_EQ(foreign_, text.substr(0, 16) + std::string(32, 'f') + text.substr(48));
  EXPECT_EQ(mapped_, text.substr(16, 32));
  ASSERT_TRUE(core_.write({1, start - 1}, "12", 2).ok());
  EXPECT_EQ(foreign_[start - 1], '1');
  EXPECT_EQ(mapped_[0], '2');
  EXPECT_EQ(own_, std::string(bytes, 'o'));
}

TEST_F(PartlyMapped, PiecesGoEachItsWay) {
  std::string text = "abcdefghij";
  const auto local = [&](std::size_t i) { return reinterpret_cast<std::byte*>(&text[i]); };
  const std::array<machine::DataPiece, 4> pieces{
      {{start - 1, local(0), 3}, {start + 8, local(3), 2}, {0, local(9), 0}, {60, local(5), 2}}};
  for (const machine::Home home : {1u, 0u}) {
    ASSERT_TRUE(core_.write_pieces_through(home, pieces).ok());
    core_.renew_pieces(home, pieces);
    EXPECT_EQ(read(home, start - 2, 5).substr(1, 3), "abc");
    EXPECT_EQ(read(home, start + 8, 2), "de");
    EXPECT_EQ(read(home, 60, 2), "fg");
  }
  std::string foreign(64, 'f');
  foreign[start - 1] = 'a';
  foreign[61] = 'g';
  EXPECT_EQ(foreign_, foreign);
  std::string mapped(32, 'm');
  EXPECT_EQ(mapped_, mapped.replace(0, 2, "bc").replace(8, 2, "de"));
  EXPECT_EQ(own_.substr(start - 1, 4), "abco");
  const std::string written = text;
  text.assign(text.size(), '?');
  ASSERT_TRUE(core_.read_pieces(1, pieces).ok());
  EXPECT_EQ(text, "abcdefg???");
}

// Nothing of it is mapped: the kernel's copies take all pieces at once, and end where memory does.
TEST_F(PartlyMapped, PiecesOfAnUnmappedRegionAreCopiedByTheKernel) {
  Attachment at = attachment();
  for (const bool told_of_parts : {true, false}) {
    if (told_of_parts)
      at.parts[1] = {};
    else
      at.parts.clear();
    Core core(at);
    std::string text = told_of_parts ? "abcd" : "wxyz";
    const auto local = [&](std::size_t i) { return reinterpret_cast<std::byte*>(&text[i]); };
    const std::array<machine::DataPiece, 3> pieces{
        {{start, local(0), 1}, {5, local(3), 0}, {3, local(1), 2}}};
    ASSERT_TRUE(core.write_pieces_through(1, pieces).ok());
    EXPECT_EQ(foreign_[start], text[0]);
    EXPECT_EQ(foreign_.substr(2, 4), "f" + text.substr(1, 2) + "f");
    const std::string written = std::exchange(text, "????");
    ASSERT_TRUE(core.read_pieces(1, pieces).ok());
    EXPECT_EQ(text, written.substr(0, 3) + "?");
    EXPECT_EQ(mapped_, std::string(length, 'm'));
  }
}

TEST_F(PartlyMapped, HasAViewOfWhatIsMapped) {
  auto* const mapped = reinterpret_cast<std::byte*>(mapped_.data());
  EXPECT_EQ(core_.view({1, start}), mapped);
  EXPECT_EQ(core_.view({1, start}, length), mapped);
  EXPECT_EQ(core_.view({1, start + 8}, length - 8), mapped + 8);
  EXPECT_EQ(core_.view({1, start + 8}, length), nullptr);
  EXPECT_EQ(core_.view({1, start - 1}, 2), nullptr);
  EXPECT_EQ(core_.view({1, 0}), nullptr);
  EXPECT_EQ(core_.view({1, start + length}), nullptr);
  EXPECT_EQ(core_.view({0, 3}, bytes - 3), reinterpret_cast<std::byte*>(own_.data()) + 3)
      << "the own region is reached by address";
}

// ---- Sleeps on words ----------------------------------------------------------------------------

class CountingHook : public machine::IdleHook {
 public:
  Status idle() override { return ++calls == 1 ? Status() : Status::process_failed(3, "it died"); }
  int calls = 0;
};

class Sleeps : public testing::Test {
 protected:
  Core core(std::uint32_t microseconds, machine::IdleHook* hook = nullptr) {
    Attachment at;
    at.sync = sync_.data();
    at.sync_bytes_per_home = sync_.size();
    at.waiting.sleep_us_max = microseconds;
    at.idle = hook;
    return Core(at);
  }
  static constexpr machine::SyncPlace place{0, 128};
  static constexpr std::uint32_t hour = 3'600'000'000;
  static constexpr std::uint64_t high = std::uint64_t{1} << 40;

  alignas(64) std::array<std::byte, 256> sync_{};
};

TEST_F(Sleeps, DoNotBeginWhereTheWordIsAnother) {
  Core here = core(hour);
  here.store(here.word(place), high + 1);
  ASSERT_TRUE(here.sleep_on(here.word(place), high).ok());
}

TEST_F(Sleeps, EndByTheBoundWithTheErrorOfTheHook) {
  CountingHook hook;
  Core here = core(1, &hook);
  EXPECT_TRUE(here.sleep_on(here.word(place), 0).ok());
  EXPECT_EQ(here.sleep_on(here.word(place), 0).rank(), 3);
  EXPECT_EQ(hook.calls, 2);
}

// The sleepers sleep for an hour if they are not woken.
TEST_F(Sleeps, EndByAWakeUpEach) {
  Core here = core(hour);
  const Core::Word word = here.word(place);
  std::atomic<int> ended{0};
  const auto sleep = [&] {
    Core there = core(hour);
    while (there.load(word) == high) EXPECT_TRUE(there.sleep_on(word, high).ok());
    ++ended;
  };
  here.store(word, high);
  std::jthread first(sleep);
  std::jthread second(sleep);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  here.exchange(word, high + 1);
  while (ended != 2) {
    here.wake_sleepers(word, 1);
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace tombolo::coherent
