// SPDX-License-Identifier: Apache-2.0
// Purpose: how the threads of a family are run, by the shape of the family: a single thread, a
// range whose threads are divided among workers, a range whose threads run in order.
//
// Invariants: TH1 a worker divides a part only while others are idle: as long as all are busy,
//                 threads cost a call and a look at one word. Which part, the scheduler says
//                 (open_range.h): threads that have not begun are given away from within a thread
//                 of the family that is deep in its own families.
//             TH2 no exception leaves run(): it ends the family (FamilyBase::fail).
//             TH3 between two looks a worker runs so many threads as take less than a
//                 microsecond if they take as long as those before, and at most
//                 RunLength<>::longest_stride. A look at which the worker has nothing for those
//                 that want some of its threads ends no run.
//             TH4 parts that run threads are `block` at most. A part whose worker waits for those
//                 that it has given away runs none.
// Thread safety: a family's threads run on any worker.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <exception>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "svp/family/body.h"
#include "svp/family/family_base.h"
#include "svp/family/run_length.h"
#include "svp/range.h"
#include "svp/scheduler/open_range.h"

namespace tombolo::svp {

// Calls `threads`, which returns when the family's threads on this worker have ended. False: they
// ended early.
template <class Threads>
bool guarded(FamilyBase& family, bool alone, Threads&& threads) {
  try {
    threads();
    return true;
  } catch (const Stopped&) {
    family.end_early();
  } catch (...) {
    family.fail(std::current_exception(), alone);
  }
  return false;
}

template <class Body, class... Channels>
class SingleThread {
 public:
  SingleThread(Body&& body, Channels&... channels)
      : body_(std::move(body)), channels_(channels...) {}

  static Range range() { return {}; }
  void run(FamilyBase& family, Worker&) {
    if (family.reason() != 0) return;  // the family has looked at the worker itself
    guarded(family, true,
            [&] { std::apply([&](Channels&... channels) { call(channels...); }, channels_); });
  }
  void hand_over_channels() {
    std::apply([](Channels&... channels) { (channels.hand_over(), ...); }, channels_);
  }
  void close_parent() {
    std::apply([](Channels&... channels) { (channels.close_parent(), ...); }, channels_);
  }

 private:
  void call(Channels&... channels) {
    if constexpr (sizeof...(Channels) == 0)
      call_body(body_, 0);
    else
      call_body(body_, 0, static_cast<EndArgument<Channels>>(channels)...);
  }

  [[no_unique_address]] Body body_;
  [[no_unique_address]] std::tuple<Channels&...> channels_;
};

template <class Body, class... Channels>
class DividedThreads {
 public:
  DividedThreads(const Range& range, Body&& body, Channels&... channels)
      : range_(range), body_(std::move(body)), channels_(channels...) {
    range_.check();
  }

  const Range& range() const { return range_; }
  void run(FamilyBase& family, Worker& worker) {
    const std::uint64_t count = range_.count();
    if (count == Range::endless)
      run_endless(family, worker);
    else
      run_part(family, worker, 0, count);
    // relaxed: all parts have ended.
    TOMBOLO_CHECK(range_.block == 0 || parts_.load(std::memory_order_relaxed) == 1,
                  "family: {} parts are counted at its end", parts_.load());
  }
  void hand_over_channels() {
    std::apply([](Channels&... channels) { (channels.hand_over(), ...); }, channels_);
  }
  void close_parent() {
    std::apply([](Channels&... channels) { (channels.close_parent(), ...); }, channels_);
  }

 private:
  // The part of the threads that others may take.
  struct Part : Task {
    Part(DividedThreads& all, FamilyBase& of, Worker& by, std::uint64_t from, std::uint64_t to)
        : Task(&Part::run_taken, of, &by), threads(all), family(of), begin(from), end(to) {}
    static void run_taken(Task& task, Worker& worker) {
      auto& part = static_cast<Part&>(task);
      worker.set_scope(&part.family);
      worker.note_begin(FamilyTrace::Event::part, part, part.facts(worker));
      part.threads.run_part(part.family, worker, part.begin, part.end);
      worker.finish(part);
    }
    FamilyTrace::Facts facts(const Worker& worker) const {
      const Range& all = threads.range_;
      return {.range = {.start = all.index(begin), .limit = all.index(end), .step = all.step},
              .place = worker.place(),
              .family = static_cast<const Scope*>(&family),
              .parent = family.parent()};
    }
    DividedThreads& threads;
    FamilyBase& family;
    std::uint64_t begin;
    std::uint64_t end;
  };

  // The parts that a worker has given away of its own, each the upper half of the threads that were
  // left. Several: the others of a large host would have to wait until the first of them has ended
  // its half. No memory is written to before the first one.
  class Given {
   public:
    static constexpr unsigned most = 4;

    Given() = default;
    Given(const Given&) = delete;
    Given& operator=(const Given&) = delete;
    ~Given() {
      each([](Part& part) { part.~Part(); });
    }

    bool any() const { return used_ != 0; }
    bool full() const { return used_ == (1u << most) - 1; }
    template <class... Arguments>
    Part& add(Arguments&&... arguments) {
      const auto slot = static_cast<unsigned>(std::countr_one(used_));
      used_ |= 1u << slot;
      return *new (at(slot)) Part(std::forward<Arguments>(arguments)...);
    }
    void remove(Part& part) {
      for (unsigned slot = 0; slot < most; ++slot)
        if (at(slot) == static_cast<void*>(&part)) used_ &= ~(1u << slot);
      part.~Part();
    }
    // The call may remove the part.
    template <class Call>
    void each(Call&& call) {
      for (unsigned left = used_; left != 0; left &= left - 1)
        call(*std::launder(
            reinterpret_cast<Part*>(at(static_cast<unsigned>(std::countr_zero(left))))));
    }
    bool any_done() const {
      bool found = false;
      const_cast<Given*>(this)->each([&](Part& part) { found = found || is_done(part); });
      return found;
    }

   private:
    void* at(unsigned slot) { return memory_ + slot * sizeof(Part); }

    unsigned used_ = 0;
    alignas(Part) std::byte memory_[most * sizeof(Part)];
  };
  static bool is_done(const Part& part) {
    return part.state.load(std::memory_order_acquire) == Worker::Hand::done_value;
  }

  // A part that this worker runs, and those that it has given away of it.
  struct Running : OpenRange {
    Running(DividedThreads& all, FamilyBase& of, std::uint64_t from, std::uint64_t to)
        : OpenRange(&Running::divide_open, &Running::may_divide_open, from, to),
          threads(all),
          family(of) {}
    static bool divide_open(OpenRange& range, Worker& worker) {
      auto& self = static_cast<Running&>(range);
      return self.threads.divide(self, worker);
    }
    static bool may_divide_open(const OpenRange& range) {
      const auto& self = static_cast<const Running&>(range);
      return self.threads.may_divide(self);
    }
    DividedThreads& threads;
    FamilyBase& family;
    Given given;
  };

  bool run_part(FamilyBase& family, Worker& worker, std::uint64_t begin, std::uint64_t end) {
    Running part(*this, family, begin, end);
    for (bool all = true;;) {
      if (all) {
        worker.open(part);
        all = run_open(part, worker);
        worker.close(part);
      }
      if (!part.given.any()) return all;
      // This part and one that it takes back are one again, or the others go on alone: they may be
      // divided meanwhile.
      count_off_part();
      if (take_back_one(part, worker)) continue;
      await_all(part, worker);
      return all && family.reason() == 0;
    }
  }
  // The lowest part that no other worker has goes on here. False: there is none.
  bool take_back_one(Running& part, Worker& worker) {
    for (std::uint64_t above = 0;;) {
      Part* lowest = nullptr;
      part.given.each([&](Part& each) {
        if (each.begin >= above && (lowest == nullptr || each.begin < lowest->begin))
          lowest = &each;
      });
      if (lowest == nullptr) return false;
      above = lowest->begin + 1;
      if (!worker.take_back(*lowest)) continue;
      part.next = lowest->begin;
      part.end = lowest->end;
      part.given.remove(*lowest);
      return true;
    }
  }
  // All have been taken. One of them is counted for this part, whose worker only waits.
  void await_all(Running& part, Worker& worker) {
    bool counts = false;
    part.given.each([&](Part& each) {
      worker.wait(each);
      part.given.remove(each);
      if (std::exchange(counts, true)) count_off_part();
    });
  }
  bool run_open(Running& part, Worker& worker) {
    if constexpr (in_runs)
      if (part.end - part.next >= shortest_in_runs) return run_in_runs(part, worker);
    while (part.next != part.end) {
      const std::uint64_t first = part.next++;  // ORG2
      if (!part.family.may_go_on(worker) || !run_some(part, worker, first)) return false;
    }
    return true;
  }
  // Until something is wanted of the worker.
  bool run_some(Running& part, Worker& worker, std::uint64_t at) {
    return guarded(part.family, false, [&] {
      const auto step = static_cast<std::uint64_t>(range_.step);
      Index index = range_.index(at);
      for (;;) {
        std::apply([&](Channels&... channels) { call_body(body_, index, channels...); }, channels_);
        // The end may have come nearer.
        if (++at == part.end || worker.wanted()) return;
        index = static_cast<Index>(static_cast<std::uint64_t>(index) + step);
        part.next = at + 1;
      }
    });
  }
  // The same for many threads, several between two looks.
  bool run_in_runs(Running& part, Worker& worker) {
    RunLength<> length;
    while (part.next != part.end) {
      if (!part.family.may_go_on(worker)) return false;
      if (part.next == part.end) return true;
      length.begin();
      const bool all = guarded(part.family, false, [&] {
        do {
          const std::uint64_t first = part.next;
          const std::uint64_t run = std::min<std::uint64_t>(length.next(), part.end - first);
          part.next = first + run;  // ORG2
          const std::uint64_t have_run = run_threads(part, first, run, length.stride(), worker);
          part.next = first + have_run;
          length.ended(have_run);
        } while (part.next != part.end && !worker.wanted());
      });
      if (!all) return false;
    }
    return true;
  }
  // So many threads from the part's `ordinal` on, or whole strides of them until one after which
  // the worker has an answer (Worker::has_answer): how many. A body of its own for the compiler,
  // which then knows that threads do not change it; and a function of its own, in whose registers
  // the constants of the body stay.
  [[gnu::noinline]] std::uint64_t run_threads(Running& part, std::uint64_t ordinal,
                                              std::uint64_t run, std::uint64_t stride,
                                              Worker& worker) {
    const Index first = range_.index(ordinal);
    const Body body = body_;
    const auto step = static_cast<std::uint64_t>(range_.step);
    const auto at = [first](std::uint64_t distance) {
      return static_cast<Index>(static_cast<std::uint64_t>(first) + distance);
    };
    if (step == 1 && stride == Longest{})
      return in_strides(part, run, Longest{}, worker, [&](std::uint64_t from, std::uint64_t to) {
        for (std::uint64_t i = from; i != to; ++i) call_body(body, at(i));
      });
    return in_strides(part, run, stride, worker, [&](std::uint64_t from, std::uint64_t to) {
      for (std::uint64_t i = from; i != to; ++i) call_body(body, at(i * step));
    });
  }
  template <class Stride, class Threads>
  static std::uint64_t in_strides(Running& part, std::uint64_t run, Stride stride, Worker& worker,
                                  Threads&& threads) {
    std::uint64_t have_run = 0;
    for (;;) {
      have_run = until_wanted(have_run, run, stride, worker, threads);
      const bool last = run - have_run < stride;
      if (last && (have_run == 0 || !worker.wanted())) break;
      part.next -= run - have_run;  // threads of this run may be given away, too
      if (worker.has_answer()) return have_run;
      part.next += run - have_run;  // ORG2
      if (last) break;
    }
    threads(have_run, run);
    return run;
  }
  // At least a stride, if there is one. The longest has a fixed number of threads, and the loop no
  // calls but theirs: the compiler keeps the values of their code in registers.
  template <class Stride, class Threads>
  static std::uint64_t until_wanted(std::uint64_t from, std::uint64_t run, Stride stride,
                                    const Worker& worker, Threads& threads) {
    while (run - from >= stride) {
      threads(from, from + stride);
      from += stride;
      if (worker.wanted()) break;
    }
    return from;
  }
  bool divide(Running& part, Worker& worker) {
    if (!may_divide(part)) return false;
    part.given.each([&](Part& each) {
      if (!is_done(each)) return;
      worker.wait(each);  // gives its slot back
      part.given.remove(each);
      count_off_part();
    });
    if (!may_add_part()) return false;
    const std::uint64_t end = part.end;
    part.end = part.next + (end - part.next) / 2;
    worker.offer(part.given.add(*this, part.family, worker, part.end, end));
    return true;
  }
  // relaxed: as in may_add_part().
  bool may_divide(const Running& part) const {
    if (part.given.any_done()) return true;
    return !part.given.full() &&
           (range_.block == 0 || parts_.load(std::memory_order_relaxed) < range_.block);
  }
  void count_off_part() {
    if (range_.block != 0) parts_.fetch_sub(1, std::memory_order_relaxed);
  }
  // A part runs at most one thread at a time. relaxed: a limit, which orders nothing.
  bool may_add_part() {
    if (range_.block == 0) return true;
    if (parts_.fetch_add(1, std::memory_order_relaxed) < range_.block) return true;
    parts_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  // In rounds, so that threads of low indices are not behind infinitely many others.
  void run_endless(FamilyBase& family, Worker& worker) {
    constexpr std::uint64_t longest = 4096;
    std::uint64_t length = 1;
    for (std::uint64_t at = 0; run_part(family, worker, at, at + length) && family.reason() == 0;) {
      at += length;
      length = std::min(2 * length, longest);
    }
  }

  // Bodies that a copy may stand for: plain values that no call changes.
  static constexpr bool in_runs = sizeof...(Channels) == 0 && std::is_trivially_copyable_v<Body> &&
                                  std::is_copy_constructible_v<Body> &&
                                  std::invocable<const Body&, Index> && sizeof(Body) <= 64;
  using Longest = std::integral_constant<std::uint64_t, RunLength<>::longest_stride>;
  // For fewer threads the clock would cost more than is gained.
  static constexpr std::uint64_t shortest_in_runs = 128;

  Range range_;
  [[no_unique_address]] Body body_;
  [[no_unique_address]] std::tuple<Channels&...> channels_;
  std::atomic<std::uint64_t> parts_{1};
};

template <class Body, class... Channels>
class OrderedThreads {
 public:
  OrderedThreads(const Range& range, Body&& body, Channels&... channels)
      : range_(range), body_(std::move(body)), channels_(channels...) {
    range_.check();
  }

  const Range& range() const { return range_; }
  void run(FamilyBase& family, Worker& worker) {
    std::apply(
        [&](Channels&... channels) {
          std::tuple<typename Channels::End...> ends{channels...};
          const bool all = guarded(family, false, [&] { run_all(family, worker, ends); });
          each_ordered(ends, [&](auto& end) { end.end(!all || family.stopped()); });
        },
        channels_);
  }
  void hand_over_channels() {
    std::apply([](Channels&... channels) { (channels.hand_over(), ...); }, channels_);
  }
  void close_parent() {
    std::apply([](Channels&... channels) { (channels.close_parent(), ...); }, channels_);
  }

 private:
  using Ends = std::tuple<typename Channels::End...>;

  template <class Call>
  static void each_ordered(Ends& ends, Call&& call) {
    std::apply(
        [&](auto&... end) {
          const auto one = [&](auto& e) {
            if constexpr (requires { e.begin(Index{}, false, false); }) call(e);
          };
          (one(end), ...);
        },
        ends);
  }
  void run_all(FamilyBase& family, Worker& worker, Ends& ends) {
    const std::uint64_t count = range_.count();
    if (count == 0) each_ordered(ends, [](auto& end) { end.pass_on(); });
    for (std::uint64_t n = 0; n != count; ++n) {
      if (!family.may_go_on(worker)) return;
      const Index index = range_.index(n);
      each_ordered(ends, [&](auto& end) { end.begin(index, n == 0, n + 1 == count); });
      std::apply([&](auto&... end) { call_body(body_, index, end...); }, ends);
    }
  }

  Range range_;
  [[no_unique_address]] Body body_;
  [[no_unique_address]] std::tuple<Channels&...> channels_;
};

}  // namespace tombolo::svp
