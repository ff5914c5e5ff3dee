// SPDX-License-Identifier: Apache-2.0
#include "host/stacks/stack_call.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tombolo::host {
namespace {

TEST(StackCall, TheFunctionRunsOnTheStackAndItsValuesComeBack) {
  std::vector<std::byte> stack(std::size_t{64} << 10);
  const double before = 1.5;
  double sum = 0;
  const volatile char* inside = nullptr;
  for (int i = 0; i < 100; ++i)
    call_on(std::span(stack).first(stack.size() - 3), [&] {
      volatile char local = static_cast<char>(i);
      inside = &local;
      sum += before * local;
    });
  EXPECT_EQ(sum, 1.5 * 99 * 50);
  const auto* const at = reinterpret_cast<const std::byte*>(const_cast<const char*>(inside));
  EXPECT_EQ(at >= stack.data() && at < stack.data() + stack.size(), calls_on_stacks);
}

TEST(StackCall, CallsNestOnStacksOfTheirOwn) {
  std::vector<std::byte> first(std::size_t{64} << 10);
  std::vector<std::byte> second(std::size_t{64} << 10);
  std::string text;
  call_on(first, [&] {
    text += "a";
    call_on(second, [&] { text += "b"; });
    text += "c";
  });
  EXPECT_EQ(text, "abc");
}

}  // namespace
}  // namespace tombolo::host
