// SPDX-License-Identifier: Apache-2.0
// Purpose: the list of all readers-writer lock families: each can be chosen for a window, by the
// setting TOMBOLO_PASSIVE_SYNC and by its info key, and is validated, measured and explored with
// all others. A new one is a file and a line in the list (sync/CATALOGUE.md).
//
// Invariants: LF1 a LockKind is a place in WindowLockFamilies. It means the same only to processes
//                 that have the same list, so it goes into no file.
//             LF2 the first family is the default, LockKind{}.
// Thread safety: types and constants.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/type_list.h"
#include "sync/locks/bakery_lock.h"
#include "sync/locks/best_effort_lock.h"
#include "sync/locks/fifo_lock.h"
#include "sync/locks/lock_kind.h"
#include "sync/locks/reader_bias.h"
#include "sync/locks/writer_preference_lock.h"

namespace tombolo::sync {

template <class... Families>
struct LockFamilyList {
  static constexpr std::size_t size = sizeof...(Families);
  static constexpr std::array<std::string_view, size> names{Families::traits.name...};

  static constexpr bool names_differ() {
    std::array<std::string_view, size> sorted = names;
    std::ranges::sort(sorted);
    return std::ranges::adjacent_find(sorted) == sorted.end();
  }

  // Template<Families...>
  template <template <class...> class Template>
  using apply = Template<Families...>;

  // Calls use.template operator()<Family>() for each.
  template <class Use>
  static void for_each(Use&& use) {
    (use.template operator()<Families>(), ...);
  }

  // The place of a family that is in the list.
  template <class Family>
  static constexpr std::size_t place_of = [] {
    constexpr bool is_it[] = {std::is_same_v<Family, Families>...};
    std::size_t place = 0;
    while (!is_it[place]) ++place;
    return place;
  }();
};

// --- The list ----------------------------------------------------------------------------------

using LockFamilies = LockFamilyList<BestEffortFamily,        // the default
                                    WriterPreferenceFamily,  //
                                    FifoFamily,              //
                                    BakeryFamily>;

// --- Derived from it ---------------------------------------------------------------------------

namespace detail {

template <bool condition, class Family>
using If = std::conditional_t<condition, LockFamilyList<Family>, LockFamilyList<>>;
template <class... Families>
using ForWindows = JoinedLists<If<Families::traits.in_windows, Families>...>;

}  // namespace detail

using WindowLockFamilies = LockFamilies::apply<detail::ForWindows>;
static_assert(LockFamilies::names_differ());

// Each family, and as Biased<Family> as well where the reader bias applies.
template <template <class> class Biased>
struct WithBias {
  template <class... Families>
  using Of = JoinedLists<LockFamilyList<Families...>,
                         detail::If<Families::traits.reader_bias, Biased<Families>>...>;
  using type = LockFamilies::apply<Of>;
};
using EveryLockFamily = WithBias<BiasedFamily>::type;

template <class Family>
inline constexpr LockKind kind_of{WindowLockFamilies::place_of<Family>};

// By their LockKind.
inline constexpr const auto& lock_family_names = WindowLockFamilies::names;

constexpr std::string_view lock_family_name(LockKind kind) {
  return lock_family_names[static_cast<std::size_t>(kind)];
}
constexpr std::optional<LockKind> lock_family_named(std::string_view name) {
  for (std::size_t place = 0; place < lock_family_names.size(); ++place)
    if (lock_family_names[place] == name) return LockKind(place);
  return std::nullopt;
}

}  // namespace tombolo::sync
