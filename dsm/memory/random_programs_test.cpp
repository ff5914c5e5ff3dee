// SPDX-License-Identifier: Apache-2.0
// Purpose: random programs (dsm/testing/random_program.h) in processes with real page faults and
// small caches: each transport, under both protocols, on every machine, and over MPICH where its
// launcher is known.
//
//   dsm_memory_random_programs_test [--first SEED] [--programs N] [--gtest_filter=...]
//
// N programs of each kind, with the seeds from SEED on. A failure names the kind and the seed, and
// the line that runs it again.
// Thread safety: -
#include <cstdlib>
#include <string>

#include "base/options.h"
#include "dsm/testing/mpi_programs.h"
#include "dsm/testing/random_program.h"
#include "dsm/testing/server_programs.h"
#include "dsm/threads/condition.h"

namespace tombolo::dsm::testing {
namespace {

using namespace random_programs;  // NOLINT(google-build-using-namespace)

constexpr std::size_t page_bytes = 4096;
// A cache has as many at least.
constexpr std::uint32_t more_pages = 8;
// One after the other in the same processes, which have the sizes of the first.
constexpr std::uint64_t programs_per_launch = 5;
// They take a second on a quiet host, and minutes where others want its processors.
constexpr unsigned patience_s = 900;

struct Choices {
  std::uint64_t first = 1;
  std::uint64_t programs = 30;
};
Choices choices;

// ---- In a process of a program ------------------------------------------------------------------

constexpr WordIndex first_of_done = of_threads + of_locks + locks;
constexpr WordIndex first_of_conditions = first_of_done + of_threads;
constexpr WordIndex words = first_of_conditions + locks * Condition::words_needed;

// A ProgramMemory with the calls of ProgramThread.
class ServerThread {
 public:
  static constexpr bool tells_all = false;  // as programs of tombolo/dsm.h have it
  ServerThread(ProgramMemory& memory, const Shape& shape) : memory_(memory), shape_(shape) {
    for (Lock lock = 0; lock < locks; ++lock)
      conditions_.emplace_back(memory, first_of_conditions + lock * Condition::words_needed);
  }

  Thread self() const { return memory_.self(); }
  const Shape& shape() const { return shape_; }

  std::uint64_t load(Variable v) { return *place_of(v); }
  void store(Variable v, std::uint64_t value, bool recorded) {
    if (recorded) memory_.record(const_cast<std::uint64_t*>(place_of(v)), sizeof value);
    *place_of(v) = value;
  }
  // On a page cache its page leaves that.
  void evict(Page page) {
    MUST(memory_.renew(memory_.memory().data() + page * page_bytes, page_bytes));
  }

  void begin_span(Lock lock) { MUST(memory_.acquire(lock)); }
  bool try_begin_span(Lock lock) {
    bool taken = false;
    MUST(memory_.try_acquire(lock, taken));
    return taken;
  }
  void end_span(Lock lock) { MUST(memory_.release(lock)); }
  void hand_over(Lock lock) { MUST(memory_.hand_over(lock)); }
  void wait(Lock lock) { MUST(conditions_[lock].wait(lock)); }
  void wake_all(Lock lock) { conditions_[lock].broadcast(); }
  void pause(std::uint64_t) { MUST(memory_.pause()); }
  void barrier() { MUST(memory_.barrier()); }
  void tell() { MUST(memory_.tell()); }
  void learn() { MUST(memory_.learn()); }
  std::uint64_t sum(std::uint64_t value) {
    MUST(memory_.reduce(value, [](std::uint64_t a, std::uint64_t b) { return a + b; }));
    return value;
  }
  // Another program follows.
  void close() { barrier(); }

 private:
  volatile std::uint64_t* place_of(Variable v) {
    std::byte* const page = memory_.memory().data() + v % shape_.pages * page_bytes;
    return reinterpret_cast<volatile std::uint64_t*>(page) + v / shape_.pages;
  }

  ProgramMemory& memory_;
  Shape shape_;
  std::vector<Condition> conditions_;
};

// In words of the program.
class WordScore {
 public:
  WordScore(ProgramMemory& memory, bool in_order) : memory_(memory), in_order_(in_order) {}
  std::uint64_t stored(Variable v) const { return memory_.load(v); }
  std::uint64_t seen_by_all(Variable v) const {
    return in_order_ ? memory_.load(first_of_done + v) : 0;
  }
  void set_done(Variable v, std::uint64_t number) { memory_.store(first_of_done + v, number); }
  void set_stored(Variable v, std::uint64_t number) { memory_.store(v, number); }
  std::uint64_t counted(std::uint64_t i) const { return memory_.load(of_threads + i); }
  void set_counted(std::uint64_t i, std::uint64_t number) { memory_.store(of_threads + i, number); }
  bool failed() const { return false; }
  [[noreturn]] void fail(const std::string& why) const {
    std::fprintf(stderr, "%s\n", why.c_str());
    _exit(3);
  }

 private:
  ProgramMemory& memory_;
  bool in_order_;
};

Shape shape_of(std::uint64_t seed) { return drawn(seed, page_bytes, more_pages); }

void run_programs(ProgramMemory& memory, const Settings& chosen, std::uint64_t first) {
  ServerThread thread(memory, shape_of(first));
  WordScore score(memory, chosen.transport == TransportKind::map ||
                              chosen.protocol == ProtocolKind::sequential);
  for (std::uint64_t seed = first; seed < first + programs_per_launch; ++seed) {
    if (memory.self() == 0) {
      std::memset(memory.memory().data(), 0, memory.memory().size());
      for (WordIndex word = 0; word < first_of_conditions; ++word) memory.store(word, 0);
    }
    MUST(memory.barrier());
    RandomProgram(thread, score, seed).go(4);
  }
}

int member(const char* first) {
  const std::uint64_t seed = number_in(first).value();
  const Shape shape = shape_of(seed);
  Settings settings;
  settings.memory_bytes = shape.pages * page_bytes;
  settings.cache_bytes = shape.cached_pages * page_bytes;
  settings.locks = locks;
  settings.words = words;
  const auto run = [&](ProgramMemory& memory, const Settings& chosen) {
    run_programs(memory, chosen, seed);
  };
  return is_started_by_mpi() ? run_member_of_mpi(settings, run, patience_s)
                             : run_member(settings, run, patience_s);
}

// ---- The test -----------------------------------------------------------------------------------

class RandomServers : public ::testing::TestWithParam<Kind> {};

TEST_P(RandomServers, SeeWhatTheModelAllows) {
  if (const Status there = available(GetParam()); !there.ok()) GTEST_SKIP() << there.message();
  for (std::uint64_t seed = choices.first; seed < choices.first + choices.programs;
       seed += programs_per_launch) {
    const int threads = static_cast<int>(shape_of(seed).threads);
    const Status ended = ran(launch_of(std::to_string(seed), GetParam(), threads));
    ASSERT_TRUE(ended.ok()) << ended.message()
                            << "; again: dsm_memory_random_programs_test --first " << seed
                            << " --programs 1 --gtest_filter=*/" << GetParam().name();
  }
}

#if defined(TOMBOLO_MPIEXEC)
TEST(RandomServersByMpi, SeeWhatTheModelAllows) {
  for (std::uint64_t seed = choices.first; seed < choices.first + choices.programs;
       seed += programs_per_launch) {
    const int threads = static_cast<int>(shape_of(seed).threads);
    const Status ended = ran(launch_by_mpi(TOMBOLO_MPIEXEC, std::to_string(seed), threads));
    ASSERT_TRUE(ended.ok()) << ended.message()
                            << "; again: dsm_memory_random_programs_test --first " << seed
                            << " --programs 1 --gtest_filter=RandomServersByMpi.*";
  }
}
#endif

std::vector<Kind> kinds() {
  std::vector<Kind> all{{"map", "coherent", "regional"}};
  for (const char* protocol : {"regional", "sequential"})
    for (const Kind& kind : kinds_by_window(protocol)) all.push_back(kind);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Kinds, RandomServers, ::testing::ValuesIn(kinds()),
                         [](const auto& test) { return test.param.name(); });

// False for arguments that are not understood.
bool choose(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto number = number_in(argv[i + 1]);
    const std::string name = argv[i];
    if (!number || (name != "--first" && name != "--programs")) return false;
    (name == "--first" ? choices.first : choices.programs) = *number;
  }
  return argc % 2 == 1;
}

}  // namespace
}  // namespace tombolo::dsm::testing

int main(int argc, char** argv) {
  using namespace tombolo::dsm::testing;  // NOLINT(google-build-using-namespace)
  if (is_member(argc, argv)) return member(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  if (choose(argc, argv)) return RUN_ALL_TESTS();
  std::fprintf(stderr, "usage: %s [--first SEED] [--programs N]\n", argv[0]);
  return 2;
}
