// SPDX-License-Identifier: Apache-2.0
#include "runtime/findings/call_sites.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
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

// From the debug information, or else as addr2line needs it.
TEST(CallSites, ArePlacesForPeople) {
  const std::uint64_t first = call_site(here());
  const std::uint64_t second = call_site(here());
  const std::array sites{first, std::uint64_t{0}, second};
  const auto places = places_of(sites);
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[1], "");
  for (const std::size_t i : {0u, 2u})
    EXPECT_TRUE(places[i].find("call_sites_test.cpp:") != std::string::npos ||
                places[i].ends_with(fmt::format("+{:#x}", sites[i] & 0xffffffff)))
        << places[i];
  EXPECT_NE(places[0], places[2]);
}

TEST(CallSites, OfSharedLibrariesNameTheLibrary) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "this function is the sanitizer's, in the program";
#endif
  // Inside the C library, which has no debug information beside it as a rule.
  const std::uint64_t site = call_site(reinterpret_cast<const char*>(&std::atoi) + 1);
  const auto places = places_of(std::array{site});
  EXPECT_TRUE(places[0].find("libc") != std::string::npos ||
              places[0].find("atoi") != std::string::npos)
      << places[0];
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
