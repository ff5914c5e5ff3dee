// SPDX-License-Identifier: Apache-2.0
// Purpose: families: create, sync, kill, break (002 chapter 3).
//
//   auto family = create({.start = 2, .limit = n + 1}, [&](Index i) { ... });
//   const Exit exit = family.sync();
//
// A family is created where it stands, and neither copied nor moved: its workers know its address.
// docs/model/families.md is the page for its author.
//
// Invariants: FY1 the common case, a family that its creator takes back at the sync, allocates
//                 nothing and uses no atomic operation.
// Thread safety: the creating thread's, but for kill().
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "svp/exit.h"
#include "svp/family/body.h"
#include "svp/family/family_base.h"
#include "svp/family/threads.h"
#include "svp/places/place.h"

namespace tombolo::svp {

template <class At, class Threads>
class [[nodiscard]] Family final : public FamilyBase {
 public:
  // By create().
  template <class... Args>
  Family(const At& at, std::in_place_t, Args&&... args)
      : FamilyBase(&Family::run_taken, Worker::here()),
        at_(at),
        threads_(std::forward<Args>(args)...) {
    Worker* const worker = creator;
    if constexpr (At::may_be_exclusive)
      at_.begin(*this, *this, worker);
    else if (worker != nullptr) [[likely]]
      worker->offer(*this);
    else
      delegate_to_default();
    if (worker == nullptr) [[unlikely]]
      count_outside();
    threads_.hand_over_channels();
    if (worker != nullptr && worker->wanted()) [[unlikely]]
      attend(*worker);
  }
  ~Family() {
    if (!synced()) [[unlikely]]
      leave();
  }

  // Blocks until all threads of the family have ended, and their changes to memory are seen. Throws
  // Stopped if the caller's own family was stopped.
  Exit sync() {
    Worker* const worker = syncing();
    complete(worker);
    if (reason() != 0) [[unlikely]]
      return sync_early(worker);
    if (worker != nullptr && worker->wanted()) [[unlikely]]
      sync_attentively(*worker);
    return {};
  }

 private:
  static void body(Task& task, Worker& worker) {
    auto& self = static_cast<Family&>(task);
    worker.set_scope(&self);
    if (worker.wanted()) [[unlikely]]
      self.begin_attentively(worker);
    self.threads_.run(self, worker);
  }
  static void run_taken(Task& task, Worker& worker) {
    auto& self = static_cast<Family&>(task);
    if constexpr (At::may_be_exclusive) {
      self.at_.run(self, &Family::body, worker);
    } else {
      body(self, worker);
      worker.finish(self);
    }
  }

  void complete(Worker* worker) {
    threads_.close_parent();
    if (worker == nullptr || !worker->take_back(*this)) [[unlikely]] {
      if constexpr (At::may_be_exclusive)
        return join_at(at_, worker);
      else
        return join(worker);
    }
    worker->counts().inlined.add();
    if constexpr (At::may_be_exclusive) {
      at_.run_own(*this, &Family::body, *worker);
      worker->set_scope(parent());  // as below, where a scope that is kept would cost a store more
    } else {
      Scope* const before = worker->scope();
      body(*this, *worker);
      worker->set_scope(before);
    }
  }
  [[gnu::noinline]] void begin_attentively(Worker& worker) {
    worker.note_begin(FamilyTrace::Event::family, *this,
                      {.range = threads_.range(),
                       .place = at_.name(worker),
                       .family = static_cast<const Scope*>(this),
                       .parent = parent()});
    if (worker.attend()) end_early();
  }
  // Leaves the creating thread if that was stopped.
  [[gnu::noinline]] void attend(Worker& worker) {
    if (!worker.attend()) return;
    end_unsynced();
    throw Stopped{};
  }
  [[gnu::noinline]] void leave() {
    leave_unsynced();
    end_unsynced();
  }
  void end_unsynced() {
    Worker* const worker = syncing();
    complete(worker);
    (void)exit();
    if (worker != nullptr) worker->note_end(*this);
  }

  [[no_unique_address]] At at_;
  [[no_unique_address]] Threads threads_;
};

namespace detail {

template <class... Channels>
inline constexpr bool any_ordered = (OrderedChannel<Channels> || ...);

template <class Body, class... Channels>
using RangeThreads = std::conditional_t<any_ordered<Channels...>, OrderedThreads<Body, Channels...>,
                                        DividedThreads<Body, Channels...>>;
template <class Body, class... Channels>
using OneThread = std::conditional_t<any_ordered<Channels...>, OrderedThreads<Body, Channels...>,
                                     SingleThread<Body, Channels...>>;

template <class At, class Body, class... Channels>
inline auto create_one(const At& at, Body&& body, Channels&... channels) {
  using Threads = OneThread<std::decay_t<Body>, Channels...>;
  std::decay_t<Body> own(std::forward<Body>(body));
  if constexpr (any_ordered<Channels...>)
    return Family<At, Threads>(at, std::in_place, Range{}, std::move(own), channels...);
  else
    return Family<At, Threads>(at, std::in_place, std::move(own), channels...);
}
template <class At, class Body, class... Channels>
inline auto create_range(const At& at, const Range& range, Body&& body, Channels&... channels) {
  using Threads = RangeThreads<std::decay_t<Body>, Channels...>;
  std::decay_t<Body> own(std::forward<Body>(body));
  return Family<At, Threads>(at, std::in_place, range, std::move(own), channels...);
}

}  // namespace detail

// One thread, at the default place.
template <class Body, FamilyChannel... Channels>
requires ThreadBody<std::decay_t<Body>, EndArgument<Channels>...>
inline auto create(Body&& body, Channels&... channels) {
  return detail::create_one(AtDefault{}, std::forward<Body>(body), channels...);
}
// A thread for each index of the range.
template <class Body, FamilyChannel... Channels>
requires ThreadBody<std::decay_t<Body>, EndArgument<Channels>...>
inline auto create(const Range& range, Body&& body, Channels&... channels) {
  return detail::create_range(AtDefault{}, range, std::forward<Body>(body), channels...);
}
// The same at a place.
template <class Body, FamilyChannel... Channels>
requires ThreadBody<std::decay_t<Body>, EndArgument<Channels>...>
inline auto create(const Place& place, Body&& body, Channels&... channels) {
  return detail::create_one(AtPlace(place), std::forward<Body>(body), channels...);
}
template <class Body, FamilyChannel... Channels>
requires ThreadBody<std::decay_t<Body>, EndArgument<Channels>...>
inline auto create(const Place& place, const Range& range, Body&& body, Channels&... channels) {
  return detail::create_range(AtPlace(place), range, std::forward<Body>(body), channels...);
}

template <class At, class Threads>
Exit sync(Family<At, Threads>& family) {
  return family.sync();
}
inline void kill(FamilyBase& family) { family.kill(); }
// By a thread of a family: ends the family with this value, and the thread.
[[noreturn]] inline void break_family(std::int64_t value = 0) {
  FamilyBase* const family = this_family();
  if (family == nullptr && ExternalThreads::here() != nullptr)
    ExternalThreads::here()->break_with(value);
  TOMBOLO_CHECK(family != nullptr, "break_family: outside of all families");
  family->break_with(value);
}

}  // namespace tombolo::svp
