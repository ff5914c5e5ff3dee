// SPDX-License-Identifier: Apache-2.0
// Purpose: tests descriptions of data and the form of values in a stream: bytes as RFC 4506 has
// them, and arguments that must not compile.
// Thread safety: -
#include "svp/remote/description.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "svp/places/place.h"
#include "svp/remote/channel_parameters.h"
#include "svp/remote/function.h"

namespace tombolo::svp {
namespace {

void scale(Index, In<double>, InArray<double>, OutArray<double>) {}
void same_as_scale(In<double>, InArray<double>, OutArray<double>) {}
void of_floats(Index, In<double>, InArray<float>, OutArray<double>) {}
[[maybe_unused]] void by_pointer(double*) {}
[[maybe_unused]] void of_pointers(InArray<double>, double) {}
[[maybe_unused]] int returns(In<int>) { return 0; }
void with_channels(Index, In<int>, Global<double>&, SharedEnd<std::int32_t>&) {}
[[maybe_unused]] void with_global(Global<std::int32_t>&) {}
[[maybe_unused]] void with_shared(SharedEnd<std::int32_t>&) {}
[[maybe_unused]] void with_large(Global<std::int64_t>&) {}
[[maybe_unused]] void data_behind_channels(Global<double>&, In<int>) {}
[[maybe_unused]] void of_strings(Global<std::string>&) {}
[[maybe_unused]] void by_value(Global<double>) {}
[[maybe_unused]] void of_the_parents_side(Shared<int>&) {}

using Doubles = std::vector<double>&;
static_assert(ArgumentsOf<Remote<&scale>, int, Doubles, Doubles>);
static_assert(ArgumentsOf<Remote<&scale>, double, std::span<const double>, std::span<double>>);
static_assert(!ArgumentsOf<Remote<&scale>, int, Doubles>);
static_assert(!ArgumentsOf<Remote<&scale>, int, std::vector<float>&, Doubles>);
static_assert(!ArgumentsOf<Remote<&scale>, int, Doubles, const std::vector<double>&>);
static_assert(!ThreadFunction<decltype(&by_pointer)>);
static_assert(!ThreadFunction<decltype(&of_pointers)>);
static_assert(!ThreadFunction<decltype(&returns)>);
static_assert(ArgumentsOf<Remote<&with_channels>, int, Global<double>&, Shared<std::int32_t>&>);
static_assert(!ArgumentsOf<Remote<&with_channels>, int, Global<float>&, Shared<std::int32_t>&>);
static_assert(!ArgumentsOf<Remote<&with_channels>, int, Global<double>&, Global<std::int32_t>&>);
static_assert(!ArgumentsOf<Remote<&with_channels>, int, Global<double>, Shared<std::int32_t>&>);
static_assert(!ArgumentsOf<Remote<&with_channels>, int, double, Shared<std::int32_t>&>);
static_assert(!ArgumentsOf<Remote<&with_channels>, int, Global<double>&>);
static_assert(!ThreadFunction<decltype(&data_behind_channels)>);
static_assert(!ThreadFunction<decltype(&of_strings)>);
static_assert(!ThreadFunction<decltype(&by_value)>);
static_assert(!ThreadFunction<decltype(&of_the_parents_side)>);
static_assert(!Portable<Place>);  // a name of this process
static_assert(!Portable<int*> && !Portable<std::vector<int>> && !Portable<const int>);

// Whether a thread may assign such a value to its parameter, which it may have as a constant.
template <class P, class Value>
inline constexpr bool assigns = std::is_assignable_v<P&, Value>;
static_assert(assigns<Out<int>, int> && assigns<const Out<int>, int&> &&
              assigns<Out<int>, Out<int>&>);
static_assert(assigns<InOut<int>, int> && assigns<const InOut<int>, int&> &&
              assigns<InOut<int>, InOut<int>&>);
static_assert(assigns<Out<int>, InOut<int>> && assigns<Out<int>, In<int>> &&
              assigns<InOut<int>, In<int>>);
static_assert(std::convertible_to<InOut<int>, int>);
// A temporary copy is the same variable: std::swap and std::sort would store a value twice.
static_assert(!assigns<Out<int>, Out<int>> && !assigns<InOut<int>, InOut<int>>);
template <class P>
concept Swapped = requires(P a, P b) {
  std::swap(a, b);
};
static_assert(!Swapped<Out<int>> && !Swapped<InOut<int>> && std::swappable<InOut<int>>);
static_assert(!std::sortable<std::vector<InOut<int>>::iterator>);
// Threads hand their parameters on.
static_assert(std::copy_constructible<Out<int>> && std::copy_constructible<InOut<int>>);
// It would be lost.
static_assert(!assigns<In<int>, int> && !assigns<In<int>, In<int>> && !assigns<In<int>, Out<int>>);
using Ints = std::vector<int>&;
static_assert(!assigns<InArray<int>, Ints> && !assigns<InArray<int>, InArray<int>>);
static_assert(!assigns<OutArray<int>, Ints> && !assigns<OutArray<int>, OutArray<int>&>);
static_assert(!assigns<OutArray<int>, std::span<int>> && !assigns<InOutArray<int>, std::span<int>>);
static_assert(!assigns<InOutArray<int>, Ints> && !assigns<InOutArray<int>, InOutArray<int>>);
static_assert(!assigns<Global<int>, int> && !assigns<Global<int>, Global<int>&>);
static_assert(!assigns<SharedEnd<int>, int> && !assigns<SharedEnd<int>, SharedEnd<int>&>);
static_assert(!assigns<SharedEnd<int>, Shared<int>&> && !assigns<Shared<int>, int>);

// Swaps the values, as each algorithm of the library does that swaps.
TEST(Parameters, SwapTheCreatorsValues) {
  std::vector<int> values = {1, 2, 3};
  const Out<int> first(values[0]);
  const Out<int> second(values[1]);
  swap(first, second);
  EXPECT_EQ(values, (std::vector{2, 1, 3}));
  std::ranges::swap(first, second);
  EXPECT_EQ(values, (std::vector{1, 2, 3}));
  std::swap(*first, *second);
  EXPECT_EQ(values, (std::vector{2, 1, 3}));
  std::vector<InOut<int>> all(values.begin(), values.end());
  std::reverse(all.begin(), all.end());
  EXPECT_EQ(values, (std::vector{3, 1, 2}));
}

TEST(Parameters, StandForTheVariableInEachCopy) {
  int value = 1;
  const InOut<int> both(value);
  std::vector<InOut<int>> kept;
  kept.push_back(both);
  kept[0] = 2;
  EXPECT_EQ(value, 2);
  const auto store = [both](Out<int> to) { to = both + 1; };
  store(value);
  EXPECT_EQ(value, 3);
}

TEST(Parameters, StoreWhatIsAssignedInTheCreatorsVariable) {
  int first = 1;
  int second = 2;
  const Out<int> out(first);
  InOut<int> both(second);
  out = 7;
  EXPECT_EQ(first, 7);
  const int value = 8;
  out = both = value;
  EXPECT_EQ(first, 8);
  EXPECT_EQ(second, 8);
  both = both + 1;
  EXPECT_EQ(second, 9);
  int another = 3;
  both = another;  // a variable, which it does not stand for from now on
  another = 4;
  EXPECT_EQ(both, 3);
  out = InOut<int>(another);
  EXPECT_EQ(first, 4);
  Out<int> third(another);
  const Out<int> fourth(second);
  third = fourth;
  third = 5;
  EXPECT_EQ(second, 3);
  EXPECT_EQ(another, 5);
}

TEST(Descriptions, AreToldApartByTheirDigests) {
  EXPECT_EQ(remote<&scale>.entry().digest, remote<&same_as_scale>.entry().digest);
  EXPECT_NE(remote<&scale>.entry().digest, remote<&of_floats>.entry().digest);
  constexpr auto in = description_digest<InArray<std::int32_t>>();
  EXPECT_NE(in, (description_digest<OutArray<std::int32_t>>()));
  EXPECT_NE(in, (description_digest<In<std::int32_t>>()));
  EXPECT_NE(in, (description_digest<InArray<std::uint32_t>>()));
  EXPECT_NE(in, (description_digest<InArray<std::int32_t>, InArray<std::int32_t>>()));
}

TEST(Descriptions, OfChannelsAreToldApart) {
  const std::uint64_t global = remote<&with_global>.entry().digest;
  EXPECT_NE(global, remote<&with_shared>.entry().digest);
  EXPECT_NE(global, remote<&with_large>.entry().digest);
  EXPECT_NE(global, (description_digest<In<std::int32_t>>()));
  const std::span<const ChannelForm> channels = remote<&with_channels>.entry().channels;
  ASSERT_EQ(channels.size(), 2u);
  EXPECT_FALSE(channels[0].shared);
  EXPECT_TRUE(channels[1].shared);
  EXPECT_EQ(channels[0].value.element_bytes, 8u);
  EXPECT_TRUE(remote<&scale>.entry().channels.empty());
  EXPECT_TRUE(remote<&scale>.entry().frame(remote<&scale>.entry())->channels().empty());
}

TEST(Descriptions, AreFoundByName) {
  const FunctionEntry& entry = remote<&scale>.entry();
  ASSERT_NE(find_function(entry.id), nullptr);
  EXPECT_EQ(find_function(entry.id)->frame, entry.frame);
  EXPECT_EQ(find_function(entry.id + 1), nullptr);
  EXPECT_NE(entry.name.find("scale"), std::string_view::npos);
  EXPECT_NE(entry.id, remote<&same_as_scale>.entry().id);
}

TEST(DescriptionsDeathTest, OfOneNameAreFoundOut) {
  FunctionEntry other = remote<&scale>.entry();
  other.frame = remote<&of_floats>.entry().frame;
  EXPECT_DEATH(enter_function(other), "there are two functions .*scale");
}

template <class T>
std::vector<int> encoded(T value) {
  std::vector<std::byte> bytes(XdrForm<T>::bytes);
  XdrForm<T>::encode(value, bytes.data());
  T back{};
  XdrForm<T>::decode(bytes.data(), back);
  EXPECT_EQ(back, value);
  std::vector<int> numbers;
  for (const std::byte b : bytes) numbers.push_back(static_cast<int>(b));
  return numbers;
}

TEST(Xdr, IsBigEndianInWordsOfFourBytes) {
  using Numbers = std::vector<int>;
  EXPECT_EQ(encoded<std::int32_t>(-2), (Numbers{255, 255, 255, 254}));
  EXPECT_EQ(encoded<std::uint32_t>(0x01020304), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(encoded<std::int64_t>(0x0102030405060708), (Numbers{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(encoded<std::int16_t>(-3), (Numbers{255, 255, 255, 253}));
  EXPECT_EQ(encoded<bool>(true), (Numbers{0, 0, 0, 1}));
  EXPECT_EQ(encoded<char>('A'), (Numbers{0, 0, 0, 65}));
  EXPECT_EQ(encoded<float>(1.0f), (Numbers{0x3f, 0x80, 0, 0}));
  EXPECT_EQ(encoded<double>(-2.0), (Numbers{0xc0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(encoded<Flow>(Flow::inout), (Numbers{0, 0, 0, 3}));
  EXPECT_EQ((encoded<std::array<std::int16_t, 2>>({1, 2})), (Numbers{0, 0, 0, 1, 0, 0, 0, 2}));
  encoded(std::numeric_limits<double>::denorm_min());
  encoded(std::numeric_limits<std::int64_t>::min());
}

// Many at once, as they are one by one: at each count of values up to several vectors, at addresses
// that are aligned for no vector, and with a value on each side that stays as it is.
template <class T>
void expect_rows_as_values(T first) {
  constexpr std::size_t bytes = XdrForm<T>::bytes;
  for (std::size_t count = 0; count < 70; ++count) {
    std::vector<T> values(count + 2, first);
    for (std::size_t i = 1; i <= count; ++i) values[i] = static_cast<T>(values[i - 1] + T{1});
    std::vector<std::byte> one_by_one(1 + (count + 1) * bytes);
    std::vector<std::byte> at_once(one_by_one.size());
    for (std::size_t i = 0; i < count; ++i)
      XdrForm<T>::encode(values[i + 1], one_by_one.data() + 1 + i * bytes);
    xdr_of<T>()->encode(values.data() + 1, count, at_once.data() + 1);
    EXPECT_EQ(at_once, one_by_one) << count;
    std::vector<T> back(count + 2, first);
    xdr_of<T>()->decode(at_once.data() + 1, count, back.data() + 1);
    EXPECT_EQ(back, values) << count;
  }
}

TEST(Xdr, RowsAreConvertedAsTheirValues) {
  expect_rows_as_values<std::int32_t>(0x01020304);
  expect_rows_as_values<std::uint64_t>(0x0102030405060708);
  expect_rows_as_values<float>(1.25F);
  expect_rows_as_values<double>(-0.1);
  expect_rows_as_values<std::int16_t>(-300);
  expect_rows_as_values<char>('a');
  const std::array<std::array<std::int32_t, 3>, 2> values{{{1, -2, 3}, {4, 5, -6}}};
  std::array<std::byte, 24> row;
  std::array<std::byte, 24> single;
  xdr_of<std::array<std::int32_t, 3>>()->encode(values.data(), 2, row.data());
  XdrForm<std::decay_t<decltype(values)>>::encode(values, single.data());
  EXPECT_EQ(row, single);
}

TEST(Xdr, HasNoFormForStructures) {
  struct Pair {
    int a;
    int b;
  };
  EXPECT_EQ(xdr_of<Pair>(), nullptr);
  EXPECT_EQ(xdr_of<long double>(), nullptr);
  ASSERT_NE(xdr_of<double>(), nullptr);
  EXPECT_EQ(xdr_of<double>()->bytes, 8u);
}

}  // namespace
}  // namespace tombolo::svp
