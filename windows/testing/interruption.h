// SPDX-License-Identifier: Apache-2.0
// Purpose: lets a test decide what happens in the middle of a call: a machine on which a thread
// stops at the start of an operation and runs what the test wants to happen just then.
//
//   run<Interruptible<stale::Core>>({.options = {.threads = true}}, [](Process& p) {
//     const Interruption interruption(Operation::refresh, [&] { ... other threads go on ... });
//     p.sync();
//   });
//
// Invariants: I1 the core is untouched while it is interrupted: no operation has begun on it, and
//                other threads may use it.
// Thread safety: an Interruption concerns the thread that made it, and no other.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "machine/contract.h"

namespace tombolo::windows::testing {

using machine::DataPlace;
using machine::Home;

enum class Operation { write_through, refresh };

// Runs `act` at the first such operation of this thread; the test fails if there is none in the
// scope of the interruption.
class Interruption {
 public:
  Interruption(Operation operation, std::function<void()> act)
      : operation_(operation), act_(std::move(act)) {
    current_ = this;
  }
  ~Interruption() {
    current_ = nullptr;
    EXPECT_FALSE(act_) << "the operation to be interrupted was not called";
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  static void reached(Operation operation) {
    if (current_ == nullptr || current_->operation_ != operation || !current_->act_) return;
    std::exchange(current_->act_, nullptr)();
  }

 private:
  static inline thread_local Interruption* current_ = nullptr;

  Operation operation_;
  std::function<void()> act_;
};

// C: one of MachinesThatLose.
template <machine::Core C>
class Interruptible {
 public:
  using Word = typename C::Word;
  static constexpr machine::Properties properties = C::properties;
  static std::size_t reserved_sync_bytes(Home cores) { return C::reserved_sync_bytes(cores); }

  explicit Interruptible(const machine::Attachment& attachment) : core_(attachment) {}

  Status write_through(DataPlace place, const void* in, std::size_t bytes) {
    Interruption::reached(Operation::write_through);
    return core_.write_through(place, in, bytes);
  }
  void refresh(DataPlace place, std::size_t bytes) {
    Interruption::reached(Operation::refresh);
    core_.refresh(place, bytes);
  }

  Home self() const { return core_.self(); }
  Home cores() const { return core_.cores(); }
  Word word(machine::SyncPlace place) { return core_.word(place); }
  std::uint64_t load(Word word) { return core_.load(word); }
  void store(Word word, std::uint64_t v) { core_.store(word, v); }
  std::uint64_t fetch_add(Word word, std::uint64_t v) { return core_.fetch_add(word, v); }
  std::uint64_t exchange(Word word, std::uint64_t v) { return core_.exchange(word, v); }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    return core_.compare_exchange(word, expected, desired);
  }
  void fence() { core_.fence(); }
  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    return core_.wait_until(word, predicate);
  }
  Status pause(std::uint64_t ns) { return core_.pause(ns); }
  void notify(Home home) { core_.notify(home); }
  Status read(DataPlace place, void* out, std::size_t bytes) {
    return core_.read(place, out, bytes);
  }
  Status write(DataPlace place, const void* in, std::size_t bytes) {
    return core_.write(place, in, bytes);
  }
  void publish(DataPlace place, std::size_t bytes) { core_.publish(place, bytes); }
  void drain() { core_.drain(); }
  std::byte* view(DataPlace place) { return core_.view(place); }
  std::uint64_t data_bytes(Home home) const { return core_.data_bytes(home); }

  // Beyond the contract.
  void settle() { core_.settle(); }
  void close() { core_.close(); }
  const auto& findings() const { return core_.findings(); }

 private:
  C core_;
};

}  // namespace tombolo::windows::testing
