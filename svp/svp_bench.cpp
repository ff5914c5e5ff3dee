// SPDX-License-Identifier: Apache-2.0
// Purpose: families beside oneTBB (Debian: libtbb-dev) and OpenMP, where these are, in one run: a
// round measures all contestants of a benchmark one after the other. One line for each with the
// median, and its ratio to families.
//
//   svp_svp_bench [WORKERS [ROUNDS]]
//
//   fib       a family a call, no cut-off; ns for each call
//   skynet    a tree of 10^6 leaves, ten children each; ns for each leaf
//   loop      10^7 indices with a short body, default block; ns for each index
//   chain     10^6 threads through a shared channel; ns for each hop
//   counter   additions in turn: at an exclusive place, under a mutex; ns for each addition
//
// Thread safety: -
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "svp/svp.h"

#ifdef TOMBOLO_HAS_TBB
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#endif

namespace tombolo::svp {
namespace {

using Clock = std::chrono::steady_clock;

struct Contestant {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds = {};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(const std::string& benchmark, double units, int rounds, std::vector<Contestant> all) {
  for (int round = 0; round < rounds; ++round)
    for (Contestant& one : all) {
      const auto start = Clock::now();
      one.run();
      one.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
  const double ours = median(all[0].seconds);
  for (const Contestant& one : all) {
    const double theirs = median(one.seconds);
    fmt::print("{:8} {:10} {:8.2f} ns  {:6.2f} times\n", benchmark, one.name, theirs * 1e9 / units,
               theirs / ours);
  }
  std::fflush(stdout);
}

void expect(bool holds, const char* benchmark) {
  TOMBOLO_CHECK(holds, "{}: a wrong result", benchmark);
}

// ---- fib ----------------------------------------------------------------------------------------

constexpr long fib_of = 32;
constexpr long fib_result = 2178309;
constexpr double fib_calls = 7049155;

long fib_families(long n) {
  if (n < 2) return n;
  long one = 0;
  auto family = create([&] { one = fib_families(n - 1); });
  const long two = fib_families(n - 2);
  family.sync();
  return one + two;
}

#ifdef TOMBOLO_HAS_TBB
long fib_tbb(long n) {
  if (n < 2) return n;
  long one = 0;
  tbb::task_group group;
  group.run([&] { one = fib_tbb(n - 1); });
  const long two = fib_tbb(n - 2);
  group.wait();
  return one + two;
}
#endif

#ifdef _OPENMP
long fib_openmp(long n) {
  if (n < 2) return n;
  long one = 0;
#pragma omp task shared(one)
  one = fib_openmp(n - 1);
  const long two = fib_openmp(n - 2);
#pragma omp taskwait
  return one + two;
}
#endif

// ---- skynet -------------------------------------------------------------------------------------

constexpr long skynet_leaves = 1000000;
constexpr long skynet_result = skynet_leaves * (skynet_leaves - 1) / 2;

long sum_of(const long (&parts)[10]) {
  long sum = 0;
  for (const long part : parts) sum += part;
  return sum;
}

long skynet_families(long number, long size) {
  if (size == 1) return number;
  long parts[10];
  auto family = create({.limit = 10}, [&](Index i) {
    parts[i] = skynet_families(number + i * (size / 10), size / 10);
  });
  family.sync();
  return sum_of(parts);
}

#ifdef TOMBOLO_HAS_TBB
long skynet_tbb(long number, long size) {
  if (size == 1) return number;
  long parts[10];
  tbb::parallel_for(0, 10,
                    [&](int i) { parts[i] = skynet_tbb(number + i * (size / 10), size / 10); });
  return sum_of(parts);
}
#endif

#ifdef _OPENMP
long skynet_openmp(long number, long size) {
  if (size == 1) return number;
  long parts[10];
  for (int i = 0; i < 10; ++i) {
#pragma omp task shared(parts) firstprivate(i)
    parts[i] = skynet_openmp(number + i * (size / 10), size / 10);
  }
#pragma omp taskwait
  return sum_of(parts);
}
#endif

// ---- The benchmarks -----------------------------------------------------------------------------

class Benchmarks {
 public:
  Benchmarks(unsigned workers, int rounds)
      : workers_(workers),
        rounds_(rounds),
        place_(workers)
#ifdef TOMBOLO_HAS_TBB
        ,
        limit_(tbb::global_control::max_allowed_parallelism, workers),
        arena_(static_cast<int>(workers))
#endif
  {
  }

  void fib() {
    std::vector<Contestant> all;
    all.push_back(
        {"families", [&] { check([] { return fib_families(fib_of) == fib_result; }, "fib"); }});
#ifdef TOMBOLO_HAS_TBB
    all.push_back(
        {"oneTBB", [&] { arena_.execute([] { expect(fib_tbb(fib_of) == fib_result, "fib"); }); }});
#endif
#ifdef _OPENMP
    all.push_back(
        {"OpenMP", [&] { openmp_task([] { expect(fib_openmp(fib_of) == fib_result, "fib"); }); }});
#endif
    measure("fib", fib_calls, rounds_, std::move(all));
  }

  void skynet() {
    std::vector<Contestant> all;
    all.push_back({"families", [&] {
                     check([] { return skynet_families(0, skynet_leaves) == skynet_result; },
                           "skynet");
                   }});
#ifdef TOMBOLO_HAS_TBB
    all.push_back({"oneTBB", [&] {
                     arena_.execute(
                         [] { expect(skynet_tbb(0, skynet_leaves) == skynet_result, "skynet"); });
                   }});
#endif
#ifdef _OPENMP
    all.push_back(
        {"OpenMP", [&] {
           openmp_task([] { expect(skynet_openmp(0, skynet_leaves) == skynet_result, "skynet"); });
         }});
#endif
    measure("skynet", skynet_leaves, rounds_, std::move(all));
  }

  void loop() {
    constexpr Index n = 10000000;
    std::vector<float> values(n, 1.5F);
    const auto body = [&](Index i) {
      auto& v = values[static_cast<std::size_t>(i)];
      v = std::sqrt(v) + 1.0F;
    };
    std::vector<Contestant> all;
    all.push_back({"families", [&] {
                     auto family = create(place_, {.limit = n}, body);
                     family.sync();
                   }});
#ifdef TOMBOLO_HAS_TBB
    all.push_back(
        {"oneTBB", [&] { arena_.execute([&] { tbb::parallel_for(Index{0}, n, body); }); }});
#endif
#ifdef _OPENMP
    all.push_back({"OpenMP", [&] {
#pragma omp parallel for num_threads(static_cast <int>(workers_))
                     for (Index i = 0; i < n; ++i) body(i);
                   }});
#endif
    measure("loop", n, rounds_, std::move(all));
  }

  void chain() {
    constexpr Index n = 1000000;
    measure("chain", n, rounds_,
            {{"families", [&] {
                Shared<Index> sum(0);
                auto family = create(
                    place_, {.limit = n},
                    [](Index i, SharedEnd<Index>& end) { end.write(end.read() + i); }, sum);
                family.sync();
                expect(sum.read() == n * (n - 1) / 2, "chain");
              }}});
  }

  void counter() {
    constexpr Index n = 200000;
    const auto parts = static_cast<Index>(workers_);
    measure("counter", n, rounds_,
            {{"families",
              [&] {
                ExclusivePlace exclusive;
                long count = 0;
                each_part(parts, [&](Index) {
                  for (Index i = 0; i < n / parts; ++i) {
                    auto add = create(exclusive, [&] { ++count; });
                    add.sync();
                  }
                });
                expect(count == n / parts * parts, "counter");
              }},
             {"mutex", [&] {
                std::mutex mutex;
                long count = 0;
                each_part(parts, [&](Index) {
                  for (Index i = 0; i < n / parts; ++i) {
                    const std::lock_guard lock(mutex);
                    ++count;
                  }
                });
                expect(count == n / parts * parts, "counter");
              }}});
  }

 private:
  template <class Body>
  void check(Body body, const char* benchmark) {
    bool holds = false;
    auto family = create(place_, [&] { holds = body(); });
    family.sync();
    expect(holds, benchmark);
  }
  template <class Body>
  void each_part(Index parts, Body body) {
    auto family = create(place_, {.limit = parts}, body);
    family.sync();
  }
#ifdef _OPENMP
  template <class Body>
  void openmp_task(Body body) {
#pragma omp parallel num_threads(static_cast <int>(workers_))
#pragma omp single
    body();
  }
#endif

  unsigned workers_;
  int rounds_;
  LocalPlace place_;
#ifdef TOMBOLO_HAS_TBB
  tbb::global_control limit_;
  tbb::task_arena arena_;
#endif
};

}  // namespace
}  // namespace tombolo::svp

int main(int argc, char** argv) {
  const unsigned workers = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  tombolo::svp::Benchmarks benchmarks(workers, rounds);
  benchmarks.fib();
  benchmarks.skynet();
  benchmarks.loop();
  benchmarks.chain();
  benchmarks.counter();
  return 0;
}
