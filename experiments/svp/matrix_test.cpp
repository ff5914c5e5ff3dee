// SPDX-License-Identifier: Apache-2.0
// Purpose: the decomposed multiplication gives the right product whatever communicates, over one
// master and over worker-masters; and memory ends where the sizes say so.
#include "experiments/svp/matrix.h"

#include <gtest/gtest.h>

#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

MatrixResult result_of(const Context& context, const MatrixRun& what) {
  MatrixResult result;
  const Status status = multiply_matrices(context, what, &result);
  EXPECT_TRUE(status.ok()) << name_of(what.scheme) << ": " << status.message();
  return result;
}

TEST(Matrix, EachSchemeGivesTheProduct) {
  for (const Scheme scheme :
       {Scheme::original, Scheme::direct, Scheme::own_memory, Scheme::buffers, Scheme::remapping}) {
    EXPECT_TRUE(result_of(test_context(), {.scheme = scheme, .size = 32, .workers = 3}).right)
        << name_of(scheme);
  }
}

TEST(Matrix, TwoStepsAndWorkerMastersGiveTheProduct) {
  for (const Scheme scheme : {Scheme::original, Scheme::direct}) {
    EXPECT_TRUE(
        result_of(test_context(), {.scheme = scheme, .size = 32, .steps = 2, .workers = 5}).right)
        << name_of(scheme);
    EXPECT_TRUE(
        result_of(test_context(), {.scheme = scheme, .size = 32, .steps = 2, .worker_masters = 3})
            .right)
        << name_of(scheme);
  }
}

// The second step sends its operands and results beside the first; worker-masters are no workers.
TEST(Matrix, WorkerMastersSendTheOperandsOnceMore) {
  MatrixRun what{.scheme = Scheme::direct, .size = 32, .steps = 2, .workers = 5};
  const std::uint64_t second = std::uint64_t{64} * 3 * 8 * 8 * 8;
  const std::uint64_t first = std::uint64_t{8} * 3 * 16 * 16 * 8;
  const MatrixResult one_master = result_of(test_context(), what);
  EXPECT_EQ(one_master.sent_bytes, second);
  EXPECT_EQ(one_master.worker_cores, 5u);
  what.worker_masters = 3;
  const MatrixResult distributed = result_of(test_context(), what);
  EXPECT_EQ(distributed.sent_bytes, first + second);
  EXPECT_EQ(distributed.worker_cores, 15u);
  EXPECT_EQ(distributed.workers.sent_bytes, second / 3);
}

TEST(Matrix, StaleOperandsMakeAWrongProduct) {
  MatrixRun what{.scheme = Scheme::remapping, .size = 32, .workers = 2};
  what.operands_in_caches = true;
  EXPECT_TRUE(result_of(test_context(), what).right);
  what.care.publish = false;
  EXPECT_FALSE(result_of(test_context(), what).right);
}

// As in the paper, smaller: the original lacks memory for the results' buffers. With the
// memory that there is it finishes (experiment svp-matrix-two-steps).
TEST(Matrix, TheOriginalRunsOutOfMemoryWhereDirectCommunicationDoesNot) {
  const MatrixRun what{.scheme = Scheme::direct, .size = 256, .steps = 2, .workers = 20};
  MatrixRun original = what;
  original.scheme = Scheme::original;
  Context context = test_context();
  context.chip.system.private_megabytes = context.chip.system.kernel_megabytes + 5;
  EXPECT_TRUE(result_of(context, what).right);
  MatrixResult result;
  const Status status = multiply_matrices(context, original, &result);
  EXPECT_EQ(status.code(), Code::no_memory) << status.message();
  EXPECT_GT(result.most_bytes_used, std::uint64_t{4} << 20);
}

}  // namespace
}  // namespace tombolo::experiments
