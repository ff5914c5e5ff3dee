// SPDX-License-Identifier: Apache-2.0
// Purpose: the decomposed multiplication as a program of the distributed run-time: the function
// of a remote multiplication, that of a worker-master, and a master's part.
// Thread safety: as Cpu.
#pragma once

#include <memory>
#include <vector>

#include "experiments/svp/matrix_kernel.h"

namespace tombolo::experiments {

// Where multiplications are created, in turn, and as which function.
struct MatrixPlaces {
  std::vector<simulator::CoreId> places = {};
  std::uint64_t function = 0;
};

// A multiplication that is decomposed so many times. All its families are created before the
// first is synced; then the additions follow, from the smallest on.
class Decomposition {
 public:
  Decomposition(Node& node, const MatrixPlaces& places) : node_(node), places_(places) {}

  // `c` is allocated when its parts are there, unless it has rows.
  Status multiply(const Matrix& a, const Matrix& b, int steps, Matrix* c);

  std::uint64_t most_bytes_used() const { return most_bytes_used_; }
  // When the last family had been created.
  simulator::Time all_created() const { return all_created_; }

 private:
  struct Product {
    Matrix a, b, c;
    bool own = false;  // c is to be freed
    Family family;
    std::vector<std::unique_ptr<Product>> parts;
  };

  Status create(Product& product, int steps);
  Status create_parts(Product& product, int steps);
  Status sync(Product& product);
  Status add_all(Product& product);
  Status add_parts(Product& product);
  void free_parts(const Product& product);
  void note_use();

  Node& node_;
  const MatrixPlaces& places_;
  std::size_t created_ = 0;
  std::uint64_t most_bytes_used_ = 0;
  simulator::Time all_created_;
};

// Function 0: a multiplication of the rows of a and b. Function 1: the same, decomposed once more,
// over the places of that core's.
std::vector<Function> matrix_functions(std::vector<MatrixPlaces> of_worker_masters);

}  // namespace tombolo::experiments
