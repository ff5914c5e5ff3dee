// SPDX-License-Identifier: Apache-2.0
#include "experiments/automaton/automaton_messages.h"

#include <array>
#include <deque>

#include "baselines/rckmpi_windows.h"
#include "experiments/common/messages_job.h"

namespace tombolo::experiments {
namespace {

using baselines::Place;
using baselines::Rckmpi;
using machine::Home;

// Where the lines of a process are, and its neighbours.
class Lines {
 public:
  Lines(Rckmpi& mpi, const AutomatonField& field)
      : field_(field), arrays_{mpi.cpu().chip().public_memory()} {
    const Home self = mpi.rank();
    above_ = field.above(self);
    below_ = field.below(self);
    last_ = field.lines_of(self);
  }

  Home above() const { return above_; }
  Home below() const { return below_; }
  std::uint32_t last() const { return last_; }
  std::uint64_t bytes() const { return field_.bytes_in_line; }
  const AutomatonField& field() const { return field_; }
  Place all() const { return arrays_; }
  Place line(int array, std::uint32_t line) const { return arrays_ + field_.place(array, line); }

 private:
  AutomatonField field_;
  Place arrays_;  // simulated: the program's loads and stores go there as well
  Home above_ = 0;
  Home below_ = 0;
  std::uint32_t last_ = 0;
};

class TwoSided final : public AutomatonExchange {
 public:
  TwoSided(Rckmpi& mpi, const AutomatonField& field) : mpi_(mpi), lines_(mpi, field) {}

  void open(int array) override {
    requests_.push_back(mpi_.irecv(lines_.line(array, 0), lines_.bytes(),
                                   static_cast<std::int32_t>(lines_.above()), down));
    requests_.push_back(mpi_.irecv(lines_.line(array, lines_.last() + 1), lines_.bytes(),
                                   static_cast<std::int32_t>(lines_.below()), up));
  }
  void send(int array) override {
    requests_.push_back(mpi_.isend(lines_.line(array, 1), lines_.bytes(), lines_.above(), up));
    requests_.push_back(
        mpi_.isend(lines_.line(array, lines_.last()), lines_.bytes(), lines_.below(), down));
  }
  void close(int) override {
    mpi_.wait_all(requests_);
    requests_.clear();
  }

 private:
  // Both neighbours may be one process.
  static constexpr std::int32_t up = 1;
  static constexpr std::int32_t down = 2;

  Rckmpi& mpi_;
  Lines lines_;
  std::vector<baselines::Request> requests_;
};

// A window for each ghost line of each array, and so two epochs in a step, as over shared memory.
class OneSided final : public AutomatonExchange {
 public:
  OneSided(Rckmpi& mpi, const AutomatonField& field) : lines_(mpi, field) {
    neighbours_ = {lines_.above()};
    if (lines_.below() != lines_.above()) neighbours_.push_back(lines_.below());
    for (int n = 0; n < 2 * 2; ++n)
      windows_.emplace_back(mpi, lines_.all(), field.bytes_of_process());
  }

  void open(int) override {}
  void send(int array) override {
    const auto [upper, lower] = both(array);
    for (baselines::RckmpiWindow* window : {upper, lower}) window->post(neighbours_);
    for (baselines::RckmpiWindow* window : {upper, lower}) window->start(neighbours_);
    put(*lower, array, 1, lines_.above(), lines_.field().lines_of(lines_.above()) + 1);
    put(*upper, array, lines_.last(), lines_.below(), 0);
  }
  void close(int array) override {
    for (baselines::RckmpiWindow* window : both(array)) window->complete();
    for (baselines::RckmpiWindow* window : both(array)) window->wait();
  }
  void free() {
    for (baselines::RckmpiWindow& window : windows_) window.free();
  }

 private:
  // The windows of an array's upper ghost line, and of its lower one.
  std::array<baselines::RckmpiWindow*, 2> both(int array) {
    const auto first = 2 * static_cast<std::size_t>(array);
    return {&windows_[first], &windows_[first + 1]};
  }
  void put(baselines::RckmpiWindow& window, int array, std::uint32_t line, Home target,
           std::uint32_t ghost) {
    window.put(lines_.line(array, line), lines_.bytes(), target,
               lines_.field().place(array, ghost));
  }

  Lines lines_;
  std::deque<baselines::RckmpiWindow> windows_;
  std::vector<Home> neighbours_;
};

std::vector<std::uint64_t> received(Rckmpi& mpi) {
  std::vector<std::uint64_t> bytes;
  for (std::uint32_t from = 0; from < mpi.size(); ++from)
    bytes.push_back(mpi.channel().received_from(from));
  return bytes;
}

}  // namespace

Status run_automaton_by_messages(const Context& context, const AutomatonField& field,
                                 const AutomatonPlan& plan, AutomatonMessages messages,
                                 Recorder& recorder, AutomatonOutcome* outcome) {
  const AutomatonLines expected = automaton_serial(field, plan.all_steps());
  begin_automaton(field, *outcome);
  outcome->received.resize(field.processes);
  scc::JobShape shape;
  shape.processes = field.processes;
  shape.data_bytes = field.bytes_of_process();
  shape.placement.own = scc::MemoryType::dcm;
  return run_rckmpi(context, recorder, shape, [&](Rckmpi& mpi, const scc::Attachment& at) {
    scc::Core core(at);
    const auto run = [&](AutomatonExchange& exchange) {
      run_process(
          core, field, plan, exchange, [&] { mpi.barrier(); }, expected, *outcome);
    };
    if (messages == AutomatonMessages::two_sided) {
      TwoSided exchange(mpi, field);
      run(exchange);
    } else {
      OneSided exchange(mpi, field);
      run(exchange);
      exchange.free();
    }
    outcome->received[at.self] = received(mpi);
  });
}

}  // namespace tombolo::experiments
