// SPDX-License-Identifier: Apache-2.0
// Purpose: fib: a task a call, no cut-off. A task is a call of the function.
// Thread safety: -
#include <future>

#include "svp/bench/contest.h"

#ifdef TOMBOLO_HAS_TBB
#include <tbb/task_group.h>
#endif

namespace tombolo::svp::bench {
namespace {

long plain(long n) { return n < 2 ? n : plain(n - 1) + plain(n - 2); }
double calls_of(long n) { return 2.0 * static_cast<double>(plain(n + 1)) - 1; }

long by_families(long n) {
  if (n < 2) return n;
  long one = 0;
  auto family = create([&] { one = by_families(n - 1); });
  const long two = by_families(n - 2);
  family.sync();
  return one + two;
}

#ifdef TOMBOLO_HAS_TBB
long by_tbb(long n) {
  if (n < 2) return n;
  long one = 0;
  tbb::task_group group;
  group.run([&] { one = by_tbb(n - 1); });
  const long two = by_tbb(n - 2);
  group.wait();
  return one + two;
}
#endif

#ifdef _OPENMP
long by_openmp(long n) {
  if (n < 2) return n;
  long one = 0;
#pragma omp task shared(one)
  one = by_openmp(n - 1);
  const long two = by_openmp(n - 2);
#pragma omp taskwait
  return one + two;
}
#endif

long by_async(long n) {
  if (n < 2) return n;
  auto one = std::async(std::launch::async, by_async, n - 1);
  const long two = by_async(n - 2);
  return one.get() + two;
}

}  // namespace

void fib(const Settings& settings) {
  const long n = settings.quick ? 24 : 32;
  const long expected = plain(n);
  Contest contest(settings, "fib", calls_of(n));
  contest.add_inside("families", [&] {
    in_families(settings, [&] { expect(by_families(n) == expected, "fib"); });
  });
#ifdef TOMBOLO_HAS_TBB
  contest.add("oneTBB", [&] { in_tbb(settings, [&] { expect(by_tbb(n) == expected, "fib"); }); });
#endif
#ifdef _OPENMP
  contest.add("OpenMP",
              [&] { in_openmp(settings, [&] { expect(by_openmp(n) == expected, "fib"); }); });
#endif
  // A thread of the system for each task: of fewer.
  constexpr long few = 12;
  contest.add(
      "std::async", [&] { expect(by_async(few) == plain(few), "fib"); }, calls_of(few));
  contest.measure();
}

}  // namespace tombolo::svp::bench
