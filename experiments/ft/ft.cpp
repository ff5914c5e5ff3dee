// SPDX-License-Identifier: Apache-2.0
#include "experiments/ft/ft.h"

#include "backends/scc/cpu.h"
#include "backends/scc/scc.h"
#include "experiments/common/chip_windows.h"
#include "experiments/common/library.h"
#include "experiments/common/measure.h"
#include "experiments/ft/ft_messages.h"
#include "experiments/published/gats_window.h"
#include "experiments/published/match_vector_gats.h"
#include "experiments/published/spinning_registers.h"

namespace tombolo::experiments {
namespace {

using Prototype = published::GatsWindow<published::SpinningCore, published::MatchVectorGats>;
using Ours = windows::Window<scc::Core>;
using machine::Home;

// Puts into the peers' windows, which serve nothing else, under post, start, complete, wait.
template <class Window>
class WindowTransport final : public FtTransport {
 public:
  WindowTransport(const scc::Attachment& at, scc::Cpu& cpu)
      : self_(at.self), window_(make_window<Window>(at)), mpi_(window_, cpu) {}

  void open(std::span<const Home> peers, std::span<const FtArrival>) override {
    mpi_.post(peers);
    mpi_.start(peers);
  }
  void send(Home to, std::uint64_t at, const void* from, std::size_t bytes) override {
    mpi_.put(to, at, from, bytes);
  }
  void close() override {
    mpi_.complete();
    mpi_.wait();
  }
  void read(std::uint64_t at, void* to, std::size_t bytes) override {
    require(core().read({self_, at}, to, bytes));
  }
  void barrier() override { mpi_.barrier(); }

  std::byte* allocate(std::size_t bytes) override { return core().allocate(bytes); }
  void touch_read(const void* from, std::size_t bytes) override { core().touch_read(from, bytes); }
  void touch_write(const void* to, std::size_t bytes) override { core().touch_write(to, bytes); }

 private:
  auto& core() { return window_.core(); }

  Home self_;
  Window window_;
  LibraryOf<Window> mpi_;
};

constexpr double kibibyte = 1 << 10;
constexpr double mebibyte = 1 << 20;

struct Variant {
  const char* name;
  double element_seconds;  // of a host, for an element and an iteration
  std::function<Status(const Context&, Recorder&, const FtClass&, int, FtResult*)> run;
};

Variant by_windows(const char* name, FtVariant variant, double element_seconds) {
  return {name, element_seconds,
          [variant](const Context& c, Recorder& r, const FtClass& problem, int iterations,
                    FtResult* result) {
            return ft_by_windows(c, r, variant, problem, iterations, result);
          }};
}

Variant by_messages(const char* name, FtMessages kind, double element_seconds) {
  return {
      name, element_seconds,
      [kind](const Context& c, Recorder& r, const FtClass& problem, int iterations,
             FtResult* result) { return ft_by_messages(c, r, kind, problem, iterations, result); }};
}

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      by_windows("scosco", FtVariant::mpbt_wt, 5.5e-6),
      by_windows("scosco-dcm", FtVariant::dcm, 3.5e-6),
      by_windows("scosco-no-erratum", FtVariant::no_erratum, 3.5e-6),
      by_messages("rckmpi-two-sided", FtMessages::two_sided, 7e-6),
      by_messages("rckmpi-one-sided", FtMessages::one_sided, 9e-6),
  };
  return all;
}

// The large classes run fewer iterations, since each takes minutes of a host's time.
int iterations_of(const Context& context, const FtClass& problem) {
  if (problem.name == "B") return 1;
  if (context.quick || problem.name == "A") return 2;
  return problem.iterations;
}

void report_part(Recorder& recorder, const std::string& variant, const FtClass& problem,
                 const char* part, double seconds, const std::string& note) {
  recorder.row({"breakdown/" + variant + "/" + part, problem.name, seconds, "s", {}, {}, note});
}

// Times of as many iterations as the benchmark has, from those that were run.
FtTimes scaled(const FtResult& result, double factor) {
  const FtTimes& a = result.before;
  const FtTimes& b = result.iterations;
  return {a.fft + factor * b.fft,
          a.transfer + factor * b.transfer,
          a.synchronization + factor * b.synchronization,
          a.transpose + factor * b.transpose,
          a.bookkeeping + factor * b.bookkeeping,
          a.barrier + factor * b.barrier};
}

// 000 Figure B.2: the bytes that each process has sent to each other in the benchmark's iterations,
// as they came through the message passing buffers. All transforms, that before the iterations too,
// send the same.
void report_pattern(Recorder& recorder, const FtClass& problem, int iterations,
                    const FtResult& result) {
  const double transforms = 1 + iterations;
  for (std::size_t to = 0; to < result.received.size(); ++to)
    for (std::size_t from = 0; from < result.received[to].size(); ++from)
      if (const std::uint64_t bytes = result.received[to][from]; bytes > 0)
        recorder.row(
            {fmt::format("data/{}", from),
             double(to),
             static_cast<double>(bytes) / transforms * problem.iterations / kibibyte,
             "KiB",
             {},
             {},
             fmt::format("of {} transforms, scaled to {}", transforms, problem.iterations)});
}

Status point(const Context& context, Recorder& recorder, const Variant& variant,
             const FtClass& problem) {
  const int iterations = iterations_of(context, problem);
  Progress progress(recorder);
  FtResult result;
  result.progress = &progress;
  TOMBOLO_TRY(variant.run(context, recorder, problem, iterations, &result));
  report_ft(recorder, variant.name, problem, iterations, result);
  if (problem.name == "S" && variant.name == std::string("rckmpi-two-sided"))
    report_pattern(recorder, problem, iterations, result);
  return {};
}

void add_points(const Context& context, const FtClass& problem, std::vector<Point>& all) {
  const double elements =
      static_cast<double>(problem.points()) * (1 + iterations_of(context, problem));
  for (const Variant& variant : variants()) {
    // A prediction of the paper, without numbers.
    if (problem.name == "B" && variant.name == std::string("scosco-no-erratum")) continue;
    all.push_back({fmt::format("{}-{}", variant.name, problem.name),
                   elements * variant.element_seconds, ft_memory(problem),
                   [&variant, &problem](const Context& c, Recorder& r) {
                     return point(c, r, variant, problem);
                   }});
  }
}

std::vector<Point> points(const Context& context) {
  std::vector<Point> all;
  for (const char name : {'S', 'W', 'A'})
    if (name == 'S' || !context.quick) add_points(context, ft_class(name), all);
  return all;
}

// Its least run takes minutes: there is no quick one.
std::vector<Point> points_of_class_b(const Context& context) {
  std::vector<Point> all;
  if (!context.quick) add_points(context, ft_class('B'), all);
  return all;
}

template <class Window>
Status run(const Context& context, Recorder& recorder, const scc::Placement& placement,
           const FtClass& problem, int iterations, FtResult* result) {
  const scc::JobShape shape{.processes = ft_processes,
                            .cores = {},
                            .sync_bytes = Window::sync_bytes(ft_processes),
                            .data_bytes = ft_bytes_received(problem),
                            .placement = placement,
                            .options = {},
                            .idle = nullptr};
  TOMBOLO_TRY(run_job(context, recorder, shape, [&](const scc::Attachment& at, scc::Cpu& cpu) {
    WindowTransport<Window> transport(at, cpu);
    ft_solve(cpu, transport, problem, iterations, at.self, *result);
  }));
  ft_finish(problem, *result);
  return {};
}

}  // namespace

void report_ft(Recorder& recorder, const std::string& variant, const FtClass& problem,
               int iterations, const FtResult& result) {
  const double factor = static_cast<double>(problem.iterations) / iterations;
  const double seconds = result.seconds_before + factor * (result.seconds - result.seconds_before);
  const std::string note =
      iterations == problem.iterations
          ? ""
          : fmt::format("of {} iterations, scaled to {}", iterations, problem.iterations);
  const auto row = [&](const std::string& series, double value, const char* unit) {
    recorder.row({series, problem.name, value, unit, {}, {}, note});
  };
  row("mflops/" + variant, ft_operations(problem, problem.iterations) / seconds / 1e6, "MFLOPS");
  const FtTimes times = scaled(result, factor);
  const auto part = [&](const char* name, double value) {
    report_part(recorder, variant, problem, name, value, note);
  };
  part("fft", times.fft);
  part("communication", times.transfer + times.synchronization);
  part("transpose", times.transpose);
  part("bookkeeping", times.bookkeeping);
  part("barrier", times.barrier);
  if (variant == "rckmpi-two-sided") {
    row("messages", factor * static_cast<double>(result.messages), "");
    row("transferred", factor * static_cast<double>(result.message_bytes) / mebibyte, "MiB");
  }
  if (variant == "scosco")
    row("synchronization/scosco", 100 * times.synchronization / times.transfer, "%");
  row("checksum/" + variant, ft_equal(result.checksums, problem.checksums) ? 1 : 0, "");
}

std::uint64_t ft_memory(const FtClass& problem) {
  return memory_of_chip(ft_processes) + problem.points() * 160;
}

Status ft_by_windows(const Context& context, Recorder& recorder, const scc::Placement& placement,
                     const FtClass& problem, int iterations, FtResult* result) {
  return run<Ours>(context, recorder, placement, problem, iterations, result);
}

Status ft_by_windows(const Context& context, Recorder& recorder, FtVariant variant,
                     const FtClass& problem, int iterations, FtResult* result) {
  Context on = context;
  if (variant == FtVariant::no_erratum) on.chip.errata.mpbt_wt_reads_uncached = false;
  scc::Placement placement;
  if (variant == FtVariant::dcm) {
    placement.own = scc::MemoryType::dcm;
    placement.as_prototype = true;
  }
  return run<Prototype>(on, recorder, placement, problem, iterations, result);
}

Experiment ft() { return {"ft", "NAS FT on 32 cores", points}; }
Experiment ft_class_b() { return {"ft-class-b", "NAS FT on 32 cores, class B", points_of_class_b}; }

}  // namespace tombolo::experiments
