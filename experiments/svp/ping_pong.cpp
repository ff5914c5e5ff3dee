// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/ping_pong.h"

#include <algorithm>

#include "experiments/common/measure.h"

namespace tombolo::experiments {
namespace {

using scc::View;
using simulator::CoreId;
using simulator::Duration;
using simulator::Time;

constexpr std::uint64_t integer = 4;

// The neighbouring tile, and copy cores as those of the experiment `memory`.
const CoreId master(0);
const CoreId remote(2);
const std::vector<CoreId> copy_cores{CoreId(4), CoreId(12), CoreId(14), CoreId(16)};

std::uint32_t first_value(std::uint64_t round, std::uint64_t i) {
  return static_cast<std::uint32_t>(i * 2654435761u + round * 40503u);
}

// All integers, or one a line: stale lines show either way.
std::uint64_t stride(std::uint64_t integers) { return integers > 64 ? 8 : 1; }

Function returns_at_once(bool change) {
  return {.scalars = 1,
          .describe =
              [](const Scalars& scalars) {
                return std::vector<Shape>{{true, true, {scalars[0], integer}}};
              },
          .run =
              [change](Node& node, const Scalars& scalars, const Arrays& arrays) {
                for (std::uint64_t i = 0; change && i < scalars[0]; i += stride(scalars[0])) {
                  const View at = arrays[0] + i * integer;
                  node.cpu().store(at, node.cpu().load<std::uint32_t>(at) + 1);
                }
                return Status();
              }};
}

class Master {
 public:
  Master(const PingPong& what, Distribution& all, PingPongResult& result)
      : what_(what), all_(all), result_(result) {}

  Status operator()(Node& node) {
    View array{simulator::Address()};
    TOMBOLO_TRY(node.allocate(what_.bytes, &array));
    const std::uint64_t n = what_.bytes / integer;
    for (int i = 0; i <= what_.times; ++i) {
      const auto round = static_cast<std::uint64_t>(i);
      fill(node, array, round);
      const Time begin = node.system().now();
      const Activity before = of_both(begin);
      Family family;
      TOMBOLO_TRY(node.create(remote, {.function = 0, .scalars = {n}, .arrays = {array}}, &family));
      TOMBOLO_TRY(node.sync(family));
      const Time end = node.system().now();
      if (i == 1 || end - begin < result_.shortest) {
        result_.shortest = end - begin;
        result_.meanwhile = of_both(end) - before;
      }
      check(node, array, round);
    }
    return {};
  }

 private:
  Activity of_both(Time until) {
    Activity both = all_.node(master).activity(until);
    return both += all_.node(remote).activity(until);
  }
  void fill(Node& node, View array, std::uint64_t round) {
    const std::uint64_t n = what_.bytes / integer;
    for (std::uint64_t i = 0; i < n; i += stride(n))
      node.cpu().store(array + i * integer, first_value(round, i));
  }
  void check(Node& node, View array, std::uint64_t round) {
    const std::uint64_t n = what_.bytes / integer;
    for (std::uint64_t i = 0; i < n; i += stride(n)) {
      const auto value = node.cpu().load<std::uint32_t>(array + i * integer);
      if (value != first_value(round, i) + (what_.change ? 1 : 0)) ++result_.wrong_words;
    }
  }

  PingPong what_;
  Distribution& all_;
  PingPongResult& result_;
};

Status measure(const Context& context, Scheme scheme, std::uint64_t bytes, Recorder& recorder) {
  const bool large = bytes >= std::uint64_t{4} << 20;
  const PingPong what{
      .scheme = scheme, .bytes = bytes, .times = context.repetitions(large ? 1 : 3, 2)};
  PingPongResult result;
  TOMBOLO_TRY(ping_pong(context, what, &result));
  recorder.cost({result.run.events, result.run.end.since_start().in_nanoseconds() * 1e-9});
  if (result.wrong_words > 0)
    return Status::stopped(fmt::format("{} of {} bytes: {} integers came back wrong",
                                       name_of(scheme), bytes, result.wrong_words));
  Row row{
      name_of(scheme), static_cast<double>(bytes), microseconds(result.shortest), "us", {}, {}, {}};
  row.note = fmt::format("shortest of {}, not of 10", what.times);
  recorder.row(row);
  if (scheme == Scheme::remapping) {
    const auto share = [&](const char* kind, Duration d) {
      const double of_all =
          static_cast<double>(d.in_ticks()) / static_cast<double>(result.shortest.in_ticks());
      recorder.row({fmt::format("{}/remapping", kind), row.x, of_all, "", {}, {}, {}});
    };
    share("flushing", result.meanwhile.flushing);
    share("mapping", result.meanwhile.mapping);
  }
  return {};
}

constexpr std::uint64_t largest_of_first = 64 << 10;

Status small_ones(const Context& context, Scheme scheme, Recorder& recorder) {
  for (std::uint64_t bytes = 4; bytes <= largest_of_first; bytes *= context.quick ? 4 : 2)
    if (bytes >= 64 || scheme != Scheme::remapping)
      TOMBOLO_TRY(measure(context, scheme, bytes, recorder));
  return {};
}

std::vector<Point> points(const Context& context) {
  std::vector<Point> all;
  const std::uint64_t largest = context.quick ? 1 << 20 : 32 << 20;
  for (const Scheme scheme : all_schemes) {
    all.push_back({name_of(scheme) + "-small", context.quick ? 0.5 : 2.0, memory_of_chip(8),
                   [scheme](const Context& c, Recorder& r) { return small_ones(c, scheme, r); }});
    for (std::uint64_t bytes = largest_of_first * 2; bytes <= largest; bytes *= 2) {
      if (context.quick && bytes < largest) continue;
      const double megabytes = static_cast<double>(bytes) / (1 << 20);
      all.push_back({fmt::format("{}-{}", name_of(scheme), bytes), 2 * megabytes + 0.2,
                     memory_of_chip(8) + 10 * bytes,
                     [scheme, bytes](const Context& c, Recorder& r) {
                       return measure(c, scheme, bytes, r);
                     }});
    }
  }
  return all;
}

}  // namespace

Status ping_pong(const Context& context, const PingPong& what, PingPongResult* result) {
  DistributionShape shape{
      .scheme = what.scheme, .cores = {master, remote}, .seed = context.seed, .care = what.care};
  if (what.scheme == Scheme::copy_cores) shape.copy_cores = copy_cores;
  TOMBOLO_TRY(Distribution::fits(context.chip, shape));
  scc::Chip chip(context.chip, options_of(context));
  Distribution svp(chip, shape, {returns_at_once(what.change)});
  const Status status = svp.run(Master(what, svp, *result), &result->run);
  if (context.after_run) context.after_run(chip, result->run.end);
  return status;
}

Experiment svp_ping_pong() {
  return {"svp-ping-pong", "Remote create and sync of SVP families: ping-pong", points};
}

}  // namespace tombolo::experiments
