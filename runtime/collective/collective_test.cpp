// SPDX-License-Identifier: Apache-2.0
// Purpose: processes go on together or stop together (CL1 to CL3).
#include "runtime/collective/collective.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <string>

#include "runtime/testing/thread_exchange.h"

namespace tombolo::runtime {
namespace {

using testing::Failure;
using testing::run_together;
using testing::ThreadExchange;
using All = Collective<ThreadExchange>;

// CL1: an error that only this process has met does not leave a function that returns Agreed.
static_assert(!std::is_constructible_v<Agreed, Status>);
static_assert(!std::is_convertible_v<Status, Agreed>);
static_assert(!std::is_default_constructible_v<Agreed>);

constexpr int size = 3;

TEST(Collective, GoesOnWhereAllStepsGoWell) {
  EXPECT_TRUE(run_together(size, {}, [](ThreadExchange& exchange) {
    All all(exchange);
    std::vector<int> ranks(size, -1);
    all.gather(exchange.rank(), std::span(ranks));
    EXPECT_EQ(ranks, (std::vector{0, 1, 2}));
    int from_last = exchange.rank();
    all.broadcast(from_last, size - 1);
    EXPECT_EQ(from_last, size - 1);
    EXPECT_TRUE(all.step({}, [] { return Status(); }).ok());
    EXPECT_TRUE(all.all(true));
    EXPECT_TRUE(all.attempt([] { return Status(); }));
    EXPECT_TRUE(all.done().ok());
  }));
}

TEST(Collective, AFailureAnywhereIsAFailureEverywhere) {
  for (int failing = 0; failing < size; ++failing)
    EXPECT_TRUE(run_together(size, {}, [failing](ThreadExchange& exchange) {
      All all(exchange);
      const Agreed done = all.step({Code::no_memory, "elsewhere"}, [&] {
        return exchange.rank() == failing ? Status::unsupported("here") : Status();
      });
      EXPECT_FALSE(done.ok());
      const bool here = exchange.rank() == failing;
      EXPECT_EQ(done.status().message(), here ? "here" : "elsewhere");
      EXPECT_EQ(done.status().code(), here ? Code::unsupported : Code::no_memory);
      EXPECT_EQ(done.own(), here);
      EXPECT_FALSE(all.all(exchange.rank() != failing));
      EXPECT_FALSE(
          all.attempt([&] { return exchange.rank() == failing ? Status::io("tried") : Status(); }));
      EXPECT_TRUE(all.all(true)) << "a question that was answered with no is over";
    }));
}

TEST(Collective, WantOfMemoryIsAFailureLikeOthers) {
  EXPECT_TRUE(run_together(size, {}, [](ThreadExchange& exchange) {
    All all(exchange);
    const Agreed done = all.step({Code::no_memory, "elsewhere"}, [&]() -> Status {
      if (exchange.rank() == 1) throw std::bad_alloc();
      return {};
    });
    EXPECT_EQ(done.status().code(), Code::no_memory);
    EXPECT_FALSE(all.attempt([&]() -> Status {
      if (exchange.rank() == 2) throw std::bad_alloc();
      return {};
    }));
  }));
}

// An exchange whose gather and broadcast fail at one process.
class Unreliable {
 public:
  Unreliable(ThreadExchange& exchange, bool fails) : exchange_(exchange), fails_(fails) {}
  int rank() const { return exchange_.rank(); }
  int size() const { return exchange_.size(); }
  Status gather(const void* mine, void* everyones, std::size_t bytes) {
    TOMBOLO_TRY(exchange_.gather(mine, everyones, bytes));
    return fails_ ? Status::io("gather") : Status();
  }
  Status broadcast(void* data, std::size_t bytes, int root) {
    TOMBOLO_TRY(exchange_.broadcast(data, bytes, root));
    return fails_ ? Status::io("broadcast") : Status();
  }
  bool all(bool yes) { return exchange_.all(yes); }

 private:
  ThreadExchange& exchange_;
  bool fails_;
};

TEST(Collective, AFailedExchangeEndsTheNextStepBeforeItBegins) {
  for (const bool gathers : {true, false})
    EXPECT_TRUE(run_together(size, {}, [gathers](ThreadExchange& exchange) {
      const bool fails = exchange.rank() == 1;
      Unreliable unreliable(exchange, fails);
      Collective<Unreliable> all(unreliable);
      std::vector<int> ranks(size);
      int value = 0;
      if (gathers)
        all.gather(exchange.rank(), std::span(ranks));
      else
        all.broadcast(value, 0);
      bool begun = false;
      const Agreed done = all.step({}, [&] {
        begun = true;
        return Status();
      });
      EXPECT_FALSE(done.ok());
      EXPECT_EQ(begun, !fails);
      if (fails) {
        EXPECT_EQ(done.status().message(), gathers ? "gather" : "broadcast");
      }
      EXPECT_TRUE(all.step({}, [] { return Status(); }).ok()) << "it is told once";
    }));
}

TEST(Collective, TextsOfAnyLengthAreBroadcast) {
  EXPECT_TRUE(run_together(size, {}, [](ThreadExchange& exchange) {
    All all(exchange);
    std::string text(100 * static_cast<std::size_t>(exchange.rank()), 'a');
    all.broadcast(text, 2);
    EXPECT_EQ(text, std::string(200, 'a'));
    all.broadcast(text = exchange.rank() == 1 ? "" : "longer", 1);
    EXPECT_EQ(text, "");
    EXPECT_TRUE(all.step({}, [] { return Status(); }).ok());
  }));
}

TEST(Collective, ATextWhoseLengthIsNotToldEndsTheNextStep) {
  EXPECT_TRUE(run_together(size, {}, [](ThreadExchange& exchange) {
    Unreliable unreliable(exchange, exchange.rank() == 1);
    Collective<Unreliable> all(unreliable);
    std::string text(exchange.rank() == 0 ? 1000 : 0, 'a');
    all.broadcast(text, 0);
    if (exchange.rank() != 0) {
      EXPECT_EQ(text, std::string(1000, '\0')) << "none exchanges it";
    }
    const Agreed done = all.step({}, [] { return Status(); });
    EXPECT_FALSE(done.ok());
    EXPECT_EQ(done.own(), exchange.rank() == 1);
  }));
}

TEST(Collective, AnUnpairedCallIsFoundByTheTestsExchange) {
  EXPECT_FALSE(run_together(size, {}, [](ThreadExchange& exchange) {
    All all(exchange);
    if (exchange.rank() != 0) all.all(true);
  }));
}

}  // namespace
}  // namespace tombolo::runtime
