// SPDX-License-Identifier: Apache-2.0
// The order in which a window uses its machine: looks at words that could overtake its puts (R3),
// and the guard of the state that tells of puts.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "machine/example_machine.h"
#include "windows/testing/process_on.h"

namespace tombolo::windows::testing {
namespace {

// Operations of this thread's core, a letter each, as long as it records.
thread_local std::string* recorded = nullptr;
// Called once, at the next load of a word by any core.
std::function<void()> at_load;
std::atomic<bool> armed{false};

class Recording : public machine::example::Core {
 public:
  static constexpr machine::Properties properties{.name = "recording",
                                                  .coherent = false,
                                                  .native_atomics = machine::Atomics::full,
                                                  .line_bytes = 64};
  using Core::Core;
  void drain() {
    note('d');
    Core::drain();
  }
  void fence() {
    note('f');
    Core::fence();
  }
  std::uint64_t load(Word word) {
    note('l');
    if (armed.exchange(false)) at_load();
    return Core::load(word);
  }
  void store(Word word, std::uint64_t v) {
    note('s');
    Core::store(word, v);
  }

 private:
  static void note(char operation) {
    if (recorded != nullptr) *recorded += operation;
  }
};

template <class Call>
std::string order_of(Call&& call) {
  std::string order;
  recorded = &order;
  call();
  recorded = nullptr;
  return order;
}

// A drain, a fence, and only then the look whether the target has been told.
void expect_fence_before_look(const std::string& order) {
  const auto drained = order.find('d');
  const auto looked = order.find('l');
  ASSERT_NE(drained, std::string::npos) << order;
  ASSERT_NE(looked, std::string::npos) << order;
  const auto fenced = order.find('f', drained);
  EXPECT_LT(fenced, looked) << order;
}

TEST(OrderTest, TheLookWhetherATargetWasToldComesBehindTheDrain) {
  run_once_with_own_engine<Recording>({.processes = 2}, {}, [](Process& p) {
    const bool origin = p.self() == 0;
    if (origin) {
      p.lock_all();
      p.put(1, 0, 1);
      expect_fence_before_look(order_of([&] { p.flush(1); }));
      p.put(1, 0, 2);
      expect_fence_before_look(order_of([&] { p.flush_all(); }));
      p.put(1, 0, 3);
      expect_fence_before_look(order_of([&] { p.unlock_all(); }));
      p.lock_shared(1);
      p.put(1, 0, 4);
      expect_fence_before_look(order_of([&] { p.unlock(1); }));
    }
    p.fence();
    if (origin) {
      p.put(1, 0, 5);
      expect_fence_before_look(order_of([&] { p.fence({.no_succeed = true}); }));
      p.start({1});
      p.put(1, 0, 6);
      expect_fence_before_look(order_of([&] { p.complete(); }));
    } else {
      p.fence({.no_succeed = true});
      p.post({0});
      p.wait();
    }
  });
}

TEST(OrderTest, SyncLooksForPutsBehindThePublish) {
  run_once_with_own_engine<Recording>({.processes = 1}, {}, [](Process& p) {
    const std::string order = order_of([&] { p.sync(); });
    EXPECT_LT(order.find('f'), order.find('l')) << order;
  });
}

// A put of another thread while this one tells the targets: it must not change the list of them.
void expect_puts_to_wait(Process& p, const std::function<void()>& call) {
  std::thread other;
  std::atomic<bool> done{false};
  bool done_meanwhile = true;
  at_load = [&] {
    other = std::thread([&] {
      const int value = 7;
      (void)p.window().put(1, 8, &value, sizeof value).ok();  // perhaps behind the epoch's end
      done = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    done_meanwhile = done;
  };
  armed = true;
  call();
  other.join();
  EXPECT_FALSE(done_meanwhile);
}

TEST(OrderTest, TargetsAreToldUnderTheGuardOfTheEpochs) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the put comes behind the end of its epoch, which the sanitizer tells";
#endif
  const World world{.processes = 2, .options = {.threads = true}};
  run_once_with_own_engine<Recording>(world, {}, [](Process& p) {
    if (p.self() == 1) {
      p.post({0});
      p.wait();
      return;
    }
    p.start({1});
    p.put(1, 0, 1);
    expect_puts_to_wait(p, [&] { p.complete(); });
  });
}

// The first look of the fence is the one at the flag: nothing else is loaded before the barrier.
TEST(OrderTest, AFenceTellsTheTargetsUnderTheGuardOfTheEpochs) {
  const World world{.processes = 2, .options = {.threads = true}};
  run_once_with_own_engine<Recording>(world, {}, [](Process& p) {
    static std::atomic<bool> other_may_go{false};
    other_may_go = false;
    p.fence();
    p.barrier();
    if (p.self() == 0) {
      p.put(1, 0, 1);
      expect_puts_to_wait(p, [&] {
        other_may_go = true;
        p.fence();
      });
    } else {
      while (!other_may_go) p.pause();
      while (armed) p.pause();  // its loads are not those that are meant
      p.fence();
    }
  });
}

}  // namespace
}  // namespace tombolo::windows::testing
