// SPDX-License-Identifier: Apache-2.0
// Purpose: a counter that all workers raise: at an exclusive place, a family for each addition, and
// under a lock. A task is an addition.
// Thread safety: -
#include <mutex>

#include "svp/bench/contest.h"

namespace tombolo::svp::bench {
namespace {

// `add`: n times by each of the workers.
template <class Add>
void by_all(const Settings& settings, Index n, Add add) {
  in_families(settings, [&] {
    auto family = create({.limit = static_cast<Index>(settings.workers)}, [&](Index) {
      for (Index i = 0; i < n; ++i) add();
    });
    family.sync();
  });
}

}  // namespace

void counter(const Settings& settings) {
  const Index n = (settings.quick ? 20000 : 200000) / static_cast<Index>(settings.workers);
  const long all = n * static_cast<Index>(settings.workers);
  Contest contest(settings, "counter", static_cast<double>(all));
  contest.add_inside("families", [&] {
    const ExclusivePlace exclusive;
    long count = 0;
    by_all(settings, n, [&] {
      auto add = create(exclusive, [&] { ++count; });
      add.sync();
    });
    expect(count == all, "counter");
  });
  contest.add_inside("std::mutex", [&] {
    std::mutex mutex;
    long count = 0;
    by_all(settings, n, [&] {
      const std::lock_guard lock(mutex);
      ++count;
    });
    expect(count == all, "counter");
  });
  contest.measure();
}

}  // namespace tombolo::svp::bench
