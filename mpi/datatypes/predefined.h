// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: the predefined datatypes.
// Invariants: PT1 a description found once stays valid until the process ends.
// Thread safety: may be called from any thread that may call MPI.
#pragma once

#include <memory>

#include "mpi/datatypes/type_info.h"

namespace tombolo::mpi {

// The description of a predefined type in our table, or null if `datatype` is none of those. Null
// also, with the host's code in `*error`, if the host does not offer the type.
const TypeInfo* predefined_info(MPI_Datatype datatype, int* error);

// A description of one element of `size` data bytes without gaps, and of `element` if it fits.
std::shared_ptr<TypeInfo> plain_info(std::size_t size, std::optional<windows::Element> element);

// The basic type of a Fortran real, complex or integer of `size` bytes; `quad` tells REAL*16 from a
// long double in 16 bytes.
std::optional<windows::Element> integer_element(std::size_t size);
std::optional<windows::Element> real_element(std::size_t size, bool quad);
std::optional<windows::Element> complex_element(std::size_t size, bool quad);

}  // namespace tombolo::mpi
