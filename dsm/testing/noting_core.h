// SPDX-License-Identifier: Apache-2.0
// Purpose: a core of the machine `stale` that notes its steps on the words of page 0, on a ring of
// notices and on data, by name and in their order: for tests of orders that few schedules tell
// apart.
//
//   core.watch_page(layout.words);
//   directory.raise_version(0);
//   core.take_steps();                    // {"add version"}
//
// Thread safety: as the machine's.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "backends/stale/stale.h"
#include "machine/testing/forwarding.h"

namespace tombolo::dsm::testing {

using Steps = std::vector<std::string>;

class NotingCore : public machine::testing::Forwarding<stale::Core> {
 public:
  using Base = machine::testing::Forwarding<stale::Core>;
  using Base::Base;

  // The words of page_directory.h, of page 0: "version", "keeper", "mutex", "signature".
  void watch_page(machine::Offset words) { page_ = {words, words + 4 * sizeof(std::uint64_t)}; }
  // "notice".
  void watch_ring(machine::Offset begin, machine::Offset end) { ring_ = {begin, end}; }
  Steps take_steps() { return std::exchange(steps_, {}); }

  Word word(machine::SyncPlace place) {
    named_ = name_of(place.offset);
    return Base::word(place);
  }
  std::uint64_t load(Word word) {
    note("load");
    return Base::load(word);
  }
  void store(Word word, std::uint64_t v) {
    note("store");
    Base::store(word, v);
  }
  std::uint64_t fetch_add(Word word, std::uint64_t v) {
    note("add");
    return Base::fetch_add(word, v);
  }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    note("change");
    return Base::compare_exchange(word, expected, desired);
  }
  Status read(machine::DataPlace place, void* out, std::size_t bytes) {
    steps_.push_back("read");
    return Base::read(place, out, bytes);
  }
  Status write(machine::DataPlace place, const void* in, std::size_t bytes) {
    steps_.push_back("write");
    return Base::write(place, in, bytes);
  }

 private:
  struct Range {
    machine::Offset begin = 0;
    machine::Offset end = 0;
    bool has(machine::Offset at) const { return begin <= at && at < end; }
  };

  const char* name_of(machine::Offset at) const {
    constexpr std::array<const char*, 4> names{"version", "keeper", "mutex", "signature"};
    if (page_.has(at)) return names[(at - page_.begin) / sizeof(std::uint64_t)];
    return ring_.has(at) ? "notice" : "";
  }
  void note(const char* step) {
    if (*named_ != 0) steps_.push_back(std::string(step) + " " + named_);
  }

  Range page_;
  Range ring_;
  Steps steps_;
  const char* named_ = "";  // the word that was made last
};

// Whether `later` is among the steps behind `earlier`, and that is there.
inline bool follows(const Steps& steps, const std::string& earlier, const std::string& later) {
  const auto first = std::find(steps.begin(), steps.end(), earlier);
  return first != steps.end() && std::find(first + 1, steps.end(), later) != steps.end();
}

}  // namespace tombolo::dsm::testing
