// SPDX-License-Identifier: Apache-2.0
// Purpose: MPI's communication calls on a window of ours: arguments checked, datatypes taken apart,
// pieces handed to the engine. Each returns an MPI error code, after the window's error handler
// ran. Thread safety: that of the window's engine.
#pragma once

#include "mpi/datatypes/type_info.h"
#include "mpi/windows/generalized_request.h"
#include "mpi/windows/mpi_window.h"

namespace tombolo::mpi {

// One side of a communication call.
struct Buffer {
  const void* address;
  MPI_Count count;
  MPI_Datatype type;
};
// The other side; the displacement is in units of the target.
struct Remote {
  int rank;
  MPI_Aint displacement;
  MPI_Count count;
  MPI_Datatype type;
};

// Of any datatypes, with all errors. The calls behind the next heading end here where they are not
// as most programs make them.
int put_any(MpiWindow& window, const Buffer& origin, const Remote& target, const char* call);
int get_any(MpiWindow& window, const Buffer& origin, const Remote& target, const char* call);
int accumulate_any(MpiWindow& window, const Buffer& origin, const Remote& target, MPI_Op op,
                   const char* call);
int get_accumulate(MpiWindow& window, const Buffer& origin, const Buffer& result,
                   const Remote& target, MPI_Op op, const char* call);
int fetch_and_op_any(MpiWindow& window, const void* origin, void* result, MPI_Datatype type,
                     int rank, MPI_Aint displacement, MPI_Op op);
int compare_and_swap_any(MpiWindow& window, const void* origin, const void* compare, void* result,
                         MPI_Datatype type, int rank, MPI_Aint displacement);

// The calls of any datatypes get copies of the arguments: whose address is taken stays in memory,
// also on the way that does not need it.

// --- In line ------------------------------------------------------------------------------------

// The byte range of `count` times `size` bytes at a peer; false unless all of it is in the peer's
// memory. A range that wraps around is not.
[[gnu::always_inline]] inline bool is_inside(const Extent& peer, MPI_Aint displacement,
                                             std::uint64_t count, std::uint64_t size,
                                             std::uint64_t& first, std::uint64_t& bytes) {
  // A negative displacement is a number above all sizes.
  return !__builtin_mul_overflow(static_cast<std::uint64_t>(displacement),
                                 static_cast<std::uint64_t>(peer.disp_unit), &first) &&
         !__builtin_mul_overflow(count, size, &bytes) && first <= peer.bytes &&
         bytes <= peer.bytes - first;
}

// The target side of a call as most programs make it: a predefined type without gaps, all of it
// inside the window.
struct PlainTarget {
  const TypeInfo* type = nullptr;
  machine::Home rank = 0;
  machine::Offset at = 0;
  std::uint64_t bytes = 0;

  [[gnu::always_inline]] bool open(const MpiWindow& window, const Remote& remote) {
    type = known_type_info(remote.type);
    rank = static_cast<machine::Home>(remote.rank);
    return type != nullptr && type->contiguous && remote.rank >= 0 && remote.rank < window.size &&
           !window.dynamic() &&
           is_inside(window.extents[rank], remote.displacement,
                     static_cast<std::uint64_t>(remote.count), type->size, at, bytes);
  }
  // The same with an origin that has as many of the same type.
  [[gnu::always_inline]] bool open(const MpiWindow& window, const Remote& remote,
                                   const Buffer& origin) {
    return origin.type == remote.type && origin.count == remote.count && open(window, remote);
  }
  // Arithmetic on elements of that type.
  [[gnu::always_inline]] bool allows(windows::Op op) const {
    return type->one_element && windows::valid(op, *type->element);
  }
};

[[gnu::always_inline]] inline int put(MpiWindow& window, const Buffer& origin, const Remote& remote,
                                      const char* call) {
  PlainTarget target;
  if (target.open(window, remote, origin)) [[likely]]
    return conclude(
        window, window.engine().put(target.rank, target.at, origin.address, target.bytes), call);
  return put_any(window, Buffer(origin), Remote(remote), call);
}

[[gnu::always_inline]] inline int get(MpiWindow& window, const Buffer& origin, const Remote& remote,
                                      const char* call) {
  PlainTarget target;
  if (target.open(window, remote, origin)) [[likely]]
    return conclude(window,
                    window.engine().get(target.rank, target.at, const_cast<void*>(origin.address),
                                        target.bytes),
                    call);
  return get_any(window, Buffer(origin), Remote(remote), call);
}

// The operation of counters and of nearly all other sums; the look-up of the rest takes longer.
[[gnu::always_inline]] inline int accumulate(MpiWindow& window, const Buffer& origin,
                                             const Remote& remote, MPI_Op op, const char* call) {
  PlainTarget target;
  if (op == MPI_SUM && target.open(window, remote, origin) && target.bytes != 0 &&
      target.allows(windows::Op::sum)) [[likely]]
    return conclude(
        window,
        window.engine().accumulate(target.rank, target.at, windows::Op::sum, *target.type->element,
                                   origin.address, static_cast<std::size_t>(remote.count)),
        call);
  return accumulate_any(window, Buffer(origin), Remote(remote), op, call);
}

[[gnu::always_inline]] inline int fetch_and_op(MpiWindow& window, const void* origin, void* result,
                                               MPI_Datatype type, int rank, MPI_Aint displacement,
                                               MPI_Op op) {
  PlainTarget target;
  if (op == MPI_SUM && target.open(window, {rank, displacement, 1, type}) &&
      target.allows(windows::Op::sum)) [[likely]]
    return conclude(window,
                    window.engine().get_accumulate(target.rank, target.at, windows::Op::sum,
                                                   *target.type->element, origin, result, 1),
                    "MPI_Fetch_and_op");
  return fetch_and_op_any(window, origin, result, type, rank, displacement, op);
}

[[gnu::always_inline]] inline int compare_and_swap(MpiWindow& window, const void* origin,
                                                   const void* compare, void* result,
                                                   MPI_Datatype type, int rank,
                                                   MPI_Aint displacement) {
  PlainTarget target;
  if (target.open(window, {rank, displacement, 1, type}) && target.type->swappable) [[likely]]
    return conclude(window,
                    window.engine().compare_and_swap(target.rank, target.at, *target.type->element,
                                                     compare, origin, result),
                    "MPI_Compare_and_swap");
  return compare_and_swap_any(window, origin, compare, result, type, rank, displacement);
}

// ------------------------------------------------------------------------------------------------

// The window ranks of a group's members; null with an MPI error class in `error` if one is not in
// the window. Valid until the next call for this window.
const std::vector<machine::Home>* window_ranks(MpiWindow& window, MPI_Group group, int& error);

// To be called when a group is freed: its handle may come to mean another one.
void forget_groups();

}  // namespace tombolo::mpi
