// SPDX-License-Identifier: Apache-2.0
// A writer among readers that wait for it.
#include "experiments/dht/dht.h"

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

}  // namespace
}  // namespace tombolo::experiments
