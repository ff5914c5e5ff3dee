// SPDX-License-Identifier: Apache-2.0
#include "experiments/automaton/automaton_windows.h"

#include <array>
#include <deque>
#include <memory>
#include <span>

#include "backends/scc/cpu.h"
#include "experiments/common/chip_windows.h"
#include "experiments/common/library.h"
#include "experiments/common/measure.h"
#include "experiments/published/gats_windows.h"
#include "experiments/published/match_vector_gats.h"
#include "experiments/published/spinning_registers.h"

namespace tombolo::experiments {
namespace {

using machine::Home;
using Ours = windows::Window<scc::Core>;
// The ghost line above and the one below, of each of the two arrays: a window each.
constexpr std::size_t ghost_lines = 4;
using Prototype =
    published::GatsWindows<published::SpinningCore, published::MatchVectorGats, ghost_lines>;

// Puts the own boundary lines from the own window into the ghost lines of the neighbours'.
template <class Window>
class PutExchange : public AutomatonExchange {
 public:
  PutExchange(Window& window, const AutomatonField& field)
      : core_(window.core()), field_(field), self_(core_.self()) {
    neighbours_ = {field.above(self_)};
    if (field.below(self_) != field.above(self_)) neighbours_.push_back(field.below(self_));
  }
  void open(int) override {}

 protected:
  std::span<const Home> neighbours() const { return neighbours_; }

  template <class Engine>
  void put_to_above(LibraryOf<Engine>& mpi, Engine& engine, int array) {
    const Home above = field_.above(self_);
    put(mpi, engine, array, 1, above, field_.lines_of(above) + 1);
  }
  template <class Engine>
  void put_to_below(LibraryOf<Engine>& mpi, Engine& engine, int array) {
    put(mpi, engine, array, field_.lines_of(self_), field_.below(self_), 0);
  }

 private:
  // The source is in the own window, in the memory type of its mapping: read line by line.
  template <class Engine>
  void put(LibraryOf<Engine>& mpi, Engine& engine, int array, std::uint32_t line, Home target,
           std::uint32_t ghost) {
    constexpr std::uint32_t part_width = 32;
    std::byte part[part_width];
    mpi.put(target, 0, nullptr, 0);  // the call; the bytes follow
    for (std::uint32_t at = 0; at < field_.bytes_in_line; at += part_width) {
      require(core_.read({self_, field_.place(array, line) + at}, part, part_width));
      require(engine.put(target, field_.place(array, ghost) + at, part, part_width));
    }
  }

  scc::detail::Base& core_;
  AutomatonField field_;
  Home self_;
  std::vector<Home> neighbours_;
};

// With our window, which needs one epoch for both lines.
class OneEpoch final : public PutExchange<Ours> {
 public:
  OneEpoch(Ours& window, scc::Cpu& cpu, const AutomatonField& field)
      : PutExchange(window, field), window_(window), mpi_(window, cpu) {}

  void send(int array) override {
    mpi_.post(neighbours());
    mpi_.start(neighbours());
    put_to_above(mpi_, window_, array);
    put_to_below(mpi_, window_, array);
  }
  void close(int) override {
    mpi_.complete();
    mpi_.wait();
  }

 private:
  Ours& window_;
  LibraryOf<Ours> mpi_;
};

// As the kernel of 000 appendix B.3.2: a window for each ghost line of each array, and so two
// epochs in a step, both with both neighbours.
class TwoEpochs final : public PutExchange<Prototype> {
 public:
  TwoEpochs(Prototype& windows, scc::Cpu& cpu, const AutomatonField& field)
      : PutExchange(windows, field), windows_(windows) {
    for (std::size_t n = 0; n < ghost_lines; ++n) mpi_.emplace_back(windows[n], cpu);
  }

  void send(int array) override {
    for (const std::size_t n : both(array)) mpi_[n].post(neighbours());
    for (const std::size_t n : both(array)) mpi_[n].start(neighbours());
    const auto [upper, lower] = both(array);
    put_to_above(mpi_[lower], windows_[lower], array);
    put_to_below(mpi_[upper], windows_[upper], array);
  }
  void close(int array) override {
    for (const std::size_t n : both(array)) mpi_[n].complete();
    for (const std::size_t n : both(array)) mpi_[n].wait();
  }

 private:
  // The numbers of an array's windows: for the upper ghost line, and for the lower one.
  static std::array<std::size_t, 2> both(int array) {
    const auto first = 2 * static_cast<std::size_t>(array);
    return {first, first + 1};
  }

  Prototype& windows_;
  std::deque<LibraryOf<Prototype::One>> mpi_;
};

// One process has its neighbours' lines itself.
class NoExchange final : public AutomatonExchange {
 public:
  NoExchange(scc::detail::Base& core, const AutomatonField& field) : core_(core), field_(field) {}
  void open(int) override {}
  void send(int array) override {
    copy(array, 1, field_.lines + 1);
    copy(array, field_.lines, 0);
  }
  void close(int) override {}

 private:
  void copy(int array, std::uint32_t from, std::uint32_t to) {
    std::vector<std::byte> line(field_.bytes_in_line);
    require(core_.read({0, field_.place(array, from)}, line.data(), line.size()));
    require(core_.write({0, field_.place(array, to)}, line.data(), line.size()));
  }
  scc::detail::Base& core_;
  AutomatonField field_;
};

std::unique_ptr<AutomatonExchange> exchange_of(Ours& window, scc::Cpu& cpu,
                                               const AutomatonField& field) {
  return std::make_unique<OneEpoch>(window, cpu, field);
}
std::unique_ptr<AutomatonExchange> exchange_of(Prototype& windows, scc::Cpu& cpu,
                                               const AutomatonField& field) {
  return std::make_unique<TwoEpochs>(windows, cpu, field);
}
Status barrier_of(Ours& window) { return window.barrier(); }
Status barrier_of(Prototype& windows) { return windows[0].barrier(); }

template <class Window>
void process(const AutomatonField& field, const AutomatonPlan& plan, const AutomatonLines& expected,
             const scc::Attachment& at, scc::Cpu& cpu, AutomatonOutcome& outcome) {
  auto window = make_window<Window>(at);
  std::unique_ptr<AutomatonExchange> exchange = exchange_of(window, cpu, field);
  if (plan.serial) exchange = std::make_unique<NoExchange>(window.core(), field);
  run_process(
      window.core(), field, plan, *exchange, [&] { require(barrier_of(window)); }, expected,
      outcome);
}

template <class Window>
Status run(const Context& context, const AutomatonField& field, const AutomatonPlan& plan,
           Recorder& recorder, AutomatonOutcome* outcome) {
  const AutomatonLines expected = automaton_serial(field, plan.all_steps());
  begin_automaton(field, *outcome);
  scc::Placement placement;
  placement.own = plan.own;
  placement.peers = plan.peers;
  placement.as_prototype = plan.as_prototype;
  const scc::JobShape shape{.processes = field.processes,
                            .cores = {},
                            .sync_bytes = Window::sync_bytes(field.processes),
                            .data_bytes = field.bytes_of_process(),
                            .placement = placement,
                            .options = {},
                            .idle = nullptr};
  return run_job(context, recorder, shape, [&](const scc::Attachment& at, scc::Cpu& cpu) {
    process<Window>(field, plan, expected, at, cpu, *outcome);
  });
}

}  // namespace

std::uint64_t automaton_memory(const AutomatonField& field) {
  // Both arrays, and the same once more to compare with.
  return memory_of_chip(field.processes) + std::uint64_t{4} * field.lines * field.bytes_in_line;
}

Status run_automaton(const Context& context, const AutomatonField& field, const AutomatonPlan& plan,
                     Recorder& recorder, AutomatonOutcome* outcome) {
  return plan.as_prototype ? run<Prototype>(context, field, plan, recorder, outcome)
                           : run<Ours>(context, field, plan, recorder, outcome);
}

}  // namespace tombolo::experiments
