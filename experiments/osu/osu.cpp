// SPDX-License-Identifier: Apache-2.0
#include "experiments/osu/osu.h"

#include <cstring>

#include "backends/scc/cpu.h"
#include "backends/scc/scc.h"
#include "experiments/common/chip_windows.h"
#include "experiments/common/library.h"
#include "experiments/common/measure.h"
#include "experiments/common/rckmpi_series.h"
#include "experiments/published/gats_window.h"
#include "experiments/published/match_vector_gats.h"
#include "experiments/published/spinning_registers.h"

namespace tombolo::experiments {
namespace {

using Prototype = published::GatsWindow<published::SpinningCore, published::MatchVectorGats>;
using Ours = windows::Window<scc::Core>;
using simulator::Time;
using windows::Home;

constexpr std::uint64_t most_allowed = 1 << 20;
constexpr int puts_in_epoch = 32;  // OSU's default for one-sided bandwidth

struct Repetitions {
  int warm_up;
  int measured;
  std::string note;
};

// The paper's numbers, or fewer where a put is long: nothing varies between repetitions but the
// caches' contents.
Repetitions repetitions(const Context& context, std::uint64_t bytes_an_epoch) {
  constexpr int measured_count = 50;
  Repetitions r{25, measured_count, {}};
  if (bytes_an_epoch > (64 << 10)) r = {3, 8, {}};
  if (bytes_an_epoch > (2 << 20)) r = {1, 2, {}};
  if (context.quick) r = {1, 2, {}};
  if (r.measured != measured_count)
    r.note = fmt::format("{} iterations, not {}", r.measured, measured_count);
  return r;
}

// The bytes differ from put to put.
void stamp(std::byte* message, std::uint64_t bytes, std::uint64_t number) {
  std::memcpy(message, &number, std::min<std::uint64_t>(bytes, sizeof number));
}

// One process of a benchmark: the window, MPI around it, and a cached source.
template <class Window>
struct Process {
  Process(const scc::Attachment& at, scc::Cpu& core, std::uint64_t bytes, int puts)
      : cpu(core),
        window(make_window<Window>(at)),
        mpi(window, core),
        size(bytes),
        messages(puts),
        source(window.core().allocate(bytes * static_cast<std::uint64_t>(puts))),
        peer{1 - at.self} {}

  std::byte* message(int n) { return source + size * static_cast<std::uint64_t>(n); }

  void put_all(std::uint64_t iteration) {
    for (int n = 0; n < messages; ++n) {
      stamp(message(n), size, number(iteration, n));
      mpi.put(peer[0], size * static_cast<std::uint64_t>(n), message(n), size);
    }
  }
  // Whether the own window, as this core sees it, has the peer's bytes.
  bool arrived(std::uint64_t iteration) {
    std::vector<std::byte> expected(size);
    std::vector<std::byte> seen(size);
    for (int n = 0; n < messages; ++n) {
      stamp(expected.data(), size, number(iteration, n));
      require(window.core().read({1 - peer[0], size * static_cast<std::uint64_t>(n)}, seen.data(),
                                 size));
      if (seen != expected) return false;
    }
    return true;
  }
  std::uint64_t number(std::uint64_t iteration, int n) const {
    return iteration * static_cast<std::uint64_t>(messages) + static_cast<std::uint64_t>(n) + 1;
  }

  scc::Cpu& cpu;
  Window window;
  LibraryOf<Window> mpi;
  std::uint64_t size;
  int messages;
  std::byte* source;
  Home peer[1];
};

// Runs `program(Process&)` on cores 0 and 1. It says of the target whether all has arrived.
template <class Window, class Program>
Status pair(const Context& context, Recorder& recorder, std::uint64_t size, int puts,
            Program&& program) {
  bool right = true;
  const scc::JobShape shape{.processes = 2,
                            .cores = {},
                            .sync_bytes = Window::sync_bytes(2),
                            .data_bytes = size * static_cast<std::uint64_t>(puts),
                            .placement = {},
                            .options = {},
                            .idle = nullptr};
  TOMBOLO_TRY(run_job(context, recorder, shape, [&](const scc::Attachment& at, scc::Cpu& cpu) {
    Process<Window> process(at, cpu, size, puts);
    process.mpi.barrier();
    right = program(process) && right;
  }));
  if (!right) return Status::stopped(fmt::format("a put of {} bytes did not arrive", size));
  return {};
}

// osu_put_latency: the processes take turns as origin and target.
template <class Window>
Status latency(const Context& context, const std::string& by, std::uint64_t size,
               Recorder& recorder) {
  const Repetitions times = repetitions(context, size);
  std::vector<double> samples;
  TOMBOLO_TRY(pair<Window>(context, recorder, size, 1, [&](Process<Window>& p) {
    const bool first = p.peer[0] == 1;
    std::uint64_t last = 0;
    for (int i = 0; i < times.warm_up + times.measured; ++i) {
      const Time begin = p.cpu.now();
      const auto origin = [&] {
        p.mpi.start(p.peer);
        p.put_all(last = static_cast<std::uint64_t>(2 * i + (first ? 0 : 1)));
        p.mpi.complete();
      };
      const auto target = [&] {
        p.mpi.post(p.peer);
        p.mpi.wait();
      };
      if (first) origin();
      target();
      if (!first) origin();
      if (first && i >= times.warm_up) samples.push_back(microseconds(p.cpu.now() - begin) / 2);
    }
    return p.arrived(first ? last + 1 : last - 1);
  }));
  Row row = row_of("latency/" + by, static_cast<double>(size), samples, "us");
  // OSU divides the whole loop.
  double sum = 0;
  for (const double sample : samples) sum += sample;
  row.value = sum / static_cast<double>(samples.size());
  row.note = times.note;
  recorder.row(row);
  return {};
}

// osu_put_bw.
template <class Window>
Status bandwidth(const Context& context, const std::string& by, std::uint64_t size,
                 Recorder& recorder) {
  const Repetitions times = repetitions(context, size * puts_in_epoch);
  double seconds = 0;
  TOMBOLO_TRY(pair<Window>(context, recorder, size, puts_in_epoch, [&](Process<Window>& p) {
    const int all = times.warm_up + times.measured;
    const bool origin = p.peer[0] == 1;
    Time begin;
    for (int i = 0; i < all; ++i) {
      if (i == times.warm_up) begin = p.cpu.now();
      if (origin) {
        p.mpi.start(p.peer);
        p.put_all(static_cast<std::uint64_t>(i));
        p.mpi.complete();
      } else {
        p.mpi.post(p.peer);
        p.mpi.wait();
      }
    }
    if (origin) seconds = (p.cpu.now() - begin).in_nanoseconds() * 1e-9;
    return origin || p.arrived(static_cast<std::uint64_t>(all - 1));
  }));
  const double bytes = static_cast<double>(size) * puts_in_epoch * times.measured;
  recorder.row({"bandwidth/" + by,
                static_cast<double>(size),
                bytes / seconds / 1e6,
                "MB/s",
                {},
                {},
                times.note});
  return {};
}

// The points of one window, whose series are named `by`.
template <class Window>
void add_points(const Context& context, const std::string& by, std::vector<Point>& all) {
  for (std::uint64_t size = 1; size <= most_allowed; size *= context.quick ? 4 : 2) {
    const double put_seconds = static_cast<double>(size) * 1e-7;
    all.push_back({fmt::format("{}-latency-{}", by, size), 0.1 + put_seconds,
                   memory_of_chip(2) + size * 4,
                   [=](const Context& c, Recorder& r) { return latency<Window>(c, by, size, r); }});
    all.push_back({fmt::format("{}-bandwidth-{}", by, size), 0.1 + 30 * put_seconds,
                   memory_of_chip(2) + size * 128, [=](const Context& c, Recorder& r) {
                     return bandwidth<Window>(c, by, size, r);
                   }});
  }
}

std::vector<Point> points(const Context& context) {
  std::vector<Point> all;
  add_points<Prototype>(context, "scosco", all);
  add_points<Ours>(context, "tombolo", all);
  for (Point& point : rckmpi_osu_points(context)) all.push_back(std::move(point));
  return all;
}

}  // namespace

Experiment osu() {
  return {"osu", "Put latency and bandwidth between two neighbouring cores", points};
}

}  // namespace tombolo::experiments
