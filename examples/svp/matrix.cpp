// SPDX-License-Identifier: Apache-2.0
// A product of matrices: each process computes some rows, in a family with a thread for each row.
// Alone, or in several processes: tombolo svp run -n 4 ./matrix [ROWS]
#include <cstdio>
#include <cstdlib>
#include <span>

#include <tombolo/svp.hpp>
#include "examples/svp/at_processes.h"
#include "examples/svp/kernels.h"

namespace svp = tombolo::svp;

namespace {

// As one thread would.
bool is_product(std::uint64_t n, std::span<const double> a, std::span<const double> b,
                std::span<const double> c) {
  for (std::size_t row = 0; row < n; ++row)
    for (std::size_t column = 0; column < n; ++column) {
      double sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
      if (c[row * n + column] != sum) return false;
    }
  return true;
}

int multiply(svp::Job& job, std::uint64_t n) {
  svp::SharedArray<double> a(n * n);
  svp::SharedArray<double> b(n * n);
  svp::SharedArray<double> c(n * n);
  for (std::size_t i = 0; i < n * n; ++i) {
    a[i] = kernels::left_element(i);
    b[i] = kernels::right_element(i);
  }
  const std::span<const double> all_of_a(a.data(), a.size());
  const std::span<const double> all_of_b(b.data(), b.size());
  const std::span<double> all_of_c(c.data(), c.size());
  kernels::AtProcesses creator{job};
  kernels::multiply(creator, job.processes(), n, all_of_a, all_of_b, all_of_c);
  const bool right = is_product(n, all_of_a, all_of_b, all_of_c);
  std::printf("%u processes, c[n-1][n-1] = %.0f, digest %016llx: %s\n", job.processes(),
              c[n * n - 1], static_cast<unsigned long long>(kernels::digest_of(all_of_c)),
              right ? "right" : "wrong");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 192;
  if (n == 0 || n > 4096) {
    std::fprintf(stderr, "matrix: from 1 to 4096 rows\n");
    return 2;
  }
  return svp::run([n](svp::Job& job) { return multiply(job, n); });
}
