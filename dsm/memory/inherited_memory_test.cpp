// SPDX-License-Identifier: Apache-2.0
// Purpose: the waits of a memory that all processes map are counted where that is wanted.
// Thread safety: -
#include "dsm/memory/inherited_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace tombolo::dsm {
namespace {

const MemoryPlan plan{.threads = 2, .locks = 4, .words = 8};

// Two processes' memories, over one runtime memory.
class Two {
 public:
  explicit Two(const Observer& observer) : runtime_(InheritedMemory::take(plan).bytes / 64) {
    for (Thread self = 0; self < 2; ++self)
      memories_.push_back(std::make_unique<InheritedMemory>(
          self, plan, reinterpret_cast<std::byte*>(runtime_.data()), observer));
  }
  InheritedMemory& operator[](Thread thread) { return *memories_[thread]; }

  // The second one wants the lock while the first one has it, as a rule.
  void compete() {
    ASSERT_TRUE(memories_[0]->acquire(1).ok());
    std::jthread other([this] {
      ASSERT_TRUE(memories_[1]->acquire(1).ok());
      ASSERT_TRUE(memories_[1]->release(1).ok());
    });
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    ASSERT_TRUE(memories_[0]->release(1).ok());
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> runtime_;
  std::vector<std::unique_ptr<InheritedMemory>> memories_;
};

std::uint64_t waits() { return runtime::counters().counter("dsm_lock_waits").value(); }

TEST(InheritedMemory, CountsTheLocksThatItHasWaitedFor) {
  Two memories({.timed = true});
  const std::uint64_t before = waits();
  ASSERT_TRUE(memories[0].acquire(1).ok());
  ASSERT_TRUE(memories[0].release(1).ok());
  EXPECT_EQ(waits(), before) << "it was free";
  while (waits() == before) memories.compete();
}

TEST(InheritedMemory, PutsTheWaitsIntoATrace) {
  Trace trace;
  ASSERT_TRUE(trace.ready());
  Two memories({.trace = &trace});
  while (trace.count() == 0) memories.compete();
  EXPECT_NE(trace.lines(0, 0).find(R"("name": "lock wait")"), std::string::npos);
}

TEST(InheritedMemory, CountsNothingThatIsNotWanted) {
  Two memories({});
  const std::uint64_t before = waits();
  for (int i = 0; i < 20; ++i) memories.compete();
  EXPECT_EQ(waits(), before);
}

}  // namespace
}  // namespace tombolo::dsm
