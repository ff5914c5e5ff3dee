// SPDX-License-Identifier: Apache-2.0
// Purpose: shared memory in the place of private memory keeps its contents, and takes no other's.
#include "host/memory/placed_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "host/memory/page.h"
#include "host/memory/program_variables.h"

namespace tombolo::host {
namespace {

// Four pages of addresses, of which the first `used` are private memory.
std::span<std::byte> place_with(std::size_t used) {
  const std::size_t bytes = 4 * page_bytes();
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(at, 7, used * page_bytes());
  munmap(static_cast<std::byte*>(at) + used * page_bytes(), bytes - used * page_bytes());
  return {static_cast<std::byte*>(at), bytes};
}

std::byte* shared() {
  return static_cast<std::byte*>(
      mmap(nullptr, 4 * page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

TEST(PlacedMemory, KeepsItsContentsAndIsSharedWithForkedProcesses) {
  const std::span<std::byte> place = place_with(2);
  std::byte* const memory = shared();
  const Status placed = place_in_front(memory, place, 2 * page_bytes());
  ASSERT_TRUE(placed.ok()) << placed.message();
  EXPECT_EQ(place[2 * page_bytes() - 1], std::byte{7});
  EXPECT_EQ(place[2 * page_bytes()], std::byte{0});
  if (const pid_t child = fork(); child == 0) {
    place[0] = std::byte{8};
    place[place.size() - 1] = std::byte{9};
    _exit(0);
  } else {
    waitpid(child, nullptr, 0);
  }
  EXPECT_EQ(place[0], std::byte{8});
  EXPECT_EQ(memory[place.size() - 1], std::byte{9});
}

TEST(PlacedMemory, OtherMemoryInTheWayIsLeftAlone) {
  const std::span<std::byte> place = place_with(3);
  const Status placed = place_in_front(shared(), place, page_bytes());
  EXPECT_EQ(placed.code(), Code::unsupported) << placed.message();
  EXPECT_EQ(place[3 * page_bytes() - 1], std::byte{7});
}

int in_data = 5;
int in_bss[100000];

TEST(ProgramVariables, AreThoseOfTheExecutable) {
  AddressRange found;
  const Status status = program_variables(found);
  ASSERT_TRUE(status.ok()) << status.message();
  const auto has = [&](const void* at) {
    const auto address = reinterpret_cast<std::uint64_t>(at);
    return found.low <= address && address < found.high;
  };
  EXPECT_TRUE(has(&in_data));
  EXPECT_TRUE(has(&in_bss[0]) && has(&in_bss[99999]));
  int on_stack = 0;
  EXPECT_FALSE(has(&on_stack));
  EXPECT_FALSE(has(reinterpret_cast<const void*>(&place_with)));
  EXPECT_FALSE(has(stdout)) << "of the C library";
  EXPECT_EQ(found.bytes() % page_bytes(), 0U);
}

}  // namespace
}  // namespace tombolo::host
