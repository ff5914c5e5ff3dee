// SPDX-License-Identifier: Apache-2.0
// Purpose: the numbers of the NAS parallel benchmark FT: its classes with the published checksums,
// its random numbers, one-dimensional transforms, damping and checksums. No time, no memory of a
// chip: the distribution over processes is in ft_solver.h.
// Thread safety: values and pure functions; an FtTransform belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tombolo::experiments {

struct Complex {
  double re = 0;
  double im = 0;
};

struct FtClass {
  std::string name;
  std::size_t nx = 0, ny = 0, nz = 0;  // powers of two
  int iterations = 0;
  std::vector<Complex> checksums;  // as published; empty: none are

  std::size_t points() const { return nx * ny * nz; }
};

// S, W, A or B.
const FtClass& ft_class(char name);

// Floating-point operations by the formula of the benchmark.
double ft_operations(const FtClass& problem, int iterations);

// Whether each is the expected one, to a relative error of 1e-12.
bool ft_equal(const std::vector<Complex>& found, const std::vector<Complex>& expected);

// The checksums of as many iterations by one process on the host.
std::vector<Complex> ft_serial(const FtClass& problem, int iterations);

// The initial state from element `first` on, x the fastest dimension, then y, then z.
void ft_initial(std::uint64_t first, std::size_t count, Complex* to);

// The factor that damps a frequency in one iteration.
double ft_damping(const FtClass& problem, std::size_t x, std::size_t y, std::size_t z);

// The j-th element of the checksum, j from 1 to ft_checksum_elements.
inline constexpr std::size_t ft_checksum_elements = 1024;
struct FtElement {
  std::size_t x, y, z;
};
FtElement ft_checksum_element(const FtClass& problem, std::size_t j);

// Unscaled transforms of rows whose length is a power of two up to `longest`.
class FtTransform {
 public:
  explicit FtTransform(std::size_t longest);
  void run(Complex* row, std::size_t n, bool inverse);

 private:
  std::vector<Complex> roots_;
  std::vector<Complex> scratch_;
};

}  // namespace tombolo::experiments
