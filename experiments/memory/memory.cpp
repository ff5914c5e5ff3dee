// SPDX-License-Identifier: Apache-2.0
#include "experiments/memory/memory.h"

#include "backends/scc/chip.h"
#include "backends/scc/cpu.h"
#include "base/random.h"
#include "experiments/common/copy_core.h"
#include "experiments/common/measure.h"
#include "experiments/common/rckmpi_series.h"
#include "experiments/memory/page_bits.h"

namespace tombolo::experiments {
namespace {

using scc::Chip;
using scc::Cpu;
using scc::MemoryType;
using scc::View;
using simulator::Address;
using simulator::CoreId;
using simulator::Duration;
using simulator::Time;

constexpr double mebibyte = 1 << 20;
constexpr std::uint64_t line_size = 32;

double mebibytes_a_second(std::uint64_t bytes, Duration d) {
  return static_cast<double>(bytes) / mebibyte / (d.in_nanoseconds() * 1e-9);
}

Status run(const Context& context, Chip& chip, Recorder& recorder) {
  const simulator::RunResult result = chip.run();
  return end_of_run(context, recorder, chip, result);
}

// ---- Loads and stores of one core ---------------------------------------------------------------

enum class Access : std::uint8_t { load, store };

// The loop of 000 appendix B.1: a word, the next address, the branch.
void go_over(Cpu& cpu, View first, std::uint64_t bytes, Access access) {
  for (std::uint64_t at = 0; at < bytes; at += 4) {
    if (access == Access::load) {
      cpu.load<std::uint32_t>(first + at);
    } else {
      cpu.store<std::uint32_t>(first + at, 1);
    }
    cpu.compute(cpu.timing().loop);
  }
}

Status bandwidth(const Context& context, const std::string& series, MemoryType type, Access access,
                 std::uint64_t bytes, Recorder& recorder) {
  const int times = context.repetitions(5, 1);
  std::vector<double> samples;
  Chip chip(context.chip, options_of(context));
  chip.start(CoreId(0), [&](Cpu& cpu) {
    const View buffer{cpu.allocate_private(bytes), type};
    for (int i = 0; i <= times; ++i) {
      go_over(cpu, buffer, bytes, Access::load);  // warm caches
      const Time begin = cpu.now();
      go_over(cpu, buffer, bytes, access);
      if (i > 0) samples.push_back(mebibytes_a_second(bytes, cpu.now() - begin));
    }
  });
  TOMBOLO_TRY(run(context, chip, recorder));
  Row row = row_of(series, static_cast<double>(bytes), samples, "MiB/s");
  row.note = fmt::format("median of {}, not of 501", times);
  recorder.row(row);
  return {};
}

struct Setting {
  const char* series;
  MemoryType type;
  Access access;
  bool repaired = false;  // a chip without the erratum of write-through pages
};

constexpr Setting settings[] = {
    {"store/dcm", MemoryType::dcm, Access::store},
    {"store/ncm", MemoryType::ncm, Access::store},
    {"store/ncm-wcb", MemoryType::ncm_wcb, Access::store},
    {"store/mpbt-wb", MemoryType::mpbt_wb, Access::store},
    {"store/mpbt-wt", MemoryType::mpbt_wt, Access::store},
    {"load/dcm", MemoryType::dcm, Access::load},
    {"load/ncm", MemoryType::ncm, Access::load},
    {"load/ncm-wcb", MemoryType::ncm_wcb, Access::load},
    {"load/mpbt-wb", MemoryType::mpbt_wb, Access::load},
    {"load/mpbt-wt", MemoryType::mpbt_wt, Access::load},
    {"load/mpbt-wt-no-erratum", MemoryType::mpbt_wt, Access::load, true},
    {"pages/none", type_of(PageBits{}), Access::load},
    {"pages/pwt", type_of(PageBits{.pwt = true}), Access::load},
    {"pages/pmb", type_of(PageBits{.pmb = true}), Access::load},
    {"pages/pmb-pwt", type_of(PageBits{.pwt = true, .pmb = true}), Access::load},
    {"pages/pcd", type_of(PageBits{.pcd = true}), Access::load},
};

Status bandwidths(const Context& context, const Setting& setting, Recorder& recorder) {
  Context on = context;
  if (setting.repaired) on.chip.errata.mpbt_wt_reads_uncached = false;
  for (std::uint64_t bytes = 1 << 10; bytes <= 2 << 20; bytes *= context.quick ? 4 : 2)
    TOMBOLO_TRY(bandwidth(on, setting.series, setting.type, setting.access, bytes, recorder));
  return {};
}

// ---- Latency by tile ----------------------------------------------------------------------------

// The memory is the same for all tiles: a controller's legacy shared memory, cached.
Status latency(const Context& context, std::uint32_t tile, Recorder& recorder) {
  const std::uint64_t bytes = context.chip.page_bytes() / (context.quick ? 64 : 1);
  double sum = 0;
  for (std::uint32_t c = 0; c < context.chip.layout.controllers.size(); ++c) {
    Chip chip(context.chip, options_of(context));
    const CoreId core(tile * static_cast<std::uint32_t>(context.chip.layout.cores_per_tile));
    double cycles = 0;
    chip.start(core, [&](Cpu& cpu) {
      const View there{chip.shared(c), MemoryType::dcm};
      const std::uint64_t lines = bytes / line_size;
      for (std::uint64_t at = 0; at < bytes; at += line_size) {
        cpu.load<std::uint8_t>(there + at);
        cpu.compute(cpu.timing().loop);
      }
      cycles = static_cast<double>(cpu.now().since_start().in_ticks()) /
               static_cast<double>(cpu.timing().core.period().in_ticks()) /
               static_cast<double>(lines);
    });
    TOMBOLO_TRY(run(context, chip, recorder));
    recorder.row({fmt::format("latency/mc{}", c), double(tile), cycles, "cycles", {}, {}, {}});
    sum += cycles;
  }
  recorder.row({"latency/average",
                double(tile),
                sum / static_cast<double>(context.chip.layout.controllers.size()),
                "cycles",
                {},
                {},
                {}});
  return {};
}

// ---- Many cores ---------------------------------------------------------------------------------

// Two DIMMs of two ranks (002 section 4.3.3).
constexpr std::uint64_t rank_count = 4;

// The n-th that reads at a controller: its memory, in the banks of so many ranks in turn, as the
// load on them was even.
scc::LutEntry bank_in_turn(const Chip& chip, std::uint32_t controller, std::uint64_t n,
                           std::uint64_t ranks) {
  const auto& layout = chip.parameters().layout;
  const auto banks = static_cast<std::uint64_t>(layout.banks_per_controller);
  const std::uint64_t bank_bytes =
      (static_cast<std::uint64_t>(layout.controller_megabytes) << 20) / banks;
  const std::uint64_t used = banks * ranks / rank_count;
  return {scc::DeviceKind::dram, controller, n % used * bank_bytes + n / used * chip.page_bytes()};
}

// Core i reads at controller i modulo their number, so that the load is even for any number of
// cores; each its own lines, once.
Status aggregate(const Context& context, std::uint32_t controllers, std::uint64_t ranks,
                 std::uint32_t cores, Recorder& recorder) {
  const std::uint64_t bytes = context.quick ? 16 << 10 : 256 << 10;
  Chip chip(context.chip, options_of(context));
  Time end;
  for (std::uint32_t core = 0; core < cores; ++core) {
    const auto entry = static_cast<std::uint32_t>(context.chip.layout.shared_lut_entry);
    chip.set_lut(CoreId(core), entry,
                 bank_in_turn(chip, core % controllers, core / controllers, ranks));
    chip.start(CoreId(core), [&chip, &end, bytes](Cpu& cpu) {
      go_over(cpu, {chip.shared(0), MemoryType::dcm}, bytes, Access::load);
      end = std::max(end, cpu.now());
    });
  }
  TOMBOLO_TRY(run(context, chip, recorder));
  const std::string series = fmt::format(
      "aggregate/{}-controller{}{}", controllers, controllers == 1 ? "" : "s",
      ranks == rank_count ? "" : fmt::format("-{}-rank{}", ranks, ranks == 1 ? "" : "s"));
  recorder.row({series,
                double(cores),
                mebibytes_a_second(bytes * cores, end.since_start()),
                "MiB/s",
                {},
                {},
                {}});
  return {};
}

Status aggregates(const Context& context, std::uint32_t controllers, std::uint64_t ranks,
                  Recorder& recorder) {
  for (const std::uint32_t cores : {1, 2, 4, 8, 12, 16, 24, 32, 40, 48})
    if (cores <= context.chip.cores())
      TOMBOLO_TRY(aggregate(context, controllers, ranks, cores, recorder));
  return {};
}

// ---- Copy cores ---------------------------------------------------------------------------------

// Of the quarter of core 0, each on a tile of its own.
constexpr std::uint32_t copy_cores[] = {2, 4, 12, 14};

// The memory of core 0 is copied in equal parts, one for each copy core.
Duration copy_in_parts(Cpu& cpu, CopyCommand command, std::uint32_t cores) {
  CopyClient client(cpu);
  std::vector<Ticket> tickets;
  const Time begin = cpu.now();
  const std::uint32_t part = command.bytes / cores;
  for (std::uint32_t i = 0; i < cores; ++i) {
    CopyCommand one = command;
    one.bytes = part;
    one.from.offset += std::uint64_t{i} * part;
    one.to.offset += std::uint64_t{i} * part;
    tickets.push_back(client.submit(CoreId(copy_cores[i]), one));
  }
  for (const Ticket& ticket : tickets) client.wait(ticket);
  return cpu.now() - begin;
}

void fill(Chip& chip, Address first, std::uint64_t bytes, std::uint64_t seed) {
  Random random(seed);
  for (std::uint64_t at = 0; at < bytes; at += 8) {
    const std::uint64_t value = random.next();
    chip.poke(CoreId(0), first + at, &value, sizeof value);
  }
}

bool equal(Chip& chip, Address a, Address b, std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes; at += 8) {
    std::uint64_t of_a = 0;
    std::uint64_t of_b = 0;
    chip.peek(CoreId(0), a + at, &of_a, sizeof of_a);
    chip.peek(CoreId(0), b + at, &of_b, sizeof of_b);
    if (of_a != of_b) return false;
  }
  return true;
}

Status copy(const Context& context, CopyMethod method, std::uint32_t cores, std::uint64_t bytes,
            Recorder& recorder) {
  Chip chip(context.chip, options_of(context));
  const Address from = chip.private_memory();
  const Address to = from + 8 * chip.page_bytes();
  fill(chip, from, bytes, context.seed);
  Duration took;
  chip.start(CoreId(0), [&](Cpu& cpu) {
    const CopyCommand whole{system_address(chip, CoreId(0), from),
                            system_address(chip, CoreId(0), to), static_cast<std::uint32_t>(bytes),
                            method};
    CopyCommand first = whole;
    first.bytes = 4 << 10;
    copy_in_parts(cpu, first, cores);  // the copy cores empty their caches
    took = copy_in_parts(cpu, whole, cores);
    for (std::uint32_t i = 0; i < cores; ++i) CopyClient(cpu).stop(CoreId(copy_cores[i]));
  });
  for (std::uint32_t i = 0; i < cores; ++i)
    chip.start(CoreId(copy_cores[i]), [](Cpu& cpu) { CopyCore(cpu).serve(); });
  TOMBOLO_TRY(run(context, chip, recorder));
  if (!equal(chip, from, to, bytes))
    return Status::stopped(fmt::format("a copy of {} bytes differs from its source", bytes));
  recorder.row({fmt::format("copy/{}-{}", method == CopyMethod::memcpy ? "memcpy" : "lut", cores),
                static_cast<double>(bytes),
                mebibytes_a_second(bytes, took),
                "MiB/s",
                {},
                {},
                {}});
  return {};
}

Status copies(const Context& context, CopyMethod method, std::uint32_t cores, Recorder& recorder) {
  const std::uint64_t most = context.quick ? 1 << 20 : 64 << 20;
  for (std::uint64_t bytes = 4 << 10; bytes <= most; bytes *= context.quick ? 4 : 2)
    TOMBOLO_TRY(copy(context, method, cores, bytes, recorder));
  return {};
}

// ---- Points -------------------------------------------------------------------------------------

std::string point_name(std::string series) {
  std::replace(series.begin(), series.end(), '/', '-');
  return series;
}

std::vector<Point> points(const Context& context) {
  std::vector<Point> all;
  for (const Setting& setting : settings)
    all.push_back(
        {point_name(setting.series), context.quick ? 0.2 : 2, memory_of_chip(1) + (4 << 20),
         [&setting](const Context& c, Recorder& r) { return bandwidths(c, setting, r); }});
  for (std::uint32_t tile = 0; tile < context.chip.tiles(); ++tile)
    all.push_back({fmt::format("latency-{}", tile), context.quick ? 0.1 : 1,
                   memory_of_chip(1) + (32 << 20),
                   [tile](const Context& c, Recorder& r) { return latency(c, tile, r); }});
  struct Spread {
    std::uint32_t controllers;
    std::uint64_t ranks;
  };
  for (const Spread& s : {Spread{4, rank_count}, {4, 1}, {2, rank_count}, {1, rank_count}, {1, 1}})
    if (s.controllers <= context.chip.layout.controllers.size())
      all.push_back({fmt::format("aggregate-{}{}", s.controllers, s.ranks == 1 ? "-1-rank" : ""),
                     context.quick ? 0.2 : 2, memory_of_chip(48) + (32 << 20),
                     [s](const Context& c, Recorder& r) {
                       return aggregates(c, s.controllers, s.ranks, r);
                     }});
  for (const CopyMethod method : {CopyMethod::memcpy, CopyMethod::lut})
    for (const std::uint32_t cores : {1, 2, 4}) {
      const char* name = method == CopyMethod::memcpy ? "memcpy" : "lut";
      all.push_back(
          {fmt::format("copy-{}-{}", name, cores), context.quick ? 0.5 : 8,
           memory_of_chip(16) + (160 << 20),
           [method, cores](const Context& c, Recorder& r) { return copies(c, method, cores, r); }});
    }
  for (Point& point : rcce_memory_points(context)) all.push_back(std::move(point));
  for (Point& point : rcce_mapping_points(context)) all.push_back(std::move(point));
  return all;
}

}  // namespace

Experiment memory() { return {"memory", "Bandwidth and latency of main memory", points}; }

}  // namespace tombolo::experiments
