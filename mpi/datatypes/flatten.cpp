// SPDX-License-Identifier: Apache-2.0
// Purpose: takes derived datatypes apart: one function per family of constructors, each following
// the type map that the MPI standard defines for it.
// Invariants: blocks are appended in type-map order; bounds come from the host, data from us.
// Thread safety: see flatten.h.
#include "mpi/datatypes/flatten.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <stdexcept>

#include "host/mpi/host.h"
#include "mpi/datatypes/contents.h"
#include "mpi/datatypes/predefined.h"

namespace tombolo::mpi {
namespace {

using windows::Element;
using Blocks = std::vector<Block>;

// A list of blocks longer than this (2 GiB) is taken as lack of memory.
constexpr std::size_t most_blocks = std::size_t{1} << 27;

void append(Blocks& list, std::ptrdiff_t at, std::size_t bytes) {
  if (!list.empty()) {
    Block& last = list.back();
    if (last.offset + static_cast<std::ptrdiff_t>(last.bytes) == at) {
      last.bytes += bytes;
      return;
    }
  }
  if (list.size() >= most_blocks) throw std::bad_alloc();
  list.push_back({at, bytes});
}

// Appends n copies of `part`, the first moved by `at`, each further one by `stride` more.
void append_copies(Blocks& list, const Blocks& part, std::ptrdiff_t at, std::size_t n,
                   std::ptrdiff_t stride) {
  if (part.size() == 1 && static_cast<std::ptrdiff_t>(part[0].bytes) == stride) {
    append(list, at + part[0].offset, part[0].bytes * n);
    return;
  }
  for (std::size_t i = 0; i < n; ++i, at += stride) {
    for (const Block& block : part) append(list, at + block.offset, block.bytes);
  }
}

// The type map under construction.
class Builder {
 public:
  // Adds n copies of `part`, the first at offset `at`, the others one extent after each other.
  void add(const TypeInfo& part, MPI_Count at, MPI_Count n) {
    if (n <= 0 || part.blocks.empty()) return;
    const auto copies = static_cast<std::size_t>(n);
    append_copies(blocks_, part.blocks, static_cast<std::ptrdiff_t>(at), copies, part.extent);
    append_copies(runs_, part.pair_runs, static_cast<std::ptrdiff_t>(at), copies, part.extent);
    if (empty_) element_ = part.element;
    if (element_ != part.element) element_.reset();
    empty_ = false;
  }

  std::shared_ptr<TypeInfo> finish(MPI_Datatype datatype, int* error) {
    MPI_Aint lb = 0;
    MPI_Aint extent = 0;
    *error = TOMBOLO_HOST(Type_get_extent)(datatype, &lb, &extent);
    if (*error != MPI_SUCCESS) return nullptr;
    auto info = std::make_shared<TypeInfo>();
    info->lb = lb;
    info->extent = extent;
    info->element = element_;
    if (element_) info->pair_runs = std::move(runs_);
    info->blocks = std::move(blocks_);
    info->blocks.shrink_to_fit();
    bound(*info);
    return info;
  }

 private:
  static void bound(TypeInfo& info) {
    std::ptrdiff_t low = std::numeric_limits<std::ptrdiff_t>::max();
    std::ptrdiff_t high = std::numeric_limits<std::ptrdiff_t>::min();
    for (const Block& block : info.blocks) {
      info.size += block.bytes;
      low = std::min(low, block.offset);
      high = std::max(high, block.offset + static_cast<std::ptrdiff_t>(block.bytes));
    }
    if (info.blocks.empty()) return;
    info.true_lb = low;
    info.true_extent = high - low;
    info.contiguous = info.blocks.size() == 1 && info.blocks[0].offset == 0 &&
                      static_cast<std::ptrdiff_t>(info.size) == info.extent;
    if (info.true_extent <= std::numeric_limits<std::uint32_t>::max() && !note_numbers(info, 8))
      note_numbers(info, 4);
  }
  // False unless all blocks are of such numbers, few on the average: many are quicker to copy at
  // once.
  static bool note_numbers(TypeInfo& info, std::size_t bytes) {
    constexpr std::size_t most_in_a_block = 4;
    const auto is_whole = [bytes](const Block& block) { return block.bytes % bytes == 0; };
    if (info.size > most_in_a_block * bytes * info.blocks.size() ||
        !std::all_of(info.blocks.begin(), info.blocks.end(), is_whole))
      return false;
    info.number_bytes = bytes;
    info.numbers.reserve(info.size / bytes);
    for (const Block& block : info.blocks)
      for (std::size_t at = 0; at < block.bytes; at += bytes)
        info.numbers.push_back(static_cast<std::uint32_t>(block.offset - info.true_lb) +
                               static_cast<std::uint32_t>(at));
    return true;
  }

  Blocks blocks_;
  Blocks runs_;
  std::optional<Element> element_;
  bool empty_ = true;
};

using Part = std::shared_ptr<const TypeInfo>;

void add_vector(Builder& builder, const Contents& c, const Part& part, bool stride_in_bytes) {
  const MPI_Count stride = stride_in_bytes ? c.address(0, 2) : c.count(2) * part->extent;
  if (c.count(1) > 0 && part->contiguous &&
      stride == c.count(1) * static_cast<MPI_Count>(part->size)) {
    builder.add(*part, 0, c.count(0) * c.count(1));
    return;
  }
  for (MPI_Count i = 0; i < c.count(0); ++i) builder.add(*part, i * stride, c.count(1));
}

// indexed and hindexed: a length and a displacement for each block.
void add_indexed(Builder& builder, const Contents& c, const Part& part, bool in_bytes) {
  const auto n = static_cast<std::size_t>(c.count(0));
  for (std::size_t i = 0; i < n; ++i) {
    const MPI_Count at = in_bytes ? c.address(i, n + 1) : c.count(n + 1 + i) * part->extent;
    builder.add(*part, at, c.count(1 + i));
  }
}

// indexed_block and hindexed_block: one length for all.
void add_indexed_block(Builder& builder, const Contents& c, const Part& part, bool in_bytes) {
  const auto n = static_cast<std::size_t>(c.count(0));
  for (std::size_t i = 0; i < n; ++i) {
    const MPI_Count at = in_bytes ? c.address(i, 2) : c.count(2 + i) * part->extent;
    builder.add(*part, at, c.count(1));
  }
}

void add_struct(Builder& builder, const Contents& c, const std::vector<Part>& parts) {
  const auto n = static_cast<std::size_t>(c.count(0));
  for (std::size_t i = 0; i < n; ++i)
    builder.add(*parts.at(i), c.address(i, n + 1), c.count(1 + i));
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
// A {value, index} type without a name; the index follows at its own alignment.
void add_value_index(Builder& builder, const std::vector<Part>& parts) {
  const auto step = static_cast<MPI_Count>(parts.at(1)->size);
  const auto value = static_cast<MPI_Count>(parts.at(0)->size);
  builder.add(*parts.at(0), 0, 1);
  builder.add(*parts.at(1), step == 0 ? value : (value + step - 1) / step * step, 1);
}
#endif

// The indices that one process has of one dimension of an array, as stretches in ascending order.
struct Dimension {
  struct Stretch {
    MPI_Count first;
    MPI_Count length;
  };
  MPI_Count size = 0;
  std::vector<Stretch> stretches;
};

// Adds the elements of a part of an array; the last of `dimensions` is contiguous in memory.
void add_grid(Builder& builder, const Part& part, const std::vector<Dimension>& dimensions,
              std::size_t dimension, MPI_Count index) {
  const Dimension& d = dimensions[dimension];
  for (const auto& stretch : d.stretches) {
    const MPI_Count first = index * d.size + stretch.first;
    if (dimension + 1 == dimensions.size()) {
      builder.add(*part, first * part->extent, stretch.length);
      continue;
    }
    for (MPI_Count i = 0; i < stretch.length; ++i)
      add_grid(builder, part, dimensions, dimension + 1, first + i);
  }
}

void add_array(Builder& builder, const Part& part, std::vector<Dimension> dimensions, int order) {
  if (dimensions.empty()) return;
  if (order == MPI_ORDER_FORTRAN) dimensions = {dimensions.rbegin(), dimensions.rend()};
  add_grid(builder, part, dimensions, 0, 0);
}

void add_subarray(Builder& builder, const Contents& c, const Part& part) {
  const auto n = static_cast<std::size_t>(c.integer(0));
  const std::size_t first = c.large() ? 0 : 1;
  std::vector<Dimension> dimensions(n);
  for (std::size_t i = 0; i < n; ++i) {
    dimensions[i].size = c.count(first + i);
    dimensions[i].stretches = {{c.count(first + 2 * n + i), c.count(first + n + i)}};
  }
  add_array(builder, part, std::move(dimensions), c.integer(c.large() ? 1 : 3 * n + 1));
}

Dimension distribute(MPI_Count size, int distribution, int argument, int processes, int place) {
  Dimension dimension;
  dimension.size = size;
  MPI_Count block = size;
  if (distribution == MPI_DISTRIBUTE_BLOCK) {
    block = argument == MPI_DISTRIBUTE_DFLT_DARG ? (size + processes - 1) / processes : argument;
  } else if (distribution == MPI_DISTRIBUTE_CYCLIC) {
    block = argument == MPI_DISTRIBUTE_DFLT_DARG ? 1 : argument;
  } else {
    processes = 1;
    place = 0;
  }
  if (block <= 0) return dimension;
  for (MPI_Count at = block * place; at < size; at += block * processes)
    dimension.stretches.push_back({at, std::min(block, size - at)});
  return dimension;
}

void add_darray(Builder& builder, const Contents& c, const Part& part) {
  int rank = c.integer(1);
  const auto n = static_cast<std::size_t>(c.integer(2));
  const std::size_t base = c.large() ? 3 : 3 + n;
  std::vector<int> place(n);
  for (std::size_t i = n; i-- > 0;) {
    const int processes = c.integer(base + 2 * n + i);
    place[i] = rank % processes;
    rank /= processes;
  }
  std::vector<Dimension> dimensions(n);
  for (std::size_t i = 0; i < n; ++i) {
    const MPI_Count size = c.large() ? c.count(i) : c.integer(3 + i);
    dimensions[i] = distribute(size, c.integer(base + i), c.integer(base + n + i),
                               c.integer(base + 2 * n + i), place[i]);
  }
  add_array(builder, part, std::move(dimensions), c.integer(base + 3 * n));
}

std::optional<Element> f90_element(const Contents& c, std::size_t size) {
  constexpr int long_double_digits = 18;
  if (c.combiner() == MPI_COMBINER_F90_INTEGER) return integer_element(size);
  const bool quad = c.integer(0) != MPI_UNDEFINED && c.integer(0) > long_double_digits;
  if (c.combiner() == MPI_COMBINER_F90_REAL) return real_element(size, quad);
  return complex_element(size, quad);
}

// Types without parts that are not in the table of predefined types.
std::shared_ptr<TypeInfo> flatten_leaf(MPI_Datatype datatype, const Contents& c, int* error) {
  int size = 0;
  *error = TOMBOLO_HOST(Type_size)(datatype, &size);
  if (*error != MPI_SUCCESS) return nullptr;
  const auto bytes = static_cast<std::size_t>(size);
  Builder builder;
  builder.add(*plain_info(bytes, is_f90(c.combiner()) ? f90_element(c, bytes) : std::nullopt), 0,
              1);
  auto info = builder.finish(datatype, error);
  if (info != nullptr) info->become_predefined();
  return info;
}

// Adds the type map of a constructor; false if we do not know it.
bool add_combined(Builder& builder, const Contents& c, const std::vector<Part>& parts) {
  switch (c.combiner()) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      builder.add(*parts.at(0), 0, 1);
      return true;
    case MPI_COMBINER_CONTIGUOUS:
      builder.add(*parts.at(0), 0, c.count(0));
      return true;
    case MPI_COMBINER_VECTOR:
      add_vector(builder, c, parts.at(0), false);
      return true;
    case MPI_COMBINER_HVECTOR:
      add_vector(builder, c, parts.at(0), true);
      return true;
    case MPI_COMBINER_INDEXED:
      add_indexed(builder, c, parts.at(0), false);
      return true;
    case MPI_COMBINER_HINDEXED:
      add_indexed(builder, c, parts.at(0), true);
      return true;
    case MPI_COMBINER_INDEXED_BLOCK:
      add_indexed_block(builder, c, parts.at(0), false);
      return true;
    case MPI_COMBINER_HINDEXED_BLOCK:
      add_indexed_block(builder, c, parts.at(0), true);
      return true;
    case MPI_COMBINER_STRUCT:
      add_struct(builder, c, parts);
      return true;
    case MPI_COMBINER_SUBARRAY:
      add_subarray(builder, c, parts.at(0));
      return true;
    case MPI_COMBINER_DARRAY:
      add_darray(builder, c, parts.at(0));
      return true;
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    case MPI_COMBINER_VALUE_INDEX:
      add_value_index(builder, parts);
      return true;
#endif
  }
  return false;
}

std::shared_ptr<TypeInfo> flatten_or_throw(MPI_Datatype datatype, int* error) {
  Contents c;
  *error = c.read(datatype);
  if (*error != MPI_SUCCESS) return nullptr;
  if (c.combiner() == MPI_COMBINER_NAMED || is_f90(c.combiner()))
    return flatten_leaf(datatype, c, error);
  std::vector<Part> parts;
  for (const MPI_Datatype type : c.types()) {
    const TypeInfo* known = predefined_info(type, error);
    parts.push_back(known != nullptr ? known->shared_from_this() : flatten_or_throw(type, error));
    if (parts.back() == nullptr) return nullptr;
  }
  Builder builder;
  if (!add_combined(builder, c, parts)) {
    *error = MPI_ERR_TYPE;
    return nullptr;
  }
  return builder.finish(datatype, error);
}

}  // namespace

std::shared_ptr<TypeInfo> flatten(MPI_Datatype datatype, int* error) {
  try {
    return flatten_or_throw(datatype, error);
  } catch (const std::bad_alloc&) {
    *error = MPI_ERR_NO_MEM;
  } catch (const std::length_error&) {
    *error = MPI_ERR_NO_MEM;
  } catch (const std::out_of_range&) {
    *error = MPI_ERR_TYPE;
  }
  return nullptr;
}

}  // namespace tombolo::mpi
