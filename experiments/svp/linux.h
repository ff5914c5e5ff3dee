// SPDX-License-Identifier: Apache-2.0
// Purpose: one core under sccLinux, as far as the run-time of 002 needs it: threads that share the
// core, interrupts, sleeps by the tick, and the memory of a process.
//
//   Linux system(chip, CoreId(0), {.threads = 8});
//   system.start([&] { system.spawn([&] { ... }); system.wait([&] { return done; }); });
//
// Threads are fibres of the simulation that run on the core in turn. One runs until it waits or
// sleeps; a thread that computes also makes way for one that an interrupt or a tick has made ready,
// as the scheduler prefers those that wait often. Two threads that compute run one after the other.
//
// Invariants: LX1 one thread runs at a time; the others' clocks stand, and go on from the time at
//                 which they get the core.
//             LX2 interrupts are taken while the core idles or computes, and where a program or the
//                 kernel looks for them: between segments and pages of longer work.
//             LX3 a core takes interrupts until all programs of the machine have ended.
// Thread safety: as Cpu.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "backends/scc/cpu.h"
#include "experiments/svp/heap.h"

namespace tombolo::experiments {

struct LinuxShape {
  std::uint32_t threads = 0;  // at once, beside the program's own
  std::uint64_t seed = 1;
};

class Linux {
 public:
  using Body = std::function<void()>;
  using Ready = std::function<bool()>;

  Linux(scc::Chip& chip, simulator::CoreId core, const LinuxShape& shape);

  // Before the run: the program's own thread.
  void start(Body program);
  // Of the driver: called by interrupts.
  void on_interrupt(Body handler) { handler_ = std::move(handler); }
  // Lets the core's program end when its threads have. By a program of any core.
  void stop(scc::Cpu& by);
  bool stopped() const { return stopped_; }
  // Time up to that moment in which no thread could run. By a program of any core.
  simulator::Duration idle(simulator::Time until) const;

  // ---- Of the thread that runs ------------------------------------------------------------------

  scc::Cpu& cpu() { return cpu_; }
  const scc::Parameters::Linux& times() const { return times_; }
  const scc::Parameters::Svp& svp() const { return chip_.parameters().svp; }
  simulator::Time now() const { return cpu_.now(); }

  // Code of so many cycles, which is not interrupted.
  void run_code(scc::HalfCycles cycles) { cpu_.compute_cycles(cycles); }
  void system_call() { cpu_.compute(cpu_.timing().system_call); }
  // Long work without memory; others may run meanwhile.
  void compute(simulator::Duration d);
  // Takes an interrupt, if there is one.
  void look_around();
  // Waits until `ready`, which is looked at after interrupts and whatever other threads did.
  void wait(const Ready& ready);
  // The shortest sleep that there is: to the next tick.
  void sleep();
  // Waits while no slot is free.
  void spawn(Body body);
  // Until all threads but this have ended.
  void join();

  // ---- Memory -----------------------------------------------------------------------------------

  // The process's: from the kernel's end to that of the image's private memory.
  Heap& heap() { return heap_; }
  const Heap& heap() const { return heap_; }
  // As malloc(): pages that are new are zeroed.
  Status allocate(std::uint64_t bytes, simulator::Address* at);
  void free(simulator::Address at);
  // A line that belongs to the thread, for values that it sends.
  scc::View scratch() const { return {running_->scratch, scc::MemoryType::dcm}; }

 private:
  struct Thread {
    simulator::Core* fibre = nullptr;
    simulator::Address word;  // it waits here for the core
    simulator::Address scratch;
    Body body;
    const Ready* ready = nullptr;                      // it waits for this
    simulator::Time wakes = simulator::Time::never();  // or sleeps until then
    bool alive = false;
    bool wants_core = false;
  };

  void run_thread(Thread& thread, simulator::Core& fibre);
  bool may_run(Thread& thread) const;
  Thread* pick();
  simulator::Time next_wake() const;
  void give_way();
  void hand_core_to(Thread& next);
  void make_way_for_ready();
  void take_interrupt();
  void zero_pages(simulator::Address from, std::uint64_t bytes);

  scc::Chip& chip_;
  scc::Cpu& cpu_;
  const scc::Parameters::Linux& times_;
  Heap heap_;
  std::deque<Thread> threads_;  // the first is the program's own
  Thread* running_ = nullptr;
  std::size_t last_picked_ = 0;
  simulator::Duration idle_;  // intervals that have ended
  simulator::Time idle_since_ = simulator::Time::never();
  Body handler_;
  bool in_interrupt_ = false;
  bool stopped_ = false;
  simulator::Duration tick_;
  simulator::Duration phase_;
  std::uint64_t map_threshold_ = std::uint64_t{128} << 10;  // M_MMAP_THRESHOLD of glibc
  simulator::Address touched_;                              // all below was used before
};

}  // namespace tombolo::experiments
