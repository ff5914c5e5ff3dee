// SPDX-License-Identifier: Apache-2.0
// A window uses the optional abilities of its machine (machine/optional.h), each as the concept
// says. All tests on machines that lack them show that it does without.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "machine/example_machine.h"
#include "windows/testing/process_on.h"

namespace tombolo::windows::testing {
namespace {

using machine::DataPlace;

struct Calls {
  std::atomic<int> settle, several_threads, store_alone, view, publish_written, close, hand_back,
      told;
  std::atomic<std::uint64_t> site;
};
Calls calls;

struct Losses {
  bool clean() const { return true; }
  std::string report() const { return "something was lost\n"; }
};

// The example, with all that can be counted.
class Offering : public machine::example::Core {
 public:
  using Core::Core;
  using Core::view;
  void settle() { ++calls.settle; }
  void several_threads() { ++calls.several_threads; }
  void store_alone(Word word, std::uint64_t v) {
    ++calls.store_alone;
    store(word, v);
  }
  // Half of a region is out of reach.
  std::byte* view(DataPlace place, std::size_t bytes) {
    ++calls.view;
    return place.offset + bytes <= 64 ? Core::view(place) : nullptr;
  }
  void set_site(std::uint64_t site) { calls.site = site; }
  void check_promise(machine::Promise) {}
  void close() { ++calls.close; }
  std::vector<machine::LossFact> take_losses() { return {{.bytes = 17}}; }
  void losses_told() { ++calls.told; }
  bool has_mistakes() { return true; }
  const Losses& findings() const { return losses_; }

 private:
  Losses losses_;
};
// The same, where there is something to publish.
class OfferingIncoherent : public Offering {
 public:
  static constexpr machine::Properties properties{.name = "offering, incoherent",
                                                  .coherent = false,
                                                  .native_atomics = machine::Atomics::full,
                                                  .line_bytes = 64};
  using Offering::Offering;
  void publish(DataPlace, std::size_t bytes) { EXPECT_LT(bytes, data_bytes(0)) << "of all"; }
  void publish_written(Home) { ++calls.publish_written; }
};

// Its attachment names the program's memory.
struct AttachmentWithView : machine::Attachment {
  std::byte* own_view = nullptr;
};
class KeepingViews : public machine::example::Core {
 public:
  using Attachment = AttachmentWithView;
  explicit KeepingViews(const Attachment& at) : Core(at) {}
  void hand_back() { ++calls.hand_back; }
};

class OptionalTest : public ::testing::Test {
 protected:
  OptionalTest() {
    for (auto* count : {&calls.settle, &calls.several_threads, &calls.store_alone, &calls.view,
                        &calls.publish_written, &calls.close, &calls.hand_back, &calls.told})
      *count = 0;
  }
};

TEST_F(OptionalTest, StoresAreSettledAtTheEndOfACall) {
  run_once_with_own_engine<Offering>({.processes = 1}, {}, [](Process& p) {
    const int before = calls.settle;
    p.lock_all();
    EXPECT_EQ(calls.settle, before + 1);
    p.unlock_all();
    EXPECT_EQ(calls.settle, before + 2);
  });
}

TEST_F(OptionalTest, TheMachineIsToldOfSeveralThreadsOnly) {
  run_once_with_own_engine<Offering>({.processes = 1}, {}, [](Process&) {});
  EXPECT_EQ(calls.several_threads, 0);
  run_once_with_own_engine<Offering>({.processes = 1, .options = {.threads = true}}, {},
                                     [](Process&) {});
  EXPECT_EQ(calls.several_threads, 1);
  run_once_with_own_engine<Offering>({.processes = 1, .options = {.threads_in_turn = true}}, {},
                                     [](Process&) {});
  EXPECT_EQ(calls.several_threads, 2) << "a drain is for the other threads' puts as well";
}

TEST_F(OptionalTest, WordsWithoutAtomicsAreStoredAlone) {
  run_once_with_own_engine<Offering>({.processes = 2}, {}, [](Process& p) { p.barrier(); });
  EXPECT_GT(calls.store_alone, 0);
}

// Only the ranged view is counted, and says that the second element is out of reach.
TEST_F(OptionalTest, UpdatesAskForAllOfTheirRange) {
  run_once_with_own_engine<Offering>({.processes = 1}, {}, [](Process& p) {
    const int two[2] = {1, 2};
    p.lock_all();
    p.accumulate(0, 60, Op::sum, Element::i32, two, 2);
    EXPECT_EQ(p.get(0, 60), 1);
    EXPECT_EQ(p.get(0, 64), 2);
    p.unlock_all();
  });
  EXPECT_GT(calls.view, 0);
}

TEST_F(OptionalTest, WhatWasWrittenIsPublishedInThePlaceOfAll) {
  run_once_with_own_engine<OfferingIncoherent>({.processes = 1}, {}, [](Process& p) { p.sync(); });
  EXPECT_GT(calls.publish_written, 0);
}

TEST_F(OptionalTest, TheMachineIsToldOfTheCloseAndTellsLosses) {
  run_once_with_own_engine<Offering>({.processes = 1}, {}, [](Process& p) {
    p.window().set_site(4711);
    EXPECT_EQ(calls.site, 4711u);
    EXPECT_EQ(calls.close, 0);
    p.window().close();
    EXPECT_EQ(calls.close, 1);
    const auto losses = p.window().take_losses();
    ASSERT_EQ(losses.size(), 1u);
    EXPECT_EQ(losses[0].bytes, 17u);
    p.window().losses_told();
    EXPECT_EQ(calls.told, 1);
    EXPECT_TRUE(p.window().has_mistakes());
  });
}

TEST_F(OptionalTest, AViewThatIsAMachinesOwnIsHandedBack) {
  run_once_with_own_engine<KeepingViews>({.processes = 1}, {}, [](Process& p) {
    p.window().close();
    EXPECT_EQ(calls.hand_back, 0);
    p.window().hand_back();
    EXPECT_EQ(calls.hand_back, 1);
  });
}

TEST_F(OptionalTest, AMachineThatOffersNothingIsNotAsked) {
  run_once_with_own_engine<machine::example::Core>({.processes = 1}, {}, [](Process& p) {
    p.window().set_site(4711);
    p.window().close();
    p.window().hand_back();
    EXPECT_TRUE(p.window().take_losses().empty());
    EXPECT_FALSE(p.window().has_mistakes());
  });
}

}  // namespace
}  // namespace tombolo::windows::testing
