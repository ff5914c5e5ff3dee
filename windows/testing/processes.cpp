// SPDX-License-Identifier: Apache-2.0
#include "windows/testing/processes.h"

#include <map>

#include "base/check.h"
#include "windows/testing/interruption.h"
#include "windows/testing/process_on.h"

namespace tombolo::windows::testing {
namespace {

using RunOnce = void (*)(const World&, const Weather&, const Program&);
using ByMachine = std::map<std::type_index, RunOnce>;

template <template <class> class On, class... Cs>
void add(ByMachine& runs, ::testing::Types<Cs...>) {
  (runs.emplace(typeid(On<Cs>), run_once_with_own_engine<On<Cs>>), ...);
}

template <class C>
using Itself = C;

ByMachine every_machine() {
  ByMachine runs;
  add<Itself>(runs, Machines());
  add<Interruptible>(runs, MachinesThatLose());
  return runs;
}

template <class... Cs>
std::vector<TestMachine> all_of(::testing::Types<Cs...>) {
  return {TestMachine{Cs::properties.name, typeid(Cs), every_weather<Cs>()}...};
}

}  // namespace

const std::vector<TestMachine>& test_machines() {
  static const std::vector<TestMachine> all = all_of(Machines());
  return all;
}

void run(const TestMachine& machine, const World& world, const Program& program) {
  for (const Weather& weather : machine.weathers) {
    run_once_on(machine.type, world, weather, program);
    if (::testing::Test::HasFailure()) return;
  }
}

void run_with_each_lock(const TestMachine& machine, World world, const Program& program) {
  for (const LockKind kind : every_lock_kind) {
    world.options.locks = kind;
    run(machine, world, program);
    if (::testing::Test::HasFailure()) return;
  }
}

void run_once_on(std::type_index machine, const World& world, const Weather& weather,
                 const Program& program) {
  static const ByMachine runs = every_machine();
  const auto found = runs.find(machine);
  TOMBOLO_CHECK(found != runs.end(), "processes.cpp compiles no engine for {}", machine.name());
  found->second(world, weather, program);
}

}  // namespace tombolo::windows::testing
