// SPDX-License-Identifier: Apache-2.0
// The numbers of NAS FT against definitions of their own: random numbers step by step, transforms
// by the sum, frequencies, checksums' elements, and the formula of the rate.
#include "experiments/ft/ft_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <set>

#include "base/random.h"

namespace tombolo::experiments {
namespace {

using Values = std::vector<std::complex<double>>;

Values as_values(const std::vector<Complex>& row) {
  Values values;
  for (const Complex& c : row) values.emplace_back(c.re, c.im);
  return values;
}

std::vector<Complex> random_row(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<Complex> row(n);
  const auto number = [&] { return static_cast<double>(random.below(2001)) / 1000 - 1; };
  for (Complex& c : row) c = {number(), number()};
  return row;
}

// The sum of the definition; `sign` of the exponent.
Values by_definition(const Values& row, double sign) {
  Values sums(row.size());
  const auto n = static_cast<double>(row.size());
  for (std::size_t k = 0; k < row.size(); ++k)
    for (std::size_t j = 0; j < row.size(); ++j)
      sums[k] +=
          row[j] * std::polar(1.0, sign * 2 * std::numbers::pi * double(j * k % row.size()) / n);
  return sums;
}

double largest_difference(const Values& a, const Values& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// ---- Transforms ---------------------------------------------------------------------------------

class Transform : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Transform, IsTheSumOfTheDefinition) {
  const std::size_t n = GetParam();
  FtTransform transform(n);
  for (const bool inverse : {false, true}) {
    std::vector<Complex> row = random_row(n, n);
    const Values expected = by_definition(as_values(row), inverse ? 1 : -1);
    transform.run(row.data(), n, inverse);
    EXPECT_LT(largest_difference(as_values(row), expected), 1e-11 * double(n)) << inverse;
  }
}

TEST_P(Transform, IsTurnedBackByItsInverse) {
  const std::size_t n = GetParam();
  FtTransform transform(n);
  const std::vector<Complex> before = random_row(n, 3);
  std::vector<Complex> row = before;
  transform.run(row.data(), n, false);
  transform.run(row.data(), n, true);
  for (Complex& c : row) c = {c.re / double(n), c.im / double(n)};
  EXPECT_LT(largest_difference(as_values(row), as_values(before)), 1e-13 * double(n));
}

INSTANTIATE_TEST_SUITE_P(Lengths, Transform, ::testing::Values(1, 2, 4, 8, 64, 128));

// The roots are those of the longest length.
TEST(FtTransform, DoesShorterRowsAsWell) {
  FtTransform transform(128);
  for (const std::size_t n : {2u, 16u, 64u}) {
    std::vector<Complex> row = random_row(n, 5);
    const Values expected = by_definition(as_values(row), -1);
    transform.run(row.data(), n, false);
    EXPECT_LT(largest_difference(as_values(row), expected), 1e-11 * double(n)) << n;
  }
}

// ---- The benchmark's numbers --------------------------------------------------------------------

// x(k+1) = 5^13 x(k) mod 2^46 from 314159265 on, with numbers of arbitrary size.
TEST(FtKernel, TheInitialStateIsTheGenerators) {
  constexpr std::uint64_t count = 500;
  std::vector<Complex> all(count);
  ft_initial(0, count, all.data());
  unsigned __int128 x = 314159265;
  const unsigned __int128 modulus = std::uint64_t{1} << 46;
  const auto next = [&] {
    x = x * 1220703125 % modulus;
    return static_cast<double>(static_cast<std::uint64_t>(x)) / static_cast<double>(1ull << 46);
  };
  for (const Complex& c : all) {
    EXPECT_EQ(c.re, next());
    EXPECT_EQ(c.im, next());
  }
}

TEST(FtKernel, APartOfTheInitialStateIsThatOfTheWhole) {
  std::vector<Complex> all(300);
  ft_initial(0, all.size(), all.data());
  for (const std::uint64_t first : {1u, 2u, 17u, 255u, 256u}) {
    std::vector<Complex> part(40);
    ft_initial(first, part.size(), part.data());
    for (std::size_t i = 0; i < part.size(); ++i) {
      EXPECT_EQ(part[i].re, all[first + i].re) << first;
      EXPECT_EQ(part[i].im, all[first + i].im) << first;
    }
  }
}

// By exp(-4 alpha pi^2 (kx^2 + ky^2 + kz^2)), where indices from the half on are negative.
TEST(FtKernel, HighFrequenciesAreDampedMost) {
  const FtClass problem{"small", 8, 16, 32, 1, {}};
  const auto expected = [](double kx, double ky, double kz) {
    return std::exp(-4e-6 * std::numbers::pi * std::numbers::pi * (kx * kx + ky * ky + kz * kz));
  };
  EXPECT_EQ(ft_damping(problem, 0, 0, 0), 1);
  EXPECT_DOUBLE_EQ(ft_damping(problem, 3, 7, 15), expected(3, 7, 15));
  EXPECT_DOUBLE_EQ(ft_damping(problem, 4, 8, 16), expected(-4, -8, -16));
  EXPECT_DOUBLE_EQ(ft_damping(problem, 7, 15, 31), expected(-1, -1, -1));
  EXPECT_DOUBLE_EQ(ft_damping(problem, 5, 0, 0), expected(-3, 0, 0));
  EXPECT_DOUBLE_EQ(ft_damping(problem, 0, 9, 0), expected(0, -7, 0));
  EXPECT_DOUBLE_EQ(ft_damping(problem, 0, 0, 17), expected(0, 0, -15));
}

TEST(FtKernel, TheChecksumTakesElementsOfAllDimensions) {
  const FtClass& problem = ft_class('W');
  for (const std::size_t j : {1u, 100u, 1024u}) {
    const FtElement e = ft_checksum_element(problem, j);
    EXPECT_EQ(e.x, j % 128);
    EXPECT_EQ(e.y, 3 * j % 128);
    EXPECT_EQ(e.z, 5 * j % 32);
  }
}

TEST(FtKernel, ClassesAreThoseOfTheSuite) {
  struct Expected {
    char name;
    std::size_t nx, ny, nz;
    int iterations;
  };
  for (const Expected& e : {Expected{'S', 64, 64, 64, 6},
                            {'W', 128, 128, 32, 6},
                            {'A', 256, 256, 128, 6},
                            {'B', 512, 256, 256, 20}}) {
    const FtClass& problem = ft_class(e.name);
    EXPECT_EQ(problem.name, std::string(1, e.name));
    EXPECT_EQ(problem.nx, e.nx) << e.name;
    EXPECT_EQ(problem.ny, e.ny) << e.name;
    EXPECT_EQ(problem.nz, e.nz) << e.name;
    EXPECT_EQ(problem.iterations, e.iterations) << e.name;
    ASSERT_EQ(problem.checksums.size(), std::size_t(e.iterations)) << e.name;
    // They move towards the mean, and none was copied twice.
    std::set<double> different;
    for (const Complex& c : problem.checksums) {
      EXPECT_GT(c.re, 450);
      EXPECT_LT(c.re, 600);
      EXPECT_GT(c.im, 450);
      EXPECT_LT(c.im, 600);
      different.insert(c.re);
    }
    EXPECT_EQ(different.size(), problem.checksums.size()) << e.name;
  }
}

// From iteration to iteration the published sums of class B change less and less, and in one
// direction: a digit that was copied wrong would stand out.
TEST(FtKernel, TheChecksumsOfClassBGoSmoothly) {
  const std::vector<Complex>& sums = ft_class('B').checksums;
  for (std::size_t i = 2; i < sums.size(); ++i) {
    const double before = sums[i - 2].re - sums[i - 1].re;
    const double now = sums[i - 1].re - sums[i].re;
    EXPECT_GT(now, 0) << i;
    EXPECT_LT(now, before) << i;
    EXPECT_GT(sums[i].im, sums[i - 1].im) << i;
    if (i > 3) {
      EXPECT_LT(sums[i].im - sums[i - 1].im, sums[i - 1].im - sums[i - 2].im) << i;
    }
  }
}

TEST(FtKernelDeathTest, ThereIsNoOtherClass) { EXPECT_DEATH(ft_class('C'), "no class C"); }

// The paper's rate over shared memory and NAS's formula give a plausible time: 6 iterations of
// class S at 618 MFLOPS take 0.3 s.
TEST(FtKernel, OperationsFollowTheFormula) {
  const FtClass& s = ft_class('S');
  const double n = 64 * 64 * 64;
  const double log = std::log(n);
  EXPECT_DOUBLE_EQ(ft_operations(s, 0), n * (14.8157 + 7.19641 * log));
  EXPECT_NEAR(ft_operations(s, 6) - ft_operations(s, 5), n * (5.23518 + 7.21113 * log), 1e-3);
  EXPECT_NEAR(ft_operations(s, 6) / 618e6, 0.287, 0.01);
}

TEST(FtKernel, SumsOfMoreIterationsThanArePublishedAreNotEqual) {
  const FtClass& s = ft_class('S');
  std::vector<Complex> more = s.checksums;
  EXPECT_TRUE(ft_equal({more.begin(), more.begin() + 2}, s.checksums));
  more.push_back(more.back());
  EXPECT_FALSE(ft_equal(more, s.checksums));
  std::vector<Complex> swapped = s.checksums;
  std::swap(swapped[0], swapped[1]);
  EXPECT_FALSE(ft_equal(swapped, s.checksums));
}

}  // namespace
}  // namespace tombolo::experiments
