// SPDX-License-Identifier: Apache-2.0
// Purpose: the words that a page has at its home: its version (the epoch of 003 section 5.5), the
// thread that keeps it, a mutex, and the last signature.
//
// Invariants: DPD1 a version is raised after the change that it stands for is at the home: bytes
//                  that are got after the version was loaded have all changes up to it (R5, DTR1).
//             DPD2 a page with a keeper is its keeper's exposed page, exclusive or its home if that
//                  is `mixed`; the home is of no meaning otherwise. A keeper is set, changed
//                  and cleared under the mutex, or inside a barrier.
//             DPD3 a page without a keeper may have a mark of the thread that has cleared it: a
//                  hint for the choice of its keeper. It is set under the mutex.
// Memory: 32 bytes for each page of a home.
// Thread safety: one thread for each object.
#pragma once

#include <optional>

#include "dsm/protocol/shape.h"
#include "machine/contract.h"
#include "sync/locks/mutex.h"

namespace tombolo::dsm {

struct Keeper {
  Thread thread = 0;
  std::uint32_t slot = 0;
  bool shared = false;  // another thread may have a copy that the keeper has not told of its stores
  bool mixed = false;   // the home has differences of other threads
};

template <machine::Core C>
class PageDirectory {
 public:
  struct Layout {
    machine::Offset words = 0;
  };
  static Layout take(machine::SyncLayout& layout, const Shape& shape) {
    return {.words = layout.take_lines(shape.pages_per_home() * words_per_page)};
  }

  PageDirectory(C& core, Layout layout, const Shape& shape)
      : core_(core), layout_(layout), shape_(shape), mutex_(core) {}

  std::uint64_t version(Page page) { return core_.load(word(page, 0)); }
  // To the version that is returned.
  std::uint64_t raise_version(Page page) { return core_.fetch_add(word(page, 0), 1) + 1; }

  std::optional<Keeper> keeper(Page page) {
    const std::uint64_t v = core_.load(word(page, 1));
    if (v >> 34 == 0) return std::nullopt;
    return Keeper{.thread = static_cast<Thread>((v >> 34) - 1),
                  .slot = static_cast<std::uint32_t>(v),
                  .shared = (v & shared) != 0,
                  .mixed = (v & mixed) != 0};
  }
  void set_keeper(Page page, const Keeper& keeper) {
    core_.store(word(page, 1), (std::uint64_t{keeper.thread} + 1) << 34 | keeper.slot |
                                   (keeper.shared ? shared : 0) | (keeper.mixed ? mixed : 0));
  }
  void clear_keeper(Page page) { core_.store(word(page, 1), 0); }

  // Of a page without a keeper: this thread has stored to it the bytes that it had (DPD3).
  void mark_cleared(Page page) { core_.store(word(page, 1), std::uint64_t{core_.self()} + 1); }
  bool cleared_by_another(Page page) {
    const std::uint64_t v = core_.load(word(page, 1));
    return v != 0 && v >> 34 == 0 && v != std::uint64_t{core_.self()} + 1;
  }

  // At a barrier, by its number: true if no other thread has signed the page there before.
  bool sign(Page page, std::uint64_t barrier) {
    return core_.exchange(word(page, 3), signature(barrier)) >> 32 != barrier % numbers;
  }
  // Whether none has after this one.
  bool signed_last(Page page, std::uint64_t barrier) {
    return core_.load(word(page, 3)) == signature(barrier);
  }

  Status lock(Page page) { return mutex_.acquire(word(page, 2)); }
  void unlock(Page page) { mutex_.release(word(page, 2)); }

 private:
  static constexpr std::size_t words_per_page = 4;
  static constexpr std::uint64_t shared = std::uint64_t{1} << 32;
  static constexpr std::uint64_t mixed = std::uint64_t{1} << 33;
  static constexpr std::uint64_t numbers = std::uint64_t{1} << 32;
  std::uint64_t signature(std::uint64_t barrier) const {
    return barrier % numbers << 32 | core_.self();
  }
  typename C::Word word(Page page, std::size_t index) {
    return core_.word({shape_.home_of(page),
                       layout_.words + (shape_.place_of(page) * words_per_page + index) * 8});
  }

  C& core_;
  Layout layout_;
  const Shape& shape_;
  sync::SpinMutex<C> mutex_;
};

}  // namespace tombolo::dsm
