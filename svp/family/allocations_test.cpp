// SPDX-License-Identifier: Apache-2.0
// Purpose: tests that families which their creator takes back at the sync allocate nothing (FY1).
// This program counts all calls of operator new. There is no test beside the thread sanitizer,
// which has its own.
// Thread safety: -
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "svp/api/include/tombolo/svp.hpp"

#if !defined(__SANITIZE_THREAD__)
namespace {

std::atomic<std::uint64_t> allocations{0};  // NOLINT: of operator new

}  // namespace

// Not inlined: gcc would find malloc beside delete.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);  // a count alone
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const auto line = static_cast<std::size_t>(alignment);
  if (void* const memory = std::aligned_alloc(line, (bytes + line - 1) / line * line))
    return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace tombolo::svp {
namespace {

long fibonacci(long n) {
  if (n < 2) return n;
  long one = 0;
  auto family = create([&] { one = fibonacci(n - 1); });
  const long two = fibonacci(n - 2);
  family.sync();
  return one + two;
}

// Of 10,945 families, but for their root.
TEST(Families, AllocateNothingWhereTheirCreatorRunsThem) {
  LocalPlace place(1);
  long result = 0;
  std::uint64_t allocated = 1;
  auto root = create(place, [&] {
    const std::uint64_t before = allocations;
    result = fibonacci(20);
    allocated = allocations - before;
  });
  root.sync();
  EXPECT_EQ(result, 6765);
  EXPECT_EQ(allocated, 0u);
}

TEST(Families, OfRangesAllocateNothingEither) {
  LocalPlace place(1);
  std::uint64_t allocated = 1;
  std::uint64_t threads = 0;
  auto root = create(place, [&] {
    const std::uint64_t before = allocations;
    for (int i = 0; i < 100; ++i) create({.limit = 50}, [&](Index) { ++threads; }).sync();
    allocated = allocations - before;
  });
  root.sync();
  EXPECT_EQ(threads, 5000u);
  EXPECT_EQ(allocated, 0u);
}

// Else the tests above would hold of any program.
TEST(Families, WhoseThreadsAllocateAreCounted) {
  LocalPlace place(1);
  std::uint64_t allocated = 0;
  auto root = create(place, [&] {
    const std::uint64_t before = allocations;
    create([&] { operator delete(operator new(8)); }).sync();
    allocated = allocations - before;
  });
  root.sync();
  EXPECT_EQ(allocated, 1u);
}

}  // namespace
}  // namespace tombolo::svp
#endif
