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
template <template <class...> class List, class... Ts>
struct Joined<List<Ts...>> {
  using type = List<Ts...>;
};
template <template <class...> class List, class... Ts, class... Us, class... Rest>
struct Joined<List<Ts...>, List<Us...>, Rest...> : Joined<List<Ts..., Us...>, Rest...> {};

}  // namespace detail

// One list of the types of several; TypeList or another template of lists.
template <class... Lists>
using JoinedLists = typename detail::Joined<Lists...>::type;

}  // namespace tombolo
