// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/communication.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/copy.h"
#include "host/mpi/host.h"
#include "mpi/datatypes/type_info.h"

namespace tombolo::mpi {
namespace {

// The target side of one call, checked.
class Target {
  // Wider than any sum or product of a call's arguments: one that wraps around must not end
  // inside the window.
  __extension__ using Wide = __int128;

 public:
  // MPI_SUCCESS, or the class of the error.
  [[gnu::always_inline]] int open(MpiWindow& window, const Remote& remote) {
    if (remote.rank < 0 || remote.rank >= window.size) [[unlikely]]
      return MPI_ERR_RANK;
    if (remote.count < 0) [[unlikely]]
      return MPI_ERR_COUNT;
    int error = MPI_SUCCESS;
    type = type_info(remote.type, &error);
    if (type == nullptr) [[unlikely]]
      return error;
    rank = static_cast<machine::Home>(remote.rank);
    count = static_cast<std::size_t>(remote.count);
    if (window.dynamic()) {
      start = remote.displacement;
      return empty() || is_attached(window) ? MPI_SUCCESS : MPI_ERR_RMA_RANGE;
    }
    const Extent& peer = window.extents[rank];
    if (type->contiguous) [[likely]] {
      std::uint64_t first = 0;
      std::uint64_t bytes = 0;
      if (is_inside(peer, remote.displacement, count, type->size, first, bytes)) [[likely]] {
        start = static_cast<std::ptrdiff_t>(first);
        return MPI_SUCCESS;
      }
    }
    return open_any(peer, remote);
  }
  machine::Offset at(std::ptrdiff_t offset) const {
    return static_cast<machine::Offset>(start + offset);
  }

  const TypeInfo* type = nullptr;
  machine::Home rank = 0;
  std::size_t count = 0;
  bool empty() const { return count == 0 || type->size == 0; }
  // Of the data, unless it is empty: the offset of the first byte, and the distance from there to
  // behind the last.
  std::ptrdiff_t lowest() const { return type->true_lb + std::min<std::ptrdiff_t>(0, last()); }
  std::size_t reach() const {
    return static_cast<std::size_t>(type->true_extent + std::abs(last()));
  }

  std::ptrdiff_t start = 0;  // byte displacement; an address for dynamic windows

 private:
  std::ptrdiff_t last() const { return static_cast<std::ptrdiff_t>(count - 1) * type->extent; }
  // Of any type, and with the error of an access out of range.
  [[gnu::noinline]] int open_any(const Extent& peer, const Remote& remote) {
    if (remote.displacement < 0) return MPI_ERR_DISP;
    const Wide first = Wide{remote.displacement} * peer.disp_unit;
    start = static_cast<std::ptrdiff_t>(first);
    if (count == 0 || type->size == 0) return MPI_SUCCESS;
    const Wide last = static_cast<Wide>(count - 1) * type->extent;
    const Wide low = first + type->true_lb + std::min<Wide>(0, last);
    const Wide high = first + type->true_lb + type->true_extent + std::max<Wide>(0, last);
    if (low < 0 || high > static_cast<Wide>(peer.bytes)) return MPI_ERR_RMA_RANGE;
    return MPI_SUCCESS;
  }
  // Memory attached since the view was last read is looked for once. That a view cannot be read is
  // for the access itself to find.
  [[gnu::noinline]] bool is_attached(MpiWindow& window) const {
    AttachedView& view = window.views[rank];
    std::unique_lock lock(window.views_mutex, std::defer_lock);
    if (job().threads()) lock.lock();
    if (is_in(view)) [[likely]]
      return true;
    const host::ProcessName& process = window.memory->members()[rank].process;
    return !view.read(process.pid, window.peers[rank].attached).ok() || is_in(view);
  }
  bool is_in(const AttachedView& view) const {
    const auto address = static_cast<Wide>(static_cast<std::uint64_t>(start));
    const auto covers = [&](Wide offset, Wide bytes) {
      const Wide low = address + offset;
      constexpr Wide end = Wide{1} << 64;
      return low >= 0 && low + bytes < end &&
             view.covers(
                 {static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(low + bytes)});
    };
    const Wide last = static_cast<Wide>(count - 1) * type->extent;
    const Wide low = type->true_lb + std::min<Wide>(0, last);
    const Wide high = type->true_lb + type->true_extent + std::max<Wide>(0, last);
    if (covers(low, high - low)) [[likely]]
      return true;
    if (type->contiguous) return false;
    // A type may well hold pieces of several attached ranges.
    bool all = true;
    for_each_block(*type, count, [&](std::ptrdiff_t offset, std::size_t bytes) {
      all = all && covers(offset, static_cast<Wide>(bytes));
    });
    return all;
  }
};

[[gnu::always_inline]] inline std::byte* address_of(const Buffer& buffer) {
  return static_cast<std::byte*>(const_cast<void*>(buffer.address));
}

[[gnu::always_inline]] inline int open_origin(const Buffer& buffer, const TypeInfo*& type) {
  if (buffer.count < 0) return MPI_ERR_COUNT;
  int error = MPI_SUCCESS;
  type = type_info(buffer.type, &error);
  return type == nullptr ? error : MPI_SUCCESS;
}

// Put or get, as calls of the engine for layouts that are not one piece.
struct Put {
  static constexpr auto in_place = &windows::Engine::put_in_place;
  static constexpr auto runs = &windows::Engine::put_runs;
  static void copy(std::byte* target, std::byte* origin, std::size_t bytes) {
    copy_bytes(target, origin, bytes);
  }
};
struct Get {
  static constexpr auto in_place = &windows::Engine::get_in_place;
  static constexpr auto runs = &windows::Engine::get_runs;
  static void copy(std::byte* target, std::byte* origin, std::size_t bytes) {
    copy_bytes(origin, target, bytes);
  }
};

// Both sides of a call whose layouts are not one piece.
struct Layouts {
  const Target& target;
  const TypeInfo& type;
  std::size_t count;
  std::byte* origin;

  template <class F>
  void for_each_piece(F&& f) const {
    for_each_piece_in_step(*target.type, target.count, type, count, std::forward<F>(f));
  }
  template <class F>
  bool for_each_number(F&& f) const {
    return for_each_number_in_step(*target.type, target.count, type, count, std::forward<F>(f));
  }
};

// Many runs at a time.
template <class Call>
Status transfer_runs(MpiWindow& window, const Layouts& layouts) {
  std::array<windows::ByteRun, 256> held;
  std::size_t used = 0;
  Status status;
  const auto pass_on = [&] {
    const std::span<const windows::ByteRun> runs(held.data(), std::exchange(used, 0));
    if (status.ok()) status = (window.engine().*Call::runs)(layouts.target.rank, runs);
  };
  layouts.for_each_piece([&](std::ptrdiff_t to, std::ptrdiff_t from, std::size_t bytes) {
    held[used++] = {layouts.target.at(to), layouts.origin + from, bytes};
    if (used == held.size()) pass_on();
  });
  pass_on();
  return status;
}

template <class Call>
[[gnu::noinline]] Status transfer_pieces(MpiWindow& window, const Layouts& layouts) {
  const Target& target = layouts.target;
  const std::ptrdiff_t low = target.lowest();
  struct Context {
    const Layouts& layouts;
    std::ptrdiff_t low;
  } context{layouts, low};
  const auto copy_all = [](void* to, std::byte* memory) {
    const auto& [both, lowest] = *static_cast<const Context*>(to);
    std::byte* const start = memory - lowest;
    std::byte* const origin = both.origin;
    const auto copy = [=](std::ptrdiff_t at, std::ptrdiff_t from, std::size_t bytes) {
      Call::copy(start + at, origin + from, bytes);
    };
    if (!both.for_each_number(copy)) both.for_each_piece(copy);
  };
  bool done = false;
  if (target.empty()) return {};
  const std::size_t data =
      std::min(target.type->size * target.count, layouts.type.size * layouts.count);
  TOMBOLO_TRY((window.engine().*Call::in_place)(target.rank, {target.at(low), target.reach(), data},
                                                copy_all, &context, done));
  return done ? Status{} : transfer_runs<Call>(window, layouts);
}

// Calls piece(target offset, origin address, bytes) if both layouts are one piece.
template <class Call, class Piece>
[[gnu::always_inline]] inline Status for_each_piece(MpiWindow& window, const Target& target,
                                                    const TypeInfo& type, const Buffer& origin,
                                                    const Piece& piece) {
  std::byte* const base = address_of(origin);
  const auto count = static_cast<std::size_t>(origin.count);
  if (type.contiguous && target.type->contiguous) [[likely]]
    return piece(target.at(0), base, std::min(type.size * count, target.type->size * target.count));
  return transfer_pieces<Call>(window, {target, type, count, base});
}

// The origin's elements one after the other: in place where they lie so, else packed into
// `storage`.
const std::byte* gather(const TypeInfo& type, const Buffer& origin, windows::Op op,
                        std::unique_ptr<std::byte[]>& storage) {
  if (op == windows::Op::no_op) return nullptr;
  const auto count = static_cast<std::size_t>(origin.count);
  const auto* base = static_cast<const std::byte*>(origin.address);
  if (type.contiguous || (type.predefined && type.element)) return base;
  storage = std::make_unique_for_overwrite<std::byte[]>(type.element_bytes(count));
  pack_elements(type, base, count, storage.get());
  return storage.get();
}

struct Arithmetic {
  windows::Op op;
  windows::Element element;
};

[[gnu::always_inline]] inline int open_arithmetic(MPI_Op op, const Target& target,
                                                  Arithmetic& arithmetic) {
  if (op == MPI_SUM) [[likely]] {  // counters: the look-up would be a tenth of the call
    arithmetic.op = windows::Op::sum;
  } else {
    const auto known = op_of(op);
    if (!known) return MPI_ERR_OP;
    arithmetic.op = *known;
  }
  if (target.type->element) {
    arithmetic.element = *target.type->element;
    // The standard leaves arithmetic on MPI_CHAR undefined; MPI libraries take it for signed char.
    if (arithmetic.element == windows::Element::character)
      arithmetic.element = windows::Element::i8;
    return windows::valid(arithmetic.op, arithmetic.element) ? MPI_SUCCESS : MPI_ERR_OP;
  }
  return MPI_ERR_TYPE;
}

// An accumulate operation takes both sides as arrays of the same basic type.
int same_element(const TypeInfo& side, const Target& target) {
  return side.size == 0 || side.element == target.type->element ? MPI_SUCCESS : MPI_ERR_TYPE;
}
std::size_t elements_of(const TypeInfo& type, MPI_Count count) {
  return type.elements() * static_cast<std::size_t>(count);
}
// The same for one that has as many elements on all sides: of fewer it would read or write behind a
// buffer's end.
[[gnu::always_inline]] inline int as_many_elements(const TypeInfo& side, MPI_Count count,
                                                   const Target& target) {
  if (&side == target.type && static_cast<std::size_t>(count) >= target.count) [[likely]]
    return MPI_SUCCESS;
  if (const int error = same_element(side, target); error != MPI_SUCCESS) return error;
  return elements_of(side, count) < target.type->elements() * target.count ? MPI_ERR_COUNT
                                                                           : MPI_SUCCESS;
}

// Hands runs of target elements to the engine, many at a time.
class Runs {
 public:
  Runs(MpiWindow& window, const Target& target, const Arithmetic& arithmetic, const std::byte* from,
       std::byte* former)
      : engine_(window.engine()),
        target_(target),
        arithmetic_(arithmetic),
        from_(from),
        former_(former) {}

  Status add(std::ptrdiff_t offset, std::size_t count) {
    held_[used_++] = {target_.at(offset), count};
    elements_ += count;
    return used_ == held_.size() ? pass_on() : Status{};
  }
  Status pass_on() {
    const std::size_t bytes = elements_ * windows::bytes(arithmetic_.element);
    Status status = engine_.accumulate_runs(target_.rank, {held_.data(), used_}, arithmetic_.op,
                                            arithmetic_.element, from_, former_);
    if (from_ != nullptr) from_ += bytes;
    if (former_ != nullptr) former_ += bytes;
    used_ = elements_ = 0;
    return status;
  }

 private:
  windows::Engine& engine_;
  const Target& target_;
  const Arithmetic& arithmetic_;
  const std::byte* from_;
  std::byte* former_;
  std::array<windows::ElementRun, 256> held_;
  std::size_t used_ = 0;
  std::size_t elements_ = 0;
};

// Element-wise update of the target's runs from a packed origin, with the former values packed.
Status update(MpiWindow& window, const Target& target, const Arithmetic& arithmetic,
              const std::byte* from, std::byte* former, std::size_t elements) {
  Runs runs(window, target, arithmetic, from, former);
  Status status;
  for_each_run(*target.type, target.count, [&](std::ptrdiff_t offset, std::size_t n) {
    n = std::min(n, elements);
    elements -= n;
    if (n != 0 && status.ok()) status = runs.add(offset, n);
  });
  return status.ok() ? runs.pass_on() : status;
}

// All sides of one get_accumulate, checked.
struct Fetch {
  Target target;
  const TypeInfo* type = nullptr;  // null where the target is only read
  const TypeInfo* result_type = nullptr;
  Arithmetic arithmetic{};

  // MPI_SUCCESS, or the class of the error. Where there is nothing to do at the target, only that
  // is looked at.
  [[gnu::always_inline]] int open(MpiWindow& window, const Buffer& origin, const Buffer& result,
                                  const Remote& remote, MPI_Op op) {
    int error = op == MPI_NO_OP ? MPI_SUCCESS : open_origin(origin, type);
    if (error == MPI_SUCCESS) error = open_origin(result, result_type);
    if (error == MPI_SUCCESS) error = target.open(window, remote);
    if (error != MPI_SUCCESS || target.empty()) return error;
    error = open_arithmetic(op, target, arithmetic);
    if (error == MPI_SUCCESS && type != nullptr)
      error = as_many_elements(*type, origin.count, target);
    if (error == MPI_SUCCESS) error = as_many_elements(*result_type, result.count, target);
    return error;
  }
  [[gnu::always_inline]] bool is_of_arrays() const {
    return result_type == target.type && (type == nullptr || type == target.type) &&
           target.type->one_element;
  }
};

// Of layouts of any kind.
[[gnu::noinline]] Status fetch_and_update(MpiWindow& window, const Fetch& fetch,
                                          const Buffer& origin, const Buffer& result) {
  const Target& target = fetch.target;
  std::unique_ptr<std::byte[]> storage;
  const std::byte* const from =
      fetch.type == nullptr ? nullptr : gather(*fetch.type, origin, fetch.arithmetic.op, storage);
  const std::size_t elements = target.type->elements() * target.count;
  std::byte* const base = address_of(result);
  const TypeInfo& type = *fetch.result_type;
  if (type.contiguous || type.predefined)
    return update(window, target, fetch.arithmetic, from, base, elements);
  const auto results = static_cast<std::size_t>(result.count);
  const auto former = std::make_unique_for_overwrite<std::byte[]>(type.element_bytes(results));
  // A result buffer for more elements than there are keeps the rest.
  if (type.elements() * results != elements) pack_elements(type, base, results, former.get());
  TOMBOLO_TRY(update(window, target, fetch.arithmetic, from, former.get(), elements));
  unpack_elements(type, former.get(), base, results);
  return {};
}

}  // namespace

int put_any(MpiWindow& window, const Buffer& origin, const Remote& remote, const char* call) {
  if (remote.rank == MPI_PROC_NULL) return MPI_SUCCESS;
  const TypeInfo* type = nullptr;
  Target target;
  if (const int error = open_origin(origin, type); error != MPI_SUCCESS)
    return raise(window, error, call);
  if (const int error = target.open(window, remote); error != MPI_SUCCESS)
    return raise(window, error, call);
  windows::Engine& engine = window.engine();
  return conclude(
      window,
      for_each_piece<Put>(window, target, *type, origin,
                          [&](machine::Offset at, const std::byte* from, std::size_t bytes) {
                            return engine.put(target.rank, at, from, bytes);
                          }),
      call);
}

int get_any(MpiWindow& window, const Buffer& origin, const Remote& remote, const char* call) {
  if (remote.rank == MPI_PROC_NULL) return MPI_SUCCESS;
  const TypeInfo* type = nullptr;
  Target target;
  if (const int error = open_origin(origin, type); error != MPI_SUCCESS)
    return raise(window, error, call);
  if (const int error = target.open(window, remote); error != MPI_SUCCESS)
    return raise(window, error, call);
  windows::Engine& engine = window.engine();
  return conclude(window,
                  for_each_piece<Get>(window, target, *type, origin,
                                      [&](machine::Offset at, std::byte* to, std::size_t bytes) {
                                        return engine.get(target.rank, at, to, bytes);
                                      }),
                  call);
}

int accumulate_any(MpiWindow& window, const Buffer& origin, const Remote& remote, MPI_Op op,
                   const char* call) {
  if (remote.rank == MPI_PROC_NULL) return MPI_SUCCESS;
  const TypeInfo* type = nullptr;
  Target target;
  Arithmetic arithmetic{};
  int error = open_origin(origin, type);
  if (error == MPI_SUCCESS) error = target.open(window, remote);
  if (error == MPI_SUCCESS && target.empty()) return MPI_SUCCESS;
  if (error == MPI_SUCCESS) error = open_arithmetic(op, target, arithmetic);
  if (error == MPI_SUCCESS && arithmetic.op == windows::Op::no_op) error = MPI_ERR_OP;
  if (error == MPI_SUCCESS) error = same_element(*type, target);
  if (error != MPI_SUCCESS) return raise(window, error, call);
  if (type == target.type && type->one_element) [[likely]] {
    const auto count = std::min(static_cast<std::size_t>(origin.count), target.count);
    if (count == 0) return MPI_SUCCESS;
    return conclude(window,
                    window.engine().accumulate(target.rank, target.at(0), arithmetic.op,
                                               arithmetic.element, origin.address, count),
                    call);
  }
  const std::size_t elements = elements_of(*type, origin.count);
  if (elements == 0) return MPI_SUCCESS;
  std::unique_ptr<std::byte[]> storage;
  const std::byte* from = gather(*type, origin, arithmetic.op, storage);
  return conclude(window, update(window, target, arithmetic, from, nullptr, elements), call);
}

int get_accumulate(MpiWindow& window, const Buffer& origin, const Buffer& result,
                   const Remote& remote, MPI_Op op, const char* call) {
  if (remote.rank == MPI_PROC_NULL) return MPI_SUCCESS;
  Fetch fetch;
  if (const int error = fetch.open(window, origin, result, remote, op); error != MPI_SUCCESS)
    return raise(window, error, call);
  const Target& target = fetch.target;
  if (target.empty()) return MPI_SUCCESS;
  if (fetch.is_of_arrays()) [[likely]]
    return conclude(window,
                    window.engine().get_accumulate(target.rank, target.at(0), fetch.arithmetic.op,
                                                   fetch.arithmetic.element,
                                                   fetch.type == nullptr ? nullptr : origin.address,
                                                   address_of(result), target.count),
                    call);
  return conclude(window, fetch_and_update(window, fetch, origin, result), call);
}

int fetch_and_op_any(MpiWindow& window, const void* origin, void* result, MPI_Datatype type,
                     int rank, MPI_Aint displacement, MPI_Op op) {
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  Target target;
  Arithmetic arithmetic{};
  int error = target.open(window, {rank, displacement, 1, type});
  if (error == MPI_SUCCESS && !target.type->predefined) error = MPI_ERR_TYPE;
  if (error == MPI_SUCCESS) error = open_arithmetic(op, target, arithmetic);
  if (error != MPI_SUCCESS) return raise(window, error, "MPI_Fetch_and_op");
  return conclude(window,
                  window.engine().get_accumulate(target.rank, target.at(0), arithmetic.op,
                                                 arithmetic.element, origin, result, 1),
                  "MPI_Fetch_and_op");
}

int compare_and_swap_any(MpiWindow& window, const void* origin, const void* compare, void* result,
                         MPI_Datatype type, int rank, MPI_Aint displacement) {
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  Target target;
  int error = target.open(window, {rank, displacement, 1, type});
  if (error == MPI_SUCCESS && !target.type->swappable) error = MPI_ERR_TYPE;
  if (error != MPI_SUCCESS) return raise(window, error, "MPI_Compare_and_swap");
  return conclude(window,
                  window.engine().compare_and_swap(target.rank, target.at(0), *target.type->element,
                                                   compare, origin, result),
                  "MPI_Compare_and_swap");
}

namespace {

std::atomic<std::uint64_t> group_generation{1};

int translate(MpiWindow& window, MPI_Group group, std::vector<machine::Home>& ranks) {
  int n = 0;
  if (group == MPI_GROUP_NULL || host().Group_size(group, &n) != MPI_SUCCESS) return MPI_ERR_GROUP;
  std::vector<int> from(static_cast<std::size_t>(n));
  std::vector<int> to(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) from[static_cast<std::size_t>(i)] = i;
  if (n > 0 &&
      host().Group_translate_ranks(group, n, from.data(), window.group, to.data()) != MPI_SUCCESS)
    return MPI_ERR_GROUP;
  ranks.clear();
  static_assert(MPI_UNDEFINED < 0);
  for (const int rank : to) {
    if (rank < 0) return MPI_ERR_GROUP;
    ranks.push_back(static_cast<machine::Home>(rank));
  }
  return MPI_SUCCESS;
}

}  // namespace

const std::vector<machine::Home>* window_ranks(MpiWindow& window, MPI_Group group, int& error) {
  // Programs synchronize with the same few groups again and again. With several threads each call
  // translates into storage of its own thread.
  const std::uint64_t generation = group_generation.load(std::memory_order_acquire);
  if (job().threads()) {
    thread_local std::vector<machine::Home> ranks;
    error = translate(window, group, ranks);
    return error == MPI_SUCCESS ? &ranks : nullptr;
  }
  for (GroupRanks& known : window.groups)
    if (known.group == group && known.generation == generation) [[likely]]
      return &known.ranks;
  GroupRanks& slot = window.groups[window.next_group++ % window.groups.size()];
  slot.generation = 0;
  error = translate(window, group, slot.ranks);
  if (error != MPI_SUCCESS) return nullptr;
  slot.group = group;
  slot.generation = generation;
  return &slot.ranks;
}

void forget_groups() { group_generation.fetch_add(1, std::memory_order_acq_rel); }

}  // namespace tombolo::mpi
