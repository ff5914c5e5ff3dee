// SPDX-License-Identifier: Apache-2.0
// Purpose: where the parts of a program lie: addresses of its memory, words and locks.
//
//   memory:  | variables | the first thread's stack | stacks of the servers | heap |
//
// Invariants: WLL1 the lowest page of each stack cannot be accessed: a stack that is too small ends
//                  the program there.
// Thread safety: plain values.
#pragma once

#include "dsm/allocator/arena_heap.h"
#include "dsm/allocator/class_heap.h"
#include "dsm/memory/program_memories.h"
#include "dsm/threads/objects/object_table.h"
#include "dsm/threads/thread_table.h"
#include "host/memory/address_space.h"
#include "pthreads/program/mappings.h"

namespace tombolo::dsm {

struct ProgramLayout {
  static constexpr std::uint64_t stack_bytes = std::uint64_t{8} << 20;
  static constexpr std::uint64_t first_stack_bytes = std::uint64_t{64} << 20;

  host::AddressRange variables;
  std::uint64_t heap_bytes = 0;
  bool has_pages = false;     // as ProgramMemories
  Thread servers = 1;         // compute servers
  Thread memory_servers = 0;  // further processes, without a thread

  std::uint64_t stacks() const { return variables.high + first_stack_bytes; }
  std::uint64_t heap() const { return stacks() + servers * stack_bytes; }
  std::uint64_t end() const { return heap() + heap_bytes; }

  // Words and locks: of the threads, of the heap, of the objects, of the keys, and a list of open
  // streams.
  ThreadTableLayout threads() const { return {.servers = servers}; }
  WordIndex heap_words() const { return ThreadTableLayout::words(servers); }
  Lock heap_locks() const { return ThreadTableLayout::locks; }
  ObjectTableLayout objects() const {
    const WordIndex of_heap = has_pages ? ArenaHeap::words(heap_bytes, servers) : ClassHeap::words;
    return {.first_word = heap_words() + of_heap,
            .first_lock = heap_locks() + ClassHeap::locks,
            .threads = servers};
  }
  // For atomic operations (dsm/threads/instrumented_code.h).
  Lock atomics() const { return objects().first_lock + ObjectTableLayout::locks; }
  static constexpr Lock atomic_locks = 1024;

  WordIndex keys() const { return objects().first_word + objects().words(); }
  static constexpr WordIndex most_keys = 1024;  // PTHREAD_KEYS_MAX

  WordIndex streams() const { return keys() + most_keys * 2; }
  static constexpr WordIndex most_streams = 256;

  // The address of a ProgramState; 0: there is none.
  WordIndex state() const { return streams() + most_streams; }

  WordIndex mappings() const { return state() + 1; }
  Lock mappings_lock() const { return atomics() + atomic_locks; }

  // 1 once a thread more than there are processes was refused.
  WordIndex refusal() const { return mappings() + Mappings::words; }

  WordIndex words() const { return refusal() + 1; }
  Lock locks() const { return mappings_lock() + Mappings::locks; }
};

// From the settings and the running program. `launched`: so many processes have been started
// together, the memory servers among them; 0: they are forked. Errors: bad_configuration,
// unsupported.
Status lay_out(const ProgramMemories& kind, Thread launched, ProgramLayout& out);

}  // namespace tombolo::dsm
