// SPDX-License-Identifier: Apache-2.0
// Purpose: an exchange between threads that stand for processes, and one that fails on purpose, for
// tests of collective operations.
//
//   run_together(3, [](ThreadExchange& exchange) { ... });
//
// A call that not all threads make ends by an error after `patience`, so that a test fails instead
// of hanging.
// Thread safety: each exchange is used by its own thread.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.h"
#include "runtime/collective/exchange.h"

namespace tombolo::runtime::testing {

// Where the threads meet: each call of meet() returns when all have called it.
class Meeting {
 public:
  static constexpr std::chrono::seconds patience{20};

  explicit Meeting(int size) : size_(size), slots_(static_cast<std::size_t>(size)) {}

  // Puts down `mine`, and hands the data of all threads to `take` once all are there.
  template <class Take>
  Status meet(int rank, const char* call, std::vector<std::byte> mine, Take&& take) {
    std::unique_lock lock(mutex_);
    if (arrived_ == 0) call_ = call;
    if (left_ || std::strcmp(call_, call) != 0) paired_ = false;
    slots_[static_cast<std::size_t>(rank)] = std::move(mine);
    const std::uint64_t round = round_;
    if (++arrived_ == size_) {
      arrived_ = 0;
      results_ = slots_;
      ++round_;
      changed_.notify_all();
    } else if (!changed_.wait_for(lock, patience, [&] { return round_ != round || !paired_; })) {
      paired_ = false;
    }
    if (!paired_ || round_ == round) {
      paired_ = false;
      changed_.notify_all();
      return Status::io("the processes are not at the same call");
    }
    take(results_);
    // No thread begins the next round before all have taken the results of this one.
    if (++taken_ == size_) {
      taken_ = 0;
      changed_.notify_all();
    } else {
      const std::uint64_t now = round_;
      changed_.wait_for(lock, patience, [&] { return taken_ == 0 || round_ != now; });
    }
    return {};
  }

  // This thread meets no more: the others must not wait for it.
  void leave() {
    const std::lock_guard lock(mutex_);
    left_ = true;
    if (arrived_ > 0) paired_ = false;
    changed_.notify_all();
  }
  bool paired() {
    const std::lock_guard lock(mutex_);
    return paired_ && arrived_ == 0;
  }

 private:
  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<std::byte>> slots_, results_;
  const char* call_ = "";
  int arrived_ = 0;
  int taken_ = 0;
  std::uint64_t round_ = 0;
  bool left_ = false;
  bool paired_ = true;
};

// The call of all() at which an exchange says no although its process said yes.
struct Failure {
  int rank = -1;
  int call = -1;  // counted from 0
};

class ThreadExchange {
 public:
  ThreadExchange(Meeting& meeting, int rank, int size, Failure failure)
      : meeting_(meeting), rank_(rank), size_(size), failure_(failure) {}

  int rank() const { return rank_; }
  int size() const { return size_; }
  int calls_of_all() const { return calls_; }

  Status gather(const void* mine, void* everyones, std::size_t bytes) {
    return meeting_.meet(rank_, "gather", copy(mine, bytes), [&](const auto& all) {
      auto* out = static_cast<std::byte*>(everyones);
      for (const auto& one : all) {
        std::memcpy(out, one.data(), one.size());
        out += bytes;
      }
    });
  }
  Status broadcast(void* data, std::size_t bytes, int root) {
    return meeting_.meet(rank_, "broadcast", copy(data, bytes), [&](const auto& all) {
      std::memcpy(data, all[static_cast<std::size_t>(root)].data(), bytes);
    });
  }
  bool all(bool yes) {
    const bool fails = rank_ == failure_.rank && calls_ == failure_.call;
    ++calls_;
    const std::byte mine{yes && !fails ? std::uint8_t{1} : std::uint8_t{0}};
    bool everybody = true;
    const Status met = meeting_.meet(rank_, "all", {mine}, [&](const auto& all) {
      for (const auto& one : all) everybody = everybody && one[0] == std::byte{1};
    });
    return met.ok() && everybody;
  }

 private:
  static std::vector<std::byte> copy(const void* data, std::size_t bytes) {
    const auto* at = static_cast<const std::byte*>(data);
    return {at, at + bytes};
  }

  Meeting& meeting_;
  int rank_;
  int size_;
  Failure failure_;
  int calls_ = 0;
};

// Runs body(exchange) in `size` threads. False if they did not all make the same calls.
template <class Body>
bool run_together(int size, Failure failure, Body&& body) {
  Meeting meeting(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      ThreadExchange exchange(meeting, rank, size, failure);
      body(exchange);
      meeting.leave();
    });
  for (std::thread& thread : threads) thread.join();
  return meeting.paired();
}

}  // namespace tombolo::runtime::testing
