// SPDX-License-Identifier: Apache-2.0
// Purpose: a ProgramMemory that notes its calls in their order, and lets a test be another thread:
// the test acts within calls of its choice.
//
//   NotingMemory memory;
//   memory.at("pause", [&](int time) { if (time == 2) memory.words_of_program[5] = 1; });
//   Condition(memory, 4).wait(3);
//   memory.taken();                       // {"add 4", "release 3", "pause", ...}
//
// Loads of words are not noted. A call that was told to fails with "no".
// Thread safety: one thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "dsm/threads/program_memory.h"

namespace tombolo::dsm::testing {

using Calls = std::vector<std::string>;

class NotingMemory final : public ProgramMemory {
 public:
  std::vector<std::uint64_t> words_of_program = std::vector<std::uint64_t>(16, 0);
  std::string fails;  // the calls of this name do

  // Before each call of this name takes effect: `time` counts them from 1.
  void at(const std::string& call, std::function<void(int time)> action) {
    actions_[call] = std::move(action);
  }
  Calls taken() { return std::exchange(calls_, {}); }

  Thread self() const override { return 1; }
  Thread threads() const override { return 4; }
  std::span<std::byte> memory() const override { return {}; }
  std::size_t page_bytes() const override { return 4096; }
  void record(const void*, std::size_t) override {}
  Status tell() override { return call("tell"); }
  Status learn() override { return call("learn"); }

  WordIndex words() const override { return words_of_program.size(); }
  std::uint64_t load(WordIndex word) override {
    TOMBOLO_CHECK(++loads_ < most_loads, "{} loads, the last one of word {}", most_loads, word);
    return words_of_program.at(word);
  }
  void store(WordIndex word, std::uint64_t value) override {
    (void)call("store", word).ok();
    words_of_program.at(word) = value;
  }
  std::uint64_t exchange(WordIndex word, std::uint64_t value) override {
    (void)call("exchange", word).ok();
    return std::exchange(words_of_program.at(word), value);
  }
  std::uint64_t fetch_add(WordIndex word, std::uint64_t value) override {
    (void)call("add", word).ok();
    return std::exchange(words_of_program.at(word), words_of_program.at(word) + value);
  }
  std::uint64_t compare_exchange(WordIndex word, std::uint64_t expected,
                                 std::uint64_t desired) override {
    (void)call("swap", word).ok();
    const std::uint64_t before = words_of_program.at(word);
    if (before == expected) words_of_program.at(word) = desired;
    return before;
  }

  Lock locks() const override { return 8; }
  Status acquire(Lock lock) override { return call("acquire", lock); }
  Status try_acquire(Lock lock, bool& taken) override {
    taken = true;
    return call("try", lock);
  }
  Status release(Lock lock) override { return call("release", lock); }
  Status barrier() override { return call("barrier"); }
  Status reduce(std::uint64_t&, Combine) override { return call("reduce"); }
  Status pause() override { return call("pause"); }
  void paused_enough() override { (void)call("enough").ok(); }
  Status close() override { return call("close"); }

 private:
  Status call(const std::string& name) { return note(name, name); }
  Status call(const std::string& name, std::uint64_t number) {
    return note(name, name + " " + std::to_string(number));
  }
  Status note(const std::string& name, const std::string& text) {
    calls_.push_back(text);
    TOMBOLO_CHECK(calls_.size() < most_calls, "{} calls, the last ones {}", most_calls, text);
    const auto found = actions_.find(name);
    if (found != actions_.end()) found->second(++times_[name]);
    return name == fails ? Status::io("no") : Status();
  }

  // A wait without end has more.
  static constexpr std::size_t most_calls = 10'000;
  static constexpr std::size_t most_loads = 1'000'000;

  Calls calls_;
  std::size_t loads_ = 0;
  std::map<std::string, std::function<void(int)>> actions_;
  std::map<std::string, int> times_;
};

}  // namespace tombolo::dsm::testing
