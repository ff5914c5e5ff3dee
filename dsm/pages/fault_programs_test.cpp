// SPDX-License-Identifier: Apache-2.0
// Purpose: random programs (dsm/testing/random_program.h) whose loads and stores are plain accesses
// that meet page faults: each mechanism, under all protocols, on every machine of threads.
// Thread safety: -
#include <string>

#include "dsm/testing/faulting_thread.h"
#include "dsm/testing/random_program.h"

namespace tombolo::dsm::testing {
namespace {

using host::FaultMechanism;

template <class C, template <class, class> class P, FaultMechanism Mechanism>
struct FaultCase {
  using Machine = C;
  using Thread = FaultingThread<Deferring<CoreTransport<C>>, P, Mechanism>;
  using Protocol = typename Thread::Protocol;
  static constexpr FaultMechanism mechanism = Mechanism;
  static constexpr bool in_place = false;
};

template <class... Machines>
struct FaultCasesOf {
  using type = ::testing::Types<FaultCase<Machines, Regional, FaultMechanism::userfault>...,
                                FaultCase<Machines, Release, FaultMechanism::userfault>...,
                                FaultCase<Machines, Sequential, FaultMechanism::userfault>...,
                                FaultCase<Machines, Regional, FaultMechanism::protection>...,
                                FaultCase<Machines, Release, FaultMechanism::protection>...,
                                FaultCase<Machines, Sequential, FaultMechanism::protection>...>;
};
using FaultCases = AllMachines::apply<FaultCasesOf>::type;

struct FaultCaseNames {
  template <class Case>
  static std::string GetName(int index) {
    return CaseNames::GetName<Case>(index) + "_by_" + host::name_of(Case::mechanism);
  }
};

template <class Case>
class FaultPrograms : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status status = host::available(Case::mechanism);
    if (!status.ok()) GTEST_SKIP() << status.message();
  }
};
TYPED_TEST_SUITE(FaultPrograms, FaultCases, FaultCaseNames);

TYPED_TEST(FaultPrograms, SeeWhatTheModelAllows) {
  // Threads that answer each other need processors at once: each hand-over takes long without.
  random_programs::run_all<TypeParam>(TypeParam::Protocol::polls ? 1 : 8, 4096, 3);
}

// More pages than the cache has, and pages that each thread writes a part of.
TYPED_TEST(FaultPrograms, ShareManyPagesThroughASmallCache) {
  constexpr std::uint64_t pages = 40;
  const Shape shape{.threads = 2, .pages = pages, .page_bytes = 8192, .cached_pages = 7};
  run<TypeParam>(shape, 1, [](auto& thread) {
    for (std::uint64_t round = 1; round <= 3; ++round) {
      for (Variable v = 0; v < 2 * pages; ++v)
        if (v / pages == thread.self()) thread.store(v, round * 1000 + v);
      thread.barrier();
      for (Variable v = 0; v < 2 * pages; ++v) ASSERT_EQ(thread.load(v), round * 1000 + v);
      thread.barrier();
    }
    thread.close();
  });
}

}  // namespace
}  // namespace tombolo::dsm::testing
