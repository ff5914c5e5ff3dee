// SPDX-License-Identifier: Apache-2.0
// Purpose: threads of the protocol `sequential` that wait for each other without a call of the
// runtime: by loads and stores alone, in system calls, or not at all.
// Thread safety: -
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "dsm/testing/server_programs.h"

namespace tombolo::dsm::testing {
namespace {

constexpr std::size_t page = 4096;

// The first of a page.
volatile std::uint64_t& number_on(ProgramMemory& memory, std::size_t of_page) {
  return reinterpret_cast<volatile std::uint64_t*>(memory.memory().data())[of_page * page / 8];
}

// ---- Flags --------------------------------------------------------------------------------------

// All threads, by loads and stores. The flag of each is on a page of its own.
void meet_by_flags(ProgramMemory& memory, std::uint64_t round) {
  constexpr std::size_t flags = 20;
  number_on(memory, flags + memory.self()) = round;
  for (Thread thread = 0; thread < memory.threads(); ++thread)
    while (number_on(memory, flags + thread) < round) sched_yield();
}

// The data are there when the flag is.
void pass_messages(ProgramMemory& memory) {
  for (std::uint64_t round = 1; round <= 10; ++round) {
    const bool sends = memory.self() == round % memory.threads();
    for (std::size_t i = 0; i < 10 && sends; ++i) number_on(memory, i) = round + i;
    meet_by_flags(memory, 2 * round);
    for (std::size_t i = 0; i < 10; ++i) REQUIRE(number_on(memory, i) == round + i);
    meet_by_flags(memory, 2 * round + 1);
  }
}

// Each tells, then looks: one at least sees its neighbour.
void tell_and_look(ProgramMemory& memory) {
  constexpr std::size_t seen = 4;
  const Thread self = memory.self();
  for (std::uint64_t round = 1; round <= 50; ++round) {
    number_on(memory, self) = round;
    const std::uint64_t other = number_on(memory, (self + 1) % memory.threads());
    number_on(memory, seen + self) = other >= round ? 1 : 0;
    meet_by_flags(memory, 2 * round);
    std::uint64_t all = 0;
    for (Thread thread = 0; thread < memory.threads(); ++thread)
      all += number_on(memory, seen + thread);
    REQUIRE(all >= 1);
    meet_by_flags(memory, 2 * round + 1);
  }
}

// ---- Threads that are busy ----------------------------------------------------------------------

// Thread 0 has written the page that thread 1 wants, and works without it until a byte comes.
void be_busy(ProgramMemory& memory, void (*work_until_a_byte)(int from)) {
  int ends[2] = {-1, -1};
  if (memory.self() == 0) {
    REQUIRE(pipe(ends) == 0);
    memory.store(0, static_cast<std::uint64_t>(getpid()));
    memory.store(1, static_cast<std::uint64_t>(ends[1]));
  }
  MUST(memory.barrier());
  if (memory.self() == 0) {
    number_on(memory, 1) = 8;
    work_until_a_byte(ends[0]);
  } else if (memory.self() == 1) {
    while (number_on(memory, 1) != 8) sched_yield();
    const std::string path =
        "/proc/" + std::to_string(memory.load(0)) + "/fd/" + std::to_string(memory.load(1));
    std::FILE* const out = std::fopen(path.c_str(), "w");
    REQUIRE(out != nullptr && std::fputc('x', out) == 'x' && std::fclose(out) == 0);
  }
  MUST(memory.barrier());
}

void read_a_byte(int from) {
  char byte = 0;
  REQUIRE(read(from, &byte, 1) == 1);
}
void compute_until_a_byte(int from) {
  const pid_t helper = fork();  // which has none of the pages, and is not interrupted
  REQUIRE(helper >= 0);
  if (helper == 0) {
    read_a_byte(from);
    _exit(0);
  }
  std::vector<std::string> texts;
  while (waitpid(helper, nullptr, WNOHANG) == 0) {
    texts.emplace_back(100 + texts.size() % 1000, 'x');  // it is in malloc for the most part
    if (texts.size() > 1000) texts.clear();
  }
}

void sleep_in_a_call(ProgramMemory& memory) { be_busy(memory, read_a_byte); }
void compute(ProgramMemory& memory) { be_busy(memory, compute_until_a_byte); }

// ---- Instructions over several pages ------------------------------------------------------------

// All threads store to both pages by one instruction.
void straddle(ProgramMemory& memory) {
  constexpr std::uint64_t ones = 0x0101010101010101;
  std::byte* const across = memory.memory().data() + page - 4;
#if defined(__x86_64__)
  // The language has no store of a word that is not aligned, and a copy may take several.
  for (int i = 0; i < 300; ++i) {
    asm volatile("movq %1, (%0)" : : "r"(across), "r"((memory.self() + 1) * ones) : "memory");
  }
#else
  const std::uint64_t value = (memory.self() + 1) * ones;
  for (int i = 0; i < 300; ++i) std::memcpy(across, &value, sizeof value);
#endif
  MUST(memory.barrier());
  const auto last = std::to_integer<std::uint64_t>(*across);
  REQUIRE(last != 0 && last <= memory.threads());
  MUST(memory.barrier());
}

// A load and a store, each over two pages.
void move_across(ProgramMemory& memory) {
#if defined(__x86_64__)
  std::byte* const low = memory.memory().data();
  for (int i = 0; i < 300; ++i) {
    std::byte* from = low + page - 4;
    std::byte* to = low + 3 * page - 4;
    if (memory.self() % 2 == 1) std::swap(from, to);
    asm volatile("movsq" : "+S"(from), "+D"(to) : : "memory");
  }
#endif
  MUST(memory.barrier());
}

// ---- The tests ----------------------------------------------------------------------------------

const std::map<std::string, void (*)(ProgramMemory&)> programs{
    {"pass_messages", pass_messages},
    {"tell_and_look", tell_and_look},
    {"sleep_in_a_call", sleep_in_a_call},
    {"compute", compute},
    {"straddle", straddle},
    {"move_across", move_across},
};

class InOrder : public ::testing::TestWithParam<Kind> {
 protected:
  static void expect_end(const std::string& name) {
    if (const Status there = available(GetParam()); !there.ok()) GTEST_SKIP() << there.message();
    for (const int threads : {2, 3}) {
      const Status ended = ran(launch_of(name, GetParam(), threads));
      EXPECT_TRUE(ended.ok()) << name << " with " << threads << ": " << ended.message();
    }
  }
};
TEST_P(InOrder, ThreadsPassMessagesByFlags) { expect_end("pass_messages"); }
TEST_P(InOrder, OneOfThreadsThatTellAndLookSeesTheNext) { expect_end("tell_and_look"); }
TEST_P(InOrder, AThreadThatSleepsInACallAnswers) { expect_end("sleep_in_a_call"); }
TEST_P(InOrder, AThreadThatComputesAnswers) { expect_end("compute"); }
TEST_P(InOrder, AnInstructionGetsTwoPagesThatOthersWant) { expect_end("straddle"); }
TEST_P(InOrder, AnInstructionGetsFourPagesThatOthersWant) { expect_end("move_across"); }

INSTANTIATE_TEST_SUITE_P(Machines, InOrder, ::testing::ValuesIn(kinds_by_window("sequential")),
                         [](const auto& test) { return test.param.machine; });

}  // namespace
}  // namespace tombolo::dsm::testing

int main(int argc, char** argv) {
  using namespace tombolo::dsm::testing;  // NOLINT(google-build-using-namespace)
  if (is_member(argc, argv)) {
    tombolo::dsm::Settings settings;
    settings.memory_bytes = 64 * page;
    settings.cache_bytes = 12 * page;
    settings.locks = 1;
    settings.words = 2;
    return run_member(settings, [&](auto& memory, const auto&) { programs.at(argv[2])(memory); });
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
