// SPDX-License-Identifier: Apache-2.0
// Purpose: loops over 10^7 indices with a short body, against parallel_for: divided as the run-time
// chooses, with so many threads at once as there are workers, and in blocks of so many indices that
// each is a task of its own for the run-time. A task of the figures is an index.
// Thread safety: -
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "svp/bench/contest.h"

#ifdef TOMBOLO_HAS_TBB
#include <tbb/parallel_for.h>
#endif

namespace tombolo::svp::bench {
namespace {

struct Values {
  float* at;
  Index count;

  void change(Index i) const { at[i] = std::sqrt(at[i]) + 1.0F; }
  void change_all(Index from, Index to) const {
    for (Index i = from; i < to; ++i) change(i);
  }
};

void whole(const Settings& settings, const Values& values) {
  const Index n = values.count;
  const auto body = [values](Index i) { values.change(i); };
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

// A thread of a family for each block.
void in_blocks(const Settings& settings, const Values& values, Index block) {
  const Index n = values.count;
  Contest contest(settings, fmt::format("loop, blocks of {}", block), static_cast<double>(n));
  contest.add_inside("families", [&] {
    in_families(settings, [&] {
      if (block == 1) return create({.limit = n}, [values](Index i) { values.change(i); }).sync();
      return create({.limit = n, .step = block},
                    [values, block](Index from) {
                      values.change_all(from, std::min(from + block, values.count));
                    })
          .sync();
    });
  });
#ifdef TOMBOLO_HAS_TBB
  contest.add("oneTBB", [&] {
    in_tbb(settings, [&] {
      tbb::parallel_for(
          tbb::blocked_range<Index>(0, n, static_cast<std::size_t>(block)),
          [values](const auto& part) { values.change_all(part.begin(), part.end()); },
          tbb::simple_partitioner());
    });
  });
#endif
#ifdef _OPENMP
  contest.add("OpenMP", [&] {
#pragma omp parallel for num_threads(settings.threads()) schedule(dynamic, block)
    for (Index i = 0; i < n; ++i) values.change(i);
  });
#endif
  contest.measure();
}

}  // namespace

void loop(const Settings& settings) {
  std::vector<float> memory(settings.quick ? 1000000 : 10000000, 1.5F);
  const Values values{.at = memory.data(), .count = static_cast<Index>(memory.size())};
  whole(settings, values);
  for (const Index block : {1, 16, 256, 4096}) in_blocks(settings, values, block);
}

}  // namespace tombolo::svp::bench
