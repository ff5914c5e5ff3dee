// SPDX-License-Identifier: Apache-2.0
// Purpose: random programs (dsm/testing/random_program.h) on all protocols and every machine, with
// all tunings and without each.
// Thread safety: -
#include "dsm/testing/random_program.h"
#include "dsm/testing/tunings.h"

namespace tombolo::dsm::testing {
namespace {

template <class Case>
class RandomPrograms : public ::testing::Test {};
TYPED_TEST_SUITE(RandomPrograms, Cases, CaseNames);

TYPED_TEST(RandomPrograms, SeeWhatTheModelAllows) {
  // Threads that answer each other need processors at once: each hand-over takes long without.
  random_programs::run_all<TypeParam>(TypeParam::Protocol::polls ? 1 : 8, 128);
}

TYPED_TEST(RandomPrograms, SeeWhatTheModelAllowsWithoutEachTuning) {
  if (TypeParam::Protocol::polls) GTEST_SKIP() << "it has no tunings";
  for (bool Tuning::*const off : tunings)
    random_programs::run_all<TypeParam>(20, 128, 0, without(off));
}

}  // namespace
}  // namespace tombolo::dsm::testing
