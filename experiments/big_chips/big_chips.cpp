// SPDX-License-Identifier: Apache-2.0
#include "experiments/big_chips/big_chips.h"

#include "experiments/common/measure.h"
#include "experiments/gats/gats.h"
#include "experiments/passive_target/passive_target.h"

namespace tombolo::experiments {
namespace {

// Fewer than on the SCC: with more processes they give as many samples.
constexpr int iteration_count = 11;
constexpr int pair_count = 50;

struct BigChip {
  std::string name;  // of its file; none: the chip of the context
  std::uint32_t cores = 0;
  std::vector<std::uint32_t> targets;
  std::vector<std::uint32_t> processes;  // of locks
};

std::vector<BigChip> chips(const Context& context) {
  std::vector<BigChip> all = {{"", 48, {1, 4, 16, 47}, {}},
                              {"mesh-16x8", 256, {1, 4, 16, 64, 255}, {16, 64, 256}},
                              {"mesh-32x16", 1024, {1, 4, 16, 64, 256, 1023}, {16, 64, 256, 1024}}};
  if (context.quick) {
    all[0].targets = {4, 47};
    all[1].targets = {4, 64};
    all[1].processes = {16, 64};
    all[2].targets = {4, 64};
    all[2].processes = {16, 64};
  }
  return all;
}

Status on_chip(const Context& context, const BigChip& chip, Context* other) {
  if (context.chip.name != "scc")
    return Status::bad_configuration(
        "the larger chips are compared with the chip \"scc\"; leave "
        "out --chip");
  *other = context;
  if (chip.name.empty()) return {};
  return scc::find_parameters(chip.name, &other->chip);
}

Status gats_point(const Context& context, Recorder& recorder, const BigChip& chip, Gats gats,
                  std::uint32_t targets) {
  Context there;
  TOMBOLO_TRY(on_chip(context, chip, &there));
  GatsTimes times;
  TOMBOLO_TRY(measure_gats(there, recorder, gats, targets, context.repetitions(iteration_count, 5),
                           &times));
  const double origin = quartiles(times.start).median + quartiles(times.complete).median;
  const std::string by = gats == Gats::ours ? "" : "scosco/";
  recorder.row({fmt::format("origin/{}{}", by, chip.cores),
                double(targets),
                origin,
                "us",
                {},
                {},
                {},
                there.chip});
  Row post = row_of(fmt::format("post/{}{}", by, chip.cores), targets, times.post, "us");
  post.chip = there.chip;
  recorder.row(post);
  return {};
}

Status lock_point(const Context& context, Recorder& recorder, const BigChip& chip,
                  std::uint32_t processes, const LockMix& mix, const LockScheme& scheme) {
  Context there;
  TOMBOLO_TRY(on_chip(context, chip, &there));
  std::vector<double> times;
  TOMBOLO_TRY(measure_locks(there, recorder, processes, context.repetitions(pair_count, 10), mix,
                            scheme, &times));
  Row row =
      row_of(fmt::format("{}/{}/{}", mix.name, scheme.name, chip.cores), processes, times, "us");
  row.chip = there.chip;
  recorder.row(row);
  return {};
}

std::vector<Point> points(const Context& context) {
  std::vector<Point> all;
  for (const BigChip& chip : chips(context)) {
    for (const Gats gats : {Gats::published, Gats::ours})
      for (const std::uint32_t targets : chip.targets)
        all.push_back(
            {fmt::format("gats-{}{}-{}", gats == Gats::ours ? "" : "scosco-", chip.cores, targets),
             0.2 + 2e-5 * targets * targets, memory_of_chip(chip.cores),
             [=](const Context& c, Recorder& r) { return gats_point(c, r, chip, gats, targets); }});
    for (const LockMix& mix : lock_mixes())
      for (const LockScheme& scheme :
           {gbh(), gbh_with_backoff(), mcs_wp(), our_writer_preference()})
        for (const std::uint32_t n : chip.processes)
          all.push_back({fmt::format("{}-{}-{}-{}", mix.name, scheme.name, chip.cores, n),
                         0.2 + (scheme.name == "gbh" ? 1e-4 * n * n : 0.01 * n),
                         memory_of_chip(chip.cores), [=](const Context& c, Recorder& r) {
                           return lock_point(c, r, chip, n, mix, scheme);
                         }});
  }
  return all;
}

}  // namespace

Experiment big_chips() { return {"big-chips", "Larger chips", points}; }

}  // namespace tombolo::experiments
