// SPDX-License-Identifier: Apache-2.0
// One process's part of a time step: which lines have their next state when an exchange is called,
// and which time is the exchange's.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "experiments/automaton/automaton_field.h"
#include "experiments/common/chip_windows.h"
#include "experiments/common/library.h"
#include "experiments/common/measure.h"
#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

using simulator::Duration;
using simulator::Time;

// Brings a process that is alone its own boundary lines; notes its calls and the time that they
// take.
class Noting final : public AutomatonExchange {
 public:
  Noting(scc::Core& core, const AutomatonField& field) : core_(core), field_(field) {}

  void open(int array) override {
    timed([&] { note("open", array); });
  }
  void send(int array) override {
    timed([&] {
      note("send", array);
      copy(array, 1, field_.lines + 1);
      copy(array, field_.lines, 0);
    });
  }
  void close(int array) override {
    timed([&] { note("close", array); });
  }

  std::vector<std::string> calls;  // with a letter for each line: is it that of `after`?
  AutomatonLines after;
  Duration all = {};

 private:
  template <class Body>
  void timed(const Body& body) {
    const Time begin = core_.cpu().now();
    body();
    all = all + (core_.cpu().now() - begin);
  }
  void note(const char* call, int array) {
    std::string lines;
    for (std::uint32_t line = 1; line <= field_.lines; ++line) {
      std::vector<std::uint8_t> cells(field_.bytes_in_line);
      require(core_.read({0, field_.place(array, line)}, cells.data(), cells.size()));
      const std::vector<std::uint8_t>& expected = after[line - 1];
      lines += std::equal(cells.begin() + 1, cells.end() - 1, expected.begin() + 1) ? 'x' : '.';
    }
    calls.push_back(fmt::format("{} {} {}", call, array, lines));
  }
  void copy(int array, std::uint32_t from, std::uint32_t to) {
    std::vector<std::byte> line(field_.bytes_in_line);
    require(core_.read({0, field_.place(array, from)}, line.data(), line.size()));
    require(core_.write({0, field_.place(array, to)}, line.data(), line.size()));
  }

  scc::Core& core_;
  AutomatonField field_;
};

// Two steps of a process that has all lines, by the calls of its exchange. The ghost lines of the
// first state are right: a step of it was made before.
std::vector<std::string> calls_of_two_steps(std::uint32_t lines) {
  const AutomatonField field{.lines = lines, .bytes_in_line = 64, .seed = 4};
  scc::JobShape shape;
  shape.processes = 1;
  shape.sync_bytes = windows::Window<scc::Core>::sync_bytes(shape.processes);
  shape.data_bytes = field.bytes_of_process();
  std::vector<std::string> calls;
  NoRows rows;
  const Status status =
      run_job(test_context(), rows, shape, [&](const scc::Attachment& at, scc::Cpu& cpu) {
        windows::Window<scc::Core> window(at, {});
        Noting exchange(window.core(), field);
        exchange.after = automaton_serial(field, 0);
        AutomatonStepper stepper(window.core(), field);
        stepper.initialize();
        exchange.send(0);
        exchange.calls.clear();
        exchange.all = {};
        const Time begin = cpu.now();
        for (const int from : {0, 1}) {
          exchange.after = automaton_serial(field, from + 1);
          stepper.step(from, exchange);
        }
        EXPECT_EQ(stepper.exchange(), exchange.all);
        EXPECT_EQ(stepper.exchange() + stepper.computation(), cpu.now() - begin);
        EXPECT_GT(stepper.computation(), cpu.timing().core.cycles(2 * lines * 62));
        EXPECT_EQ(stepper.wrong_cells(0, exchange.after), 0u);
        EXPECT_GT(stepper.wrong_cells(1, exchange.after), 0u);
        stepper.forget_times();
        EXPECT_EQ(stepper.exchange(), Duration());
        EXPECT_EQ(stepper.computation(), Duration());
        calls = exchange.calls;
      });
  EXPECT_TRUE(status.ok()) << status.message();
  return calls;
}

// 000 appendix B.3.2: the boundary lines first, which travel while the others are computed.
TEST(AutomatonStepper, SendsTheBoundaryLinesBeforeItComputesTheOthers) {
  EXPECT_EQ(calls_of_two_steps(5),
            (std::vector<std::string>{"open 1 .....", "send 1 x...x", "close 1 xxxxx",
                                      "open 0 .....", "send 0 x...x", "close 0 xxxxx"}));
}

// All its lines are boundary lines, one of them for both neighbours.
TEST(AutomatonStepper, HasNoOtherLinesWhereTwoAreAllItHas) {
  EXPECT_EQ(calls_of_two_steps(2),
            (std::vector<std::string>{"open 1 ..", "send 1 xx", "close 1 xx", "open 0 ..",
                                      "send 0 xx", "close 0 xx"}));
  EXPECT_EQ(calls_of_two_steps(1), (std::vector<std::string>{"open 1 .", "send 1 x", "close 1 x",
                                                             "open 0 .", "send 0 x", "close 0 x"}));
}

}  // namespace
}  // namespace tombolo::experiments
