// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/matrix.h"

#include <algorithm>

#include "base/random.h"
#include "experiments/common/measure.h"
#include "experiments/svp/matrix_program.h"

namespace tombolo::experiments {
namespace {

constexpr Scheme measured_schemes[] = {Scheme::original, Scheme::direct, Scheme::remapping};

// Rows of whole numbers from 0 to 7, put into memory before the time counts.
std::vector<std::vector<double>> fill(Node& node, const Matrix& matrix, Random& random) {
  std::vector<std::vector<double>> values(matrix.size, std::vector<double>(matrix.size));
  scc::Chip& chip = node.cpu().chip();
  node.cpu().wait_for_writes();  // of the zeros of new pages, which poke() is not to be before
  node.cpu().fibre().await_turn();
  for (std::uint64_t i = 0; i < matrix.size; ++i) {
    for (double& value : values[i]) value = static_cast<double>(random.next() % 8);
    // A row does not cross a page of the lookup table: both are powers of two.
    chip.poke(node.cpu().id(), matrix.rows[i].first, values[i].data(),
              matrix.size * sizeof(double));
  }
  return values;
}

// Memory gets other values, and the master's caches have the right ones.
void store_again(Node& node, const std::vector<Matrix>& matrices) {
  for (const Matrix& matrix : matrices)
    for (std::uint64_t i = 0; i < matrix.size; ++i) {
      const std::vector<double> values = matrix.read_row(node, i);
      const std::vector<double> wrong(values.size(), -1.0);
      node.cpu().chip().poke(node.cpu().id(), matrix.rows[i].first, wrong.data(),
                             wrong.size() * sizeof(double));
      matrix.write_row(node, i, values);
    }
}

using Values = std::vector<std::vector<double>>;

std::vector<double> times(const Values& matrix, const std::vector<double>& vector) {
  std::vector<double> product;
  for (const std::vector<double>& row : matrix) {
    double sum = 0;
    for (std::size_t j = 0; j < row.size(); ++j) sum += row[j] * vector[j];
    product.push_back(sum);
  }
  return product;
}

// c is a b, to a random vector of whole numbers (Freivalds): exact, so that a wrong c passes
// one in 8 times at most, and three vectors are tried.
bool is_product(const Values& a, const Values& b, const Values& c, Random& random) {
  for (int i = 0; i < 3; ++i) {
    std::vector<double> vector(a.size());
    for (double& value : vector) value = static_cast<double>(random.next() % 8);
    if (times(c, vector) != times(a, times(b, vector))) return false;
  }
  return true;
}

// The places of the master, and those of each core that is a worker-master, by its number.
struct Cast {
  MatrixPlaces of_master;
  std::vector<MatrixPlaces> of_others;
  std::uint32_t first_worker = 1;  // up to the last core
  std::uint32_t cores = 1;
};

class Master {
 public:
  Master(const MatrixRun& what, const Cast& cast, std::uint64_t seed, Distribution& all,
         MatrixResult& result)
      : what_(what), cast_(cast), random_(seed), all_(all), result_(result) {}

  Status operator()(Node& node) {
    Matrix a;
    Matrix b;
    Matrix c;
    TOMBOLO_TRY(Matrix::allocate(node, what_.size, &a));
    TOMBOLO_TRY(Matrix::allocate(node, what_.size, &b));
    const Values of_a = fill(node, a, random_);
    const Values of_b = fill(node, b, random_);
    if (what_.operands_in_caches) store_again(node, {a, b});
    const simulator::Time begin = node.system().now();
    const std::vector<Activity> before = activities(begin);
    Decomposition decomposition(node, cast_.of_master);
    const Status status =
        decomposition.multiply(a, b, what_.worker_masters > 0 ? 1 : what_.steps, &c);
    result_.most_bytes_used = decomposition.most_bytes_used();
    TOMBOLO_TRY(status);
    const simulator::Time end = node.system().now();
    result_.took = end - begin;
    result_.distributing = decomposition.all_created() - begin;
    note_activity(before, end);
    Values of_c;
    for (std::uint64_t i = 0; i < c.size; ++i) of_c.push_back(c.read_row(node, i));
    result_.right = is_product(of_a, of_b, of_c, random_);
    return {};
  }

 private:
  std::vector<Activity> activities(simulator::Time until) {
    std::vector<Activity> of_cores;
    for (std::uint32_t core = 0; core < cast_.cores; ++core)
      of_cores.push_back(all_.node(simulator::CoreId(core)).activity(until));
    return of_cores;
  }
  void note_activity(const std::vector<Activity>& before, simulator::Time end) {
    const std::vector<Activity> now = activities(end);
    result_.master = now[0] - before[0];
    for (std::uint32_t core = 0; core < cast_.cores; ++core) {
      const Activity meanwhile = now[core] - before[core];
      result_.sent_bytes += meanwhile.sent_bytes;
      if (core >= cast_.first_worker) result_.workers += meanwhile;
    }
  }

  MatrixRun what_;
  const Cast& cast_;
  Random random_;
  Distribution& all_;
  MatrixResult& result_;
};

// The text gives each worker-master four or five workers: as those of eight share a whole chip.
constexpr std::uint32_t most_worker_masters = 8;

Cast cast(const MatrixRun& what, std::uint32_t cores_of_chip) {
  Cast all;
  all.of_others.resize(cores_of_chip);
  const std::uint32_t near = what.worker_masters > 0 ? what.worker_masters : what.workers;
  for (std::uint32_t core = 1; core <= near; ++core) all.of_master.places.emplace_back(core);
  all.of_master.function = what.worker_masters > 0 ? 1 : 0;
  all.cores = 1 + near;
  all.first_worker = what.worker_masters > 0 ? all.cores : 1;
  if (what.worker_masters == 0) return all;
  const std::uint32_t workers = cores_of_chip - 1 - most_worker_masters;
  for (std::uint32_t n = 0; n < workers; ++n)
    if (n % most_worker_masters < what.worker_masters)
      all.of_others[1 + n % most_worker_masters].places.emplace_back(all.cores++);
  return all;
}

std::string series_name(const MatrixRun& what) {
  return fmt::format("{}{}/{}", what.worker_masters > 0 ? "distributed-" : "", name_of(what.scheme),
                     what.size);
}

// By the shares of time, the text explains one step by computation and flushes, two by the master.
void record_activity(const MatrixRun& what, double x, const MatrixResult& result,
                     Recorder& recorder) {
  const std::string name = series_name(what);
  const auto took = static_cast<double>(result.took.in_ticks());
  const auto share = [&](const char* kind, simulator::Duration d, std::uint32_t cores) {
    recorder.row({fmt::format("{}/{}", kind, name),
                  x,
                  static_cast<double>(d.in_ticks()) / took / cores,
                  "",
                  {},
                  {},
                  {}});
  };
  if (what.steps == 1) {
    share("in-functions", result.workers.running, result.worker_cores);
    if (what.scheme == Scheme::remapping) share("flushing", result.master.flushing, 1);
    return;
  }
  share("master-idle", result.master.idle, 1);
  share("workers-idle", result.workers.idle, result.worker_cores);
  constexpr double mebibyte = 1 << 20;
  recorder.row(
      {"sent/" + name, x, static_cast<double>(result.sent_bytes) / mebibyte, "MiB", {}, {}, {}});
  recorder.row(
      {"creating/" + name, x, result.distributing.in_nanoseconds() * 1e-9, "s", {}, {}, {}});
}

Status measure(const Context& context, const MatrixRun& what, double x, Recorder& recorder) {
  MatrixResult result;
  const Status status = multiply_matrices(context, what, &result);
  recorder.cost({result.run.events, result.run.end.since_start().in_nanoseconds() * 1e-9});
  constexpr double mebibyte = 1 << 20;
  const double used = static_cast<double>(result.most_bytes_used) / mebibyte;
  recorder.row({"memory/" + series_name(what), x, used, "MiB", {}, {}, {}});
  if (status.code() == Code::no_memory) {
    recorder.row({"finished/" + series_name(what), x, 0, "", {}, {}, status.message()});
    return {};
  }
  TOMBOLO_TRY(status);
  if (!result.right)
    return Status::stopped(
        fmt::format("{} over {} workers: the product is wrong", series_name(what), what.workers));
  recorder.row({"finished/" + series_name(what), x, 1, "", {}, {}, {}});
  recorder.row({series_name(what),
                x,
                result.took.in_nanoseconds() * 1e-9,
                "s",
                {},
                {},
                "one run, not the mean of three"});
  record_activity(what, x, result, recorder);
  return {};
}

Point point(const MatrixRun& what, std::uint32_t x) {
  const double millions = static_cast<double>(what.size * what.size) / 1e6;
  const double copies = what.steps == 1 ? 6 : 12;
  const double rate = what.scheme == Scheme::direct ? 2 : 8;
  const auto bytes = static_cast<std::uint64_t>(millions * 8e6 * (copies + 14));
  return {fmt::format("{}{}-{}-{}", what.worker_masters > 0 ? "distributed-" : "",
                      name_of(what.scheme), what.size, x),
          0.2 + millions * copies * rate, memory_of_chip(48) + bytes,
          [what, x](const Context& c, Recorder& r) { return measure(c, what, x, r); }};
}

std::vector<Point> one_step(const Context& context) {
  std::vector<Point> all;
  for (const Scheme scheme : measured_schemes)
    for (const std::uint64_t size : {128, 256, 512, 1024})
      for (const std::uint32_t workers : {1, 2, 4, 6, 8}) {
        if (context.quick && (size > 256 || (workers != 1 && workers != 8))) continue;
        all.push_back(point({.scheme = scheme, .size = size, .workers = workers}, workers));
      }
  return all;
}

struct Measured {
  Scheme scheme;
  std::uint64_t size;
  std::vector<std::uint32_t> x;
};

std::vector<Point> two_steps(const Context& context) {
  std::vector<Point> all;
  // The smallest is not in the paper: it is run where time is short.
  const std::vector<Measured> by_workers{
      {Scheme::original, 256, {8, 20}},   {Scheme::direct, 256, {8, 20}},
      {Scheme::original, 1024, {8, 47}},  {Scheme::direct, 1024, {8, 16, 20, 32, 47}},
      {Scheme::remapping, 1024, {8, 20}}, {Scheme::original, 2048, {20}},
      {Scheme::direct, 2048, {20}},       {Scheme::remapping, 2048, {20}},
  };
  for (const Measured& one : by_workers)
    for (const std::uint32_t x : one.x)
      if (x < context.chip.cores() && (!context.quick || one.size == 256))
        all.push_back(point({.scheme = one.scheme, .size = one.size, .steps = 2, .workers = x}, x));
  const std::vector<Measured> by_masters{
      {Scheme::original, 256, {8}},      {Scheme::direct, 256, {8}},  {Scheme::original, 1024, {8}},
      {Scheme::direct, 1024, {2, 4, 8}}, {Scheme::direct, 2048, {8}},
  };
  for (const Measured& one : by_masters)
    for (const std::uint32_t x : one.x)
      if (context.chip.cores() > 3 * most_worker_masters && (!context.quick || one.size == 256))
        all.push_back(
            point({.scheme = one.scheme, .size = one.size, .steps = 2, .worker_masters = x}, x));
  return all;
}

}  // namespace

Status multiply_matrices(const Context& context, const MatrixRun& what, MatrixResult* result) {
  const Cast all = cast(what, context.chip.cores());
  DistributionShape shape{.scheme = what.scheme, .seed = context.seed, .care = what.care};
  for (std::uint32_t core = 0; core < all.cores; ++core) shape.cores.emplace_back(core);
  const auto places = static_cast<std::uint32_t>(all.of_master.places.size());
  const std::uint32_t tasks = what.worker_masters > 0 || what.steps == 1 ? 8 : 64;
  shape.threads = (tasks + places - 1) / places + 1;
  TOMBOLO_TRY(Distribution::fits(context.chip, shape));
  scc::Chip chip(context.chip, options_of(context));
  Distribution svp(chip, shape, matrix_functions(all.of_others));
  result->worker_cores = all.cores - all.first_worker;
  const Status status = svp.run(Master(what, all, context.seed, svp, *result), &result->run);
  if (context.after_run) context.after_run(chip, result->run.end);
  return status;
}

Experiment svp_matrix() {
  return {"svp-matrix", "SVP matrix multiplication in one decomposition step", one_step};
}
Experiment svp_matrix_two_steps() {
  return {"svp-matrix-two-steps", "SVP matrix multiplication in two decomposition steps",
          two_steps};
}

}  // namespace tombolo::experiments
