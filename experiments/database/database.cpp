// SPDX-License-Identifier: Apache-2.0
#include "experiments/database/database.h"

#include <algorithm>

#include "experiments/common/chip_windows.h"
#include "experiments/common/library.h"
#include "experiments/common/measure.h"
#include "experiments/published/gats_window.h"
#include "experiments/published/match_list_gats.h"
#include "experiments/published/spinning_registers.h"

namespace tombolo::experiments {
namespace {

using machine::Home;
using simulator::Duration;
// The prototype that the thesis measured this with (000 section 3.4.5).
using Prototype = published::GatsWindow<published::SpinningCore, published::MatchListGats>;
using Ours = windows::Window<scc::Core>;

constexpr std::uint32_t line_count = 1600;
constexpr std::uint64_t pitch = 8192;  // bytes from line to line
// Scaled: the work between two synchronizations, which is 0.4 ms even so. All iterations are
// needed: the waiting of processes for each other, polling meanwhile, spreads over the ring by a
// neighbour in each. Each cell is simulated: its loads, line by line, and its store.
constexpr std::uint64_t column_count = 64;
constexpr std::uint64_t quick_columns = 32;
constexpr int iteration_count = 50;
constexpr int quick_iterations = 20;
constexpr const char* quick_note = "32 of 8,192 columns, 20 of 50 iterations";
constexpr const char* note = "64 of 8,192 columns, all 50 iterations";
// Derived from 000 section 4.4.5: 2,400 lines of 8,190 cells take 401.05 s for 100 iterations
// alone, so 109 cycles for a cell, of which 7 are its part of three lines, and its store. That is
// about as long as the store before is on its way, which misses both caches.
constexpr std::int64_t cell_cycles = 102;

constexpr int no_synchronization = -2;
constexpr int distributed = -1;  // 0 and above: centralized, at that controller

// The lines of a process in its private memory, and one beyond at each end.
class Field {
 public:
  Field(scc::detail::Base& core, std::uint32_t lines, std::uint64_t columns)
      : core_(core),
        lines_(lines),
        columns_(columns),
        from_(core.allocate((lines + 2) * pitch)),
        to_(core.allocate((lines + 2) * pitch)) {}

  std::uint32_t lines() const { return lines_; }
  void swap() { std::swap(from_, to_); }
  // Line 1 is the first of its own.
  void update(std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t line = first; line <= last; ++line)
      for (std::uint64_t column = 0; column < columns_; column += block) update_block(line, column);
  }

 private:
  static constexpr std::uint64_t block = 32;  // a cache line

  void update_block(std::uint32_t line, std::uint64_t column) {
    for (const std::uint32_t above : {line - 1, line, line + 1})
      core_.touch_read(from_ + above * pitch + column, block);
    for (std::uint64_t cell = 0; cell < block; ++cell) {
      core_.cpu().compute_cycles(cell_cycles);
      core_.touch_write(to_ + line * pitch + column + cell, 1);
    }
  }

  scc::detail::Base& core_;
  std::uint32_t lines_;
  std::uint64_t columns_;
  std::byte* from_;
  std::byte* to_;
};

struct Stencil {
  std::uint32_t processes = 1;
  int database = no_synchronization;
  std::uint64_t columns = column_count;
  int iterations = iteration_count;
};

// The boundaries first, the rest while they would travel.
template <class Mpi>
void iterate(Mpi& mpi, Field& field, std::span<const Home> neighbours, bool synchronizes) {
  const std::uint32_t last = field.lines();
  if (synchronizes) {
    mpi.post(neighbours);
    mpi.start(neighbours);
  }
  field.update(1, 1);
  field.update(last, last);
  field.update(2, last - 1);
  if (synchronizes) {
    mpi.complete();
    mpi.wait();
  }
  field.swap();
}

// How long the slowest process takes for an iteration.
template <class Window>
Status measure(const Context& context, Recorder& recorder, const Stencil& stencil,
               double* microseconds_each) {
  scc::JobShape shape;
  shape.processes = stencil.processes;
  shape.cores = database_cores(context, stencil.processes);
  shape.sync_bytes = Window::sync_bytes(stencil.processes);
  shape.placement.sync_controller = std::max(stencil.database, -1);
  double slowest = 0;
  TOMBOLO_TRY(run_job(context, recorder, shape, [&](const scc::Attachment& at, scc::Cpu& cpu) {
    auto window = make_window<Window>(at);
    LibraryOf<Window> mpi(window, cpu);
    Field field(window.core(), database_lines(at.self, at.cores), stencil.columns);
    const std::vector<Home> neighbours = database_neighbours(at.self, at.cores);
    mpi.barrier();
    Progress progress(recorder);
    const Duration all = time_of(cpu, [&] {
      for (int i = 0; i < stencil.iterations; ++i) {
        iterate(mpi, field, neighbours, stencil.database != no_synchronization);
        if (at.self == 0 && stencil.processes > 1) progress.at(double(i + 1) / stencil.iterations);
      }
      cpu.wait_for_writes();
    });
    slowest = std::max(slowest, microseconds(all) / stencil.iterations);
  }));
  *microseconds_each = slowest;
  return {};
}

template <class Window>
Status speedup(const Context& context, Recorder& recorder, const std::string& series,
               Stencil stencil) {
  if (context.quick) {
    stencil.columns = quick_columns;
    stencil.iterations = quick_iterations;
  }
  Stencil sequential = stencil;
  sequential.processes = 1;
  sequential.database = no_synchronization;
  sequential.iterations = 1;
  double alone = 0;
  double together = 0;
  TOMBOLO_TRY(measure<Window>(context, recorder, sequential, &alone));
  TOMBOLO_TRY(measure<Window>(context, recorder, stencil, &together));
  recorder.row({series,
                double(stencil.processes),
                alone / together,
                "",
                {},
                {},
                context.quick ? quick_note : note});
  return {};
}

struct Series {
  std::string name;
  int database;
  bool ours = false;
};

std::vector<Point> points(const Context& context) {
  std::vector<Series> all_series = {{"none", no_synchronization},
                                    {"distributed", distributed},
                                    {"distributed/tombolo", distributed, true},
                                    {"centralized/tombolo", 0, true}};
  for (std::size_t c = 0; c < context.chip.layout.controllers.size(); ++c)
    all_series.push_back({fmt::format("centralized/mc{}", c), static_cast<int>(c)});
  std::vector<std::uint32_t> processes = {1, 2, 4, 6, 8, 12, 16, 24, 32, 40, 48};
  if (context.quick) processes = {1, 8, 24, 48};
  std::erase_if(processes, [&](std::uint32_t n) { return n > context.chip.cores(); });
  std::vector<Point> all;
  for (const Series& series : all_series)
    for (const std::uint32_t n : processes) {
      std::string name = fmt::format("{}-{}", series.name, n);
      std::replace(name.begin(), name.end(), '/', '-');
      all.push_back({name, context.quick ? 0.1 : 1.5, memory_of_chip(n),
                     [series, n](const Context& c, Recorder& r) {
                       const Stencil stencil{.processes = n, .database = series.database};
                       return series.ours ? speedup<Ours>(c, r, series.name, stencil)
                                          : speedup<Prototype>(c, r, series.name, stencil);
                     }});
    }
  return all;
}

}  // namespace

std::uint32_t database_lines(machine::Home process, std::uint32_t processes) {
  return line_count / processes + (process < line_count % processes ? 1 : 0);
}

std::vector<machine::Home> database_neighbours(machine::Home self, machine::Home processes) {
  std::vector<machine::Home> both = {(self + processes - 1) % processes, (self + 1) % processes};
  std::sort(both.begin(), both.end());
  both.erase(std::unique(both.begin(), both.end()), both.end());
  return both;
}

std::vector<simulator::CoreId> database_cores(const Context& context, std::uint32_t processes) {
  const scc::Chip chip(context.chip);
  std::vector<simulator::CoreId> cores;
  for (std::uint32_t core = 0; core < context.chip.cores(); ++core) cores.emplace_back(core);
  std::stable_sort(cores.begin(), cores.end(), [&](simulator::CoreId a, simulator::CoreId b) {
    return chip.controller_of(a) < chip.controller_of(b);
  });
  cores.erase(cores.begin() + processes, cores.end());
  return cores;
}

Experiment database() { return {"database", "Where the window database lies", points}; }

}  // namespace tombolo::experiments
