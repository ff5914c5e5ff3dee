// SPDX-License-Identifier: Apache-2.0
// Purpose: runs the command `tombolo-litmus` as its users do: the arguments it takes, the lines it
// prints, and the status it ends with.
// Thread safety: -
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "litmus/programs/registry.h"
#include "litmus/tests/registry.h"

#ifdef TOMBOLO_LITMUS
#include <nlohmann/json.hpp>

namespace tombolo::litmus {
namespace {

struct Ended {
  int status = -1;
  std::string text;  // stdout and stderr
};

Ended litmus(const std::string& arguments) {
  const std::string line = "'" TOMBOLO_LITMUS "' " + arguments + " 2>&1";
  std::FILE* pipe = popen(line.c_str(), "r");
  Ended ended;
  if (pipe == nullptr) return ended;
  std::array<char, 4096> part{};
  for (std::size_t count = 0; (count = std::fread(part.data(), 1, part.size(), pipe)) != 0;)
    ended.text.append(part.data(), count);
  const int status = pclose(pipe);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// ---- list ---------------------------------------------------------------------------------------

TEST(List, NamesAllThereIs) {
  const Ended ended = litmus("list");
  EXPECT_EQ(ended.status, 0);
  for (const LitmusTest& test : litmus_tests())
    EXPECT_TRUE(has(ended.text, fmt::format("\n  {} ", test.info.name))) << test.info.name;
  for (const ExploredProgram& program : explored_programs())
    EXPECT_TRUE(has(ended.text, fmt::format("\n  {} ", program.name))) << program.name;
  for (const LitmusMachine& machine : litmus_machines())
    EXPECT_TRUE(has(lines_of(ended.text).back(), " " + machine.name)) << machine.name;
}

TEST(List, LeavesOutWhatHasAnotherName) {
  const Ended ended = litmus("list dissemination");
  EXPECT_EQ(ended.status, 0);
  for (const std::string& line : lines_of(ended.text))
    EXPECT_TRUE(line.substr(0, 2) != "  " || has(line, "dissemination")) << line;
  EXPECT_TRUE(has(ended.text, "\n  broken/dissemination-barrier/no-wait "));
}

// ---- Wrong use ----------------------------------------------------------------------------------

TEST(WrongUse, OfNamesIsToldWithTheRightOnes) {
  for (const char* arguments : {"explore nonsense", "replay nonsense 0", "replay mcs 0"}) {
    const Ended ended = litmus(arguments);
    EXPECT_EQ(ended.status, 2) << arguments;
    EXPECT_TRUE(has(ended.text, "tombolo-litmus: no test or program is named '")) << ended.text;
    EXPECT_TRUE(has(ended.text, "message-passing, ")) << "tests";
    EXPECT_TRUE(has(ended.text, ", mcs/writers, ")) << "and programs";
  }
  const Ended test = litmus("run mcs/writers");
  EXPECT_EQ(test.status, 2) << "a program, but no test";
  EXPECT_TRUE(
      has(test.text, "no litmus test is named 'mcs/writers'; there are: message-passing, "));
  const Ended machine = litmus("run message-passing --machine nonsense");
  EXPECT_EQ(machine.status, 2);
  EXPECT_TRUE(has(machine.text, "no machine is named 'nonsense'; there are: coherent, "));
}

TEST(WrongUse, OfArgumentsIsRefused) {
  for (const char* arguments :
       {"", "nonsense", "replay", "replay mcs/writers", "run --nonsense", "run --runs 0",
        "explore mcs/writers --cores 1", "explore mcs/writers --cores 5",
        "explore mcs/writers --evictions -1", "explore mcs/writers --steps few",
        "explore mcs/writers --seed 1", "replay mcs/writers 0 --full", "list --json"}) {
    const Ended ended = litmus(arguments);
    EXPECT_NE(ended.status, 0) << arguments;
    EXPECT_NE(ended.status, -1) << arguments;
    EXPECT_FALSE(ended.text.empty()) << arguments;
  }
}

TEST(WrongUse, OfAPathIsToldByExample) {
  const Ended ended = litmus("replay mcs/writers '0 x'");
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.text,
            "tombolo-litmus: '0 x' is no list of choices, such as '0 1v2 s0 w1.3 e0.1'\n");
}

TEST(WrongUse, OfCoresIsToldForALitmusTest) {
  for (const char* arguments :
       {"explore message-passing-cached --cores 3", "replay message-passing-cached 0 --cores 3"}) {
    const Ended ended = litmus(arguments);
    EXPECT_EQ(ended.status, 2) << arguments;
    EXPECT_EQ(ended.text,
              "tombolo-litmus: message-passing-cached is a litmus test, for 2 cores: "
              "no --cores\n");
  }
}

// ---- explore ------------------------------------------------------------------------------------

TEST(Explore, SaysThatAProgramHolds) {
  const Ended ended = litmus("explore message-passing-cached");
  EXPECT_EQ(ended.status, 0);
  const auto lines = lines_of(ended.text);
  ASSERT_GT(lines.size(), 2u);
  EXPECT_EQ(lines[0], "message-passing-cached, 2 cores: holds");
  EXPECT_TRUE(has(lines[1], "1 evictions")) << lines[1];
  EXPECT_TRUE(has(lines[1], "; complete")) << lines[1];
  EXPECT_FALSE(has(lines[1], "bounds on")) << lines[1];
  EXPECT_TRUE(has(ended.text, "  outcome: r0=1 r1=1 r2=0 r3=0 ("));
  EXPECT_FALSE(has(ended.text, "r0=1 r1=0")) << "the forbidden one";
}

TEST(Explore, NamesTheBoundsThatItHasMet) {
  const Ended ended = litmus("explore best-effort/writers --evictions 0");
  EXPECT_EQ(ended.status, 0);
  const auto lines = lines_of(ended.text);
  ASSERT_GT(lines.size(), 2u);
  EXPECT_EQ(lines[0],
            "best-effort/writers, 2 cores: holds within the bounds on evictions, retries");
  EXPECT_TRUE(has(lines[1], "; not complete: met the bounds on evictions, retries")) << lines[1];
  EXPECT_FALSE(has(ended.text, "; complete"));
}

TEST(Explore, PrintsACounterexampleThatCanBeReplayed) {
  const Ended ended = litmus("explore broken/mcs/no-publish --evictions 0 --pauses 5");
  EXPECT_EQ(ended.status, 0) << "as it should be";
  const auto lines = lines_of(ended.text);
  EXPECT_EQ(lines[0], "broken/mcs/no-publish, 2 cores: REFUTED");
  EXPECT_TRUE(has(lines[1], "stopped at a counterexample"));
  ASSERT_EQ(lines[2].substr(0, 6), "  lost");
  const std::string command = lines.back();
  ASSERT_EQ(command.substr(0, 47), "  tombolo-litmus replay broken/mcs/no-publish '") << command;
  EXPECT_TRUE(has(command, "' --evictions 0 --pauses 5"))
      << "the unusual options are named: " << command;
  EXPECT_FALSE(has(command, "--cores"));
  const Ended again = litmus(command.substr(std::string("  tombolo-litmus ").size()));
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(lines_of(again.text).back(), "failure: " + lines[2].substr(2));
}

TEST(Explore, SaysWhatIsNotAsItShouldBe) {
  // Without a step to do so, the broken one cannot fail.
  const Ended ended = litmus("explore broken/mcs/no-publish --steps 1");
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(has(ended.text, "broken/mcs/no-publish, 2 cores: no failure found\n"));
  EXPECT_TRUE(has(ended.text, "1 steps"));
  EXPECT_TRUE(has(ended.text, "  WRONG: expected otherwise\n"));
}

nlohmann::json explored_json(const std::string& arguments) {
  const Ended ended = litmus("explore --json " + arguments);
  EXPECT_EQ(lines_of(ended.text).size(), 1u) << ended.text;
  return nlohmann::json::parse(ended.text);
}

TEST(Explore, PrintsJsonOfEachResult) {
  const auto json = explored_json(
      "mcs/writers --cores 2 --evictions 0 --pauses 4 --retries 1 --preemptions 2 --executions 7");
  EXPECT_EQ(json["program"], "mcs/writers");
  EXPECT_EQ(json["cores"], 2);
  EXPECT_EQ(json["evictions"], 0);
  EXPECT_EQ(json["pauses"], 4);
  EXPECT_EQ(json["retries"], 1);
  EXPECT_EQ(json["preemptions"], 2);
  EXPECT_EQ(json["executions"], 7);
  EXPECT_EQ(json["loads"], 3);
  EXPECT_EQ(json["complete"], false);
  EXPECT_EQ(json["within_bounds"], false);
  EXPECT_EQ(json["bounds_met"].back(), "executions");
  EXPECT_FALSE(json.contains("counterexample"));
}

TEST(Explore, PrintsJsonWithItsCounterexample) {
  const auto json = explored_json("broken/mcs/no-publish");
  EXPECT_TRUE(json["preemptions"].is_null()) << "any";
  EXPECT_EQ(json["complete"], false);
  EXPECT_EQ(json["counterexample"]["what"].get<std::string>().substr(0, 4), "lost");
  const Ended again = litmus(fmt::format("replay broken/mcs/no-publish '{}'",
                                         json["counterexample"]["path"].get<std::string>()));
  EXPECT_EQ(lines_of(again.text).back(),
            "failure: " + json["counterexample"]["what"].get<std::string>());
}

TEST(Explore, WithoutReductionsTakesMore) {
  const auto reduced = explored_json("store-buffering-fenced");
  const auto full = explored_json("store-buffering-fenced --full");
  EXPECT_EQ(full["complete"], true);
  EXPECT_EQ(full["within_bounds"], true);
  EXPECT_EQ(full["bounds_met"], nlohmann::json::array());
  EXPECT_EQ(full["left_out"], 0);
  EXPECT_EQ(full["merged"], 0);
  EXPECT_GT(reduced["left_out"], 0);
  EXPECT_GT(full["executions"], reduced["executions"]);
}

TEST(Explore, TakesAllWhoseNameContainsIt) {
  const Ended ended = litmus("explore --json /many- --executions 20");
  std::vector<std::string> programs;
  for (const std::string& line : lines_of(ended.text))
    programs.push_back(nlohmann::json::parse(line)["program"]);
  EXPECT_EQ(programs,
            (std::vector<std::string>{"active-target/many-origins", "active-target/many-targets"}));
}

// ---- replay -------------------------------------------------------------------------------------

TEST(Replay, TellsTheStepsOrWhyThereAreNone) {
  const Ended some = litmus("replay message-passing-cached '1 1'");
  EXPECT_EQ(some.status, 0);
  EXPECT_EQ(lines_of(some.text)[0], "1       core 1  loads 0 from word 0:0");
  EXPECT_TRUE(has(some.text, "not at an end: core 0: ")) << some.text;
  const Ended none = litmus("replay mcs/writers 'w0.7'");
  EXPECT_EQ(none.status, 1);
  EXPECT_TRUE(has(none.text, "w0.7 is not possible here: core 0: ")) << none.text;
}

TEST(Replay, TakesTheBoundsOfTheExploration) {
  EXPECT_TRUE(has(litmus("replay mcs/writers 'w0.7' --cores 3").text, "core 2: "));
  EXPECT_FALSE(has(litmus("replay mcs/writers 'w0.7'").text, "core 2: "));
}

// ---- run ----------------------------------------------------------------------------------------

TEST(RunTests, HoldsAMachineToItsVerdict) {
  const Ended ended =
      litmus("run message-passing-cached --machine coherent --runs 3 --seed 5 --json");
  EXPECT_EQ(ended.status, 0);
  const auto json = nlohmann::json::parse(ended.text);
  EXPECT_EQ(json, (nlohmann::json{{"test", "message-passing-cached"},
                                  {"machine", "coherent"},
                                  {"verdict", "FORBIDDEN"},
                                  {"seen", 0},
                                  {"runs", 3},
                                  {"seed", 5},
                                  {"as_stated", true}}));
}

TEST(RunTests, GoesOnUntilItSeesWhatMustAppear) {
  const LitmusTest* must = nullptr;
  std::size_t scc = 0;
  while (litmus_machines()[scc].name != "scc") ++scc;
  for (const LitmusTest& test : litmus_tests())
    if (test.info.verdicts.scc == must_appear) must = &test;
  ASSERT_NE(must, nullptr);
  const Ended ended = litmus(fmt::format("run {} --machine scc --runs 1 --json", must->info.name));
  EXPECT_EQ(ended.status, 0) << ended.text;
  for (const std::string& line : lines_of(ended.text)) {
    const auto json = nlohmann::json::parse(line);
    if (json["test"] != must->info.name) continue;
    EXPECT_EQ(json["verdict"], "MUST-APPEAR");
    EXPECT_EQ(json["seen"], 1);
    EXPECT_EQ(json["as_stated"], true);
  }
}

TEST(RunTests, TakesAllMachinesIfNoneIsNamed) {
  const Ended ended = litmus("run message-passing-cached --runs 1");
  EXPECT_EQ(ended.status, 0);
  const auto lines = lines_of(ended.text);
  ASSERT_EQ(lines.size(), litmus_machines().size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].substr(0, 23), "message-passing-cached ");
    EXPECT_EQ(lines[i].substr(33, litmus_machines()[i].name.size()), litmus_machines()[i].name);
    EXPECT_FALSE(has(lines[i], "WRONG"));
  }
}

}  // namespace
}  // namespace tombolo::litmus
#endif
