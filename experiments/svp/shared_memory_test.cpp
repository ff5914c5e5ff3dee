// SPDX-License-Identifier: Apache-2.0
// Purpose: arrays that another core copies out of the memory of their owner, twice, with nothing
// between that would touch a cache by chance: publish and refresh are each needed.
#include "experiments/svp/shared_memory.h"

#include <gtest/gtest.h>

#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

using scc::View;
using simulator::Address;
using simulator::CoreId;

constexpr std::uint64_t bytes = 8192;
const CoreId owner(0);
const CoreId reader(2);
const CoreId copier(4);

class SharedMemoryTest : public ::testing::Test {
 protected:
  // The owner stores and publishes two rounds of an array, each of which the reader copies into its
  // own, whose old bytes are in its caches. Words that are not the round's are wrong.
  std::uint64_t wrong_words(bool with_copy_cores, SharedMemory::Care care) {
    const Context context = test_context();
    scc::Chip chip(context.chip);
    Linux there(chip, owner, {});
    Linux here(chip, reader, {});
    const std::vector<CoreId> copiers =
        with_copy_cores ? std::vector<CoreId>{copier} : std::vector<CoreId>();
    SharedMemory at_owner(chip, there, copiers, care);
    SharedMemory at_reader(chip, here, copiers, care);
    address_ = published_ = copied_ = wrong_ = 0;
    there.start([&] { give(there, at_owner); });
    here.start([&] {
      take(here, at_reader);
      at_reader.stop_copy_cores();
      here.stop(here.cpu());
      there.stop(here.cpu());
    });
    if (with_copy_cores) chip.start(copier, [](scc::Cpu& cpu) { CopyCore(cpu).serve(); });
    const simulator::RunResult result = chip.run();
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    return wrong_;
  }

 private:
  void give(Linux& system, SharedMemory& shared) {
    Address array;
    ASSERT_TRUE(system.allocate(bytes, &array).ok());
    for (std::uint64_t round = 1; round <= 2; ++round) {
      for (std::uint64_t i = 0; i < bytes; i += 4) {
        system.cpu().load<std::uint32_t>({array + i});  // so that the store stays in a cache
        system.cpu().store<std::uint32_t>({array + i}, static_cast<std::uint32_t>(round));
      }
      address_ = shared.publish({array});
      system.cpu().fibre().await_turn();
      published_ = round;
      while (copied_ < round) system.sleep();
    }
  }
  void take(Linux& system, SharedMemory& shared) {
    Address array;
    ASSERT_TRUE(system.allocate(bytes, &array).ok());
    for (std::uint64_t round = 1; round <= 2; ++round) {
      while (published_ < round) system.sleep();
      read(system, array, ~0u);
      shared.copy(owner, address_, {array}, bytes);
      wrong_ += read(system, array, static_cast<std::uint32_t>(round));
      system.cpu().fibre().await_turn();
      copied_ = round;
    }
  }
  std::uint64_t read(Linux& system, Address array, std::uint32_t wanted) {
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < bytes; i += 4)
      if (system.cpu().load<std::uint32_t>({array + i}) != wanted) ++wrong;
    return wrong;
  }

  std::uint64_t address_ = 0;
  std::uint64_t published_ = 0;  // rounds
  std::uint64_t copied_ = 0;
  std::uint64_t wrong_ = 0;
};

TEST_F(SharedMemoryTest, RemappingBringsEachRound) { EXPECT_EQ(wrong_words(false, {}), 0u); }
TEST_F(SharedMemoryTest, CopyCoresBringEachRound) { EXPECT_EQ(wrong_words(true, {}), 0u); }

TEST_F(SharedMemoryTest, RemappingWithoutTheOwnersFlushIsStale) {
  EXPECT_GT(wrong_words(false, {.publish = false}), 0u);
}
TEST_F(SharedMemoryTest, RemappingWithoutDroppingLinesIsStale) {
  EXPECT_GT(wrong_words(false, {.refresh = false}), 0u);
}
TEST_F(SharedMemoryTest, CopyCoresWithoutTheOwnersFlushAreStale) {
  EXPECT_GT(wrong_words(true, {.publish = false}), 0u);
}
TEST_F(SharedMemoryTest, CopyCoresWithoutTheReadersFlushAreStale) {
  EXPECT_GT(wrong_words(true, {.refresh = false}), 0u);
}

}  // namespace
}  // namespace tombolo::experiments
