// SPDX-License-Identifier: Apache-2.0
// Purpose: a list of types, as a type. Thread safety: types only.
#pragma once

#include <cstddef>

namespace tombolo {

template <class... Ts>
struct TypeList {
  static constexpr std::size_t size = sizeof...(Ts);
  // AllMachines::apply<::testing::Types> is the form for typed tests.
  template <template <class...> class Template>
  using apply = Template<Ts...>;
  template <class... More>
  using and_also = TypeList<Ts..., More...>;
};

namespace detail {

template <class... Lists>
struct Joined;
template <class... Ts>
struct Joined<TypeList<Ts...>> {
  using type = TypeList<Ts...>;
};
template <class... Ts, class... Us, class... Rest>
struct Joined<TypeList<Ts...>, TypeList<Us...>, Rest...> : Joined<TypeList<Ts..., Us...>, Rest...> {
};

}  // namespace detail

// One list of the types of several.
template <class... Lists>
using JoinedLists = typename detail::Joined<Lists...>::type;

}  // namespace tombolo
