// SPDX-License-Identifier: Apache-2.0
// Purpose: a transport over the data of one machine's cores: pages, logs and exposed pages are in
// the regions of their homes. It runs on each machine, on the explored one and on the simulated
// chip; its operations are done when they return.
//
//   region of a home:            | pages | logs of its locks |
//   region of a thread:          | exposed pages of this thread |
//   region of one that is both:  | pages | logs of its locks | exposed pages of this thread |
//
// In place, the frames of a thread are its exposed pages, and memory of those alone that it caches
// is touched.
//
// Invariants: DCT1 each range that is written is made of whole lines that no other core writes at
//                  that time: a page by put (DTR3) or under its mutex, a log by the lock's holder,
//                  an exposed page by its thread. So write and publish may take whole lines (R2),
//                  and after publish no written line is left that could come later (R1).
//             DCT2 publish comes before the mutex is free, or the caller's next word is stored
//                  (R4).
//             DCT3 refresh comes after the caller has loaded the word that tells of a change, or
//                  has the mutex (R5).
// Memory: a word for each page of a home.
// Thread safety: one thread for each transport.
#pragma once

#include <algorithm>

#include "base/rounding.h"
#include "dsm/protocol/page_diff.h"
#include "dsm/protocol/transport.h"
#include "sync/locks/mutex.h"

namespace tombolo::dsm {

// A core that changes data in memory by exclusive or, each 8 bytes atomically against others that
// do the same, and is done when it returns.
template <class C>
concept AccumulatesXor = requires(C& core, machine::DataPlace place,
                                  std::span<const std::byte> diff) {
  { core.accumulate_xor(place, diff) } -> std::same_as<Status>;
};

template <machine::Core C>
class CoreTransport {
 public:
  using Core = C;
  struct Layout {
    machine::Offset mutexes = 0;
  };
  static Layout take(machine::SyncLayout& layout, const Shape& shape) {
    return {.mutexes = layout.take_lines(shape.pages_per_home())};
  }
  // Of one core.
  static std::size_t data_bytes(const Shape& shape, machine::Home core) {
    if (core >= shape.threads) return home_bytes(shape);
    return exposed_at(shape) + shape.exposed_pages() * shape.page_bytes;
  }
  // Of any core.
  static std::size_t data_bytes(const Shape& shape) {
    return std::max(data_bytes(shape, 0), data_bytes(shape, shape.cores() - 1));
  }

  // Of the exposed pages, in the region of their thread.
  static machine::Offset exposed_at(const Shape& shape) {
    return shape.servers == 0 ? round_up(home_bytes(shape), shape.page_bytes) : 0;
  }

  CoreTransport(C& core, Layout layout, const Shape& shape)
      : core_(core), layout_(layout), shape_(shape), mutex_(core) {
    TOMBOLO_CHECK(shape.page_bytes % C::properties.line_bytes == 0 &&
                      sizeof(Update) % C::properties.line_bytes == 0,
                  "transport: pages of {} bytes are not made of whole lines of {} bytes",
                  shape.page_bytes, C::properties.line_bytes);
  }

  C& core() { return core_; }
  const Shape& shape() const { return shape_; }

  Status get(Page page, std::span<std::byte> out) { return load(place_of(page), out); }
  Status put(Page page, std::span<const std::byte> in) { return save(place_of(page), in); }

  Status accumulate_xor(Page page, std::span<const std::byte> diff) {
    if constexpr (AccumulatesXor<C>)
      return core_.accumulate_xor(place_of(page), diff);
    else
      return accumulate_under_mutex(page, diff);
  }
  Status expose(std::uint32_t slot, std::span<const std::byte> in) {
    return save(exposed(core_.self(), slot), in);
  }
  Status get_exposed(Thread thread, std::uint32_t slot, std::span<std::byte> out) {
    return load(exposed(thread, slot), out);
  }

  Status put_update(Lock lock, std::uint64_t index, const Update& update) {
    return save(place_of(lock, index), std::as_bytes(std::span(&update, 1)));
  }
  Status get_update(Lock lock, std::uint64_t index, Update& update) {
    return load(place_of(lock, index), std::as_writable_bytes(std::span(&update, 1)));
  }

  Status complete() { return {}; }

 private:
  static constexpr std::size_t line_bytes = C::properties.line_bytes;

  static machine::Offset logs_at(const Shape& shape) {
    return shape.pages_per_home() * shape.page_bytes;
  }
  static machine::Offset home_bytes(const Shape& shape) {
    return logs_at(shape) + std::uint64_t{shape.locks_per_home()} * shape.updates * sizeof(Update);
  }
  machine::DataPlace place_of(Page page) const {
    return {shape_.home_of(page), shape_.place_of(page) * shape_.page_bytes};
  }
  machine::DataPlace place_of(Lock lock, std::uint64_t index) const {
    return {shape_.home_of_lock(lock),
            logs_at(shape_) + (std::uint64_t{shape_.place_of_lock(lock)} * shape_.updates + index) *
                                  sizeof(Update)};
  }
  machine::DataPlace exposed(Thread thread, std::uint32_t slot) const {
    return {thread, exposed_at(shape_) + slot * shape_.page_bytes};
  }

  Status load(machine::DataPlace place, std::span<std::byte> out) {
    // An earlier copy of this core may be older than the word that told of it (DCT3).
    core_.refresh(place, out.size());
    return core_.read(place, out.data(), out.size());
  }
  Status save(machine::DataPlace place, std::span<const std::byte> in) {
    TOMBOLO_TRY(core_.write(place, in.data(), in.size()));
    // In memory before the caller tells of it (DCT2).
    core_.publish(place, in.size());
    return {};
  }

  Status accumulate_under_mutex(Page page, std::span<const std::byte> diff) {
    const auto mutex = core_.word(
        {shape_.home_of(page), layout_.mutexes + shape_.place_of(page) * sizeof(std::uint64_t)});
    TOMBOLO_TRY(mutex_.acquire(mutex));
    Status status;
    for (std::size_t at = 0; at < diff.size() && status.ok(); at += line_bytes)
      status = change_line(place_of(page) + at, diff.subspan(at, line_bytes));
    mutex_.release(mutex);
    return status;
  }

  // Under the mutex of the page.
  Status change_line(machine::DataPlace place, std::span<const std::byte> diff) {
    if (all_zero(diff)) return {};
    std::array<std::byte, line_bytes> line;
    // The line as the last holder of the mutex left it (DCT3).
    core_.refresh(place, line_bytes);
    TOMBOLO_TRY(core_.read(place, line.data(), line_bytes));
    for (std::size_t i = 0; i < line_bytes; ++i) line[i] ^= diff[i];
    TOMBOLO_TRY(core_.write(place, line.data(), line_bytes));
    // In memory before the mutex is free (DCT2).
    core_.publish(place, line_bytes);
    return {};
  }

  C& core_;
  Layout layout_;
  const Shape& shape_;
  sync::SpinMutex<C> mutex_;
};

}  // namespace tombolo::dsm
