// SPDX-License-Identifier: Apache-2.0
// Purpose: the job of dsm/transport/mpi/one_sided.h among threads of one process, for tests without
// an MPI: memory of all is in vectors, and each operation is done under one mutex.
// Thread safety: an object for each thread; all of them share one Memories.
#pragma once

#include <cstring>
#include <mutex>
#include <vector>

#include "dsm/transport/mpi/one_sided.h"

namespace tombolo::dsm::testing {

class SharedOneSided final : public OneSided {
 public:
  struct Memories {
    Memories(std::size_t cores, std::size_t word_bytes, std::size_t data_bytes)
        : words(cores, std::vector<std::uint64_t>(word_bytes / 8)),
          data(cores, std::vector<std::byte>(data_bytes)) {}
    std::mutex mutex;
    std::vector<std::vector<std::uint64_t>> words;
    std::vector<std::vector<std::byte>> data;
    int xors = 0;  // operations
  };

  SharedOneSided(Memories& memories, int rank) : all_(memories), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(all_.words.size()); }
  Status gather(const void*, void*, std::size_t) override { return Status::unsupported("gather"); }
  Status broadcast(void*, std::size_t, int) override { return Status::unsupported("broadcast"); }
  bool all(bool yes) override { return yes; }
  Status make(std::size_t, std::size_t) override { return {}; }
  std::uint64_t data_bytes(machine::Home home) const override { return all_.data[home].size(); }

  std::uint64_t load(machine::SyncPlace word) override {
    return change(word, [](std::uint64_t) {});
  }
  std::uint64_t exchange(machine::SyncPlace word, std::uint64_t value) override {
    return change(word, [value](std::uint64_t& v) { v = value; });
  }
  std::uint64_t fetch_add(machine::SyncPlace word, std::uint64_t value) override {
    return change(word, [value](std::uint64_t& v) { v += value; });
  }
  std::uint64_t compare_exchange(machine::SyncPlace word, std::uint64_t expected,
                                 std::uint64_t desired) override {
    return change(word, [=](std::uint64_t& v) {
      if (v == expected) v = desired;
    });
  }

  void get(machine::DataPlace from, void* out, std::size_t bytes) override {
    const std::lock_guard lock(all_.mutex);
    std::memcpy(out, at(from, bytes), bytes);
  }
  void put(machine::DataPlace to, const void* in, std::size_t bytes) override {
    const std::lock_guard lock(all_.mutex);
    std::memcpy(at(to, bytes), in, bytes);
  }
  void accumulate_xor(machine::DataPlace to, const void* in, std::size_t bytes) override {
    TOMBOLO_CHECK(to.offset % 8 == 0 && bytes % 8 == 0, "{} bytes at {}", bytes, to.offset);
    const std::lock_guard lock(all_.mutex);
    std::byte* const memory = at(to, bytes);
    for (std::size_t i = 0; i < bytes; ++i) memory[i] ^= static_cast<const std::byte*>(in)[i];
    ++all_.xors;
  }

  void progress() override {}
  void post(int, std::span<const std::byte>) override {}
  void listen(Listener*) override {}
  void finish() override {}

 private:
  template <class Change>
  std::uint64_t change(machine::SyncPlace word, Change&& change) {
    const std::lock_guard lock(all_.mutex);
    std::uint64_t& v = all_.words[word.home].at(word.offset / 8);
    const std::uint64_t before = v;
    change(v);
    return before;
  }
  std::byte* at(machine::DataPlace place, std::size_t bytes) {
    auto& memory = all_.data[place.home];
    TOMBOLO_CHECK(place.offset + bytes <= memory.size(), "{} bytes at {} of {}", bytes,
                  place.offset, memory.size());
    return memory.data() + place.offset;
  }

  Memories& all_;
  int rank_;
};

}  // namespace tombolo::dsm::testing
