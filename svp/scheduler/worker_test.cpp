// SPDX-License-Identifier: Apache-2.0
// Purpose: tests that workers need no more stacks than they may, and that many blocked threads end.
// Thread safety: -
#include "svp/scheduler/worker.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "svp/api/include/tombolo/svp.hpp"
#include "svp/scheduler/pool.h"

namespace tombolo::svp {
namespace {

// Frames are several times as large under the sanitizers, which inline less.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int deep_levels = 100;
#else
constexpr int deep_levels = 1000;
#endif
// That many a worker may park for syncs (WK3), and one to go on with.
constexpr std::size_t most_stacks = 65;

class Workers : public ::testing::TestWithParam<unsigned> {
 protected:
  template <class Body>
  Exit inside(Body&& body) {
    auto family = create(place_, std::forward<Body>(body));
    return family.sync();
  }
  static Pool& pool() { return Worker::here()->pool(); }
  LocalPlace place_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Number, Workers, ::testing::Values(1u, 2u, 4u, 8u));

void tree(int levels) {
  if (levels == 0) return;
  auto family = create({.limit = 4}, [&](Index) { tree(levels - 1); });
  family.sync();
}

TEST_P(Workers, NeedFewStacksForFamiliesThatOnlyFork) {
  inside([] {
    for (int round = 0; round < 5; ++round) tree(8);
    EXPECT_LE(pool().stacks(), most_stacks * pool().size());
    const bool one = pool().size() == 1;
    EXPECT_TRUE(!one || pool().stacks() == 0) << pool().stacks();
  });
}

TEST_P(Workers, DeepFamiliesLieOnTheCreatorsStack) {
  inside([] {
    std::atomic<int> depth{0};
    const auto deeper = [&](auto& self, int levels) -> void {
      ++depth;
      if (levels == 0) return;
      auto family = create([&] { self(self, levels - 1); });
      family.sync();
    };
    deeper(deeper, deep_levels);
    EXPECT_EQ(depth, deep_levels + 1);
    EXPECT_LE(pool().stacks(), most_stacks * pool().size());
  });
}

// Bytes of the heap that are in use; 0 under the address sanitizer, which has its own.
std::size_t heap_bytes() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}
// Families of a tree that exist at once, and the bytes that they and the heap then have.
struct Held {
  std::atomic<std::size_t> families{0};
  std::atomic<std::size_t> most{0};
  std::atomic<std::size_t> family_bytes{0};
  std::atomic<std::size_t> most_heap_bytes{0};

  static void raise(std::atomic<std::size_t>& peak, std::size_t now) {
    for (std::size_t before = peak; before < now && !peak.compare_exchange_weak(before, now);) {
    }
  }
};
void held_tree(Held& held, int levels, std::size_t number) {
  if (levels == 0) {
    if (number % 1000 == 0) Held::raise(held.most_heap_bytes, heap_bytes());
    return;
  }
  const auto below = [&](std::size_t child) {
    return create(
        [&held, levels, number, child] { held_tree(held, levels - 1, 3 * number + child); });
  };
  auto one = below(0);
  auto two = below(1);
  auto three = below(2);
  held.family_bytes = sizeof one;
  Held::raise(held.most, held.families += 3);
  three.sync();
  two.sync();
  one.sync();
  held.families -= 3;
}

// The thread that blocks has the worker's own stack, so that the deep one begins on another.
TEST(WorkersStacks, HoldThousandsOfNestedFamilies) {
  constexpr int levels = 5 * deep_levels;
  LocalPlace place(PoolSettings{.workers = 1, .stack_bytes = std::size_t{4} << 20});
  Global<int> late;
  auto blocked = create(
      place, [](Global<int>& value) { EXPECT_EQ(value.read(), 7); }, late);
  while (Pool::blocked_threads() == 0) std::this_thread::yield();
  int depth = 0;
  const char* first = nullptr;
  const char* last = nullptr;
  auto deep = create(place, [&] {
    const auto deeper = [&](auto& self, int left) -> void {
      ++depth;
      last = static_cast<const char*>(__builtin_frame_address(0));
      if (left == 0) return;
      auto family = create([&] { self(self, left - 1); });
      family.sync();
    };
    first = static_cast<const char*>(__builtin_frame_address(0));
    deeper(deeper, levels);
  });
  EXPECT_TRUE(deep.sync().done());
  EXPECT_EQ(depth, levels + 1);
  const auto bytes_per_level = (first - last) / levels;
  RecordProperty("bytes_per_level", static_cast<int>(bytes_per_level));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(bytes_per_level, 400);  // docs/model/families.md: about 220
#endif
  late.write(7);
  EXPECT_TRUE(blocked.sync().done());
}

// 29,523 families, three of which a thread on each level has at once.
TEST_P(Workers, HoldMemoryByDepthAndWorkersNotByFamilies) {
  constexpr std::size_t levels = 9;
  constexpr std::size_t of_worker = std::size_t{64} << 10;  // heap: its stacks' lists
  inside([] {
    Held held;
    const std::size_t before = heap_bytes();
    for (int round = 0; round < 3; ++round) held_tree(held, levels, 0);
    const std::size_t stacks = pool().size() + pool().stacks();
    EXPECT_LE(held.most, stacks * 3 * levels);
    EXPECT_TRUE(pool().size() != 1 || held.most == 3 * levels) << held.most;
    EXPECT_LE(held.most_heap_bytes, before + pool().size() * of_worker);
    const std::size_t all = held.most_heap_bytes - std::min(before, held.most_heap_bytes.load()) +
                            pool().stacks() * pool().settings().stack_bytes +
                            held.most * held.family_bytes;
    EXPECT_LE(all, pool().size() * (of_worker + most_stacks * (pool().settings().stack_bytes +
                                                               3 * levels * held.family_bytes)));
  });
}

// Stacks beyond those that a worker may take for waits are freed when it has nothing to do.
TEST(WorkersStacks, AreFreedAfterManyThreadsHaveBlocked) {
  constexpr std::size_t threads = 300;
  Global<int> late;
  std::atomic<Pool*> pool{nullptr};
  LocalPlace place(1);
  auto all = create(place, [&] {
    const auto wait = [&] { EXPECT_EQ(late.read(), 7); };
    using One = decltype(create(wait));
    std::vector<std::unique_ptr<One>> readers;
    for (std::size_t i = 0; i < threads; ++i) readers.emplace_back(new One(create(wait)));
    pool = &Worker::here()->pool();
    for (auto& reader : readers) EXPECT_TRUE(reader->sync().done());
  });
  while (Pool::blocked_threads() != threads) std::this_thread::yield();
  EXPECT_GE(pool.load()->stacks(), threads);
  late.write(7);
  EXPECT_TRUE(all.sync().done());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (pool.load()->stacks() > most_stacks && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  EXPECT_LE(pool.load()->stacks(), most_stacks);
  // The rest serve on.
  auto again = create(place, [] { tree(6); });
  EXPECT_TRUE(again.sync().done());
}

// Traces tell stacks apart by their numbers. Those that are freed are given again.
TEST(WorkersStacks, HaveNumbersOfTheirOwn) {
  constexpr std::size_t threads = 300;
  LocalPlace place(1);
  for (int round = 0; round < 3; ++round) {
    Global<int> late;
    std::vector<unsigned> numbers;
    std::atomic<Pool*> pool{nullptr};
    auto all = create(place, [&] {
      const auto wait = [&] {
        numbers.push_back(Worker::here()->stack());
        EXPECT_EQ(late.read(), 7);
      };
      using One = decltype(create(wait));
      std::vector<std::unique_ptr<One>> readers;
      for (std::size_t i = 0; i < threads; ++i) readers.emplace_back(new One(create(wait)));
      pool = &Worker::here()->pool();
      for (auto& reader : readers) EXPECT_TRUE(reader->sync().done());
    });
    while (Pool::blocked_threads() != threads) std::this_thread::yield();
    std::sort(numbers.begin(), numbers.end());
    EXPECT_EQ(std::unique(numbers.begin(), numbers.end()), numbers.end()) << round;
    EXPECT_LE(numbers.back(), threads + 1) << round;
    late.write(7);
    EXPECT_TRUE(all.sync().done());
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (pool.load()->stacks() > most_stacks && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
  }
}

// Each on a stack of its own; a kill ends them all.
TEST_P(Workers, EndManyBlockedThreads) {
  constexpr std::uint64_t threads = 1000;
  std::atomic<std::uint64_t> unwound{0};
  inside([&] {
    struct Unwound {
      std::atomic<std::uint64_t>& count;
      ~Unwound() { ++count; }
    };
    Global<int> never;
    auto family = create([&] {
      const auto wait = [&] {
        const Unwound one{unwound};
        never.read();
      };
      using One = decltype(create(wait));
      std::vector<std::unique_ptr<One>> all;
      for (std::uint64_t i = 0; i < threads; ++i) all.emplace_back(new One(create(wait)));
      for (auto& one : all) one->sync();
    });
    std::thread killer([&] {
      while (Pool::blocked_threads() < threads) std::this_thread::yield();
      family.kill();
    });
    EXPECT_EQ(family.sync().reason, ExitReason::killed);
    killer.join();
  });
  EXPECT_EQ(unwound, threads);
  EXPECT_EQ(Pool::blocked_threads(), 0u);
}

// More families than the deque has slots for, while their creator waits: the loop runs each once.
TEST_P(Workers, RunTasksThatTheirDequeHadNoSlotFor) {
  constexpr std::size_t families = PoolSettings{}.slots + 64;
  std::vector<std::atomic<int>> runs(families);
  std::atomic<std::size_t> ended{0};
  inside([&] {
    Global<int> all_ended;
    const auto one_of = [&](std::size_t number) {
      return create([&, number] {
        if (++runs[number] > 1) std::abort();
        if (++ended == families) all_ended.write(1);
      });
    };
    using One = decltype(one_of(0));
    std::vector<std::unique_ptr<One>> all;
    for (std::size_t i = 0; i < families; ++i) all.emplace_back(new One(one_of(i)));
    EXPECT_EQ(all_ended.read(), 1);
    for (auto& one : all) one->sync();
  });
  EXPECT_EQ(ended, families);
}

TEST_P(Workers, SleepAndAreWoken) {
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::atomic<int> runs{0};
    inside([&] {
      auto family = create({.limit = 64}, [&](Index) { ++runs; });
      family.sync();
    });
    EXPECT_EQ(runs, 64);
  }
}

// Runs small families until another worker has made it true: it takes them from this one.
template <class Condition>
void serve_until(Condition&& condition) {
  while (!condition()) create([] {}).sync();
}

// True if the thread sleeps in the kernel, as that tells it: behind the name, in parentheses.
bool sleeps(int thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/stat", thread));
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(") ");
  return name_end != std::string::npos && text.compare(name_end + 2, 1, "S") == 0;
}

// No stack of that size exists: threads that wait for others go on with the one that they have.
TEST(WorkersWithoutStacks, RunFamiliesAllTheSame) {
  LocalPlace place(PoolSettings{.workers = 2, .stack_bytes = std::size_t{1} << 52});
  auto family = create(place, [] {
    tree(6);
    // A read that blocks finds none, too.
    Global<int> late;
    std::atomic<bool> refused{false};
    std::atomic<bool> written{false};
    auto reader = create(
        [&](Global<int>& value) {
          try {
            value.read();
          } catch (const std::bad_alloc&) {
            refused = true;
          }
          while (!written) checkpoint();
          EXPECT_EQ(value.read(), 7);
        },
        late);
    while (!refused) checkpoint();
    late.write(7);
    written = true;
    EXPECT_TRUE(reader.sync().done());
    EXPECT_EQ(Worker::here()->pool().stacks(), 0u);
  });
  EXPECT_TRUE(family.sync().done());
}

// Each of two workers waits for a family at the other's place, which creates one at its own.
TEST(WorkersWithoutStacks, RunWhatOtherPlacesCreateHere) {
  constexpr std::size_t none = std::size_t{1} << 52;
  LocalPlace one(PoolSettings{.workers = 1, .stack_bytes = none});
  LocalPlace other(PoolSettings{.workers = 1, .stack_bytes = none});
  int depth = 0;
  const auto there_and_back = [&](auto& self, int levels) -> void {
    ++depth;
    if (levels == 0) return;
    auto family = create(levels % 2 == 0 ? other : one, [&] { self(self, levels - 1); });
    EXPECT_TRUE(family.sync().done());
  };
  auto family = create(one, [&] { there_and_back(there_and_back, 20); });
  EXPECT_TRUE(family.sync().done());
  EXPECT_EQ(depth, 21);
}

// A delegated family that the awaited one has not created would hold it up: here it waits for the
// exclusive place that the thread below it has.
TEST(WorkersWithoutStacks, RunNothingElseWhereTheyWait) {
  constexpr std::size_t none = std::size_t{1} << 52;
  LocalPlace one(PoolSettings{.workers = 1, .stack_bytes = none});
  LocalPlace other(PoolSettings{.workers = 1, .stack_bytes = none});
  ExclusivePlace exclusive;
  std::atomic<bool> waits{false}, delegated{false};
  auto first = create(one, [&] {
    auto turn = create(exclusive, [&] {
      auto slow = create(other, [&] {
        waits = true;
        while (!delegated) std::this_thread::yield();
        // It is looked at now, again and again.
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      });
      EXPECT_TRUE(slow.sync().done());
    });
    EXPECT_TRUE(turn.sync().done());
  });
  while (!waits) std::this_thread::yield();
  bool ran = false;
  auto second = create(one, [&] {
    auto turn = create(exclusive, [&] { ran = true; });
    EXPECT_TRUE(turn.sync().done());
  });
  delegated = true;
  EXPECT_TRUE(first.sync().done());
  EXPECT_TRUE(second.sync().done());
  EXPECT_TRUE(ran);
}

// A worker that waits takes a family that the awaited one has not created, for a stack beside its
// own. There is none: it runs that on the one that it has.
TEST(WorkersWithoutStacks, RunWhatTheyHaveTakenWhereTheyWait) {
  std::atomic<bool> first_has_begun{false}, second_is_offered{false}, third_has_begun{false};
  std::atomic<const Worker*> ran_second{nullptr};
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto until = [end](auto&& holds) {
    while (!holds() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  };
  const auto attentively_until = [&](const std::atomic<bool>& holds) {
    until([&] {
      checkpoint();
      return holds.load();
    });
  };
  // Created by the first family, which another worker than the outer thread's has taken: that
  // worker takes it while it waits for the first one, and holds the second one the while.
  const auto third = [&] {
    third_has_begun = true;
    until([&] {
      checkpoint();
      return ran_second != nullptr;
    });
  };
  const auto first = [&] {
    first_has_begun = true;
    until([&] { return second_is_offered.load(); });
    auto family = create(third);
    attentively_until(third_has_begun);
    EXPECT_TRUE(family.sync().done());
  };
  LocalPlace place(PoolSettings{.workers = 2, .stack_bytes = std::size_t{1} << 52});
  auto outer = create(place, [&] {
    const Worker* const here = Worker::here();
    std::atomic<bool> middle_has_begun{false};
    auto middle = create([&] {
      middle_has_begun = true;
      EXPECT_NE(Worker::here(), here);
      auto family = create(first);
      attentively_until(first_has_begun);
      auto second = create([&] { ran_second = Worker::here(); });
      second_is_offered = true;
      EXPECT_TRUE(family.sync().done());
      EXPECT_TRUE(second.sync().done());
    });
    attentively_until(middle_has_begun);
    EXPECT_TRUE(middle.sync().done());
    EXPECT_EQ(ran_second, here);
    EXPECT_EQ(Worker::here()->pool().stacks(), 0u);
  });
  EXPECT_TRUE(outer.sync().done());
}

// The creator has looked for the last time: without a wake it would sleep for ever.
TEST(SleepingWorkers, AreWokenByTheEndOfTheirFamily) {
  LocalPlace place(2);
  auto outer = create(place, [] {
    Worker& creator = *Worker::here();
    const int thread = static_cast<int>(syscall(SYS_gettid));
    std::atomic<bool> begun{false};
    auto family = create([&] {
      begun = true;
      EXPECT_NE(Worker::here(), &creator);
      while (!creator.asleep() || !sleeps(thread)) std::this_thread::yield();
    });
    serve_until([&] { return begun.load(); });
    EXPECT_TRUE(family.sync().done());
  });
  EXPECT_TRUE(outer.sync().done());
}

// A stack is the loop's own for the task that it has begun, not for a later one in the same memory.
TEST(Loops, HaveBegunATaskUntilItEnds) {
  LocalPlace place(1);
  auto outer = create(place, [] {
    Worker& worker = *Worker::here();
    Global<int> value;
    const Task* taken_back = nullptr;
    bool from_loop = true;
    const auto body = [&] {
      if (taken_back == nullptr)
        value.write(1);
      else
        from_loop = worker.begins_from_loop(*taken_back);
    };
    using One = decltype(create(body));
    alignas(One) std::byte memory[sizeof(One)];
    One* one = new (memory) One(create(body));
    EXPECT_EQ(value.read(), 1);  // the thread blocks, and the loop begins the task
    one->sync();
    one->~One();
    one = new (memory) One(create(body));
    taken_back = one;
    one->sync();
    EXPECT_FALSE(from_loop);
    one->~One();
  });
  EXPECT_TRUE(outer.sync().done());
}

// Its turn has ended before those that are run behind it, and its memory may be another task's.
TEST(Loops, HaveBegunATaskOfAnExclusivePlaceUntilItIsServed) {
  LocalPlace place(1);
  auto outer = create(place, [] {
    Worker& worker = *Worker::here();
    ExclusivePlace exclusive;
    Global<int> value;
    const Task* task = nullptr;
    auto family = create(exclusive, [&] {
      EXPECT_FALSE(worker.begins_from_loop(*task));
      value.write(1);
    });
    task = &family;
    EXPECT_EQ(value.read(), 1);  // the thread blocks, and the loop begins the task
    EXPECT_TRUE(family.sync().done());
  });
  EXPECT_TRUE(outer.sync().done());
}

struct CountedRange : OpenRange {
  CountedRange() : OpenRange(&CountedRange::count, &CountedRange::may_divide, 0, 2) {}
  static bool count(OpenRange& range, Worker&) {
    ++static_cast<CountedRange&>(range).asked;
    return false;
  }
  static bool may_divide(const OpenRange&) { return false; }
  int asked = 0;
};

// ORG1: not by a thread on another stack, and again once its own goes on.
TEST(OpenRanges, AreDividedOnTheirStackAlone) {
  LocalPlace place(2);
  auto outer = create(place, [] {
    Worker& worker = *Worker::here();
    Pool& pool = worker.pool();
    std::atomic<bool> held{false}, released{false};
    auto holder = create([&] {
      held = true;
      while (!released) std::this_thread::yield();
    });
    serve_until([&] { return held.load(); });

    CountedRange range;
    worker.open(range);
    Global<int> value;
    auto writer = create([&] {
      released = true;
      while (pool.idle == 0) std::this_thread::yield();
      worker.attend();
      EXPECT_EQ(range.asked, 0);
      value.write(1);
    });
    // As the other worker is held, this one runs the writer, on another stack.
    EXPECT_EQ(value.read(), 1);
    EXPECT_EQ(range.asked, 0);
    worker.attend();
    EXPECT_EQ(range.asked, 1);
    worker.close(range);
    EXPECT_TRUE(writer.sync().done());
    EXPECT_TRUE(holder.sync().done());
  });
  EXPECT_TRUE(outer.sync().done());
}

bool all_others_sleep() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const int thread = std::stoi(task.path().filename());
    if (thread != syscall(SYS_gettid) && !sleeps(thread)) return false;
  }
  return true;
}

// Has two threads to give away, each of which waits until the other one runs.
struct TwoThreads : OpenRange {
  struct Part : Task {
    Part(TwoThreads& all, Worker& by) : Task(&Part::run, *by.scope(), &by), threads(all) {}
    static void run(Task& task, Worker& worker) {
      TwoThreads& threads = static_cast<Part&>(task).threads;
      ++threads.begun;
      threads.wait_for_both();
      worker.finish(task);
    }
    TwoThreads& threads;
  };

  explicit TwoThreads(std::chrono::steady_clock::time_point until)
      : OpenRange(
            &TwoThreads::give, [](const OpenRange&) { return true; }, 0, 2),
        end_of_wait(until) {}
  static bool give(OpenRange& range, Worker& worker) {
    auto& self = static_cast<TwoThreads&>(range);
    const std::uint64_t at = self.next++;
    worker.offer(*(self.parts[at] = std::make_unique<Part>(self, worker)));
    return true;
  }
  bool have_begun() const { return begun == 2; }
  void wait_for_both() const {
    while (!have_begun() && std::chrono::steady_clock::now() < end_of_wait)
      std::this_thread::yield();
  }

  const std::chrono::steady_clock::time_point end_of_wait;
  std::atomic<int> begun{0};
  std::unique_ptr<Part> parts[2];
};

// Those that sleep have asked, and do not ask again: at one look each gets a part, and is woken.
TEST(OpenRanges, AreDividedAmongAllThatSleep) {
  using namespace std::chrono_literals;
  LocalPlace place(3);
  auto outer = create(place, [] {
    Worker& worker = *Worker::here();
    Pool& pool = worker.pool();
    // Not by yields: the others, too, give their processors away until they sleep.
    while (pool.hungry != 2 || !all_others_sleep()) std::this_thread::sleep_for(1ms);
    TwoThreads threads(std::chrono::steady_clock::now() + 20s);
    worker.open(threads);
    EXPECT_FALSE(worker.attend());
    worker.close(threads);
    EXPECT_EQ(threads.next, threads.end);
    threads.wait_for_both();
    EXPECT_TRUE(threads.have_begun());
    for (const auto& part : threads.parts)
      if (part != nullptr && !worker.take_back(*part)) worker.wait(*part);
  });
  EXPECT_TRUE(outer.sync().done());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
[[gnu::noinline]] int overflow(int depth) {
  volatile char frame[512] = {static_cast<char>(depth)};
  return depth < 0 ? frame[0] : overflow(depth + 1) + frame[511];
}

TEST(WorkersDeathTest, NameAStackThatOverflows) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        LocalPlace place(1);
        auto outer = create(place, [] {
          Global<int> value;
          auto deep = create([&] { value.write(overflow(0)); });
          value.read();  // so that the other thread gets a stack of its own
          deep.sync();
        });
        outer.sync();
      },
      "SIGSEGV.: the stack of a family's thread has overflowed");
  EXPECT_DEATH(
      {
        LocalPlace place(1);
        int result = 0;
        create(place, [&] { result = overflow(0); }).sync();
        std::fprintf(stderr, "%d", result);
      },
      "SIGSEGV.: the stack of a worker has overflowed");
}
#endif

}  // namespace
}  // namespace tombolo::svp
