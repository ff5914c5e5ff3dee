// SPDX-License-Identifier: Apache-2.0
#include "dsm/threads/keys.h"

#include <cerrno>
#include <utility>

namespace tombolo::dsm {

int Keys::create(std::uint32_t& out, void (*destructor)(void*)) {
  for (std::uint32_t key = 0; key < most; ++key) {
    const std::uint64_t generation = memory_.load(generation_word(key));
    if (generation % 2 != 0) continue;
    if (memory_.compare_exchange(generation_word(key), generation, generation + 1) != generation)
      continue;
    set_destructor(key, destructor);
    out = key;
    return 0;
  }
  return EAGAIN;
}

int Keys::create_together(std::uint32_t key, void (*destructor)(void*)) {
  if (key >= most) return EAGAIN;
  memory_.compare_exchange(generation_word(key), 0, 1);
  set_destructor(key, destructor);
  return 0;
}

void Keys::set_destructor(std::uint32_t key, void (*destructor)(void*)) {
  const std::uint64_t number = numbers_.number_of(reinterpret_cast<const void*>(destructor));
  memory_.store(destructor_word(key), number);  // KEY3
}

bool Keys::in_use(std::uint32_t key, std::uint64_t& generation) {
  if (key >= most) return false;
  generation = memory_.load(generation_word(key));
  return generation % 2 != 0;
}

int Keys::remove(std::uint32_t key) {
  std::uint64_t generation = 0;
  if (!in_use(key, generation)) return EINVAL;
  memory_.compare_exchange(generation_word(key), generation, generation + 1);
  return 0;
}

int Keys::set(std::uint32_t key, const void* value) {
  std::uint64_t generation = 0;
  if (!in_use(key, generation)) return EINVAL;
  values_[key] = {generation, const_cast<void*>(value)};
  return 0;
}

void* Keys::get(std::uint32_t key) {
  std::uint64_t generation = 0;
  if (key >= most || values_[key].value == nullptr || !in_use(key, generation)) return nullptr;
  return values_[key].generation == generation ? values_[key].value : nullptr;
}

void Keys::destroy_values() {
  bool again = true;
  for (int round = 0; round < rounds && again; ++round) {
    again = false;
    for (std::uint32_t key = 0; key < most; ++key) {
      void* const value = get(key);
      values_[key].value = nullptr;
      if (value == nullptr) continue;
      const std::uint64_t destructor = memory_.load(destructor_word(key));
      if (destructor == 0) continue;
      const void* const function = numbers_.function_of(destructor);
      reinterpret_cast<void (*)(void*)>(const_cast<void*>(function))(value);  // KEY2
      again = true;
    }
  }
  values_ = {};
}

}  // namespace tombolo::dsm
