// SPDX-License-Identifier: Apache-2.0
#include "windows/testing/processes.h"

#include <map>

#include "base/check.h"
#include "windows/testing/interruption.h"
#include "windows/testing/process_on.h"

namespace tombolo::windows::testing {
namespace {

template <class C>
class GroupOn final : public ProcessGroup {
 public:
  GroupOn(const World& world, const Weather& weather, machine::IdleHook& watch)
      : processes_(shape_of<C>(world, weather, watch)) {}
  Process& process(Home self) override { return processes_.core(self); }
  void run(const Program& program) override { processes_.run(program); }
  void expect_nothing_lost() override { testing::expect_nothing_lost<C>(processes_); }

 private:
  Processes<C> processes_;
};

using Group = std::unique_ptr<ProcessGroup>;
struct On {
  std::string_view name;
  Group (*make)(const World&, const Weather&, machine::IdleHook&);
};
using ByMachine = std::map<std::type_index, On>;

template <class C>
Group make_on(const World& world, const Weather& weather, machine::IdleHook& watch) {
  return std::make_unique<GroupOn<C>>(world, weather, watch);
}

template <template <class> class Made, class... Cs>
void add(ByMachine& machines, ::testing::Types<Cs...>) {
  (machines.emplace(typeid(Made<Cs>), On{Cs::properties.name, make_on<Made<Cs>>}), ...);
}

template <class C>
using Itself = C;

ByMachine every_machine() {
  ByMachine machines;
  add<Itself>(machines, Machines());
  add<Interruptible>(machines, MachinesThatLose());
  return machines;
}

const On& on(std::type_index machine) {
  static const ByMachine machines = every_machine();
  const auto found = machines.find(machine);
  TOMBOLO_CHECK(found != machines.end(), "processes.cpp compiles no engine for {}", machine.name());
  return found->second;
}

template <class... Cs>
std::vector<TestMachine> all_of(::testing::Types<Cs...>) {
  return {TestMachine{Cs::properties, !machine::HasNoViews<Cs>, tells_losses<Cs>, typeid(Cs),
                      every_weather<Cs>()}...};
}

}  // namespace

const std::vector<TestMachine>& test_machines() {
  static const std::vector<TestMachine> all = all_of(Machines());
  return all;
}

const std::vector<TestMachine>& test_machines_of_threads() {
  static const std::vector<TestMachine> all = all_of(MachinesOfThreads());
  return all;
}

Group make_processes(const TestMachine& machine, const World& world, const Weather& weather,
                     machine::IdleHook& watch) {
  return on(machine.type).make(world, weather, watch);
}

std::string describe(std::string_view machine, const World& world, const Weather& weather) {
  return fmt::format("{}, seed {}, one eviction in {}, configuration {}, {} locks, granularity {}",
                     machine, weather.seed, weather.evictions, weather.configuration,
                     sync::lock_family_name(world.options.locks), world.options.atomic_bytes);
}

std::string describe(const TestMachine& machine, const World& world, const Weather& weather) {
  return describe(machine.properties.name, world, weather);
}

void run_one(Process& process, const Program& program, const std::string& where, Watch& watch) {
  SCOPED_TRACE(fmt::format("{}, process {}", where, process.self()));
  try {
    program(process);
  } catch (const Stopped&) {
    watch.stop();
  }
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
  const On& chosen = on(machine);
  const std::string where = describe(chosen.name, world, weather);
  SCOPED_TRACE(where);
  Watch watch(world.seconds);
  const Group processes = chosen.make(world, weather, watch);
  processes->run([&](Process& process) { run_one(process, program, where, watch); });
  if (!world.may_lose) processes->expect_nothing_lost();
}

}  // namespace tombolo::windows::testing
