// SPDX-License-Identifier: Apache-2.0
// Purpose: a random program on a heap of several threads: blocks of all tiers are allocated, grown,
// passed on to other threads and freed by them, each full of a pattern of its own. A block that
// overlaps another, or a store that comes where it should not, damages a pattern.
//
// A thread that passes a block on renews it, and so does the one that takes it, as the program's
// own synchronization would; else the heap alone orders its users.
// Thread safety: one RandomThread for each thread; a Post for all.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "dsm/allocator/testing/plain_memory.h"

namespace tombolo::dsm::testing {

struct OwnedBlock {
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
  unsigned char pattern = 0;
};

// Blocks on their way to a thread.
class Post {
 public:
  explicit Post(Thread threads) : boxes_(threads) {}
  void send(Thread to, const OwnedBlock& block) {
    const std::lock_guard lock(mutex_);
    boxes_[to].push_back(block);
  }
  bool receive(Thread self, OwnedBlock& block) {
    const std::lock_guard lock(mutex_);
    if (boxes_[self].empty()) return false;
    block = boxes_[self].back();
    boxes_[self].pop_back();
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<OwnedBlock>> boxes_;
};

class RandomThread {
 public:
  RandomThread(ProgramMemory& memory, Post& post, std::uint64_t seed)
      : memory_(memory), post_(post), random_(Random::stream(seed, memory.self())) {
    open();
  }

  void step() {
    switch (random_.below(8)) {
      case 0:
      case 1:
      case 2:
        return allocate();
      case 3:
        return reallocate();
      case 4:
        return pass_on();
      case 5:
        return receive();
      default:
        return free_one();
    }
  }
  // The process ends, and another takes its number.
  void restart() {
    heap_->leave();
    open();
  }
  void free_all() {
    receive_all();
    while (!blocks_.empty()) free_one();
  }
  MemoryHeap& heap() { return *heap_; }
  std::uint64_t refusals() const { return refusals_; }

 private:
  void open() {
    const Status opened = heap_.emplace().open(memory_, memory_.memory(), 0);
    EXPECT_TRUE(opened.ok()) << opened.message();
  }
  std::byte* at(std::uint64_t offset) const { return memory_.memory().data() + offset; }
  std::uint64_t offset_of(const void* block) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(block) - at(0));
  }
  void renew(const OwnedBlock& block) {
    EXPECT_TRUE(memory_.renew(at(block.offset), block.bytes).ok());
  }

  // Of all tiers, small ones most often.
  std::size_t size() {
    const std::uint64_t most = std::uint64_t{1} << (4 + random_.below(random_.one_in(8) ? 18 : 9));
    return 1 + random_.below(most);
  }

  void allocate() {
    const std::size_t bytes = size();
    const bool zero = random_.one_in(3);
    void* block = nullptr;
    if (zero)
      block = heap_->calloc(1, bytes);
    else if (random_.one_in(4))
      block = heap_->aligned_alloc(std::size_t{1} << random_.below(15), bytes);
    else
      block = heap_->malloc(bytes);
    if (block == nullptr) return void(++refusals_);
    OwnedBlock made{.offset = offset_of(block), .bytes = bytes, .pattern = 0};
    if (zero) expect(made, bytes);
    fill(made);
    blocks_.push_back(made);
  }

  void reallocate() {
    if (blocks_.empty()) return;
    OwnedBlock& block = chosen();
    expect(block, block.bytes);
    const std::size_t bytes = size();
    void* const moved = heap_->realloc(at(block.offset), bytes);
    if (moved == nullptr) return void(++refusals_);
    block.offset = offset_of(moved);
    expect(block, std::min(bytes, block.bytes));
    block.bytes = bytes;
    fill(block);
  }

  void pass_on() {
    if (blocks_.empty()) return;
    const OwnedBlock block = take_chosen();
    expect(block, block.bytes);
    renew(block);
    expect(block, block.bytes);
    post_.send(static_cast<Thread>(random_.below(memory_.threads())), block);
  }

  void receive() {
    OwnedBlock block;
    if (!post_.receive(memory_.self(), block)) return;
    renew(block);
    expect(block, block.bytes);
    fill(block);
    blocks_.push_back(block);
  }
  void receive_all() {
    for (std::size_t before = blocks_.size() + 1; before != blocks_.size();) {
      before = blocks_.size();
      receive();
    }
  }

  void free_one() {
    if (blocks_.empty()) return;
    const OwnedBlock block = take_chosen();
    expect(block, block.bytes);
    EXPECT_GE(heap_->usable_size(at(block.offset)), block.bytes);
    heap_->free(at(block.offset));
  }

  OwnedBlock& chosen() { return blocks_[random_.below(blocks_.size())]; }
  OwnedBlock take_chosen() {
    std::swap(chosen(), blocks_.back());
    const OwnedBlock block = blocks_.back();
    blocks_.pop_back();
    return block;
  }

  void fill(OwnedBlock& block) {
    block.pattern = static_cast<unsigned char>(random_.below(256));
    std::memset(at(block.offset), block.pattern, block.bytes);
  }
  void expect(const OwnedBlock& block, std::size_t bytes) {
    const std::byte* const begin = at(block.offset);
    const std::byte* const damaged = std::find_if(
        begin, begin + bytes, [&](std::byte b) { return b != std::byte{block.pattern}; });
    EXPECT_EQ(damaged, begin + bytes)
        << "byte " << damaged - begin << " of a block of " << block.bytes << " bytes at offset "
        << block.offset << ", thread " << memory_.self();
  }

  ProgramMemory& memory_;
  Post& post_;
  Random random_;
  std::optional<MemoryHeap> heap_;
  std::vector<OwnedBlock> blocks_;
  std::uint64_t refusals_ = 0;
};

}  // namespace tombolo::dsm::testing
