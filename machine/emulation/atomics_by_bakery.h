// SPDX-License-Identifier: Apache-2.0
// Purpose: the contract's atomics for a machine that has only loads, stores and a fence (hosts on a
// CXL pool): one bakery lock at each home.
//
//   class Core : public machine::AtomicsByBakery<LoadsAndStores> {
//     using AtomicsByBakery::AtomicsByBakery;
//   };
//
// Cost without contention, for n cores: 4 stores and 2n - 1 loads, a plain store 4 and 2n - 2.
// Memory: 8n bytes at each home.
// Invariants and thread safety: locked_atomics.h, bakery.h.
#pragma once

#include "machine/emulation/bakery.h"
#include "machine/emulation/locked_atomics.h"

namespace tombolo::machine {

template <class Base>
using AtomicsByBakery = LockedAtomics<Base, Bakery>;

}  // namespace tombolo::machine
