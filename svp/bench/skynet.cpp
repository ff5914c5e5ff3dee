// SPDX-License-Identifier: Apache-2.0
// Purpose: skynet: a tree of 10^6 leaves, ten children each. A task is a leaf.
// Thread safety: -
#include "svp/bench/contest.h"

#ifdef TOMBOLO_HAS_TBB
#include <tbb/parallel_for.h>
#endif

namespace tombolo::svp::bench {
namespace {

long sum_of(const long (&parts)[10]) {
  long sum = 0;
  for (const long part : parts) sum += part;
  return sum;
}

long by_families(long number, long size) {
  if (size == 1) return number;
  long parts[10];
  auto family = create(
      {.limit = 10}, [&](Index i) { parts[i] = by_families(number + i * (size / 10), size / 10); });
  family.sync();
  return sum_of(parts);
}

#ifdef TOMBOLO_HAS_TBB
long by_tbb(long number, long size) {
  if (size == 1) return number;
  long parts[10];
  tbb::parallel_for(0, 10, [&](int i) { parts[i] = by_tbb(number + i * (size / 10), size / 10); });
  return sum_of(parts);
}
#endif

#ifdef _OPENMP
long by_openmp(long number, long size) {
  if (size == 1) return number;
  long parts[10];
  for (int i = 0; i < 10; ++i) {
#pragma omp task shared(parts) firstprivate(i)
    parts[i] = by_openmp(number + i * (size / 10), size / 10);
  }
#pragma omp taskwait
  return sum_of(parts);
}
#endif

}  // namespace

void skynet(const Settings& settings) {
  const long leaves = settings.quick ? 10000 : 1000000;
  const long sum = leaves * (leaves - 1) / 2;
  Contest contest(settings, "skynet", static_cast<double>(leaves));
  contest.add_inside("families", [&] {
    in_families(settings, [&] { expect(by_families(0, leaves) == sum, "skynet"); });
  });
#ifdef TOMBOLO_HAS_TBB
  contest.add("oneTBB",
              [&] { in_tbb(settings, [&] { expect(by_tbb(0, leaves) == sum, "skynet"); }); });
#endif
#ifdef _OPENMP
  contest.add("OpenMP",
              [&] { in_openmp(settings, [&] { expect(by_openmp(0, leaves) == sum, "skynet"); }); });
#endif
  contest.measure();
}

}  // namespace tombolo::svp::bench
