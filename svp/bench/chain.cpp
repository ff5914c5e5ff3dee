// SPDX-License-Identifier: Apache-2.0
// Purpose: a chain of 10^6 threads through a shared channel. A task is a hop.
// Thread safety: -
#include "svp/bench/contest.h"

namespace tombolo::svp::bench {

void chain(const Settings& settings) {
  const Index n = settings.quick ? 100000 : 1000000;
  Contest contest(settings, "chain", static_cast<double>(n));
  contest.add_inside("families", [&] {
    in_families(settings, [&] {
      Shared<Index> sum(0);
      auto family = create(
          {.limit = n}, [](Index i, SharedEnd<Index>& end) { end.write(end.read() + i); }, sum);
      family.sync();
      expect(sum.read() == n * (n - 1) / 2, "chain");
    });
  });
  contest.measure();
}

}  // namespace tombolo::svp::bench
