// SPDX-License-Identifier: Apache-2.0
// Purpose: random nested programs over the processes of a job, with families at their default and
// exclusive places, channels, arrays, kills, breaks and failures, neither hang nor leave anything,
// and each family ends as a thread of it has said. This program plays the processes, too.
//
//   svp_remote_random_test [--first SEED] [--programs N] [--gtest_filter=...]
//
// N programs on each machine, with one worker in each process and with two; without SEED those of
// the day (svp/testing/random_choices.h).
// Thread safety: -
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/random.h"
#include "svp/api/include/tombolo/svp.hpp"
#include "svp/remote/exchange_on.h"
#include "svp/remote/testing/parts.h"
#include "svp/testing/random_choices.h"

namespace tombolo::svp {
namespace {

using testing::failures;
using testing::text_of;

testing::RandomChoices choices {  // NOLINT: main's
#if defined(__SANITIZE_ADDRESS__)
  .programs = 40
#else
  .programs = 250
#endif
};

// ---- In the processes ---------------------------------------------------------------------------

// Of this process.
std::atomic<std::int64_t> alive{0};         // objects of threads
std::atomic<std::int64_t> in_exclusive{0};  // families at its exclusive place
std::atomic<std::int64_t> mistaken{0};  // families that were not alone there, or ended otherwise
// Events of each kind: a test without some of them shows little.
std::atomic<std::int64_t> begun{0};
std::atomic<std::int64_t> exclusive_begun{0};
std::atomic<std::int64_t> broken{0};
std::atomic<std::int64_t> killed{0};
std::atomic<std::int64_t> failed{0};

struct Alive {
  explicit Alive(std::atomic<std::int64_t>& c = alive) : count(c) { ++count; }
  ~Alive() { --count; }
  std::atomic<std::int64_t>& count;
};

constexpr std::int64_t break_value(std::uint64_t family) {
  return 1000 + static_cast<std::int64_t>(family % 1000);
}
const std::string by_chance = "by chance";

void mistake(const char* sentence) {
  std::fprintf(stderr, "process %u: %s\n", Job::here().rank(), sentence);
  ++mistaken;
}
// Whether the family may have ended so.
Exit judged(const Exit& exit, std::uint64_t family) {
  switch (exit.reason) {
    case ExitReason::broken:
      ++broken;
      if (exit.value != break_value(family)) mistake("a value that no thread has broken with");
      break;
    case ExitReason::failed:
      ++failed;
      if (text_of(exit).find(by_chance) != 0) mistake(text_of(exit).c_str());
      break;
    case ExitReason::killed:
      ++killed;
      break;
    case ExitReason::done:
      break;
  }
  return exit;
}

void random_thread(Index i, In<std::uint64_t> family, In<int> levels, In<int> may_exclude);
void random_exclusive(In<std::uint64_t> family, In<int> levels);
void random_link(Index i, In<std::uint64_t> family, In<int> levels, Global<std::int64_t>& plus,
                 SharedEnd<std::int64_t>& sum);
void add_one(Index i, In<std::uint64_t> family, InOutArray<std::int64_t> numbers);
void waits(Index, Global<std::int64_t>& never, SharedEnd<std::int64_t>& end);
void waits_beyond(In<std::uint64_t> seed, In<int> levels);
void runs_for_ever(Index);

// A thread, which creates families and ends.
class RandomThread {
 public:
  // A circle of exclusive places would wait for ever: `may_exclude` is false below a family at one.
  RandomThread(std::uint64_t seed, std::uint64_t family, bool may_exclude)
      : random_(seed), family_(family), may_exclude_(may_exclude) {}

  void run(int levels) {
    const Alive here;
    ++begun;
    if (levels > 0)
      for (std::uint64_t n = random_.below(4); n != 0; --n) one_family(levels - 1);
    if (random_.one_in(25)) break_family(break_value(family_));
    if (random_.one_in(25)) throw std::runtime_error(by_chance);
  }

 private:
  Place somewhere() {
    const auto process = static_cast<unsigned>(random_.below(job_.processes()));
    return job_.place(process, static_cast<Transport>(random_.below(std::size(transport_names))));
  }
  Range some() {
    return {.limit = static_cast<Index>(random_.below(4)), .block = random_.below(3)};
  }
  auto one_at(const Place& place, const Range& range, std::uint64_t family, int levels) {
    return create(place, range, remote<&random_thread>, family, levels, may_exclude_ ? 1 : 0);
  }

  void one_family(int levels) {
    switch (random_.below(9)) {
      case 0:
        return two_families(levels);
      case 1:
      case 2:
        if (may_exclude_) return in_exclusive_place(levels);
        break;
      case 3:
        return chain(levels);
      case 4:
        return killed_while_blocked(levels);
      case 5:
        if (random_.one_in(4)) return killed_while_running();
        break;
      case 6:
        return with_array(std::vector<std::int64_t>(some().limit));
      case 7:
        return with_array(SharedArray<std::int64_t>(some().limit));
      default:
        break;
    }
    const std::uint64_t family = random_.next();
    (void)end(one_at(somewhere(), some(), family, levels), family);
  }

  template <class F>
  Exit end(F&& family, std::uint64_t number) {
    if (random_.one_in(8)) family.kill();
    if (random_.one_in(30)) throw std::runtime_error(by_chance + ", with a family not synced");
    const Exit exit = judged(family.sync(), number);
    if (random_.one_in(2)) exit.rethrow();
    return exit;
  }
  void two_families(int levels) {
    const std::uint64_t one = random_.next();
    const std::uint64_t two = random_.next();
    auto first = one_at(somewhere(), some(), one, levels);
    auto second = one_at(somewhere(), some(), two, levels);
    if (random_.one_in(4)) first.kill();
    (void)end(second, two);
    (void)end(first, one);
  }
  void in_exclusive_place(int levels) {
    const Place place = job_.exclusive(static_cast<unsigned>(random_.below(job_.processes())));
    const std::uint64_t one = random_.next();
    const std::uint64_t two = random_.next();
    auto first = create(place, remote<&random_exclusive>, one, levels);
    if (random_.one_in(2)) return (void)end(first, one);
    auto second = create(place, remote<&random_exclusive>, two, levels);
    if (random_.one_in(4)) first.kill();
    (void)end(second, two);
    (void)end(first, one);
  }
  void chain(int levels) {
    const std::uint64_t number = random_.next();
    const Range range = some();
    Global<std::int64_t> plus;
    Shared<std::int64_t> sum;
    const bool early = random_.one_in(2);
    if (early) sum.write(5);
    auto family = create(somewhere(), range, remote<&random_link>, number, levels, plus, sum);
    if (random_.one_in(8)) {
      family.kill();
      return (void)judged(family.sync(), number);
    }
    if (!early) sum.write(5);
    one_child();
    plus.write(10);
    if (random_.one_in(3)) look_early(sum);
    const Exit exit = end(family, number);
    if (exit.done() && sum.read() != 5 + 11 * range.limit) mistake("a sum that is wrong");
  }
  static void look_early(Shared<std::int64_t>& sum) try {
    (void)sum.read();
  } catch (const NoValue&) {
  }
  // Threads that wait for a value which does not come: in the family, or in one below it.
  void killed_while_blocked(int levels) {
    if (random_.one_in(2))
      return kill_blocked(create(somewhere(), remote<&waits_beyond>, random_.next(),
                                 static_cast<int>(random_.below(3))),
                          levels);
    Global<std::int64_t> never;
    Shared<std::int64_t> last(0);
    kill_blocked(create(somewhere(), {.limit = 2}, remote<&waits>, never, last), levels);
  }
  template <class F>
  void kill_blocked(F&& family, int levels) {
    if (random_.one_in(2)) {
      const std::uint64_t number = random_.next();
      (void)end(one_at(somewhere(), some(), number, levels), number);
    }
    family.kill();
    if (judged(family.sync(), 0).reason != ExitReason::killed) mistake("not killed in a read");
  }
  // As long as they run they have a worker: their creator waits for nothing before the kill.
  void killed_while_running() {
    auto family = create(somewhere(), {.limit = unbounded}, remote<&runs_for_ever>);
    family.kill();
    if (judged(family.sync(), 0).reason != ExitReason::killed) mistake("not killed in a loop");
  }
  template <class Array>
  void with_array(Array numbers) {
    const std::uint64_t number = random_.next();
    const std::span<std::int64_t> all(numbers);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    const Exit exit = end(create(somewhere(), {.limit = static_cast<Index>(all.size())},
                                 remote<&add_one>, number, all),
                          number);
    if (!exit.done()) return;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i] != static_cast<std::int64_t>(i) + 1) mistake("an array that is wrong");
  }
  void one_child() {
    const std::uint64_t number = random_.next();
    (void)end(one_at(somewhere(), {}, number, 0), number);
  }

  Job& job_ = Job::here();
  Random random_;
  const std::uint64_t family_;
  const bool may_exclude_;
};

void random_thread(Index i, In<std::uint64_t> family, In<int> levels, In<int> may_exclude) {
  RandomThread(*family + static_cast<std::uint64_t>(i) * 977, family, may_exclude != 0).run(levels);
}
void random_exclusive(In<std::uint64_t> family, In<int> levels) {
  const Alive here(in_exclusive);
  ++exclusive_begun;
  const auto look = [] {
    if (in_exclusive.load() != 1) mistake("two families at an exclusive place");
  };
  look();
  RandomThread(family, family, false).run(levels);
  look();
}
void random_link(Index i, In<std::uint64_t> family, In<int> levels, Global<std::int64_t>& plus,
                 SharedEnd<std::int64_t>& sum) {
  const std::int64_t before = sum.read() + plus.read();
  RandomThread(*family + static_cast<std::uint64_t>(i) * 977, family, false).run(levels);
  sum.write(before + 1);
}
void add_one(Index i, In<std::uint64_t> family, InOutArray<std::int64_t> numbers) {
  const auto n = static_cast<std::size_t>(i);
  numbers[n] += 1;
  RandomThread(*family + n, family, false).run(0);
}
void waits(Index, Global<std::int64_t>& never, SharedEnd<std::int64_t>& end) {
  const Alive here;
  never.read();
  end.write(1);
}
// A kill reaches it by way of the creators, which wait.
void waits_beyond(In<std::uint64_t> seed, In<int> levels) {
  const Alive here;
  Random random(seed);
  Job& job = Job::here();
  const Place place = job.place(static_cast<unsigned>(random.below(job.processes())));
  if (levels != 0) {
    create(place, remote<&waits_beyond>, random.next(), *levels - 1).sync();
    return;
  }
  Global<std::int64_t> never;
  Shared<std::int64_t> last(0);
  auto family = create(place, {.limit = 2}, remote<&waits>, never, last);
  (void)last.read();
  family.sync();
}
void runs_for_ever(Index) {
  const Alive here;
  checkpoint();
}

// Objects of threads, and blocked threads, that are left in this process, but for this family.
void count_left(Out<std::int64_t> left, Out<std::int64_t> mistakes) {
  *left = alive.load() + in_exclusive.load() +
          static_cast<std::int64_t>(Pool::blocked_threads().load());
  *mistakes = mistaken.load();
}
// Calls that are open and families that are served; those that a message is about to end are waited
// for.
void count_open(Out<std::int64_t> count) {
  const std::int64_t own = Job::here().rank() != 0 ? 1 : 0;
  auto* const exchange = static_cast<JobExchange*>(Exchange::here());
  for (int looks = 0; looks < 5000; ++looks) {
    *count = static_cast<std::int64_t>(exchange->open_calls()) - own;
    if (*count == 0) return;
    exchange->poll();
    usleep(1000);
  }
}
void count_events(Out<std::int64_t> threads, OutArray<std::int64_t> events) {
  *threads = begun.load();
  events[0] = exclusive_begun.load();
  events[1] = broken.load();
  events[2] = killed.load();
  events[3] = failed.load();
}

// ---- The program --------------------------------------------------------------------------------

std::uint64_t number_of(const char* variable) { return *number_in(std::getenv(variable)); }

void expect_nothing_left(Job& job, std::uint64_t seed) {
  for (unsigned process = 0; process < job.processes(); ++process) {
    std::int64_t left = -1;
    std::int64_t mistakes = -1;
    auto family = create(job.place(process), remote<&count_left>, left, mistakes);
    EXPECT_HERE(family.sync().done());
    if (left == 0 && mistakes == 0) continue;
    std::fprintf(stderr, "process %u: %ld left, %ld mistakes; again: --first %lu --programs 1\n",
                 process, static_cast<long>(left), static_cast<long>(mistakes), seed);
    ++failures;
  }
}
void expect_none_open(Job& job) {
  for (unsigned process = 0; process < job.processes(); ++process) {
    std::int64_t open = -1;
    auto family = create(job.place(process), remote<&count_open>, open);
    EXPECT_HERE(family.sync().done() && open == 0);
    if (failures != 0) return;
  }
}
void expect_all_happened(Job& job, std::int64_t programs) {
  std::int64_t all_threads = 0;
  std::vector<std::int64_t> all(4);
  for (unsigned process = 0; process < job.processes(); ++process) {
    std::int64_t threads = 0;
    std::vector<std::int64_t> events(4);
    auto family = create(job.place(process), remote<&count_events>, threads, events);
    EXPECT_HERE(family.sync().done() && threads > 0);
    all_threads += threads;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += events[i];
  }
  EXPECT_HERE(all_threads > 10 * programs);
  for (const std::int64_t events : all) EXPECT_HERE(events > programs / 4);
}

int random_programs(Job& job) {
  const std::uint64_t first = number_of("FIRST");
  const std::uint64_t programs = number_of("PROGRAMS");
  for (std::uint64_t seed = first; seed < first + programs && failures == 0; ++seed) {
    testing::say_seed_at_alarm(seed);
    const std::uint64_t number = Random(seed).next();
    auto family = create(job.place(static_cast<unsigned>(seed % job.processes())), {.limit = 2},
                         remote<&random_thread>, number, 5, 1);
    if (seed % 16 == 0) family.kill();
    (void)judged(family.sync(), number);
    expect_nothing_left(job, seed);
    if (seed % 32 == 0) expect_none_open(job);
  }
  expect_none_open(job);
  if (programs >= 100) expect_all_happened(job, static_cast<std::int64_t>(programs));
  alarm(0);
  return failures;
}

const testing::Parts parts{{"random", &random_programs}};

// ---- The tests ----------------------------------------------------------------------------------

class RandomJobs : public testing::JobTest {};
INSTANTIATE_TEST_SUITE_P(On, RandomJobs, testing::machines(), testing::name_of);

TEST_P(RandomJobs, EndAndLeaveNothing) {
  choices.say();
  for (const auto& [size, workers] : {std::pair(3, "1"), std::pair(2, "2")})
    EXPECT_EQ(ran("random", size,
                  {{"TOMBOLO_SVP_WORKERS", workers},
                   {"FIRST", std::to_string(choices.first)},
                   {"PROGRAMS", std::to_string(choices.programs)}}),
              0)
        << size << " processes with " << workers << " workers each, seeds from " << choices.first;
}

}  // namespace
}  // namespace tombolo::svp

int main(int argc, char** argv) {
  namespace svp = tombolo::svp;
  return svp::testing::main_of(argc, argv, svp::parts, svp::choices);
}
