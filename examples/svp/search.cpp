// SPDX-License-Identifier: Apache-2.0
// The first number found whose Collatz sequence has at least LENGTH steps: a family without a
// limit, in which each thread tries one number, and the one that succeeds breaks the family.
//
//   search [LENGTH]
//
// Checked: the number has so many steps.
#include <cstdio>
#include <cstdlib>

#include <tombolo/svp.hpp>

namespace svp = tombolo::svp;

namespace {

long steps_of(long number) {
  long steps = 0;
  for (; number > 1; ++steps) number = number % 2 == 0 ? number / 2 : 3 * number + 1;
  return steps;
}

}  // namespace

int main(int argc, char** argv) {
  const long length = argc > 1 ? std::atol(argv[1]) : 300;
  if (length < 0 || length > 500) {
    std::fprintf(stderr, "search: LENGTH is from 0 to 500\n");
    return 2;
  }
  auto family = svp::create({.start = 1, .limit = svp::unbounded}, [&](svp::Index number) {
    if (steps_of(number) >= length) svp::break_family(number);
  });
  const svp::Exit exit = family.sync();
  std::printf("%lld has %ld steps\n", static_cast<long long>(exit.value), steps_of(exit.value));
  return exit.reason == svp::ExitReason::broken && steps_of(exit.value) >= length ? 0 : 1;
}
