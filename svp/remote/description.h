// SPDX-License-Identifier: Apache-2.0
// Purpose: the description of the data of a thread function that may run at another site, in the
// types of its parameters: scalar or array, input, output or both (the data description function
// of 002 section 3.3, without its loop over elements).
//
//   void scale(Index i, In<double> by, InArray<double> from, OutArray<double> to) {
//     to[i] = by * from[i];
//   }
//
// Input goes there with the create, output comes back with the sync; nothing else of the creator's
// memory is there. An output stands for the creator's variable: `sum = 3` stores 3 there, as
// `*sum = 3` does. An assignment that the creator would not see does not compile, nor do an
// argument that a parameter cannot be made of and a parameter that is not described.
//
// A copy of an output, `auto old = sum`, is the same variable, and no value that was there before:
// that is `auto old = *sum`. So swap(a, b) swaps the values, and std::swap(a, b) and std::sort of
// outputs, which would store a value twice, do not compile: std::swap(*a, *b) does.
//
// Invariants: DSC1 elements are plain bytes: trivially copyable, and neither pointers nor a
//                 Place. Within a class these are not found.
//             DSC2 functions of one digest have parameters of the same flows, sizes and kinds.
// Thread safety: plain values; an array's elements are shared by the threads of a family.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "svp/remote/xdr.h"

namespace tombolo::svp {

enum class Flow : std::uint32_t { in = 1, out = 2, inout = 3 };
constexpr bool goes_in(Flow flow) { return (static_cast<std::uint32_t>(flow) & 1) != 0; }
constexpr bool comes_out(Flow flow) { return (static_cast<std::uint32_t>(flow) & 2) != 0; }

template <class T>
concept Portable =
    std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> && !std::is_const_v<T> &&
    !std::is_pointer_v<T> && !std::is_member_pointer_v<T> &&
    // Plain bytes that mean nothing in another process, such as the name of a place.
    !requires {
  typename T::OfThisProcess;
};

// ---- Parameters ---------------------------------------------------------------------------------

// A value of the creator. It cannot be assigned to: the creator would not see that.
template <Portable T>
class In {
 public:
  In(T value) : value_(value) {}  // NOLINT: an argument is the value
  In(const In&) = default;
  In& operator=(const In&) = delete;  // an input: nothing comes back to the creator
  operator const T&() const { return value_; }
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }

 private:
  T value_;
};

namespace detail {

// A parameter that stands for a variable of the creator. Threads may have it as a constant: its
// assignments change the variable, and none makes it stand for another one.
template <Portable T>
class Variable {
 public:
  Variable(T& variable) : at_(&variable) {}  // NOLINT: an argument is the creator's variable
  T& operator*() const { return *at_; }
  T* operator->() const { return at_; }

 protected:
  Variable(const Variable&) = default;
  Variable& operator=(const Variable&) = delete;
  ~Variable() = default;

 private:
  T* at_;
};

}  // namespace detail

// A variable of the creator that gets its value from the family.
template <Portable T>
class Out : public detail::Variable<T> {
 public:
  using detail::Variable<T>::Variable;
  Out(const Out&) = default;
  const Out& operator=(const T& value) const { return **this = value, *this; }
  const Out& operator=(const Out& other) const { return *this = *other; }
  const Out& operator=(Out&&) const = delete;  // a copy keeps no value: assign `*other`
  friend void swap(Out a, Out b) { std::swap(*a, *b); }
};
// One that goes there and comes back.
template <Portable T>
class InOut : public detail::Variable<T> {
 public:
  using detail::Variable<T>::Variable;
  InOut(const InOut&) = default;
  const InOut& operator=(const T& value) const { return **this = value, *this; }
  const InOut& operator=(const InOut& other) const { return *this = *other; }
  const InOut& operator=(InOut&&) const = delete;  // a copy keeps no value: assign `*other`
  friend void swap(InOut a, InOut b) { std::swap(*a, *b); }
  operator const T&() const { return **this; }
};

// Elements that lie one after the other in the creator's memory. An array is not assigned as a
// whole: the parameter would only be a view of other elements. std::ranges::copy stores them.
template <Portable T>
class InArray : public std::span<const T> {
 public:
  using std::span<const T>::span;
  InArray(std::span<const T> elements) : std::span<const T>(elements) {}  // NOLINT: as those
  InArray(const InArray&) = default;
  InArray& operator=(const InArray&) = delete;  // an input: nothing comes back to the creator
};
// All of it comes back: threads write each element.
template <Portable T>
class OutArray : public std::span<T> {
 public:
  using std::span<T>::span;
  OutArray(std::span<T> elements) : std::span<T>(elements) {}  // NOLINT: as those
  OutArray(const OutArray&) = default;
  OutArray& operator=(const OutArray&) = delete;  // stores no element: assign to elements
};
template <Portable T>
class InOutArray : public std::span<T> {
 public:
  using std::span<T>::span;
  InOutArray(std::span<T> elements) : std::span<T>(elements) {}  // NOLINT: as those
  InOutArray(const InOutArray&) = default;
  InOutArray& operator=(const InOutArray&) = delete;  // stores no element: assign to elements
};

// ---- Their form ---------------------------------------------------------------------------------

enum class ElementKind : std::uint32_t { signed_integer, unsigned_integer, floating, other };

template <class T>
constexpr ElementKind element_kind() {
  if (std::is_floating_point_v<T>) return ElementKind::floating;
  if (!std::is_integral_v<T>) return ElementKind::other;
  return std::is_signed_v<T> ? ElementKind::signed_integer : ElementKind::unsigned_integer;
}

struct Form {
  Flow flow = Flow::in;
  bool array = false;
  std::uint32_t element_bytes = 0;
  std::uint32_t alignment = 0;
  ElementKind kind = ElementKind::other;
  bool has_xdr = false;  // a form in a stream:
  const Xdr* xdr = nullptr;
};

template <class T>
constexpr Form form_of(Flow flow, bool array) {
  return {.flow = flow,
          .array = array,
          .element_bytes = sizeof(T),
          .alignment = alignof(T),
          .kind = element_kind<T>(),
          .has_xdr = XdrValue<T>,
          .xdr = xdr_of<T>()};
}

// The data of one argument, where they lie now.
struct Piece {
  const Form* form = nullptr;
  void* at = nullptr;  // only read if it only goes in
  std::uint64_t count = 1;

  std::size_t bytes() const { return count * form->element_bytes; }
};

// Of a parameter type P: `form`; `Held`, the data where the family runs; piece(P&) and piece(Held&)
// for the two sides; value(Held&), the parameter.
template <class P>
struct Parameter;

template <class P>
concept Described = requires(P& parameter, typename Parameter<P>::Held& held) {
  { Parameter<P>::form } -> std::convertible_to<Form>;
  { Parameter<P>::piece(parameter) } -> std::same_as<Piece>;
  { Parameter<P>::piece(held) } -> std::same_as<Piece>;
  Parameter<P>::value(held);
};

template <class T>
struct Parameter<In<T>> {
  static constexpr Form form = form_of<T>(Flow::in, false);
  struct Held {
    T value{};
  };
  static Piece piece(In<T>& in) { return {&form, const_cast<T*>(&*in)}; }
  static Piece piece(Held& held) { return {&form, &held.value}; }
  static In<T> value(Held& held) { return In<T>(held.value); }
};

namespace detail {

template <class P, class T, Flow flow>
struct VariableParameter {
  static constexpr Form form = form_of<T>(flow, false);
  struct Held {
    T value{};
  };
  static Piece piece(P& variable) { return {&form, &*variable}; }
  static Piece piece(Held& held) { return {&form, &held.value}; }
  static P value(Held& held) { return P(held.value); }
};
template <class P, class T, Flow flow>
struct ArrayParameter {
  static constexpr Form form = form_of<T>(flow, true);
  // Where the elements are is known when they are there.
  struct Held {
    Piece piece{&form, nullptr, 0};
  };
  static Piece piece(P& array) { return {&form, const_cast<T*>(array.data()), array.size()}; }
  static Piece piece(Held& held) { return held.piece; }
  static P value(Held& held) { return P(static_cast<T*>(held.piece.at), held.piece.count); }
};

}  // namespace detail

template <class T>
struct Parameter<Out<T>> : detail::VariableParameter<Out<T>, T, Flow::out> {};
template <class T>
struct Parameter<InOut<T>> : detail::VariableParameter<InOut<T>, T, Flow::inout> {};
template <class T>
struct Parameter<InArray<T>> : detail::ArrayParameter<InArray<T>, T, Flow::in> {};
template <class T>
struct Parameter<OutArray<T>> : detail::ArrayParameter<OutArray<T>, T, Flow::out> {};
template <class T>
struct Parameter<InOutArray<T>> : detail::ArrayParameter<InOutArray<T>, T, Flow::inout> {};

// ---- Channels -----------------------------------------------------------------------------------

struct ChannelForm {
  Form value;
  bool shared = false;  // else global
};

// Of a parameter type that is an end of a channel (channel_parameters.h): `form`; `Channel`, which
// the creator has; `Parent` and `Held`, the ends of channel_ends.h, the latter with argument().
template <class P>
struct ChannelParameter;

template <class P>
concept ChannelEnd = requires {
  { ChannelParameter<P>::form } -> std::convertible_to<ChannelForm>;
};

// ---- Of a whole function ------------------------------------------------------------------------

// The digest of a text (FNV-1a), with those of numbers.
class Digest {
 public:
  constexpr Digest& add(std::string_view text) {
    for (const char c : text) step(static_cast<unsigned char>(c));
    return *this;
  }
  constexpr Digest& add(std::uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) step((number >> shift) & 0xff);
    return *this;
  }
  constexpr std::uint64_t value() const { return value_; }

 private:
  constexpr void step(std::uint64_t byte) { value_ = (value_ ^ byte) * 0x100000001b3; }
  std::uint64_t value_ = 0xcbf29ce484222325;
};

constexpr void add_form(Digest& digest, const Form& form) {
  digest.add(static_cast<std::uint32_t>(form.flow)).add(form.array ? 1u : 0u);
  digest.add(form.element_bytes).add(form.alignment);
  digest.add(static_cast<std::uint32_t>(form.kind)).add(form.has_xdr ? 1u : 0u);
}

template <class P>
constexpr void add_parameter(Digest& digest) {
  if constexpr (ChannelEnd<P>) {
    digest.add("channel").add(ChannelParameter<P>::form.shared ? 1u : 0u);
    add_form(digest, ChannelParameter<P>::form.value);
  } else {
    add_form(digest, Parameter<P>::form);
  }
}

template <class... P>
constexpr std::uint64_t description_digest() {
  Digest digest;
  (add_parameter<P>(digest), ...);
  return digest.value();
}

}  // namespace tombolo::svp
