// SPDX-License-Identifier: Apache-2.0
// Purpose: the common parts of the tests of machine/contract.h for scc::Core: programs in virtual
// time, for every pair of memory types that Host<scc::Core> knows.
// Thread safety: as scc::Job.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "backends/scc/testing/host.h"
#include "base/random.h"
#include "machine/testing/rules.h"

namespace tombolo::scc::testing {

using machine::DataPlace;
using machine::Home;
using machine::Offset;
using machine::SyncLayout;
using machine::testing::Bytes;
using machine::testing::Ensemble;
using machine::testing::EnsembleShape;
using machine::testing::expect_ok;
using machine::testing::get_word;
using machine::testing::pattern;
using machine::testing::put_word;
using machine::testing::put_word_through;
using Host = machine::testing::Host<Core>;

// The first core whose memory is behind another controller than that of core 0.
inline constexpr Home kFar = 6;
// The bytes that an entry of a lookup table maps.
inline constexpr std::uint64_t kPage = std::uint64_t{16} << 20;

// A way to store to a word: in turn with the atomic operations on it, or where there are none.
using Store = void (Core::*)(Core::Word, std::uint64_t);
inline constexpr std::array<Store, 2> kStores{&Core::store, &Core::store_alone};

inline Bytes get(Core& core, DataPlace place, std::size_t bytes) {
  Bytes data(bytes);
  expect_ok(core.read(place, data.data(), bytes));
  return data;
}

// Pauses of random length.
class Jitter {
 public:
  Jitter(Core& core, std::uint64_t seed)
      : core_(core), random_(Random::stream(seed, core.self())) {}
  Status pause(std::uint64_t ns_at_most) { return core_.pause(random_.below(ns_at_most + 1)); }

 private:
  Core& core_;
  Random random_;
};

// Of some cores, by words. It remembers nothing: the arrivals at the first of them say which round
// it is.
class Barrier {
 public:
  Barrier(SyncLayout& layout, std::initializer_list<Home> cores)
      : arrived_(layout.take_lines(1)), released_(layout.take_lines(1)), cores_(cores) {}

  Status wait(Core& core) const {
    const Home first = cores_.front();
    const std::uint64_t before = core.fetch_add(core.word({first, arrived_}), 1);
    core.notify(first);
    const std::uint64_t round = before / cores_.size() + 1;
    if (core.self() != first)
      return core.wait_until(core.word({core.self(), released_}),
                             [&](std::uint64_t v) { return v == round; });
    const std::uint64_t all = round * cores_.size();
    TOMBOLO_TRY(
        core.wait_until(core.word({first, arrived_}), [&](std::uint64_t v) { return v == all; }));
    for (const Home home : cores_) {
      core.store(core.word({home, released_}), round);
      core.notify(home);
    }
    return {};
  }

 private:
  Offset arrived_;
  Offset released_;
  std::vector<Home> cores_;
};

// Ends waits after so many calls, so that a test fails where it would hang.
class Patience final : public machine::IdleHook {
 public:
  Status idle() override {
    if (++calls_ > kMost) return Status::process_failed(-1, "waited for too long");
    return {};
  }

 private:
  static constexpr int kMost = 2000;
  int calls_ = 0;
};

class SccContract : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  static SyncLayout layout(Home cores) { return SyncLayout(Core::reserved_sync_bytes(cores)); }

  template <class Body>
  void run(EnsembleShape shape, Body&& body) {
    shape.configuration = GetParam();
    Patience patience;
    if (shape.idle == nullptr) shape.idle = &patience;
    Ensemble<Core>(shape).run(body);
  }

  // Runs test(seed) for each seed. The programs are random; the chip is not.
  template <class Test>
  void with_seeds(Test&& test) {
    for (const std::uint64_t seed : {1, 77, 4242}) {
      SCOPED_TRACE(fmt::format("seed {}", seed));
      test(seed);
      if (HasFailure()) return;
    }
  }
  template <class Test>
  void with_seeds_and_stores(Test&& test) {
    for (std::size_t n = 0; n < kStores.size(); ++n) {
      SCOPED_TRACE(fmt::format("store {}", n));
      with_seeds([&](std::uint64_t seed) { test(seed, kStores[n]); });
    }
  }
};

inline std::string name_of_configuration(
    const ::testing::TestParamInfo<std::uint32_t>& configuration) {
  const auto& [chip, own, peers] = Host::all[configuration.param];
  std::string name = fmt::format("{}_own_{}_peers_{}", chip, name_of(own), name_of(peers));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace tombolo::scc::testing
