// SPDX-License-Identifier: Apache-2.0
// Purpose: the ways in which the body of a thread may be written: with its index and channels, with
// channels alone, with the index alone, with nothing.
// Thread safety: types and plain functions.
#pragma once

#include <concepts>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "svp/range.h"

namespace tombolo::svp {

// Global<T> or Shared<T>, or one of a transport's.
template <class Ch>
concept FamilyChannel = requires(Ch& channel) {
  typename Ch::Value;
  typename Ch::End;
  { channel.hand_over() } -> std::same_as<void>;
  { channel.close_parent() } -> std::same_as<void>;
};
// One whose threads run in order.
template <class Ch>
concept OrderedChannel = FamilyChannel<Ch> && requires(typename Ch::End& end, Index index, bool b) {
  typename Ch::End;
  requires std::constructible_from<typename Ch::End, Ch&>;
  end.begin(index, b, b);
  end.pass_on();
  end.end(b);
};

template <class Body, class... Ends>
concept ThreadBody = std::invocable<Body&, Index, Ends...> || std::invocable<Body&, Ends...>;

template <class Body, class... Ends>
requires ThreadBody<Body, Ends...>
inline void call_body(Body& body, Index index, Ends&&... ends) {
  if constexpr (std::invocable<Body&, Index, Ends...>)
    std::invoke(body, index, std::forward<Ends>(ends)...);
  else
    std::invoke(body, std::forward<Ends>(ends)...);
}

// The type of the body's parameter for a channel.
template <FamilyChannel Ch>
using EndArgument = std::remove_reference_t<typename Ch::End>&;

}  // namespace tombolo::svp
