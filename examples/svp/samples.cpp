// SPDX-License-Identifier: Apache-2.0
// Samples in several batches, summed up by a family at each process in turn: a thread function with
// each kind of parameter. The values that it assigns to its outputs are in the creator's variables
// after the sync.
//
//   samples [BATCHES]
//
// Checked: mean, number, distances and histogram are those of the samples.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <tombolo/svp.hpp>

namespace svp = tombolo::svp;

namespace {

constexpr std::size_t per_batch = 1000;
constexpr std::size_t classes = 10;

void add_batch(svp::In<double> width, svp::InArray<double> samples, svp::Out<double> mean,
               svp::InOut<std::int64_t> number, svp::OutArray<double> distances,
               svp::InOutArray<std::int64_t> histogram) {
  double sum = 0;
  for (const double sample : samples) {
    sum += sample;
    histogram[static_cast<std::size_t>(sample / width)] += 1;
  }
  mean = sum / static_cast<double>(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) distances[i] = samples[i] - *mean;
  number = number + static_cast<std::int64_t>(samples.size());
}

// From 0 up to 10.
std::vector<double> samples_of(int batch) {
  std::vector<double> made(per_batch);
  for (std::size_t i = 0; i < per_batch; ++i)
    made[i] = static_cast<double>((i * 7 + static_cast<std::size_t>(batch)) % 1000) / 100;
  return made;
}

bool is_near(double value, double expected) { return std::abs(value - expected) < 1e-9; }

int run(svp::Job& job, int batches) {
  std::int64_t number = 0;
  std::vector<std::int64_t> histogram(classes);
  bool right = true;
  for (int batch = 0; batch < batches; ++batch) {
    const std::vector<double> samples = samples_of(batch);
    std::vector<double> distances(per_batch);
    double mean = 0;
    const auto place = job.place(static_cast<unsigned>(batch) % job.processes());
    auto family = svp::create(place, svp::remote<&add_batch>, 1.0, samples, mean, number, distances,
                              histogram);
    family.sync().rethrow();
    right = right && is_near(mean, 4.995) && is_near(distances[0], samples[0] - mean);
  }
  std::printf("%lld samples, %lld of them from 0 to 1\n", static_cast<long long>(number),
              static_cast<long long>(histogram[0]));
  right = right && number == batches * std::int64_t{per_batch};
  for (const std::int64_t each : histogram) right = right && each == number / std::int64_t{classes};
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const int batches = argc > 1 ? std::atoi(argv[1]) : 6;
  if (batches < 1 || batches > 1000) {
    std::fprintf(stderr, "samples: BATCHES is from 1 to 1000\n");
    return 2;
  }
  return svp::run([&](svp::Job& job) { return run(job, batches); });
}
