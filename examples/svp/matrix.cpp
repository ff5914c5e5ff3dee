// SPDX-License-Identifier: Apache-2.0
// A product of matrices: each process computes some rows, in a family with a thread for each row.
// Alone, or in several processes: tombolo svp run -n 4 ./matrix
#include <cstdio>
#include <memory>
#include <span>
#include <vector>

#include "examples/svp/kernels.h"
#include "svp/svp.h"

namespace svp = tombolo::svp;

namespace {

constexpr std::uint64_t n = 192;

// As one thread would.
bool is_product(std::span<const double> a, std::span<const double> b, std::span<const double> c) {
  for (std::size_t row = 0; row < n; ++row)
    for (std::size_t column = 0; column < n; ++column) {
      double sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
      if (c[row * n + column] != sum) return false;
    }
  return true;
}

int multiply(svp::Job& job) {
  svp::SharedArray<double> a(n * n);
  svp::SharedArray<double> b(n * n);
  svp::SharedArray<double> c(n * n);
  for (std::size_t i = 0; i < n * n; ++i) {
    a[i] = static_cast<double>(i % 17);
    b[i] = static_cast<double>(i % 23) - 11;
  }
  const std::span<const double> all_of_b(b.data(), b.size());
  const auto rows_of = [&](unsigned process) { return n * process / job.processes(); };
  const auto create = [&](unsigned process) {
    const std::size_t first = rows_of(process) * n;
    const std::size_t size = (rows_of(process + 1) - rows_of(process)) * n;
    return svp::create(job.place(process), {.limit = static_cast<svp::Index>(size / n)},
                       svp::remote<&kernels::multiply_row>,
                       std::span<const double>(a.data() + first, size), all_of_b,
                       std::span<double>(c.data() + first, size), n);
  };
  using Family = decltype(create(0));
  std::vector<std::unique_ptr<Family>> families;
  for (unsigned process = 0; process < job.processes(); ++process)
    families.emplace_back(new Family(create(process)));
  for (auto& family : families) family->sync().rethrow();
  const bool right = is_product({a.data(), n * n}, all_of_b, {c.data(), n * n});
  std::printf("%u processes, c[n-1][n-1] = %.0f: %s\n", job.processes(), c[n * n - 1],
              right ? "right" : "wrong");
  return right ? 0 : 1;
}

}  // namespace

int main() { return svp::run(multiply); }
