// SPDX-License-Identifier: Apache-2.0
// Purpose: reads a datatype's envelope and contents from the host.
// Invariants: TC1 in contents.h.
// Thread safety: see contents.h.
#include "mpi/datatypes/contents.h"

#include "host/mpi/host.h"

namespace tombolo::mpi {

bool is_predefined(int combiner) {
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  if (combiner == MPI_COMBINER_VALUE_INDEX) return true;
#endif
  return combiner == MPI_COMBINER_NAMED || is_f90(combiner);
}

bool is_f90(int combiner) {
  return combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

namespace {

// The combiner of a type of either form; an MPI error code.
int combiner_of(MPI_Datatype type, int* combiner) {
#if TOMBOLO_HAVE_LARGE_COUNT
  if (host().Type_get_envelope_c != nullptr) {
    MPI_Count ints, addresses, counts, types;
    return host().Type_get_envelope_c(type, &ints, &addresses, &counts, &types, combiner);
  }
#endif
  int ints, addresses, types;
  return TOMBOLO_HOST(Type_get_envelope)(type, &ints, &addresses, &types, combiner);
}

}  // namespace

Contents::~Contents() {
  for (MPI_Datatype& type : types_) {
    int combiner = MPI_COMBINER_NAMED;
    const bool known = combiner_of(type, &combiner) == MPI_SUCCESS;
    if (known && !is_predefined(combiner)) TOMBOLO_HOST(Type_free)(&type);
  }
}

int Contents::read(MPI_Datatype datatype) {
#if TOMBOLO_HAVE_LARGE_COUNT
  if (host().Type_get_envelope_c != nullptr && host().Type_get_contents_c != nullptr)
    return read_large(datatype);
#endif
  return read_small(datatype);
}

int Contents::read_small(MPI_Datatype datatype) {
  int ints = 0, addresses = 0, types = 0;
  int error = TOMBOLO_HOST(Type_get_envelope)(datatype, &ints, &addresses, &types, &combiner_);
  if (error != MPI_SUCCESS || combiner_ == MPI_COMBINER_NAMED) return error;
  ints_.resize(static_cast<std::size_t>(ints));
  addresses_.resize(static_cast<std::size_t>(addresses));
  std::vector<MPI_Datatype> handles(static_cast<std::size_t>(types));
  error = TOMBOLO_HOST(Type_get_contents)(datatype, ints, addresses, types, ints_.data(),
                                          addresses_.data(), handles.data());
  if (error == MPI_SUCCESS) types_ = std::move(handles);
  return error;
}

int Contents::read_large(MPI_Datatype datatype) {
#if TOMBOLO_HAVE_LARGE_COUNT
  MPI_Count ints = 0, addresses = 0, counts = 0, types = 0;
  int error =
      TOMBOLO_HOST(Type_get_envelope_c)(datatype, &ints, &addresses, &counts, &types, &combiner_);
  if (error != MPI_SUCCESS || combiner_ == MPI_COMBINER_NAMED) return error;
  ints_.resize(static_cast<std::size_t>(ints));
  addresses_.resize(static_cast<std::size_t>(addresses));
  counts_.resize(static_cast<std::size_t>(counts));
  std::vector<MPI_Datatype> handles(static_cast<std::size_t>(types));
  error = TOMBOLO_HOST(Type_get_contents_c)(datatype, ints, addresses, counts, types, ints_.data(),
                                            addresses_.data(), counts_.data(), handles.data());
  if (error == MPI_SUCCESS) types_ = std::move(handles);
  return error;
#else
  return read_small(datatype);
#endif
}

}  // namespace tombolo::mpi
