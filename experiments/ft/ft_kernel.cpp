// SPDX-License-Identifier: Apache-2.0
#include "experiments/ft/ft_kernel.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace tombolo::experiments {
namespace {

// x(k+1) = 5^13 x(k) mod 2^46, numbers x / 2^46.
constexpr std::uint64_t multiplier = 1220703125;
constexpr std::uint64_t seed = 314159265;

std::uint64_t step(std::uint64_t a, std::uint64_t x) {
  return a * x & ((std::uint64_t{1} << 46) - 1);
}

std::uint64_t jump(std::uint64_t x, std::uint64_t steps) {
  for (std::uint64_t a = multiplier; steps > 0; steps >>= 1) {
    if ((steps & 1) != 0) x = step(a, x);
    a = step(a, a);
  }
  return x;
}

double square_of_frequency(std::size_t index, std::size_t n) {
  const std::size_t half = n / 2;
  const double k = static_cast<double>((index + half) % n) - static_cast<double>(half);
  return k * k;
}

// One process's whole grid, x the fastest dimension.
class Serial {
 public:
  explicit Serial(const FtClass& problem)
      : p_(problem), transform_(std::max({problem.nx, problem.ny, problem.nz})) {}

  std::vector<Complex> checksums(int iterations) {
    std::vector<Complex> u(p_.points());
    ft_initial(0, u.size(), u.data());
    transform(u, false);
    std::vector<Complex> sums;
    for (int i = 0; i < iterations; ++i) {
      damp(u);
      std::vector<Complex> space = u;
      transform(space, true);
      sums.push_back(checksum(space));
    }
    return sums;
  }

 private:
  void transform(std::vector<Complex>& u, bool inverse) {
    along(u, p_.nx, 1, inverse);
    along(u, p_.ny, p_.nx, inverse);
    along(u, p_.nz, p_.nx * p_.ny, inverse);
  }

  void along(std::vector<Complex>& u, std::size_t n, std::size_t stride, bool inverse) {
    std::vector<Complex> row(n);
    for (std::size_t start = 0; start < u.size(); ++start) {
      if (start / stride % n != 0) continue;
      for (std::size_t i = 0; i < n; ++i) row[i] = u[start + i * stride];
      transform_.run(row.data(), n, inverse);
      for (std::size_t i = 0; i < n; ++i) u[start + i * stride] = row[i];
    }
  }

  void damp(std::vector<Complex>& u) const {
    Complex* at = u.data();
    for (std::size_t z = 0; z < p_.nz; ++z)
      for (std::size_t y = 0; y < p_.ny; ++y)
        for (std::size_t x = 0; x < p_.nx; ++x, ++at) {
          const double factor = ft_damping(p_, x, y, z);
          *at = {at->re * factor, at->im * factor};
        }
  }

  Complex checksum(const std::vector<Complex>& u) const {
    Complex sum;
    for (std::size_t j = 1; j <= ft_checksum_elements; ++j) {
      const FtElement e = ft_checksum_element(p_, j);
      const Complex& c = u[(e.z * p_.ny + e.y) * p_.nx + e.x];
      sum = {sum.re + c.re, sum.im + c.im};
    }
    const auto points = static_cast<double>(p_.points());
    return {sum.re / points, sum.im / points};
  }

  const FtClass& p_;
  FtTransform transform_;
};

}  // namespace

const FtClass& ft_class(char name) {
  static const FtClass classes[] = {
      {"S",
       64,
       64,
       64,
       6,
       {{5.546087004964e+02, 4.845363331978e+02},
        {5.546385409189e+02, 4.865304269511e+02},
        {5.546148406171e+02, 4.883910722336e+02},
        {5.545423607415e+02, 4.901273169046e+02},
        {5.544255039624e+02, 4.917475857993e+02},
        {5.542683411902e+02, 4.932597244941e+02}}},
      {"W",
       128,
       128,
       32,
       6,
       {{5.673612178944e+02, 5.293246849175e+02},
        {5.631436885271e+02, 5.282149986629e+02},
        {5.594024089970e+02, 5.270996558037e+02},
        {5.560698047020e+02, 5.260027904925e+02},
        {5.530898991250e+02, 5.249400845633e+02},
        {5.504159734538e+02, 5.239212247086e+02}}},
      {"A",
       256,
       256,
       128,
       6,
       {{5.046735008193e+02, 5.114047905510e+02},
        {5.059412319734e+02, 5.098809666433e+02},
        {5.069376896287e+02, 5.098144042213e+02},
        {5.077892868474e+02, 5.101336130759e+02},
        {5.085233095391e+02, 5.104914655194e+02},
        {5.091487099959e+02, 5.107917842803e+02}}},
      {"B",
       512,
       256,
       256,
       20,
       {{5.177643571579e+02, 5.077803458597e+02}, {5.154521291263e+02, 5.088249431599e+02},
        {5.146409228649e+02, 5.096208912659e+02}, {5.142378756213e+02, 5.101023387619e+02},
        {5.139626667737e+02, 5.103976610617e+02}, {5.137423460082e+02, 5.105948019802e+02},
        {5.135547056878e+02, 5.107404165783e+02}, {5.133910925466e+02, 5.108576573661e+02},
        {5.132470705390e+02, 5.109577278523e+02}, {5.131197729984e+02, 5.110460304483e+02},
        {5.130070319283e+02, 5.111252433800e+02}, {5.129070537032e+02, 5.111968077718e+02},
        {5.128182883502e+02, 5.112616233064e+02}, {5.127393733383e+02, 5.113203605551e+02},
        {5.126691062020e+02, 5.113735928093e+02}, {5.126064276004e+02, 5.114218460548e+02},
        {5.125504076570e+02, 5.114656139760e+02}, {5.125002331720e+02, 5.115053595966e+02},
        {5.124551951846e+02, 5.115415130407e+02}, {5.124146770029e+02, 5.115744692211e+02}}}};
  for (const FtClass& problem : classes)
    if (problem.name[0] == name) return problem;
  TOMBOLO_CHECK(false, "ft: there is no class {}", name);
}

double ft_operations(const FtClass& problem, int iterations) {
  const auto n = static_cast<double>(problem.points());
  return n * (14.8157 + 7.19641 * std::log(n) + (5.23518 + 7.21113 * std::log(n)) * iterations);
}

bool ft_equal(const std::vector<Complex>& found, const std::vector<Complex>& expected) {
  const auto near = [](double a, double b) { return std::abs((a - b) / b) <= 1e-12; };
  if (found.size() > expected.size()) return false;
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!near(found[i].re, expected[i].re) || !near(found[i].im, expected[i].im)) return false;
  return true;
}

std::vector<Complex> ft_serial(const FtClass& problem, int iterations) {
  return Serial(problem).checksums(iterations);
}

void ft_initial(std::uint64_t first, std::size_t count, Complex* to) {
  std::uint64_t x = jump(seed, 2 * first);
  const auto next = [&x] {
    x = step(multiplier, x);
    return std::ldexp(static_cast<double>(x), -46);
  };
  for (std::size_t i = 0; i < count; ++i) {
    to[i].re = next();
    to[i].im = next();
  }
}

double ft_damping(const FtClass& problem, std::size_t x, std::size_t y, std::size_t z) {
  constexpr double pi_value = std::numbers::pi;
  return std::exp(-4e-6 * pi_value * pi_value *
                  (square_of_frequency(x, problem.nx) + square_of_frequency(y, problem.ny) +
                   square_of_frequency(z, problem.nz)));
}

FtElement ft_checksum_element(const FtClass& problem, std::size_t j) {
  return {j % problem.nx, 3 * j % problem.ny, 5 * j % problem.nz};
}

FtTransform::FtTransform(std::size_t longest) : roots_(longest), scratch_(longest) {
  for (std::size_t k = 0; k < longest; ++k) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(longest);
    roots_[k] = {std::cos(angle), -std::sin(angle)};
  }
}

// Stockham's algorithm, which needs no bit reversal.
void FtTransform::run(Complex* row, std::size_t n, bool inverse) {
  Complex* from = row;
  Complex* to = scratch_.data();
  for (std::size_t length = n, stride = 1; length > 1; length /= 2, stride *= 2) {
    for (std::size_t p = 0; p < length / 2; ++p) {
      Complex w = roots_[p * (roots_.size() / length)];
      if (inverse) w.im = -w.im;
      const Complex* a = from + stride * p;
      const Complex* b = a + stride * (length / 2);
      Complex* sum = to + stride * 2 * p;
      Complex* difference = sum + stride;
      for (std::size_t q = 0; q < stride; ++q) {
        const double re = a[q].re - b[q].re;
        const double im = a[q].im - b[q].im;
        sum[q] = {a[q].re + b[q].re, a[q].im + b[q].im};
        difference[q] = {re * w.re - im * w.im, re * w.im + im * w.re};
      }
    }
    std::swap(from, to);
  }
  if (from != row) std::copy(from, from + n, row);
}

}  // namespace tombolo::experiments
