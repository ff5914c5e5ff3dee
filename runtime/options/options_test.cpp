// SPDX-License-Identifier: Apache-2.0
// Purpose: the effect of the environment and info keys; the table and its page agree.
#include "runtime/options/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "runtime/options/mistyped.h"
#include "sync/locks/families.h"

namespace tombolo::runtime {
namespace {

// Variables that are set as long as the object lives.
class Environment {
 public:
  Environment() {
    for (const Option* option : options::all)
      if (!option->variable.empty()) unsetenv(std::string(option->variable).c_str());
  }
  ~Environment() {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  void set(const std::string& name, const char* text) {
    setenv(name.c_str(), text, 1);
    set_.insert(name);
  }

 private:
  std::set<std::string> set_;
};

TEST(Options, WithoutAnEnvironmentAreTheInitialOnes) {
  Environment environment;
  const Options options = read_environment();
  EXPECT_EQ(name(options.machine), "coherent");
  EXPECT_EQ(options.seed, 1u);
  EXPECT_EQ(options.evictions, 50u);
  EXPECT_EQ(options.statistics, Statistics::off);
  EXPECT_TRUE(options.native_atomics() && options.backoff && options.reader_bias);
  EXPECT_TRUE(options.remap && !options.disabled);
  EXPECT_EQ(options.atomics, std::nullopt);
  EXPECT_TRUE(options.complaints.empty());
}

TEST(Options, AFormerNameIsRefusedWithTheOneThatItHasNow) {
  Environment environment;
  environment.set("TOMBOLO_DSM_HEAP", "1GiB");
  EXPECT_EQ(read_environment().complaints,
            std::vector<std::string>{"TOMBOLO_DSM_HEAP is called TOMBOLO_DSM_MEMORY"});
}

TEST(Options, AreTakenFromTheEnvironment) {
  Environment environment;
  environment.set("TOMBOLO_MACHINE", "stale");
  environment.set("TOMBOLO_PASSIVE_SYNC", "fifo");
  environment.set("TOMBOLO_SEED", "7");
  environment.set("TOMBOLO_EVICTIONS", "0");
  environment.set("TOMBOLO_POOL", "/a/pool");
  environment.set("TOMBOLO_ATOMICS", "none");
  environment.set("TOMBOLO_BACKOFF", "off");
  environment.set("TOMBOLO_READER_BIAS", "0");
  environment.set("TOMBOLO_REMAP", "no");
  environment.set("TOMBOLO_DISABLE", "1");
  const Options options = read_environment();
  EXPECT_EQ(name(options.machine), "stale");
  EXPECT_EQ(sync::lock_family_name(options.locks), "fifo");
  EXPECT_EQ(options.seed, 7u);
  EXPECT_EQ(options.evictions, 0u);
  EXPECT_EQ(options.pool, "/a/pool");
  EXPECT_FALSE(options.native_atomics() || options.backoff || options.reader_bias);
  EXPECT_EQ(options.atomics, false);
  EXPECT_FALSE(options.remap);
  EXPECT_TRUE(options.disabled);
  EXPECT_TRUE(options.complaints.empty());
}

TEST(Options, OfStatisticsAreForPeopleOrPrograms) {
  Environment environment;
  for (const auto& [text, want] : {std::pair{"1", Statistics::text},
                                   {"text", Statistics::text},
                                   {"json", Statistics::json},
                                   {"off", Statistics::off},
                                   {"0", Statistics::off}}) {
    environment.set("TOMBOLO_STATS", text);
    EXPECT_EQ(read_environment().statistics, want) << text;
  }
}

TEST(Options, ThatAreNotUnderstoodAreComplainedOfAndInitial) {
  for (const auto& [variable, text, choices] :
       {std::tuple{"TOMBOLO_MACHINE", "Stale", "coherent, flushed, stale"},
        {"TOMBOLO_PASSIVE_SYNC", "mcs", "best-effort, writer-preference, fifo"},
        {"TOMBOLO_SEED", "x", "a number from 0"},
        {"TOMBOLO_EVICTIONS", "-1", "a number from 0"},
        {"TOMBOLO_ATOMICS", "on", "full, none"},
        {"TOMBOLO_BACKOFF", "maybe", "on, off"},
        {"TOMBOLO_REMAP", "2", "on, off"},
        {"TOMBOLO_DISABLE", "please", "on, off"},
        {"TOMBOLO_SEGMENT", "file", "memfd, nameless, named"},
        {"TOMBOLO_WRITE_WATCH", "never", "on, off"},
        {"TOMBOLO_STATS", "xml", "off, text, json"},
        {"TOMBOLO_DSM_SERVERS", "4097", "a number from 0 to 4096"},
        {"TOMBOLO_SVP_STACK", "256", "a size from 16KiB to 1GiB, such as 512MiB"}}) {
    Environment environment;
    environment.set(variable, text);
    const Options options = read_environment();
    ASSERT_EQ(options.complaints.size(), 1u) << variable;
    EXPECT_EQ(options.complaints[0],
              std::string(variable) + " is '" + text + "'; it may be " + choices);
    EXPECT_EQ(options.seed, 1u);
    EXPECT_EQ(name(options.machine), "coherent");
    EXPECT_TRUE(options.native_atomics() && options.backoff);
  }
}

TEST(Options, MayBeSeveralNames) {
  for (const auto& [text, complaints] : {std::pair{"read-ahead", 0U},
                                         {"read-ahead,open-pages", 0U},
                                         {"read-ahead,later", 1U},
                                         {"later,read-ahead", 1U},
                                         {"read-ahead,,open-pages", 1U},
                                         {",", 1U}}) {
    Environment environment;
    environment.set("TOMBOLO_DSM_WITHOUT", text);
    EXPECT_EQ(read_environment().complaints.size(), complaints) << text;
  }
}

TEST(Options, WithNamesThatAreNearlyThoseOfSettingsAreComplainedOf) {
  for (const auto& [given, meant] : {std::pair{"TOMBOLO_MACHIN", "TOMBOLO_MACHINE"},
                                     {"TOMBOLO_MASCHINE", "TOMBOLO_MACHINE"},
                                     {"TOMBOLO_MACHNIE", "TOMBOLO_MACHINE"},
                                     {"TOMBOLOMACHINE", "TOMBOLO_MACHINE"},
                                     {"TOMBOLO_SEDE", "TOMBOLO_SEED"},
                                     {"TOMBOLO_SEEDS", "TOMBOLO_SEED"},
                                     {"TOMBOLO_EVICTION", "TOMBOLO_EVICTIONS"},
                                     {"TOMBOLO_ATOMIC", "TOMBOLO_ATOMICS"},
                                     {"TOMBOLO_ON_FINDING", "TOMBOLO_ON_FINDINGS"}}) {
    Environment environment;
    environment.set(given, "stale");
    const Options options = read_environment();
    ASSERT_EQ(options.complaints.size(), 1u) << given;
    EXPECT_EQ(options.complaints[0],
              std::string(given) + " is no setting of Tombolo's; it may be meant for " + meant);
  }
}

// Those of tests, of the command and of other programs are no business of ours.
TEST(Options, WithNamesOfOthersAreLeftAlone) {
  for (const char* name : {"TOMBOLO_JOB", "TOMBOLO_PRELOAD", "TOMBOLO_TEST_SEED", "TOMBOLO_TESTS",
                           "TOMBOLO_MPI", "TOMBOLO_VERSION", "TOMBOLA_SEED"}) {
    Environment environment;
    environment.set(name, "3");
    EXPECT_TRUE(read_environment().complaints.empty()) << name;
  }
  Environment environment;
  environment.set("TOMBOLO_MACHIN", "");
  EXPECT_TRUE(read_environment().complaints.empty()) << "set to nothing";
}

TEST(Options, NamesDifferByLetters) {
  EXPECT_EQ(difference("", "ab"), 2u);
  EXPECT_EQ(difference("abc", "abc"), 0u);
  EXPECT_EQ(difference("abcd", "acbd"), 1u);
  EXPECT_EQ(difference("abcd", "abd"), 1u);
  EXPECT_EQ(difference("abcd", "xbcy"), 2u);
}

TEST(Options, OfAWindowAreChangedByItsInfoKeys) {
  Environment environment;
  Options options = read_environment();
  EXPECT_TRUE(apply_info(options, "tombolo_machine", "stale").ok());
  EXPECT_EQ(name(options.machine), "stale");
  EXPECT_TRUE(apply_info(options, "tombolo_remap", "off").ok());
  EXPECT_FALSE(options.remap);
  EXPECT_TRUE(apply_info(options, "mpi_accumulate_granularity", "64").ok());
  EXPECT_EQ(options.atomic_bytes, 64u);
  EXPECT_TRUE(apply_info(options, "alloc_shared_noncontig", "true").ok());
  EXPECT_TRUE(options.shared_apart);
  EXPECT_TRUE(apply_info(options, "another_key", "text").ok());
  const Status refused = apply_info(options, "tombolo_machine", "steel");
  EXPECT_EQ(refused.message(), "info key tombolo_machine='steel' is not understood and ignored");
  EXPECT_EQ(name(options.machine), "stale");
}

TEST(Options, PartsOfSharedMemoryLieApartByEitherName) {
  Environment environment;
  EXPECT_FALSE(read_environment().shared_apart);
  environment.set("TOMBOLO_SHARED_NONCONTIG", "on");
  Options options = read_environment();
  EXPECT_TRUE(options.shared_apart);
  EXPECT_TRUE(apply_info(options, "alloc_shared_noncontig", "false").ok());
  EXPECT_FALSE(options.shared_apart);
}

}  // namespace
}  // namespace tombolo::runtime
