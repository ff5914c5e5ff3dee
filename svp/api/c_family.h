// SPDX-License-Identifier: Apache-2.0
// Purpose: a family of a C program, in the words of its tombolo_svp_family_t.
//
// Invariants: CFA1 no exception passes through a function of the program: calls return a status,
//                  and the thread's exception is thrown once its body has returned.
//             CFA2 a thread that returns has synced all families that it created.
// Thread safety: as Family.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "svp/api/c_channels.h"
#include "svp/family/family.h"

namespace tombolo::svp {

// The exception of a thread that called tombolo_svp_fail().
struct CFailure : NumberedFailure {
  explicit CFailure(std::int64_t number)
      : NumberedFailure("tombolo_svp_fail: " + std::to_string(number), number) {}
};

// A thread of a C program, while its body runs.
struct CThread {
  unsigned unsynced = 0;  // families
  bool stopped = false;
  bool failed = false;
  std::int64_t failure = 0;

  // The calling thread's; null outside of all families.
  static CThread* here() {
    Worker* const worker = Worker::here();
    return worker == nullptr ? nullptr : static_cast<CThread*>(worker->program_thread());
  }
};

// Runs a thread, which `call` calls.
template <class Call>
void run_c_thread(Index index, Call&& call) {
  Worker& worker = *Worker::here();
  CThread thread;
  void* const before = std::exchange(worker.program_thread(), &thread);
  call();
  worker.program_thread() = before;
  TOMBOLO_CHECK(thread.unsynced == 0, "thread {} of a family returned with {} families not synced",
                index, thread.unsynced);
  if (thread.failed) throw CFailure(thread.failure);
  if (thread.stopped) throw Stopped{};
}

class CBody {
 public:
  CBody(tombolo_svp_body_t body, void* argument) : body_(body), argument_(argument) {}

  void operator()(Index index) const {
    run_c_thread(index, [&] { body_(index, argument_); });
  }
  void operator()(Index index, CGlobals&) const { (*this)(index); }
  void operator()(Index index, CSharedEnds&) const { (*this)(index); }

 private:
  tombolo_svp_body_t body_;
  void* argument_;
};

class HeldFamily {
 public:
  HeldFamily() = default;
  HeldFamily(const HeldFamily&) = delete;
  HeldFamily& operator=(const HeldFamily&) = delete;
  virtual ~HeldFamily() = default;
  // Throws Stopped; the family has ended in any case.
  virtual Exit sync() = 0;
  virtual FamilyBase& base() = 0;

  const CThread* creator = nullptr;
};

// Channels that live as long as the family.
struct NoChannels {};

template <class F, class Channels = NoChannels>
class HeldAs final : public HeldFamily {
 public:
  template <class At, class... Args>
  explicit HeldAs(const Channels& channels, const At& at, Args&&... args)
      : channels_(channels), family_(make(at, std::forward<Args>(args)...)) {}
  Exit sync() override { return family_.sync(); }
  FamilyBase& base() override { return family_; }

 private:
  template <class At, class... Args>
  F make(const At& at, Args&&... args) {
    if constexpr (std::is_same_v<Channels, NoChannels>)
      return F(at, std::in_place, std::forward<Args>(args)...);
    else
      return F(at, std::in_place, std::forward<Args>(args)..., channels_);
  }

  [[no_unique_address]] Channels channels_;
  F family_;
};

}  // namespace tombolo::svp
