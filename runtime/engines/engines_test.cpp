// SPDX-License-Identifier: Apache-2.0
#include "runtime/engines/engines.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <utility>
#include <vector>

namespace tombolo::runtime {
namespace {

// One process of a window of `n`, whose memory is all its own.
class Alone {
 public:
  Alone(MachineChoice machine, machine::Home n)
      : bytes_(served(machine).sync_bytes(n)), sync_(n * bytes_ + 64), data_(64) {}
  machine::Attachment attachment(machine::Home n, std::pmr::memory_resource& memory) {
    machine::Attachment at{.data = {n, machine::DataRegion{}, &memory}};
    at.cores = n;
    at.sync = sync_.data() + (64 - reinterpret_cast<std::uintptr_t>(sync_.data()) % 64);
    at.sync_bytes_per_home = bytes_;
    for (machine::DataRegion& region : at.data) {
      region.memory = data_.data();
      region.bytes = data_.size();
    }
    return at;
  }

 private:
  std::size_t bytes_;
  std::vector<std::byte> sync_;
  std::vector<std::byte> data_;
};

TEST(Machines, HaveNamesThatLeadBackToThem) {
  ASSERT_FALSE(machine_names().empty());
  EXPECT_EQ(machine_names()[0], "coherent") << "the machine of those who choose none";
  for (std::size_t i = 0; i < machine_names().size(); ++i) {
    const auto found = machine_named(machine_names()[i]);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(static_cast<std::size_t>(*found), i);
    EXPECT_EQ(name(*found), machine_names()[i]);
  }
  EXPECT_EQ(machine_named("Coherent"), std::nullopt);
  EXPECT_EQ(machine_named(""), std::nullopt);
}

TEST(Machines, HaveTheTraitsOfTheirCores) {
  const auto traits = [](const char* name, bool native) {
    return served({*machine_named(name), native}).traits();
  };
  EXPECT_TRUE(traits("coherent", true).coherent);
  EXPECT_TRUE(traits("coherent", true).maps_parts);
  EXPECT_TRUE(traits("coherent", false).serves_threads) << "has one kind of atomics only";
  EXPECT_TRUE(traits("flushed", true).takes_pools);
  EXPECT_TRUE(traits("flushed", true).serves_threads);
  EXPECT_FALSE(traits("flushed", false).serves_threads);
  EXPECT_FALSE(traits("flushed", true).maps_parts);
  EXPECT_TRUE(traits("stale", true).keeps_views_apart);
  EXPECT_TRUE(traits("stale", true).names_sites);
  EXPECT_TRUE(traits("stale", true).tells_losses);
  EXPECT_FALSE(traits("flushed", true).tells_losses);
  EXPECT_FALSE(traits("stale", true).takes_pools);
}

TEST(Machines, ShareMemoryBesideTheRegionsOnlyIfTheyWantIt) {
  std::vector<machine::DataRegion> regions(3);
  EXPECT_EQ(served({*machine_named("coherent")}).shared_bytes(regions), 0u);
  const ServedMachine& stale = served({*machine_named("stale")});
  const std::size_t without_bytes = stale.shared_bytes(regions);
  EXPECT_GT(without_bytes, 0u) << "for findings";
  for (machine::DataRegion& region : regions) region.bytes = 640;
  EXPECT_EQ(stale.shared_bytes(regions), without_bytes + std::size_t{3} * 10 * 8) << "by line";
}

// The data that the calls of a window look at is where the window wants it, so that it shares a
// page.
TEST(Engines, KeepWhatCallsLookAtInTheMemoryTheyAreGiven) {
  for (const char* const name : {"coherent", "flushed"}) {
    const MachineChoice machine{*machine_named(name)};
    if (!served(machine).available().ok()) continue;
    for (const machine::Home n : {1u, 8u, 28u}) {
      Alone alone(machine, n);
      alignas(64) std::array<std::byte, 4032> room;
      std::pmr::monotonic_buffer_resource memory(room.data(), room.size(),
                                                 std::pmr::null_memory_resource());
      machine::Attachment at = alone.attachment(n, memory);
      machine::DataRegion* const regions = at.data.data();
      Particulars particulars{.parts = {n, machine::RegionPart{}, &memory}};
      const EnginePointer engine =
          served(machine).engine(std::move(at), std::move(particulars), {}, memory);
      const auto* const where = reinterpret_cast<const std::byte*>(engine.get());
      EXPECT_GE(where, room.data());
      EXPECT_LT(where, room.data() + room.size());
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(where) % 64, 0u);
      // The engine looks at these very regions.
      regions[n - 1].memory += 32;
      EXPECT_EQ(engine->view(n - 1), regions[n - 1].memory);
      regions[n - 1].memory -= 32;
      const int value = 7;
      int result = 0;
      ASSERT_TRUE(engine->lock(sync::Access::exclusive, 0, {}).ok());
      ASSERT_TRUE(engine->put(0, 8, &value, sizeof value).ok());
      ASSERT_TRUE(engine->get(0, 8, &result, sizeof result).ok());
      ASSERT_TRUE(engine->unlock(0).ok());
      EXPECT_EQ(result, value);
    }
  }
}

// A window of two processes of which this one is the first. The region of the other has no mapping
// and no process behind it, so that only the part that is mapped can be reached.
TEST(Engines, UseThePartsThatAreMapped) {
  const MachineChoice coherent{*machine_named("coherent")};
  Alone alone(coherent, 2);
  std::pmr::monotonic_buffer_resource memory;
  machine::Attachment at = alone.attachment(2, memory);
  at.data[1].memory = nullptr;
  at.data[1].pid = -1;
  alignas(8) std::array<std::byte, 16> part{};
  Particulars particulars{.parts = {2, machine::RegionPart{}, &memory}};
  particulars.parts[1] = {part.data(), 8, part.size()};
  const EnginePointer engine =
      served(coherent).engine(std::move(at), std::move(particulars), {}, memory);
  const int value = 7;
  ASSERT_TRUE(engine->lock(sync::Access::exclusive, 1, {}).ok());
  EXPECT_TRUE(engine->put(1, 12, &value, sizeof value).ok());
  EXPECT_FALSE(engine->put(1, 0, &value, sizeof value).ok()) << "before the part";
  ASSERT_TRUE(engine->unlock(1).ok());
  int found = 0;
  std::memcpy(&found, part.data() + 4, sizeof found);
  EXPECT_EQ(found, value);
}

// `stale` notes in the shared memory which core wrote a line.
TEST(Engines, HandTheSharedMemoryToTheMachine) {
  const MachineChoice stale{*machine_named("stale")};
  Alone alone(stale, 1);
  std::pmr::monotonic_buffer_resource memory;
  machine::Attachment at = alone.attachment(1, memory);
  std::vector<std::uint64_t> shared(served(stale).shared_bytes(at.data) / 8);
  const EnginePointer engine = served(stale).engine(
      std::move(at), {.shared = reinterpret_cast<std::byte*>(shared.data())}, {}, memory);
  engine->set_site(42);
  const int value = 7;
  ASSERT_TRUE(engine->lock(sync::Access::exclusive, 0, {}).ok());
  ASSERT_TRUE(engine->put(0, 8, &value, sizeof value).ok());
  ASSERT_TRUE(engine->unlock(0).ok());
  EXPECT_NE(shared, std::vector<std::uint64_t>(shared.size()));
  engine->close();
}

}  // namespace
}  // namespace tombolo::runtime
