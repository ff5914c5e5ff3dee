// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: the arguments with which a derived datatype was built, read
// alike whether the constructor took int or MPI_Count arguments.
// Invariants: TC1 owned component handles are freed with the object.
// Thread safety: an object is used by one thread.
#pragma once

#include <vector>

#include "host/mpi/mpi_header.h"

namespace tombolo::mpi {

class Contents {
 public:
  Contents() = default;
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  ~Contents();

  // Reads envelope and contents of `datatype`; an MPI error code.
  int read(MPI_Datatype datatype);

  int combiner() const { return combiner_; }
  const std::vector<MPI_Datatype>& types() const { return types_; }

  // True if the constructor took its counts as MPI_Count.
  bool large() const { return !counts_.empty(); }
  // The constructor's k-th count argument (an int or, in the large form, an MPI_Count).
  MPI_Count count(std::size_t k) const { return large() ? counts_.at(k) : ints_.at(k); }
  // The constructor's k-th argument in bytes, where `counts_before` count arguments come first.
  MPI_Count address(std::size_t k, std::size_t counts_before) const {
    return large() ? counts_.at(counts_before + k) : addresses_.at(k);
  }
  // The k-th argument that is an int in either form.
  int integer(std::size_t k) const { return ints_.at(k); }

 private:
  int read_small(MPI_Datatype datatype);
  int read_large(MPI_Datatype datatype);

  int combiner_ = 0;
  std::vector<int> ints_;
  std::vector<MPI_Aint> addresses_;
  std::vector<MPI_Count> counts_;
  std::vector<MPI_Datatype> types_;
};

// True for combiners of types that may not be freed: those with a name, and those that the host has
// without one (MPI_Type_create_f90_real, MPI_Type_get_value_index).
bool is_predefined(int combiner);
// Of the latter, those of MPI_Type_create_f90_*.
bool is_f90(int combiner);

}  // namespace tombolo::mpi
