// SPDX-License-Identifier: Apache-2.0
// Purpose: processes that open compute servers together get one memory, which keeps the promises of
// dsm/threads/program_memory.h with each transport and on each machine.
#include "dsm/memory/compute_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "dsm/threads/condition.h"
#include "dsm/threads/partial_barrier.h"
#include "host/memory/memory_room.h"
#include "runtime/counters/counters.h"
#include "runtime/processes/launcher.h"

// In a process of a program: a failure ends it, and so the program.
#define REQUIRE(condition)                                                               \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      _exit(3);                                                                          \
    }                                                                                    \
  } while (false)
#define MUST(call)                                                                               \
  do {                                                                                           \
    if (const Status status_of_call = (call); !status_of_call.ok()) {                            \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, status_of_call.message().c_str()); \
      _exit(4);                                                                                  \
    }                                                                                            \
  } while (false)

namespace tombolo::dsm {
namespace {

constexpr std::size_t page = 4096;

std::uint64_t* numbers(ProgramMemory& memory) {
  return reinterpret_cast<std::uint64_t*>(memory.memory().data());
}

// All wait for all, also inside of spans; no loads and stores are ordered.
Status meet_by_words(ProgramMemory& memory) {
  std::uint64_t nothing = 0;
  return memory.reduce(nothing, [](std::uint64_t a, std::uint64_t b) { return a + b; });
}

// ---- The programs ---------------------------------------------------------------------------

// All get the same memory, locks and words, which are zero at first.
void look(ProgramMemory& memory) {
  REQUIRE(memory.self() < memory.threads());
  REQUIRE(memory.memory().size() == 64 * page);
  REQUIRE(memory.page_bytes() == page);
  REQUIRE(memory.locks() == 5);
  REQUIRE(memory.words() == 37);
  const auto address = reinterpret_cast<std::uint64_t>(memory.memory().data());
  REQUIRE(address % page == 0);
  for (WordIndex word = 0; word < memory.words(); ++word) REQUIRE(memory.load(word) == 0);
  MUST(memory.barrier());
  memory.store(memory.self(), address);
  MUST(memory.barrier());
  for (Thread thread = 0; thread < memory.threads(); ++thread)
    REQUIRE(memory.load(thread) == address);
  for (std::size_t i = 0; i < memory.memory().size() / 8; i += 64) REQUIRE(numbers(memory)[i] == 0);
  MUST(memory.barrier());
}

void use_words(ProgramMemory& memory) {
  const WordIndex last = memory.words() - 1;
  for (int i = 0; i < 1000; ++i) memory.fetch_add(last, memory.self() + 1);
  MUST(memory.barrier());
  const std::uint64_t n = memory.threads();
  REQUIRE(memory.load(last) == 1000 * n * (n + 1) / 2);
  // One thread alone finds the old value.
  const bool first = memory.exchange(0, memory.self() + 1) == 0;
  const bool swapped = memory.compare_exchange(1, 0, memory.self() + 1) == 0;
  memory.fetch_add(2, first ? 1 : 0);
  memory.fetch_add(3, swapped ? 1 : 0);
  MUST(memory.barrier());
  REQUIRE(memory.load(2) == 1 && memory.load(3) == 1);
  REQUIRE(memory.compare_exchange(3, 7, 8) == 1);
  REQUIRE(memory.load(3) == 1);
  MUST(memory.barrier());
}

// Words are ordered as the program has them: where a thread looks and has not seen the next step of
// the other yet, that one sees this thread's step.
void tell_and_look(ProgramMemory& memory) {
  constexpr std::uint64_t steps = 16;
  const Thread me = memory.self();
  const auto place = [](Thread thread, std::uint64_t step) { return 2 + thread * steps + step; };
  for (std::uint64_t first = 0; first < 2000 && memory.threads() == 2; first += steps) {
    std::array<std::uint64_t, steps> seen{};
    for (std::uint64_t step = 0; step < steps; ++step) {
      memory.store(me, first + step + 1);
      seen[step] = memory.load(1 - me);
    }
    for (std::uint64_t step = 0; step < steps; ++step) memory.store(place(me, step), seen[step]);
    MUST(memory.barrier());
    for (std::uint64_t step = 0; step < steps; ++step) {
      const std::uint64_t next = seen[step] - first;
      if (next < steps) REQUIRE(memory.load(place(1 - me, next)) >= first + step + 1);
    }
    MUST(memory.barrier());
  }
}

// Recorded and not, on pages of their own and on one that another lock uses too.
void count_in_spans(ProgramMemory& memory) {
  constexpr std::uint64_t times = 100;
  std::uint64_t* const at = numbers(memory);
  for (std::uint64_t i = 0; i < times; ++i) {
    for (const Lock lock : {Lock{0}, Lock{1}}) {
      MUST(memory.acquire(lock));
      memory.record(&at[lock], sizeof *at);
      ++at[lock];
      ++at[std::size_t{512} * (lock + 1)];
      MUST(memory.release(lock));
    }
  }
  MUST(memory.barrier());
  for (const int i : {0, 1, 512, 1024}) REQUIRE(at[i] == times * memory.threads());
  MUST(memory.barrier());
}

void try_locks(ProgramMemory& memory) {
  bool taken = false;
  if (memory.self() == 0) {
    MUST(memory.try_acquire(2, taken));
    REQUIRE(taken);
    numbers(memory)[5] = 55;
  }
  MUST(meet_by_words(memory));
  if (memory.self() != 0) {
    MUST(memory.try_acquire(2, taken));
    REQUIRE(!taken);
  }
  MUST(meet_by_words(memory));
  if (memory.self() == 0) MUST(memory.release(2));
  for (taken = false; memory.self() != 0 && !taken;) {
    MUST(memory.try_acquire(2, taken));
    if (!taken) MUST(memory.pause());
  }
  if (memory.self() != 0) {
    REQUIRE(numbers(memory)[5] >= 55);
    ++numbers(memory)[5];
    MUST(memory.release(2));
  }
  MUST(memory.barrier());
  REQUIRE(numbers(memory)[5] == 54 + memory.threads());
  MUST(memory.barrier());
}

// Each thread stores to its own numbers on pages that all share.
void meet_at_barriers(ProgramMemory& memory) {
  const Thread n = memory.threads();
  std::uint64_t* const at = numbers(memory);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    for (std::size_t i = memory.self(); i < 8 * page / 8; i += n) at[i] = round * 10000 + i;
    MUST(memory.barrier());
    for (std::size_t i = 0; i < 8 * page / 8; ++i) REQUIRE(at[i] == round * 10000 + i);
    MUST(memory.barrier());
  }
}

void reduce(ProgramMemory& memory) {
  std::uint64_t expected = 1;
  for (Thread thread = 1; thread < memory.threads(); ++thread)
    expected = expected * 10 + thread + 1;
  for (int round = 0; round < 10; ++round) {
    std::uint64_t value = memory.self() + 1;
    MUST(memory.reduce(value, [](std::uint64_t a, std::uint64_t b) { return a * 10 + b; }));
    REQUIRE(value == expected);
  }
}

// A queue of one place: thread 0 fills it, the others take turns.
void hand_over(ProgramMemory& memory) {
  constexpr std::uint64_t times = 50;
  Condition filled(memory, 10);
  Condition emptied(memory, 12);
  std::uint64_t* const at = numbers(memory);
  const std::uint64_t all = times * (memory.threads() - 1);
  std::uint64_t taken = 0;
  MUST(memory.acquire(0));
  if (memory.self() == 0) {
    for (std::uint64_t i = 1; i <= all; ++i) {
      while (at[0] != 0) MUST(emptied.wait(0));
      at[0] = i;
      filled.signal();
    }
  } else {
    for (; taken < times; ++taken) {
      while (at[0] == 0) MUST(filled.wait(0));
      at[1] += at[0];
      at[0] = 0;
      emptied.signal();
    }
  }
  MUST(memory.release(0));
  MUST(memory.barrier());
  REQUIRE(at[1] == all * (all + 1) / 2);
  MUST(memory.barrier());
}

// Two of the threads meet, whichever they are; another one has no part in it.
void meet_in_pairs(ProgramMemory& memory) {
  constexpr WordIndex word = 30;
  constexpr std::uint64_t rounds = 20;
  std::uint64_t* const at = numbers(memory);
  if (memory.self() < 2 && memory.threads() > 1) {
    PartialBarrier pair(memory, word, 2);
    const std::size_t mine = memory.self();
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      at[mine] = round;  // on one page
      MUST(memory.acquire(static_cast<Lock>(mine)));
      at[512 * (mine + 1)] = round;
      MUST(memory.release(static_cast<Lock>(mine)));
      MUST(pair.wait());
      for (const int i : {0, 1, 512, 1024}) REQUIRE(at[i] == round);
      MUST(pair.wait());
    }
    REQUIRE(memory.load(word) == 4 * rounds);
  }
  MUST(memory.barrier());
  PartialBarrier all(memory, word + 1, memory.threads());
  at[600 + memory.self()] = memory.self() + 1;
  MUST(all.wait());
  for (Thread thread = 0; thread < memory.threads(); ++thread)
    REQUIRE(at[600 + thread] == thread + 1);
  MUST(memory.barrier());
}

// A signal calls one of those that wait, if one does, and a broadcast all; none wakes before.
void wake_all(ProgramMemory& memory) {
  Condition go(memory, 20);
  constexpr WordIndex waiting = 22;
  std::uint64_t* const at = numbers(memory);
  go.signal();  // for none
  MUST(memory.barrier());
  MUST(memory.acquire(3));
  if (memory.self() != 0) {
    memory.fetch_add(waiting, 1);
    MUST(go.wait(3));
    REQUIRE(at[7] == 1);
  } else {
    MUST(memory.release(3));
    while (memory.load(waiting) + 1 < memory.threads()) MUST(memory.pause());
    memory.paused_enough();
    MUST(memory.acquire(3));
    at[7] = 1;
    constexpr WordIndex called = 21;
    const std::uint64_t others = memory.threads() - 1;
    REQUIRE(memory.load(called) == 0);
    go.signal();
    REQUIRE(memory.load(called) == std::min<std::uint64_t>(1, others));
    go.broadcast();
    go.signal();
    REQUIRE(memory.load(called) == others);
  }
  MUST(memory.release(3));
  MUST(memory.barrier());
}

// The stores of a span come to a thread that takes no lock, where both renew.
void renew(ProgramMemory& memory) {
  std::uint64_t* const at = numbers(memory);
  REQUIRE(at[0] == 0 && at[1000] == 0);  // an old copy from now on
  MUST(meet_by_words(memory));
  if (memory.self() == 0) {
    MUST(memory.acquire(0));
    at[0] = 7;
    MUST(memory.renew(at, sizeof *at));
    MUST(memory.release(0));
    at[1000] = 8;
    MUST(memory.renew(&at[999], 2 * sizeof *at));
  }
  MUST(meet_by_words(memory));
  MUST(memory.renew(at, 1001 * sizeof *at));
  MUST(memory.renew(memory.memory().data() - 8, 4));
  MUST(memory.renew(at, 0));
  REQUIRE(at[0] == 7 && at[1000] == 8);
  MUST(memory.barrier());
}

void record_anywhere(ProgramMemory& memory) {
  std::byte* const low = memory.memory().data();
  const std::size_t size = memory.memory().size();
  MUST(memory.acquire(0));
  const std::uint64_t local = 0;
  memory.record(&local, sizeof local);
  memory.record(nullptr, 100);
  memory.record(low - 8, 8);
  memory.record(low + size, 8);
  memory.record(low + size - 8, 100);
  memory.record(low + page - 4, 8);
  std::memset(low + page - 4, static_cast<int>(memory.self() + 1), 8);
  memory.record(low + 3 * page, 0);
  MUST(memory.release(0));
  MUST(memory.acquire(0));
  REQUIRE(low[page - 4] == low[page + 3]);
  MUST(memory.release(0));
  MUST(memory.barrier());
}

// More pages than are cached, whatever they hold.
void exceed_the_cache(ProgramMemory& memory) {
  const std::size_t n = memory.memory().size() / 8;
  std::uint64_t* const at = numbers(memory);
  if (memory.self() == 0)
    for (std::size_t i = 0; i < n; ++i) at[i] = i * 3;
  MUST(memory.barrier());
  for (std::size_t i = 0; i < n; ++i) REQUIRE(at[i] == i * 3);
  MUST(memory.barrier());
}

// Variables that belong to a lock are changed in its spans; those of a thread outside of spans.
void random_program(ProgramMemory& memory, std::uint64_t seed) {
  constexpr std::size_t variables = 60;
  constexpr Lock locks = 4;
  const Thread n = memory.threads();
  std::uint64_t* const at = numbers(memory);
  // Neighbours lie on different pages, and threads and locks share pages.
  const auto place = [&](std::size_t v) -> std::uint64_t& { return at[v % 12 * 512 + v / 12]; };
  std::vector<std::uint64_t> expected(variables + n * variables, 0);
  for (std::uint64_t round = 0; round < 6; ++round) {
    for (Thread thread = 0; thread < n; ++thread) {
      Random random = Random::stream(seed, round * n + thread);
      const bool mine = thread == memory.self();
      for (int step = 0; step < 40; ++step) {
        const auto lock = static_cast<Lock>(random.below(locks));
        const bool in_span = random.below(2) == 0;
        const bool recorded = random.below(2) == 0;
        const std::size_t v = in_span ? random.below(variables / locks) * locks + lock
                                      : variables + thread * variables + random.below(variables);
        ++expected[v];
        if (!mine) continue;
        if (in_span) MUST(memory.acquire(lock));
        if (recorded) memory.record(&place(v), sizeof at[0]);
        ++place(v);
        if (in_span) MUST(memory.release(lock));
      }
    }
    MUST(memory.barrier());
    for (std::size_t v = 0; v < expected.size(); ++v) REQUIRE(place(v) == expected[v]);
    MUST(memory.barrier());
  }
}

void random_programs(ProgramMemory& memory) {
  const auto base = static_cast<std::uint64_t>(std::atoll(std::getenv("SEED_OF_TEST")));
  for (std::uint64_t seed = base; seed < base + 2; ++seed) {
    if (memory.self() == 0) std::memset(memory.memory().data(), 0, memory.memory().size());
    MUST(memory.barrier());
    random_program(memory, seed);
  }
}

// One page that one thread writes: it is exposed where pages are not in place.
std::uint64_t copies_of_a_kept_page(ProgramMemory& memory) {
  if (memory.self() == 0) numbers(memory)[0] = 1;
  MUST(memory.barrier());
  REQUIRE(numbers(memory)[0] == 1);
  MUST(memory.barrier());
  return runtime::counters().counter("dsm_kept").value();
}
void expose_no_page(ProgramMemory& memory) { REQUIRE(copies_of_a_kept_page(memory) == 0); }
void expose_a_page(ProgramMemory& memory) {
  REQUIRE(copies_of_a_kept_page(memory) == (memory.self() == 0 ? 1 : 0));
}

// Another process has something else at the usual address.
void look_elsewhere(ProgramMemory& memory) {
  look(memory);
  const auto address = reinterpret_cast<std::uint64_t>(memory.memory().data());
  REQUIRE(address == first_address + (std::uint64_t{1} << 40));
}

// Process `rank` dies; the others, which the launcher cannot end, find out by themselves. One of
// them may have ended when the last one does.
void lose(int rank, ProgramMemory& memory, const std::function<Status()>& wait) {
  Status lost = meet_by_words(memory);
  if (static_cast<int>(memory.self()) == rank) raise(SIGKILL);
  while (lost.ok()) lost = wait();
  REQUIRE(lost.code() == Code::process_failed);
  REQUIRE(lost.message().find(fmt::format("rank {} (process ", rank)) != std::string::npos);
  REQUIRE(lost.message().find(" of the program ") != std::string::npos);
  const std::ofstream file(std::string(std::getenv("FOLDER_OF_TEST")) + "/" +
                           std::to_string(getpid()));
  _exit(0);
}
void lose_one(ProgramMemory& memory, const std::function<Status()>& wait) { lose(1, memory, wait); }
void lose_one_at_a_barrier(ProgramMemory& memory) {
  lose_one(memory, [&] { return memory.barrier(); });
}
void lose_the_holder_of_a_lock(ProgramMemory& memory) {
  if (memory.self() == 1) MUST(memory.acquire(0));
  lose_one(memory, [&] { return memory.acquire(0); });
}
void lose_one_in_a_pause(ProgramMemory& memory) {
  lose_one(memory, [&] { return memory.pause(); });
}

// The first memory server of two dies when its process is told to (member()).
void lose_a_memory_server(ProgramMemory& memory) {
  lose(3, memory, [&] { return memory.pause(); });
}

// ---- Mistakes, which stop the process ----

void take_a_lock_twice(ProgramMemory& memory) {
  MUST(memory.acquire(1));
  MUST(memory.acquire(1));
}
void release_a_free_lock(ProgramMemory& memory) { MUST(memory.release(1)); }
void release_the_lock_of_another(ProgramMemory& memory) {
  if (memory.self() == 0) MUST(memory.acquire(1));
  MUST(meet_by_words(memory));
  if (memory.self() == 1) MUST(memory.release(1));
  MUST(meet_by_words(memory));
}
void take_a_lock_past_the_last(ProgramMemory& memory) { MUST(memory.acquire(memory.locks())); }
void load_a_word_past_the_last(ProgramMemory& memory) { memory.load(memory.words()); }

const std::map<std::string, void (*)(ProgramMemory&)> programs{
    {"look", look},
    {"use_words", use_words},
    {"tell_and_look", tell_and_look},
    {"count_in_spans", count_in_spans},
    {"try_locks", try_locks},
    {"meet_at_barriers", meet_at_barriers},
    {"reduce", reduce},
    {"hand_over", hand_over},
    {"wake_all", wake_all},
    {"meet_in_pairs", meet_in_pairs},
    {"renew", renew},
    {"record_anywhere", record_anywhere},
    {"exceed_the_cache", exceed_the_cache},
    {"random_programs", random_programs},
    {"expose_no_page", expose_no_page},
    {"expose_a_page", expose_a_page},
    {"expose_as_told", expose_a_page},
    {"look_elsewhere", look_elsewhere},
    {"look_nowhere", look},
    {"look_alike", look},
    {"keep_records", look},
    {"lose_one_at_a_barrier", lose_one_at_a_barrier},
    {"lose_the_holder_of_a_lock", lose_the_holder_of_a_lock},
    {"lose_one_in_a_pause", lose_one_in_a_pause},
    {"lose_a_memory_server", lose_a_memory_server},
    {"take_a_lock_twice", take_a_lock_twice},
    {"release_a_free_lock", release_a_free_lock},
    {"release_the_lock_of_another", release_the_lock_of_another},
    {"take_a_lock_past_the_last", take_a_lock_past_the_last},
    {"load_a_word_past_the_last", load_a_word_past_the_last},
};

// A memory server. Where another process has left early, the launcher notes that one first.
int serve(runtime::Collective<runtime::SocketExchange>& all, ComputeServer& server,
          const std::string& name) {
  if (name == "lose_a_memory_server" && all.rank() == 3) raise(SIGKILL);
  if (!server.close(all).ok()) sleep(1);
  return 0;
}

// The exchange of a job whose process 0 has no room for pages in place, where the others have: it
// tells so by its fourth broadcast.
class NoRoom {
 public:
  explicit NoRoom(runtime::SocketExchange& exchange) : exchange_(exchange) {}
  int rank() const { return exchange_.rank(); }
  int size() const { return exchange_.size(); }
  Status gather(const void* mine, void* everyones, std::size_t bytes) {
    return exchange_.gather(mine, everyones, bytes);
  }
  Status broadcast(void* data, std::size_t bytes, int root) {
    if (++broadcasts_ == 4 && rank() == 0) *static_cast<bool*>(data) = false;
    return exchange_.broadcast(data, bytes, root);
  }
  bool all(bool yes) { return exchange_.all(yes); }

 private:
  runtime::SocketExchange& exchange_;
  int broadcasts_ = 0;
};

// Something of the process's own from the usual address of the memory on, at `times` places.
void occupy(std::uint64_t times) {
  for (std::uint64_t i = 0; i < times; ++i) {
    void* const at = reinterpret_cast<void*>(first_address + (i << 40));
    REQUIRE(mmap(at, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
            at);
  }
}

// Differences from process to process, for some of the programs.
void be_different(const std::string& name, int rank, ComputeServer::Request& request) {
  if (name == "keep_records") request.settings.timed = request.settings.traced = rank == 0;
  if (rank != 1) return;
  if (name == "look_alike") {
    request.options.machine = *runtime::machine_named("coherent");
    request.options.atomics = !request.options.native_atomics();
  }
  if (name == "look_elsewhere") occupy(1);
  if (name == "look_nowhere") occupy(16);
}

// A process of the program: 5 where the server does not open, with the reason on stderr. The
// settings of process 0 are those of all.
int member(const std::string& name) {
  if (name.starts_with("lose_")) signal(SIGTERM, SIG_IGN);
  std::unique_ptr<runtime::SocketExchange> exchange;
  MUST(runtime::join(exchange));
  ComputeServer::Request request{.options = runtime::read_environment()};
  const auto more = static_cast<std::uint32_t>(exchange->rank());
  request.settings.memory_bytes = (64 + more) * page;
  request.settings.cache_bytes = (12 + more) * page;
  request.settings.locks = 5 + more;
  request.settings.words = 37 + more;
  MUST(read_options(request.settings));
  be_different(name, exchange->rank(), request);
  runtime::Collective all(*exchange);
  NoRoom without_room(*exchange);
  runtime::Collective all_without_room(without_room);
  std::unique_ptr<ComputeServer> server;
  const runtime::Agreed opened = name == "expose_as_told"
                                     ? ComputeServer::open(all_without_room, request, server)
                                     : ComputeServer::open(all, request, server);
  if (!opened.ok()) {
    if (opened.own()) std::fprintf(stderr, "%s\n", opened.status().message().c_str());
    return 5;
  }
  const bool records = name == "keep_records";
  const bool mapped = server->settings().transport == TransportKind::map;
  REQUIRE((server->heat() != nullptr) == (records && !mapped));
  REQUIRE((server->trace() != nullptr) == records);
  if (server->holds_memory()) return serve(all, *server, name);
  programs.at(name)(server->memory());
  MUST(server->close(all).status());
  return 0;
}

// ---- The tests ------------------------------------------------------------------------------

struct Kind {
  std::string transport;
  std::string machine;
  std::string protocol = "regional";
  int servers = 0;
};

std::vector<Kind> kinds() {
  std::vector<Kind> all{{"map", "coherent"}};
  for (const char* protocol : {"regional", "sequential"})
    for (const std::string_view name : runtime::machine_names())
      all.push_back({"window", std::string(name), protocol});
  for (const std::string_view name : runtime::machine_names())
    all.push_back({"window", std::string(name), "regional", 2});
  all.push_back({"window", "coherent", "sequential", 1});
  return all;
}

runtime::Launch launch_of(const std::string& name, const Kind& kind, int threads) {
  return {.command = {"/proc/self/exe", "--member", name},
          .size = threads + kind.servers,
          .environment = {{"TOMBOLO_DSM_TRANSPORT", kind.transport},
                          {"TOMBOLO_MACHINE", kind.machine},
                          {"TOMBOLO_DSM_PROTOCOL", kind.protocol},
                          {"TOMBOLO_DSM_SERVERS", std::to_string(kind.servers)},
                          {"SEED_OF_TEST", "1"}},
          .grace = std::chrono::seconds(30)};
}

Status ran(const runtime::Launch& launch, int& exit_status) {
  runtime::Launcher launcher;
  TOMBOLO_TRY(runtime::Launcher::start(launch, launcher));
  Status ended = launcher.wait();
  exit_status = launcher.exit_status();
  return ended;
}

class Servers : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    const Status there = runtime::served({*runtime::machine_named(GetParam().machine)}).available();
    if (!there.ok()) GTEST_SKIP() << there.message();
  }
  static void expect_all(const std::string& name) {
    for (const int size : {1, 2, 3}) {
      int exit_status = 0;
      const Status ended = ran(launch_of(name, GetParam(), size), exit_status);
      EXPECT_TRUE(ended.ok()) << name << " with " << size << ": " << ended.message();
    }
  }
};

TEST_P(Servers, HaveOneMemory) { expect_all("look"); }
TEST_P(Servers, HaveWordsThatAreAtomic) { expect_all("use_words"); }
TEST_P(Servers, HaveWordsThatAreOrdered) { expect_all("tell_and_look"); }
TEST_P(Servers, SeeTheStoresOfEarlierSpans) { expect_all("count_in_spans"); }
TEST_P(Servers, TryLocks) { expect_all("try_locks"); }
TEST_P(Servers, SeeAllStoresAfterABarrier) { expect_all("meet_at_barriers"); }
TEST_P(Servers, MeetInPairs) { expect_all("meet_in_pairs"); }
TEST_P(Servers, CombineInTheOrderOfThreads) { expect_all("reduce"); }
TEST_P(Servers, SignalEachOther) { expect_all("hand_over"); }
TEST_P(Servers, RenewPagesWithoutALock) { expect_all("renew"); }
TEST_P(Servers, WakeAllThatWait) { expect_all("wake_all"); }
TEST_P(Servers, PassOverRecordsOutsideOfTheMemory) { expect_all("record_anywhere"); }
TEST_P(Servers, ReadMoreThanTheyCache) { expect_all("exceed_the_cache"); }
TEST_P(Servers, KeepRecordsWhereProcess0Wants) { expect_all("keep_records"); }
TEST_P(Servers, HaveTheirMemoryWhereAllHaveRoom) {
  int exit_status = 0;
  const Status ended = ran(launch_of("look_elsewhere", GetParam(), 3), exit_status);
  EXPECT_TRUE(ended.ok()) << ended.message();
}
TEST_P(Servers, ExposePagesWhereTheyAreNotInPlace) {
  if (GetParam().transport == "map" || GetParam().protocol == "sequential") GTEST_SKIP();
  const bool in_place =
      runtime::served({*runtime::machine_named(GetParam().machine)}).traits().coherent;
  int exit_status = 0;
  const Status ended =
      ran(launch_of(in_place ? "expose_no_page" : "expose_a_page", GetParam(), 2), exit_status);
  EXPECT_TRUE(ended.ok()) << ended.message();
}
TEST_P(Servers, RunRandomPrograms) { expect_all("random_programs"); }

TEST_P(Servers, NameTheOneThatDied) {
  for (const char* name :
       {"lose_one_at_a_barrier", "lose_the_holder_of_a_lock", "lose_one_in_a_pause"}) {
    const auto folder =
        std::filesystem::temp_directory_path() / fmt::format("tombolo_test_{}_{}", getpid(), name);
    std::filesystem::create_directory(folder);
    runtime::Launch launch = launch_of(name, GetParam(), 3);
    launch.environment.emplace_back("FOLDER_OF_TEST", folder.string());
    int exit_status = 0;
    EXPECT_EQ(ran(launch, exit_status).rank(), 1) << name;
    EXPECT_EQ(exit_status, 128 + SIGKILL) << name;
    const auto found = std::distance(std::filesystem::directory_iterator(folder), {});
    EXPECT_EQ(found, 2) << name << ": each of the others noticed";
    std::filesystem::remove_all(folder);
  }
}

TEST_P(Servers, NameTheMemoryServerThatDied) {
  if (GetParam().servers == 0) GTEST_SKIP() << "there is none";
  int exit_status = 0;
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("tombolo_{}", getpid());
  std::filesystem::create_directory(folder);
  runtime::Launch launch = launch_of("lose_a_memory_server", GetParam(), 3);
  launch.environment.emplace_back("FOLDER_OF_TEST", folder.string());
  EXPECT_EQ(ran(launch, exit_status).rank(), 3);
  EXPECT_EQ(exit_status, 128 + SIGKILL);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 3)
      << "each thread noticed";
  std::filesystem::remove_all(folder);
}

TEST_P(Servers, StopAtMistakes) {
  for (const char* name :
       {"take_a_lock_twice", "release_a_free_lock", "release_the_lock_of_another",
        "take_a_lock_past_the_last", "load_a_word_past_the_last"}) {
    int exit_status = 0;
    EXPECT_FALSE(ran(launch_of(name, GetParam(), 2), exit_status).ok()) << name;
    EXPECT_EQ(exit_status, 128 + SIGABRT) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Servers, ::testing::ValuesIn(kinds()), [](const auto& test) {
  const std::string name =
      test.param.protocol + "_by_" + test.param.transport + "_on_" + test.param.machine;
  return test.param.servers == 0 ? name
                                 : fmt::format("{}_with_{}_servers", name, test.param.servers);
});

// ---- Processes that differ ----------------------------------------------------------------------

void expect_to_run(const std::string& name, const Kind& kind) {
  int exit_status = 0;
  const Status ended = ran(launch_of(name, kind, 3), exit_status);
  EXPECT_TRUE(ended.ok()) << name << ": " << ended.message();
}
TEST(Opening, TakesTheMachineOfProcess0) { expect_to_run("look_alike", {"window", "stale"}); }
TEST(Opening, HasPagesInPlaceWhereProcess0HasRoom) {
  expect_to_run("expose_as_told", {"window", "coherent"});
}

// The homes and the regions of two threads would be larger than the host's memory, all together;
// the homes and one region would not. Either by a fifth: the room changes until the launch.
TEST(Opening, HasNoPagesInPlaceWhereTheRegionsWouldBeTooLarge) {
  runtime::Launch launch = launch_of("expose_a_page", {"window", "coherent"}, 2);
  launch.environment.emplace_back("TOMBOLO_DSM_MEMORY",
                                  std::to_string(host::memory_room().bytes / 5 * 2));
  int exit_status = 0;
  const Status ended = ran(launch, exit_status);
  EXPECT_TRUE(ended.ok()) << ended.message();
}

// ---- Settings that cannot be ------------------------------------------------------------------

std::string refusal(std::vector<std::pair<std::string, std::string>> environment,
                    const std::string& name = "look") {
  runtime::Launch launch = launch_of(name, {"map", "coherent"}, 2);
  for (auto& variable : environment) launch.environment.push_back(variable);
  const auto log = std::filesystem::temp_directory_path() / fmt::format("tombolo_{}", getpid());
  launch.command = {"/bin/sh", "-c",
                    fmt::format("exec \"$0\" --member {} 2>>{}", name, log.string()),
                    std::filesystem::read_symlink("/proc/self/exe").string()};
  int exit_status = 0;
  EXPECT_FALSE(ran(launch, exit_status).ok());
  EXPECT_EQ(exit_status, 5);
  std::ifstream in(log);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  std::filesystem::remove(log);
  return text;
}

TEST(Refusals, OfCachesEndWhereAnInstructionFits) {
  runtime::Launch launch = launch_of("exceed_the_cache", {"window", "coherent"}, 2);
  launch.environment.emplace_back("TOMBOLO_DSM_CACHE", "32K");
  int exit_status = 0;
  const Status ended = ran(launch, exit_status);
  EXPECT_TRUE(ended.ok()) << ended.message();
}

TEST(Refusals, NameTheSetting) {
  EXPECT_NE(refusal({{"TOMBOLO_MACHINE", "stale"}}).find("transport map needs a coherent machine"),
            std::string::npos);
  EXPECT_NE(refusal({{"TOMBOLO_DSM_SERVERS", "2"}}).find("TOMBOLO_DSM_SERVERS"), std::string::npos);
  EXPECT_NE(refusal({{"TOMBOLO_DSM_SERVERS", "1"}}).find("transport map has no use"),
            std::string::npos);
  EXPECT_NE(refusal({{"TOMBOLO_DSM_CACHE", "0"}}).find("cache of 0 bytes"), std::string::npos);
  EXPECT_NE(refusal({{"TOMBOLO_DSM_CACHE", "28K"}}).find("at least 32768 (8 pages)"),
            std::string::npos);
  EXPECT_NE(refusal({{"TOMBOLO_DSM_MEMORY", "16T"}}).find("from 4096 to 8 TiB"), std::string::npos);
  EXPECT_NE(refusal({}, "look_nowhere").find("no range of addresses for the memory is free"),
            std::string::npos);
  EXPECT_NE(refusal({{"TOMBOLO_DSM_MEMORY", "100"}}).find("TOMBOLO_DSM_MEMORY"), std::string::npos);
  EXPECT_NE(refusal({{"TOMBOLO_DSM_MEMORY", "7TiB"}}).find("a segment needs 76965"),
            std::string::npos)
      << "the bytes that were wanted";
  EXPECT_NE(refusal({{"TOMBOLO_MACHINE", "none"}}).find("TOMBOLO_MACHINE is 'none'"),
            std::string::npos);
}

}  // namespace
}  // namespace tombolo::dsm

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--member") return tombolo::dsm::member(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
