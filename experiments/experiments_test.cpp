// SPDX-License-Identifier: Apache-2.0
// Every experiment's cheapest quick point: it gives the same rows again, and rows that the data
// beside the papers' know by series, unit and x.
#include <gtest/gtest.h>

#include <toml++/toml.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "experiments/experiment.h"

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

Context quick_context() {
  Context context;
  context.quick = true;
  const Status status = scc::find_parameters("scc", &context.chip);
  EXPECT_TRUE(status.ok()) << status.message();
  return context;
}

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

// What an experiment's figures know: units by series, and the categories of x, if it has any.
struct Known {
  std::map<std::string, std::set<std::string>> units;
  std::set<std::string> categories;
};

Known known(const std::string& experiment) {
  Known all;
  const toml::table table =
      toml::parse_file(fmt::format("{}/{}.toml", TOMBOLO_SCC_DATA, experiment));
  for (const toml::node& figure : *table["figure"].as_array()) {
    const toml::table& of = *figure.as_table();
    const std::string unit = of["y"]["unit"].value_or(std::string());
    for (const toml::node& series : *of["series"].as_array())
      all.units[(*series.as_table())["name"].value_or(std::string())].insert(unit);
    if (const toml::array* categories = of["x"]["categories"].as_array())
      for (const toml::node& category : *categories)
        all.categories.insert(category.value_or(std::string()));
  }
  return all;
}

class EachExperiment : public ::testing::TestWithParam<std::size_t> {
 protected:
  const Experiment& experiment() const { return all_experiments()[GetParam()]; }
};

TEST_P(EachExperiment, NamesItsPointsOnce) {
  for (const bool quick : {false, true}) {
    Context context = quick_context();
    context.quick = quick;
    std::set<std::string> names;
    for (const Point& point : experiment().points(context))
      EXPECT_TRUE(names.insert(point.name).second) << point.name;
    EXPECT_FALSE(names.empty());
  }
}

TEST_P(EachExperiment, GivesTheSameRowsAgain) {
  const Context context = quick_context();
  const Point point = cheapest(experiment(), context);
  const Lines first = run(context, point);
  const Lines second = run(context, point);
  EXPECT_FALSE(first.text.empty());
  EXPECT_EQ(first.text, second.text);
  EXPECT_EQ(first.events, second.events);
}

TEST_P(EachExperiment, GivesRowsThatItsFiguresKnow) {
  const Context context = quick_context();
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

INSTANTIATE_TEST_SUITE_P(All, EachExperiment,
                         ::testing::Range(std::size_t{0}, all_experiments().size()),
                         [](const auto& one) {
                           std::string name = all_experiments()[one.param].name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tombolo::experiments
