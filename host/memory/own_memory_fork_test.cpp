// SPDX-License-Identifier: Apache-2.0
// Purpose: a forked child's memory is its own, and its parent's stays so. Apart from the tests of
// other images: handlers of a fork serve that of the process.
#include "host/memory/own_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "host/memory/page.h"
#include "host/memory/testing/memory.h"
#include "host/memory/testing/own_memories.h"

namespace tombolo::host {
namespace {

using testing::HeapBlock;
using testing::is_private;
using testing::is_shared;
using testing::mapping_of;
using testing::NeedsSharing;
using testing::Plain;
using testing::status_of;

const std::uint64_t page = page_bytes();

// The stack may be in the image.
template <class F>
int in_child(F&& body) {
  const pid_t process = forked_aside(::fork);
  if (process == 0) _exit(body());
  return status_of(process);
}

class OwnMemoryForkTest : public NeedsSharing {};

alignas(64) char variables[3 * 4096] = {1};

// Each store of a child to `byte`, which is 1, stays there, and the parent's afterwards do not
// come.
int child_of_its_own(volatile char* byte) {
  int to_child[2];
  if (pipe(to_child) != 0) return 99;
  const pid_t child = forked_aside(::fork);
  if (child == 0) {
    close(to_child[1]);
    if (*byte != 1) _exit(1);
    char go = 0;
    if (read(to_child[0], &go, 1) != 1) _exit(2);
    if (*byte != 1) _exit(3);  // the parent stored 2
    *byte = 3;
    for (int i = 1; i < 300; ++i) std::free(std::malloc(static_cast<std::size_t>(i) * 97));
    const pid_t grandchild = forked_aside(::fork);
    if (grandchild == 0) _exit(*byte == 3 ? 0 : 4);
    _exit(status_of(grandchild));
  }
  *byte = 2;
  if (write(to_child[1], "g", 1) != 1) return 98;
  const int status = status_of(child);
  close(to_child[0]);
  close(to_child[1]);
  if (*byte != 2) return 97;
  *byte = 1;
  return status;
}

TEST_F(OwnMemoryForkTest, AChildHasItsOwnHeap) {
  HeapBlock block;
  auto use = own_memory().enter(block.data() + 10, 50'000);
  if (own_memory().share(use).empty()) GTEST_SKIP() << "the heap cannot be shared here";
  EXPECT_EQ(child_of_its_own(block.data() + 20), 0);
  use.end();
  EXPECT_EQ(child_of_its_own(block.data() + 20), 0) << "kept pages";
}

TEST_F(OwnMemoryForkTest, AChildHasItsOwnVariables) {
  auto use = own_memory().enter(variables, sizeof variables);
  ASSERT_EQ(own_memory().share(use), use.range());
  EXPECT_EQ(child_of_its_own(variables), 0);
}

TEST_F(OwnMemoryForkTest, AChildHasItsOwnStack) {
  volatile char array[3 * 4096] = {};
  array[5000] = 1;
  auto use = own_memory().enter(const_cast<const char*>(array), sizeof array);
  if (own_memory().share(use).empty()) GTEST_SKIP() << "stacks cannot be shared here";
  EXPECT_EQ(child_of_its_own(array + 5000), 0);
}

TEST_F(OwnMemoryForkTest, AChildHasItsOwnAllocatedMemory) {
  auto* const memory = static_cast<char*>(own_memory().allocate(page));
  ASSERT_NE(memory, nullptr);
  *memory = 1;
  EXPECT_EQ(child_of_its_own(memory), 0);
  EXPECT_EQ(in_child([&] { return own_memory().free(memory) ? 0 : 1; }), 0) << "as the parent";
  EXPECT_EQ(*memory, 1);
  EXPECT_TRUE(own_memory().free(memory));
}

TEST_F(OwnMemoryForkTest, AChildsStoresToALargeRegionAreItsOwn) {
  auto* const memory = static_cast<char*>(own_memory().allocate(2 * OwnMemory::most_copied_bytes));
  ASSERT_NE(memory, nullptr);
  memory[page] = 1;
  EXPECT_EQ(in_child([&] {
              memory[page] = 2;
              return memory[page] == 2 && is_private(memory) ? 0 : 1;
            }),
            0);
  EXPECT_EQ(memory[page], 1);
  EXPECT_TRUE(own_memory().free(memory));
}

TEST_F(OwnMemoryForkTest, AChildMayShareItsOwnMemory) {
  Plain plain(1);
  auto use = own_memory().enter(plain.at(0), page);
  ASSERT_FALSE(own_memory().share(use).empty());
  EXPECT_EQ(in_child([&] {
              if (own_memory().image().descriptor >= 0) return 1;
              Plain other(1);
              auto its = own_memory().enter(other.at(0), page);
              if (own_memory().share(its).empty()) return 2;
              return own_memory().image().pid == getpid() ? 0 : 3;
            }),
            0);
  EXPECT_TRUE(is_shared(plain.at(0)));
}

TEST_F(OwnMemoryForkTest, AChildExecutes) {
  auto use = own_memory().enter(variables, sizeof variables);
  ASSERT_FALSE(own_memory().share(use).empty());
  EXPECT_EQ(in_child([] {
              execl("/bin/sh", "sh", "-c", "exit 7", nullptr);
              return 1;
            }),
            7);
}

}  // namespace
}  // namespace tombolo::host
