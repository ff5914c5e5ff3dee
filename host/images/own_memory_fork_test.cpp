// SPDX-License-Identifier: Apache-2.0
// Purpose: a forked child's memory is its own, and its parent's stays so. Apart from the tests of
// other images: handlers of a fork serve that of the process.
#include "host/images/own_memory.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "host/images/testing/own_memories.h"
#include "host/images/write_hold.h"
#include "host/memory/page.h"
#include "host/memory/testing/memory.h"
#include "host/memory/testing/system_calls.h"
#include "host/processes/testing/held_allocator.h"
#include "host/stacks/other_stack.h"

namespace tombolo::host {
namespace {

using testing::allocator_is_held;
using testing::Answering;
using testing::Call;
using testing::HeapBlock;
using testing::is_private;
using testing::is_shared;
using testing::NeedsSharing;
using testing::pass;
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

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

class OwnMemoryForkTest : public NeedsSharing {};

alignas(64) char variables[3 * 4096] = {1};
alignas(65536) std::array<char, OwnMemory::most_kept_bytes + 65536> many_variables;

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
  const AddressRange shared = own_memory().share(use);
  if (shared != use.range() && !OtherStack().valid()) GTEST_SKIP() << "no stack can be shared here";
  ASSERT_EQ(shared, use.range());
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

// --- From other threads -------------------------------------------------------------------------

TEST_F(OwnMemoryForkTest, AChildOfAnotherThreadHasItsOwnMemory) {
  auto use = own_memory().enter(variables, sizeof variables);
  ASSERT_EQ(own_memory().share(use), use.range());
  volatile char array[3 * 4096] = {};
  array[5000] = 1;
  auto stack = own_memory().enter(const_cast<const char*>(array), sizeof array);
  (void)own_memory().share(stack);
  std::thread([&] {
    EXPECT_EQ(child_of_its_own(variables), 0);
    EXPECT_EQ(child_of_its_own(array + 5000), 0) << "the stack of a thread that does not fork";
  }).join();
}

TEST_F(OwnMemoryForkTest, AChildOfAnotherThreadHasItsOwnStack) {
  std::thread([] {
    volatile char array[3 * 4096] = {};
    array[5000] = 1;
    auto use = own_memory().enter(const_cast<const char*>(array), sizeof array);
    const AddressRange shared = own_memory().share(use);
    if (shared != use.range() && !OtherStack().valid())
      GTEST_SKIP() << "no stack can be shared here";
    ASSERT_EQ(shared, use.range());
    EXPECT_EQ(child_of_its_own(array + 5000), 0);
  }).join();
}

// --- Beside other threads -----------------------------------------------------------------------

// Called between the handlers before a fork and the kernel's fork: handlers run in the reverse
// order, and this one is there before all that programs and libraries have.
constinit std::atomic<const std::function<void()>*> at_the_fork{nullptr};
[[gnu::constructor(101)]] void see_the_fork() {
  pthread_atfork(
      [] {
        if (const auto* const call = at_the_fork.load()) (*call)();
      },
      [] { allocator_is_held = false; }, nullptr);
}

// As in_child(), with `call` just before the kernel forks.
template <class F>
int in_child_after(const std::function<void()>& call, F&& body) {
  at_the_fork = &call;
  const int status = in_child(body);
  at_the_fork = nullptr;
  return status;
}

// Runs `task` in another thread each time it is told to, until it is done.
class OtherThread {
 public:
  explicit OtherThread(std::function<void()> task = [] {})
      : task_(std::move(task)), thread_([this] {
          for (int done = 0; !ends_;) {
            if (wanted_ == done) {
              usleep(100);
              continue;
            }
            task_();
            done_ = ++done;
          }
        }) {
    run();  // a thread that starts blocks signals
  }
  ~OtherThread() {
    ends_ = true;
    thread_.join();
  }
  OtherThread(const OtherThread&) = delete;
  OtherThread& operator=(const OtherThread&) = delete;
  void begin() { ++wanted_; }
  void run() {
    for (begin(); done_ < wanted_;) usleep(100);
  }

 private:
  const std::function<void()> task_;
  std::atomic<int> wanted_{0};
  std::atomic<int> done_{0};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

// Variables whose pages stay in the image.
bool keep_variables() {
  own_memory().enter(variables, sizeof variables).end();
  auto use = own_memory().enter(variables, sizeof variables);
  const bool all = own_memory().share(use) == use.range();
  use.end();
  return all && is_shared(variables);
}

alignas(4096) volatile char beside_them[4096];

// As status_of(); 300 if it does not end.
int status_in_time(pid_t process) {
  int state = 0;
  for (int i = 0; i < 2'000; ++i) {
    if (waitpid(process, &state, WNOHANG) == process)
      return WIFEXITED(state) ? WEXITSTATUS(state) : 200 + WTERMSIG(state);
    usleep(10'000);
  }
  kill(process, SIGKILL);  // it may block all other signals
  (void)status_of(process);
  return 300;
}

// The child's handlers free nothing, and allocate nothing.
TEST_F(OwnMemoryForkTest, AChildWhoseAllocatorWasHeldHasItsOwnMemory) {
  auto use = own_memory().enter(variables, sizeof variables);
  ASSERT_FALSE(own_memory().share(use).empty());
  variables[0] = 1;
  const std::function<void()> hold = [] { allocator_is_held = true; };
  at_the_fork = &hold;
  const pid_t child = has_own_image() ? forked_aside(::fork) : ::fork();
  volatile char& first = variables[0];
  if (child == 0) {
    first = 9;
    _exit(first);
  }
  at_the_fork = nullptr;
  EXPECT_EQ(status_in_time(child), 9);
  EXPECT_EQ(first, 1);
}

// In a program of its own without other threads, but for those that it starts.
int threaded(const std::function<int()>& body) {
  const pid_t process = forked_aside(::fork);
  if (process == 0) _exit(keep_variables() ? body() : 50);
  return status_in_time(process);
}

TEST_F(OwnMemoryForkTest, AChildOfAThreadedProgramHasPagesWithoutAUseAsTheyAreAtTheFork) {
  if (sanitized) GTEST_SKIP() << "a thread of the sanitizer's may block faults";
  EXPECT_EQ(threaded([] {
              volatile char& first = variables[100];
              first = 0;
              OtherThread other([&] {
                first = first + 1;
                beside_them[0] = first;
              });
              return in_child_after([&] { other.run(); },
                                    [&] { return first == beside_them[0] ? 0 : 1; });
            }),
            0);
}

// It frees a block whose page is held while it moves for the fork, and has the allocator's lock.
int fork_while_a_thread_waits_for_a_page() {
  std::atomic<void*> freed{nullptr};
  std::atomic<bool> waits{false};
  OtherThread other([&] {
    const Answering answering([&](const Call& call) {
      if (call.number == SYS_nanosleep) waits = true;
      return pass(call);
    });
    std::free(freed.exchange(nullptr));
  });
  void* const block = std::malloc(100'000);
  auto use = own_memory().enter(block, 100'000);
  if (own_memory().share(use) != use.range()) return 51;
  const std::uint64_t at = use.range().low;
  use.end();
  const Answering answering([&](const Call& call) {
    const long result = pass(call);
    const bool holds = call.number == SYS_mprotect && call.arguments[2] == PROT_READ;
    const auto low = static_cast<std::uint64_t>(call.arguments[0]);
    if (holds && low <= at && at < low + static_cast<std::uint64_t>(call.arguments[1])) {
      freed = block;
      for (other.begin(); !waits;) usleep(100);
    }
    return result;
  });
  const int status = in_child([] {
    for (std::size_t i = 1; i < 1'000; ++i) std::free(std::malloc(i * 97));
    return 0;
  });
  return waits ? status : 52;
}

TEST_F(OwnMemoryForkTest, AForkDoesNotWaitForAThreadThatWaitsForAPage) {
  if (sanitized) GTEST_SKIP() << "the allocator is the sanitizer's";
  EXPECT_EQ(threaded(fork_while_a_thread_waits_for_a_page), 0);
}

TEST_F(OwnMemoryForkTest, OfAThreadedProgramPagesWithAUseStayInTheImage) {
  if (sanitized) GTEST_SKIP() << "a thread of the sanitizer's may block faults";
  EXPECT_EQ(threaded([] {
              const OtherThread other;
              OwnMemory& own = own_memory();
              auto first = own.enter(variables + 8, 8);
              if (own.share(first) != first.range()) return 51;
              const auto second = own.enter(variables + page + 8, 8);  // by copies of the kernel's
              if (const int status = in_child([] { return 0; }); status != 0) return status;
              if (!is_shared(variables) || !is_shared(variables + page)) return 52;
              if (!is_private(variables + 2 * page)) return 53;
              first.end();
              return is_shared(variables) ? 0 : 54;
            }),
            0);
}

TEST_F(OwnMemoryForkTest, PagesThatMoveForAForkMakeRoomForOthersToStay) {
  if (sanitized) GTEST_SKIP() << "a thread of the sanitizer's may block faults";
  EXPECT_EQ(threaded([] {
              const OtherThread other;
              OwnMemory& own = own_memory();
              const auto stays = [&](char* start, std::uint64_t bytes) {
                auto use = own.enter(start, bytes);
                if (own.share(use) != use.range()) return false;
                use.end();
                return is_shared(start);
              };
              char* const more = many_variables.data() + OwnMemory::most_kept_bytes;
              if (!stays(many_variables.data(), OwnMemory::most_kept_bytes - 8 * page)) return 51;
              if (stays(more, 16 * page)) return 52;
              if (const int status = in_child([] { return 0; }); status != 0) return status;
              return stays(more, 16 * page) ? 0 : 53;
            }),
            0);
}

TEST_F(OwnMemoryForkTest, PagesWithoutAUseStayInTheImageOfAProgramWithoutThreads) {
  if (sanitized) GTEST_SKIP() << "the sanitizer has threads";
  EXPECT_EQ(threaded([] {
              if (const int status = in_child([] { return 0; }); status != 0) return status;
              return is_shared(variables) ? 0 : 51;
            }),
            0);
}

TEST_F(OwnMemoryForkTest, AChildHasItsOwnPagesWhereAThreadKeepsThemFromMoving) {
  if (sanitized) GTEST_SKIP() << "a thread of the sanitizer's may block faults";
  EXPECT_EQ(threaded([] {
              OtherThread other([] {
                sigset_t fault;
                sigemptyset(&fault);
                sigaddset(&fault, SIGSEGV);
                pthread_sigmask(SIG_BLOCK, &fault, nullptr);
              });
              variables[100] = 1;
              const int status = child_of_its_own(variables + 100);
              return is_shared(variables) ? status : 51;
            }),
            0);
}

// --- Of much memory -----------------------------------------------------------------------------
//
// Each in a child, whose image holds no more than the test's.

constexpr std::uint64_t most = OwnMemory::most_copied_bytes;

char* allocate(std::uint64_t bytes) {
  auto* const memory = static_cast<char*>(own_memory().allocate(bytes));
  if (memory != nullptr) memory[page] = 1;
  return memory;
}

TEST_F(OwnMemoryForkTest, AChildHasCopiesOfAsMuchAsTheBoundSays) {
  EXPECT_EQ(in_child([] {
              char* const memory = allocate(most);
              return memory == nullptr ? 50 : child_of_its_own(memory + page);
            }),
            0);
}

TEST_F(OwnMemoryForkTest, AChildHasCopiesOfOtherVariablesHoweverMuchThereIs) {
  if (sanitized) GTEST_SKIP() << "a thread of the sanitizer's may block faults";
  variables[0] = variables[sizeof variables - 1] = 1;
  EXPECT_EQ(in_child([] {
              if (allocate(2 * most) == nullptr) return 50;
              auto use = own_memory().enter(variables + 100, sizeof variables - 200);
              if (own_memory().share(use) != use.range()) return 51;
              if (const int status = child_of_its_own(variables); status != 0) return status;
              return child_of_its_own(variables + sizeof variables - 1);
            }),
            0);
}

// Copies need no file; pages that follow the parent's would.
TEST_F(OwnMemoryForkTest, AChildHasCopiesOfAllIfTheProgramClosedTheFile) {
  if (sanitized) GTEST_SKIP() << "the sanitizer guards the bytes between variables";
  variables[0] = 1;
  EXPECT_EQ(in_child([] {
              char* const memory = allocate(2 * most);
              if (memory == nullptr) return 50;
              auto use = own_memory().enter(variables, sizeof variables);
              if (own_memory().share(use) != use.range()) return 51;
              close_range(3, ~0u, 0);
              if (const int status = child_of_its_own(memory + page); status != 0) return status;
              return child_of_its_own(variables);
            }),
            0);
}

std::uint64_t mapped_bytes() {
  std::vector<Mapping> all;
  EXPECT_TRUE(read_mappings(all).ok());
  std::uint64_t bytes = 0;
  for (const Mapping& mapping : all) bytes += mapping.range.bytes();
  return bytes;
}

// No room for copies of a test's memory, but for all that is smaller.
void limit_memory(std::uint64_t left = most / 4) {
  const std::uint64_t bytes = mapped_bytes() + left;
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
}

// `memory` holds 1; a child's store stays there.
int child_stores(char* memory) {
  const int status = in_child([&] {
    if (!is_private(memory) || memory[page] != 1) return 1;
    memory[page] = 2;
    return memory[page] == 2 ? 0 : 2;
  });
  return memory[page] == 1 ? status : 51;
}

TEST_F(OwnMemoryForkTest, AChildsStoresAreItsOwnWithoutMemoryForCopies) {
  if (sanitized) GTEST_SKIP() << "the sanitizer needs memory";
  EXPECT_EQ(in_child([] {
              char* const memory = allocate(most);
              if (memory == nullptr) return 50;
              limit_memory();
              return child_stores(memory);
            }),
            0);
  EXPECT_EQ(in_child([] {
              char* const memory = allocate(most);
              if (memory == nullptr) return 50;
              const Plain elsewhere(most / page);
              if (mremap(memory, most, most, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere.at(0)) !=
                  elsewhere.at(0))
                return 51;
              limit_memory();
              return child_stores(elsewhere.at(0));
            }),
            0)
      << "moved elsewhere";
}

TEST_F(OwnMemoryForkTest, AChildThatWouldShareMemoryWithItsParentEnds) {
  if (sanitized) GTEST_SKIP() << "the sanitizer needs memory";
  EXPECT_EQ(in_child([] {
              char* const memory = allocate(most);
              if (memory == nullptr) return 50;
              close_range(3, ~0u, 0);
              limit_memory();
              const int status = in_child([&] {
                memory[page] = 2;
                return 1;
              });
              return memory[page] == 1 ? status : 51;
            }),
            200 + SIGABRT);
}

// It would see its parent's stores to them, as long as it does not store there itself.
TEST_F(OwnMemoryForkTest, AChildWithoutMemoryForACopyOfOtherVariablesEnds) {
  if (sanitized) GTEST_SKIP() << "the sanitizer needs memory";
  for (const bool others : {true, false}) {
    SCOPED_TRACE(others);
    EXPECT_EQ(in_child([others] {
                const std::size_t beside = others ? 100 : 0;
                auto use = own_memory().enter(many_variables.data() + beside,
                                              many_variables.size() - 2 * beside);
                if (own_memory().share(use) != use.range()) return 50;
                limit_memory();
                return in_child([] { return 1; });
              }),
              others ? 200 + SIGABRT : 1);
  }
}

TEST_F(OwnMemoryForkTest, AChildWithoutMemoryForOtherVariablesEndsHoweverMuchThereIs) {
  if (sanitized) GTEST_SKIP() << "the sanitizer needs memory";
  EXPECT_EQ(in_child([] {
              if (allocate(2 * most) == nullptr) return 50;
              auto use = own_memory().enter(variables + 100, sizeof variables - 200);
              if (own_memory().share(use) != use.range()) return 51;
              limit_memory(most / 64);  // a copy wants room to lie as a huge page does
              return in_child([] { return 1; });
            }),
            200 + SIGABRT);
}

// The kernel's list of mappings takes a descriptor.
int child_without_descriptors(volatile char* byte) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_NOFILE, &none);
  const int status = in_child([&] {
    *byte = 2;
    return 1;
  });
  return *byte == 1 ? status : 51;
}

TEST_F(OwnMemoryForkTest, AChildEndsIfItIsNotKnownWhichMemoryItWouldShare) {
  EXPECT_EQ(in_child([] {
              char* const memory = allocate(2 * page);
              return memory == nullptr ? 50 : child_without_descriptors(memory + page);
            }),
            200 + SIGABRT);
  EXPECT_EQ(in_child([] {
              char* const memory = allocate(2 * page);
              if (memory == nullptr || !own_memory().free(memory)) return 50;
              const Plain plain(1);
              *plain.at(0) = 1;
              return child_without_descriptors(plain.at(0));
            }),
            1)
      << "there is none to share";
}

// As realloc() does it.
TEST_F(OwnMemoryForkTest, AChildHasItsOwnMemoryThatTheProgramMovedOrLetGrow) {
  EXPECT_EQ(in_child([] {
              const Plain plain(8);
              const Plain elsewhere(2);
              *plain.page(1) = 1;
              auto use = own_memory().enter(plain.at(0), 2 * page);
              if (own_memory().share(use).empty()) return 50;
              munmap(plain.page(2), 2 * page);
              if (mremap(plain.page(1), page, 2 * page, 0) != plain.page(1)) return 51;
              *plain.page(2) = 1;
              if (const int status = child_of_its_own(plain.page(1)); status != 0) return status;
              if (child_of_its_own(plain.page(2)) != 0) return 52;
              if (mremap(plain.page(1), 2 * page, 2 * page, MREMAP_MAYMOVE | MREMAP_FIXED,
                         elsewhere.at(0)) != elsewhere.at(0))
                return 53;
              if (child_of_its_own(elsewhere.at(0)) != 0) return 54;
              use.end();
              if (child_of_its_own(elsewhere.at(page)) != 0) return 55;
              close_range(3, ~0u, 0);
              return child_of_its_own(elsewhere.at(0)) != 0 ? 56 : 0;
            }),
            0);
}

// --- Before and afterwards ----------------------------------------------------------------------

TEST_F(OwnMemoryForkTest, AChildKnowsNothingOfItsParentsPages) {
  EXPECT_EQ(in_child([] {
              OwnMemory& own = own_memory();
              auto many = own.enter(many_variables.data(), OwnMemory::most_kept_bytes);
              if (own.share(many).empty()) return 50;
              many.end();  // no further ones may stay
              if (!is_shared(many_variables.data())) return 52;
              char* const memory = allocate(2 * page);
              if (memory == nullptr) return 51;
              return in_child([&] {
                if (own.has_image()) return 1;
                char* const further = many_variables.data() + OwnMemory::most_kept_bytes;
                auto use = own.enter(further, page);
                if (own.share(use).empty()) return 2;
                use.end();
                if (!is_shared(further)) return 3;
                use = own.enter(memory, 2 * page);
                if (own.share(use).empty()) return 4;
                use.end();
                return is_private(memory) ? 0 : 5;
              });
            }),
            0);
}

TEST_F(OwnMemoryForkTest, TheParentKeepsNoCopies) {
  char* const memory = allocate(most / 2);
  ASSERT_NE(memory, nullptr);
  const auto a_child = [] { EXPECT_EQ(in_child([] { return 0; }), 0); };
  a_child();
  const std::uint64_t before = mapped_bytes();
  for (int i = 0; i < 20; ++i) a_child();
  EXPECT_LT(mapped_bytes(), before + 10 * page);
  EXPECT_TRUE(own_memory().free(memory));
}

volatile sig_atomic_t status_of_handlers_child = -1;

void fork_in_handler(int) {
  const int error = errno;
  const pid_t child = has_own_image() ? forked_aside(::fork) : ::fork();
  if (child == 0) _exit(7);
  status_of_handlers_child = status_of(child);
  errno = error;
}

bool blocks(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  return sigismember(&now, signal) != 0;
}

// A signal comes in the middle of `f`, at the first such call; its handler forks. 0 if all is well.
template <class F>
int interrupted(long at, F&& f) {
  bool sent = false;
  const Answering answering([&](const Call& call) {
    if (call.number == at && !std::exchange(sent, true)) raise(SIGUSR1);
    return pass(call);
  });
  status_of_handlers_child = -1;
  f();
  if (!sent) return 1;
  if (blocks(SIGUSR1)) return 2;
  return status_of_handlers_child == 7 ? 0 : 3;
}

int forks_in_handlers() {
  signal(SIGUSR1, fork_in_handler);
  const Plain plain(2);
  OwnMemory& own = own_memory();
  auto use = own.enter(plain.at(8), page);
  if (const int wrong = interrupted(SYS_memfd_create, [&] { (void)own.share(use); }))
    return 10 + wrong;
  if (!is_shared(plain.at(0))) return 19;
  int child = -1;
  if (const int wrong = interrupted(SYS_mmap, [&] {
        const pid_t process =
            ::fork();  // on another stack the mask of signals comes back with this one
        if (process == 0) _exit(blocks(SIGUSR1) ? 1 : 0);
        child = status_of(process);
      }))
    return 20 + wrong;
  if (child != 0) return 29;
  if (const int wrong = interrupted(SYS_mremap, [&] { use.end(); })) return 30 + wrong;
  return is_private(plain.at(0)) ? 0 : 39;
}

// It would wait for the thread that it has interrupted.
TEST_F(OwnMemoryForkTest, ASignalHandlerMayForkWhateverItInterrupts) {
  if (!can_hold_writes()) GTEST_SKIP() << "pages with other variables cannot be shared here";
  const pid_t process = forked_aside(::fork);
  if (process == 0) _exit(forks_in_handlers());
  EXPECT_EQ(status_in_time(process), 0);
}

// In a program that has asked for none of its memory until then.
int fork_while_memory_is_asked_for_first() {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
  const std::function<void()> ask = [] { std::thread([] { (void)own_memory(); }).join(); };
  at_the_fork = &ask;
  const pid_t child = ::fork();
  if (child == 0) _exit(blocks(SIGUSR1) ? 0 : 1);
  if (const int status = status_of(child); status != 0) return status;
  return blocks(SIGUSR1) ? 0 : 2;
}

// A handler that runs after the fork alone would give back signals and a lock that were not taken.
TEST(OwnMemoryDeathTest, AForkDuringWhichAThreadAsksForTheMemoryFirstLeavesTheSignalsBlocked) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(std::_Exit(fork_while_memory_is_asked_for_first()), ::testing::ExitedWithCode(0), "");
}

TEST_F(OwnMemoryForkTest, AForkThatFailsTellsWhy) {
  errno = 0;
  EXPECT_EQ(forked_aside([] {
              errno = EAGAIN;
              return -1;
            }),
            -1);
  EXPECT_EQ(errno, EAGAIN);
}

}  // namespace
}  // namespace tombolo::host
