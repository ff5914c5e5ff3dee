// SPDX-License-Identifier: Apache-2.0
// Purpose: finds the lock and the words of a mutex, condition or other object of Pthreads by its
// address: programs set them up by an initializer too, without a call, and never copy them.
//
//   const Object object = objects.find(address);
//   memory.acquire(object.lock);
//
// Invariants: OBT1 an address has one entry at most, from the first find() on until remove().
//             OBT2 entries are added and removed under the table's mutex, a word; find() of one
//                  that is there takes none.
//             OBT3 the words of an object that is at rest are zero, as those of a new one.
//             OBT4 the entry in front of one that was never used is an address's, or was never used
//                  either: so a look ends soon, however many objects there have been.
// Limits: `entries` objects at a time that were used and not destroyed. One more ends the program
// with a message: programs do not look at the result of pthread_mutex_lock().
// Thread safety: an object belongs to one thread, as its ProgramMemory does.
#pragma once

#include <array>
#include <cstdint>

#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

struct ObjectTableLayout {
  static constexpr std::uint64_t entries = 65536;
  static constexpr WordIndex words_of_entry = 4;  // the address, then the object's own
  static constexpr WordIndex words_of_waiter = 2;
  static constexpr Lock locks = entries;

  WordIndex first_word = 0;
  Lock first_lock = 0;
  Thread threads = 1;

  WordIndex words() const { return 2 + threads * words_of_waiter + entries * words_of_entry; }
};

struct Object {
  Lock lock = 0;
  WordIndex word = 0;  // of 3 words that are the object's
};

// The words of a thread that waits in the queue of an object.
struct Waiter {
  WordIndex next = 0;   // the thread behind it + 1, or 0
  WordIndex woken = 0;  // 1 when it may go on
};

class ObjectTable {
 public:
  ObjectTable(ProgramMemory& memory, const ObjectTableLayout& layout)
      : memory_(memory), layout_(layout) {}

  Object find(const void* address);
  // As find(), for a new object there: its words are zero.
  Object add(const void* address);
  void remove(const void* address);

  Waiter waiter(Thread thread) const;

 private:
  static constexpr std::uint64_t nowhere = ~std::uint64_t{0};
  WordIndex entry_word(std::uint64_t entry) const;
  Object object_at(std::uint64_t entry) const;
  std::uint64_t look_up(std::uint64_t address, std::uint64_t& place_for_new);
  std::uint64_t insert(std::uint64_t address);
  void clear_up_to(std::uint64_t entry);
  void lock_table();
  void unlock_table();

  ProgramMemory& memory_;
  ObjectTableLayout layout_;
  // Entries found lately; an entry may be another address's by now.
  static constexpr std::size_t remembered = 1024;
  std::array<std::uint32_t, remembered> recent_ = {};
};

}  // namespace tombolo::dsm
