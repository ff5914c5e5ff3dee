// SPDX-License-Identifier: Apache-2.0
#include "backends/stale/board.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace tombolo::stale {
namespace {

using machine::Home;
using machine::Loss;
using machine::LossFact;
using machine::Writer;

std::atomic_ref<std::uint64_t> shared(std::uint64_t& word) { return std::atomic_ref(word); }
// The numbers of a filled entry are ordered by nothing: each is right by itself.
std::uint64_t load(std::uint64_t& word) { return shared(word).load(std::memory_order_relaxed); }
void store(std::uint64_t& word, std::uint64_t v) {
  shared(word).store(v, std::memory_order_relaxed);
}
void grow(std::uint64_t& word, std::uint64_t by) {
  if (by != 0) shared(word).fetch_add(by, std::memory_order_relaxed);
}

// Of Entry::telling.
constexpr std::uint64_t untold = 0;
constexpr std::uint64_t being_told = 1;
constexpr std::uint64_t told_already = 2;

constexpr unsigned loss_shift = 48;
std::uint64_t culprit_of(const LossFact& line) {
  return line.culprit.site | std::uint64_t{static_cast<std::uint8_t>(line.loss)} << loss_shift;
}

Loss loss_of(std::uint64_t culprit) { return static_cast<Loss>(culprit >> loss_shift); }

}  // namespace

Board::Board(std::byte* memory)
    : own_memory_(memory == nullptr ? std::make_unique<Entry[]>(entries) : nullptr),
      at_(memory == nullptr ? own_memory_.get() : reinterpret_cast<Entry*>(memory)) {}

bool Board::holds(const Entry& entry, const LossFact& line) const {
  return entry.culprit == culprit_of(line) && entry.victim == line.victim.site;
}

bool Board::claim(std::size_t i, const LossFact& line) {
  Entry& entry = at_[i];
  if (load(entry.state) != 0) return false;  // as a rule, and without taking the line from others
  std::uint64_t free = 0;
  if (!shared(entry.state).compare_exchange_strong(free, filling)) return false;
  entry.culprit = culprit_of(line);
  entry.victim = line.victim.site;
  entry.ranks = std::uint64_t{line.culprit.rank} << 32 | line.victim.rank;
  entry.home = line.home;
  store(entry.begin, line.begin);
  store(entry.end, line.end);
  own_[i].filled_for = line.home;
  shared(entry.state)
      .store(filled, std::memory_order_release);  // LB1: all but the numbers is there
  return true;
}

std::size_t Board::find(const LossFact& line) {
  for (std::size_t i = 0; i < entries; ++i) {
    if (claim(i, line)) return i;
    // One that is being filled may be for the same fact, which then has two entries (LB3).
    if (shared(at_[i].state).load(std::memory_order_acquire) == filled && holds(at_[i], line))
      return i;
  }
  return entries;
}

void Board::add(const LossFact& line, std::uint64_t operation) {
  const std::size_t i = find(line);
  if (i == entries) return;
  Entry& entry = at_[i];
  grow(entry.bytes, line.bytes);
  const bool again = own_[i].operation == operation;
  own_[i].operation = operation;
  grow(entry.times, again ? 0 : 1);
  grow(entry.evicted, again ? 0 : line.evicted);
  if (own_[i].filled_for != line.home) return;  // LB1: another's range, or another region
  store(entry.begin, std::min(load(entry.begin), line.begin));
  store(entry.end, std::max(load(entry.end), line.end));
}

LossFact Board::read(Entry& entry) const {
  LossFact fact;
  fact.loss = loss_of(entry.culprit);
  fact.culprit.site = entry.culprit & ((std::uint64_t{1} << loss_shift) - 1);
  fact.culprit.rank = static_cast<Home>(entry.ranks >> 32);
  fact.victim.site = entry.victim;
  fact.victim.rank = static_cast<Home>(entry.ranks);
  fact.home = static_cast<Home>(entry.home);
  fact.begin = load(entry.begin);
  fact.end = load(entry.end);
  fact.bytes = load(entry.bytes);
  fact.times = load(entry.times);
  fact.evicted = load(entry.evicted);
  return fact;
}

bool Board::take(std::size_t i, std::chrono::steady_clock::time_point until) {
  Entry& entry = at_[i];
  if (shared(entry.state).load(std::memory_order_acquire) != filled) return false;
  std::uint64_t now = untold;
  if (!shared(entry.telling).compare_exchange_strong(now, being_told)) {
    if (own_[i].taken) return false;
    while (load(entry.telling) != told_already) {  // LB4
      if (std::chrono::steady_clock::now() >= until) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (load(entry.telling) == told_already) return false;
  }
  own_[i].taken = true;
  return true;
}

std::vector<LossFact> Board::take(std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  std::vector<LossFact> facts;
  for (std::size_t i = 0; i < entries; ++i)
    if (take(i, until)) facts.push_back(read(at_[i]));
  std::stable_sort(facts.begin(), facts.end(),
                   [](const LossFact& a, const LossFact& b) { return a.bytes > b.bytes; });
  return facts;
}

bool Board::has_mistakes() const {
  return std::any_of(at_, at_ + entries, [](Entry& entry) {
    return shared(entry.state).load(std::memory_order_acquire) == filled &&
           machine::is_mistake(loss_of(entry.culprit));
  });
}

void Board::told() {
  for (std::size_t i = 0; i < entries; ++i)
    if (own_[i].taken) store(at_[i].telling, told_already);
}

}  // namespace tombolo::stale
