// SPDX-License-Identifier: Apache-2.0
// Purpose: nested programs that are made from a seed: families in families, ranges, channels,
// places, kills, breaks and failures. Whatever happens in one, all that was made in it is gone at
// its end.
// Thread safety: one object for each program.
#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>

#include "base/random.h"
#include "svp/api/include/tombolo/svp.hpp"

namespace tombolo::svp::testing {

class RandomProgram {
 public:
  RandomProgram(std::uint64_t seed, Place local, Place exclusive)
      : seed_(seed), local_(local), exclusive_(exclusive) {}

  // As a thread of a family.
  void run() { thread(seed_, depth); }

  std::uint64_t threads() const { return threads_.load(); }
  // Objects of threads that are alive.
  std::int64_t alive() const { return alive_.load(); }
  // Threads that had begun before, or while, their family was killed.
  std::uint64_t begun() const { return begun_.load(); }
  // Families at the exclusive place that have begun, and those that were not alone there.
  std::uint64_t exclusive() const { return exclusive_begun_.load(); }
  std::uint64_t not_alone() const { return not_alone_.load(); }

 private:
  static constexpr int depth = 4;

  struct Alive {
    std::atomic<std::int64_t>& count;
    explicit Alive(std::atomic<std::int64_t>& c) : count(c) { ++count; }
    ~Alive() { --count; }
  };

  void thread(std::uint64_t seed, int levels) {
    const Alive alive(alive_);
    ++threads_;
    Random random(seed);
    if (levels == 0) return end_somehow(random);
    const std::uint64_t families = random.below(3);
    for (std::uint64_t i = 0; i < families; ++i) one_family(random.next(), levels - 1);
    end_somehow(random);
  }
  void end_somehow(Random& random) {
    if (random.one_in(60)) break_family(static_cast<std::int64_t>(random.below(100)));
    if (random.one_in(60)) throw std::runtime_error("by chance");
  }

  void one_family(std::uint64_t seed, int levels) {
    Random random(seed);
    const std::uint64_t next = random.next();
    const auto body = [this, next, levels](Index i) {
      thread(next + static_cast<std::uint64_t>(i) * 977, levels);
    };
    const Range range{.start = static_cast<Index>(random.below(5)) - 2,
                      .limit = static_cast<Index>(random.below(6)),
                      .step = random.one_in(5) ? -1 : 1,
                      .block = random.below(3)};
    switch (random.below(9)) {
      case 0:
        return end(create(range, body), random);
      case 1:
        return end(create([&] { body(0); }), random);
      case 2:
        return end(create(local_, range, body), random);
      case 3:
        return in_exclusive_place(random);
      case 4:
        return chain(random, range, body);
      case 5:
        return late_global(random, range, body);
      case 6:
        return killed_while_blocked(random);
      case 7:
        return killed_while_running(random);
      default:
        return two_families(random, range, body);
    }
  }

  template <class F>
  void end(F&& family, Random& random) {
    if (random.one_in(8)) family.kill();
    if (random.one_in(30)) throw std::runtime_error("with a family not synced");
    family.sync();
  }
  void in_exclusive_place(Random& random) {
    const std::uint64_t child = random.next();
    end(create(exclusive_,
               [this, child] {
                 const Alive alive(in_exclusive_);
                 ++exclusive_begun_;
                 const auto look = [this] { not_alone_ += in_exclusive_.load() != 1 ? 1 : 0; };
                 look();
                 one_child(child);
                 look();
               }),
        random);
  }
  template <class Body>
  void chain(Random& random, const Range& range, const Body& body) {
    Shared<std::uint64_t> link;
    auto family = create(
        range,
        [&](Index i, SharedEnd<std::uint64_t>& end) {
          const std::uint64_t v = end.read();
          body(i);
          end.write(v + 1);
        },
        link);
    if (!random.one_in(10)) {
      link.write(0);
      end(family, random);
    } else {
      family.kill();
      family.sync();
    }
  }
  template <class Body>
  void late_global(Random& random, const Range& range, const Body& body) {
    Global<int> value;
    auto family = create(
        range,
        [&](Index i, Global<int>& v) {
          v.read();
          body(i);
        },
        value);
    one_child(random.next());
    value.write(1);
    end(family, random);
  }
  // A thread that waits for a value which comes after a kill, or never: of a global channel, or
  // from the parent of a chain.
  void killed_while_blocked(Random& random) {
    Global<int> value;
    Shared<int> link;
    const bool global = random.one_in(2);
    const auto wait_for = [&](auto&& read) {
      const Alive alive(alive_);
      ++begun_;
      read();
    };
    auto reader = create([&](Global<int>& v) { wait_for([&] { v.read(); }); }, value);
    auto first = create(
        {.limit = 3}, [&](SharedEnd<int>& end) { wait_for([&] { end.write(end.read()); }); }, link);
    if (random.one_in(2)) one_child(random.next());
    (global ? static_cast<FamilyBase&>(reader) : first).kill();
    if (!global) value.write(1);
    if (global) link.write(1);
    first.sync();
    end(reader, random);
  }
  // Threads that only a kill ends, or the stop of a family above.
  void killed_while_running(Random& random) {
    const bool unlimited = random.one_in(2);
    auto endless = create({.limit = unlimited ? unbounded : 2}, [this, unlimited](Index) {
      const Alive alive(alive_);
      ++begun_;
      if (unlimited) return;
      for (;;) checkpoint();
    });
    if (random.one_in(2)) one_child(random.next());
    endless.kill();
    endless.sync();
  }
  template <class Body>
  void two_families(Random& random, const Range& range, const Body& body) {
    auto first = create(range, body);
    auto second = create(range, body);
    if (random.one_in(4)) second.kill();
    first.sync();
    end(second, random);
  }
  void one_child(std::uint64_t seed) {
    auto child = create([this, seed] { thread(seed, 0); });
    child.sync();
  }

  const std::uint64_t seed_;
  const Place local_;
  const Place exclusive_;
  std::atomic<std::uint64_t> threads_{0};
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<std::int64_t> alive_{0};
  std::atomic<std::int64_t> in_exclusive_{0};
  std::atomic<std::uint64_t> exclusive_begun_{0};
  std::atomic<std::uint64_t> not_alone_{0};
};

}  // namespace tombolo::svp::testing
