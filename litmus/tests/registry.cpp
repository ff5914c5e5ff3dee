// SPDX-License-Identifier: Apache-2.0
#include "litmus/tests/registry.h"

#include "litmus/tests/scc_ensemble.h"

namespace tombolo::litmus {
namespace {

template <class C, Verdict Verdicts::*Column>
struct Entry {
  using Machine = C;
  static constexpr Verdict Verdicts::*verdict = Column;
};

using LitmusMachines = TypeList<
#ifdef TOMBOLO_HAS_FLUSHED
    Entry<flushed::Core<machine::Atomics::full>, &Verdicts::flushed>,
    Entry<flushed::Core<machine::Atomics::none>, &Verdicts::flushed>,
#endif
    Entry<coherent::Core, &Verdicts::coherent>, Entry<stale::Core, &Verdicts::stale>,
    Entry<scc::Core, &Verdicts::scc>>;

template <class... Entries>
std::vector<LitmusMachine> machines(TypeList<Entries...>) {
  return {{.name = std::string(Entries::Machine::properties.name), .verdict = Entries::verdict}...};
}

template <class Test, class... Entries>
LitmusTest one(TypeList<Entries...>) {
  return {.info = Test::info,
          .observe = {&observe<Test, typename Entries::Machine>...},
          .program = [](bool refuse) -> std::unique_ptr<Program> {
            return std::make_unique<LitmusProgram<Test>>(refuse);
          }};
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
