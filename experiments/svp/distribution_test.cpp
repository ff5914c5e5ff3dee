// SPDX-License-Identifier: Apache-2.0
// Purpose: remote create and sync on simulated cores: each way to communicate brings arrays
// there and back; the flush at create is needed, and so is the request to sync.
#include "experiments/svp/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "experiments/common/measure.h"
#include "experiments/common/testing.h"
#include "experiments/svp/ping_pong.h"

namespace tombolo::experiments {
namespace {

using scc::View;
using simulator::CoreId;
using simulator::Duration;

std::uint64_t wrong_words(PingPong what) {
  what.change = true;
  PingPongResult result;
  const Status status = ping_pong(test_context(), what, &result);
  EXPECT_TRUE(status.ok()) << status.message();
  return result.wrong_words;
}

class EachScheme : public ::testing::TestWithParam<Scheme> {};
INSTANTIATE_TEST_SUITE_P(Schemes, EachScheme, ::testing::ValuesIn(all_schemes),
                         [](const auto& scheme) {
                           std::string name = name_of(scheme.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A second round finds the lines and bytes of the first in caches and buffers.
TEST_P(EachScheme, BringsArraysThereAndBack) {
  for (const std::uint64_t bytes : {4u, 64u, 100u, 4096u, 20'000u, 300'000u})
    EXPECT_EQ(wrong_words({.scheme = GetParam(), .bytes = bytes, .times = 1}), 0u) << bytes;
}

TEST_P(EachScheme, TakesTheSameTimeAgain) {
  PingPongResult first;
  PingPongResult second;
  const PingPong what{.scheme = GetParam(), .bytes = 4096, .times = 1};
  ASSERT_TRUE(ping_pong(test_context(), what, &first).ok());
  ASSERT_TRUE(ping_pong(test_context(), what, &second).ok());
  EXPECT_EQ(first.run.digest, second.run.digest);
}

// ---- Consistency at create and sync -------------------------------------------------------------

TEST(SharedMemory, RemappingWithoutTheFlushReadsStaleBytes) {
  const PingPong what{.scheme = Scheme::remapping, .bytes = 8192, .times = 1};
  PingPong broken = what;
  broken.care.publish = false;
  EXPECT_EQ(wrong_words(what), 0u);
  EXPECT_GT(wrong_words(broken), 0u);
}

TEST(SharedMemory, CopyCoresNeedTheFlushOfTheSender) {
  const PingPong what{.scheme = Scheme::copy_cores, .bytes = 8192, .times = 1};
  PingPong broken = what;
  broken.care.publish = false;
  EXPECT_EQ(wrong_words(what), 0u);
  EXPECT_GT(wrong_words(broken), 0u);
}

// ---- Activity -----------------------------------------------------------------------------------

PingPongResult measured(Scheme scheme, std::uint64_t bytes) {
  PingPongResult result;
  EXPECT_TRUE(
      ping_pong(test_context(), {.scheme = scheme, .bytes = bytes, .times = 1}, &result).ok());
  return result;
}

TEST(Activity, HasTheBytesThatAreSent) {
  EXPECT_EQ(measured(Scheme::direct, 4096).meanwhile.sent_bytes, 2 * 4096u);
  EXPECT_EQ(measured(Scheme::remapping, 4096).meanwhile.sent_bytes, 2 * 8u);  // addresses
  // The function and its value there, a code back; each a word beside the array.
  EXPECT_EQ(measured(Scheme::original, 4096).meanwhile.sent_bytes, 2 * 4096u + 3 * 8);
}

TEST(Activity, HasTheFlushesAndMappingsOfRemapping) {
  const PingPongResult remapping = measured(Scheme::remapping, 4096);
  EXPECT_GT(remapping.meanwhile.flushing, Duration::milliseconds(3));  // Table 2.2: 1.6 ms each
  EXPECT_LT(remapping.meanwhile.flushing + remapping.meanwhile.mapping, remapping.shortest);
  EXPECT_GT(remapping.meanwhile.mapping, Duration());
  EXPECT_LT(remapping.meanwhile.mapping, Duration::microseconds(10));
  const PingPongResult direct = measured(Scheme::direct, 4096);
  EXPECT_EQ(direct.meanwhile.flushing + direct.meanwhile.mapping, Duration());
}

// ---- The sequence of 002 section 5.2.2 ----------------------------------------------------------

// Two families at one place, which compute so long; the first is synced last.
struct Two {
  std::uint64_t first_ms = 1;
  std::uint64_t second_ms = 30;
  std::int64_t between_ms = 0;  // of the creates
};
Status create_two_and_sync_the_last_first(Scheme scheme, bool asks, const Two& two = {},
                                          Activity* there = nullptr) {
  const Context context = test_context();
  simulator::Options options = options_of(context);
  options.time_limit = simulator::Time::after_start(Duration::milliseconds(500));
  scc::Chip chip(context.chip, options);
  const Function waits{.scalars = 1,
                       .describe = [](const Scalars&) { return std::vector<Shape>(); },
                       .run =
                           [](Node& node, const Scalars& scalars, const Arrays&) {
                             const auto ms = static_cast<std::int64_t>(scalars[0]);
                             node.system().compute(Duration::milliseconds(ms));
                             return Status();
                           }};
  Distribution svp(chip, {.scheme = scheme, .cores = {CoreId(0), CoreId(2)}, .asks = asks},
                   {waits});
  return svp.run([&](Node& master) {
    Family first;
    Family second;
    TOMBOLO_TRY(master.create(CoreId(2), {.scalars = {two.first_ms}}, &first));
    master.system().compute(Duration::milliseconds(two.between_ms));
    TOMBOLO_TRY(master.create(CoreId(2), {.scalars = {two.second_ms}}, &second));
    TOMBOLO_TRY(master.sync(second));
    TOMBOLO_TRY(master.sync(first));
    if (there != nullptr) *there = svp.node(CoreId(2)).activity(master.system().now());
    return Status();
  });
}

// The core does one of them at a time; the time in which threads of both are in functions counts
// once.
TEST(Activity, HasTheTimeInFunctionsOnce) {
  Activity there;
  const Two two{.first_ms = 30, .second_ms = 30, .between_ms = 10};
  EXPECT_TRUE(create_two_and_sync_the_last_first(Scheme::direct, true, two, &there).ok());
  EXPECT_GE(there.running, Duration::milliseconds(60));
  EXPECT_LT(there.running, Duration::milliseconds(65));
  EXPECT_GT(there.idle, Duration());
}

TEST(Sync, OfTwoFamiliesAtOnePlaceInEitherOrder) {
  for (const Scheme scheme : {Scheme::original, Scheme::direct, Scheme::buffers}) {
    const Status status = create_two_and_sync_the_last_first(scheme, true);
    EXPECT_TRUE(status.ok()) << name_of(scheme) << ": " << status.message();
  }
}

TEST(Sync, ThatNothingAskedForBlocksTheBufferForEver) {
  const Status status = create_two_and_sync_the_last_first(Scheme::buffers, false);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("limit"), std::string::npos) << status.message();
}

// ---- Mistakes and limits ------------------------------------------------------------------------

TEST(Distribution, NamesACoreThatIsNotThere) {
  const Status status = Distribution::fits(test_context().chip, {.cores = {CoreId(0), CoreId(48)}});
  EXPECT_EQ(status.code(), Code::bad_configuration);
  EXPECT_NE(status.message().find("core 48 of 48"), std::string::npos) << status.message();
}

TEST(Distribution, EndsWhereARemotePlaceHasNoMemory) {
  const Context context = test_context();
  scc::Chip chip(context.chip, options_of(context));
  const Function large{.scalars = 0,
                       .describe =
                           [](const Scalars&) {
                             return std::vector<Shape>{{false, true, {std::uint64_t{1} << 27, 8}}};
                           },
                       .run = [](Node&, const Scalars&, const Arrays&) { return Status(); }};
  Distribution svp(chip, {.scheme = Scheme::direct, .cores = {CoreId(0), CoreId(2)}}, {large});
  const Status status = svp.run([](Node& master) {
    Family family;
    TOMBOLO_TRY(master.create(CoreId(2), {.arrays = {View{}}}, &family));
    return master.sync(family);
  });
  EXPECT_EQ(status.code(), Code::no_memory) << status.message();
}

}  // namespace
}  // namespace tombolo::experiments
