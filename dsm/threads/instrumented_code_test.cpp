// SPDX-License-Identifier: Apache-2.0
// Purpose: the table that serves instrumented code: which memory it uses, under which lock, and
// the flags of its parts.
#include "dsm/threads/instrumented_code.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dsm/compiler/runtime_calls.h"

namespace tombolo::dsm {
namespace {

// Its pages are an array; a lock is free at the third look.
class Memory final : public ProgramMemory {
 public:
  Thread self() const override { return 0; }
  Thread threads() const override { return 1; }
  std::span<std::byte> memory() const override { return {}; }
  std::size_t page_bytes() const override { return 64; }
  void record(const void* address, std::size_t bytes) override {
    recorded.emplace_back(static_cast<const std::uint64_t*>(address) - words_here.data(), bytes);
  }
  Status try_change(Lock lock, void* address, std::size_t bytes, const AtomicChange& change,
                    std::uint64_t& old, bool& done) override {
    locks_used.insert(lock);
    done = ++looks % 3 == 0;
    if (done) old = change_by_processor(address, bytes, change);
    return failing ? Status::io("the memory has failed") : Status();
  }
  WordIndex words() const override { return 0; }
  std::uint64_t load(WordIndex) override { return 0; }
  void store(WordIndex, std::uint64_t) override {}
  std::uint64_t exchange(WordIndex, std::uint64_t) override { return 0; }
  std::uint64_t fetch_add(WordIndex, std::uint64_t) override { return 0; }
  std::uint64_t compare_exchange(WordIndex, std::uint64_t, std::uint64_t) override { return 0; }
  Lock locks() const override { return 0; }
  Status acquire(Lock) override { return {}; }
  Status try_acquire(Lock, bool&) override { return {}; }
  Status release(Lock) override { return {}; }
  Status barrier() override { return {}; }
  Status reduce(std::uint64_t&, Combine) override { return {}; }
  Status pause() override {
    ++pauses;
    return {};
  }
  void paused_enough() override { pauses_at_end = std::exchange(pauses, 0); }
  Status close() override { return {}; }

  alignas(64) std::array<std::uint64_t, 16> words_here{};  // two pages
  std::vector<std::pair<std::ptrdiff_t, std::size_t>> recorded;
  std::set<Lock> locks_used;
  int looks = 0;
  int pauses = 0;
  int pauses_at_end = 0;
  bool failing = false;
};

Memory* of_the_program = nullptr;
std::string failure;

ProgramMemory* memory_of(const void* address) {
  const auto* const words = of_the_program->words_here.data();
  return address >= words && address < words + 16 ? of_the_program : nullptr;
}

void check(const Status& status) {
  if (status.ok()) return;
  failure = status.message();
  of_the_program->failing = false;
}

class InstrumentedCodeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    of_the_program = &memory;
    failure.clear();
    serve_instrumented_code(
        {.memory_of = &memory_of, .first_lock = 100, .locks = 8, .check = &check});
    table = attach(module);
    ASSERT_NE(table, nullptr);
  }
  void TearDown() override {
    detach(module);
    serve_instrumented_code({});
  }

  static int* in_span() { return &flag; }
  static inline int flag = 0;
  static int* in_another() { return &another; }
  static inline int another = 0;

  Memory memory;
  tombolo_dsm_module module{
      .version = tombolo_dsm_calls_version, .in_span = &in_span, .of_address = nullptr};
  const tombolo_dsm_runtime* table = nullptr;
};

TEST_F(InstrumentedCodeTest, RecordsStoresToTheProgramsMemoryAlone) {
  std::uint64_t own = 0;
  table->record(&memory.words_here[3], 24);
  table->record(&own, 8);
  ASSERT_EQ(memory.recorded.size(), 1u);
  EXPECT_EQ(memory.recorded[0], (std::pair<std::ptrdiff_t, std::size_t>{3, 24}));
}

TEST_F(InstrumentedCodeTest, WaitsForTheLockOfTheAddress) {
  std::uint64_t& word = memory.words_here[5];
  EXPECT_EQ(table->update(&word, 8, tombolo_dsm_add, 7, 0), 0u);
  EXPECT_EQ(memory.pauses_at_end, 2);
  EXPECT_EQ(table->update(&word, 8, tombolo_dsm_umin, 3, 0), 7u);
  EXPECT_EQ(table->update(&word, 8, tombolo_dsm_exchange, 9, 0), 3u);
  EXPECT_EQ(table->compare_exchange(&word, 8, 8, 1, 0, 0), 9u);
  EXPECT_EQ(table->compare_exchange(&word, 8, 9, 1, 0, 0), 9u);
  EXPECT_EQ(table->load(&word, 8, 0), 1u);
  table->store(&word, 8, 4, 0);
  EXPECT_EQ(word, 4u);
  EXPECT_EQ(memory.looks, 21);
  EXPECT_EQ(memory.locks_used.size(), 1u);
  EXPECT_GE(*memory.locks_used.begin(), 100u);
  EXPECT_LT(*memory.locks_used.begin(), 108u);
}

TEST_F(InstrumentedCodeTest, HasOneLockForAPage) {
  auto* const bytes = reinterpret_cast<std::byte*>(memory.words_here.data());
  for (const std::size_t offset : {0, 3, 24, 31, 63}) table->load(bytes + offset, 1, 0);
  table->load(bytes + 56, 8, 0);
  EXPECT_EQ(memory.locks_used.size(), 1u);
  table->load(bytes + 64, 1, 0);
  EXPECT_EQ(memory.locks_used.size(), 2u) << "the next page has another";
}

TEST_F(InstrumentedCodeTest, LeavesOtherMemoryToTheProcessor) {
  std::uint16_t own = 0xfff0;
  EXPECT_EQ(table->update(&own, 2, tombolo_dsm_add, 0x20, 0), 0xfff0u);
  EXPECT_EQ(own, 0x10u);
  EXPECT_EQ(table->update(&own, 2, tombolo_dsm_nand, 0x30, 0), 0x10u);
  EXPECT_EQ(own, 0xffefu);
  EXPECT_EQ(memory.looks, 0);
}

TEST_F(InstrumentedCodeTest, TellsWhenTheMemoryFails) {
  memory.failing = true;
  table->load(&memory.words_here[0], 8, 0);
  EXPECT_EQ(failure, "the memory has failed");
}

TEST_F(InstrumentedCodeTest, TellsAllPartsWhetherTheThreadIsInASpan) {
  const tombolo_dsm_module second{
      .version = tombolo_dsm_calls_version, .in_span = &in_another, .of_address = nullptr};
  ASSERT_NE(attach(second), nullptr);
  tell_instrumented_code(2);
  EXPECT_EQ(flag, 2);
  EXPECT_EQ(another, 2);
  detach(second);
  tell_instrumented_code(0);
  EXPECT_EQ(flag, 0);
  EXPECT_EQ(another, 2) << "it is gone";
}

TEST_F(InstrumentedCodeTest, DoesNotServeAVersionThatItDoesNotKnow) {
  module.version = tombolo_dsm_calls_version + 1;
  EXPECT_EQ(attach(module), nullptr);
}

// One of the parts that there is no room for.
TEST_F(InstrumentedCodeTest, ServesMorePartsThanItHasFlagsFor) {
  constexpr std::size_t most = 256;
  std::vector<tombolo_dsm_module> many(1000, module);
  many[most - 1].in_span = &in_another;  // after the fixture's own: the first one without a flag
  another = 0;
  for (const tombolo_dsm_module& each : many) EXPECT_EQ(attach(each), table);
  tell_instrumented_code(1);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(another, 0);
  for (const tombolo_dsm_module& each : many) detach(each);
  tell_instrumented_code(0);
  EXPECT_EQ(flag, 0);
}

}  // namespace
}  // namespace tombolo::dsm
