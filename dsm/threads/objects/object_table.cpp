// SPDX-License-Identifier: Apache-2.0
#include "dsm/threads/objects/object_table.h"

#include "base/check.h"
#include "dsm/threads/runtime_hooks.h"

namespace tombolo::dsm {
namespace {

// Of the table.
constexpr WordIndex mutex_word = 0;
constexpr WordIndex head_words = 2;

// In the place of an address.
constexpr std::uint64_t never_used = 0;
constexpr std::uint64_t removed = 1;

std::uint64_t hash(std::uint64_t address) {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
  return (address >> 3) * golden >> 32;
}

}  // namespace

WordIndex ObjectTable::entry_word(std::uint64_t entry) const {
  return layout_.first_word + head_words + layout_.threads * ObjectTableLayout::words_of_waiter +
         entry * ObjectTableLayout::words_of_entry;
}

Waiter ObjectTable::waiter(Thread thread) const {
  const WordIndex first =
      layout_.first_word + head_words + thread * ObjectTableLayout::words_of_waiter;
  return {.next = first, .woken = first + 1};
}

Object ObjectTable::object_at(std::uint64_t entry) const {
  return {.lock = layout_.first_lock + static_cast<Lock>(entry), .word = entry_word(entry) + 1};
}

std::uint64_t ObjectTable::look_up(std::uint64_t address, std::uint64_t& place_for_new) {
  place_for_new = nowhere;
  for (std::uint64_t looks = 0; looks < ObjectTableLayout::entries; ++looks) {
    const std::uint64_t entry = (hash(address) + looks) % ObjectTableLayout::entries;
    const std::uint64_t found = memory_.load(entry_word(entry));
    if (found == address) return entry;
    if (found <= removed && place_for_new == nowhere) place_for_new = entry;
    if (found == never_used) return nowhere;
  }
  return nowhere;
}

Object ObjectTable::find(const void* object) {
  const auto address = reinterpret_cast<std::uint64_t>(object);
  std::uint32_t& recent = recent_[hash(address) % remembered];
  std::uint64_t entry = recent;
  if (memory_.load(entry_word(entry)) != address) {
    std::uint64_t place = 0;
    entry = look_up(address, place);
    if (entry == nowhere) entry = insert(address);
    TOMBOLO_CHECK(entry != nowhere,
                  "the program uses more than {} mutexes, conditions and other objects of Pthreads "
                  "at once: there is no place for that at {:#x}",
                  ObjectTableLayout::entries, address);
    recent = static_cast<std::uint32_t>(entry);
  }
  return object_at(entry);
}

std::uint64_t ObjectTable::insert(std::uint64_t address) {
  lock_table();
  std::uint64_t place = 0;
  std::uint64_t entry = look_up(address, place);
  if (entry == nowhere && place != nowhere) {
    entry = place;
    memory_.store(entry_word(entry), address);
  }
  unlock_table();
  return entry;
}

Object ObjectTable::add(const void* address) {
  const Object made = find(address);
  for (WordIndex i = 0; i + 1 < ObjectTableLayout::words_of_entry; ++i)
    memory_.store(made.word + i, 0);
  return made;
}

void ObjectTable::remove(const void* object) {
  const auto address = reinterpret_cast<std::uint64_t>(object);
  lock_table();
  std::uint64_t place = 0;
  if (const std::uint64_t entry = look_up(address, place); entry != nowhere) {
    for (WordIndex i = 1; i < ObjectTableLayout::words_of_entry; ++i)
      memory_.store(entry_word(entry) + i, 0);
    memory_.store(entry_word(entry), removed);
    clear_up_to(entry);
  }
  unlock_table();
}

// OBT4. A thread that looks for an address meanwhile does not go past these entries: it would have
// found none behind them.
void ObjectTable::clear_up_to(std::uint64_t entry) {
  constexpr std::uint64_t all = ObjectTableLayout::entries;
  if (memory_.load(entry_word((entry + 1) % all)) != never_used) return;
  for (; memory_.load(entry_word(entry)) == removed; entry = (entry + all - 1) % all)
    memory_.store(entry_word(entry), never_used);
}

void ObjectTable::lock_table() {
  const WordIndex mutex = layout_.first_word + mutex_word;
  wait_until(memory_, [&] { return memory_.compare_exchange(mutex, 0, 1) == 0; });
}

void ObjectTable::unlock_table() { memory_.store(layout_.first_word + mutex_word, 0); }

}  // namespace tombolo::dsm
