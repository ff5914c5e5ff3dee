// SPDX-License-Identifier: Apache-2.0
// Purpose: the meaning of an MPI datatype: which bytes at which offsets, of which basic type.
//
//   int error;
//   const TypeInfo* info = type_info(datatype, &error);
//   if (info == nullptr) return error;
//   for_each_block(*info, count, [&](std::ptrdiff_t offset, std::size_t bytes) { ... });
//
// Invariants: TF1 blocks are in type-map order, never empty, and neighbours that touch are merged.
//             TF2 the sum of the blocks' bytes is `size`.
//             TF3 `element` is set only if every basic component is that one type; every block is
//                 then a whole number of elements (pair types: see runs()).
// Thread safety: all functions may be called from any thread that may call MPI. A TypeInfo is
// immutable. It lives as long as its datatype; keep shared_from_this() to outlive an MPI_Type_free.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "host/mpi/mpi_header.h"
#include "mpi/datatypes/handle_hash.h"
#include "windows/elements/elements.h"

namespace tombolo::mpi {

// `bytes` contiguous bytes at `offset` from the buffer's address.
struct Block {
  std::ptrdiff_t offset;
  std::size_t bytes;
  bool operator==(const Block&) const = default;
};

class TypeInfo : public std::enable_shared_from_this<TypeInfo> {
 public:
  // Bytes of data in one datatype (MPI_Type_size).
  std::size_t size = 0;
  // Lower bound and extent in bytes, as MPI_Type_get_extent gives them.
  std::ptrdiff_t lb = 0;
  std::ptrdiff_t extent = 0;
  // Lowest offset of a data byte, and the distance from there to behind the highest; 0, 0 if no
  // data.
  std::ptrdiff_t true_lb = 0;
  std::ptrdiff_t true_extent = 0;
  // One block at offset 0 and size == extent: `count` of them are count * size bytes from the
  // address.
  bool contiguous = false;
  // Of short blocks, all of whole numbers of 4 or of 8 bytes, within 4 GiB: the bytes of a number,
  // and where each begins, from true_lb on, also where it touches its neighbour. To copy them all
  // alike takes less time than to look how long each block is. Else 0, and none.
  std::size_t number_bytes = 0;
  std::vector<std::uint32_t> numbers;
  // A named predefined type, and then its handle.
  bool predefined = false;
  MPI_Datatype handle{};
  // A predefined type that is one element without padding: element-wise operations take an array of
  // it as it is; and then, whether compare-and-swap may have it.
  bool one_element = false;
  bool swappable = false;
  // The basic type that all components have, if they have one in common.
  std::optional<windows::Element> element;
  // Data of one datatype.
  std::vector<Block> blocks;
  // Only for pair types whose memory layout has padding: see runs().
  std::vector<Block> pair_runs;

  // The data of one datatype as runs of whole elements in memory, for element-wise operations: each
  // Block is bytes / windows::bytes(*element) consecutive elements. Equal to blocks, except that
  // pair types include their padding. Meaningful only if `element` is set.
  const std::vector<Block>& runs() const { return pair_runs.empty() ? blocks : pair_runs; }

  // Sets `predefined` and the flags that depend on it; everything else is known.
  void become_predefined();

  // The bytes of each block, if all are single numbers; else 0.
  std::size_t even_bytes() const { return numbers.size() == blocks.size() ? number_bytes : 0; }

  // Number of basic elements in one datatype; 0 unless `element` is set.
  std::size_t elements() const;

  // Bytes that `count` of this type take when packed as an array of elements (padding included).
  std::size_t element_bytes(std::size_t count) const {
    return element ? elements() * count * windows::bytes(*element) : 0;
  }
};

// The description of `datatype`, or null with the MPI error code in `*error` (unless error is
// null): MPI_ERR_TYPE for a null, freed or uncommitted type, MPI_ERR_NO_MEM if its list of blocks
// does not fit in memory. A derived type is taken apart at first use.
inline const TypeInfo* type_info(MPI_Datatype datatype, int* error = nullptr);

// The basic type behind a predefined MPI datatype; nullopt for derived types.
std::optional<windows::Element> element_of(MPI_Datatype datatype);

// The operation behind a predefined MPI_Op; nullopt for user-defined operations and MPI_OP_NULL.
std::optional<windows::Op> op_of(MPI_Op op);

// Forgets the state of one initialization of MPI (the attribute key). Call before PMPI_Finalize.
void release_type_info();

// Copies the data of `count` datatypes at `base` to `out`, size * count bytes, in type-map order.
void pack(const TypeInfo& info, const void* base, std::size_t count, std::byte* out);

// The reverse of pack.
void unpack(const TypeInfo& info, const std::byte* in, void* base, std::size_t count);

// Like pack and unpack, as an array of *info.element: info.element_bytes(count) bytes. The padding
// of pairs is carried along. `info.element` must be set.
void pack_elements(const TypeInfo& info, const void* base, std::size_t count, std::byte* out);
void unpack_elements(const TypeInfo& info, const std::byte* in, void* base, std::size_t count);

namespace detail {

// Predefined types by hash of their handles, each known once it was asked for: their meaning never
// changes, so no reader needs a lock. Types whose hashes are equal take turns.
inline constexpr unsigned known_type_bits = 8;
inline constinit std::atomic<const TypeInfo*> known_types[std::size_t{1} << known_type_bits]{};
inline std::atomic<const TypeInfo*>& known_type(MPI_Datatype datatype) {
  return known_types[place_of_key<known_type_bits>(handle_key(datatype))];
}
const TypeInfo* find_type_info(MPI_Datatype datatype, int* error);

template <typename F>
void visit(const std::vector<Block>& blocks, std::ptrdiff_t extent, std::size_t count, F&& f) {
  if (blocks.empty() || count == 0) return;
  Block pending{0, 0};
  std::ptrdiff_t base = 0;
  for (std::size_t i = 0; i < count; ++i, base += extent) {
    for (const Block& block : blocks) {
      const std::ptrdiff_t at = base + block.offset;
      if (at == pending.offset + static_cast<std::ptrdiff_t>(pending.bytes)) {
        pending.bytes += block.bytes;
        continue;
      }
      if (pending.bytes != 0) f(pending.offset, pending.bytes);
      pending = {at, block.bytes};
    }
  }
  f(pending.offset, pending.bytes);
}

// The numbers of info.number_bytes == bytes, and where they are in an array of them: f is compiled
// for that size. The bounds of the list, and f, are copies: for all that the compiler knows f may
// store to both.
template <std::size_t bytes, typename F>
[[gnu::always_inline]] inline void visit_numbers(const TypeInfo& info, F f) {
  const std::uint32_t* const starts = info.numbers.data();
  const auto count = static_cast<std::ptrdiff_t>(info.numbers.size());
  const std::ptrdiff_t low = info.true_lb;
#pragma GCC unroll 4
  for (std::ptrdiff_t i = 0; i < count; ++i)
    f(low + static_cast<std::ptrdiff_t>(starts[i]), i * static_cast<std::ptrdiff_t>(bytes), bytes);
}

// The numbers of two such datatypes in step, until one of them ends. Returns how many.
template <std::size_t bytes, typename F>
[[gnu::always_inline]] inline std::size_t visit_both(const TypeInfo& a, const TypeInfo& b, F f) {
  const std::uint32_t* const of_a = a.numbers.data();
  const std::uint32_t* const of_b = b.numbers.data();
  const std::ptrdiff_t low_a = a.true_lb, low_b = b.true_lb;
  const std::size_t count = std::min(a.numbers.size(), b.numbers.size());
#pragma GCC unroll 4
  for (std::size_t i = 0; i < count; ++i)
    f(low_a + static_cast<std::ptrdiff_t>(of_a[i]), low_b + static_cast<std::ptrdiff_t>(of_b[i]),
      bytes);
  return count;
}

// `list`: the blocks or the runs of `info`. Those of one datatype do not touch (TF1).
template <typename F>
void visit_list(const TypeInfo& info, const std::vector<Block>& list, std::size_t count, F&& f) {
  if (list.size() == 1 && static_cast<std::ptrdiff_t>(list[0].bytes) == info.extent) {
    if (count != 0) f(list[0].offset, list[0].bytes * count);
    return;
  }
  const auto one = [&f](std::ptrdiff_t offset, std::ptrdiff_t, std::size_t bytes) {
    f(offset, bytes);
  };
  const std::size_t even = count == 1 && &list == &info.blocks ? info.even_bytes() : 0;
  if (even == 8) return visit_numbers<8>(info, one);
  if (even == 4) return visit_numbers<4>(info, one);
  visit(list, info.extent, count, f);
}

}  // namespace detail

// The description of a predefined type that was asked for before; null if it is not at hand.
inline const TypeInfo* known_type_info(MPI_Datatype datatype) {
  const TypeInfo* const known = detail::known_type(datatype).load(std::memory_order_acquire);
  return known != nullptr && known->handle == datatype ? known : nullptr;
}

inline const TypeInfo* type_info(MPI_Datatype datatype, int* error) {
  if (const TypeInfo* const known = known_type_info(datatype)) [[likely]]
    return known;
  return detail::find_type_info(datatype, error);
}

// Calls f(offset, bytes) for each contiguous piece of `count` datatypes, in type-map order; offsets
// are from the buffer's address. Pieces that touch are merged, also across datatypes.
template <typename F>
void for_each_block(const TypeInfo& info, std::size_t count, F&& f) {
  detail::visit_list(info, info.blocks, count, f);
}

// Calls f(offset, elements) for each run of consecutive elements of `count` datatypes, in type-map
// order. `info.element` must be set.
template <typename F>
void for_each_run(const TypeInfo& info, std::size_t count, F&& f) {
  const std::size_t unit = windows::bytes(*info.element);
  detail::visit_list(info, info.runs(), count,
                     [&](std::ptrdiff_t offset, std::size_t n) { f(offset, n / unit); });
}

// A place in the pieces of `count` datatypes, for walking two layouts in step.
class BlockCursor {
 public:
  // Walks blocks (elements == false) or runs() of `info`, which must outlive the cursor.
  BlockCursor(const TypeInfo& info, std::size_t count, bool elements = false)
      : list_(elements ? &info.runs() : &info.blocks), extent_(info.extent), left_(count) {
    if (list_->empty()) left_ = 0;
    if (left_ > 1 && list_->size() == 1 &&
        static_cast<std::ptrdiff_t>(list_->front().bytes) == extent_) {
      whole_ = list_->front().bytes * left_;
      left_ = 1;
    }
  }
  // Behind the first `blocks` of the only datatype.
  BlockCursor without(std::size_t blocks) const {
    BlockCursor rest = *this;
    rest.index_ += blocks;
    if (rest.left_ == 1 && blocks > 0 && rest.index_ == list_->size()) rest.left_ = 0;
    return rest;
  }
  bool done() const { return left_ == 0; }
  // The rest of the current piece. Only if !done().
  Block current() const {
    const Block& block = (*list_)[index_];
    const std::size_t bytes = whole_ != 0 ? whole_ : block.bytes;
    return {base_ + block.offset + static_cast<std::ptrdiff_t>(used_), bytes - used_};
  }
  // Moves on by `bytes`, at most current().bytes.
  void advance(std::size_t bytes) {
    used_ += bytes;
    if (used_ < (whole_ != 0 ? whole_ : (*list_)[index_].bytes)) return;
    used_ = 0;
    if (++index_ < list_->size()) return;
    index_ = 0;
    base_ += extent_;
    --left_;
  }

 private:
  const std::vector<Block>* list_;
  std::ptrdiff_t extent_;
  std::size_t left_;
  std::size_t index_ = 0;
  std::size_t used_ = 0;
  std::size_t whole_ = 0;
  std::ptrdiff_t base_ = 0;
};

// Calls f(offset_a, offset_b, bytes) for the pieces that two layouts have in step, until one of
// them ends: a put or get without a staging buffer.
template <typename F>
void for_each_pair(BlockCursor a, BlockCursor b, F&& f) {
  while (!a.done() && !b.done()) {
    const Block from = a.current();
    const Block to = b.current();
    const std::size_t bytes = from.bytes < to.bytes ? from.bytes : to.bytes;
    f(from.offset, to.offset, bytes);
    a.advance(bytes);
    b.advance(bytes);
  }
}

// The same for `na` of one datatype and `nb` of another. The layouts that programs use most, one of
// them an array or both of the same blocks, take a loop of a few instructions for each piece.
template <typename F>
void for_each_piece_in_step(const TypeInfo& a, std::size_t na, const TypeInfo& b, std::size_t nb,
                            F&& f) {
  if (b.contiguous && b.size * nb >= a.size * na) {
    if (na == 1 && a.even_bytes() == 8) return detail::visit_numbers<8>(a, f);
    std::ptrdiff_t at = 0;
    for_each_block(a, na, [&](std::ptrdiff_t offset, std::size_t bytes) {
      f(offset, at, bytes);
      at += static_cast<std::ptrdiff_t>(bytes);
    });
    return;
  }
  if (a.contiguous && a.size * na >= b.size * nb) {
    std::ptrdiff_t at = 0;
    for_each_block(b, nb, [&](std::ptrdiff_t offset, std::size_t bytes) {
      f(at, offset, bytes);
      at += static_cast<std::ptrdiff_t>(bytes);
    });
    return;
  }
  std::size_t alike = 0;
  if (na == 1 && nb == 1) {
    const std::size_t both = std::min(a.blocks.size(), b.blocks.size());
    if (a.even_bytes() == 8 && b.even_bytes() == 8) alike = detail::visit_both<8>(a, b, f);
    while (alike < both && a.blocks[alike].bytes == b.blocks[alike].bytes) {
      f(a.blocks[alike].offset, b.blocks[alike].offset, a.blocks[alike].bytes);
      ++alike;
    }
  }
  for_each_pair(BlockCursor(a, na).without(alike), BlockCursor(b, nb).without(alike),
                std::forward<F>(f));
}

namespace detail {

template <std::size_t bytes, typename F>
[[gnu::always_inline]] inline bool for_each_number_of(const TypeInfo& a, std::size_t na,
                                                      const TypeInfo& b, std::size_t nb, F f) {
  const bool in_a = na == 1 && a.number_bytes == bytes;
  const bool in_b = nb == 1 && b.number_bytes == bytes;
  if (in_a && b.contiguous && b.size * nb >= a.size) {
    visit_numbers<bytes>(a, f);
  } else if (in_b && a.contiguous && a.size * na >= b.size) {
    visit_numbers<bytes>(
        b, [f](std::ptrdiff_t of_b, std::ptrdiff_t of_a, std::size_t) { f(of_a, of_b, bytes); });
  } else if (in_a && in_b && a.size == b.size) {
    visit_both<bytes>(a, b, f);
  } else {
    return false;
  }
  return true;
}

}  // namespace detail

// Calls f(offset_a, offset_b, bytes) for each number of two such layouts, whether or not it touches
// the next: for copies. False, and nothing is done, if the layouts are no lists of numbers of one
// size, or not as long.
template <typename F>
bool for_each_number_in_step(const TypeInfo& a, std::size_t na, const TypeInfo& b, std::size_t nb,
                             F&& f) {
  return detail::for_each_number_of<8>(a, na, b, nb, f) ||
         detail::for_each_number_of<4>(a, na, b, nb, f);
}

}  // namespace tombolo::mpi
