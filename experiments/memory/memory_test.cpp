// SPDX-License-Identifier: Apache-2.0
// Bandwidths and latencies: the order of the memory types, and the places of memory.
#include "experiments/memory/memory.h"

#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

constexpr const char* in_l1 = "4096";
constexpr const char* in_l2 = "65536";
constexpr const char* in_no_cache = "1048576";

class Memory : public ::testing::Test {
 protected:
  void measure(std::initializer_list<const char*> points) {
    for (const char* point : points) rows_.measure(memory(), point, test_context());
  }
  double value(const std::string& series, const std::string& x) { return rows_.value(series, x); }
  Rows rows_;
};

TEST_F(Memory, LoadsGetSlowerWhereACacheIsExceeded) {
  measure({"load-dcm", "load-mpbt-wb", "load-ncm"});
  EXPECT_GT(value("load/dcm", in_l1), 1.5 * value("load/dcm", in_l2));
  EXPECT_GT(value("load/dcm", in_l2), 1.5 * value("load/dcm", in_no_cache));
  EXPECT_GT(value("load/mpbt-wb", in_l1), 1.5 * value("load/mpbt-wb", in_l2));
  EXPECT_NEAR(value("load/ncm", in_l1), value("load/ncm", in_no_cache), 1);
  EXPECT_NEAR(value("load/dcm", in_l1), value("load/mpbt-wb", in_l1), 1);
}

TEST_F(Memory, TheErratumMakesWrittenThroughPagesUncached) {
  measure({"load-mpbt-wt", "load-mpbt-wt-no-erratum", "load-ncm"});
  EXPECT_NEAR(value("load/mpbt-wt", in_l1), value("load/ncm", in_l1), 1);
  EXPECT_GT(value("load/mpbt-wt-no-erratum", in_l1), 5 * value("load/mpbt-wt", in_l1));
}

TEST_F(Memory, StoresAreCombinedToLines) {
  measure({"store-ncm", "store-mpbt-wt", "store-dcm"});
  EXPECT_GT(value("store/mpbt-wt", in_l1), 3 * value("store/ncm", in_l1));
  EXPECT_GT(value("store/dcm", in_l1), value("store/mpbt-wt", in_l1));
}

TEST_F(Memory, IsFurtherAwayFromDistantTiles) {
  measure({"latency-0", "latency-23"});
  EXPECT_LT(value("latency/mc0", "0"), value("latency/mc3", "0"));
  EXPECT_GT(value("latency/mc0", "23"), value("latency/mc3", "23"));
  const double four = value("latency/mc0", "0") + value("latency/mc1", "0") +
                      value("latency/mc2", "0") + value("latency/mc3", "0");
  EXPECT_NEAR(value("latency/average", "0"), four / 4, 1e-6);
}

TEST_F(Memory, FourControllersServeMoreThanOne) {
  measure({"aggregate-4", "aggregate-1"});
  EXPECT_GT(value("aggregate/4-controllers", "48"), 1.2 * value("aggregate/1-controller", "48"));
  EXPECT_NEAR(value("aggregate/4-controllers", "1"), value("aggregate/1-controller", "1"),
              0.3 * value("aggregate/1-controller", "1"));
}

TEST_F(Memory, PipelinedMessagesAreQuickerWhereTheyAreLong) {
  measure({"message-rcce-131072", "message-ircce-131072"});
  EXPECT_GT(value("message/ircce", "131072"), value("message/rcce", "131072"));
}

}  // namespace
}  // namespace tombolo::experiments
