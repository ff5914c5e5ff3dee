// SPDX-License-Identifier: Apache-2.0
// Windows with each lock that is compared: puts under an exclusive lock are never lost, and are
// seen under the next one.
#include "experiments/common/lock_schemes.h"

#include <gtest/gtest.h>

#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

constexpr std::uint32_t process_count = 9;
constexpr int additions = 12;  // of each process, to numbers at two targets

class LockSchemes : public ::testing::TestWithParam<LockScheme> {
 protected:
  // Runs body(core, library) in each process. Windows have no cache, as in `dht`.
  template <class Body>
  void run(std::uint32_t processes, const Body& body) {
    scc::JobShape shape;
    shape.processes = processes;
    shape.data_bytes = 64;
    shape.placement.own = scc::MemoryType::ncm;
    shape.placement.peers = scc::MemoryType::ncm;
    NoRows rows;
    const Status status = run_with_locks(test_context(), rows, shape, GetParam(), body);
    EXPECT_TRUE(status.ok()) << status.message();
  }
};

TEST_P(LockSchemes, LoseNoAddition) {
  std::uint64_t found[2] = {};
  run(process_count, [&](auto& core, auto& mpi) {
    const auto add = [&](machine::Home target) {
      std::uint64_t number = 0;
      mpi.lock(sync::Access::exclusive, target);
      mpi.get(target, 0, &number, sizeof number);  // on the chip: copied when it returns
      ++number;
      mpi.put(target, 0, &number, sizeof number);
      mpi.unlock(target);
    };
    for (int i = 0; i < additions; ++i) add((core.self() + static_cast<unsigned>(i)) % 2);
    mpi.barrier();
    if (core.self() != 5) return;
    for (machine::Home target = 0; target < 2; ++target) {
      mpi.lock(sync::Access::shared, target);
      mpi.get(target, 0, &found[target], sizeof found[target]);
      mpi.unlock(target);
    }
  });
  EXPECT_EQ(found[0] + found[1], std::uint64_t{process_count} * additions);
  EXPECT_GT(found[0], 0u);
  EXPECT_GT(found[1], 0u);
}

// By the chip's time: cores run ahead of each other on the host.
TEST_P(LockSchemes, LetReadersInTogether) {
  std::vector<simulator::Time> entered;
  std::vector<simulator::Time> left;
  run(4, [&](auto& core, auto& mpi) {
    mpi.lock(sync::Access::shared, 0);
    entered.push_back(core.cpu().now());
    core.cpu().compute(simulator::Duration::nanoseconds(200'000));
    left.push_back(core.cpu().now());
    mpi.unlock(0);
  });
  ASSERT_EQ(entered.size(), 4u);
  EXPECT_LT(std::ranges::max(entered), std::ranges::min(left));
}

TEST_P(LockSchemes, LetWritersInOneAfterTheOther) {
  std::vector<std::pair<simulator::Time, simulator::Time>> inside;
  run(4, [&](auto& core, auto& mpi) {
    mpi.lock(sync::Access::exclusive, 0);
    const simulator::Time entered = core.cpu().now();
    core.cpu().compute(simulator::Duration::nanoseconds(200'000));
    inside.emplace_back(entered, core.cpu().now());
    mpi.unlock(0);
  });
  std::ranges::sort(inside);
  ASSERT_EQ(inside.size(), 4u);
  for (std::size_t i = 1; i < inside.size(); ++i) EXPECT_GE(inside[i].first, inside[i - 1].second);
}

INSTANTIATE_TEST_SUITE_P(All, LockSchemes,
                         ::testing::Values(gbh(), gbh_with_backoff(), gbh_with_backoff_as_printed(),
                                           mcs_wp(), our_best_effort(), our_writer_preference()),
                         [](const auto& one) {
                           std::string name = one.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tombolo::experiments
