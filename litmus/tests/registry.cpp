// SPDX-License-Identifier: Apache-2.0
#include "litmus/tests/registry.h"

#include <type_traits>

#include "litmus/explorer/overtaken.h"
#include "litmus/tests/scc_ensemble.h"

namespace tombolo::litmus {
namespace {

// The column of a machine that has none of its own in Verdicts: it may show all that the contract
// allows, and nothing is expected of it.
template <class Machine>
struct Column {
  static Verdict of(const Verdicts& verdicts) {
    return verdicts.contract == forbidden ? forbidden : allowed;
  }
};
template <>
struct Column<coherent::Machine> {
  static Verdict of(const Verdicts& verdicts) { return verdicts.coherent; }
};
template <>
struct Column<flushed::Machine> {
  static Verdict of(const Verdicts& verdicts) { return verdicts.flushed; }
};
template <>
struct Column<stale::Machine> {
  static Verdict of(const Verdicts& verdicts) { return verdicts.stale; }
};
struct SimulatedChip {
  using Cores = TypeList<scc::Core>;
};
template <>
struct Column<SimulatedChip> {
  static Verdict of(const Verdicts& verdicts) { return verdicts.scc; }
};

// A core type of a machine.
template <class M, class C>
struct Entry {
  using Machine = C;
  static LitmusMachine value() {
    return {.name = std::string(C::properties.name), .verdict = &Column<M>::of};
  }
};

template <class M, class Cores>
struct EntriesOf;
template <class M, class... Cores>
struct EntriesOf<M, TypeList<Cores...>> {
  using type = TypeList<Entry<M, Cores>...>;
};
template <class List>
struct Entries;
template <class... Machines>
struct Entries<TypeList<Machines...>> {
  using type = JoinedLists<typename EntriesOf<Machines, typename Machines::Cores>::type...>;
};
using LitmusMachines = Entries<ServedMachines::and_also<SimulatedChip>>::type;

template <class... Each>
std::vector<LitmusMachine> machines(TypeList<Each...>) {
  return {Each::value()...};
}

template <class Test, class C>
std::unique_ptr<Program> explored(bool refuse) {
  return std::make_unique<LitmusProgram<Test, C>>(refuse);
}

template <class Test, class... Each>
LitmusTest one(TypeList<Each...>) {
  return {
      .info = Test::info,
      .observe = {&observe<Test, typename Each::Machine>...},
      .program =
          &explored<Test, std::conditional_t<Test::info.overtakes, Overtaken<Explored>, Explored>>,
      .overtaken = &explored<Test, Overtaken<Explored>>};
}

template <class... Tests>
std::vector<LitmusTest> all(TypeList<Tests...>) {
  return {one<Tests>(LitmusMachines{})...};
}

}  // namespace

const std::vector<LitmusTest>& litmus_tests() {
  static const std::vector<LitmusTest> tests = all(AllLitmusTests{});
  return tests;
}

const std::vector<LitmusMachine>& litmus_machines() {
  static const std::vector<LitmusMachine> list = machines(LitmusMachines{});
  return list;
}

const char* to_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::forbidden:
      return "FORBIDDEN";
    case Verdict::allowed:
      return "ALLOWED";
    case Verdict::must_appear:
      break;
  }
  return "MUST-APPEAR";
}

}  // namespace tombolo::litmus
