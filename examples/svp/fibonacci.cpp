// SPDX-License-Identifier: Apache-2.0
// Fibonacci numbers twice: by a family a call, and by a chain of threads over two shared channels,
// as in listing 3.1 of the SVP paper (002).
//
//   fibonacci [N]
//
// Checked: both give the same number.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <tombolo/svp.hpp>

namespace svp = tombolo::svp;

namespace {

long by_calls(long n) {
  if (n < 2) return n;
  long one = 0;
  auto family = svp::create([&] { one = by_calls(n - 1); });
  const long two = by_calls(n - 2);
  family.sync().rethrow();
  return one + two;
}

std::vector<long> by_chain(long n) {
  std::vector<long> numbers(static_cast<std::size_t>(n) + 1);
  if (n > 0) numbers[1] = 1;
  svp::Shared<long> prev(1);
  svp::Shared<long> prev2(0);
  auto family = svp::create(
      {.start = 2, .limit = n + 1},
      [&](svp::Index i, svp::SharedEnd<long>& one, svp::SharedEnd<long>& two) {
        const long number = one.read() + two.read();
        numbers[static_cast<std::size_t>(i)] = number;
        two.write(one.read());
        one.write(number);
      },
      prev, prev2);
  family.sync().rethrow();
  return numbers;
}

}  // namespace

int main(int argc, char** argv) {
  const long n = argc > 1 ? std::atol(argv[1]) : 25;
  if (n < 0 || n > 90) {
    std::fprintf(stderr, "fibonacci: N is from 0 to 90\n");
    return 2;
  }
  const std::vector<long> numbers = by_chain(n);
  std::printf("fibonacci(%ld) = %ld\n", n, numbers.back());
  constexpr long most_by_calls = 35;
  if (n > most_by_calls) return 0;
  long number = 0;
  auto family = svp::create([&] { number = by_calls(n); });
  family.sync().rethrow();
  return number == numbers.back() ? 0 : 1;
}
