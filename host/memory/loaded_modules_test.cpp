// SPDX-License-Identifier: Apache-2.0
// Purpose: tests that the modules of a process are listed, told and compared.
// Thread safety: -
#include "host/memory/loaded_modules.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tombolo::host {
namespace {

const std::vector<LoadedModule> some = {{"the program", 0x555555554000, "aa01"},
                                        {"lib with spaces.so", 0x7ffff7d00000, ""},
                                        {"libz.so.1", 0x7ffff7c00000, "0203"}};

TEST(LoadedModules, AreThoseOfThisProcess) {
  const std::vector<LoadedModule> modules = loaded_modules();
  ASSERT_GE(modules.size(), 2u);
  EXPECT_EQ(modules[0].name, "the program");
  const auto libc = std::ranges::find(modules, "libc.so.6", &LoadedModule::name);
  ASSERT_NE(libc, modules.end());
  EXPECT_EQ(libc->build.size(), 40u) << "of 20 bytes";
  EXPECT_NE(libc->address, 0u);
  EXPECT_TRUE(std::ranges::none_of(
      modules, [](const LoadedModule& module) { return module.name.starts_with("linux-vdso"); }));
  EXPECT_EQ(modules_in(text_of(modules)), modules);
}

TEST(LoadedModules, GoFromProcessToProcessAsText) {
  EXPECT_EQ(modules_in(text_of(some)), some);
  EXPECT_TRUE(modules_in("").empty());
  EXPECT_TRUE(modules_in("\nnothing\n12\n12 ab\n").empty());
}

TEST(LoadedModules, DifferencesAreNamed) {
  EXPECT_EQ(difference(some, some), "");
  std::vector<LoadedModule> mine = some;
  mine.push_back({"libmore.so", 1, "1"});
  EXPECT_EQ(difference(mine, some), "") << "one more does not matter";
  mine[2].address += 0x1000;
  EXPECT_EQ(difference(mine, some), "libz.so.1 lies at 0x7ffff7c01000, not at 0x7ffff7c00000");
  mine[2].build = "0204";
  EXPECT_EQ(difference(mine, some), "libz.so.1 is another build");
  mine.erase(mine.begin() + 1);
  EXPECT_EQ(difference(mine, some), "lib with spaces.so is missing");
}

}  // namespace
}  // namespace tombolo::host
