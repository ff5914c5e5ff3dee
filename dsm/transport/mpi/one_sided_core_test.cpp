// SPDX-License-Identifier: Apache-2.0
// Purpose: a core over one-sided operations keeps the machine contract, and programs run on it,
// with memory servers and without.
#include "dsm/transport/mpi/one_sided_core.h"

#include <gtest/gtest.h>

#include <thread>
#include <type_traits>

#include "backends/coherent/coherent.h"
#include "dsm/protocol/regional.h"
#include "dsm/protocol/release.h"
#include "dsm/testing/private_pages.h"
#include "dsm/testing/program_thread.h"
#include "dsm/testing/random_program.h"
#include "dsm/testing/shared_one_sided.h"
#include "dsm/transport/core_transport.h"
#include "machine/testing/rules.h"

namespace tombolo::dsm::testing {
namespace {

using Memories = SharedOneSided::Memories;

OneSidedCore::Attachment attachment(OneSided& job, machine::IdleHook* idle = nullptr) {
  OneSidedCore::Attachment at;
  at.self = static_cast<machine::Home>(job.rank());
  at.cores = static_cast<machine::Home>(job.size());
  at.waiting = machine::WaitPolicy::for_host(at.cores, 1);
  at.idle = idle;
  at.job = &job;
  return at;
}

TEST(OneSidedCore, HasWordsOfAllHomes) {
  Memories memories(2, 64, 64);
  SharedOneSided job(memories, 1);
  OneSidedCore core(attachment(job));
  EXPECT_EQ(core.self(), 1u);
  EXPECT_EQ(core.cores(), 2u);
  for (const machine::Home home : {0u, 1u})
    machine::testing::expect_atomics_return_what_was_there(core, core.word({home, 16}));
  core.store(core.word({0, 8}), 7);
  EXPECT_EQ(memories.words[0][1], 7u);
  EXPECT_TRUE(core.wait_until(core.word({0, 8}), [](std::uint64_t v) { return v == 7; }).ok());
}

TEST(OneSidedCore, HasDataOfAllHomesAndNoView) {
  Memories memories(2, 64, 4096);
  SharedOneSided job(memories, 0);
  OneSidedCore core(attachment(job));
  const auto bytes = machine::testing::pattern(1000, 5);
  machine::testing::expect_ok(core.write({1, 24}, bytes.data(), bytes.size()));
  machine::testing::Bytes back(bytes.size());
  machine::testing::expect_ok(core.read({1, 24}, back.data(), back.size()));
  EXPECT_EQ(back, bytes);
  machine::testing::put_word_through(core, {1, 8}, 9);
  EXPECT_EQ(machine::testing::get_word(core, {1, 8}), 9u);
  EXPECT_EQ(core.view({0, 0}), nullptr);
  EXPECT_EQ(core.data_bytes(1), 4096u);
}

TEST(OneSidedCore, EndsAWaitWithTheErrorOfTheHook) {
  class Ends : public machine::IdleHook {
    Status idle() override { return Status::io("over"); }
  } ends;
  Memories memories(1, 64, 64);
  SharedOneSided job(memories, 0);
  OneSidedCore core(attachment(job, &ends));
  EXPECT_EQ(core.wait_until(core.word({0, 0}), [](std::uint64_t v) { return v != 0; }).message(),
            "over");
  EXPECT_EQ(core.pause(10'000).message(), "over");
}

TEST(OneSidedCore, WaitsForAnother) {
  Memories memories(2, 64, 64);
  SharedOneSided first(memories, 0);
  SharedOneSided second(memories, 1);
  OneSidedCore core(attachment(first));
  std::thread other([&second] {
    OneSidedCore from(attachment(second));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it sleeps by then
    from.fetch_add(from.word({0, 0}), 1);
    from.notify(0);
  });
  EXPECT_TRUE(core.wait_until(core.word({0, 0}), [](std::uint64_t v) { return v == 1; }).ok());
  other.join();
}

template <template <class, class> class P>
using Remote = ProgramThread<CoreTransport<OneSidedCore>, PrivatePages, P>;

// Neighbours by number share a host.
static_assert(std::is_same_v<EpochBarrier<CoreTransport<OneSidedCore>, PrivatePages>::Waits,
                             sync::ButterflyBarrier<OneSidedCore>>);
static_assert(std::is_same_v<EpochBarrier<CoreTransport<coherent::Core>, PrivatePages>::Waits,
                             sync::DisseminationBarrier<coherent::Core>>);

// Random programs, as on the machines that users choose (protocol/random_program_test.cpp).
template <class Remote>
void run_random_programs() {
  int xors = 0;
  for (std::uint64_t seed = 1; seed <= 30 && !::testing::Test::HasFailure(); ++seed) {
    const Shape shape = random_programs::drawn(seed, 128, 0);
    const auto layout = Remote::take(shape);
    Memories memories(shape.cores(), layout.sync_bytes, layout.data_bytes);
    random_programs::Score score(false);
    Deadline deadline;
    std::vector<std::thread> threads;
    for (Thread self = 0; self < shape.threads; ++self)
      threads.emplace_back([&, self] {
        SharedOneSided job(memories, static_cast<int>(self));
        OneSidedCore core(attachment(job, &deadline));
        Remote thread(core, layout, shape);
        thread.on_error([](const Status& status) {
          ADD_FAILURE() << status.message();
          throw GivenUp();
        });
        try {
          random_programs::RandomProgram(thread, score, seed).go(6);
        } catch (const GivenUp&) {
          deadline.give_up();
        }
      });
    for (std::thread& thread : threads) thread.join();
    xors += memories.xors;
  }
  EXPECT_GT(xors, 0) << "differences are applied at their homes";
}
TEST(OneSidedCore, RunsRandomPrograms) {
  run_random_programs<Remote<Regional>>();
  run_random_programs<Remote<Release>>();
}

}  // namespace
}  // namespace tombolo::dsm::testing
