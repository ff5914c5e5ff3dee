// SPDX-License-Identifier: Apache-2.0
// Fibres by themselves. Runs under the address and thread sanitizers as it is: the class tells them
// of each switch.
#include "host/fibres/fibre.h"

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tombolo::host {
namespace {

struct Flow {
  explicit Flow(Fibre& home_fibre, std::function<void()> what)
      : home(home_fibre), work(std::move(what)), fibre(std::size_t{64} * 1024, &Flow::body, this) {}
  static void body(void* self) {
    auto& flow = *static_cast<Flow*>(self);
    flow.work();
    flow.done = true;
    flow.fibre.finish(flow.home);
  }
  Fibre& home;
  std::function<void()> work;
  bool done = false;
  Fibre fibre;
};

TEST(Fibre, SwitchesBackAndForthAndToASibling) {
  Fibre main;
  std::string order;
  std::unique_ptr<Flow> b;
  Flow a(main, [&] {
    order += "a1 ";
    a.fibre.switch_to(b->fibre);
    order += "a2 ";
  });
  b = std::make_unique<Flow>(main, [&] {
    order += "b1 ";
    b->fibre.switch_to(main);
    order += "b2 ";
  });
  main.switch_to(a.fibre);
  order += "main ";
  main.switch_to(b->fibre);
  main.switch_to(a.fibre);
  EXPECT_EQ(order, "a1 b1 main b2 a2 ");
  EXPECT_TRUE(a.done && b->done);
}

TEST(Fibre, F3EachFibreHasItsOwnExceptions) {
  Fibre main;
  std::string caught;
  std::unique_ptr<Flow> b;
  Flow a(main, [&] {
    try {
      throw std::runtime_error("of a");
    } catch (const std::exception&) {
      a.fibre.switch_to(b->fibre);
      try {
        throw;
      } catch (const std::exception& e) {
        caught += e.what();
      }
    }
  });
  b = std::make_unique<Flow>(main, [&] {
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    EXPECT_EQ(std::current_exception(), nullptr);
    try {
      throw std::logic_error("of b");
    } catch (const std::exception&) {
      b->fibre.switch_to(a.fibre);
    }
  });
  main.switch_to(a.fibre);
  EXPECT_EQ(caught, "of a");
  main.switch_to(b->fibre);
  EXPECT_TRUE(b->done);
}

TEST(Fibre, ManyThreadsHaveFibresOfTheirOwn) {
  std::vector<std::thread> threads;
  std::vector<int> counts(4);
  for (int& count : counts) {
    threads.emplace_back([&count] {
      Fibre main;
      std::unique_ptr<Flow> flow;
      flow = std::make_unique<Flow>(main, [&] {
        for (int i = 0; i < 1000; ++i) {
          ++count;
          flow->fibre.switch_to(main);
        }
      });
      while (!flow->done) main.switch_to(flow->fibre);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counts, std::vector<int>(4, 1000));
}

int depth(int n, volatile char* above) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(n + above[0]);
  return n == 0 ? frame[0] : depth(n - 1, frame) + frame[0];
}

TEST(FibreDeathTest, F4AStackThatOverflowsStopsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Fibre main;
        Flow deep(main, [] {
          volatile char zero[1] = {0};
          depth(1000, zero);
        });
        main.switch_to(deep.fibre);
      },
      "");
}

}  // namespace
}  // namespace tombolo::host
