// SPDX-License-Identifier: Apache-2.0
// Purpose: loops over 10^7 indices with a short body, against parallel_for: with the block that the
// run-time chooses, and with so many threads at once as there are workers. A task is an index.
// Thread safety: -
#include <cmath>
#include <vector>

#include "svp/bench/contest.h"

#ifdef TOMBOLO_HAS_TBB
#include <tbb/parallel_for.h>
#endif

namespace tombolo::svp::bench {

void loop(const Settings& settings) {
  const Index n = settings.quick ? 1000000 : 10000000;
  std::vector<float> values(static_cast<std::size_t>(n), 1.5F);
  float* const at = values.data();
  const auto body = [at](Index i) { at[i] = std::sqrt(at[i]) + 1.0F; };
  const auto families = [&](std::uint64_t block) {
    in_families(settings, [&] {
      auto family = create({.limit = n, .block = block}, body);
      family.sync();
    });
  };
  Contest contest(settings, "loop", static_cast<double>(n));
  contest.add_inside("families", [&] { families(0); });
  contest.add_inside("families, block", [&] { families(settings.workers); });
#ifdef TOMBOLO_HAS_TBB
  contest.add("oneTBB", [&] { in_tbb(settings, [&] { tbb::parallel_for(Index{0}, n, body); }); });
#endif
#ifdef _OPENMP
  contest.add("OpenMP", [&] {
#pragma omp parallel for num_threads(settings.threads())
    for (Index i = 0; i < n; ++i) body(i);
  });
#endif
  contest.measure();
}

}  // namespace tombolo::svp::bench
