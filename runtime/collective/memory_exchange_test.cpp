// SPDX-License-Identifier: Apache-2.0
// Purpose: the answers of an exchange over memory, that no process changes bytes which another has
// yet to read, and its errors. Threads stand for the processes.
#include "runtime/collective/memory_exchange.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/collective/collective.h"
#include "runtime/collective/exchange.h"
#include "runtime/testing/exchange_answers.h"

namespace tombolo::runtime {
namespace {

static_assert(Exchange<MemoryExchange>);

struct Hook final : machine::IdleHook {
  std::function<Status()> call = [] { return Status(); };
  Status idle() override { return call(); }
};

class Memory {
 public:
  explicit Memory(int size) : bytes_(MemoryExchange::bytes_for(size) + 64) {}
  std::byte* start() {
    void* at = bytes_.data();
    std::size_t room = bytes_.size();
    return static_cast<std::byte*>(std::align(64, bytes_.size() - 64, at, room));
  }

 private:
  std::vector<std::byte> bytes_;
};

const machine::WaitPolicy hardly_polls{.polls = 2, .yields_per_idle = 1};

// body(exchange) of each process in a thread of its own.
template <class Body>
void run(int size, Body&& body, std::vector<Hook>* hooks = nullptr) {
  Memory memory(size);
  std::vector<std::thread> processes;
  for (int rank = 0; rank < size; ++rank)
    processes.emplace_back([&, rank] {
      Hook* const hook = hooks == nullptr ? nullptr : &(*hooks)[static_cast<std::size_t>(rank)];
      MemoryExchange exchange(memory.start(), rank, size, hardly_polls, hook);
      body(exchange);
    });
  for (std::thread& process : processes) process.join();
}

TEST(MemoryExchange, TellsEachProcessTheSame) {
  for (const int size : {1, 2, 5})
    run(size,
        [size](MemoryExchange& exchange) { testing::expect_the_same_answers(exchange, size); });
}

// So many bytes are first, first + 1, ...
std::size_t counted_from(std::size_t first, const unsigned char* bytes, std::size_t n) {
  std::size_t i = 0;
  while (i < n && bytes[i] == static_cast<unsigned char>(first + i)) ++i;
  return i;
}

TEST(MemoryExchange, CarriesMoreThanARoomHolds) {
  for (const std::size_t bytes : {959u, 960u, 961u, 1920u, 5000u})
    run(3, [bytes](MemoryExchange& exchange) {
      std::vector<unsigned char> mine(bytes);
      std::iota(mine.begin(), mine.end(), static_cast<unsigned char>(exchange.rank()));
      std::vector<unsigned char> all(3 * bytes + 1, 77);
      EXPECT_TRUE(exchange.gather(mine.data(), all.data(), bytes).ok());
      for (std::size_t r = 0; r < 3; ++r)
        EXPECT_EQ(counted_from(r, &all[r * bytes], bytes), bytes) << r;
      EXPECT_EQ(all.back(), 77);
      std::vector<unsigned char> told(bytes + 1, 77);
      std::vector<unsigned char>& mine_or_told = exchange.rank() == 1 ? mine : told;
      EXPECT_TRUE(exchange.broadcast(mine_or_told.data(), bytes, 1).ok());
      EXPECT_EQ(counted_from(1, mine_or_told.data(), bytes), bytes);
      EXPECT_EQ(told.back(), 77);
    });
}

// MEX1. Process 2 waits for process 0, and stays there until both others wait for its own next
// offer. Only then does it read the earlier offer of process 1.
TEST(MemoryExchange, KeepsBytesUntilAllHaveReadThem) {
  std::array<std::atomic<bool>, 2> wait_for_next{};
  std::array<std::atomic<int>, 3> round{};
  std::atomic<bool> waits{false};
  std::vector<Hook> hooks(3);
  for (std::size_t r = 0; r < 2; ++r)
    hooks[r].call = [&, r] {
      if (round[r] == 2) wait_for_next[r] = true;
      return Status();
    };
  hooks[2].call = [&] {
    waits = true;
    if (round[2] == 1)
      while (!wait_for_next[0] || !wait_for_next[1]) std::this_thread::yield();
    return Status();
  };
  run(
      3,
      [&](MemoryExchange& exchange) {
        const auto rank = static_cast<std::size_t>(exchange.rank());
        for (int n = 1; n <= 2; ++n) {
          if (rank == 0 && n == 1)
            while (!waits) std::this_thread::yield();
          round[rank] = n;
          const int mine = 10 * n + exchange.rank();
          std::array<int, 3> all{};
          EXPECT_TRUE(exchange.gather(&mine, all.data(), sizeof mine).ok());
          for (int r = 0; r < 3; ++r)
            EXPECT_EQ(all[static_cast<std::size_t>(r)], 10 * n + r) << "at " << rank;
        }
      },
      &hooks);
}

// The bytes to offer lie on a page that cannot be read at first: at the fault the count is looked
// at.
std::byte* desk = nullptr;
void* page = nullptr;
std::uint64_t offered_at_fault = 99;

void note_offered(int) {
  std::memcpy(&offered_at_fault, desk, sizeof offered_at_fault);
  mprotect(page, 4096, PROT_READ);
}

TEST(MemoryExchange, OffersBytesThatAreThere) {
  Memory memory(1);
  desk = memory.start();
  page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  struct sigaction note {};
  struct sigaction before {};
  note.sa_handler = note_offered;
  sigaction(SIGSEGV, &note, &before);
  mprotect(page, 4096, PROT_NONE);
  MemoryExchange exchange(desk, 0, 1, hardly_polls, nullptr);
  int all = 1;
  EXPECT_TRUE(exchange.gather(page, &all, sizeof all).ok());
  sigaction(SIGSEGV, &before, nullptr);
  munmap(page, 4096);
  EXPECT_EQ(offered_at_fault, 0u) << "counted before the bytes are there";
  EXPECT_EQ(all, 0);
}

// Else one process would leave a round that the others finish.
TEST(MemoryExchange, TakesTheOfferThatAProcessMadeBeforeItEnded) {
  Memory memory(2);
  MemoryExchange ended(memory.start(), 1, 2, hardly_polls, nullptr);
  Hook hook;
  hook.call = [&] {
    const int last = 7;
    std::array<int, 2> seen{};
    EXPECT_TRUE(ended.gather(&last, seen.data(), sizeof last).ok());
    return Status::process_failed(1, "rank 1 has died");
  };
  MemoryExchange exchange(memory.start(), 0, 2, hardly_polls, &hook);
  int mine = 1;
  std::array<int, 2> all{};
  EXPECT_TRUE(exchange.gather(&mine, all.data(), sizeof mine).ok());
  EXPECT_EQ(all[1], 7);
}

TEST(MemoryExchange, EndsWithTheErrorOfItsWait) {
  Memory memory(2);
  Hook hook;
  int calls = 0;
  hook.call = [&] {
    ++calls;
    return Status::process_failed(1, "rank 1 has died");
  };
  MemoryExchange exchange(memory.start(), 0, 2, hardly_polls, &hook);
  int mine = 1;
  std::array<int, 2> all{};
  const Status gathered = exchange.gather(&mine, all.data(), sizeof mine);
  EXPECT_EQ(gathered.code(), Code::process_failed);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(exchange.broadcast(&mine, sizeof mine, 0).code(), Code::process_failed);
  EXPECT_FALSE(exchange.all(true));
  EXPECT_EQ(calls, 1) << "no round follows the error";
  EXPECT_EQ(exchange.broken().code(), Code::process_failed);
  Collective all_of(exchange);
  EXPECT_FALSE(all_of.attempt([] { return Status(); }));
  EXPECT_EQ(all_of.done().status().code(), Code::process_failed) << "an attempt does not tell";
  const Agreed step = all_of.step({}, [] { return Status(); });
  EXPECT_EQ(step.status().code(), Code::process_failed) << "not that another process failed";
}

}  // namespace
}  // namespace tombolo::runtime
