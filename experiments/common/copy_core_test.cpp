// SPDX-License-Identifier: Apache-2.0
// Copy cores move the bytes that they are told to, and no others.
#include "experiments/common/copy_core.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/random.h"

namespace tombolo::experiments {
namespace {

using scc::Chip;
using scc::Cpu;
using simulator::Address;
using simulator::CoreId;

scc::Parameters parameters() {
  scc::Parameters p;
  EXPECT_TRUE(scc::find_parameters("scc", &p).ok());
  return p;
}

constexpr CoreId sender(0);
constexpr CoreId copier(2);

std::vector<std::byte> random_bytes(std::uint64_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.next());
  return bytes;
}

std::vector<std::byte> peek(Chip& chip, Address at, std::uint64_t n) {
  std::vector<std::byte> bytes(n);
  chip.peek(sender, at, bytes.data(), n);
  return bytes;
}

struct Move {
  std::uint64_t from;  // in the sender's private memory
  std::uint64_t to;
  std::uint64_t bytes;
  CopyMethod method;
};

class CopyCoreTest : public ::testing::Test {
 protected:
  // Lets a copy core do all moves, and looks at source, target and the target's surroundings.
  void check(const std::vector<Move>& moves) {
    constexpr std::uint64_t around = 64;
    std::vector<std::vector<std::byte>> expected;
    std::uint64_t seed = 1;
    for (const Move& move : moves) {
      const auto source = random_bytes(move.bytes, ++seed);
      auto target = random_bytes(move.bytes + 2 * around, ++seed);
      chip.poke(sender, Address(move.from), source.data(), source.size());
      chip.poke(sender, Address(move.to - around), target.data(), target.size());
      std::copy(source.begin(), source.end(), target.begin() + around);
      expected.push_back(target);
    }
    const simulator::RunResult result = run(moves);
    ASSERT_TRUE(result.status.ok()) << result.status.message();
    for (std::size_t i = 0; i < moves.size(); ++i)
      EXPECT_EQ(peek(chip, Address(moves[i].to - around), expected[i].size()), expected[i])
          << "move " << i;
  }

  simulator::RunResult run(const std::vector<Move>& moves) {
    chip.start(sender, [&](Cpu& cpu) {
      CopyClient client(cpu);
      Ticket last;
      for (const Move& move : moves)
        last = client.submit(copier, {system_address(chip, sender, Address(move.from)),
                                      system_address(chip, sender, Address(move.to)),
                                      static_cast<std::uint32_t>(move.bytes), move.method});
      client.wait(last);
      client.stop(copier);
    });
    chip.start(copier, [&](Cpu& cpu) { CopyCore(cpu).serve(); });
    return chip.run();
  }

  Chip chip{parameters()};
};

constexpr std::uint64_t page_size = std::uint64_t{16} << 20;

TEST_F(CopyCoreTest, MemcpyMovesTheBytes) {
  check({{4096, page_size + 8192, 5000, CopyMethod::memcpy}});
}

TEST_F(CopyCoreTest, MemcpyLeavesNeighboursOfPartialLinesAlone) {
  check({{4099, page_size + 8201, 77, CopyMethod::memcpy}});
}

TEST_F(CopyCoreTest, MemcpyGoesBeyondTheEndsOfPages) {
  check({{page_size - 100, 3 * page_size - 50, 1000, CopyMethod::memcpy}});
}

TEST_F(CopyCoreTest, LutCopyMovesLessThanTheCache) {
  check({{4096, page_size + 4096, 8192, CopyMethod::lut}});
}

TEST_F(CopyCoreTest, LutCopyMovesSeveralBlocksThroughTwoEntries) {
  check({{32 * 77, page_size + 32 * 77, 1'300'000, CopyMethod::lut}});
}

TEST_F(CopyCoreTest, LutCopyMovesPartialLines) {
  check({{4099, page_size + 4099, 300'001, CopyMethod::lut}});
}

TEST_F(CopyCoreTest, LutCopyOfWhatLiesDifferentlyInItsPageGoesByMemcpy) {
  check({{4096, page_size + 8192, 8192, CopyMethod::lut}});
}

TEST_F(CopyCoreTest, LutCopyGoesBeyondTheEndOfAPage) {
  check({{page_size - 65536, 3 * page_size - 65536, 131072, CopyMethod::lut}});
}

TEST_F(CopyCoreTest, CommandsOneAfterTheOtherSeeNoStaleLines) {
  // The second and third go through the same entries at the same places in the page.
  check({{4096, page_size + 4096, 8192, CopyMethod::lut},
         {2 * page_size + 4096, 3 * page_size + 4096, 8192, CopyMethod::lut},
         {4 * page_size + 4096, 5 * page_size + 4096, 8192, CopyMethod::memcpy},
         {6 * page_size + 4096, 7 * page_size + 4096, 300'000, CopyMethod::lut}});
}

TEST_F(CopyCoreTest, MoreCommandsThanTheBufferHolds) {
  std::vector<Move> moves;
  for (std::uint64_t i = 0; i < 100; ++i)
    moves.push_back({4096 * i, page_size + 4096 * i + 64, 64, CopyMethod::memcpy});
  check(moves);
}

TEST_F(CopyCoreTest, SeveralSendersAndAnotherCoreThatHearsOfIt) {
  constexpr std::uint32_t senders = 4;
  const auto source = random_bytes(64 * senders, 3);
  chip.poke(sender, Address(0), source.data(), source.size());
  const SystemAddress from = system_address(chip, sender, Address(0));
  const SystemAddress to = system_address(chip, sender, Address(page_size));
  // The last sender waits for the copies of all: it hears of each.
  const CoreId hears(10 + senders - 1);
  for (std::uint32_t i = 0; i < senders; ++i)
    chip.start(CoreId(10 + i), [&, i](Cpu& cpu) {
      CopyClient client(cpu);
      client.submit(copier,
                    {{from.controller, from.offset + 64 * i},
                     {to.controller, to.offset + 64 * i},
                     64,
                     CopyMethod::memcpy},
                    hears);
      if (cpu.id() != hears) return;
      client.wait({copier, senders});
      EXPECT_EQ(peek(chip, Address(page_size), source.size()), source);
      client.stop(copier);
    });
  chip.start(copier, [](Cpu& cpu) { CopyCore(cpu).serve(); });
  ASSERT_TRUE(chip.run().status.ok());
}

TEST_F(CopyCoreTest, EqualRunsTakeEqualTimes) {
  const std::vector<Move> moves = {{4096, page_size + 4096, 8192, CopyMethod::lut},
                                   {4096, page_size + 8192, 8192, CopyMethod::memcpy}};
  const simulator::RunResult first = run(moves);
  Chip again(parameters());
  again.start(sender, [&](Cpu& cpu) {
    CopyClient client(cpu);
    Ticket last;
    for (const Move& move : moves)
      last = client.submit(copier, {system_address(again, sender, Address(move.from)),
                                    system_address(again, sender, Address(move.to)),
                                    static_cast<std::uint32_t>(move.bytes), move.method});
    client.wait(last);
    client.stop(copier);
  });
  again.start(copier, [](Cpu& cpu) { CopyCore(cpu).serve(); });
  const simulator::RunResult second = again.run();
  EXPECT_EQ(first.end, second.end);
  EXPECT_EQ(first.digest, second.digest);
}

}  // namespace
}  // namespace tombolo::experiments
