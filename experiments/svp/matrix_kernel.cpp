// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/matrix_kernel.h"

#include <algorithm>

namespace tombolo::experiments {
namespace {

using scc::View;
using simulator::Duration;

constexpr std::uint64_t element = sizeof(double);
// Rows of the result that are simulated load by load: the first has the misses of the first use.
constexpr std::uint64_t simulated_rows = 2;
constexpr std::uint64_t columns_between_looks = 4;

// The loads of one row of the result. The row of `a` is at hand; each column of `b` is walked down.
class RowOfLoads {
 public:
  RowOfLoads(Node& node, const Matrix& b, std::vector<std::vector<double>>& values)
      : node_(node), b_(b), values_(values) {}

  Duration take() {
    Duration took;
    for (std::uint64_t j = 0; j < b_.size; j += columns_between_looks) {
      const simulator::Time begin = node_.system().now();
      for (std::uint64_t column = j; column < std::min(b_.size, j + columns_between_looks);
           ++column)
        walk(column);
      took += node_.system().now() - begin;
      node_.system().look_around();
    }
    return took;
  }

 private:
  void walk(std::uint64_t column) {
    scc::Cpu& cpu = node_.cpu();
    for (std::uint64_t k = 0; k < b_.size; ++k)
      cpu.read(b_.rows[k] + column * element, &values_[k][column], element);
    // A multiplication and an addition for each.
    cpu.compute(cpu.timing().flop * static_cast<std::int64_t>(2 * b_.size));
  }

  Node& node_;
  const Matrix& b_;
  std::vector<std::vector<double>>& values_;
};

std::vector<double> row_of_product(const std::vector<double>& row,
                                   const std::vector<std::vector<double>>& b) {
  std::vector<double> product(row.size(), 0.0);
  for (std::size_t k = 0; k < row.size(); ++k)
    for (std::size_t j = 0; j < row.size(); ++j) product[j] += row[k] * b[k][j];
  return product;
}

}  // namespace

Status Matrix::allocate(Node& node, std::uint64_t size, Matrix* matrix) {
  View at{simulator::Address()};
  TOMBOLO_TRY(node.allocate(size * size * element, &at));
  matrix->size = size;
  matrix->rows.clear();
  for (std::uint64_t i = 0; i < size; ++i) matrix->rows.push_back(at + i * size * element);
  return {};
}

Matrix Matrix::part(std::uint64_t row, std::uint64_t column) const {
  const std::uint64_t half = size / 2;
  Matrix part{.size = half};
  for (std::uint64_t i = 0; i < half; ++i)
    part.rows.push_back(rows[row * half + i] + column * half * element);
  return part;
}

std::vector<double> Matrix::read_row(Node& node, std::uint64_t row) const {
  std::vector<double> values(size);
  node.cpu().read(rows[row], values.data(), size * element);
  return values;
}

void Matrix::write_row(Node& node, std::uint64_t row, const std::vector<double>& values) const {
  node.cpu().write(rows[row], values.data(), size * element);
}

void multiply(Node& node, const Matrix& a, const Matrix& b, const Matrix& c) {
  std::vector<std::vector<double>> values(b.size, std::vector<double>(b.size));
  Duration row_time;
  for (std::uint64_t i = 0; i < a.size; ++i) {
    const std::vector<double> row = a.read_row(node, i);
    if (i < simulated_rows) {
      row_time = RowOfLoads(node, b, values).take();
    } else {
      node.system().compute(row_time);
    }
    c.write_row(node, i, row_of_product(row, values));
    node.system().look_around();
  }
}

void add(Node& node, const Matrix& a, const Matrix& b, const Matrix& c) {
  for (std::uint64_t i = 0; i < a.size; ++i) {
    std::vector<double> sum = a.read_row(node, i);
    const std::vector<double> other = b.read_row(node, i);
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += other[j];
    node.cpu().compute(node.cpu().timing().flop * static_cast<std::int64_t>(a.size));
    c.write_row(node, i, sum);
    node.system().look_around();
  }
}

}  // namespace tombolo::experiments
