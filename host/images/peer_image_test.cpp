// SPDX-License-Identifier: Apache-2.0
// Purpose: images mapped by their peers: stores seen both ways, few mappings, and images that are
// gone. The peer is this process itself, which has its image at other addresses then.
#include "host/images/peer_image.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "host/memory/address_space.h"
#include "host/memory/page.h"

namespace tombolo::host {
namespace {

class PeerImageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!image_.open().ok()) GTEST_SKIP() << "no image here";
  }
  AddressRange allocate(std::uint64_t bytes) {
    const auto low = reinterpret_cast<std::uint64_t>(image_.allocate(bytes));
    EXPECT_NE(low, 0u);
    return {low, low + bytes};
  }
  // Of images, anywhere in this process.
  static std::size_t mappings() {
    std::vector<Mapping> all;
    EXPECT_TRUE(read_mappings(all).ok());
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const Mapping& each) {
      return each.name.find("tombolo-image") != std::string::npos;
    }));
  }
  // Of parts of images in the terabyte from there.
  static std::size_t mappings_from(std::uint64_t address) {
    std::vector<Mapping> all;
    EXPECT_TRUE(read_mappings(all).ok());
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const Mapping& each) {
      return each.name.find("tombolo-image") != std::string::npos && each.offset >= address &&
             each.offset < address + (std::uint64_t{1} << 40);
    }));
  }
  MemoryImage image_;
};

TEST_F(PeerImageTest, StoresAreSeenBothWays) {
  const AddressRange memory = allocate(3 * page_bytes());
  PeerImage peer;
  ASSERT_TRUE(PeerImage::map(image_.name(), memory, peer).ok());
  auto* const own = reinterpret_cast<std::byte*>(memory.low);
  for (const std::uint64_t at : {std::uint64_t{0}, page_bytes() + 1, 3 * page_bytes() - 1}) {
    own[at] = std::byte{7};
    EXPECT_EQ(*peer.at(memory.low + at), std::byte{7});
    *peer.at(memory.low + at) = std::byte{9};
    EXPECT_EQ(own[at], std::byte{9});
  }
}

TEST_F(PeerImageTest, ARangeAcrossSpansIsMappedWhole) {
  const AddressRange memory = allocate(PeerImage::span_bytes + page_bytes());
  PeerImage peer;
  ASSERT_TRUE(PeerImage::map(image_.name(), memory, peer).ok());
  *peer.at(memory.high - 1) = std::byte{5};
  EXPECT_EQ(*reinterpret_cast<std::byte*>(memory.high - 1), std::byte{5});
}

TEST_F(PeerImageTest, ManyRangesOfOneSpanTakeOneMapping) {
  const AddressRange memory = allocate(500 * page_bytes());
  std::vector<PeerImage> peers(500);
  ASSERT_TRUE(PeerImage::map(image_.name(), memory, peers[0]).ok());
  const std::size_t before = mappings();
  for (std::uint64_t i = 0; i < peers.size(); ++i) {
    const std::uint64_t low = memory.low + i * page_bytes();
    ASSERT_TRUE(PeerImage::map(image_.name(), {low, low + 100}, peers[i]).ok());
  }
  EXPECT_EQ(mappings(), before);
}

// As of 128 processes with 500 windows.
TEST_F(PeerImageTest, ManyRangesOfManyProcessesTakeTwoMappingsOfEachAtMost) {
  constexpr std::size_t processes = 128;
  constexpr std::size_t ranges = 500;
  std::vector<MemoryImage> images(processes);
  std::vector<AddressRange> memory;
  for (MemoryImage& image : images) {
    ASSERT_TRUE(image.open().ok());
    const auto low = reinterpret_cast<std::uint64_t>(image.allocate(ranges * page_bytes()));
    ASSERT_NE(low, 0u);
    memory.push_back({low, low + ranges * page_bytes()});
  }
  const std::size_t before = mappings();
  std::vector<PeerImage> peers(processes * ranges);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const std::uint64_t low = memory[i / ranges].low + i % ranges * page_bytes();
    ASSERT_TRUE(PeerImage::map(images[i / ranges].name(), {low, low + 100}, peers[i]).ok());
  }
  EXPECT_LE(mappings(), before + 2 * processes) << "memory may lie in two spans";
  for (std::size_t i = 0; i < processes; ++i) images[i].release(memory[i]);
}

TEST_F(PeerImageTest, FewUnusedSpansStayMapped) {
  constexpr std::uint64_t spans = 200;
  const std::size_t before = mappings();
  for (std::uint64_t i = 1; i <= spans; ++i) {
    PeerImage peer;
    const std::uint64_t low = i * 3 * PeerImage::span_bytes;
    ASSERT_TRUE(PeerImage::map(image_.name(), {low, low + 1}, peer).ok());
  }
  EXPECT_LT(mappings(), before + spans / 2);
}

// So many, and those that were used last.
TEST_F(PeerImageTest, AsManyUnusedSpansStayAsTheBoundSays) {
  constexpr std::size_t most_unused = 64;
  const std::uint64_t base = std::uint64_t{1} << 40;
  const auto map = [&](std::uint64_t i, PeerImage& peer) {
    const std::uint64_t low = base + i * PeerImage::span_bytes;
    ASSERT_TRUE(PeerImage::map(image_.name(), {low, low + 1}, peer).ok());
  };
  PeerImage used[2];
  map(0, used[0]);
  map(1, used[1]);
  for (std::uint64_t i = 2; i < 300; ++i) {
    PeerImage unused;
    map(i, unused);
  }
  // One more, as the last was not unused when it came; and those of other tests do not count.
  EXPECT_EQ(mappings_from(base), 2 + most_unused + 1);
  const std::size_t now = mappings();
  PeerImage again;
  map(0, again);
  EXPECT_EQ(again.at(base), used[0].at(base)) << "one in use is there";
  map(299, again);
  EXPECT_EQ(mappings(), now) << "the last is there";
}

TEST_F(PeerImageTest, ARangeThatASpanDoesNotCoverIsMappedAnew) {
  const std::uint64_t span = PeerImage::span_bytes;
  const AddressRange memory = allocate(4 * span);
  const std::uint64_t edge = memory.low / span * span + 2 * span;
  PeerImage peers[3];
  ASSERT_TRUE(PeerImage::map(image_.name(), {edge, edge + 1}, peers[0]).ok());
  ASSERT_TRUE(PeerImage::map(image_.name(), {edge - 1, edge + 1}, peers[1]).ok());
  ASSERT_TRUE(PeerImage::map(image_.name(), {edge + span - 1, edge + span + 1}, peers[2]).ok());
  *reinterpret_cast<std::byte*>(edge - 1) = std::byte{3};
  *reinterpret_cast<std::byte*>(edge + span) = std::byte{4};
  EXPECT_EQ(*peers[1].at(edge - 1), std::byte{3});
  EXPECT_EQ(*peers[2].at(edge + span), std::byte{4});
}

TEST_F(PeerImageTest, TheSameAddressesOfAnotherImageAreOthers) {
  const AddressRange memory = allocate(page_bytes());
  MemoryImage another;
  ASSERT_TRUE(another.open().ok());
  PeerImage one;
  PeerImage other;
  ASSERT_TRUE(PeerImage::map(image_.name(), memory, one).ok());
  ASSERT_TRUE(PeerImage::map(another.name(), memory, other).ok());
  *one.at(memory.low) = std::byte{1};
  EXPECT_EQ(*other.at(memory.low), std::byte{0});
}

TEST_F(PeerImageTest, SpansOfAnEndedProcessAreUnmapped) {
  const std::uint64_t low = std::uint64_t{3} << 40;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ready[1]);
    char ignored = 0;
    _exit(read(ready[0], &ignored, 1) == 0 ? 0 : 1);
  }
  ImageName name = image_.name();  // the child has the descriptor, too
  name.pid = child;
  {
    PeerImage peer;
    const Status status = PeerImage::map(name, {low, low + 1}, peer);
    close(ready[0]);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(mappings_from(low), 1u);
  }
  close(ready[1]);
  waitpid(child, nullptr, 0);
  PeerImage other;
  ASSERT_TRUE(PeerImage::map(image_.name(), {1, 2}, other).ok());
  EXPECT_EQ(mappings_from(low), 0u);
}

TEST_F(PeerImageTest, AnImageThatIsClosedOrGoneIsAnError) {
  const AddressRange memory = allocate(page_bytes());
  ImageName name = image_.name();
  ++name.inode;
  PeerImage peer;
  EXPECT_EQ(PeerImage::map(name, memory, peer).code(), Code::unsupported);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  name.pid = child;
  EXPECT_EQ(PeerImage::map(name, memory, peer).code(), Code::process_failed);
}

}  // namespace
}  // namespace tombolo::host
