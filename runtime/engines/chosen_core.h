// SPDX-License-Identifier: Apache-2.0
// Purpose: the core type of a machine that was chosen at run time, for interfaces with a template
// over a core of their own.
//
//   with_core(choice, [&]<class C>() { object = std::make_unique<MyTemplate<C>>(...); });
//
// Invariants: CHC1 the type is that of the engine that served(choice) makes (engines.h).
// Thread safety: stateless.
#pragma once

#include <cstddef>

#include "backends/machines.h"
#include "base/check.h"
#include "runtime/engines/engines.h"

namespace tombolo::runtime {
namespace detail {

template <class List>
struct ChosenCore;

// Of the cores of one machine: the first with the wanted atomics, else the first.
template <class First, class... Others>
struct ChosenCore<TypeList<First, Others...>> {
  template <class Body>
  static void call(bool native_atomics, Body& body) {
    const auto suits = [&]<class C>() {
      if ((C::properties.native_atomics == machine::Atomics::full) != native_atomics) return false;
      body.template operator()<C>();
      return true;
    };
    const bool found =
        suits.template operator()<First>() || (suits.template operator()<Others>() || ...);
    if (!found) body.template operator()<First>();
  }
};

template <class List>
struct ChosenMachine;
template <class... Machines>
struct ChosenMachine<TypeList<Machines...>> {
  template <class Body>
  static void call(MachineChoice choice, Body& body) {
    const auto place = static_cast<std::size_t>(choice.id);
    std::size_t index = 0;
    const auto try_one = [&]<class Machine>() {
      if (index++ == place) ChosenCore<typename Machine::Cores>::call(choice.native_atomics, body);
    };
    (try_one.template operator()<Machines>(), ...);
    TOMBOLO_CHECK(place < index, "machine {} of {}", place, index);
  }
};

}  // namespace detail

template <class Body>
void with_core(MachineChoice choice, Body&& body) {
  detail::ChosenMachine<ServedMachines>::call(choice, body);
}

}  // namespace tombolo::runtime
