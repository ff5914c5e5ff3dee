// SPDX-License-Identifier: Apache-2.0
// Purpose: a miss may come anywhere in a program: in library functions that hold locks, in signal
// handlers, on a stack whose own pages are closed. The store allocates nothing in it.
// Thread safety: -
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "dsm/pages/fault_pages.h"
#include "host/memory/page.h"

namespace tombolo::dsm {
namespace {

using host::FaultMechanism;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

constinit std::atomic<long> allocations{0};

}  // namespace
}  // namespace tombolo::dsm

// This program's allocations are counted. A sanitizer has its own functions.
#if !defined(__SANITIZE_ADDRESS__)
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t number, std::size_t bytes);
void* __libc_realloc(void* at, std::size_t bytes);

void* malloc(std::size_t bytes) {
  ++tombolo::dsm::allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t number, std::size_t bytes) {
  ++tombolo::dsm::allocations;
  return __libc_calloc(number, bytes);
}
void* realloc(void* at, std::size_t bytes) {
  ++tombolo::dsm::allocations;
  return __libc_realloc(at, bytes);
}
}
#endif

namespace tombolo::dsm {
namespace {

// Keeps the pages that leave the cache, and brings them back: one process's own memory through a
// small cache.
class Swapping : public MissHandler {
 public:
  Swapping(FaultPages& pages, const Shape& shape)
      : pages_(pages), bytes_(shape.page_bytes), kept_(shape.pages * shape.page_bytes) {}

  Status read_miss(Page page) override {
    if (allocates) garbage_.emplace_back(100 + garbage_.size() * 7 % 5000);
    if (garbage_.size() > 100) garbage_.clear();
    if (during != nullptr) during();
    if (pages_.full()) give_up(pages_.victim());
    pages_.install(page, std::span(kept_).subspan(page * bytes_, bytes_));
    return {};
  }
  Status write_miss(Page page) override {
    if (pages_.lookup(page) == nullptr) TOMBOLO_TRY(read_miss(page));
    pages_.make_twin(page);
    pages_.allow_writes(page);
    ++writes;
    return {};
  }

  bool allocates = false;
  void (*during)() = nullptr;
  int writes = 0;

 private:
  void give_up(Page page) {
    std::ranges::copy(pages_.frame(page),
                      kept_.begin() + static_cast<std::ptrdiff_t>(page * bytes_));
    pages_.invalidate(page);
  }

  FaultPages& pages_;
  std::size_t bytes_;
  std::vector<std::byte> kept_;
  std::vector<std::vector<char>> garbage_;
};

class MissSafety : public ::testing::TestWithParam<FaultMechanism> {
 protected:
  static constexpr Page number = 64;

  void SetUp() override {
    if (const Status status = host::available(GetParam()); !status.ok())
      GTEST_SKIP() << status.message();
    const Shape shape{.pages = number, .page_bytes = host::page_bytes(), .cached_pages = 6};
    const Status made = FaultPages::create(shape, {.mechanism = GetParam()}, pages);
    ASSERT_TRUE(made.ok()) << made.message();
    handler = std::make_unique<Swapping>(*pages, shape);
    pages->on_miss(*handler);
  }
  char* at(Page page, std::size_t offset = 0) const {
    return reinterpret_cast<char*>(pages->memory().data()) + page * host::page_bytes() + offset;
  }

  std::unique_ptr<FaultPages> pages;
  std::unique_ptr<Swapping> handler;
};

TEST_P(MissSafety, TheStoreAllocatesNothing) {
  if (sanitized) GTEST_SKIP();
  for (int round = 0; round < 3; ++round) {
    const long before = allocations;
    for (Page page = 0; page < number; ++page) *const_cast<volatile char*>(at(page, 7)) = 1;
    std::size_t touched = 0;
    const bool touching = pages->touch(at(3), 5 * host::page_bytes(), true, touched).ok();
    EXPECT_EQ(allocations - before, 0) << "round " << round;
    EXPECT_TRUE(touching);
  }
}

TEST_P(MissSafety, LibraryFunctionsMeetMisses) {
  handler->allocates = true;
  const std::size_t bytes = 20 * host::page_bytes();
  std::string text;
  for (std::size_t i = 0; i < bytes - 1; ++i) text += static_cast<char>('a' + i % 23);
  std::memcpy(at(2, 100), text.c_str(), bytes);
  std::memmove(at(30, 3), at(2, 100), bytes);
  std::memmove(at(31, 9), at(30, 3), bytes);
  EXPECT_EQ(std::strlen(at(31, 9)), bytes - 1);
  EXPECT_EQ(std::memcmp(at(31, 9), text.c_str(), bytes), 0);
  EXPECT_EQ(std::snprintf(at(40), bytes, "%s %f %s", at(2, 100), 2.5, at(62)),
            static_cast<int>(bytes - 1 + std::strlen(" 2.500000 ")));
  EXPECT_EQ(std::strncmp(at(40), text.c_str(), bytes - 1), 0);
}

TEST_P(MissSafety, SortingMeetsMisses) {
  handler->allocates = true;
  auto* const numbers = reinterpret_cast<std::uint64_t*>(at(1, 8));
  const std::size_t count = 30 * host::page_bytes() / sizeof *numbers;
  Random random = Random::stream(1, 1);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += numbers[i] = random.below(1'000'000);
  std::qsort(numbers, count, sizeof *numbers, [](const void* a, const void* b) {
    const auto x = *static_cast<const std::uint64_t*>(a);
    const auto y = *static_cast<const std::uint64_t*>(b);
    return x < y ? -1 : static_cast<int>(x > y);
  });
  EXPECT_TRUE(std::is_sorted(numbers, numbers + count));
  for (std::size_t i = 0; i < count; ++i) sum -= numbers[i];
  EXPECT_EQ(sum, 0u);
}

// The lock of the FILE is held meanwhile.
TEST_P(MissSafety, StreamsMeetMisses) {
  handler->allocates = true;
  std::memset(at(5), 'x', 9 * host::page_bytes());
  *at(14) = '\0';
  char* text = nullptr;
  std::size_t bytes = 0;
  FILE* const stream = open_memstream(&text, &bytes);
  ASSERT_NE(stream, nullptr);
  for (int i = 0; i < 3; ++i) std::fprintf(stream, "%s\n", at(5));
  EXPECT_EQ(std::fwrite(at(5, 1), 1, 8 * host::page_bytes(), stream), 8 * host::page_bytes());
  std::fclose(stream);
  EXPECT_EQ(bytes, 3 * (9 * host::page_bytes() + 1) + 8 * host::page_bytes());
  EXPECT_EQ(std::count(text, text + bytes, 'x'), static_cast<std::ptrdiff_t>(bytes - 3));
  std::free(text);
}

// ---- Signals ------------------------------------------------------------------------------------

char* touched_by_signals = nullptr;
int signals = 0;
bool in_miss = false;
bool seen_in_miss = false;
void touch_in_signal(int) {
  seen_in_miss = seen_in_miss || in_miss;
  // A page that is not cached most of the time.
  volatile int& count = *reinterpret_cast<int*>(touched_by_signals);
  count = count + 1;
  ++signals;
}

class WithSignal {
 public:
  explicit WithSignal(int signal) : signal_(signal) {
    signals = 0;
    struct sigaction action {};
    action.sa_handler = touch_in_signal;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, &before_);
  }
  ~WithSignal() { sigaction(signal_, &before_, nullptr); }

 private:
  int signal_;
  struct sigaction before_ {};
};

TEST_P(MissSafety, ASignalInAMissWaitsForItsEnd) {
  touched_by_signals = at(60);
  const WithSignal with(SIGUSR1);
  handler->during = [] {
    in_miss = true;
    if (signals < 20) raise(SIGUSR1);
    in_miss = false;
  };
  for (Page page = 0; page < 50; ++page) (void)*const_cast<volatile char*>(at(page));
  handler->during = nullptr;
  EXPECT_GE(signals, 20);
  EXPECT_FALSE(seen_in_miss);
  EXPECT_EQ(*reinterpret_cast<int*>(at(60)), signals);
}

TEST_P(MissSafety, SignalsAtAnyMomentMayMiss) {
  touched_by_signals = at(60);
  const WithSignal with(SIGALRM);
  const itimerval often{{0, 100}, {0, 100}};
  const itimerval never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  std::uint64_t sum = 0;
  for (int round = 1; round <= 40; ++round)
    for (Page page = 0; page < 50; ++page) {
      volatile unsigned char& count = *reinterpret_cast<unsigned char*>(at(page, 64));
      count = static_cast<unsigned char>(count + 1);
      sum += count;
    }
  setitimer(ITIMER_REAL, &never, nullptr);
  EXPECT_EQ(sum, 50u * 40 * 41 / 2);
  EXPECT_EQ(*reinterpret_cast<int*>(at(60)), signals);
}

// ---- Stacks -------------------------------------------------------------------------------------

ucontext_t test_context;
int depth_reached = 0;

[[gnu::noinline]] int descend(int depth) {
  std::array<volatile char, 3000> local;
  for (std::size_t i = 0; i < local.size(); i += 500) local[i] = static_cast<char>(depth);
  depth_reached = std::max(depth_reached, depth);
  const int below = depth == 40 ? 0 : descend(depth + 1);
  for (std::size_t i = 0; i < local.size(); i += 500)
    if (local[i] != static_cast<char>(depth)) return -1000000;
  return below + 1;
}
int descended = 0;
void run_in_view() { descended = descend(1); }

// Its calls and returns miss as its loads and stores do.
TEST_P(MissSafety, AStackMayLieInTheView) {
  if (sanitized) GTEST_SKIP();  // which must know all stacks
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = at(1);
  context.uc_stack.ss_size = 50 * host::page_bytes();
  context.uc_link = &test_context;
  makecontext(&context, run_in_view, 0);
  swapcontext(&test_context, &context);
  EXPECT_EQ(descended, 40);
  EXPECT_EQ(depth_reached, 40);
  EXPECT_GT(handler->writes, 30);
}

INSTANTIATE_TEST_SUITE_P(Mechanisms, MissSafety,
                         ::testing::Values(FaultMechanism::userfault, FaultMechanism::protection),
                         [](const auto& of) { return std::string(host::name_of(of.param)); });

}  // namespace
}  // namespace tombolo::dsm
