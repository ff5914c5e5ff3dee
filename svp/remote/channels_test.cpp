// SPDX-License-Identifier: Apache-2.0
// Purpose: tests channels of families in other processes of this host: values of all sizes, early
// and late, that are waited for or not; ends, deaths and mistakes; random programs.
//
//   svp_remote_channels_test [--first SEED] [--programs N] [--gtest_filter=...]
//
// N random programs on each machine; without SEED those of the day (svp/testing/random_choices.h).
// Thread safety: -
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/options.h"
#include "base/random.h"
#include "svp/api/include/tombolo/svp.hpp"
#include "svp/remote/testing/parts.h"
#include "svp/testing/random_choices.h"

namespace tombolo::svp {
namespace {

using testing::contains;
using testing::failures;
using testing::text_of;

testing::RandomChoices choices {  // NOLINT: main's
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  .programs = 30
#else
  .programs = 400
#endif
};

void add_up(Index i, In<std::int64_t> by, Global<std::int64_t>& start,
            SharedEnd<std::int64_t>& sum) {
  sum.write(sum.read() + by * i + start.read());
}
using Large = std::array<std::int64_t, 5000>;  // several messages
void take_large(Index i, OutArray<std::int64_t> sums, Global<Large>& large) {
  const Large& numbers = large.read();
  sums[static_cast<std::size_t>(i)] = std::accumulate(numbers.begin(), numbers.end(), i);
}
void turn_large(SharedEnd<Large>& large) {
  Large numbers = large.read();
  std::reverse(numbers.begin(), numbers.end());
  large.write(numbers);
}
// As add_up, but each thread has a family at the next process, which goes on with the sum.
void add_up_by_others(Index i, In<int> levels, SharedEnd<std::int64_t>& sum) {
  if (levels == 0) return sum.write(sum.read() + i);
  Job& job = Job::here();
  Shared<std::int64_t> part;
  auto family = create(job.place((job.rank() + 1) % job.processes()), {.limit = 3},
                       remote<&add_up_by_others>, *levels - 1, part);
  part.write(sum.read());
  sum.write(part.read());
  family.sync().rethrow();
}

int channels(Job& job) {
  for (unsigned process = 0; process < job.processes(); ++process)
    for (const Transport way : {Transport::best, Transport::stream})
      for (const Index n : {0, 1, 3})
        for (int when = 0; when < 4; ++when) {
          const bool early = (when & 1) != 0;
          const bool reads_before_sync = (when & 2) != 0;
          Global<std::int64_t> start;
          Shared<std::int64_t> sum;
          if (early) start.write(1000);
          if (early) sum.write(5);
          auto family = create(job.place(process, way), {.limit = n}, remote<&add_up>,
                               std::int64_t{10}, start, sum);
          if (!early) sum.write(5);
          if (!early) start.write(1000);
          const std::int64_t expected = 5 + 10 * (n * (n - 1) / 2) + 1000 * n;
          if (reads_before_sync) EXPECT_HERE(sum.read() == expected);
          EXPECT_HERE(family.sync().done());
          EXPECT_HERE(sum.read() == expected);
        }
  for (unsigned process = 0; process < job.processes(); ++process)
    for (const Transport way : {Transport::best, Transport::stream}) {
      Large numbers;
      std::iota(numbers.begin(), numbers.end(), 0);
      std::vector<std::int64_t> sums(100);
      Global<Large> large;
      auto readers =
          create(job.place(process, way), {.limit = 100}, remote<&take_large>, sums, large);
      Shared<Large> there;
      auto turner = create(job.place(process, way), remote<&turn_large>, there);
      usleep(500);
      large.write(numbers);
      there.write(numbers);
      EXPECT_HERE(readers.sync().done());
      for (Index i = 0; i < 100; ++i)
        EXPECT_HERE(sums[static_cast<std::size_t>(i)] == 12497500 + i);
      EXPECT_HERE(turner.sync().done() && there.read()[0] == 4999 && there.read()[4999] == 0);
    }
  Shared<std::int64_t> sum(0);
  auto nested =
      create(job.place(job.processes() - 1), {.limit = 3}, remote<&add_up_by_others>, 3, sum);
  EXPECT_HERE(sum.read() == 81);
  EXPECT_HERE(nested.sync().done());
  // In the order of an exclusive place, whose second family waits for the first.
  Shared<std::int64_t> one;
  Shared<std::int64_t> two(1);
  Global<std::int64_t> none(0);
  Global<std::int64_t> none_too(0);
  auto first =
      create(job.exclusive(job.processes() - 1), remote<&add_up>, std::int64_t{0}, none, one);
  auto second =
      create(job.exclusive(job.processes() - 1), remote<&add_up>, std::int64_t{0}, none_too, two);
  one.write(2);
  EXPECT_HERE(two.read() == 1 && one.read() == 2);
  EXPECT_HERE(second.sync().done() && first.sync().done());
  return failures;
}

std::atomic<std::int64_t> blocked_here{0};
struct Alive {
  Alive() { ++blocked_here; }
  ~Alive() { --blocked_here; }
};
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
void kill_by(In<int> signal_number) {
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void reads_for_ever(Index, Global<std::int64_t>& never, SharedEnd<std::int64_t>& end) {
  const Alive alive;
  never.read();
  end.write(1);
}
void breaks_before(Index i, SharedEnd<std::int64_t>& end) {
  if (i == 1) break_family(8);
  end.write(end.read() + 1);
}
void fails_before(SharedEnd<std::int64_t>&) { throw std::runtime_error("without a write"); }
void only_writes(SharedEnd<std::int64_t>& end) { end.write(7); }
bool has_no_value(Shared<std::int64_t>& channel) try {
  channel.read();
  return false;
} catch (const NoValue&) {
  return true;
}

int ends_of_channels(Job& job) {
  for (unsigned process = 0; process < job.processes(); ++process) {
    Global<std::int64_t> never;
    Shared<std::int64_t> end(0);
    auto blocked = create(job.place(process), {.limit = 3}, remote<&reads_for_ever>, never, end);
    auto killer = create([&] {
      usleep(2000);
      blocked.kill();
    });
    EXPECT_HERE(has_no_value(end));
    EXPECT_HERE(blocked.sync().reason == ExitReason::killed);
    killer.sync();
    Shared<std::int64_t> broken_end(0);
    auto broken = create(job.place(process), {.limit = 5}, remote<&breaks_before>, broken_end);
    EXPECT_HERE(has_no_value(broken_end));
    const Exit exit = broken.sync();
    EXPECT_HERE(exit.reason == ExitReason::broken && exit.value == 8);
    Shared<std::int64_t> failed_end(0);
    auto failed = create(job.place(process), remote<&fails_before>, failed_end);
    EXPECT_HERE(contains(text_of(failed.sync()), "without a write"));
    EXPECT_HERE(has_no_value(failed_end));
    // The parent writes nothing, and nothing is read.
    Shared<std::int64_t> unread;
    auto writer = create(job.place(process), remote<&only_writes>, unread);
    EXPECT_HERE(writer.sync().done() && unread.read() == 7);
    // A creator that is stopped while it waits for the last value.
    auto outer = create([&] {
      Global<std::int64_t> none;
      Shared<std::int64_t> last(0);
      auto inner = create(job.place(process), {.limit = 2}, remote<&reads_for_ever>, none, last);
      last.read();
    });
    usleep(2000);
    outer.kill();
    EXPECT_HERE(outer.sync().reason == ExitReason::killed);
  }
  EXPECT_HERE(blocked_in_all(job) == 0);
  return failures;
}

// A process that dies while its family waits for a value, and the creator for another one.
int death_of_a_reader(Job& job) {
  Global<std::int64_t> never;
  Shared<std::int64_t> end(0);
  auto waiting = create(job.place(1), remote<&reads_for_ever>, never, end);
  auto killer = create([&] {
    auto dying = create(job.place(1), remote<&kill_by>, SIGKILL);
    dying.sync();
  });
  EXPECT_HERE(has_no_value(end));
  never.write(1);
  EXPECT_HERE(contains(text_of(waiting.sync()), "process 1 of the program was killed by signal 9"));
  killer.sync();
  Shared<std::int64_t> refused(0);
  auto late = create(job.place(1), remote<&only_writes>, refused);
  EXPECT_HERE(has_no_value(refused));
  EXPECT_HERE(contains(text_of(late.sync()), "process 1 of the program was killed"));
  return failures;
}

// Families at random places whose threads have families of their own; the sum is known.
std::int64_t sum_of(std::uint64_t seed, int levels) {
  Random random(seed);
  const auto threads = static_cast<Index>(random.below(4));
  std::int64_t sum = 0;
  for (Index i = 0; i < threads; ++i)
    sum +=
        i + 100 + (levels == 0 ? 0 : sum_of(seed * 31 + static_cast<std::uint64_t>(i), levels - 1));
  return sum;
}
void random_threads(Index i, In<std::uint64_t> seed, In<int> levels, Global<std::int64_t>& plus,
                    SharedEnd<std::int64_t>& sum);
std::int64_t random_family(std::uint64_t seed, int levels, std::int64_t before) {
  Random random(seed);
  Job& job = Job::here();
  const Range range{.limit = static_cast<Index>(random.below(4))};
  random = Random(seed + (std::uint64_t{1} << 40));
  const unsigned process = static_cast<unsigned>(random.below(job.processes()));
  const auto way = static_cast<Transport>(random.below(std::size(transport_names)));
  Global<std::int64_t> plus;
  Shared<std::int64_t> sum;
  const bool early = random.one_in(2);
  if (early) sum.write(before);
  auto family =
      create(job.place(process, way), range, remote<&random_threads>, seed, levels, plus, sum);
  if (!early) sum.write(before);
  if (random.one_in(3)) usleep(100);
  if (random.one_in(12)) {
    family.kill();
    if (random.one_in(2)) plus.write(100);
    const Exit exit = family.sync();
    if (exit.done() && range.limit > 0) (void)sum.read();
    return before + sum_of(seed, levels);  // of the whole program, as if it had run
  }
  plus.write(100);
  if (random.one_in(2)) (void)sum.read();
  const Exit exit = family.sync();
  exit.rethrow();
  return sum.read();
}
void random_threads(Index i, In<std::uint64_t> seed, In<int> levels, Global<std::int64_t>& plus,
                    SharedEnd<std::int64_t>& sum) {
  const std::int64_t before = sum.read() + i + plus.read();
  sum.write(levels == 0
                ? before
                : random_family(*seed * 31 + static_cast<std::uint64_t>(i), *levels - 1, before));
}

int random_channels(Job& job) {
  const std::uint64_t first = number_in(std::getenv("FIRST")).value();
  const std::uint64_t programs = number_in(std::getenv("PROGRAMS")).value();
  (void)job;
  for (std::uint64_t seed = first; seed < first + programs && failures == 0; ++seed) {
    testing::say_seed_at_alarm(seed);
    const std::uint64_t number = Random(seed).next();
    EXPECT_HERE(random_family(number, 2, 3) == 3 + sum_of(number, 2));
    if (failures != 0) std::fprintf(stderr, "again: --first %lu --programs 1\n", seed);
  }
  alarm(0);
  return failures;
}

struct Pair {
  int a;
  int b;
};
void of_a_pair(Global<Pair>&) {}
void reads_nothing(Global<std::int64_t>&) {}
void reads_global(Global<std::int64_t>& value) { value.read(); }
void writes_twice(SharedEnd<std::int64_t>& end) {
  end.write(1);
  end.write(2);
}
void does_not_write(SharedEnd<std::int64_t>&) {}

int mistakes(Job& job) {
  const std::string which = std::getenv("MISTAKE");
  Global<std::int64_t> global;
  Shared<std::int64_t> shared(0);
  if (which == "second write") {
    auto family = create(job.place(1), remote<&reads_global>, global);
    global.write(1);
    global.write(2);
  }
  if (which == "late write") {
    auto family = create(job.place(1), remote<&reads_nothing>, global);
    family.sync();
    global.write(1);
  }
  if (which == "no last write") {
    auto family = create(job.place(1), remote<&does_not_write>, shared);
    shared.read();
  }
  if (which == "two families") {
    auto family = create(job.place(1), remote<&only_writes>, shared);
    auto other = create(job.place(1), remote<&only_writes>, shared);
  }
  if (which == "no form of a value") {
    Global<Pair> pair;
    auto family = create(job.place(1, Transport::stream), remote<&of_a_pair>, pair);
  }
  return 0;
}
// Those of a thread end its process.
int mistakes_there(Job& job) {
  Global<std::int64_t> unwritten;
  auto reader = create(job.place(1), remote<&reads_global>, unwritten);
  EXPECT_HERE(contains(text_of(reader.sync()), "process 1 of the program was killed by signal 6"));
  Shared<std::int64_t> twice(0);
  auto writer = create(job.place(2), remote<&writes_twice>, twice);
  EXPECT_HERE(contains(text_of(writer.sync()), "process 2 of the program was killed by signal 6"));
  return failures;
}

const testing::Parts parts{{"channels", &channels},        {"ends", &ends_of_channels},
                           {"reader", &death_of_a_reader}, {"random", &random_channels},
                           {"mistakes", &mistakes},        {"mistakes there", &mistakes_there}};

// ---- The tests ----------------------------------------------------------------------------------

class RemoteChannels : public testing::JobTest {};
INSTANTIATE_TEST_SUITE_P(On, RemoteChannels, testing::machines(), testing::name_of);

TEST_P(RemoteChannels, BringValuesThereAndBack) {
  for (const int size : {1, 3}) EXPECT_EQ(ran("channels", size), 0) << size;
  EXPECT_EQ(ran("channels", 2, {{"TOMBOLO_SVP_WORKERS", "1"}}), 0);
}
TEST_P(RemoteChannels, FreeThreadsThatWait) {
  for (const int size : {1, 2}) EXPECT_EQ(ran("ends", size), 0) << size;
  EXPECT_EQ(ran("reader", 2), 0);
}
TEST_P(RemoteChannels, BringThoseOfRandomPrograms) {
  choices.say();
  EXPECT_EQ(ran("random", 3,
                {{"FIRST", std::to_string(choices.first)},
                 {"PROGRAMS", std::to_string(choices.programs)}}),
            0)
      << "seeds from " << choices.first;
}
TEST_P(RemoteChannels, StopAtMistakes) {
  for (const auto& [mistake, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"second write", "write: a global channel was written before, or its family was synced"},
           {"late write", "write: a global channel was written before, or its family was synced"},
           {"no last write", "read: the last thread ended without a write to this shared channel"},
           {"two families", "create: a channel that belongs to another family"},
           {"no form of a value",
            "has a channel without a form in XDR, which transport stream needs"}}) {
    const auto [status, told] = said("mistakes", 2, {{"MISTAKE", mistake}});
    EXPECT_EQ(status, 128 + SIGABRT) << mistake;
    EXPECT_TRUE(contains(told, sentence)) << mistake;
  }
  const auto [status, told] = said("mistakes there", 3);
  EXPECT_EQ(status, 0) << told;
  for (const char* const sentence :
       {"read: the parent synced without a write to this global channel",
        "write: thread 0 writes to a shared channel a second time"})
    EXPECT_TRUE(contains(told, sentence));
}

}  // namespace
}  // namespace tombolo::svp

int main(int argc, char** argv) {
  namespace svp = tombolo::svp;
  return svp::testing::main_of(argc, argv, svp::parts, svp::choices);
}
