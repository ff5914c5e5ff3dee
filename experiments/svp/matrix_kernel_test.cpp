// SPDX-License-Identifier: Apache-2.0
// Matrices by rows: parts are the rows' halves, and product and sum are those of the host.
#include "experiments/svp/matrix_kernel.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "experiments/common/measure.h"
#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

using simulator::CoreId;
using Values = std::vector<std::vector<double>>;

constexpr std::uint64_t size = 16;

class MatrixKernel : public ::testing::Test {
 protected:
  template <class Program>
  void alone(Program&& program) {
    const Context context = test_context();
    scc::Chip chip(context.chip, options_of(context));
    Distribution svp(chip, {.scheme = Scheme::direct, .cores = {CoreId(0), CoreId(2)}}, {});
    const Status status = svp.run([&](Node& node) {
      program(node);
      return Status();
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
  Matrix matrix(Node& node, const Values& values) {
    Matrix made;
    EXPECT_TRUE(Matrix::allocate(node, values.size(), &made).ok());
    for (std::uint64_t i = 0; i < values.size(); ++i) made.write_row(node, i, values[i]);
    return made;
  }
  Values random() {
    Values values(size, std::vector<double>(size));
    for (auto& row : values)
      for (double& value : row) value = static_cast<double>(random_.below(8));
    return values;
  }
  static Values read(Node& node, const Matrix& matrix) {
    Values values;
    for (std::uint64_t i = 0; i < matrix.size; ++i) values.push_back(matrix.read_row(node, i));
    return values;
  }

 private:
  Random random_{7};
};

TEST_F(MatrixKernel, RowsComeBackAsTheyWereWritten) {
  alone([&](Node& node) {
    const Values values = random();
    EXPECT_EQ(read(node, matrix(node, values)), values);
  });
}

TEST_F(MatrixKernel, PartsAreTheFourQuarters) {
  alone([&](Node& node) {
    const Values values = random();
    const Matrix whole = matrix(node, values);
    for (const std::uint64_t row : {0u, 1u})
      for (const std::uint64_t column : {0u, 1u}) {
        const Values part = read(node, whole.part(row, column));
        ASSERT_EQ(part.size(), size / 2);
        for (std::uint64_t i = 0; i < size / 2; ++i)
          for (std::uint64_t j = 0; j < size / 2; ++j)
            EXPECT_EQ(part[i][j], values[row * size / 2 + i][column * size / 2 + j])
                << row << column << i << j;
      }
  });
}

TEST_F(MatrixKernel, TheProductIsTheHosts) {
  alone([&](Node& node) {
    const Values a = random();
    const Values b = random();
    const Matrix c = matrix(node, random());
    multiply(node, matrix(node, a), matrix(node, b), c);
    Values expected(size, std::vector<double>(size));
    for (std::uint64_t i = 0; i < size; ++i)
      for (std::uint64_t j = 0; j < size; ++j)
        for (std::uint64_t k = 0; k < size; ++k) expected[i][j] += a[i][k] * b[k][j];
    EXPECT_EQ(read(node, c), expected);
  });
}

TEST_F(MatrixKernel, TheSumIsTheHosts) {
  alone([&](Node& node) {
    const Values a = random();
    const Values b = random();
    const Matrix c = matrix(node, random());
    add(node, matrix(node, a), matrix(node, b), c);
    Values expected = a;
    for (std::uint64_t i = 0; i < size; ++i)
      for (std::uint64_t j = 0; j < size; ++j) expected[i][j] += b[i][j];
    EXPECT_EQ(read(node, c), expected);
  });
}

// A product of twice the size has eight times the operations.
TEST_F(MatrixKernel, AProductTakesTheCubeOfItsSize) {
  alone([&](Node& node) {
    const auto time_for = [&](std::uint64_t n) {
      Matrix a;
      Matrix b;
      Matrix c;
      for (Matrix* m : {&a, &b, &c}) {
        EXPECT_TRUE(Matrix::allocate(node, n, m).ok());
        for (std::uint64_t i = 0; i < n; ++i) m->write_row(node, i, std::vector<double>(n, 1));
      }
      const simulator::Time begin = node.system().now();
      multiply(node, a, b, c);
      return (node.system().now() - begin).in_nanoseconds();
    };
    const double small = time_for(16);
    const double large = time_for(32);
    EXPECT_GT(large, 6 * small);
    EXPECT_LT(large, 10 * small);
  });
}

TEST_F(MatrixKernel, MemoryIsGivenBackWhole) {
  alone([&](Node& node) {
    const std::uint64_t before = node.bytes_used();
    Matrix made;
    ASSERT_TRUE(Matrix::allocate(node, 32, &made).ok());
    EXPECT_GE(node.bytes_used(), before + 32 * 32 * sizeof(double));
    made.free(node);
    EXPECT_EQ(node.bytes_used(), before);
  });
}

}  // namespace
}  // namespace tombolo::experiments
