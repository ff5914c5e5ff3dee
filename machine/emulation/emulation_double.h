// SPDX-License-Identifier: Apache-2.0
// Purpose: test doubles: a core that has only loads, stores and a fence, and the same with a
// test-and-set register for each home. Threads of one process; data is plain memory.
//
// Invariants: ED1 load and store are no stronger than R3 of contract.h: on x86 a load does overtake
//                 an earlier store, unless fence() prevents it.
// Thread safety: each operation may be called from several threads.
#pragma once

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "machine/contract.h"

namespace tombolo::machine::testing {

class LoadStoreDouble {
 public:
  using Word = std::atomic<std::uint64_t>*;
  static constexpr Properties properties{
      .name = "double", .coherent = true, .native_atomics = Atomics::none, .line_bytes = 64};
  static std::size_t reserved_sync_bytes(Home) { return 8; }
  explicit LoadStoreDouble(const Attachment& attachment) : at_(attachment) {}

  Home self() const { return at_.self; }
  Home cores() const { return at_.cores; }
  Word word(SyncPlace place) {
    return reinterpret_cast<Word>(at_.sync + place.home * at_.sync_bytes_per_home + place.offset);
  }
  std::uint64_t load(Word word) { return word->load(std::memory_order_seq_cst); }
  void store(Word word, std::uint64_t v) { word->store(v, std::memory_order_release); }
  void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    Waiter waiter(at_.waiting, at_.idle);
    while (!predicate(load(word))) TOMBOLO_TRY(waiter.step());
    return {};
  }
  Status pause(std::uint64_t) {
    std::this_thread::yield();
    return at_.idle != nullptr ? at_.idle->idle() : Status{};
  }
  void notify(Home) {}

  Status read(DataPlace place, void* out, std::size_t bytes) {
    std::memcpy(out, view(place), bytes);
    return {};
  }
  Status write(DataPlace place, const void* in, std::size_t bytes) {
    std::memcpy(view(place), in, bytes);
    return {};
  }
  Status write_through(DataPlace place, const void* in, std::size_t bytes) {
    return write(place, in, bytes);
  }
  void publish(DataPlace, std::size_t) {}
  void refresh(DataPlace, std::size_t) {}
  void drain() {}
  std::byte* view(DataPlace place) { return at_.data[place.home].memory + place.offset; }
  std::uint64_t data_bytes(Home home) const { return at_.data[home].bytes; }

 private:
  Attachment at_;
};

// The register of a home is the first word of its sync block.
class TestAndSetDouble : public LoadStoreDouble {
 public:
  static constexpr Properties properties{.name = "double with test-and-set",
                                         .coherent = true,
                                         .native_atomics = Atomics::test_and_set,
                                         .line_bytes = 64};
  using LoadStoreDouble::LoadStoreDouble;

  bool test_and_set(Home home) { return word({home, 0})->exchange(1) == 0; }
  void clear(Home home) { store(word({home, 0}), 0); }
};

}  // namespace tombolo::machine::testing
