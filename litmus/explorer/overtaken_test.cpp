// SPDX-License-Identifier: Apache-2.0
// Purpose: which operations a drain and a publish come before at the latest, where loads overtake
// them, and that nothing else does.
// Thread safety: -
#include "litmus/explorer/overtaken.h"

#include <gtest/gtest.h>

#include <string>

#include "windows/testing/recorder.h"

namespace tombolo::litmus {
namespace {

using windows::testing::RecordedCore;
using windows::testing::Recorder;
using Core = Overtaken<RecordedCore>;

// The operations of a body, in the order in which they are carried out. Loads are not noted.
template <class Body>
std::string order_of(Body&& body) {
  Recorder recorder({.cores = 2, .sync_bytes = 64, .data_bytes = 192});
  recorder.allow_pauses(1);
  Core core(recorder.attachment(0));
  body(core);
  return recorder.take();
}

constexpr machine::DataPlace line{1, 0};
constexpr machine::DataPlace next_line{1, 64};
constexpr std::uint64_t number = 1;

// A drain and a publish, and an operation behind a load.
template <class Operation>
std::string order_before(Operation&& operation) {
  return order_of([&](Core& core) {
    core.drain();
    core.publish({1, 60}, 8);
    (void)core.load(0);
    operation(core);
  });
}

TEST(Overtaken, DrainsAndPublishesComeBeforeWhatTheyHoldBack) {
  const std::string both = "0:drain 0:publish(1,60,8)";
  EXPECT_EQ(order_before([](Core&) {}), "") << "the load overtakes them";
  EXPECT_EQ(order_before([](Core& core) { core.store(0, 1); }), both + " 0:store");
  EXPECT_EQ(order_before([](Core& core) { core.fetch_add(0, 1); }), both + " 0:atomic");
  EXPECT_EQ(order_before([](Core& core) { core.exchange(0, 1); }), both + " 0:atomic");
  EXPECT_EQ(order_before([](Core& core) { core.compare_exchange(0, 0, 1); }), both + " 0:atomic");
  EXPECT_EQ(order_before([](Core& core) { core.fence(); }), both + " 0:fence");
  EXPECT_EQ(order_before([](Core& core) { EXPECT_TRUE(core.pause(1).ok()); }), both);
  EXPECT_EQ(order_before([](Core& core) {
              EXPECT_TRUE(core.wait_until(0, [](std::uint64_t v) { return v == 0; }).ok());
            }),
            both);
  EXPECT_EQ(order_before([](Core& core) { core.store(0, 1), core.store(0, 2); }),
            both + " 0:store 0:store")
      << "once";
}

// On a machine that has them.
TEST(Overtaken, DrainsAndPublishesComeBeforeAsymmetricFences) {
  class Asymmetric : public machine::testing::Forwarding<RecordedCore> {
   public:
    using Forwarding::Forwarding;
    static bool fences_asymmetrically() { return true; }
    void fence_light() {}
    void fence_heavy() { fence(); }
  };
  const auto after = [](auto&& operation) {
    Recorder recorder({.cores = 2, .sync_bytes = 64, .data_bytes = 192});
    Overtaken<Asymmetric> core(recorder.attachment(0));
    core.publish(line, 8);
    operation(core);
    return recorder.take();
  };
  EXPECT_EQ(after([](auto& core) { core.fence_light(); }), "0:publish(1,0,8)");
  EXPECT_EQ(after([](auto& core) { core.fence_heavy(); }), "0:publish(1,0,8) 0:fence");
}

TEST(Overtaken, ReadsAndWritesOvertakeThem) {
  std::uint64_t v = 0;
  EXPECT_EQ(order_before([&](Core& core) {
              EXPECT_TRUE(core.read(line, &v, 8).ok());
              EXPECT_TRUE(core.write(line, &v, 8).ok());
            }),
            "0:read(1,0,8) 0:write(1,0,8)");
}

TEST(Overtaken, WriteThroughsComeBehindEarlierDrainsOnly) {
  const auto writes = [](Core& core) { EXPECT_TRUE(core.write_through(line, &number, 8).ok()); };
  EXPECT_EQ(order_of([&](Core& core) { core.drain(), writes(core); }),
            "0:drain 0:write_through(1,0,8)");
  EXPECT_EQ(order_of([&](Core& core) { core.publish(line, 8), writes(core); }),
            "0:write_through(1,0,8)");
}

TEST(Overtaken, RefreshesLoseNothingThatIsPublished) {
  const auto after_publish = [](machine::DataPlace place, std::size_t bytes) {
    return order_of([&](Core& core) {
      core.publish({1, 60}, 8);  // parts of two lines
      core.refresh(place, bytes);
    });
  };
  EXPECT_EQ(after_publish(line, 1), "0:publish(1,60,8) 0:refresh(1,0,1)");
  EXPECT_EQ(after_publish({1, 127}, 1), "0:publish(1,60,8) 0:refresh(1,127,1)");
  EXPECT_EQ(after_publish({1, 128}, 1), "0:refresh(1,128,1)") << "another line";
  EXPECT_EQ(after_publish({0, 0}, 128), "0:refresh(0,0,128)") << "another home";
  EXPECT_EQ(after_publish(next_line, 0), "0:refresh(1,64,0)") << "no byte";
}

}  // namespace
}  // namespace tombolo::litmus
