// SPDX-License-Identifier: Apache-2.0
// Purpose: thread functions that may run at other sites, by name. All sites run the same program,
// so that a function is there wherever it is called from.
//
//   void scale(Index i, In<double> by, InArray<double> from, OutArray<double> to);
//   auto family = create(place, {.limit = n}, remote<&scale>, 2.0, from, to);
//
// Its index comes first, if it wants that; then come parameters of description.h, and behind them
// the ends of channels (channel_parameters.h). It returns nothing.
//
// Invariants: RFN1 a function that is named by remote<> anywhere in the program is known from its
//                  start on: a static object of its type enters it.
//             RFN2 two functions of one name (in anonymous namespaces of two files) are found out
//                  when they are entered.
// Thread safety: functions are entered before main() begins, or those of C before the job does; the
// rest is read only.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "svp/range.h"
#include "svp/remote/channel_ends.h"
#include "svp/remote/description.h"

namespace tombolo::svp {

// The arguments of a family where it runs.
class Frame {
 public:
  virtual ~Frame() = default;
  virtual std::span<Piece> pieces() = 0;
  // The arrays lie where pieces() says now; threads may run.
  virtual void bind() = 0;
  virtual void call(Index index) = 0;
  // The family's ends of its channels, by number.
  virtual std::span<FamilyEnd* const> channels() { return {}; }
};

struct FunctionEntry {
  std::uint64_t id = 0;  // of the name
  std::string_view name;
  std::uint64_t digest = 0;  // of the description
  std::span<const ChannelForm> channels{};
  std::unique_ptr<Frame> (*frame)(const FunctionEntry&) = nullptr;
  const void* program = nullptr;  // of an interface for other languages
};

// Null: there is none.
const FunctionEntry* find_function(std::uint64_t id);
void enter_function(const FunctionEntry& entry);

namespace detail {

// The function's type without its index.
template <class F>
struct Signature;
template <class... P>
struct Signature<void (*)(Index, P...)> {
  static constexpr bool takes_index = true;
  using Parameters = std::tuple<P...>;
};
template <class... P>
struct Signature<void (*)(P...)> {
  static constexpr bool takes_index = false;
  using Parameters = std::tuple<P...>;
};

// The parameters of described data, and behind them those of channels.
template <class Data, class Channels, class... P>
struct SplitParameters;
template <class... D, class... C>
struct SplitParameters<std::tuple<D...>, std::tuple<C...>> {
  static constexpr bool described = true;
  using Data = std::tuple<D...>;
  using Channels = std::tuple<C...>;
};
template <class... D, class... C, class First, class... Rest>
struct SplitParameters<std::tuple<D...>, std::tuple<C...>, First, Rest...> {
  static constexpr bool described = false;
};
template <class... D, class... C, ChannelEnd First, class... Rest>
struct SplitParameters<std::tuple<D...>, std::tuple<C...>, First, Rest...>
    : SplitParameters<std::tuple<D...>, std::tuple<C..., First>, Rest...> {};
template <class... D, Described First, class... Rest>
struct SplitParameters<std::tuple<D...>, std::tuple<>, First, Rest...>
    : SplitParameters<std::tuple<D..., First>, std::tuple<>, Rest...> {};

template <class Tuple>
struct Split;
template <class... P>
struct Split<std::tuple<P...>> : SplitParameters<std::tuple<>, std::tuple<>, P...> {};

template <class P, class Arg>
constexpr bool is_made_of() {
  if constexpr (ChannelEnd<P>)
    return std::is_same_v<Arg, typename ChannelParameter<P>::Channel&>;
  else
    return std::constructible_from<P, Arg>;
}
template <class Tuple, class... Args>
inline constexpr bool all_made_of = false;
template <class... P, class... Args>
requires(sizeof...(P) ==
         sizeof...(Args)) inline constexpr bool all_made_of<std::tuple<P...>, Args...> =
    (is_made_of<P, Args>() && ...);

// "... [with auto f = NAME]" or "... [f = &NAME]", by the compiler.
template <auto f>
constexpr std::string_view function_name() {
  constexpr std::string_view whole = __PRETTY_FUNCTION__;
  constexpr std::string_view before = "f = ";
  constexpr std::size_t at = whole.find(before) + before.size();
  constexpr std::size_t end = whole.find_first_of(";]", at);
  constexpr std::size_t start = whole[at] == '&' ? at + 1 : at;
  return whole.substr(start, end - start);
}

template <auto f, class Data, class Channels>
class FunctionFrame;

template <auto f, class... P, class... C>
class FunctionFrame<f, std::tuple<P...>, std::tuple<C...>> final : public Frame {
 public:
  FunctionFrame() { look(std::index_sequence_for<P...>()); }
  std::span<Piece> pieces() override { return {pieces_.data(), sizeof...(P)}; }
  void bind() override { hold(std::index_sequence_for<P...>()); }
  void call(Index index) override {
    std::apply(
        [&](auto&... held) {
          std::apply(
              [&](auto&... end) {
                if constexpr (Signature<decltype(f)>::takes_index)
                  f(index, Parameter<P>::value(held)..., end.argument()...);
                else
                  f(Parameter<P>::value(held)..., end.argument()...);
              },
              held_channels_);
        },
        held_);
  }
  std::span<FamilyEnd* const> channels() override { return {channels_.data(), sizeof...(C)}; }
  static std::unique_ptr<Frame> make(const FunctionEntry&) {
    return std::make_unique<FunctionFrame>();
  }

 private:
  template <std::size_t... i>
  void look(std::index_sequence<i...>) {
    ((pieces_[i] = Parameter<P>::piece(std::get<i>(held_))), ...);
  }
  template <std::size_t... i>
  void hold(std::index_sequence<i...>) {
    (hold_one(std::get<i>(held_), pieces_[i]), ...);
  }
  template <class Held>
  static void hold_one(Held& held, const Piece& piece) {
    if constexpr (requires { held.piece = piece; }) held.piece = piece;
  }

  std::tuple<typename Parameter<P>::Held...> held_;
  std::array<Piece, (sizeof...(P) > 0 ? sizeof...(P) : 1)> pieces_;
  std::tuple<typename ChannelParameter<C>::Held...> held_channels_;
  std::array<FamilyEnd*, sizeof...(C)> channels_ = std::apply(
      [](auto&... end) { return std::array<FamilyEnd*, sizeof...(C)>{&end...}; }, held_channels_);
};

template <class Tuple>
struct DescriptionOf;
template <class... P>
struct DescriptionOf<std::tuple<P...>> {
  static constexpr std::uint64_t digest = description_digest<P...>();
};
template <class Tuple>
struct ChannelForms;
template <class... C>
struct ChannelForms<std::tuple<C...>> {
  static constexpr std::array<ChannelForm, sizeof...(C)> all{ChannelParameter<C>::form...};
};

template <auto f>
inline constexpr std::string_view name_of_function = function_name<f>();

template <auto f>
constexpr FunctionEntry entry_of() {
  using Parameters = typename Signature<decltype(f)>::Parameters;
  using Data = typename Split<Parameters>::Data;
  using Channels = typename Split<Parameters>::Channels;
  return {.id = Digest().add(name_of_function<f>).value(),
          .name = name_of_function<f>,
          .digest = DescriptionOf<Parameters>::digest,
          .channels = ChannelForms<Channels>::all,
          .frame = &FunctionFrame<f, Data, Channels>::make};
}

struct Entered {
  explicit Entered(const FunctionEntry& entry) { enter_function(entry); }
};
template <auto f>
inline constexpr FunctionEntry function_entry = entry_of<f>();
template <auto f>
inline const Entered entered_function{function_entry<f>};

}  // namespace detail

template <class F>
concept ThreadFunction = requires {
  typename detail::Signature<F>::Parameters;
  requires detail::Split<typename detail::Signature<F>::Parameters>::described;
};

template <auto f>
requires ThreadFunction<decltype(f)>
struct Remote {
  using Parameters = typename detail::Signature<decltype(f)>::Parameters;
  using Data = typename detail::Split<Parameters>::Data;             // a tuple
  using ChannelEnds = typename detail::Split<Parameters>::Channels;  // likewise
  static constexpr bool takes_index = detail::Signature<decltype(f)>::takes_index;

  static const FunctionEntry& entry() {
    (void)&detail::entered_function<f>;  // RFN1: so it is there
    return detail::function_entry<f>;
  }
};
// A thread function by its name: the argument of a create that may be at another site.
template <auto f>
inline constexpr Remote<f> remote{};

// The arguments that create() takes after the function.
template <class R, class... Args>
concept ArgumentsOf = detail::all_made_of<typename R::Parameters, Args...>;

}  // namespace tombolo::svp
