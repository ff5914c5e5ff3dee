// SPDX-License-Identifier: Apache-2.0
// Purpose: the list of all machines. A machine in ServedMachines can be chosen for programs
// (TOMBOLO_MACHINE), and every test over AllMachines and every litmus test runs on it. A new
// machine is a folder here with NAME/machine.h, and its line in the list (machine/PORTING.md).
//
// NAME/machine.h defines tombolo::NAME::Machine:
//   name          the user's word for it
//   Cores         its core types; the first is taken unless another kind of atomics is asked for
//   takes_pools   optional: its memory may come from a pool
//   available()   optional: ok if this host can be the machine
// Thread safety: types only.
#pragma once

#include <algorithm>
#include <string>

#include "backends/coherent/machine.h"
#include "backends/flushed/machine.h"
#include "backends/stale/machine.h"
#include "base/type_list.h"
#include "machine/example_machine.h"

namespace tombolo {

// The first is the machine of programs that choose none.
using ServedMachines = TypeList<  //
    coherent::Machine,            //
    flushed::Machine,             //
    stale::Machine>;

namespace detail {

template <class List>
struct CoresOf;
template <class... Machines>
struct CoresOf<TypeList<Machines...>> {
  using type = JoinedLists<typename Machines::Cores...>;
};

}  // namespace detail

// TOMBOLO_FEW_MACHINES: the fastest and the most forgetful alone, where tests of the layers above
// are built with sanitizers; the other machines have their own tests there.
#ifdef TOMBOLO_FEW_MACHINES
using AllMachines = TypeList<coherent::Core, stale::Core>;
#else
using AllMachines =
    JoinedLists<typename detail::CoresOf<ServedMachines>::type, TypeList<machine::example::Core>>;
#endif

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
