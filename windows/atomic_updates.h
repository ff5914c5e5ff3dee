// SPDX-License-Identifier: Apache-2.0
// Purpose: the accumulate family: read-modify-write of target elements, atomic per element against
// every other operation of the family, of any size, from any process.
//
// The elements of a target are guarded by a fixed number of mutexes at its home: range i of `unit`
// bytes by mutex i mod mutex_count. An operation takes one at a time, so that large operations run
// at the speed of memory and small ones cost one atomic operation more than a bare one.
//
// Invariants: AU1 an element belongs to the range that its first byte lies in, so all operations on
//                 it take the same mutex; none holds two, hence no deadlock.
//             AU2 under the mutex the elements are read from memory (refresh) and are back in
//                 memory (drain) before the mutex is released.
//             AU3 with a unit of one element, on a coherent machine, types with a native atomic use
//                 it and all others take the mutex; a type is served one way or the other, never
//                 both.
// Memory: mutex_count words per process and window, whatever the number of processes.
// Thread safety: any number of threads, if the core's data operations allow it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "base/copy.h"
#include "machine/optional.h"
#include "sync/locks/mutex.h"
#include "windows/elements/elements.h"
#include "windows/engine.h"
#include "windows/own_copies.h"
#include "windows/pieces.h"

namespace tombolo::windows {

template <machine::Core C>
class AtomicUpdates {
 public:
  static constexpr std::size_t mutex_count = 8;
  static constexpr std::uint64_t default_unit = 65536;

  struct Layout {
    machine::Offset mutexes;
  };
  // One line for each mutex: neighbours would slow each other down.
  static Layout take(machine::SyncLayout& layout) { return {layout.take_lines(mutex_count * 8)}; }

  // `unit`: bytes of target memory under one mutex, rounded down to a power of two; 0 for the
  // default. `all_mapped`: every process reaches every region by address; without that, no process
  // may use native atomics (AU3).
  AtomicUpdates(C& core, Layout layout, const OwnCopies<C>& own, std::uint64_t unit,
                bool all_mapped)
      : core_(core),
        layout_(layout),
        own_(own),
        unit_(unit == 0 ? default_unit : std::bit_floor(unit)),
        shift_(static_cast<unsigned>(std::countr_zero(unit_))),
        all_mapped_(all_mapped) {}

  // target[i] = target[i] op from[i]; the former elements go to `result` unless it is null.
  // One element, by far the most frequent, in line.
  [[gnu::always_inline]] Status update(machine::DataPlace at, Op op, Element element,
                                       const void* from, void* result, std::size_t count) {
    auto* in = static_cast<const std::byte*>(from);
    auto* out = static_cast<std::byte*>(result);
    if (count == 1 && unit_ > bytes(element)) [[likely]]
      return update_one(at, op, element, in, out);
    return update_many(at, op, element, in, out, count);
  }

  // The same for runs that follow each other in both arrays. Runs of one range in a row take its
  // mutex once: taking it costs more than an element or two.
  Status update_runs(machine::Home home, std::span<const ElementRun> runs, Op op, Element element,
                     const void* from, void* result) {
    const std::size_t size = bytes(element);
    auto* in = static_cast<const std::byte*>(from);
    auto* out = static_cast<std::byte*>(result);
    const auto step = [&](std::size_t count) {
      if (in != nullptr) in += count * size;
      if (out != nullptr) out += count * size;
    };
    const auto all_of = [&](std::span<const ElementRun> together) -> Status {
      std::size_t done = apply_packed(home, together, op, element, in, out);
      if (done == 0) TOMBOLO_TRY(apply_pieces(home, together, op, element, in, out, done));
      if (done > 0) {
        step(done);
        return {};
      }
      for (const ElementRun& run : together) {
        TOMBOLO_TRY(apply({home, run.at}, op, element, in, out, run.count));
        step(run.count);
      }
      return {};
    };
    while (!runs.empty()) {
      const ElementRun& first = runs.front();
      const std::size_t count = runs_in_one_range(runs, size);
      if (count > 1) {
        TOMBOLO_TRY(guarded({home, first.at}, first.at >> shift_,
                            [&] { return all_of(runs.first(count)); }));
      } else {
        TOMBOLO_TRY(update({home, first.at}, op, element, in, out, first.count));
        step(first.count);
      }
      runs = runs.subspan(count);
    }
    return {};
  }

  [[gnu::always_inline]] Status compare_and_swap(machine::DataPlace at, Element element,
                                                 const void* compare, const void* desired,
                                                 void* result) {
    const std::size_t size = bytes(element);
    if (unit_ <= size && native(at, Op::replace, element)) {
      windows::compare_and_swap_atomic(element, core_.view(at), compare, desired, result);
      return {};
    }
    return guarded(at, at.offset >> shift_, [&]() -> Status {
      if constexpr (C::properties.coherent) {
        if (std::byte* p = reachable(at, size); p != nullptr) [[likely]] {
          windows::compare_and_swap(element, p, compare, desired, result);
          return {};
        }
      }
      return compare_and_swap_in_chunk(at, element, compare, desired, result);
    });
  }

 private:
  static constexpr std::size_t largest = 32;         // bytes of the largest element
  static constexpr std::size_t chunk_bytes = 16384;  // bytes that go through the stack at a time
  // The former elements are copied and then combined: a block of both arrays stays in the first
  // level of the cache in between.
  static constexpr std::size_t block_bytes = 8192;
  // Of runs that are changed together. Where memory is not coherent the operations that they share
  // cost as much as some hundred elements.
  static constexpr std::size_t most_packed_runs = C::properties.coherent ? 64 : 256;
  static constexpr std::size_t most_packed_bytes = most_packed_runs * 32;

  // Any number of elements.
  [[gnu::noinline]] Status update_many(machine::DataPlace at, Op op, Element element,
                                       const std::byte* in, std::byte* out, std::size_t count) {
    const std::size_t size = bytes(element);
    if (count == 0) return {};
    if (unit_ <= size && native(at, op, element))
      return update_native(at, op, element, in, out, count);
    const auto part = [&](std::uint64_t range, std::size_t first, std::size_t behind) {
      const machine::DataPlace place = at + first * size;
      const auto moved = [&](auto* p) { return p == nullptr ? p : p + first * size; };
      return guarded(at, range, [&] {
        return apply(place, op, element, moved(in), moved(out), behind - first);
      });
    };
    const std::uint64_t low = at.offset >> shift_;
    const std::uint64_t high = (at.offset + (count - 1) * size) >> shift_;
    if (low == high) return part(low, 0, count);  // a division costs as much as the mutex
    if (unit_ <= size) {                          // at most one element begins in a range
      for (std::size_t i = 0; i < count; ++i)
        TOMBOLO_TRY(part((at.offset + i * size) >> shift_, i, i + 1));
      return {};
    }
    const auto first_in = [&](std::uint64_t range) {
      return range <= low ? 0 : ((range << shift_) - at.offset + size - 1) / size;
    };
    for (std::uint64_t range = low; range <= high; ++range)
      TOMBOLO_TRY(
          part(range, first_in(range), std::min<std::uint64_t>(count, first_in(range + 1))));
    return {};
  }

  // Under the mutex of the runs' range. The elements of all runs are gathered, changed together and
  // put back: that takes a third of the time of a change for each, if the runs are short. (A target
  // layout has no element twice.) Returns their number; 0: nothing is done, as there are too many
  // or not all of the region is in reach.
  std::size_t apply_packed(machine::Home home, std::span<const ElementRun> runs, Op op,
                           Element element, const std::byte* in, std::byte* out) {
    if constexpr (!C::properties.coherent) return 0;
    std::byte* const region = reachable({home, 0}, core_.data_bytes(home));
    if (region == nullptr) return 0;
    const std::size_t size = bytes(element);
    alignas(64) std::byte packed[most_packed_bytes];
    std::size_t used = 0;
    for (const ElementRun& run : runs) {
      const std::size_t n = run.count * size;
      if (used + n > most_packed_bytes) return 0;
      copy_bytes(packed + used, region + run.at, n);
      used += n;
    }
    const std::size_t count = used / size;
    if (out != nullptr) std::memcpy(out, packed, used);
    if (op == Op::no_op) return count;
    combine(op, element, packed, in, count);
    used = 0;
    for (const ElementRun& run : runs) {
      const std::size_t n = run.count * size;
      copy_bytes(region + run.at, packed + used, n);
      used += n;
    }
    return count;
  }

  // The same where they are not in reach of loads and stores, or memory is not coherent: all are
  // read, and all are written, at the cost of one. `done` is their number; 0: nothing is done.
  [[gnu::noinline]] Status apply_pieces(machine::Home home, std::span<const ElementRun> runs, Op op,
                                        Element element, const std::byte* in, std::byte* out,
                                        std::size_t& done) {
    const std::size_t size = bytes(element);
    alignas(64) std::byte packed[most_packed_bytes];
    machine::DataPiece places[most_packed_runs];
    std::size_t used = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const std::size_t n = runs[i].count * size;
      if (used + n > most_packed_bytes) return {};
      places[i] = {runs[i].at, packed + used, n};
      used += n;
    }
    const std::span<const machine::DataPiece> pieces(places, runs.size());
    done = used / size;
    // Another process may have updated the elements since this core last read their lines (AU2).
    TOMBOLO_TRY(read_pieces_anew(core_, home, pieces, own_.stored_to(home)));
    if (out != nullptr) std::memcpy(out, packed, used);
    if (op == Op::no_op) return {};
    combine(op, element, packed, in, done);
    TOMBOLO_TRY(write_pieces_through(core_, home, pieces));
    core_.drain();  // the next holder of the mutex must find the elements in memory (AU2)
    return {};
  }

  // How many of the runs, at least one and at most most_packed_runs, to serve at once: those at the
  // beginning of which all elements belong to one range (AU1). Where a range is an element each
  // goes by itself (AU3).
  std::size_t runs_in_one_range(std::span<const ElementRun> runs, std::size_t size) const {
    if (unit_ <= size) return 1;
    const std::uint64_t range = runs.front().at >> shift_;
    const auto outside = [&](const ElementRun& run) {
      return run.count == 0 || run.at >> shift_ != range ||
             (run.at + (run.count - 1) * size) >> shift_ != range;
    };
    const auto some = runs.first(std::min(most_packed_runs, runs.size()));
    const auto end = std::find_if(some.begin(), some.end(), outside);
    return std::max<std::size_t>(1, static_cast<std::size_t>(end - some.begin()));
  }

  bool native(machine::DataPlace at, Op op, Element element) {
    if constexpr (!C::properties.coherent) return false;
    if (!all_mapped_ || !native_atomic(op, element)) return false;
    const std::byte* p = core_.view(at);
    return p != nullptr && reinterpret_cast<std::uintptr_t>(p) % bytes(element) == 0;
  }

  Status update_native(machine::DataPlace at, Op op, Element element, const std::byte* in,
                       std::byte* out, std::size_t count) {
    const std::size_t size = bytes(element);
    std::byte* p = core_.view(at);
    for (std::size_t i = 0; i < count; ++i)
      combine_atomic(op, element, p + i * size, in == nullptr ? nullptr : in + i * size,
                     out == nullptr ? nullptr : out + i * size);
    return {};
  }

  // Where all of `bytes` can be reached by address, else null. A region may be mapped in part.
  std::byte* reachable(machine::DataPlace at, std::size_t bytes) {
    if constexpr (machine::ViewsRanges<C>) return core_.view(at, bytes);
    return core_.view(at);
  }

  typename C::Word mutex_of(machine::Home home, std::uint64_t range) {
    return core_.word({home, layout_.mutexes + (range % mutex_count) * 64});
  }

  template <class Body>
  [[gnu::always_inline]] Status guarded(machine::DataPlace at, std::uint64_t range, Body&& body) {
    const auto word = mutex_of(at.home, range);
    sync::SpinMutex<C> mutex(core_);  // not a member: several threads may be here
    TOMBOLO_TRY(mutex.acquire(word));
    Status status = body();
    mutex.release(word);
    return status;
  }

  // Not by guarded(): the body is so large that the compiler would make a call of it.
  [[gnu::always_inline]] Status update_one(machine::DataPlace at, Op op, Element element,
                                           const std::byte* in, std::byte* out) {
    const auto word = mutex_of(at.home, at.offset >> shift_);
    sync::SpinMutex<C> mutex(core_);  // not a member: several threads may be here
    TOMBOLO_TRY(mutex.acquire(word));
    Status status = apply_one(at, op, element, in, out);
    mutex.release(word);
    return status;
  }

  [[gnu::always_inline]] Status apply_one(machine::DataPlace at, Op op, Element element,
                                          const std::byte* in, std::byte* out) {
    if constexpr (C::properties.coherent) {
      const std::size_t size = bytes(element);
      if (std::byte* p = reachable(at, size); p != nullptr) [[likely]] {
        if (out != nullptr) copy_bytes(out, p, size);
        combine_one(op, element, p, in);
        return {};
      }
    }
    return apply(at, op, element, in, out, 1);
  }

  Status apply(machine::DataPlace at, Op op, Element element, const std::byte* in, std::byte* out,
               std::size_t count) {
    const std::size_t size = bytes(element);
    if constexpr (C::properties.coherent) {
      if (std::byte* p = reachable(at, count * size); p != nullptr) [[likely]] {
        const std::size_t per_block = out == nullptr ? count : block_bytes / size;
        for (std::size_t first = 0; first < count; first += per_block) {
          const std::size_t n = std::min(per_block, count - first);
          if (out != nullptr) std::memcpy(out + first * size, p + first * size, n * size);
          combine(op, element, p + first * size, in == nullptr ? nullptr : in + first * size, n);
        }
        return {};
      }
    }
    return apply_in_chunks(at, op, element, in, out, count);
  }

  // Not in line: a frame as large as the chunk would take its callers' variables to other pages.
  [[gnu::noinline]] Status apply_in_chunks(machine::DataPlace at, Op op, Element element,
                                           const std::byte* in, std::byte* out, std::size_t count) {
    const std::size_t size = bytes(element);
    alignas(64) std::byte chunk[chunk_bytes];
    while (count > 0) {
      const std::size_t n = std::min(count, chunk_bytes / size);
      TOMBOLO_TRY(fetch(at, chunk, n * size));
      if (out != nullptr) std::memcpy(out, chunk, n * size);
      if (op != Op::no_op) {
        combine(op, element, chunk, in, n);
        TOMBOLO_TRY(store(at, chunk, n * size));
        in += n * size;
      }
      if (out != nullptr) out += n * size;
      at = at + n * size;
      count -= n;
    }
    return {};
  }

  [[gnu::noinline]] Status compare_and_swap_in_chunk(machine::DataPlace at, Element element,
                                                     const void* compare, const void* desired,
                                                     void* result) {
    const std::size_t size = bytes(element);
    std::byte held[largest];
    TOMBOLO_TRY(fetch(at, held, size));
    windows::compare_and_swap(element, held, compare, desired, result);
    return store(at, held, size);
  }

  Status fetch(machine::DataPlace at, std::byte* to, std::size_t size) {
    // The program's own stores to these elements are not ours to lose by the refresh.
    if (own_.stored_to(at.home)) core_.publish(at, size);
    // Another process may have updated the elements since this core last read their lines (AU2).
    core_.refresh(at, size);
    return core_.read(at, to, size);
  }

  Status store(machine::DataPlace at, const std::byte* from, std::size_t size) {
    TOMBOLO_TRY(core_.write_through(at, from, size));
    core_.drain();  // the next holder of the mutex must find the elements in memory (AU2)
    return {};
  }

  C& core_;
  Layout layout_;
  const OwnCopies<C>& own_;
  std::uint64_t unit_;  // a power of two: a division would cost as much as the atomic
  unsigned shift_;
  bool all_mapped_;
};

}  // namespace tombolo::windows
