// SPDX-License-Identifier: Apache-2.0
#include "runtime/findings/call_sites.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
namespace tombolo::runtime {
namespace {

// The address behind its call.
[[gnu::noinline]] const void* here() {
  asm volatile("");  // each call is one: the compiler may take two for the same otherwise
  return __builtin_return_address(0);
}
// One place, however often it is called.
[[gnu::noinline]] std::uint64_t one_place() { return call_site(here()); }

TEST(CallSites, AreTheSameForTheSamePlaceAndDifferInOthers) {
  const std::uint64_t site = one_place();
  EXPECT_EQ(site, one_place());
  EXPECT_NE(site, call_site(here()));
  EXPECT_LT(site, std::uint64_t{1} << 48);
  EXPECT_NE(site >> 32, 0u) << "the module is in it";
}

// From the debug information, which this program has.
TEST(CallSites, ArePlacesForPeople) {
  if (std::system("addr2line --version > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "no addr2line on this host";
  constexpr int line = __LINE__ + 1;
  const std::uint64_t first = call_site(here());
  const std::uint64_t second = call_site(here());
  const auto places = places_of(std::array{first, std::uint64_t{0}, second});
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[1], "");
  const auto is_line = [](std::string_view place, int number) {
    return place.ends_with(fmt::format("findings/call_sites_test.cpp:{}", number));
  };
  EXPECT_TRUE(is_line(places[0], line)) << places[0];
  EXPECT_TRUE(is_line(places[2], line + 1)) << places[2];
}

// As addr2line on another host needs them.
TEST(CallSites, AreModulesAndOffsetsWhereNothingResolvesThem) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "this function of the library is the sanitizer's, in the program";
#endif
  const auto* const in_library = reinterpret_cast<const char*>(&std::atoi) + 1;
  const std::array sites{call_site(here()), call_site(in_library)};
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  const auto places = places_of(sites);
  setenv("PATH", path.c_str(), 1);
  Dl_info library{};
  ASSERT_NE(dladdr(in_library, &library), 0);
  const auto place_in = [](std::string_view module, std::uint64_t site) {
    return fmt::format("{}+{:#x}", module, site & 0xffffffff);
  };
  EXPECT_EQ(places[0],
            place_in(std::filesystem::read_symlink("/proc/self/exe").string(), sites[0]));
  EXPECT_EQ(places[1], place_in(library.dli_fname, sites[1]));
}

TEST(CallSites, OfFunctionsLeadBackToThem) {
  const auto* const own = reinterpret_cast<const void*>(&one_place);
  EXPECT_EQ(address_of(code_place(own)), own);
  EXPECT_NE(code_place(own), code_place(reinterpret_cast<const void*>(&here)));
  const auto* const library = reinterpret_cast<const void*>(&std::atoi);
  EXPECT_EQ(address_of(code_place(library)), library);
}

TEST(CallSites, OfNoModuleAreNoFunctions) {
  const int on_the_stack = 0;
  EXPECT_EQ(code_place(&on_the_stack), 0u);
  EXPECT_EQ(address_of(0), nullptr);
  EXPECT_EQ(address_of(0x12345), nullptr);
  EXPECT_EQ(address_of(code_place(reinterpret_cast<const void*>(&here)) ^ std::uint64_t{1} << 40),
            nullptr)
      << "a module that is not there";
}

TEST(CallSites, OfOtherModulesAreUnknown) {
  EXPECT_EQ(places_of(std::array{std::uint64_t{0x12345}})[0], "an unknown module+0x12345");
}

}  // namespace
}  // namespace tombolo::runtime
