// SPDX-License-Identifier: Apache-2.0
// Purpose: a test double that replays from a seed: words behind store buffers, one step of one core
// at a time. It shows every reordering that R3 of contract.h allows, on any host however busy.
//
//   StoreBufferMemory memory(cores, words_per_home, seed);
//   memory.run([&](const Attachment& at) { ... });   // a thread for each core, one runs at a time
//
// Invariants: SB1 only the core that holds the turn runs; each load, store and fence passes it on
//                 at random. A wait that polls by load() therefore never blocks the others.
//             SB2 a store waits in its core's buffer, first in first out, for a random time; the
//                 core itself sees it at once. fence() empties the buffer.
// Thread safety: run() from one thread; the doubles inside it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "base/random.h"
#include "machine/contract.h"

namespace tombolo::machine::testing {

class StoreBufferDouble;

class StoreBufferMemory {
 public:
  StoreBufferMemory(Home cores, std::size_t words_per_home, std::uint64_t seed)
      : words_per_home_(words_per_home),
        words_(cores * words_per_home),
        buffers_(cores),
        alive_(cores, true),
        random_(seed) {
    for (Home core = 0; core < cores; ++core)
      turns_.push_back(std::make_unique<std::binary_semaphore>(0));
  }

  // body(attachment) on a thread for each core. The attachment leads the doubles back here.
  void run(const std::function<void(const Attachment&)>& body) {
    std::vector<std::thread> threads;
    for (Home self = 0; self < cores(); ++self) {
      threads.emplace_back([this, self, &body] {
        Attachment at;
        at.self = self;
        at.cores = cores();
        at.sync = reinterpret_cast<std::byte*>(this);
        turns_[self]->acquire();
        body(at);
        step(self);  // the others may still run before our last stores are in memory
        drain(self, buffers_[self].size());
        alive_[self] = false;
        pass_turn(self);
      });
    }
    turns_[random_.below(cores())]->release();
    for (auto& thread : threads) thread.join();
  }

  Home cores() const { return static_cast<Home>(buffers_.size()); }
  std::size_t index(SyncPlace place) const {
    return place.home * words_per_home_ + place.offset / 8;
  }

  std::uint64_t load(Home self, std::size_t word) {
    step(self);
    const auto& buffer = buffers_[self];
    for (auto it = buffer.rbegin(); it != buffer.rend(); ++it)
      if (it->word == word) return it->value;
    return words_[word];
  }
  void store(Home self, std::size_t word, std::uint64_t v) {
    step(self);
    buffers_[self].push_back({word, v});
  }
  void fence(Home self) {
    step(self);
    drain(self, buffers_[self].size());
  }
  // Lets others run without touching memory.
  void step(Home self) {
    for (Home core = 0; core < cores(); ++core)
      if (!buffers_[core].empty() && random_.one_in(12)) drain(core, 1);
    if (random_.one_in(2)) pass_turn(self);
  }

 private:
  struct Store {
    std::size_t word;
    std::uint64_t value;
  };

  void drain(Home core, std::size_t stores) {
    for (; stores > 0; --stores) {
      words_[buffers_[core].front().word] = buffers_[core].front().value;
      buffers_[core].pop_front();
    }
  }
  // Hands the turn to any core that still runs, and comes back when it is this core's again.
  void pass_turn(Home self) {
    std::vector<Home> candidates;
    for (Home core = 0; core < cores(); ++core)
      if (alive_[core]) candidates.push_back(core);
    if (candidates.empty()) return;
    const Home next = candidates[random_.below(candidates.size())];
    if (next == self) return;
    const bool comes_back = alive_[self];
    turns_[next]->release();  // from here on the other core runs (SB1)
    if (comes_back) turns_[self]->acquire();
  }

  std::size_t words_per_home_;
  std::vector<std::uint64_t> words_;
  std::vector<std::deque<Store>> buffers_;
  std::vector<bool> alive_;
  Random random_;
  std::vector<std::unique_ptr<std::binary_semaphore>> turns_;
};

// Loads, stores and a fence: the operations that the emulation needs of a machine.
class StoreBufferDouble {
 public:
  using Word = std::size_t;
  static constexpr Properties properties{
      .name = "store buffers", .coherent = true, .native_atomics = Atomics::none, .line_bytes = 64};
  static std::size_t reserved_sync_bytes(Home) { return 0; }
  explicit StoreBufferDouble(const Attachment& at)
      : memory_(*reinterpret_cast<StoreBufferMemory*>(at.sync)), self_(at.self) {}

  Home self() const { return self_; }
  Home cores() const { return memory_.cores(); }
  Word word(SyncPlace place) { return memory_.index(place); }
  std::uint64_t load(Word word) { return memory_.load(self_, word); }
  void store(Word word, std::uint64_t v) { memory_.store(self_, word, v); }
  void fence() { memory_.fence(self_); }
  Status pause(std::uint64_t) {
    memory_.step(self_);
    return {};
  }
  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    while (!predicate(load(word))) {
    }
    return {};
  }

 private:
  StoreBufferMemory& memory_;
  Home self_;
};

}  // namespace tombolo::machine::testing
