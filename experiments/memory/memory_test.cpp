// SPDX-License-Identifier: Apache-2.0
// Bandwidths and latencies: the order of the memory types, and the places of memory.
#include "experiments/memory/memory.h"

#include <set>

#include "backends/scc/cpu.h"
#include "experiments/common/measure.h"
#include "experiments/common/testing.h"
#include "experiments/memory/page_bits.h"

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

// The loop of the experiment, by itself: a row is the bandwidth of its memory type and access.
double by_hand(const Context& context, scc::MemoryType type, bool load, std::uint64_t bytes) {
  scc::Chip chip(context.chip, options_of(context));
  double mebibytes = 0;
  chip.start(scc::CoreId(0), [&](scc::Cpu& cpu) {
    const scc::View buffer{cpu.allocate_private(bytes), type};
    const auto pass = [&](bool loads) {
      for (std::uint64_t at = 0; at < bytes; at += 4) {
        if (loads) {
          cpu.load<std::uint32_t>(buffer + at);
        } else {
          cpu.store<std::uint32_t>(buffer + at, 1);
        }
        cpu.compute(cpu.timing().loop);
      }
    };
    for (int round = 0; round < 2; ++round) {
      pass(true);
      const simulator::Time begin = cpu.now();
      pass(load);
      mebibytes = double(bytes) / (1 << 20) / ((cpu.now() - begin).in_nanoseconds() * 1e-9);
    }
  });
  EXPECT_TRUE(chip.run().status.ok());
  return mebibytes;
}

TEST_F(Memory, ARowIsOfItsTypeAndAccess) {
  struct Case {
    const char* point;
    const char* series;
    scc::MemoryType type;
    bool load;
  };
  for (const Case& c : {Case{"load-dcm", "load/dcm", scc::MemoryType::dcm, true},
                        {"store-dcm", "store/dcm", scc::MemoryType::dcm, false},
                        {"load-mpbt-wb", "load/mpbt-wb", scc::MemoryType::mpbt_wb, true},
                        {"store-mpbt-wb", "store/mpbt-wb", scc::MemoryType::mpbt_wb, false},
                        {"load-ncm", "load/ncm", scc::MemoryType::ncm, true},
                        {"store-ncm-wcb", "store/ncm-wcb", scc::MemoryType::ncm_wcb, false}}) {
    measure({c.point});
    EXPECT_DOUBLE_EQ(value(c.series, in_l1), by_hand(test_context(), c.type, c.load, 4096))
        << c.series;
    EXPECT_EQ(rows_.at(c.series, in_l1).unit, "MiB/s");
  }
}

TEST(PageBits, NameTheTypes) {
  using enum scc::MemoryType;
  EXPECT_EQ(type_of({}), dcm);
  EXPECT_EQ(type_of({.pwt = true}), dcm_wt);
  EXPECT_EQ(type_of({.pcd = true}), ncm);
  EXPECT_EQ(type_of({.pcd = true, .pwt = true}), ncm);
  EXPECT_EQ(type_of({.pcd = true, .pmb = true}), ncm_wcb);
  EXPECT_EQ(type_of({.pmb = true}), mpbt_wb);
  EXPECT_EQ(type_of({.pwt = true, .pmb = true}), mpbt_wt);
}

// The bits of a page: PMB bypasses the second level, PCD all caches, PWT with its erratum too.
TEST_F(Memory, PageBitsChooseTheCaches) {
  measure({"pages-none", "pages-pwt", "pages-pmb", "pages-pcd", "pages-pmb-pwt"});
  EXPECT_DOUBLE_EQ(value("pages/none", in_l2),
                   by_hand(test_context(), scc::MemoryType::dcm, true, 65'536));
  EXPECT_GT(value("pages/none", in_l2), 1.5 * value("pages/pmb", in_l2));
  EXPECT_NEAR(value("pages/none", in_l1), value("pages/pmb", in_l1), 1);
  EXPECT_NEAR(value("pages/pwt", in_l1), value("pages/pcd", in_l1), 1);
  EXPECT_NEAR(value("pages/pmb-pwt", in_l1), value("pages/pcd", in_l1), 1);
}

TEST_F(Memory, ManyCoresAreMeasuredUpToAll) {
  measure({"aggregate-4", "aggregate-1-1-rank"});
  for (const char* cores : {"1", "2", "4", "8", "12", "16", "24", "32", "40", "48"}) {
    EXPECT_EQ(rows_.by_place.count({"aggregate/4-controllers", cores}), 1u) << cores;
    EXPECT_EQ(rows_.by_place.count({"aggregate/1-controller-1-rank", cores}), 1u) << cores;
  }
  // Twice the cores at four controllers read twice as much in the same time.
  EXPECT_NEAR(value("aggregate/4-controllers", "16"), 2 * value("aggregate/4-controllers", "8"),
              0.2 * value("aggregate/4-controllers", "16"));
}

// A target that is stored to around the caches by words is slow; combined stores are not.
TEST_F(Memory, MappingsOfMessagesDifferInTheirStores) {
  measure({"mapped-normal-normal-4096", "mapped-normal-mpbt-4096", "mapped-mpbt-normal-4096",
           "mapped-mpbt-mpbt-4096"});
  EXPECT_GT(value("mapped/normal-mpbt", in_l1), 1.2 * value("mapped/normal-normal", in_l1));
  EXPECT_GT(value("mapped/mpbt-mpbt", in_l1), 1.2 * value("mapped/mpbt-normal", in_l1));
  // The source is in the second level, or comes from memory each time.
  EXPECT_GE(value("mapped/normal-normal", in_l1), value("mapped/mpbt-normal", in_l1));
  EXPECT_GE(value("mapped/normal-mpbt", in_l1), value("mapped/mpbt-mpbt", in_l1));
}

TEST(MemoryPoints, AreThoseOfTheFigures) {
  Context context = test_context();
  context.quick = false;
  std::set<std::string> all;
  for (const Point& point : memory().points(context)) all.insert(point.name);
  for (int tile = 0; tile < 24; ++tile) EXPECT_TRUE(all.contains(fmt::format("latency-{}", tile)));
  EXPECT_FALSE(all.contains("latency-24"));
  for (std::uint64_t bytes = 32; bytes <= 4 << 20; bytes *= 2) {
    EXPECT_TRUE(all.contains(fmt::format("message-rcce-{}", bytes))) << bytes;
    EXPECT_TRUE(all.contains(fmt::format("message-ircce-{}", bytes))) << bytes;
  }
  for (const char* mapping : {"normal-normal", "normal-mpbt", "mpbt-normal", "mpbt-mpbt"})
    for (std::uint64_t bytes = 1 << 10; bytes <= 1 << 20; bytes *= 2)
      EXPECT_TRUE(all.contains(fmt::format("mapped-{}-{}", mapping, bytes))) << mapping << bytes;
  for (const char* copy : {"copy-memcpy-1", "copy-memcpy-2", "copy-memcpy-4", "copy-lut-1",
                           "copy-lut-2", "copy-lut-4"})
    EXPECT_TRUE(all.contains(copy)) << copy;
}

}  // namespace
}  // namespace tombolo::experiments
