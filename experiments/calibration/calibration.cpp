// SPDX-License-Identifier: Apache-2.0
#include "experiments/calibration/calibration.h"

#include "experiments/calibration/core_0.h"
#include "experiments/calibration/flushes.h"

namespace tombolo::experiments {
namespace {

using scc::Chip;
using scc::Cpu;
using scc::MemoryType;
using scc::View;
using simulator::Duration;
using simulator::Time;

constexpr std::uint64_t window = std::uint64_t{16} << 20;  // 002 section 2.3.3
constexpr double mebibyte = 1 << 20;

template <class Step>
Duration loop(Cpu& cpu, int times, Step&& step) {
  const Time begin = cpu.now();
  for (int i = 0; i < times; ++i) step(i);
  cpu.wait_for_writes();
  return Duration::ticks((cpu.now() - begin).in_ticks() / times);
}

// Eight stores that fill a line, until it has left the core.
Duration write_lines(Cpu& cpu, View first, int lines) {
  return loop(cpu, lines, [&](int line) {
    for (std::uint64_t word = 0; word < 8; ++word) {
      cpu.store<std::uint32_t>(first + static_cast<std::uint64_t>(line) % 64 * 32 + word * 4, 1);
      cpu.compute(cpu.timing().loop);
    }
    cpu.wait_for_writes();
  });
}

// TN-005, local buffer: past the router, as if the bypass could be used.
Status local_buffer(const Context& context, Recorder& recorder) {
  Context bypass = context;
  bypass.chip.errata.local_mpb_bypass_unusable = false;
  double read = 0;
  TOMBOLO_TRY(on_core_0(bypass, recorder, &read, [](Chip& chip, Cpu& cpu) {
    const View own = mpb_of_tile(chip, 0, MemoryType::ncm);
    return loop(cpu, 100, [&](int) { cpu.load<std::uint32_t>(own); });
  }));
  double write = 0;
  TOMBOLO_TRY(on_core_0(bypass, recorder, &write, [](Chip& chip, Cpu& cpu) {
    return write_lines(cpu, mpb_of_tile(chip, 0, MemoryType::mpbt_wb), 100);
  }));
  recorder.row({"mpb-local-read-word", 0.0, read, "cycles", {}, {}, {}});
  recorder.row({"mpb-local-write-line", 0.0, write, "cycles", {}, {}, {}});
  return {};
}

// The first tile at each number of hops from tile (0, 0).
Status remote_buffers(const Context& context, Recorder& recorder) {
  const std::uint32_t columns = static_cast<std::uint32_t>(context.chip.layout.mesh_columns);
  for (std::uint32_t hops = 1, tile = 0; tile < context.chip.tiles(); ++tile) {
    if (simulator::Mesh::hops({0, 0}, {tile % columns, tile / columns}) != hops) continue;
    double read = 0;
    double write = 0;
    TOMBOLO_TRY(on_core_0(context, recorder, &read, [&](Chip& chip, Cpu& cpu) {
      const View there = mpb_of_tile(chip, tile, MemoryType::ncm);
      return loop(cpu, 100, [&](int) { cpu.load<std::uint32_t>(there); });
    }));
    TOMBOLO_TRY(on_core_0(context, recorder, &write, [&](Chip& chip, Cpu& cpu) {
      return write_lines(cpu, mpb_of_tile(chip, tile, MemoryType::mpbt_wb), 100);
    }));
    recorder.row({"mpb-remote-read-word", double(hops), read, "cycles", {}, {}, {}});
    recorder.row({"mpb-remote-write-line", double(hops), write, "cycles", {}, {}, {}});
    ++hops;
    tile = ~std::uint32_t{0};
  }
  return {};
}

Status controllers(const Context& context, Recorder& recorder) {
  for (std::uint32_t c = 0; c < context.chip.layout.controllers.size(); ++c) {
    const auto at = [c](Chip& chip, MemoryType type) { return View{chip.shared(c), type}; };
    double read = 0;
    double uncached = 0;
    double combined = 0;
    TOMBOLO_TRY(on_core_0(context, recorder, &read, [&](Chip& chip, Cpu& cpu) {
      const View there = at(chip, MemoryType::ncm);
      return loop(cpu, 100, [&](int) { cpu.load<std::uint32_t>(there); });
    }));
    TOMBOLO_TRY(on_core_0(context, recorder, &uncached, [&](Chip& chip, Cpu& cpu) {
      return write_lines(cpu, at(chip, MemoryType::ncm), 100);
    }));
    TOMBOLO_TRY(on_core_0(context, recorder, &combined, [&](Chip& chip, Cpu& cpu) {
      return write_lines(cpu, at(chip, MemoryType::mpbt_wb), 100);
    }));
    recorder.row({"dram-read-word-uncached", double(c), read, "cycles", {}, {}, {}});
    recorder.row({"dram-write-line-uncached", double(c), uncached, "cycles", {}, {}, {}});
    recorder.row({"dram-write-line-combined", double(c), combined, "cycles", {}, {}, {}});
  }
  return {};
}

// The sum of the parameters, in core cycles: the least time of a line.
Status least(const Context& context, Recorder& recorder) {
  const scc::Timing timing(context.chip);
  const Duration cycle = timing.core.period();
  for (std::int64_t hops = 0; hops <= 8; ++hops) {
    const Duration trip =
        timing.dram.path + timing.dram.access + timing.hop * (std::int64_t{2} * hops);
    recorder.row({"dram-minimum",
                  double(hops),
                  static_cast<double>(trip.in_ticks()) / static_cast<double>(cycle.in_ticks()),
                  "cycles",
                  {},
                  {},
                  {}});
  }
  return {};
}

Status instructions(const Context& context, Recorder& recorder) {
  double cycles = 0;
  TOMBOLO_TRY(on_core_0(context, recorder, &cycles, [](Chip&, Cpu& cpu) {
    return loop(cpu, 100, [&](int) { cpu.cl1invmb(); });
  }));
  recorder.row({"instruction", std::string("CL1INVMB"), cycles, "cycles", {}, {}, {}});
  return {};
}

// 002 Table 2.1: core 0 goes over a window on one tile's buffer, which wraps around.
Status tile(const Context& context, Recorder& recorder, std::uint32_t number) {
  const auto bytes = context.quick ? window / 16 : window;
  const auto go = [&](int step, bool writes, double* cycles) {
    return on_core_0(context, recorder, cycles, [&](Chip& chip, Cpu& cpu) {
      const View there = mpb_of_tile(chip, number, MemoryType::mpbt_wb);
      return loop(cpu, static_cast<int>(bytes / static_cast<unsigned>(step)), [&](int i) {
        const View at = there + static_cast<std::uint64_t>(i) * static_cast<unsigned>(step);
        if (writes && step == 4) cpu.store<std::uint32_t>(at, 1);
        if (writes && step != 4) cpu.store<std::uint8_t>(at, 1);
        if (!writes && step == 4) cpu.load<std::uint32_t>(at);
        if (!writes && step != 4) cpu.load<std::uint8_t>(at);
        cpu.compute(cpu.timing().loop);
      });
    });
  };
  const scc::Timing timing(context.chip);
  for (const bool writes : {false, true}) {
    const std::string kind = writes ? "write" : "read";
    double byte = 0;
    double word = 0;
    TOMBOLO_TRY(go(32, writes, &byte));
    TOMBOLO_TRY(go(4, writes, &word));
    const double seconds = word * timing.core.period().in_nanoseconds() * 1e-9;
    recorder.row({"mpb-byte-" + kind, double(number), byte, "cycles", {}, {}, {}});
    recorder.row({"mpb-word-" + kind, double(number), word, "cycles", {}, {}, {}});
    recorder.row({"mpb-" + kind + "-throughput",
                  double(number),
                  4 / seconds / mebibyte,
                  "MiB/s",
                  {},
                  {},
                  {}});
  }
  return {};
}

std::vector<Point> points(const Context& context) {
  std::vector<Point> all = {{"local-buffer", 0.1, memory_of_chip(1), local_buffer},
                            {"remote-buffers", 0.1, memory_of_chip(1), remote_buffers},
                            {"controllers", 0.1, memory_of_chip(1), controllers},
                            {"least", 0.1, memory_of_chip(1), least},
                            {"instructions", 0.1, memory_of_chip(1), instructions}};
  for (std::uint32_t number = 0; number < context.chip.tiles(); ++number)
    all.push_back({fmt::format("tile-{}", number), context.quick ? 0.1 : 1.5, memory_of_chip(1),
                   [number](const Context& c, Recorder& r) { return tile(c, r, number); }});
  for (Point& point : flush_points(context)) all.push_back(std::move(point));
  return all;
}

}  // namespace

Experiment calibration() {
  return {"calibration", "Latencies of the chip's memories and instructions", points};
}

}  // namespace tombolo::experiments
