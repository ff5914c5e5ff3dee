// SPDX-License-Identifier: Apache-2.0
// Purpose: explores every program within bounds that take seconds: the algorithms hold, and each
// broken twin falls with a counterexample that can be replayed. The table of docs/model/litmus.md
// tells what was covered.
// Thread safety: -
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "litmus/explorer/explorer.h"
#include "litmus/programs/registry.h"

namespace tombolo::litmus {
namespace {

// 1,234,567
std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string row_of(const ExploredProgram& program, const Coverage& coverage) {
  const Bounds& bounds = program.bounds;
  std::string beside;
  if (bounds.preemptions != no_bound) beside = fmt::format("{} preemptions, ", bounds.preemptions);
  if (bounds.evictions != Bounds{}.evictions)
    beside += fmt::format("{} evictions", bounds.evictions);
  std::string met;
  each_name(coverage.met,
            [&](const char* name) { met += (met.empty() ? "" : ", ") + std::string(name); });
  return fmt::format("| `{}`{} | {} | {} | {} | {} | {} |\n", program.name,
                     beside.empty() ? "" : " (" + beside + ")", program.cores,
                     grouped(coverage.executions), grouped(coverage.states), coverage.longest, met);
}

void expect_row(const ExploredProgram& program, const Coverage& coverage) {
  std::ifstream file(TOMBOLO_LITMUS_PAGE);
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  const std::string row = row_of(program, coverage);
  EXPECT_NE(page.find("\n" + row), std::string::npos)
      << "docs/model/litmus.md lacks this, word for word:\n"
      << row;
}

void expect_refuted(const ExploredProgram& program) {
  const auto instance = program.make(program.cores);
  const Coverage coverage = explore(*instance, program.bounds);
  ASSERT_TRUE(coverage.counterexample.has_value()) << to_text(coverage, program.bounds);
  const Counterexample found = shorten(*instance, program.bounds, *coverage.counterexample);
  std::string told;
  EXPECT_TRUE(replay(*instance, program.bounds, found.path,
                     [&](const std::string& line) { told += line + "\n"; }));
  EXPECT_NE(told.find(found.what), std::string::npos) << found.what << "\n" << told;
}

Coverage expect_holds(const ExploredProgram& program, machine::Home cores, const Bounds& bounds) {
  const auto instance = program.make(cores);
  const Coverage coverage = explore(*instance, bounds);
  EXPECT_FALSE(coverage.counterexample.has_value()) << coverage.counterexample->what << "\n"
                                                    << to_text(coverage.counterexample->path);
  EXPECT_TRUE(coverage.within_bounds()) << to_text(coverage, bounds);
  return coverage;
}

class Programs : public ::testing::TestWithParam<std::size_t> {
 protected:
  const ExploredProgram& program() const { return explored_programs()[GetParam()]; }
};

TEST_P(Programs, AreAsTheyShouldBe) {
  if (program().broken)
    expect_refuted(program());
  else
    expect_row(program(), expect_holds(program(), program().cores, program().bounds));
}

std::string name_of(const ::testing::TestParamInfo<std::size_t>& info) {
  std::string name = explored_programs()[info.param].name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Explored, Programs,
                         ::testing::Range(std::size_t{0}, explored_programs().size()), name_of);

TEST(LoadsThatOvertake, LoseNothingOfWindows) {
  for (const ExploredProgram& program : overtaken_window_programs()) {
    SCOPED_TRACE(program.name);
    expect_holds(program, program.cores, program.bounds);
  }
}

// Three cores that write once each, with every schedule.
TEST(ThreeCores, ExcludeEachOther) {
  for (const ExploredProgram& program : explored_programs()) {
    if (program.broken || program.name.find("/writers") == std::string::npos) continue;
    SCOPED_TRACE(program.name);
    if (program.name.find("bakery") == std::string::npos)
      expect_holds(program, 3, program.bounds);
    else
      expect_holds(program, 3, {.evictions = 0, .preemptions = 0});
  }
}

// Two evictions in each execution, within the program's own bound on preemptions. `make explore`
// does so with shared memory, too.
TEST(TwoEvictions, LoseNothing) {
  for (const ExploredProgram& program : explored_programs()) {
    if (program.broken || program.name.find("bakery") != std::string::npos ||
        program.name.find("memory/") == 0)
      continue;
    SCOPED_TRACE(program.name);
    expect_holds(program, program.cores,
                 {.evictions = 2, .preemptions = program.bounds.preemptions});
  }
}

}  // namespace
}  // namespace tombolo::litmus
