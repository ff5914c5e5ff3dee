// SPDX-License-Identifier: Apache-2.0
// Purpose: tests the order of the steps by which a core enters and leaves by a bias: on a processor
// that the compiler has not been kept from, no schedule of threads would show a wrong one.
// Thread safety: -
#include "svp/places/biased_turns.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "machine/example_machine.h"
#include "machine/testing/ensemble.h"
#include "machine/testing/forwarding.h"

namespace tombolo::svp {
namespace {

std::string* noted = nullptr;

class Noting : public machine::testing::Forwarding<machine::example::Core> {
 public:
  using Forwarding::Forwarding;
  static bool fences_asymmetrically() { return true; }
  void fence_light() { *noted += "light "; }
  void fence_heavy() { *noted += "heavy "; }
  std::uint64_t load(Word word) {
    *noted += "load ";
    return Forwarding::load(word);
  }
  void store(Word word, std::uint64_t v) {
    *noted += "store ";
    Forwarding::store(word, v);
  }
  std::uint64_t exchange(Word word, std::uint64_t v) {
    *noted += "exchange ";
    return Forwarding::exchange(word, v);
  }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    *noted += "change ";
    return Forwarding::compare_exchange(word, expected, desired);
  }
};
using Turns = BiasedTurns<Noting>;

class Steps : public ::testing::Test {
 protected:
  static constexpr std::uint64_t bias = 3;
  static constexpr std::uint64_t turn = 2;
  static constexpr std::uint64_t other = 4;

  Steps() {
    noted = &noted_;
    core_.store(last_, bias);
    (void)took();
  }
  Noting::Word word(machine::Offset at) { return core_.word({0, at}); }
  bool enter() {
    return Turns::enter_by_bias(core_, last_, words_, bias, turn, next_, link_, claim_, await_,
                                drop_);
  }
  std::uint64_t leave() {
    return Turns::leave_by_bias(core_, last_, words_, turn, link_, claim_, await_, drop_);
  }
  std::uint64_t enter_other() {
    return Turns::enter(
        core_, last_, other, [this](std::uint64_t) { return words_; }, link_, claim_);
  }
  std::string took() { return std::exchange(noted_, {}); }

  machine::testing::Ensemble<Noting> cores_{{.cores = 1}};
  std::string noted_;
  Noting& core_ = cores_.core(0);
  Noting::Word last_ = word(1024);
  Turns::Bias words_{word(1032), word(1040)};
  std::uint64_t next_ = 9;
  std::function<Noting::Word(std::uint64_t)> link_ = [this](std::uint64_t of) {
    return word(1056 + 8 * of);
  };
  std::function<Noting::Word(std::uint64_t)> claim_ = [this](std::uint64_t of) {
    return word(1152 + 8 * of);
  };
  std::function<void(Noting::Word)> await_ = [](Noting::Word) {};
  std::function<void(std::uint64_t)> drop_ = [](std::uint64_t) {};
};

TEST_F(Steps, OfTheBiasedCoreHaveTheFenceBetweenItsStoreAndItsLook) {
  EXPECT_TRUE(enter());
  EXPECT_EQ(next_, 0u);
  EXPECT_EQ(took(), "load store light load ");
  EXPECT_EQ(leave(), 0u);
  EXPECT_EQ(took(), "store light load ");
}

TEST_F(Steps, OfTheCoreThatTakesTheBiasAwayHaveItBetweenItsExchangeAndItsLook) {
  EXPECT_EQ(enter_other(), 0u);
  EXPECT_EQ(took(), "exchange heavy load store ");
}

TEST_F(Steps, OfALateLeaveHaveItBeforeTheSecondLook) {
  EXPECT_TRUE(enter());
  EXPECT_EQ(enter_other(), turn);
  (void)took();
  EXPECT_EQ(leave(), other);
  EXPECT_EQ(took(), "store light load heavy change exchange exchange ");
}

}  // namespace
}  // namespace tombolo::svp
