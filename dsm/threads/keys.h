// SPDX-License-Identifier: Apache-2.0
// Purpose: thread-specific data: keys are the program's, in words; values each thread's own.
//
// Invariants: KEY1 a key that was deleted and made again is another one: old values are not seen.
//             KEY2 a destructor runs with a value that is not null, which is null from then on; for
//                  values that destructors set it runs again, `rounds` times at most.
//             KEY3 destructors are kept as numbers that mean the same in all processes.
// Thread safety: an object belongs to one thread. Errors are the numbers of Pthreads.
#pragma once

#include <array>
#include <cstdint>

#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

class Keys {
 public:
  static constexpr std::uint32_t most = 1024;  // PTHREAD_KEYS_MAX
  static constexpr WordIndex words = WordIndex{most} * 2;
  static constexpr int rounds = 4;  // PTHREAD_DESTRUCTOR_ITERATIONS

  // Of functions, and 0 for null; by themselves the addresses are the numbers.
  struct Numbers {
    std::uint64_t (*number_of)(const void*);
    const void* (*function_of)(std::uint64_t);
  };
  static constexpr Numbers addresses{
      [](const void* function) { return reinterpret_cast<std::uint64_t>(function); },
      [](std::uint64_t number) { return reinterpret_cast<const void*>(number); }};

  Keys(ProgramMemory& memory, WordIndex first_word, const Numbers& numbers = addresses)
      : memory_(memory), first_word_(first_word), numbers_(numbers) {}

  int create(std::uint32_t& out, void (*destructor)(void*));  // EAGAIN
  // By all threads, with the same function: one key.
  int create_together(std::uint32_t key, void (*destructor)(void*));  // EAGAIN
  int remove(std::uint32_t key);                                      // EINVAL
  int set(std::uint32_t key, const void* value);                      // EINVAL
  void* get(std::uint32_t key);
  // At the thread's end.
  void destroy_values();

 private:
  struct Value {
    std::uint64_t generation = 0;
    void* value = nullptr;
  };
  // Odd while the key is in use.
  WordIndex generation_word(std::uint32_t key) const { return first_word_ + WordIndex{key} * 2; }
  WordIndex destructor_word(std::uint32_t key) const {
    return first_word_ + WordIndex{key} * 2 + 1;
  }
  void set_destructor(std::uint32_t key, void (*destructor)(void*));
  bool in_use(std::uint32_t key, std::uint64_t& generation);

  ProgramMemory& memory_;
  WordIndex first_word_;
  Numbers numbers_;
  std::array<Value, most> values_ = {};
};

}  // namespace tombolo::dsm
