// SPDX-License-Identifier: Apache-2.0
// Purpose: shows the bytes that a publish forgets although this host's caches are coherent: memory
// as another host would see it. Lines come there only by the write-back operation of a policy, so
// that bytes stored and not published are missing.
//
//   FarMemory far(memory, bytes);
//   ... flush::publish(FarMemory::policy(), memory + 8, 4); ...
//   EXPECT_EQ(far.first_difference(), bytes);   // the same
//
// Bytes that are streamed past the caches (write_through) do not come there. With
// policy_that_drops() a refresh brings lines from the far memory, as another host may have changed
// them by set(): stores that were not published are lost then.
// Thread safety: any; of a byte that is stored while its line is written back, either value
// arrives.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

#include "backends/flushed/flushed.h"

namespace tombolo::flushed::testing {

class FarMemory {
 public:
  // Another host sees zeros until something is written back. `memory` starts at a line.
  FarMemory(std::byte* memory, std::size_t bytes)
      : memory_(memory),
        bytes_(bytes),
        far_((bytes + flush::line_bytes - 1) / flush::line_bytes * words_) {
    const std::lock_guard lock(mutex());
    all().push_back(this);
  }
  ~FarMemory() {
    const std::lock_guard lock(mutex());
    std::erase(all(), this);
  }
  FarMemory(const FarMemory&) = delete;
  FarMemory& operator=(const FarMemory&) = delete;

  // This host's instructions, which copy to the far memory as well.
  static const flush::Policy& policy() {
    static const flush::Policy by = [] {
      EXPECT_TRUE(flush::available().ok()) << flush::available().message();
      flush::Policy policy = flush::policy();
      for (auto& operation : policy.write_back) operation.apply = write_back;
      policy.renew.apply = write_back;
      policy.drain = drain;
      return policy;
    }();
    return by;
  }

  static const flush::Policy& policy_that_drops() {
    static const flush::Policy by = [] {
      flush::Policy policy = FarMemory::policy();
      policy.invalidate.apply = drop;
      policy.renew.apply = [](const std::byte* first, const std::byte* end) {
        write_back(first, end);
        drop(first, end);
      };
      return policy;
    }();
    return by;
  }

  // A store of another host.
  void set(std::size_t offset, std::byte v) {
    reinterpret_cast<std::byte*>(far_.data())[offset] = v;
  }
  std::byte get(std::size_t offset) const {
    return reinterpret_cast<const std::byte*>(far_.data())[offset];
  }

  // The offset of the first byte that differs from this host's caches; the size if none.
  std::size_t first_difference() const {
    const auto* far = reinterpret_cast<const std::byte*>(far_.data());
    for (std::size_t i = 0; i < bytes_; ++i)
      if (far[i] != memory_[i]) return i;
    return bytes_;
  }
  // relaxed: the caller orders it with the publish.
  std::uint64_t word(std::size_t offset) {
    return std::atomic_ref(far_[offset / 8]).load(std::memory_order_relaxed);
  }
  // Lines that were written back since the last call.
  std::size_t lines() { return lines_.exchange(0); }
  // Drains of any core of this process since.
  static std::size_t drains() { return drains_.exchange(0); }
  // Lines that were brought from the far memory since.
  std::size_t dropped() { return dropped_.exchange(0); }

 private:
  static constexpr std::size_t words_ = flush::line_bytes / 8;

  static std::mutex& mutex() {
    static std::mutex only;
    return only;
  }
  static std::vector<FarMemory*>& all() {
    static std::vector<FarMemory*> memories;
    return memories;
  }

  static void write_back(const std::byte* first, const std::byte* end) {
    static const flush::cpu::LineOperation real = flush::policy().write_back[0];
    real.apply(first, end);
    const std::lock_guard lock(mutex());
    for (FarMemory* far : all()) far->take(first, end);
  }
  static void drain() {
    ++drains_;
    flush::drain();
  }
  static void drop(const std::byte* first, const std::byte* end) {
    const std::lock_guard lock(mutex());
    for (FarMemory* far : all()) far->give(first, end);
  }
  void give(const std::byte* first, const std::byte* end) {
    for (; first < end; first += flush::line_bytes) {
      if (first < memory_ || first >= memory_ + bytes_) continue;
      ++dropped_;
      const auto offset = static_cast<std::size_t>(first - memory_);
      std::memcpy(memory_ + offset, reinterpret_cast<const std::byte*>(far_.data()) + offset,
                  std::min(flush::line_bytes, bytes_ - offset));
    }
  }
  void take(const std::byte* first, const std::byte* end) {
    for (; first < end; first += flush::line_bytes) {
      if (first < memory_ || first >= memory_ + bytes_) continue;
      ++lines_;
      const auto line = static_cast<std::size_t>(first - memory_) / flush::line_bytes * words_;
      const auto* from = reinterpret_cast<const std::uint64_t*>(first);
      // relaxed (both): as a line comes to memory, in any order with others.
      for (std::size_t i = 0; i < words_; ++i)
        std::atomic_ref(far_[line + i])
            .store(std::atomic_ref(const_cast<std::uint64_t&>(from[i]))
                       .load(std::memory_order_relaxed),
                   std::memory_order_relaxed);
    }
  }

  std::byte* memory_;
  std::size_t bytes_;
  std::vector<std::uint64_t> far_;
  std::atomic<std::size_t> lines_ = 0;
  std::atomic<std::size_t> dropped_ = 0;
  static inline std::atomic<std::size_t> drains_ = 0;
};

// The machine with such memory.
template <machine::Atomics A>
class FarCore : public Core<A> {
 public:
  explicit FarCore(const machine::Attachment& at) : Core<A>(at) { this->use(FarMemory::policy()); }
};

// And one whose refresh shows the stores of another host.
template <machine::Atomics A>
class DroppingCore : public Core<A> {
 public:
  explicit DroppingCore(const machine::Attachment& at) : Core<A>(at) {
    this->use(FarMemory::policy_that_drops());
  }
};

}  // namespace tombolo::flushed::testing
