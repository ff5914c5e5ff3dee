// SPDX-License-Identifier: Apache-2.0
#include "dsm/pthread/keys.h"

#include <cerrno>
#include <utility>

namespace tombolo::dsm {

int Keys::create(std::uint32_t& out, void (*destructor)(void*)) {
  for (std::uint32_t key = 0; key < most; ++key) {
    const std::uint64_t generation = memory_.load(generation_word(key));
    if (generation % 2 != 0) continue;
    if (memory_.compare_exchange(generation_word(key), generation, generation + 1) != generation)
      continue;
    memory_.store(destructor_word(key), reinterpret_cast<std::uint64_t>(destructor));
    out = key;
    return 0;
  }
  return EAGAIN;
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
      reinterpret_cast<void (*)(void*)>(destructor)(value);  // KEY2
      again = true;
    }
  }
  values_ = {};
}

}  // namespace tombolo::dsm
