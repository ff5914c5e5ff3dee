// SPDX-License-Identifier: Apache-2.0
// Purpose: tests families in other processes of this host: data by each way, nested creates, places
// where one family runs at a time, kills, failures, and processes that die. This program plays the
// processes, too.
// Thread safety: -
#include "svp/remote/job.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "svp/api/include/tombolo/svp.hpp"
#include "svp/remote/exchange_on.h"
#include "svp/remote/testing/parts.h"

namespace tombolo::svp {
namespace {

using testing::contains;
using testing::failures;
using testing::text_of;

// ---- In the processes ---------------------------------------------------------------------------

void scale(Index i, In<int> by, InArray<double> from, OutArray<double> to,
           InOutArray<std::int32_t> count) {
  const auto n = static_cast<std::size_t>(i);
  to[n] = from[n] * by;
  count[n] += by;
}
void count_up(Index i, InOutArray<std::uint8_t> bytes) { bytes[static_cast<std::size_t>(i)] += 1; }
void rank_of(Out<unsigned> rank) { *rank = Job::here().rank(); }
void nothing() {}

// Each parameter that comes back, by its name alone.
void assign(In<int> by, Out<std::int64_t> result, InOut<std::int64_t> count, const Out<double> last,
            OutArray<int> to, InOutArray<int> sums) {
  result = by;
  count = count + by;
  last = 0.5 * by;
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = by;
    sums[i] += by;
  }
}
int assignments(Job& job) {
  for (unsigned process = 0; process < job.processes(); ++process) {
    for (std::size_t way = 0; way < std::size(transport_names); ++way) {
      std::int64_t result = 0;
      std::int64_t count = 30;
      double last = 0;
      std::vector<int> to(3);
      std::vector<int> sums{1, 2, 3};
      auto family = create(job.place(process, static_cast<Transport>(way)), remote<&assign>, 12,
                           result, count, last, to, sums);
      EXPECT_HERE(family.sync().done());
      EXPECT_HERE(result == 12 && count == 42 && last == 6);
      EXPECT_HERE(to == std::vector<int>(3, 12) && sums == (std::vector<int>{13, 14, 15}));
    }
  }
  return failures;
}

// By all ways, at all places, to arrays in shared memory and elsewhere.
int data(Job& job) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{100}, std::size_t{40000}}) {
    std::vector<double> from(n);
    std::iota(from.begin(), from.end(), 1.0);
    SharedArray<double> shared_from(n);
    SharedArray<double> shared_to(n);
    SharedArray<std::int32_t> shared_count(n);
    std::copy(from.begin(), from.end(), shared_from.begin());
    for (unsigned process = 0; process < job.processes(); ++process) {
      for (std::size_t way = 0; way < std::size(transport_names); ++way) {
        const Place place = job.place(process, static_cast<Transport>(way));
        std::vector<double> to(n, -1);
        std::vector<std::int32_t> count(n, 5);
        std::fill(shared_count.begin(), shared_count.end(), 7);
        const Range range{.limit = static_cast<Index>(n)};
        auto plain = create(place, range, remote<&scale>, 3, from, to, count);
        auto shared = create(place, range, remote<&scale>, 4, std::span<const double>(shared_from),
                             std::span<double>(shared_to), std::span<std::int32_t>(shared_count));
        EXPECT_HERE(shared.sync().done());
        EXPECT_HERE(plain.sync().done());
        for (std::size_t i = 0; i < n; ++i) {
          EXPECT_HERE(to[i] == 3 * from[i] && count[i] == 8);
          EXPECT_HERE(shared_to[i] == 4 * from[i] && shared_count[i] == 11);
        }
      }
    }
  }
  // A line, and a byte of the next one; both are back before they go again.
  SharedArray<std::uint8_t> bytes(65);
  for (int round = 1; round <= 3; ++round)
    for (unsigned process = 0; process < job.processes(); ++process) {
      auto family = create(job.place(process), {.limit = 65}, remote<&count_up>,
                           std::span<std::uint8_t>(bytes));
      EXPECT_HERE(family.sync().done());
      for (std::size_t i = 0; i < 65; ++i) {
        EXPECT_HERE(bytes[i] == (round - 1) * static_cast<int>(job.processes()) +
                                    static_cast<int>(process) + 1);
      }
    }
  for (unsigned process = 0; process < job.processes(); ++process) {
    unsigned rank = 77;
    auto family = create(job.place(process), remote<&rank_of>, rank);
    EXPECT_HERE(family.sync().done() && rank == process);
    auto empty = create(job.place(process), {.limit = 0}, remote<&rank_of>, rank);
    EXPECT_HERE(empty.sync().done());
  }
  return failures;
}

// Each family adds 1 at its process and goes on to the next one, as often as `hops`; arrays go on
// by their address.
void go_on(In<int> hops, InOutArray<std::int64_t> visits, In<unsigned> next) {
  Job& job = Job::here();
  visits[job.rank()] += 1;
  if (hops == 0) return;
  const unsigned after = (next + 1) % job.processes();
  auto further = create(job.place(next), remote<&go_on>, hops - 1, visits, after);
  further.sync().rethrow();
}
void local_sum(InArray<std::int64_t> numbers, Out<std::int64_t> sum) {
  std::atomic<std::int64_t> all{0};
  auto family = create({.limit = static_cast<Index>(numbers.size())},
                       [&](Index i) { all += numbers[static_cast<std::size_t>(i)]; });
  family.sync();
  *sum = all.load();
}

int nested(Job& job) {
  for (const Transport way : {Transport::best, Transport::buffer}) {
    SharedArray<std::int64_t> visits(job.processes());
    std::vector<std::int64_t> plain(job.processes());
    const int hops = 3 * static_cast<int>(job.processes()) - 1;
    auto one = create(job.place(1 % job.processes(), way), remote<&go_on>, hops,
                      std::span<std::int64_t>(visits), 2 % job.processes());
    auto other = create(job.place(0, way), remote<&go_on>, hops, plain, 1 % job.processes());
    EXPECT_HERE(one.sync().done());
    EXPECT_HERE(other.sync().done());
    for (unsigned p = 0; p < job.processes(); ++p) EXPECT_HERE(visits[p] == 3 && plain[p] == 3);
  }
  std::vector<std::int64_t> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::int64_t sum = 0;
  auto family = create(job.place(job.processes() - 1), remote<&local_sum>, numbers, sum);
  family.sync();
  EXPECT_HERE(sum == 999 * 1000 / 2);
  // From threads that are no workers, and many at once. The only worker may be this one, which
  // waits for them.
  std::vector<std::thread> threads;
  std::atomic<unsigned> done{0};
  for (unsigned process = 1; process < job.processes(); ++process)
    threads.emplace_back([&, process] {
      for (int i = 0; i < 20; ++i) {
        unsigned rank = 77;
        auto one = create(job.place(process), remote<&rank_of>, rank);
        if (one.sync().done() && rank == process) ++done;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_HERE(done == 20 * (job.processes() - 1));
  return failures;
}

std::atomic<int> inside{0};
std::int64_t last = -1;  // of the exclusive place of a process
std::int64_t runs = 0;
void in_order(In<std::int64_t> number, Out<std::int64_t> before, Out<std::int64_t> count) {
  if (++inside != 1) throw std::runtime_error("two families at once");
  *before = last;
  last = number;
  *count = ++runs;
  --inside;
}
void add_many(In<int> times, In<unsigned> at) {
  for (int i = 0; i < times; ++i) {
    std::int64_t before = 0;
    std::int64_t count = 0;
    auto family =
        create(Job::here().exclusive(at), remote<&in_order>, std::int64_t{-1}, before, count);
    family.sync().rethrow();
  }
}

// A circle: a family at an exclusive place waits for one behind it there. A kill frees both.
void at_exclusive() {}
void back_at_first() { create(Job::here().exclusive(0), remote<&at_exclusive>).sync(); }
void by_another_process() { create(Job::here().place(1), remote<&back_at_first>).sync(); }

int exclusive(Job& job) {
  for (unsigned process = 0; process < job.processes(); ++process) {
    constexpr std::int64_t n = 200;
    std::vector<std::int64_t> before(n);
    std::vector<std::int64_t> count(n);
    using One = decltype(create(Place(), remote<&in_order>, std::int64_t{}, before[0], count[0]));
    std::vector<std::unique_ptr<One>> families;
    for (std::int64_t i = 0; i < n; ++i)
      families.emplace_back(
          new One(create(job.exclusive(process), remote<&in_order>, i,
                         before[static_cast<std::size_t>(i)], count[static_cast<std::size_t>(i)])));
    for (auto& family : families) EXPECT_HERE(family->sync().done());
    for (std::int64_t i = 0; i < n; ++i) {
      EXPECT_HERE(before[static_cast<std::size_t>(i)] == i - 1);
      EXPECT_HERE(count[static_cast<std::size_t>(i)] == i + 1);
    }
  }
  // Creates from all processes.
  for (unsigned process = 0; process < job.processes(); ++process) {
    auto here =
        create(job.place(process), {.limit = 4}, remote<&add_many>, 50, job.processes() - 1);
    EXPECT_HERE(here.sync().done());
  }
  std::int64_t before = 0;
  std::int64_t count = 0;
  auto family =
      create(job.exclusive(job.processes() - 1), remote<&in_order>, std::int64_t{0}, before, count);
  family.sync();
  EXPECT_HERE(count == 200 + 200 * job.processes() + 1);
  auto circle = create(job.exclusive(0), remote<&by_another_process>);
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // so that it most likely waits
    circle.kill();
  });
  EXPECT_HERE(circle.sync().reason == ExitReason::killed);
  killer.join();
  EXPECT_HERE(create(job.exclusive(0), remote<&at_exclusive>).sync().done());
  return failures;
}

void breaks(Index i, In<std::int64_t> at, OutArray<std::int64_t> seen) {
  seen[0] = 99;
  if (i == at) break_family(10 * i);
}
void throws(Index i) {
  if (i == 3) throw std::runtime_error("number three");
}
void throws_at(In<unsigned> process) {
  auto family = create(Job::here().place(process), {.limit = 5}, remote<&throws>);
  family.sync().rethrow();
}
void runs_for_ever(Index) { checkpoint(); }
void waits_for_ever(In<unsigned> process) {
  auto family = create(Job::here().place(process), {.limit = unbounded}, remote<&runs_for_ever>);
  family.sync();
}

int ends(Job& job) {
  for (unsigned process = 0; process < job.processes(); ++process) {
    std::vector<std::int64_t> seen(1000);
    auto broken = create(job.place(process), {.limit = unbounded}, remote<&breaks>, 5, seen);
    const Exit exit = broken.sync();
    EXPECT_HERE(exit.reason == ExitReason::broken && exit.value == 50 && seen[0] == 99);
    auto failed = create(job.place(process), {.limit = 5}, remote<&throws>);
    EXPECT_HERE(contains(text_of(failed.sync()), "number three"));
    auto through = create(job.place(process), remote<&throws_at>, (process + 1) % job.processes());
    EXPECT_HERE(contains(text_of(through.sync()), "number three"));
    auto killed = create(job.place(process), {.limit = unbounded}, remote<&runs_for_ever>);
    killed.kill();
    EXPECT_HERE(killed.sync().reason == ExitReason::killed);
    auto deep =
        create(job.place(process), remote<&waits_for_ever>, (process + 1) % job.processes());
    usleep(2000);
    deep.kill();
    EXPECT_HERE(deep.sync().reason == ExitReason::killed);
  }
  // By an exception that leaves the creator.
  auto outer = create([&] {
    auto inner =
        create(job.place(job.processes() - 1), {.limit = unbounded}, remote<&runs_for_ever>);
    throw std::runtime_error("past the sync");
  });
  EXPECT_HERE(contains(text_of(outer.sync()), "past the sync"));
  return failures;
}

// A tree of families over all processes, whose leaves block for ever.
std::atomic<std::int64_t> blocked_here{0};
struct Alive {
  Alive() { ++blocked_here; }
  ~Alive() { --blocked_here; }
};
void blocks() {
  const Alive alive;
  Global<int> never;
  auto reader = create([](Global<int>& value) { value.read(); }, never);
  never.read();
}
void tree(In<int> levels, In<unsigned> width) {
  if (levels == 0) return blocks();
  Job& job = Job::here();
  using Child = decltype(create(Place(), remote<&tree>, *levels, *width));
  std::vector<std::unique_ptr<Child>> children;
  for (unsigned i = 0; i < *width; ++i)
    children.emplace_back(
        new Child(create(job.place(i % job.processes()), remote<&tree>, levels - 1, *width)));
  for (auto& child : children) child->sync();
}
void count_blocked(Out<std::int64_t> count) { *count = blocked_here.load(); }

std::int64_t blocked_in_all(Job& job) {
  std::int64_t all = 0;
  for (unsigned process = 0; process < job.processes(); ++process) {
    std::int64_t count = 0;
    auto family = create(job.place(process), remote<&count_blocked>, count);
    family.sync();
    all += count;
  }
  return all;
}

// Conversations of this process; those that a message is about to close are waited for.
void count_open(Out<std::int64_t> count) {
  const bool served = Job::here().rank() != 0;
  auto* const exchange = static_cast<JobExchange*>(Exchange::here());
  for (int looks = 0; looks < 60000; ++looks) {
    *count = static_cast<std::int64_t>(exchange->open_calls());
    if (*count == (served ? 1 : 0)) return;
    exchange->poll();
    usleep(1000);
  }
}

int kill_of_many(Job& job) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr unsigned width = 4;
#else
  constexpr unsigned width = 10;
#endif
  constexpr std::int64_t leaves = std::int64_t{width} * width * width * width;
  auto all = create(job.place(1), remote<&tree>, 4, width);
  std::int64_t blocked = 0;
  for (int looks = 0; blocked < leaves && looks < 60000; ++looks) {
    blocked = blocked_in_all(job);
    usleep(1000);
  }
  EXPECT_HERE(blocked == leaves);
  all.kill();
  EXPECT_HERE(all.sync().reason == ExitReason::killed);
  EXPECT_HERE(blocked_in_all(job) == 0);
  // The one that counts is open itself, and process 0 has its own end.
  for (unsigned process = 0; process < job.processes(); ++process) {
    std::int64_t open = -1;
    auto family = create(job.place(process), remote<&count_open>, open);
    EXPECT_HERE(family.sync().done());
    EXPECT_HERE(open == (process == 0 ? 0 : 1));
  }
  return failures;
}

void kill_by(In<int> signal_number) {
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}
void exits(In<int> status) { std::_Exit(status); }
[[gnu::noinline]] int overflow(int depth) {
  volatile int frame[512];
  frame[511] = depth;
  return depth < 0 ? frame[0] : overflow(depth + 1) + frame[511];
}
void overflows(Out<int> result) {
  auto blocked = create([&] { *result = overflow(0); });
  blocked.sync();
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ENDS_BY_OVERFLOW ""  // as the sanitizer does
#else
#define ENDS_BY_OVERFLOW "was killed by signal 11"
#endif
int deaths(Job& job) {
  auto waiting = create(job.place(1), {.limit = unbounded}, remote<&runs_for_ever>);
  auto dying = create(job.place(1), remote<&kill_by>, SIGKILL);
  const std::string first = text_of(dying.sync());
  EXPECT_HERE(contains(first, "process 1 of the program was killed by signal 9"));
  EXPECT_HERE(contains(text_of(waiting.sync()), "killed by signal 9"));
  auto refused = create(job.place(1), remote<&nothing>);
  EXPECT_HERE(contains(text_of(refused.sync()), "process 1 of the program was killed"));
  auto other = create(job.place(2), remote<&exits>, 7);
  EXPECT_HERE(contains(text_of(other.sync()), "process 2 of the program ended with status 7"));
  int result = 0;
  auto deep = create(job.place(3), remote<&overflows>, result);
  EXPECT_HERE(contains(text_of(deep.sync()), "process 3 of the program " ENDS_BY_OVERFLOW));
  auto here = create(job.place(0), remote<&nothing>);
  EXPECT_HERE(here.sync().done());
  return failures;
}

// A process whose creator dies ends its families, and goes on.
int creator_dies(Job& job) {
  auto dying = create(job.place(1), remote<&waits_for_ever>, 2u);
  usleep(20000);
  auto killer = create(job.place(1), remote<&kill_by>, SIGKILL);
  EXPECT_HERE(contains(text_of(dying.sync()), "process 1"));
  EXPECT_HERE(contains(text_of(killer.sync()), "process 1"));
  unsigned rank = 77;
  auto other = create(job.place(2), remote<&rank_of>, rank);
  EXPECT_HERE(other.sync().done() && rank == 2);
  return failures;
}

int main_dies(Job& job) {
  auto waiting = create(job.place(1), {.limit = unbounded}, remote<&runs_for_ever>);
  raise(SIGKILL);
  return 1;
}

int breaks_itself(Job& job) {
  auto family = create(job.place(1 % job.processes()), remote<&nothing>);
  family.sync();
  break_family(9);
}
int throws_itself(Job&) { throw std::runtime_error("of the program"); }

struct Pair {
  int a;
  int b;
};
void of_pairs(InArray<Pair>) {}

int mistakes(Job& job) {
  const std::string which = std::getenv("MISTAKE");
  if (which == "no place") (void)job.place(99);
  if (which == "no exclusive place") (void)job.exclusive(99);
  if (which == "not allocated") {
    SharedArray<int> array(4);
    job.free(array.data() + 1);
  }
  if (which == "object") {
    auto family = create(job.place(1), [] {});
    family.sync();
  }
  if (which == "no form") {
    std::vector<Pair> pairs(3);
    auto family = create(job.place(1, Transport::stream), remote<&of_pairs>, pairs);
    family.sync();
  }
  if (which == "step") {
    auto family = create(job.place(1), {.limit = 3, .step = 0}, remote<&nothing>);
    family.sync();
  }
  return 0;
}

// A process that runs another program: a function of this name has another description there.
int other_program(Job& job) {
  class Bare final : public FamilyBase {
   public:
    Bare() : FamilyBase(nullptr) {}
    using FamilyBase::exit;
    using FamilyBase::join;
  };
  FunctionEntry other = Remote<&nothing>::entry();
  for (const int change : {0, 1}) {
    (change == 0 ? other.digest : other.id) += 1;
    Bare family;
    OpenCall call(family);
    family.creator = Worker::here();
    Exchange::here()->open(call, {.site = 1}, {.function = &other}, {});
    Exchange::here()->ask_sync(call, false);
    family.join(family.creator);
    EXPECT_HERE(contains(call.call->completion().text, "run the same program"));
  }
  Bare family;
  OpenCall call(family);
  family.creator = Worker::here();
  Exchange::here()->open(call, {.site = 1}, {.function = &Remote<&nothing>::entry(), .place = 17},
                         {});
  Exchange::here()->ask_sync(call, false);
  family.join(family.creator);
  EXPECT_HERE(contains(call.call->completion().text, "there is no place 17 in process 1"));
  (void)job;
  return failures;
}

int shared_memory(Job&) {
  std::vector<SharedArray<double>> arrays;
  try {
    for (;;) arrays.emplace_back(1 << 17);
  } catch (const std::bad_alloc&) {
  }
  EXPECT_HERE(arrays.size() >= 3);  // of 4 MiB
  const std::size_t before = arrays.size();
  arrays.clear();
  for (std::size_t i = 0; i < before; ++i) arrays.emplace_back(1 << 17);
  return failures;
}

// A thread that stops its process, until that is told to continue.
void process_of(Out<std::int64_t> process) { *process = getpid(); }
void stops() { raise(SIGSTOP); }
void double_all(InArray<std::int64_t> from, OutArray<std::int64_t> to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = 2 * from[i];
}
bool is_stopped(std::int64_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::size_t after = text.rfind(") ");
  return after != std::string::npos && text[after + 2] == 'T';
}

// Creates do not wait for the data of those before, though the other process takes none, and the
// rings are shorter than the data by far.
int consecutive(Job& job) {
  constexpr std::size_t n = 1 << 19;
  std::int64_t other = 0;
  EXPECT_HERE(create(job.place(1), remote<&process_of>, other).sync().done());
  for (const Transport way : {Transport::stream, Transport::buffer}) {
    std::vector<std::int64_t> from(n);
    std::iota(from.begin(), from.end(), 1);
    std::vector<std::int64_t> to(n, -1);
    auto stopping = create(job.place(1), remote<&stops>);
    while (!is_stopped(other)) usleep(100);
    std::atomic<bool> created{false};
    bool in_time = false;
    std::thread continues([&] {
      for (int naps = 0; !created && naps < 10000; ++naps) usleep(1000);
      in_time = created;
      ::kill(static_cast<pid_t>(other), SIGCONT);
    });
    auto large = create(job.place(1, way), remote<&double_all>, from, to);
    unsigned rank = 77;
    auto small = create(job.place(1), remote<&rank_of>, rank);
    created = true;
    continues.join();
    EXPECT_HERE(in_time);
    EXPECT_HERE(small.sync().done() && rank == 1);
    EXPECT_HERE(large.sync().done());
    EXPECT_HERE(stopping.sync().done());
    for (std::size_t i = 0; i < n; ++i) EXPECT_HERE(to[i] == 2 * from[i]);
  }
  return failures;
}

void is_busy(In<int> milliseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

// A process whose worker is busy does not sleep, and no create wakes it. On a loaded host its
// worker may begin late: one of many is enough. 0 or 1.
int told_in_each_of_many(Job& job) {
  constexpr int creates = 200;
  for (int i = 0; i < creates; ++i) {
    auto busy = create(job.place(1), remote<&is_busy>, 20);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    (void)RemotePoller::here()->has_woken();
    auto family = create(job.place(1), remote<&nothing>);
    const bool woken = RemotePoller::here()->has_woken();
    family.sync();
    busy.sync();
    if (!woken) return 0;
  }
  std::fprintf(stderr, "%d creates in turn have woken process 1, which was busy\n", creates);
  return 1;
}

// The message is told once, before the creator waits.
int wakes(Job& job) {
  constexpr int tries = 2000;
  for (int i = 0; i < tries; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    (void)RemotePoller::here()->has_woken();  // of the sync before
    auto family = create(job.place(1), remote<&nothing>);
    const bool woken = RemotePoller::here()->has_woken();
    const bool again = RemotePoller::here()->has_woken();
    family.sync();
    EXPECT_HERE(!again);
    if (woken) return failures + told_in_each_of_many(job);
  }
  std::fprintf(stderr, "process 1 has never slept in %d pauses\n", tries);
  return 1;
}

const testing::Parts parts{
    {"data", &data},           {"nested", &nested},        {"exclusive", &exclusive},
    {"ends", &ends},           {"many", &kill_of_many},    {"deaths", &deaths},
    {"main", &main_dies},      {"creator", &creator_dies}, {"mistakes", &mistakes},
    {"other", &other_program}, {"memory", &shared_memory}, {"break", &breaks_itself},
    {"throw", &throws_itself}, {"wakes", &wakes},          {"consecutive", &consecutive},
    {"assign", &assignments}};

// ---- The tests ----------------------------------------------------------------------------------

class Jobs : public testing::JobTest {};
INSTANTIATE_TEST_SUITE_P(On, Jobs, testing::machines(), testing::name_of);

TEST_P(Jobs, BringDataThereAndBack) {
  for (const int size : {1, 2, 4}) EXPECT_EQ(ran("data", size), 0) << size;
}
TEST_P(Jobs, BringBackWhatIsAssignedToParameters) {
  for (const int size : {1, 3}) EXPECT_EQ(ran("assign", size), 0) << size;
}
TEST_P(Jobs, Nest) {
  for (const int size : {1, 2, 4}) EXPECT_EQ(ran("nested", size), 0) << size;
}
TEST_P(Jobs, NestWithOneWorkerEach) {
  EXPECT_EQ(ran("nested", 3, {{"TOMBOLO_SVP_WORKERS", "1"}}), 0);
}
TEST_P(Jobs, HaveExclusivePlaces) { EXPECT_EQ(ran("exclusive", 3), 0); }
TEST_P(Jobs, TellHowFamiliesEnd) {
  for (const int size : {1, 3}) EXPECT_EQ(ran("ends", size), 0) << size;
}
TEST_P(Jobs, KillThousandsOfDescendants) { EXPECT_EQ(ran("many", 3), 0); }
TEST_P(Jobs, OutliveProcessesThatDie) {
  const auto [status, told] = said("deaths", 4, {{"TOMBOLO_SVP_WORKERS", "2"}});
  EXPECT_EQ(status, 0) << told;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_TRUE(contains(told, "the stack of a worker has overflowed"));
#endif
  EXPECT_EQ(ran("creator", 3), 0);
}
TEST_P(Jobs, EndWithTheirProgram) { EXPECT_EQ(ran("main", 4), 128 + SIGKILL); }
TEST_P(Jobs, EndWithTheValueOfABreak) {
  for (const int size : {1, 2}) EXPECT_EQ(ran("break", size), 9) << size;
}
TEST_P(Jobs, ThrowWhatTheirProgramThrows) { EXPECT_EQ(ran("throw", 2), 77); }
TEST_P(Jobs, RefuseFunctionsAndPlacesThatAreNotThere) { EXPECT_EQ(ran("other", 2), 0); }
TEST_P(Jobs, GiveBackSharedMemory) {
  EXPECT_EQ(ran("memory", 2, {{"TOMBOLO_SVP_MEMORY", "4MiB"}}), 0);
}
TEST_P(Jobs, CreateWithoutAWaitForEarlierData) {
  EXPECT_EQ(ran("consecutive", 2, {{"TOMBOLO_SVP_WORKERS", "1"}}), 0);
}
TEST_P(Jobs, KnowWhetherACreateHasWokenAnotherProcess) {
  EXPECT_EQ(ran("wakes", 2, {{"TOMBOLO_SVP_WORKERS", "1"}}), 0);
}
TEST_P(Jobs, StopAtMistakes) {
  for (const auto& [mistake, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"no place", "place: there is no process 99 of 2"},
           {"no exclusive place", "exclusive: there is no process 99 of 2"},
           {"not allocated", "shared memory that this process has not allocated is freed"},
           {"object", "create: at a place of another process, where a function object does not"},
           {"no form", "has an argument without a form in XDR, which transport stream needs"},
           {"step", "create: a family from 0 to 3 with step 0"}}) {
    const auto [status, told] = said("mistakes", 2, {{"MISTAKE", mistake}});
    EXPECT_EQ(status, 128 + SIGABRT) << mistake;
    EXPECT_TRUE(contains(told, sentence)) << mistake;
  }
}
TEST(JobsDeathTest, AreNotThereOutsideOfRun) {
  EXPECT_DEATH((void)Job::here(), "Job::here: outside of svp::run");
}
TEST_P(Jobs, StopAtSettingsThatCannotBe) {
  EXPECT_EQ(ran("data", 2, {{"TOMBOLO_SVP_TRANSPORT", "pigeon"}}), 1);
  EXPECT_EQ(ran("data", 2, {{"TOMBOLO_SVP_MEMORY", "much"}}), 1);
}

}  // namespace
}  // namespace tombolo::svp

int main(int argc, char** argv) {
  return tombolo::svp::testing::main_of(argc, argv, tombolo::svp::parts);
}
