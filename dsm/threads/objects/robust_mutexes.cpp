// SPDX-License-Identifier: Apache-2.0
#include "dsm/threads/objects/robust_mutexes.h"

#include <algorithm>
#include <cerrno>

namespace tombolo::dsm {

RobustMutexes::Held* RobustMutexes::held(const void* mutex) {
  const auto found = std::ranges::find(held_, mutex, &Held::mutex);
  return found == held_.end() ? nullptr : &*found;
}

WordIndex RobustMutexes::word_of(const void* mutex) { return objects_.find(mutex).word; }

int RobustMutexes::taken(const void* mutex, int error, MutexKind kind) {
  if (error != 0) return error;
  if (Held* const again = held(mutex); again != nullptr) {
    ++again->count;
    return 0;
  }
  const std::uint64_t state = memory_.load(word_of(mutex));
  if (state == not_recoverable) {
    mutexes_.unlock(mutex, kind);
    return ENOTRECOVERABLE;
  }
  held_.push_back({mutex, kind, 1, state == owner_has_died});
  return state == owner_has_died ? EOWNERDEAD : 0;
}

int RobustMutexes::make_consistent(const void* mutex) {
  Held* const own = held(mutex);
  if (own == nullptr || !own->is_inconsistent) return EINVAL;
  own->is_inconsistent = false;
  memory_.store(word_of(mutex), consistent);
  return 0;
}

void RobustMutexes::leaves(const void* mutex) {
  Held* const own = held(mutex);
  if (own == nullptr || --own->count > 0) return;
  if (own->is_inconsistent) memory_.store(word_of(mutex), not_recoverable);
  *own = held_.back();
  held_.pop_back();
}

void RobustMutexes::ends(const void* mutex) {
  if (held(mutex) == nullptr) memory_.store(word_of(mutex), consistent);
}

int RobustMutexes::comes_back(const void* mutex, MutexKind kind) {
  Held* const own = held(mutex);
  if (own == nullptr) return 0;
  const std::uint64_t state = memory_.load(word_of(mutex));
  own->is_inconsistent = state == owner_has_died;
  if (state == owner_has_died) return EOWNERDEAD;
  if (state != not_recoverable) return 0;
  *own = held_.back();
  held_.pop_back();
  mutexes_.unlock(mutex, kind);
  return ENOTRECOVERABLE;
}

void RobustMutexes::owner_ends() {
  for (const Held& own : held_) {
    memory_.store(word_of(own.mutex), owner_has_died);
    for (std::uint32_t i = 0; i < own.count; ++i) mutexes_.unlock(own.mutex, own.kind);
  }
  held_.clear();
}

}  // namespace tombolo::dsm
