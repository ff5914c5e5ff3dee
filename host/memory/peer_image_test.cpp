// SPDX-License-Identifier: Apache-2.0
// Purpose: images mapped by their peers: stores seen both ways, few mappings, and images that are
// gone. The peer is this process itself, which has its image at other addresses then.
#include "host/memory/peer_image.h"

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
