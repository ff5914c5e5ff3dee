// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/engines.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory_resource>
#include <utility>
#include <vector>

namespace tombolo::mpi {
namespace {

// One process of a window of `n`, whose memory is all its own.
class Alone {
 public:
  Alone(MachineChoice machine, machine::Home n)
      : bytes_(sync_bytes(machine, n)), sync_(n * bytes_ + 64), data_(64) {}
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

// What the calls of a window look at is where the window wants it, so that it shares a page.
TEST(Engines, KeepWhatCallsLookAtInTheMemoryTheyAreGiven) {
  for (const MachineChoice machine :
       {MachineChoice{}, MachineChoice{.kind = MachineKind::flushed, .native_atomics = true}}) {
    if (!available(machine).ok()) continue;
    for (const machine::Home n : {1u, 8u, 28u}) {
      Alone alone(machine, n);
      alignas(64) std::array<std::byte, 4032> room;
      std::pmr::monotonic_buffer_resource memory(room.data(), room.size(),
                                                 std::pmr::null_memory_resource());
      machine::Attachment at = alone.attachment(n, memory);
      machine::DataRegion* const regions = at.data.data();
      Particulars particulars{.parts = {n, coherent::Part{}, &memory}};
      const EnginePointer engine =
          make_engine(machine, std::move(at), std::move(particulars), {}, memory);
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

TEST(Engines, SayWhatTheirMachinesWantOfAWindow) {
  const MachineChoice coherent;
  const MachineChoice flushed{.kind = MachineKind::flushed};
  const MachineChoice stale{.kind = MachineKind::stale};
  const std::vector<machine::DataRegion> regions = {{.bytes = 65}, {.bytes = 0}, {.bytes = 64}};
  EXPECT_EQ(shared_bytes(coherent, regions), 0u);
  EXPECT_EQ(shared_bytes(flushed, regions), 0u);
  EXPECT_EQ(shared_bytes(stale, regions), 3 * 8u) << "8 bytes for each line";
  EXPECT_FALSE(keeps_views_apart(coherent) || keeps_views_apart(flushed));
  EXPECT_TRUE(keeps_views_apart(stale));
  EXPECT_FALSE(names_sites(coherent) || names_sites(flushed));
  EXPECT_TRUE(names_sites(stale));
}

}  // namespace
}  // namespace tombolo::mpi
