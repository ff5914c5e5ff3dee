// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory of a program whose threads are threads of the test: plain memory, atomic
// words, and no locks, which the heap has no use for. Word operations may be taken in turns.
//
//   PlainProgram program({.threads = 3, .bytes = 16 << 20});
//   program.run([](PlainMemory& memory) { ... });          // a thread for each
//
// Thread safety: one PlainMemory for each thread.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/rounding.h"
#include "dsm/allocator/memory_heap.h"
#include "dsm/allocator/testing/turns.h"

namespace tombolo::dsm::testing {

struct ProgramShape {
  Thread threads = 1;
  std::size_t bytes = 16 << 20;
  std::size_t page_bytes = 4096;
};

class PlainMemory;

class PlainProgram {
 public:
  explicit PlainProgram(const ProgramShape& shape)
      : shape_(shape),
        words_(MemoryHeap::words_for(shape.bytes, shape.threads)),
        room_(shape.bytes + group_bytes),
        start_(aligned(room_.as<std::byte>())) {}

  const ProgramShape& shape() const { return shape_; }
  std::span<std::byte> memory() const { return {start_, shape_.bytes}; }
  std::vector<std::atomic<std::uint64_t>>& words() { return words_; }

  // Calls body(memory) in each thread, which take turns if there are any.
  template <class Body>
  void run(Body&& body, Turns* turns = nullptr);

  static std::byte* aligned(std::byte* at) {
    return reinterpret_cast<std::byte*>(
        round_up(reinterpret_cast<std::uintptr_t>(at), group_bytes));
  }

 private:
  ProgramShape shape_;
  std::vector<std::atomic<std::uint64_t>> words_;
  host::ZeroMemory room_;
  std::byte* start_;
};

class PlainMemory : public ProgramMemory {
 public:
  PlainMemory(PlainProgram& program, Thread self, Turns* turns = nullptr)
      : program_(program), self_(self), turns_(turns) {}

  Thread self() const override { return self_; }
  Thread threads() const override { return program_.shape().threads; }
  std::span<std::byte> memory() const override { return program_.memory(); }
  std::size_t page_bytes() const override { return program_.shape().page_bytes; }
  void record(const void*, std::size_t) override {}

  WordIndex words() const override { return program_.words().size(); }
  std::uint64_t load(WordIndex w) override { return word(w).load(); }
  void store(WordIndex w, std::uint64_t value) override { word(w).store(value); }
  std::uint64_t exchange(WordIndex w, std::uint64_t value) override {
    return word(w).exchange(value);
  }
  std::uint64_t fetch_add(WordIndex w, std::uint64_t value) override {
    return word(w).fetch_add(value);
  }
  std::uint64_t compare_exchange(WordIndex w, std::uint64_t expected,
                                 std::uint64_t desired) override {
    word(w).compare_exchange_strong(expected, desired);
    return expected;
  }

  // The heap takes none.
  Lock locks() const override { return 0; }
  Status acquire(Lock) override { return none(); }
  Status try_acquire(Lock, bool&) override { return none(); }
  Status release(Lock) override { return none(); }
  Status barrier() override { return none(); }
  Status reduce(std::uint64_t&, Combine) override { return none(); }
  Status pause() override {
    ++pauses_;
    if (pauses_ > most_pauses) return Status::io("deadlock: a wait has no end");
    if (turns_ == nullptr) std::this_thread::yield();
    return failing_ ? Status::process_failed(1, "thread 1 died") : Status();
  }
  void paused_enough() override { pauses_ = 0; }
  Status close() override { return none(); }

  void without_turns() { turns_ = nullptr; }
  void fail_pauses() { failing_ = true; }
  std::uint64_t word_operations() const { return operations_; }

 protected:
  PlainProgram& program() { return program_; }

 private:
  static constexpr std::uint64_t most_pauses = 10'000'000;
  static Status none() { return Status::unsupported("the heap has no use for it"); }

  std::atomic<std::uint64_t>& word(WordIndex w) {
    if (turns_ != nullptr) turns_->next(self_);
    ++operations_;
    return program_.words().at(w);
  }

  PlainProgram& program_;
  Thread self_;
  Turns* turns_;
  std::uint64_t pauses_ = 0;
  std::uint64_t operations_ = 0;
  bool failing_ = false;
};

template <class Body>
void PlainProgram::run(Body&& body, Turns* turns) {
  std::vector<std::thread> threads;
  for (Thread t = 0; t < shape_.threads; ++t)
    threads.emplace_back([&, t] {
      PlainMemory memory(*this, t, turns);
      if (turns != nullptr) turns->begin(t);
      body(memory);
      if (turns != nullptr) turns->end(t);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tombolo::dsm::testing
