// SPDX-License-Identifier: Apache-2.0
#include "experiments/common/rckmpi_series.h"

#include <cstring>

#include "base/random.h"
#include "baselines/ircce.h"
#include "baselines/rckmpi_windows.h"
#include "experiments/common/messages_job.h"

namespace tombolo::experiments {
namespace {

using baselines::Ircce;
using baselines::LockKind;
using baselines::LockRequests;
using baselines::Place;
using baselines::Rcce;
using baselines::Rckmpi;
using baselines::RckmpiWindow;
using baselines::Request;
using scc::Cpu;
using simulator::CoreId;
using simulator::Duration;
using simulator::Time;

constexpr double megabyte = 1e6;  // OSU's
constexpr double mebibyte = 1 << 20;

scc::JobShape shape_of(std::uint32_t processes) {
  scc::JobShape shape;
  shape.processes = processes;
  return shape;
}

// Runs program(mpi) in so many processes, process n on core n.
template <class Program>
Status run_rckmpi(const Context& context, Recorder& recorder, std::uint32_t processes,
                  Program&& program) {
  return experiments::run_rckmpi(context, recorder, shape_of(processes),
                                 [&](Rckmpi& mpi, const machine::Attachment&) { program(mpi); });
}

template <class Call>
double timed(Rckmpi& mpi, Call&& call) {
  const Time begin = mpi.cpu().now();
  call();
  return microseconds(mpi.cpu().now() - begin);
}

std::vector<std::uint32_t> processes_up_to(const Context& context,
                                           std::vector<std::uint32_t> numbers) {
  std::erase_if(numbers, [&](std::uint32_t n) { return n > context.chip.cores(); });
  return numbers;
}

// ---- gats: 000 section 3.5.5 --------------------------------------------------------------------

Status gats(const Context& context, Recorder& recorder, std::uint32_t targets) {
  const int iterations = context.repetitions(1001, 101);
  std::vector<double> start, complete, post, wait;
  TOMBOLO_TRY(run_rckmpi(context, recorder, targets + 1, [&](Rckmpi& mpi) {
    RckmpiWindow window(mpi, mpi.memory().allocate(64), 64);
    const std::uint32_t origins[] = {0};
    std::vector<std::uint32_t> others;
    for (std::uint32_t rank = 1; rank <= targets; ++rank) others.push_back(rank);
    Progress progress(recorder);
    for (int i = 0; i < iterations; ++i) {
      if (mpi.rank() == 0) {
        start.push_back(timed(mpi, [&] { window.start(others); }));
        complete.push_back(timed(mpi, [&] { window.complete(); }));
        progress.at(double(i + 1) / iterations);
      } else {
        post.push_back(timed(mpi, [&] { window.post(origins); }));
        wait.push_back(timed(mpi, [&] { window.wait(); }));
      }
    }
    window.free();
  }));
  const auto sum = [](const std::vector<double>& a, const std::vector<double>& b) {
    return quartiles(a).median + quartiles(b).median;
  };
  recorder.row({"origin/rckmpi", double(targets), sum(start, complete), "us", {}, {}, {}});
  recorder.row({"target/rckmpi", double(targets), sum(post, wait), "us", {}, {}, {}});
  return {};
}

// ---- passive-target: 001 section 6.2 ------------------------------------------------------------

struct Mix {
  const char* name;
  unsigned exclusive_of_two;  // of two locks, so many are exclusive
};
constexpr Mix mixes[] = {{"shared", 0}, {"mixed", 1}, {"exclusive", 2}};

Status passive_target(const Context& context, Recorder& recorder, const Mix& mix,
                      LockRequests requests, std::uint32_t processes) {
  const int pairs = context.repetitions(1000, 50);
  std::vector<double> samples;
  TOMBOLO_TRY(run_rckmpi(context, recorder, processes, [&](Rckmpi& mpi) {
    RckmpiWindow window(mpi, mpi.memory().allocate(64), 64, requests);
    Random random = Random::stream(context.seed, mpi.rank());
    mpi.barrier();
    Progress progress(recorder);
    for (int i = 0; i < pairs; ++i) {
      const auto target = static_cast<std::uint32_t>(random.below(processes));
      const LockKind kind =
          random.below(2) < mix.exclusive_of_two ? LockKind::exclusive : LockKind::shared;
      samples.push_back(timed(mpi, [&] {
        window.lock(kind, target);
        window.unlock(target);
      }));
      if (mpi.rank() == 0) progress.at(double(i + 1) / pairs);
    }
    window.free();  // a process that is done still answers the others
  }));
  Row row = row_of(
      fmt::format("{}/rckmpi{}", mix.name, requests == LockRequests::immediate ? "-immediate" : ""),
      processes, samples, "us");
  if (requests == LockRequests::immediate && mix.exclusive_of_two == 1 && processes > 2)
    row.note = "the paper's deadlocked here";
  recorder.row(row);
  return {};
}

// ---- osu: 000 sections 4.1.2 and 4.4.3 ----------------------------------------------------------

constexpr std::uint64_t largest = 1 << 20;
constexpr std::uint64_t large = 8192;  // OSU's: fewer repetitions from here on
constexpr int sends = 64;              // OSU's windows of messages
constexpr int put_count = 32;
constexpr std::uint32_t first[] = {0};
constexpr std::uint32_t second[] = {1};

struct Repetitions {
  int warm_up;
  int measured;
};

// Times are virtual, and repeat: as many as fill the caches as far as they will be.
Repetitions osu_repetitions(const Context& context, std::uint64_t bytes, bool bandwidth) {
  if (bandwidth && bytes > 65'536) return {1, 1};
  if (bytes > large || context.quick) return {2, context.repetitions(10, 3)};
  return {25, 50};
}

// A source that was written.
Place source(Rckmpi& mpi, std::uint64_t bytes) {
  const Place place = mpi.memory().allocate(bytes);
  for (std::uint64_t i = 0; i < bytes; ++i) place.host[i] = static_cast<std::byte>(i + mpi.rank());
  touch_write(mpi.cpu(), place, bytes);
  return place;
}

// The bytes that a process receives in a repetition.
struct Received {
  Place place;
  std::uint64_t bytes = 0;
};

// Runs `step` and returns the time of one repetition on rank 0, in microseconds. After each,
// outside of that time, the process reads the bytes received, which brings them into the caches
// (decision 0013). `apart`: with a barrier between them, since rank 1 is not done with that when
// rank 0 goes on.
template <class Step>
double repeat(Rckmpi& mpi, Repetitions times, Received received, bool apart, Step&& step) {
  Duration measured;
  for (int i = -times.warm_up; i < times.measured; ++i) {
    if (apart) mpi.barrier();
    const Time begin = mpi.cpu().now();
    step();
    if (i >= 0) measured += mpi.cpu().now() - begin;
    touch_read(mpi.cpu(), received.place, received.bytes);
  }
  return microseconds(measured) / times.measured;
}

Status two_sided_latency(const Context& context, Recorder& recorder, std::uint64_t bytes) {
  double us = 0;
  TOMBOLO_TRY(run_rckmpi(context, recorder, 2, [&](Rckmpi& mpi) {
    const Place out = source(mpi, bytes);
    const Place in = mpi.memory().allocate(bytes);
    const double round_trip =
        repeat(mpi, osu_repetitions(context, bytes, false), {in, bytes}, false, [&] {
          if (mpi.rank() == 0) mpi.send(out, bytes, 1, 1);
          mpi.recv(in, bytes, static_cast<std::int32_t>(1 - mpi.rank()), 1);
          if (mpi.rank() == 1) mpi.send(out, bytes, 0, 1);
        });
    if (mpi.rank() == 0) us = round_trip / 2;
  }));
  recorder.row({"latency/rckmpi-two-sided", double(bytes), us, "us", {}, {}, {}});
  return {};
}

Status two_sided_bandwidth(const Context& context, Recorder& recorder, std::uint64_t bytes) {
  double us = 0;
  TOMBOLO_TRY(run_rckmpi(context, recorder, 2, [&](Rckmpi& mpi) {
    const Place out = source(mpi, bytes);
    const Place in = mpi.memory().allocate(bytes);
    const Received received = {in, mpi.rank() == 1 ? bytes : 0};
    const double window = repeat(mpi, osu_repetitions(context, bytes, true), received, true, [&] {
      std::vector<Request> requests;
      for (int i = 0; i < sends; ++i)
        requests.push_back(mpi.rank() == 0 ? mpi.isend(out, bytes, 1, 1)
                                           : mpi.irecv(in, bytes, 0, 1));
      mpi.wait_all(requests);
      if (mpi.rank() == 0) mpi.recv(in, 0, 1, 2);
      if (mpi.rank() == 1) mpi.send(in, 0, 0, 2);
    });
    if (mpi.rank() == 0) us = window;
  }));
  recorder.row({"bandwidth/rckmpi-two-sided",
                double(bytes),
                sends * double(bytes) / us * 1e6 / megabyte,
                "MB/s",
                {},
                {},
                {}});
  return {};
}

Status one_sided_latency(const Context& context, Recorder& recorder, std::uint64_t bytes) {
  double us = 0;
  TOMBOLO_TRY(run_rckmpi(context, recorder, 2, [&](Rckmpi& mpi) {
    const Place out = source(mpi, bytes);
    const Place memory = mpi.memory().allocate(bytes);
    RckmpiWindow window(mpi, memory, bytes);
    const auto puts = [&](std::span<const std::uint32_t> target) {
      window.start(target);
      window.put(out, bytes, target[0], 0);
      window.complete();
    };
    const auto takes = [&](std::span<const std::uint32_t> origin) {
      window.post(origin);
      window.wait();
    };
    const double both =
        repeat(mpi, osu_repetitions(context, bytes, false), {memory, bytes}, false, [&] {
          if (mpi.rank() == 0) {
            puts(second);
            takes(second);
          } else {
            takes(first);
            puts(first);
          }
        });
    if (mpi.rank() == 0) us = both / 2;
    window.free();
  }));
  recorder.row({"latency/rckmpi-one-sided", double(bytes), us, "us", {}, {}, {}});
  return {};
}

Status one_sided_bandwidth(const Context& context, Recorder& recorder, std::uint64_t bytes) {
  double us = 0;
  TOMBOLO_TRY(run_rckmpi(context, recorder, 2, [&](Rckmpi& mpi) {
    // OSU's puts of an epoch go one behind the other, each from its own part and to its own part.
    const std::uint64_t all = bytes * put_count;
    const Place out = source(mpi, all);
    const Place memory = mpi.memory().allocate(all);
    RckmpiWindow window(mpi, memory, all);
    const Received received = {memory, mpi.rank() == 1 ? all : 0};
    const double epoch = repeat(mpi, osu_repetitions(context, bytes, true), received, true, [&] {
      if (mpi.rank() == 1) {
        window.post(first);
        window.wait();
        return;
      }
      window.start(second);
      for (int i = 0; i < put_count; ++i) {
        const std::uint64_t at = static_cast<std::uint64_t>(i) * bytes;
        window.put(out + at, bytes, 1, at);
      }
      window.complete();
    });
    if (mpi.rank() == 0) us = epoch;
    window.free();
  }));
  recorder.row({"bandwidth/rckmpi-one-sided",
                double(bytes),
                put_count * double(bytes) / us * 1e6 / megabyte,
                "MB/s",
                {},
                {},
                {}});
  return {};
}

// ---- memory: 002 sections 4.1 and 4.2 -----------------------------------------------------------

// The data of a message at the sender, and their place at the receiver.
struct Ends {
  Place from;
  Place to;
};

template <class Library, class Make, class Send, class Receive>
Status ping_pong(const Context& context, Recorder& recorder, const std::string& series,
                 std::uint64_t bytes, Make&& make, Send&& send, Receive&& receive) {
  const int measured = bytes > 65'536 ? 2 : context.repetitions(20, 4);
  double us = 0;
  TOMBOLO_TRY(
      run_cores(context, recorder, shape_of(2),
                [&](const machine::Attachment& at, Cpu& cpu, const std::vector<CoreId>& cores) {
                  const auto rank = static_cast<std::uint32_t>(at.self);
                  Library library(cpu, rank, cores);
                  const Ends ends = make(library.memory());
                  Time begin;
                  for (int i = -1; i < measured; ++i) {
                    if (i == 0) begin = cpu.now();
                    if (rank == 0) send(library, ends.from, 1u);
                    receive(library, ends.to, 1 - rank);
                    if (rank == 1) send(library, ends.from, 0u);
                  }
                  if (rank == 0) us = microseconds(cpu.now() - begin) / measured / 2;
                }));
  recorder.row({series, double(bytes), double(bytes) / us * 1e6 / mebibyte, "MiB/s", {}, {}, {}});
  return {};
}

// One buffer on each side, as RCCE's own program has it.
auto one_buffer(std::uint64_t bytes) {
  return [bytes](baselines::PrivateMemory& memory) {
    const Place place = memory.allocate(bytes);
    return Ends{place, place};
  };
}

auto rcce_send(std::uint64_t bytes) {
  return [bytes](Rcce& l, Place place, std::uint32_t to) { l.send(place, bytes, to); };
}
auto rcce_receive(std::uint64_t bytes) {
  return [bytes](Rcce& l, Place place, std::uint32_t from) { l.recv(place, bytes, from); };
}

Status rcce(const Context& context, Recorder& recorder, std::uint64_t bytes) {
  return ping_pong<Rcce>(context, recorder, "message/rcce", bytes, one_buffer(bytes),
                         rcce_send(bytes), rcce_receive(bytes));
}

Status ircce(const Context& context, Recorder& recorder, std::uint64_t bytes) {
  return ping_pong<Ircce>(
      context, recorder, "message/ircce", bytes, one_buffer(bytes),
      [bytes](Ircce& l, Place place, std::uint32_t to) { l.wait(l.isend(place, bytes, to)); },
      [bytes](Ircce& l, Place place, std::uint32_t from) { l.wait(l.irecv(place, bytes, from)); });
}

// How a sender maps its data, and a receiver their place. RCCE stores only to lines that it has
// invalidated before, so that MPBT pages keep no store in the first level.
struct Mapping {
  const char* name;
  scc::MemoryType from;
  scc::MemoryType to;
};
constexpr Mapping mappings[] = {
    {"normal-normal", scc::MemoryType::dcm, scc::MemoryType::dcm},
    {"normal-mpbt", scc::MemoryType::dcm, scc::MemoryType::mpbt_wb},
    {"mpbt-normal", scc::MemoryType::mpbt_wb, scc::MemoryType::dcm},
    {"mpbt-mpbt", scc::MemoryType::mpbt_wb, scc::MemoryType::mpbt_wb},
};

Status rcce_mapped(const Context& context, Recorder& recorder, const Mapping& mapping,
                   std::uint64_t bytes) {
  const auto make = [&](baselines::PrivateMemory& memory) {
    return Ends{memory.allocate(bytes).mapped(mapping.from),
                memory.allocate(bytes).mapped(mapping.to)};
  };
  return ping_pong<Rcce>(context, recorder, fmt::format("mapped/{}", mapping.name), bytes, make,
                         rcce_send(bytes), rcce_receive(bytes));
}

}  // namespace

std::vector<Point> rckmpi_gats_points(const Context& context) {
  std::vector<Point> all;
  for (const std::uint32_t n : processes_up_to(context, {2, 3, 5, 9, 11, 17, 25, 32, 48}))
    all.push_back({fmt::format("rckmpi-{}", n - 1), (context.quick ? 0.1 : 1) * n * n / 40,
                   memory_of_chip(n),
                   [n](const Context& c, Recorder& r) { return gats(c, r, n - 1); }});
  return all;
}

std::vector<Point> rckmpi_passive_target_points(const Context& context) {
  std::vector<Point> all;
  for (const Mix& mix : mixes)
    for (const LockRequests requests : {LockRequests::deferred, LockRequests::immediate})
      for (const std::uint32_t n : processes_up_to(context, {2, 4, 6, 8, 12, 16, 24, 32, 40, 48})) {
        const bool immediate = requests == LockRequests::immediate;
        all.push_back({fmt::format("{}-rckmpi{}-{}", mix.name, immediate ? "-immediate" : "", n),
                       context.quick ? 0.5
                       : immediate   ? n * 0.5
                                     : 0.5,
                       memory_of_chip(n), [&mix, requests, n](const Context& c, Recorder& r) {
                         return passive_target(c, r, mix, requests, n);
                       }});
      }
  return all;
}

std::vector<Point> rckmpi_osu_points(const Context& context) {
  struct Kind {
    const char* name;
    Status (*run)(const Context&, Recorder&, std::uint64_t);
    double seconds_of_megabyte;
  };
  constexpr Kind kinds[] = {{"latency-two-sided", two_sided_latency, 3},
                            {"latency-one-sided", one_sided_latency, 3},
                            {"bandwidth-two-sided", two_sided_bandwidth, 20},
                            {"bandwidth-one-sided", one_sided_bandwidth, 25}};
  std::vector<Point> all;
  for (const Kind& kind : kinds)
    for (std::uint64_t bytes = 1; bytes <= largest; bytes *= context.quick ? 16 : 2)
      all.push_back(
          {fmt::format("rckmpi-{}-{}", kind.name, bytes),
           0.2 + kind.seconds_of_megabyte * double(bytes) / largest,
           memory_of_chip(2) + bytes * 256,
           [run = kind.run, bytes](const Context& c, Recorder& r) { return run(c, r, bytes); }});
  return all;
}

std::vector<Point> rcce_mapping_points(const Context& context) {
  std::vector<Point> all;
  for (const Mapping& mapping : mappings)
    for (std::uint64_t bytes = 1 << 10; bytes <= largest; bytes *= 2) {
      if (context.quick && bytes != 4096) continue;
      all.push_back({fmt::format("mapped-{}-{}", mapping.name, bytes),
                     0.1 + 2 * double(bytes) / largest, memory_of_chip(2) + bytes * 4,
                     [&mapping, bytes](const Context& c, Recorder& r) {
                       return rcce_mapped(c, r, mapping, bytes);
                     }});
    }
  return all;
}

std::vector<Point> rcce_memory_points(const Context& context) {
  std::vector<Point> all;
  for (std::uint64_t bytes = 32; bytes <= 4 * largest; bytes *= context.quick ? 8 : 2) {
    const double seconds = 0.1 + 2 * double(bytes) / largest;
    all.push_back({fmt::format("message-rcce-{}", bytes), seconds, memory_of_chip(2) + bytes * 2,
                   [bytes](const Context& c, Recorder& r) { return rcce(c, r, bytes); }});
    all.push_back({fmt::format("message-ircce-{}", bytes), seconds, memory_of_chip(2) + bytes * 2,
                   [bytes](const Context& c, Recorder& r) { return ircce(c, r, bytes); }});
  }
  return all;
}

}  // namespace tombolo::experiments
