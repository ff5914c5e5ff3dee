// SPDX-License-Identifier: Apache-2.0
// Purpose: the answers of an exchange over sockets, and its errors once a process has left. Threads
// stand for the processes.
#include "runtime/collective/socket_exchange.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "runtime/collective/exchange.h"
#include "runtime/testing/exchange_answers.h"

namespace tombolo::runtime {
namespace {

static_assert(Exchange<SocketExchange>);

// body(exchange) of each process in a thread of its own; with its end the process leaves.
template <class Body>
void run(int size, Body&& body) {
  std::vector<SocketExchange::Ends> ends;
  ASSERT_TRUE(SocketExchange::make(size, ends).ok());
  std::vector<std::thread> processes;
  for (int rank = 0; rank < size; ++rank)
    processes.emplace_back([&, rank] {
      SocketExchange exchange(rank, size, std::move(ends[static_cast<std::size_t>(rank)]));
      body(exchange);
    });
  for (std::thread& process : processes) process.join();
}

TEST(SocketExchange, HasAStreamBetweenTheFirstAndEachOtherProcess) {
  std::vector<SocketExchange::Ends> ends;
  ASSERT_TRUE(SocketExchange::make(4, ends).ok());
  ASSERT_EQ(ends.size(), 4u);
  EXPECT_EQ(ends[0].size(), 3u);
  for (std::size_t rank = 1; rank < 4; ++rank) EXPECT_EQ(ends[rank].size(), 1u);
  for (const auto& all : ends)
    for (const auto& end : all)
      EXPECT_NE(fcntl(end.get(), F_GETFD) & FD_CLOEXEC, 0) << "not for programs that are started";
  ASSERT_TRUE(SocketExchange::make(1, ends).ok());
  EXPECT_EQ(ends.size(), 1u);
  EXPECT_TRUE(ends[0].empty());
}

TEST(SocketExchange, TellsEachProcessTheSame) {
  for (const int size : {1, 2, 5})
    run(size,
        [size](SocketExchange& exchange) { testing::expect_the_same_answers(exchange, size); });
}

TEST(SocketExchange, SendsMoreThanASocketHolds) {
  run(3, [](SocketExchange& exchange) {
    constexpr std::size_t n = 300'000;
    std::vector<std::uint32_t> mine(n);
    std::iota(mine.begin(), mine.end(), static_cast<std::uint32_t>(exchange.rank()) << 24);
    std::vector<std::uint32_t> all(3 * n);
    EXPECT_TRUE(exchange.gather(mine.data(), all.data(), n * sizeof mine[0]).ok());
    for (std::size_t i = 0; i < all.size(); ++i)
      ASSERT_EQ(all[i], (i / n << 24) + i % n) << "at " << exchange.rank();
  });
}

TEST(SocketExchange, OfNoBytesIsAnExchange) {
  run(3, [](SocketExchange& exchange) {
    EXPECT_TRUE(exchange.gather(nullptr, nullptr, 0).ok());
    EXPECT_TRUE(exchange.broadcast(nullptr, 0, 1).ok());
    EXPECT_TRUE(exchange.all(true));
  });
}

TEST(SocketExchange, TheFirstProcessNamesOneThatLeft) {
  run(4, [](SocketExchange& exchange) {
    if (exchange.rank() == 2) return;
    int value = 0;
    std::vector<int> all(4);
    const Status gathered = exchange.gather(&value, all.data(), sizeof value);
    EXPECT_EQ(gathered.code(), Code::process_failed);
    if (exchange.rank() == 0) {
      EXPECT_EQ(gathered.rank(), 2);
      EXPECT_EQ(gathered.message(), "process 2 has left");
    } else {
      EXPECT_EQ(gathered.rank(), 0) << "it gave up, so that the others wait for nothing";
    }
    // The fault stays.
    EXPECT_EQ(exchange.broadcast(&value, sizeof value, 0).message(), gathered.message());
    EXPECT_FALSE(exchange.all(true));
  });
}

TEST(SocketExchange, ToldToOneThatLeftIsAFaultAndNoSignal) {
  std::vector<SocketExchange::Ends> ends;
  ASSERT_TRUE(SocketExchange::make(3, ends).ok());
  ends[1].clear();
  SocketExchange first(0, 3, std::move(ends[0]));
  SocketExchange last(2, 3, std::move(ends[2]));
  int value = 9;
  const Status told = first.broadcast(&value, sizeof value, 0);
  EXPECT_EQ(told.code(), Code::process_failed);
  EXPECT_EQ(told.rank(), 1);
  EXPECT_TRUE(told.message().starts_with("process 1 has left: ")) << told.message();
  EXPECT_FALSE(last.all(true)) << "of a stream that the first one closed";
  EXPECT_EQ(last.gather(&value, &value, sizeof value).rank(), 0);
}

}  // namespace
}  // namespace tombolo::runtime
