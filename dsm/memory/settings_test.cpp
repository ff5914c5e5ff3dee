// SPDX-License-Identifier: Apache-2.0
// Purpose: settings of virtual shared memory are read from the environment, or refused by name.
#include "dsm/memory/settings.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "dsm/testing/tunings.h"

namespace tombolo::dsm {
namespace {

constexpr std::array variables{"TOMBOLO_DSM_TRANSPORT", "TOMBOLO_DSM_PROTOCOL",
                               "TOMBOLO_DSM_MEMORY",    "TOMBOLO_DSM_CACHE",
                               "TOMBOLO_DSM_SERVERS",   "TOMBOLO_DSM_WITHOUT"};

class SettingsTest : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }

 private:
  static void clear() {
    for (const char* variable : variables) unsetenv(variable);
  }
};

TEST_F(SettingsTest, StayAsTheyAreWhereNothingIsSet) {
  Settings settings;
  settings.transport = TransportKind::window;
  settings.memory_bytes = 5;
  settings.cache_bytes = 6;
  ASSERT_TRUE(read_options(settings).ok());
  EXPECT_EQ(settings.transport, TransportKind::window);
  EXPECT_EQ(settings.protocol, ProtocolKind::regional);
  EXPECT_EQ(settings.memory_bytes, 5u);
  EXPECT_EQ(settings.cache_bytes, 6u);
}

TEST_F(SettingsTest, AreThoseOfTheEnvironment) {
  setenv("TOMBOLO_DSM_TRANSPORT", "window", 1);
  setenv("TOMBOLO_DSM_PROTOCOL", "sequential", 1);
  setenv("TOMBOLO_DSM_MEMORY", "3MiB", 1);
  setenv("TOMBOLO_DSM_CACHE", "64K", 1);
  setenv("TOMBOLO_DSM_SERVERS", "3", 1);
  Settings settings;
  ASSERT_TRUE(read_options(settings).ok());
  EXPECT_EQ(settings.transport, TransportKind::window);
  EXPECT_EQ(settings.protocol, ProtocolKind::sequential);
  EXPECT_EQ(settings.memory_bytes, 3u << 20);
  EXPECT_EQ(settings.cache_bytes, 64u << 10);
  EXPECT_EQ(settings.servers, 3u);
  setenv("TOMBOLO_DSM_TRANSPORT", "map", 1);
  setenv("TOMBOLO_DSM_PROTOCOL", "regional", 1);
  ASSERT_TRUE(read_options(settings).ok());
  EXPECT_EQ(settings.transport, TransportKind::map);
  EXPECT_EQ(settings.protocol, ProtocolKind::regional);
}

TEST_F(SettingsTest, ThatAreNotUnderstoodAreNamed) {
  for (const auto& [variable, text] :
       {std::pair{"TOMBOLO_DSM_TRANSPORT", "tcp"}, std::pair{"TOMBOLO_DSM_PROTOCOL", "Regional"},
        std::pair{"TOMBOLO_DSM_MEMORY", "much"}, std::pair{"TOMBOLO_DSM_CACHE", "-1"},
        std::pair{"TOMBOLO_DSM_SERVERS", "-2"}, std::pair{"TOMBOLO_DSM_SERVERS", "5000"},
        std::pair{"TOMBOLO_DSM_WITHOUT", "own_pages"}}) {
    setenv(variable, text, 1);
    Settings settings;
    const Status refused = read_options(settings);
    EXPECT_EQ(refused.code(), Code::bad_configuration) << variable;
    EXPECT_NE(refused.message().find(variable), std::string::npos) << refused.message();
    EXPECT_NE(refused.message().find(text), std::string::npos) << refused.message();
    unsetenv(variable);
  }
}

TEST_F(SettingsTest, AllowAsManyMemoryServersAsTheyTell) {
  Thread servers = 0;
  setenv("TOMBOLO_DSM_SERVERS", "4096", 1);
  ASSERT_TRUE(read_option(options::dsm_servers, servers).ok());
  EXPECT_EQ(servers, 4096U);
  setenv("TOMBOLO_DSM_SERVERS", "4097", 1);
  EXPECT_EQ(read_option(options::dsm_servers, servers).code(), Code::bad_configuration);
  EXPECT_EQ(servers, 4096U);
}

TEST_F(SettingsTest, SwitchTuningsOffByTheNamesOfTheirFields) {
  Settings settings;
  ASSERT_TRUE(read_options(settings).ok());
  EXPECT_EQ(tuning_without(settings.without), Tuning());
  setenv("TOMBOLO_DSM_WITHOUT", "sorted-notices", 1);
  ASSERT_TRUE(read_options(settings).ok());
  EXPECT_EQ(tuning_without(settings.without), testing::without(&Tuning::sorted_notices));
  setenv("TOMBOLO_DSM_WITHOUT", "read-ahead,handed-over-changes", 1);
  settings = {};
  ASSERT_TRUE(read_options(settings).ok());
  EXPECT_EQ(tuning_without(settings.without),
            (Tuning{.read_ahead = false, .handed_over_changes = false}));
}

// Their order is that of the fields (DTU2): a name of another field would be measured for this one.
TEST_F(SettingsTest, KnowEachTuning) {
  const std::pair<const char*, bool Tuning::*> all[] = {
      {"read-ahead", &Tuning::read_ahead},
      {"own-pages", &Tuning::own_pages},
      {"cleared-pages", &Tuning::cleared_pages},
      {"longer-leave", &Tuning::longer_leave},
      {"small-changes", &Tuning::small_changes},
      {"open-pages", &Tuning::open_pages},
      {"more-open-pages", &Tuning::more_open_pages},
      {"sorted-notices", &Tuning::sorted_notices},
      {"handed-over-changes", &Tuning::handed_over_changes}};
  EXPECT_EQ(std::size(all), tunings.size());
  for (const auto& [name, field] : all) {
    setenv("TOMBOLO_DSM_WITHOUT", name, 1);
    Settings settings;
    ASSERT_TRUE(read_options(settings).ok()) << name;
    EXPECT_EQ(tuning_without(settings.without), testing::without(field)) << name;
  }
}

TEST_F(SettingsTest, NameTheTuningThatIsNotUnderstood) {
  for (const char* text : {"read-ahead,later", "later,read-ahead", "read-ahead,,own-pages", ","}) {
    setenv("TOMBOLO_DSM_WITHOUT", text, 1);
    Settings settings;
    const Status refused = read_options(settings);
    EXPECT_EQ(refused.code(), Code::bad_configuration) << text;
    EXPECT_NE(refused.message().find("cleared-pages"), std::string::npos) << refused.message();
  }
}

}  // namespace
}  // namespace tombolo::dsm
