// SPDX-License-Identifier: Apache-2.0
// Purpose: the core type that is chosen by name is the one of that machine, with its atomics.
#include "runtime/engines/chosen_core.h"

#include <gtest/gtest.h>

#include <string>

namespace tombolo::runtime {
namespace {

TEST(ChosenCores, AreThoseOfTheirMachines) {
  for (const std::string_view name : machine_names()) {
    for (const bool native : {true, false}) {
      const MachineChoice choice{*machine_named(name), native};
      int calls = 0;
      with_core(choice, [&]<class C>() {
        ++calls;
        EXPECT_EQ(std::string(C::properties.name).rfind(name, 0), 0u) << C::properties.name;
        EXPECT_EQ(C::properties.coherent, served(choice).traits().coherent);
        EXPECT_EQ(C::properties.native_atomics == machine::Atomics::full,
                  served(choice).traits().serves_threads);
        EXPECT_EQ(machine::TellsLosses<C>, served(choice).traits().tells_losses);
      });
      EXPECT_EQ(calls, 1) << name;
    }
  }
}

TEST(ChosenCoresDeathTest, OfAMachineThatIsNotThereStop) {
  const MachineChoice none{.id = static_cast<MachineId>(machine_names().size())};
  EXPECT_DEATH(with_core(none, []<class C>() {}), "machine 3 of 3");
}

}  // namespace
}  // namespace tombolo::runtime
