// SPDX-License-Identifier: Apache-2.0
// A writer among readers that wait for it.
#include "experiments/dht/dht.h"

#include <map>
#include <set>

#include "backends/scc/chip.h"
#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

class Dht : public ::testing::Test {
 protected:
  double time(const std::string& scheme, const std::string& readers, const std::string& bytes) {
    rows_.measure(dht(), fmt::format("{}-{}-{}", scheme, readers, bytes), test_context());
    return rows_.value(scheme + "/" + readers, bytes);
  }
  Rows rows_;
};

TEST_F(Dht, PutsOfMoreBytesTakeLongerByTheLine) {
  for (const char* scheme : {"gbh-back-off", "mcs-wp"}) {
    const double one = time(scheme, "0", "32");
    const double sixteen = time(scheme, "0", "512");
    const double all = time(scheme, "0", "1024");
    const double line = (sixteen - one) / 15;
    EXPECT_GT(line, 0.1) << scheme;
    EXPECT_NEAR((all - sixteen) / 16, line, 0.05 * line) << scheme;
  }
}

TEST_F(Dht, ReadersDelayTheWriter) {
  for (const char* scheme : {"gbh-back-off", "mcs-wp", "tombolo-best-effort"})
    EXPECT_GT(time(scheme, "47", "512"), time(scheme, "0", "512")) << scheme;
}

// They poll memory of their own controllers, where the writer's bytes do not go.
TEST_F(Dht, DistantReadersOfAQueueLeaveLongPutsAlone) {
  const double alone = time("mcs-wp", "0", "1024");
  EXPECT_LT(time("mcs-wp", "11-distant", "1024"), 1.3 * alone);
  EXPECT_GT(time("mcs-wp", "11-close", "1024"), 1.5 * alone);
}

TEST_F(Dht, IsMeasuredForEachSchemeReadersAndSize) {
  EXPECT_EQ(dht().points(test_context()).size(), 4u * 6 * 3);
}

TEST_F(Dht, RowsHaveQuartiles) {
  time("gbh-back-off", "1-close", "32");
  const Row& row = rows_.at("gbh-back-off/1-close", "32");
  ASSERT_TRUE(row.quartile1 && row.quartile3);
  EXPECT_LE(*row.quartile1, row.value);
  EXPECT_GE(*row.quartile3, row.value);
}

// ---- Where the readers are ----------------------------------------------------------------------

std::map<std::string, std::vector<std::uint32_t>> readers_by_name() {
  std::map<std::string, std::vector<std::uint32_t>> all;
  for (const DhtReaders& readers : dht_readers()) all[readers.name] = readers.cores;
  return all;
}

TEST(DhtReaders, AreAsManyAsTheirNameSays) {
  const auto all = readers_by_name();
  EXPECT_EQ(all.size(), 6u);
  for (const auto& [name, cores] : all) {
    const std::set<std::uint32_t> different(cores.begin(), cores.end());
    EXPECT_EQ(different.size(), std::stoul(name)) << name;
    EXPECT_EQ(different.count(0), 0u) << name;  // the writer's
    EXPECT_EQ(cores.size(), different.size()) << name;
  }
}

// 001 section 6.4: close ones on cores 0 to 5 and 12 to 17, distant ones on 6 to 11 and 18 to 23.
TEST(DhtReaders, AreInTheDomainThatTheirNameSays) {
  const Context context = test_context();
  const scc::Chip chip(context.chip);
  const auto domain = [&](std::uint32_t core) { return chip.controller_of(scc::CoreId(core)); };
  for (const auto& [name, cores] : readers_by_name())
    for (const std::uint32_t core : cores) {
      if (name.ends_with("-close")) {
        EXPECT_EQ(domain(core), domain(0)) << name << " " << core;
        EXPECT_TRUE(core <= 5 || (core >= 12 && core <= 17)) << core;
      }
      if (name.ends_with("-distant")) {
        EXPECT_NE(domain(core), domain(0)) << name << " " << core;
        EXPECT_TRUE((core >= 6 && core <= 11) || (core >= 18 && core <= 23)) << core;
      }
    }
}

TEST(DhtReaders, ThatAreCloseFillTheDomainBesideTheWriter) {
  EXPECT_EQ(readers_by_name().at("11-close"),
            (std::vector<std::uint32_t>{1, 2, 3, 4, 5, 12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(readers_by_name().at("47").front(), 1u);
  EXPECT_EQ(readers_by_name().at("47").back(), 47u);
}

TEST(DhtPoints, AreNamedAndSizedAsTheTable) {
  std::set<std::string> all;
  for (const Point& point : dht().points(test_context())) all.insert(point.name);
  for (const char* scheme :
       {"gbh-back-off", "mcs-wp", "tombolo-best-effort", "tombolo-writer-preference"})
    for (const char* readers : {"0", "1-close", "1-distant", "11-close", "11-distant", "47"})
      for (const int bytes : {32, 512, 1024})
        EXPECT_TRUE(all.contains(fmt::format("{}-{}-{}", scheme, readers, bytes)))
            << scheme << " " << readers << " " << bytes;
}

// Without readers nothing but the put and the unlock is timed: a line is eight uncached words.
TEST_F(Dht, ARowIsInMicrosecondsOfItsSize) {
  const double one = time("gbh-back-off", "0", "32");
  EXPECT_EQ(rows_.at("gbh-back-off/0", "32").unit, "us");
  EXPECT_GT(one, 2);
  EXPECT_LT(one, 10);
}

}  // namespace
}  // namespace tombolo::experiments
