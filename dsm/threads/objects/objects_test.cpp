// SPDX-License-Identifier: Apache-2.0
// Purpose: objects of Pthreads over the memory of a program, called by threads of the test; the
// programs of checks/ call them by their names.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>
#include <vector>

#include "dsm/testing/mapped_threads.h"
#include "dsm/threads/keys.h"
#include "dsm/threads/objects/barriers.h"
#include "dsm/threads/objects/conditions.h"
#include "dsm/threads/objects/once.h"
#include "dsm/threads/objects/readers_writer_locks.h"
#include "dsm/threads/objects/semaphores.h"

namespace tombolo::dsm {
namespace {

constexpr ObjectTableLayout layout(Thread threads) {
  return {.first_word = 3, .first_lock = 2, .threads = threads};
}
MemoryPlan plan(Thread threads) {
  return {.threads = threads,
          .locks = ObjectTableLayout::locks + 2,
          .words = layout(threads).words() + 3};
}

// The objects of one thread.
struct Objects {
  explicit Objects(ProgramMemory& made)
      : memory(made),
        table(made, layout(made.threads())),
        mutexes(made, table),
        conditions(made, table, mutexes) {}
  ProgramMemory& memory;
  ObjectTable table;
  Mutexes mutexes;
  Conditions conditions;
};

Deadline in_milliseconds(long ms) {
  Deadline deadline{.clock = CLOCK_MONOTONIC};
  clock_gettime(deadline.clock, &deadline.at);
  deadline.at.tv_nsec += ms * 1'000'000;
  deadline.at.tv_sec += deadline.at.tv_nsec / 1'000'000'000;
  deadline.at.tv_nsec %= 1'000'000'000;
  return deadline;
}

TEST(ObjectTable, AnAddressHasOneEntryForAllThreads) {
  constexpr int addresses = 500;
  testing::MappedThreads threads(plan(4));
  std::vector<std::vector<Lock>> found(4, std::vector<Lock>(addresses));
  const std::vector<std::uint64_t> objects(addresses);
  threads.run([&](ProgramMemory& memory) {
    ObjectTable table(memory, layout(4));
    for (std::size_t i = 0; i < addresses; ++i) {
      found[memory.self()][i] = table.find(&objects[i]).lock;
    }
  });
  for (const auto& of_thread : found) EXPECT_EQ(of_thread, found[0]);
  std::sort(found[0].begin(), found[0].end());
  EXPECT_EQ(std::unique(found[0].begin(), found[0].end()), found[0].end());
  EXPECT_GE(found[0].front(), 2U);
}

TEST(ObjectTable, ARemovedEntryIsAnothersAndZero) {
  testing::MappedThreads threads(plan(1));
  ObjectTable table(threads[0], layout(1));
  const std::vector<std::uint64_t> objects(ObjectTableLayout::entries + 1);
  for (std::size_t i = 0; i < ObjectTableLayout::entries; ++i) table.find(&objects[i]);
  EXPECT_DEATH(table.find(&objects.back()),
               "more than 65536 mutexes, conditions and other objects");
  const Object object = table.find(&objects[7]);
  for (WordIndex i = 0; i < 3; ++i) threads[0].store(object.word + i, 9);
  table.remove(&objects[7]);
  const Object reused = table.find(&objects.back());
  EXPECT_EQ(reused.lock, object.lock);
  for (WordIndex i = 0; i < 3; ++i) EXPECT_EQ(threads[0].load(reused.word + i), 0U);
  EXPECT_DEATH(table.find(&objects[7]), "no place") << "the address has kept an entry of another";
  table.remove(&objects[7]);
}

// OBT4: of each entry the first word.
std::size_t entries_that_were_used(ProgramMemory& memory) {
  const WordIndex end = layout(1).first_word + layout(1).words();
  std::size_t used = 0;
  for (std::uint64_t entry = 1; entry <= ObjectTableLayout::entries; ++entry)
    used += memory.load(end - entry * ObjectTableLayout::words_of_entry) != 0 ? 1 : 0;
  return used;
}

TEST(ObjectTable, EntriesOfObjectsThatAreGoneAreForgotten) {
  constexpr std::size_t most = 40'000;
  constexpr std::uint64_t seed = 20133;
  testing::MappedThreads threads(plan(1));
  ObjectTable table(threads[0], layout(1));
  std::mt19937_64 random(seed);
  std::vector<std::pair<void*, Lock>> objects;
  for (std::size_t i = 0; i < most; ++i) {
    auto* const at = reinterpret_cast<void*>(random() % (std::uint64_t{1} << 44) * 8);
    objects.emplace_back(at, table.find(at).lock);
  }
  std::shuffle(objects.begin(), objects.end(), random);
  while (!objects.empty()) {
    const std::size_t half = objects.size() / 2;
    for (; objects.size() > half; objects.pop_back()) table.remove(objects.back().first);
    for (const auto& [at, lock] : objects) ASSERT_EQ(table.find(at).lock, lock) << "seed " << seed;
  }
  EXPECT_EQ(entries_that_were_used(threads[0]), 0U) << "seed " << seed;
}

TEST(ObjectTable, AnObjectThatIsMadeAnewIsZero) {
  testing::MappedThreads threads(plan(1));
  ObjectTable table(threads[0], layout(1));
  const int place = 0;
  const Object object = table.find(&place);
  for (WordIndex i = 0; i < 3; ++i) threads[0].store(object.word + i, 9);
  EXPECT_EQ(table.add(&place).lock, object.lock);
  for (WordIndex i = 0; i < 3; ++i) EXPECT_EQ(threads[0].load(object.word + i), 0U);
}

TEST(Mutexes, OneThreadAtATime) {
  testing::MappedThreads threads(plan(3));
  const int mutex = 0;
  long count = 0;
  threads.run([&](ProgramMemory& memory) {
    Objects objects(memory);
    for (int i = 0; i < 3000; ++i) {
      EXPECT_EQ(objects.mutexes.lock(&mutex, MutexKind::normal), 0);
      ++count;
      EXPECT_EQ(objects.mutexes.unlock(&mutex, MutexKind::normal), 0);
    }
  });
  EXPECT_EQ(count, 9000);
}

TEST(Mutexes, OfOtherThreadsAreNotUnlocked) {
  testing::MappedThreads threads(plan(2));
  Objects one(threads[0]);
  Objects other(threads[1]);
  const int mutex = 0;
  EXPECT_EQ(one.mutexes.lock(&mutex, MutexKind::checked), 0);
  EXPECT_EQ(other.mutexes.unlock(&mutex, MutexKind::checked), EPERM);
  EXPECT_EQ(other.mutexes.try_lock(&mutex, MutexKind::checked), EBUSY);
  EXPECT_EQ(other.mutexes.destroy(&mutex), EBUSY);
  EXPECT_EQ(one.mutexes.destroy(&mutex), EBUSY);
  EXPECT_DEATH(other.mutexes.unlock(&mutex, MutexKind::normal), "another thread has the mutex");
  EXPECT_EQ(one.mutexes.unlock(&mutex, MutexKind::checked), 0);
  EXPECT_EQ(other.mutexes.unlock(&mutex, MutexKind::normal), 0) << "no thread has it";
  EXPECT_EQ(other.mutexes.lock(&mutex, MutexKind::normal), 0);
}

TEST(Mutexes, ATimedLockEnds) {
  testing::MappedThreads threads(plan(2));
  Objects one(threads[0]);
  Objects other(threads[1]);
  const int mutex = 0;
  one.mutexes.lock(&mutex, MutexKind::normal);
  EXPECT_EQ(other.mutexes.lock_until(&mutex, MutexKind::normal, in_milliseconds(2)), ETIMEDOUT);
  EXPECT_EQ(one.mutexes.lock_until(&mutex, MutexKind::normal, in_milliseconds(2)), ETIMEDOUT);
  EXPECT_EQ(one.mutexes.unlock(&mutex, MutexKind::normal), 0);
  EXPECT_EQ(other.mutexes.lock_until(&mutex, MutexKind::normal, in_milliseconds(-5000)), 0)
      << "a free one is taken at any time";
}

// The waiters leave the queue at its start, in its middle and at its end.
TEST(Conditions, AThreadWhoseTimeIsOverLeavesTheQueueWhole) {
  for (Thread leaver = 1; leaver <= 3; ++leaver) {
    testing::MappedThreads threads(plan(4));
    const int mutex = 0;
    const int condition = 0;
    std::atomic<Thread> waiting{0};
    std::atomic<int> woken{0};
    threads.run([&](ProgramMemory& memory) {
      Objects objects(memory);
      if (memory.self() == 0) {
        while (waiting.load() < 3 || woken.load() < 1) std::this_thread::yield();
        for (int i = 0; i < 2; ++i) {
          objects.mutexes.lock(&mutex, MutexKind::normal);
          objects.conditions.signal(&condition);
          objects.mutexes.unlock(&mutex, MutexKind::normal);
          while (woken.load() < i + 2) std::this_thread::yield();
        }
        EXPECT_EQ(objects.conditions.destroy(&condition), 0);
        return;
      }
      // One after another, so that their places in the queue are known.
      while (waiting.load() + 1 != memory.self()) std::this_thread::yield();
      objects.mutexes.lock(&mutex, MutexKind::normal);
      ++waiting;
      const Deadline soon = in_milliseconds(30);
      const bool leaves = memory.self() == leaver;
      EXPECT_EQ(
          objects.conditions.wait(&condition, &mutex, MutexKind::normal, leaves ? &soon : nullptr),
          leaves ? ETIMEDOUT : 0);
      ++woken;
      objects.mutexes.unlock(&mutex, MutexKind::normal);
    });
  }
}

TEST(Conditions, AQueueThatIsEmptyAgainIsUsedAgain) {
  testing::MappedThreads threads(plan(2));
  const int mutex = 0;
  const int condition = 0;
  int waiting = 0;
  threads.run([&](ProgramMemory& memory) {
    Objects objects(memory);
    const bool waits = memory.self() == 1;
    objects.mutexes.lock(&mutex, MutexKind::normal);
    if (waits) {
      // Emptied by the thread itself, then by signals.
      const Deadline soon = in_milliseconds(1);
      EXPECT_EQ(objects.conditions.wait(&condition, &mutex, MutexKind::normal, &soon), ETIMEDOUT);
      for (int i = 0; i < 3; ++i) {
        ++waiting;
        EXPECT_EQ(objects.conditions.wait(&condition, &mutex, MutexKind::normal, nullptr), 0);
      }
    } else {
      for (int i = 0; i < 3; ++i) {
        while (waiting != i + 1) {
          objects.mutexes.unlock(&mutex, MutexKind::normal);
          std::this_thread::yield();
          objects.mutexes.lock(&mutex, MutexKind::normal);
        }
        EXPECT_EQ(objects.conditions.signal(&condition), 0);
      }
    }
    objects.mutexes.unlock(&mutex, MutexKind::normal);
  });
}

TEST(Conditions, AnUnlockedCheckedMutexIsRefused) {
  testing::MappedThreads threads(plan(1));
  Objects objects(threads[0]);
  const int mutex = 0;
  const int condition = 0;
  EXPECT_EQ(objects.conditions.wait(&condition, &mutex, MutexKind::checked, nullptr), EPERM);
  EXPECT_EQ(objects.conditions.destroy(&condition), 0) << "it has left the queue";
  Deadline none{.at = {.tv_sec = 0, .tv_nsec = -1}};
  EXPECT_EQ(objects.conditions.wait(&condition, &mutex, MutexKind::checked, &none), EINVAL);
}

TEST(Mutexes, MayBeUnlockedInAnyOrder) {
  testing::MappedThreads threads(plan(2));
  Objects one(threads[0]);
  Objects other(threads[1]);
  const int a = 0;
  const int b = 0;
  for (const auto& [first, second] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    EXPECT_EQ(one.mutexes.lock(&a, MutexKind::checked), 0);
    EXPECT_EQ(one.mutexes.lock(&b, MutexKind::checked), 0);
    EXPECT_EQ(one.mutexes.unlock(first, MutexKind::checked), 0);
    EXPECT_EQ(one.mutexes.unlock(first, MutexKind::checked), EPERM);
    EXPECT_EQ(one.mutexes.lock(second, MutexKind::checked), EDEADLK);
    EXPECT_EQ(other.mutexes.try_lock(second, MutexKind::checked), EBUSY);
    EXPECT_EQ(one.mutexes.unlock(second, MutexKind::checked), 0);
  }
}

TEST(Semaphores, HaveALargestValue) {
  testing::MappedThreads threads(plan(1));
  Objects objects(threads[0]);
  Semaphores semaphores(threads[0], objects.table);
  const int semaphore = 0;
  EXPECT_EQ(semaphores.init(&semaphore, Semaphores::most + 1), EINVAL);
  EXPECT_EQ(semaphores.init(&semaphore, Semaphores::most), 0);
  EXPECT_EQ(semaphores.post(&semaphore), EOVERFLOW);
  EXPECT_EQ(semaphores.try_wait(&semaphore), 0);
  int value = 0;
  EXPECT_EQ(semaphores.value(&semaphore, value), 0);
  EXPECT_EQ(value, static_cast<int>(Semaphores::most) - 1);
}

TEST(ReadersWriterLocks, AWriterIsAloneAndMayNotEnterTwice) {
  testing::MappedThreads threads(plan(2));
  Objects one(threads[0]);
  Objects other(threads[1]);
  ReadersWriterLocks first(threads[0], one.table);
  ReadersWriterLocks second(threads[1], other.table);
  const int lock = 0;
  EXPECT_EQ(first.unlock(&lock), EPERM);
  EXPECT_EQ(first.write(&lock, nullptr), 0);
  EXPECT_EQ(first.write(&lock, nullptr), EDEADLK);
  EXPECT_EQ(first.read(&lock, nullptr), EDEADLK);
  const Deadline soon = in_milliseconds(2);
  EXPECT_EQ(second.read(&lock, &soon), ETIMEDOUT);
  EXPECT_EQ(second.write(&lock, &soon), ETIMEDOUT);
  EXPECT_EQ(second.unlock(&lock), EPERM);
  EXPECT_EQ(second.destroy(&lock), EBUSY);
  EXPECT_EQ(first.unlock(&lock), 0);
  EXPECT_EQ(second.read(&lock, nullptr), 0);
  EXPECT_EQ(first.read(&lock, nullptr), 0);
  EXPECT_EQ(first.try_write(&lock), EBUSY);
  EXPECT_EQ(first.unlock(&lock), 0);
  EXPECT_EQ(first.try_write(&lock), EBUSY);
  EXPECT_EQ(second.unlock(&lock), 0);
  EXPECT_EQ(first.try_write(&lock), 0);
}

int calls = 0;
bool throws = false;
void routine() {
  ++calls;
  if (throws) throw calls;
}

TEST(Once, ARoutineThatThrowsIsCalledAgain) {
  testing::MappedThreads threads(plan(1));
  Objects objects(threads[0]);
  Once once(threads[0], objects.table);
  int done = 0;
  throws = true;
  EXPECT_THROW(once.call(done, &routine), int);
  throws = false;
  EXPECT_EQ(once.call(done, &routine), 0);
  EXPECT_EQ(once.call(done, &routine), 0);
  EXPECT_EQ(calls, 2);
}

Keys* of_destructor = nullptr;
std::uint32_t key_of_destructor = 0;
int destroyed = 0;
void set_again(void* value) {
  ++destroyed;
  EXPECT_EQ(of_destructor->get(key_of_destructor), nullptr) << "KEY2";
  of_destructor->set(key_of_destructor, value);
}

TEST(Keys, ValuesAreAThreadsAndDestroyedAtItsEnd) {
  testing::MappedThreads threads({.threads = 2, .locks = 1, .words = Keys::words + 1});
  Keys one(threads[0], 1);
  Keys other(threads[1], 1);
  std::uint32_t key = 0;
  ASSERT_EQ(one.create(key, &set_again), 0);
  int value = 0;
  EXPECT_EQ(one.set(key, &value), 0);
  EXPECT_EQ(other.get(key), nullptr);
  EXPECT_EQ(other.set(key, &other), 0);
  EXPECT_EQ(one.get(key), &value);
  of_destructor = &one;
  key_of_destructor = key;
  one.destroy_values();
  EXPECT_EQ(destroyed, Keys::rounds);
  EXPECT_EQ(one.get(key), nullptr);
  EXPECT_EQ(one.remove(key), 0);
  EXPECT_EQ(one.remove(key), EINVAL);
  EXPECT_EQ(one.set(key, &value), EINVAL);
  ASSERT_EQ(one.create(key, nullptr), 0);
  EXPECT_EQ(other.get(key), nullptr) << "KEY1";
  EXPECT_EQ(one.set(Keys::most, &value), EINVAL);
  EXPECT_EQ(one.get(Keys::most), nullptr);
}

TEST(Keys, ThereAreSoManyAndNoMore) {
  testing::MappedThreads threads({.threads = 1, .locks = 1, .words = Keys::words});
  Keys keys(threads[0], 0);
  std::uint32_t key = 0;
  for (std::uint32_t i = 0; i < Keys::most; ++i) ASSERT_EQ(keys.create(key, nullptr), 0);
  EXPECT_EQ(keys.create(key, nullptr), EAGAIN);
  EXPECT_EQ(keys.remove(3), 0);
  EXPECT_EQ(keys.create(key, nullptr), 0);
  EXPECT_EQ(key, 3U);
}

}  // namespace
}  // namespace tombolo::dsm
