// SPDX-License-Identifier: Apache-2.0
// Purpose: the page docs/model/threads.md tells the outcomes of its programs, and the
// protocols keep to the models that they are named after.
// Thread safety: -
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "litmus/programs/model_programs.h"

namespace tombolo::litmus {
namespace {

using dsm::testing::Model;

std::string page() {
  std::ifstream file(TOMBOLO_THREADS_PAGE);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void expect_on_page(const std::string& text) {
  EXPECT_NE(page().find("\n" + text + "\n"), std::string::npos)
      << "docs/model/threads.md lacks this, word for word:\n"
      << text;
}

TEST(ThreadsPage, TellsTheSteps) { expect_on_page("```\n" + all_timelines() + "```"); }

TEST(ThreadsPage, TellsTheVerdicts) {
  // Nothing else is in the table.
  expect_on_page("\n" + verdict_table());
}

TEST(ThreadsPage, TellsTheValueOfRacingStores) {
  EXPECT_NE(page().find("loads " + racing_outcomes() + " in all executions"), std::string::npos)
      << racing_outcomes();
}

// As 003 says below its figure 3.2.
TEST(Models, AgreeOnFigure32) {
  const ModelProgram& figure = model_programs().front();
  ASSERT_EQ(figure.name, "figure-3.2");
  EXPECT_EQ(allowed_by(Model::sequential, figure), (OldValues{false, false, false, false}));
  EXPECT_EQ(allowed_by(Model::regional, figure), (OldValues{false, false, false, false}));
  EXPECT_EQ(allowed_by(Model::release, figure), (OldValues{true, false, false, false}));
  EXPECT_EQ(allowed_by(Model::lazy_release, figure), (OldValues{true, true, false, false}));
  EXPECT_EQ(allowed_by(Model::scope, figure), (OldValues{true, true, false, true}));
}

// A forbidden value never appears, and an allowed one does: else the programs could not show it.
TEST(Models, AreThoseOfTheProtocols) {
  for (const ModelProgram& program : model_programs()) {
    EXPECT_EQ(shown_by_regional(program), allowed_by(Model::regional, program)) << program.name;
    EXPECT_EQ(shown_by_sequential(program), allowed_by(Model::sequential, program)) << program.name;
  }
}

}  // namespace
}  // namespace tombolo::litmus
