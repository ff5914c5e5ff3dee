// SPDX-License-Identifier: Apache-2.0
// Purpose: the common parts of the tests of readers-writer locks: the families as cases, and a
// fixture for tests that need the type of the machine or of the family (the others: any_lock.h).
// Thread safety: -
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string_view>

#include "machine/testing/ensemble.h"
#include "sync/locks/families.h"
#include "sync/testing/cases.h"

namespace tombolo::sync::testing {

using machine::Home;
using machine::testing::Ensemble;

// A family on a machine.
template <class M, class F>
struct Case {
  using Machine = M;
  using Locks = typename F::template Locks<M>;
  static constexpr LockFamilyTraits traits = F::traits;
  static constexpr std::string_view name = traits.name;
};

// Its bias comes back after a few reads, so that readers, writers and the bias meet often.
template <class Bias>
class Eager : public Bias {
 public:
  template <class C, class Layout>
  Eager(C& core, Layout layout, LockOptions options) : Bias(core, layout, soon(options)) {}

 private:
  static LockOptions soon(LockOptions options) {
    options.bias_after = 1;
    return options;
  }
};
template <class Family>
struct EagerlyBiased : BiasedFamily<Family> {
  template <machine::Core C>
  using Locks = Eager<typename BiasedFamily<Family>::template Locks<C>>;
};

// Product<Machines, ...> of these families.
template <class... Families>
struct CasesOf {
  template <class Family>
  struct Of {
    template <class M>
    using On = Case<M, Family>;
  };
  template <class Machines>
  using On = Product<Machines, Of<Families>::template On...>;
};
// Of all that are listed, also with the bias.
using EveryCase = WithBias<EagerlyBiased>::type::apply<CasesOf>;

// The locks of a window on the cores of a machine.
template <class Case>
class Locks : public ::testing::Test {
 protected:
  using Machine = typename Case::Machine;
  using Family = typename Case::Locks;

  void make(Home cores, machine::IdleHook* idle, std::uint64_t seed = 1) {
    machine::SyncLayout layout(Machine::reserved_sync_bytes(cores));
    at_ = Family::take(layout, cores);
    ensemble_ = std::make_unique<Ensemble<Machine>>(machine::testing::EnsembleShape{
        .cores = cores, .sync_bytes = layout.bytes(), .seed = seed, .idle = idle});
  }

  typename Family::Layout at_;
  std::unique_ptr<Ensemble<Machine>> ensemble_;
};

}  // namespace tombolo::sync::testing
