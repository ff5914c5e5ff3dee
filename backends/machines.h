// SPDX-License-Identifier: Apache-2.0
// Purpose: the list of all machines: what is registered here is run by every test that is written
// over AllMachines. A new machine is one folder and one line in the list (machine/PORTING.md).
// Thread safety: types only.
#pragma once

#include <algorithm>
#include <string>

#include "backends/coherent/coherent.h"
#include "backends/stale/stale.h"
#include "machine/example_machine.h"
#if __has_include("backends/flushed/flushed.h")
#include "backends/flushed/flushed.h"
#define TOMBOLO_HAS_FLUSHED 1
#endif

namespace tombolo {

template <class... Ts>
struct TypeList {
  // AllMachines::apply<::testing::Types> is what a typed test wants.
  template <template <class...> class Template>
  using apply = Template<Ts...>;
  template <class... More>
  using and_also = TypeList<Ts..., More...>;
};

// TOMBOLO_FEW_MACHINES: the fastest and the most forgetful alone, where tests of the layers above
// are built with sanitizers; the other machines have their own tests there.
using AllMachines = TypeList<
#ifndef TOMBOLO_FEW_MACHINES
#ifdef TOMBOLO_HAS_FLUSHED
    flushed::Core<machine::Atomics::full>, flushed::Core<machine::Atomics::none>,
#endif
    machine::example::Core,
#endif
    coherent::Core, stale::Core>;

// Names the machines in the output of typed tests. A dash would start the negative part of a
// filter.
struct MachineNames {
  template <class C>
  static std::string GetName(int) {
    std::string name(C::properties.name);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
  }
};

}  // namespace tombolo
