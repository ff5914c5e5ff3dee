// SPDX-License-Identifier: Apache-2.0
// Purpose: the messages of a host MPI without one: queues between sites of one test. Letters are
// kept for a receiver that does not look; arrays move when both sides have named them, one at a
// time, in an order that a test's seed decides.
// Thread safety: sites may be different threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"
#include "svp/links/mpi/host_messages.h"

namespace tombolo::svp::testing {

class FakeMessages final : public HostMessages {
 public:
  struct Array {
    std::byte* at = nullptr;
    std::size_t bytes = 0;
    bool* done = nullptr;
    std::size_t* moved = nullptr;
  };
  using Way = std::tuple<int, int, std::uint32_t>;  // from, to, tag
  struct Post {
    explicit Post(std::uint64_t seed) : random(Random::stream(seed, 0)) {}

    std::mutex mutex;
    std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> letters;  // from, to
    std::map<Way, std::deque<Array>> out;
    std::map<Way, std::deque<Array>> in;
    Random random;
    std::uint32_t tags = 1 << 20;
    bool holds_arrays = false;
    std::size_t most_letters = 0;  // that waited for one receiver
  };

  FakeMessages(Post& post, int rank, int size) : post_(post), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Status gather(const void*, void*, std::size_t) override { return {}; }
  Status broadcast(void*, std::size_t, int) override { return {}; }
  bool all(bool yes) override { return yes; }
  std::unique_ptr<HostExchange> group(int) override { return nullptr; }

  std::byte* room() override { return room_.data(); }
  void send(int to, std::size_t bytes) override {
    const std::lock_guard lock(post_.mutex);
    auto& letters = post_.letters[{rank_, to}];
    letters.emplace_back(room_.begin(), room_.begin() + static_cast<std::ptrdiff_t>(bytes));
    post_.most_letters = std::max(post_.most_letters, letters.size());
  }
  bool receive(Letter& out) override {
    const std::lock_guard lock(post_.mutex);
    for (int i = 0; i < size_; ++i) {
      next_ = (next_ + 1) % size_;
      auto& letters = post_.letters[{next_, rank_}];
      if (letters.empty()) continue;
      shown_ = std::move(letters.front());
      letters.pop_front();
      out = {.from = next_, .bytes = shown_};
      return true;
    }
    return false;
  }

  std::uint32_t tags() const override { return post_.tags; }
  Transfer send_array(int to, std::uint32_t tag, std::span<const std::byte> from) override {
    const std::lock_guard lock(post_.mutex);
    return begin(post_.out[{rank_, to, tag}], const_cast<std::byte*>(from.data()), from.size());
  }
  Transfer receive_array(int from, std::uint32_t tag, std::span<std::byte> to) override {
    const std::lock_guard lock(post_.mutex);
    return begin(post_.in[{from, rank_, tag}], to.data(), to.size());
  }
  std::optional<std::size_t> done(Transfer transfer) override {
    const std::lock_guard lock(post_.mutex);
    move_one();
    Moving& moving = *moving_[transfer];
    if (!moving.done) return std::nullopt;
    return moving.moved;
  }
  bool drop(Transfer transfer) override { return !refuses_drops && moving_[transfer] != nullptr; }

  std::optional<Trouble> next_trouble() override { return std::exchange(trouble, std::nullopt); }
  void finish(bool) override {}

  std::optional<Trouble> trouble;
  bool refuses_drops = false;

 private:
  struct Moving {
    bool done = false;
    std::size_t moved = 0;
  };

  Transfer begin(std::deque<Array>& arrays, std::byte* at, std::size_t bytes) {
    moving_.push_back(std::make_unique<Moving>());
    arrays.push_back({at, bytes, &moving_.back()->done, &moving_.back()->moved});
    return static_cast<Transfer>(moving_.size() - 1);
  }
  // Of some way that both sides have named.
  void move_one() {
    if (post_.holds_arrays) return;
    std::vector<Way> ready;
    for (const auto& [way, arrays] : post_.out)
      if (!arrays.empty() && !post_.in[way].empty()) ready.push_back(way);
    if (ready.empty()) return;
    const Way way = ready[post_.random.below(ready.size())];
    const Array from = post_.out[way].front();
    const Array to = post_.in[way].front();
    post_.out[way].pop_front();
    post_.in[way].pop_front();
    const std::size_t bytes = std::min(from.bytes, to.bytes);
    std::memcpy(to.at, from.at, bytes);
    *from.done = *to.done = true;
    *from.moved = *to.moved = bytes;
  }

  Post& post_;
  int rank_;
  int size_;
  int next_ = 0;
  std::array<std::byte, letter_bytes> room_;
  std::vector<std::byte> shown_;
  std::vector<std::unique_ptr<Moving>> moving_;
};

}  // namespace tombolo::svp::testing
