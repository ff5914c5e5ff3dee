// SPDX-License-Identifier: Apache-2.0
// The order in which a window uses its machine: looks at words that could overtake its puts (R3).
#include <gtest/gtest.h>

#include <string>

#include "machine/example_machine.h"
#include "windows/testing/process_on.h"

namespace tombolo::windows::testing {
namespace {

// Operations of this thread's core, a letter each, as long as it records.
thread_local std::string* recorded = nullptr;

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
    ASSERT_NE(order.find('l'), std::string::npos) << order;
    EXPECT_LT(order.find('f'), order.find('l')) << order;
  });
}

}  // namespace
}  // namespace tombolo::windows::testing
