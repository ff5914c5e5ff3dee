// SPDX-License-Identifier: Apache-2.0
// Latency and bandwidth of puts and messages between two cores.
#include "experiments/osu/osu.h"

#include <set>

#include "experiments/common/chip_windows.h"
#include "experiments/common/library.h"
#include "experiments/common/measure.h"
#include "experiments/common/testing.h"
#include "experiments/published/gats_window.h"
#include "experiments/published/match_vector_gats.h"
#include "experiments/published/spinning_registers.h"

namespace tombolo::experiments {
namespace {

class Osu : public ::testing::Test {
 protected:
  double latency(const std::string& by, const std::string& bytes) {
    return measured("latency", by, bytes);
  }
  double bandwidth(const std::string& by, const std::string& bytes) {
    return measured("bandwidth", by, bytes);
  }
  Rows rows_;

 private:
  // Points of messages are named the other way round.
  double measured(const std::string& kind, const std::string& by, const std::string& bytes) {
    const bool messages = by.starts_with("rckmpi-");
    const std::string point = messages ? fmt::format("rckmpi-{}-{}-{}", kind, by.substr(7), bytes)
                                       : fmt::format("{}-{}-{}", by, kind, bytes);
    rows_.measure(osu(), point, test_context());
    return rows_.value(kind + "/" + by, bytes);
  }
};

TEST_F(Osu, APutOfMoreBytesTakesLongerAndHasMoreBandwidth) {
  for (const char* by : {"scosco", "tombolo", "rckmpi-one-sided", "rckmpi-two-sided"}) {
    EXPECT_LT(latency(by, "1"), latency(by, "4096")) << by;
    EXPECT_LT(bandwidth(by, "16"), bandwidth(by, "4096")) << by;
  }
}

TEST_F(Osu, AnEpochOfAPutTakesLongerThanAMessageOfAByte) {
  EXPECT_GT(latency("scosco", "1"), latency("rckmpi-two-sided", "1"));
  EXPECT_GT(latency("rckmpi-one-sided", "1"), latency("scosco", "1"));
}

// A line of 32 bytes takes at least the trip to the controller, and puts wait for each.
TEST_F(Osu, NoPutIsFasterThanItsLines) {
  const scc::Parameters chip = test_context().chip;
  const double line_us = static_cast<double>(chip.path.dram.halves) / 2 /
                         static_cast<double>(chip.clocks.core_megahertz);
  EXPECT_LT(bandwidth("scosco", "65536"), 32 / line_us);
}

TEST_F(Osu, OurSynchronizationIsNoSlower) {
  EXPECT_LE(latency("tombolo", "1"), latency("scosco", "1"));
}

// The epoch of 32 puts by itself, from memory that has a part for each: the row is its bandwidth.
TEST_F(Osu, ARowIsTheBandwidthOfAnEpochsPuts) {
  using Window = published::GatsWindow<published::SpinningCore, published::MatchVectorGats>;
  constexpr std::uint64_t bytes = 64;
  constexpr std::uint64_t puts = 32;
  scc::JobShape shape;
  shape.processes = 2;
  shape.sync_bytes = Window::sync_bytes(2);
  shape.data_bytes = bytes * puts;
  double microseconds_of_two = 0;
  NoRows none;
  const Status status =
      run_job(test_context(), none, shape, [&](const scc::Attachment& at, scc::Cpu& cpu) {
        Window window(at);
        LibraryOf<Window> mpi(window, cpu);
        const std::byte* source = window.core().allocate(bytes * puts);
        const machine::Home peer[] = {1 - at.self};
        mpi.barrier();
        simulator::Time begin;
        for (int epoch = 0; epoch < 3; ++epoch) {
          if (epoch == 1) begin = cpu.now();
          if (at.self == 1) {
            mpi.post(peer);
            mpi.wait();
            continue;
          }
          mpi.start(peer);
          for (std::uint64_t n = 0; n < puts; ++n) mpi.put(1, n * bytes, source + n * bytes, bytes);
          mpi.complete();
        }
        if (at.self == 0) microseconds_of_two = microseconds(cpu.now() - begin);
      });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_NEAR(bandwidth("scosco", "64"), 2 * bytes * puts / microseconds_of_two, 1e-9);
  EXPECT_EQ(rows_.at("bandwidth/scosco", "64").unit, "MB/s");
}

TEST_F(Osu, UnitsAreThoseOfTheBenchmarks) {
  for (const char* by : {"scosco", "rckmpi-one-sided", "rckmpi-two-sided"}) {
    latency(by, "1");
    bandwidth(by, "1");
    EXPECT_EQ(rows_.at(fmt::format("latency/{}", by), "1").unit, "us");
    EXPECT_EQ(rows_.at(fmt::format("bandwidth/{}", by), "1").unit, "MB/s");
  }
}

TEST_F(Osu, SizesDoubleUpToAMegabyte) {
  Context context = test_context();
  context.quick = false;
  std::set<std::string> all;
  for (const Point& point : osu().points(context)) all.insert(point.name);
  for (std::uint64_t bytes = 1; bytes <= 1 << 20; bytes *= 2)
    for (const char* kind :
         {"scosco-latency", "scosco-bandwidth", "tombolo-latency", "tombolo-bandwidth",
          "rckmpi-latency-one-sided", "rckmpi-latency-two-sided", "rckmpi-bandwidth-one-sided",
          "rckmpi-bandwidth-two-sided"})
      EXPECT_TRUE(all.contains(fmt::format("{}-{}", kind, bytes))) << kind << " " << bytes;
  EXPECT_EQ(all.size(), 21u * 8);
}

}  // namespace
}  // namespace tombolo::experiments
