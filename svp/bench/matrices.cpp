// SPDX-License-Identifier: Apache-2.0
// Purpose: matrix multiplication by blocks of 32 by 32: a task for each block of the result.
// Thread safety: -
#include <cmath>
#include <vector>

#include "svp/bench/contest.h"

#ifdef TOMBOLO_HAS_TBB
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#endif

namespace tombolo::svp::bench {
namespace {

constexpr std::size_t side = 32;

struct Product {
  explicit Product(std::size_t rows) : n(rows), a(n * n), b(n * n), c(n * n) {
    for (std::size_t i = 0; i < n * n; ++i) {
      a[i] = static_cast<double>(i % 7);
      b[i] = static_cast<double>(i % 5);
    }
  }

  std::size_t blocks() const { return (n / side) * (n / side); }
  void block(std::size_t number) {
    const std::size_t row = number / (n / side) * side;
    const std::size_t column = number % (n / side) * side;
    for (std::size_t i = row; i < row + side; ++i) {
      double sums[side] = {};
      for (std::size_t k = 0; k < n; ++k)
        for (std::size_t j = 0; j < side; ++j) sums[j] += a[i * n + k] * b[k * n + column + j];
      for (std::size_t j = 0; j < side; ++j) c[i * n + column + j] = sums[j];
    }
  }
  // Of the whole result; whole numbers, so exact.
  double sum() const {
    double all = 0;
    for (const double each : c) all += each;
    return all;
  }

  std::size_t n;
  std::vector<double> a, b, c;
};

}  // namespace

void matrices(const Settings& settings) {
  Product product(settings.quick ? 128 : 512);
  const auto blocks = static_cast<Index>(product.blocks());
  const auto one = [&](Index i) { product.block(static_cast<std::size_t>(i)); };
  for (Index i = 0; i < blocks; ++i) one(i);
  const double sum = product.sum();
  const auto checked = [&](const auto& multiply) {
    std::fill(product.c.begin(), product.c.end(), 0.0);
    multiply();
    expect(product.sum() == sum, "matrices");
  };
  Contest contest(settings, "matrices", static_cast<double>(blocks));
  contest.add_inside("families", [&] {
    checked([&] {
      in_families(settings, [&] {
        auto family = create({.limit = blocks}, one);
        family.sync();
      });
    });
  });
#ifdef TOMBOLO_HAS_TBB
  contest.add("oneTBB", [&] {
    checked([&] { in_tbb(settings, [&] { tbb::parallel_for(Index{0}, blocks, one); }); });
  });
#endif
#ifdef _OPENMP
  contest.add("OpenMP", [&] {
    checked([&] {
#pragma omp parallel for num_threads(settings.threads())
      for (Index i = 0; i < blocks; ++i) one(i);
    });
  });
#endif
  contest.measure();
}

}  // namespace tombolo::svp::bench
