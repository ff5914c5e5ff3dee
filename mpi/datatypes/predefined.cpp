// SPDX-License-Identifier: Apache-2.0
// Purpose: the predefined datatypes and operations: their descriptions, found by handle.
// Invariants: the tables are built at first use and never change; a type's description is made when
// the type is first asked for, since a host may define handles of types that it does not offer.
// Thread safety: see type_info.h.
#include "mpi/datatypes/predefined.h"

#include <atomic>
#include <mutex>

#include "host/mpi/host.h"
#include "mpi/datatypes/handle_map.h"

namespace tombolo::mpi {
namespace {

using windows::Element;
using windows::Op;

enum class Kind : std::uint8_t {
  packed,
  character,
  wide_character,
  byte,
  integer,
  natural,
  real,
  long_real,
  complex,
  long_complex,
  logical,
  float_int,
  double_int,
  long_int,
  int_int,
  short_int,
  long_double_int,
  two_real,
  two_double_precision,
  two_integer,
};

std::optional<Element> natural_element(std::size_t size) {
  switch (size) {
    case 1:
      return Element::u8;
    case 2:
      return Element::u16;
    case 4:
      return Element::u32;
    case 8:
      return Element::u64;
  }
  return std::nullopt;
}

std::optional<Element> logical_element(std::size_t size) {
  switch (size) {
    case 1:
      return Element::boolean;
    case 2:
      return Element::logical2;
    case 4:
      return Element::logical;
    case 8:
      return Element::logical8;
    case 16:
      return Element::logical16;
  }
  return std::nullopt;
}

// Sizes in bytes of the parts of a pair, and where the second one begins.
struct PairLayout {
  Element element;
  std::size_t first;
  std::size_t second;
  std::size_t second_at;
};

std::optional<PairLayout> pair_layout(Kind kind) {
  switch (kind) {
    case Kind::float_int:
      return PairLayout{Element::float_int, 4, 4, 4};
    case Kind::double_int:
      return PairLayout{Element::double_int, 8, 4, 8};
    case Kind::long_int:
      return PairLayout{Element::long_int, sizeof(long), 4, sizeof(long)};
    case Kind::int_int:
      return PairLayout{Element::int_int, 4, 4, 4};
    case Kind::short_int:
      return PairLayout{Element::short_int, 2, 4, 4};
    case Kind::long_double_int:
      return PairLayout{Element::long_double_int, sizeof(long double), 4, sizeof(long double)};
    case Kind::two_real:
      return PairLayout{Element::two_real, 4, 4, 4};
    case Kind::two_double_precision:
      return PairLayout{Element::two_double_precision, 8, 8, 8};
    case Kind::two_integer:
      return PairLayout{Element::two_integer, 4, 4, 4};
    default:
      return std::nullopt;
  }
}

std::optional<Element> single_element(Kind kind, std::size_t size) {
  switch (kind) {
    case Kind::character:
      return Element::character;
    case Kind::wide_character:
      return Element::wide_character;
    case Kind::packed:
      return Element::packed;
    case Kind::byte:
      return Element::byte;
    case Kind::integer:
      return integer_element(size);
    case Kind::natural:
      return natural_element(size);
    case Kind::real:
      return real_element(size, true);
    case Kind::long_real:
      return Element::f80;
    case Kind::complex:
      return complex_element(size, true);
    case Kind::long_complex:
      return Element::c_long_double;
    case Kind::logical:
      return logical_element(size);
    default:
      return std::nullopt;
  }
}

struct Entry {
  MPI_Datatype handle{};
  Kind kind = Kind::packed;
  std::atomic<const TypeInfo*>* info = nullptr;
};

class Table {
 public:
  Table() {
#define TOMBOLO_PREDEFINED(handle, kind) add(handle, Kind::kind);
#include "mpi/datatypes/predefined.inc"
#undef TOMBOLO_PREDEFINED
  }
  const Entry* find(MPI_Datatype handle) const { return map_.find(handle); }

 private:
  void add(MPI_Datatype handle, Kind kind) {
    if (handle == MPI_Datatype{} || handle == MPI_DATATYPE_NULL) return;
    map_.insert(handle, {handle, kind, &infos_[used_++]});
  }

  HandleMap<MPI_Datatype, Entry, 8> map_;
  std::atomic<const TypeInfo*> infos_[128]{};
  std::size_t used_ = 0;
};

const Table& table() {
  static const Table& only = *new Table;
  return only;
}

void set_bounds(TypeInfo& info) {
  info.true_lb = info.blocks.empty() ? 0 : info.blocks.front().offset;
  for (const Block& block : info.blocks)
    info.true_extent = block.offset + static_cast<std::ptrdiff_t>(block.bytes) - info.true_lb;
}

std::shared_ptr<TypeInfo> pair_info(const PairLayout& pair, std::size_t size) {
  if (size != pair.first + pair.second) return plain_info(size, std::nullopt);
  auto info = std::make_shared<TypeInfo>();
  info->size = size;
  info->element = pair.element;
  if (pair.second_at == pair.first)
    info->blocks = {{0, size}};
  else
    info->blocks = {{0, pair.first}, {static_cast<std::ptrdiff_t>(pair.second_at), pair.second}};
  if (size != windows::bytes(pair.element)) info->pair_runs = {{0, windows::bytes(pair.element)}};
  return info;
}

const TypeInfo* describe(const Entry& entry, int* error) {
  static std::mutex mutex;
  int size = 0;
  MPI_Aint lb = 0;
  MPI_Aint extent = 0;
  *error = TOMBOLO_HOST(Type_size)(entry.handle, &size);
  if (*error == MPI_SUCCESS) *error = TOMBOLO_HOST(Type_get_extent)(entry.handle, &lb, &extent);
  if (*error != MPI_SUCCESS) return nullptr;
  const std::size_t bytes = static_cast<std::size_t>(size);
  const auto pair = pair_layout(entry.kind);
  auto info = pair ? pair_info(*pair, bytes) : plain_info(bytes, single_element(entry.kind, bytes));
  info->lb = lb;
  info->extent = extent;
  info->handle = entry.handle;
  set_bounds(*info);
  info->contiguous = info->blocks.size() == 1 && size == extent;
  if (info->element && extent != static_cast<std::ptrdiff_t>(windows::bytes(*info->element))) {
    info->element.reset();
    info->pair_runs.clear();
  }
  info->become_predefined();
  const std::lock_guard lock(mutex);
  if (const TypeInfo* known = entry.info->load(std::memory_order_acquire); known != nullptr)
    return known;
  const TypeInfo* made = (new std::shared_ptr<TypeInfo>(std::move(info)))->get();
  entry.info->store(made, std::memory_order_release);
  return made;
}

using OpTable = HandleMap<MPI_Op, Op, 6>;

OpTable make_op_table() {
  OpTable ops;
  ops.insert(MPI_SUM, Op::sum);
  ops.insert(MPI_PROD, Op::prod);
  ops.insert(MPI_MIN, Op::min);
  ops.insert(MPI_MAX, Op::max);
  ops.insert(MPI_LAND, Op::land);
  ops.insert(MPI_LOR, Op::lor);
  ops.insert(MPI_LXOR, Op::lxor);
  ops.insert(MPI_BAND, Op::band);
  ops.insert(MPI_BOR, Op::bor);
  ops.insert(MPI_BXOR, Op::bxor);
  ops.insert(MPI_MINLOC, Op::minloc);
  ops.insert(MPI_MAXLOC, Op::maxloc);
  ops.insert(MPI_REPLACE, Op::replace);
  ops.insert(MPI_NO_OP, Op::no_op);
  return ops;
}

}  // namespace

std::optional<Element> integer_element(std::size_t size) {
  switch (size) {
    case 1:
      return Element::i8;
    case 2:
      return Element::i16;
    case 4:
      return Element::i32;
    case 8:
      return Element::i64;
    case 16:
      return Element::i128;
  }
  return std::nullopt;
}

std::optional<Element> real_element(std::size_t size, bool quad) {
  switch (size) {
    case 2:
      return Element::f16;
    case 4:
      return Element::f32;
    case 8:
      return Element::f64;
    case 16:
      return quad ? Element::f128 : Element::f80;
  }
  return std::nullopt;
}

std::optional<Element> complex_element(std::size_t size, bool quad) {
  switch (size) {
    case 4:
      return Element::c16;
    case 8:
      return Element::c32;
    case 16:
      return Element::c64;
    case 32:
      return quad ? Element::c_f128 : Element::c_long_double;
  }
  return std::nullopt;
}

std::shared_ptr<TypeInfo> plain_info(std::size_t size, std::optional<Element> element) {
  auto info = std::make_shared<TypeInfo>();
  info->size = size;
  if (size != 0) info->blocks = {{0, size}};
  if (element && windows::bytes(*element) == size) info->element = element;
  return info;
}

const TypeInfo* predefined_info(MPI_Datatype datatype, int* error) {
  const Entry* entry = table().find(datatype);
  if (entry == nullptr) return nullptr;
  const TypeInfo* info = entry->info->load(std::memory_order_acquire);
  return info != nullptr ? info : describe(*entry, error);
}

std::optional<Element> element_of(MPI_Datatype datatype) {
  int error = MPI_SUCCESS;
  const TypeInfo* info = predefined_info(datatype, &error);
  return info != nullptr ? info->element : std::nullopt;
}

std::optional<Op> op_of(MPI_Op op) {
  static const OpTable ops = make_op_table();
  const Op* found = ops.find(op);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

}  // namespace tombolo::mpi
