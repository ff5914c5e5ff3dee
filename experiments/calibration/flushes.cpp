// SPDX-License-Identifier: Apache-2.0
#include "experiments/calibration/flushes.h"

#include <functional>

#include "experiments/calibration/core_0.h"

namespace tombolo::experiments {
namespace {

using scc::Chip;
using scc::Cpu;
using scc::MemoryType;
using scc::View;
using simulator::Duration;
using simulator::Time;

constexpr std::uint64_t line_size = 32;
constexpr int samples = 4;  // of the same program on the same chip: they hardly differ

using Flush = std::function<void(Cpu&)>;
using MakeFlush = std::function<Flush(Chip&, Cpu&)>;

enum class Before : std::uint8_t { clean, flush, dirty };
struct State {
  Before before;
  const char* name;
};
constexpr State states[] = {
    {Before::clean, "clean"}, {Before::flush, "flush"}, {Before::dirty, "dirty"}};

// A store to a line that is in no cache would leave none there, so each is loaded first.
void fill(Cpu& cpu, View data, std::uint64_t bytes, bool dirty) {
  for (std::uint64_t at = 0; at < bytes; at += line_size) {
    cpu.load<std::uint32_t>(data + at);
    if (dirty) cpu.store<std::uint32_t>(data + at, 1);
  }
}

void load_all(Cpu& cpu, View block, std::uint64_t bytes) {
  cpu.compute(cpu.timing().system_call);
  for (std::uint64_t at = 0; at < bytes; at += line_size) {
    cpu.load<std::uint32_t>(block + at);
    cpu.compute(cpu.timing().flush_loop);
  }
  cpu.wait_for_writes();
}

// The mean time of a flush of `bytes`, each of the samples from the same state.
Duration time_of_flush(Cpu& cpu, const Flush& flush, Before before, View data,
                       std::uint64_t bytes) {
  Duration sum;
  for (int i = 0; i < samples; ++i) {
    if (before == Before::flush) {
      flush(cpu);
    } else {
      // Twice: pseudo-LRU leaves lines of other data behind the first time.
      for (int pass = 0; pass < 2; ++pass) fill(cpu, data, bytes, before == Before::dirty);
    }
    cpu.wait_for_writes();
    const Time begin = cpu.now();
    flush(cpu);
    sum += cpu.now() - begin;
  }
  return Duration::ticks(sum.in_ticks() / samples);
}

// `lines`: the time is that of one line where they are flushed one by one; 1 for an instruction.
Status measure(const Context& context, Recorder& recorder, const std::string& series,
               std::uint64_t bytes, std::uint64_t lines, const MakeFlush& make) {
  for (const State& state : states) {
    double cycles = 0;
    TOMBOLO_TRY(on_core_0(context, recorder, &cycles, [&](Chip& chip, Cpu& cpu) {
      const View data{cpu.allocate_private(bytes), MemoryType::dcm};
      return time_of_flush(cpu, make(chip, cpu), state.before, data, bytes);
    }));
    recorder.row({series,
                  std::string(state.name),
                  cycles / static_cast<double>(lines),
                  "cycles",
                  {},
                  {},
                  {}});
  }
  return {};
}

Flush normal(Chip& chip, Cpu& cpu) {
  const auto bytes = static_cast<std::uint64_t>(chip.parameters().caches.l2_bytes);
  const View block{cpu.allocate_private(bytes), MemoryType::dcm};
  return [=](Cpu& c) { load_all(c, block, bytes); };
}

// Addresses beyond the buffer's 16 KB are others to the caches.
MakeFlush from_mpb(std::uint64_t blocks) {
  return [blocks](Chip& chip, Cpu& cpu) -> Flush {
    const auto bytes = static_cast<std::uint64_t>(chip.parameters().caches.l2_bytes);
    const auto tile = static_cast<std::uint32_t>(
        cpu.id().index() / static_cast<std::uint32_t>(chip.parameters().layout.cores_per_tile));
    const View buffer = mpb_of_tile(chip, tile, MemoryType::dcm);
    return [=, turn = std::uint64_t{0}](Cpu& c) mutable {
      load_all(c, buffer + turn++ % blocks * bytes, bytes);
    };
  };
}

Status second_level(const Context& context, Recorder& recorder) {
  const auto bytes = static_cast<std::uint64_t>(context.chip.caches.l2_bytes);
  const std::uint64_t lines = bytes / line_size;
  TOMBOLO_TRY(measure(context, recorder, "l2-flush/normal", bytes, lines, normal));
  TOMBOLO_TRY(measure(context, recorder, "l2-flush/mpb", bytes, lines, from_mpb(1)));
  return measure(context, recorder, "l2-flush/mpb2", bytes, lines, from_mpb(2));
}

Status first_level(const Context& context, Recorder& recorder) {
  const auto bytes = static_cast<std::uint64_t>(context.chip.caches.l1_bytes);
  const auto instruction = [](auto&& act) { return [act](Chip&, Cpu&) -> Flush { return act; }; };
  TOMBOLO_TRY(measure(context, recorder, "l1-flush/wbinvd", bytes, 1,
                      instruction([](Cpu& cpu) { cpu.wbinvd(); })));
  return measure(context, recorder, "l1-flush/invd", bytes, 1,
                 instruction([](Cpu& cpu) { cpu.invd(); }));
}

}  // namespace

std::vector<Point> flush_points(const Context&) {
  return {{"flush-l2", 0.5, memory_of_chip(1), second_level},
          {"flush-l1", 0.1, memory_of_chip(1), first_level}};
}

}  // namespace tombolo::experiments
