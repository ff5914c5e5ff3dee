// SPDX-License-Identifier: Apache-2.0
// Every experiment's cheapest quick point: it gives the same rows again, and rows that the data
// beside the papers' know by series, unit and x.
#include <gtest/gtest.h>

#include <toml++/toml.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "backends/scc/usage.h"
#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

// The lines that the program would print, without the chip.
class Lines final : public Recorder {
 public:
  void row(const Row& row) override {
    rows.push_back(row);
    std::string x = std::visit([](const auto& v) { return fmt::format("{}", v); }, row.x);
    text.push_back(fmt::format("{} {} {} {} {} {} {}", row.series, x, row.value, row.unit,
                               row.quartile1.value_or(-1), row.quartile3.value_or(-1), row.note));
  }
  void progress(double) override {}
  void cost(const Cost& cost) override { events += cost.events; }

  std::vector<Row> rows;
  std::vector<std::string> text;
  std::uint64_t events = 0;
};

Lines run(const Context& context, const Point& point) {
  Lines lines;
  const Status status = point.run(context, lines);
  EXPECT_TRUE(status.ok()) << point.name << ": " << status.message();
  return lines;
}

Point cheapest(const Experiment& experiment, const Context& context) {
  const std::vector<Point> points = experiment.points(context);
  return *std::min_element(points.begin(), points.end(),
                           [](const Point& a, const Point& b) { return a.seconds < b.seconds; });
}

// The series of an experiment's figures: their units, and the categories of x, if it has any.
struct Known {
  std::map<std::string, std::set<std::string>> units;
  std::set<std::string> categories;
};

// The file of the papers' numbers, in whichever folder the experiment lies.
std::filesystem::path file_of(const std::string& experiment) {
  for (const auto& folder : std::filesystem::directory_iterator(TOMBOLO_EXPERIMENTS))
    if (const auto file = folder.path() / (experiment + ".toml"); std::filesystem::exists(file))
      return file;
  return {};
}

// One name, or as many as the entry says, by their numbers.
std::vector<std::string> names_of(const toml::table& series) {
  const std::string name = series["name"].value_or(std::string());
  const auto number = series["number"].value<int>();
  if (!number) return {name};
  std::vector<std::string> all;
  for (int n = 0; n < *number; ++n)
    all.push_back(std::string(name).replace(name.find("{}"), 2, std::to_string(n)));
  return all;
}

Known known(const std::string& experiment) {
  Known all;
  const toml::table table = toml::parse_file(file_of(experiment).string());
  for (const toml::node& figure : *table["figure"].as_array()) {
    const toml::table& of = *figure.as_table();
    const std::string unit = of["y"]["unit"].value_or(std::string());
    for (const toml::node& series : *of["series"].as_array())
      for (const std::string& name : names_of(*series.as_table())) all.units[name].insert(unit);
    if (const toml::array* categories = of["x"]["categories"].as_array())
      for (const toml::node& category : *categories)
        all.categories.insert(category.value_or(std::string()));
  }
  return all;
}

class EachExperiment : public ::testing::TestWithParam<std::size_t> {
 protected:
  const Experiment& experiment() const { return all_experiments()[GetParam()]; }
  // An experiment whose least run is long has no quick points.
  bool has_quick_points() const { return !experiment().points(test_context()).empty(); }
};

TEST_P(EachExperiment, NamesItsPointsOnce) {
  for (const bool quick : {false, true}) {
    Context context = test_context();
    context.quick = quick;
    std::set<std::string> names;
    for (const Point& point : experiment().points(context))
      EXPECT_TRUE(names.insert(point.name).second) << point.name;
    EXPECT_TRUE(quick || !names.empty());
  }
}

TEST_P(EachExperiment, SaysHowMuchMemoryAPointNeeds) {
  for (const Point& point : experiment().points(test_context()))
    EXPECT_GT(point.memory_bytes, std::uint64_t{32} << 20) << point.name;
}

// No part serves for longer than the run, and no core waits for longer.
void expect_plausible(const scc::Chip& chip, simulator::Time end) {
  const simulator::Duration whole = end.since_start();
  const std::vector<scc::PartUse> parts = scc::parts_of(chip);
  EXPECT_FALSE(parts.empty());
  for (const scc::PartUse& part : parts) EXPECT_LE(part.busy, whole) << scc::name_of(part.part);
  const std::vector<scc::CoreUse> cores = scc::cores_of(chip);
  EXPECT_FALSE(cores.empty());
  for (const scc::CoreUse& core : cores)
    EXPECT_LE(core.counters.reading + core.counters.writing + core.counters.testing, whole)
        << core.core.index();
}

// The second time its statistics are looked at.
TEST_P(EachExperiment, GivesTheSameRowsAgain) {
  if (!has_quick_points()) GTEST_SKIP() << "its least run is long";
  Context context = test_context();
  const Point point = cheapest(experiment(), context);
  const Lines first = run(context, point);
  int simulations = 0;
  context.after_run = [&](const scc::Chip& chip, simulator::Time end) {
    ++simulations;
    expect_plausible(chip, end);
  };
  const Lines second = run(context, point);
  EXPECT_GT(simulations, 0);
  EXPECT_FALSE(first.text.empty());
  EXPECT_EQ(first.text, second.text);
  EXPECT_EQ(first.events, second.events);
}

TEST_P(EachExperiment, GivesRowsThatItsFiguresKnow) {
  if (!has_quick_points()) GTEST_SKIP() << "its least run is long";
  const Context context = test_context();
  const Known figures = known(experiment().name);
  for (const Row& row : run(context, cheapest(experiment(), context)).rows) {
    const auto units = figures.units.find(row.series);
    ASSERT_NE(units, figures.units.end()) << row.series;
    EXPECT_TRUE(units->second.contains(row.unit)) << row.series << " in " << row.unit;
    if (const auto* category = std::get_if<std::string>(&row.x)) {
      EXPECT_TRUE(figures.categories.contains(*category)) << row.series << " at " << *category;
    }
  }
}

// The point's rows if one call of MPI_Put took longer.
std::vector<std::string> with_longer(scc::HalfCycles scc::Parameters::Software::*call,
                                     const std::string& experiment, const std::string& point) {
  Context context = test_context();
  if (call != nullptr) (context.chip.software.*call).halves += 1000;
  for (const Experiment& one : all_experiments())
    if (one.name == experiment)
      for (const Point& at : one.points(context))
        if (at.name == point) return run(context, at).text;
  ADD_FAILURE() << experiment << " has no point " << point;
  return {};
}

TEST(Experiments, SayHowFarAPointIs) {
  const Context context = test_context();
  const std::map<std::string, std::string> points = {
      {"gats", "rckmpi-1"}, {"passive-target", "mixed-mcs-wp-4"}, {"database", "distributed-8"}};
  for (const Experiment& one : all_experiments())
    for (const Point& point : one.points(context))
      if (const auto chosen = points.find(one.name);
          chosen != points.end() && chosen->second == point.name) {
        SCOPED_TRACE(one.name);
        Told told;
        EXPECT_TRUE(point.run(context, told).ok());
        told.expect_all();
      }
}

TEST(Experiments, ChargeAPutWhatTheirPapersLibraryTakes) {
  using Software = scc::Parameters::Software;
  const auto is_charged = [](auto call, const char* experiment, const char* point) {
    return with_longer(call, experiment, point) != with_longer(nullptr, experiment, point);
  };
  EXPECT_TRUE(is_charged(&Software::put_call, "osu", "scosco-latency-4"));
  EXPECT_FALSE(is_charged(&Software::report_put_call, "osu", "scosco-latency-4"));
  EXPECT_FALSE(is_charged(&Software::put_call, "dht", "gbh-back-off-0-32"));
  EXPECT_TRUE(is_charged(&Software::report_put_call, "dht", "gbh-back-off-0-32"));
}

TEST(Experiments, NameTheChipOfARowThatIsNotTheContexts) {
  const Context context = test_context();
  for (const Experiment& one : all_experiments())
    if (one.name == "big-chips")
      for (const Point& point : one.points(context))
        if (point.name == "gats-256-4" || point.name == "shared-gbh-back-off-256-16")
          for (const Row& row : run(context, point).rows) {
            ASSERT_TRUE(row.chip) << row.series;
            EXPECT_EQ(row.chip->name, "mesh-16x8");
          }
}

INSTANTIATE_TEST_SUITE_P(All, EachExperiment,
                         ::testing::Range(std::size_t{0}, all_experiments().size()),
                         [](const auto& one) {
                           std::string name = all_experiments()[one.param].name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tombolo::experiments
