// SPDX-License-Identifier: Apache-2.0
// Purpose: places: the resources where families run (002 chapter 3).
//
//   create(body)                           the default place: the workers of the creator
//   LocalPlace two(2);                     two workers of this process
//   create(two, {.limit = 10}, body)
//   ExclusivePlace counter;                one family at a time, in order
//   create(counter, body)
//
// A Place is a name of one of these, to be stored and handed on. A place may be created at from
// anywhere, and ends after the last family that was created there was synced.
//
// Places of other processes: svp/remote/job.h.
//
// Invariants: PC1 a name of a place that has ended is found out: its record has another generation.
// Thread safety: yes, but for the constructors and destructors of LocalPlace and ExclusivePlace.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "svp/places/exclusive.h"
#include "svp/scheduler/pool.h"

namespace tombolo::svp {

struct RemoteRecord;  // svp/remote/remote_place.h

// Of a place, or of one that has ended; never freed.
struct PlaceRecord {
  std::atomic<std::uint64_t> generation{0};
  Pool* pool = nullptr;                  // null: the creator's
  Exclusive* exclusive = nullptr;        // null: it is not
  const RemoteRecord* remote = nullptr;  // null: it is of this process
  std::uint32_t number = 0;              // among the records of the process
};

class Place {
 public:
  using OfThisProcess = void;  // it is no argument of a family elsewhere: description.h

  // The default place.
  Place() = default;

  bool is_default() const { return record_ == nullptr; }
  // Stops the program if the place has ended.
  const PlaceRecord& record() const {
    TOMBOLO_CHECK(record_->generation.load(std::memory_order_acquire) == generation_,
                  "create: the place does not exist any more");
    return *record_;
  }

 private:
  friend class OwnedRecord;
  PlaceRecord* record_ = nullptr;
  std::uint64_t generation_ = 0;
};

// The record of a place, as long as that exists.
class OwnedRecord {
 public:
  OwnedRecord(Pool* pool, Exclusive* exclusive, const RemoteRecord* remote = nullptr);
  ~OwnedRecord();
  OwnedRecord(const OwnedRecord&) = delete;
  OwnedRecord& operator=(const OwnedRecord&) = delete;
  Place name() const { return place_; }

 private:
  Place place_;
};

class LocalPlace {
 public:
  // 0: a worker for each processor. As many as the host has threads for, if it has
  // one at all. Throws std::bad_alloc, host::NoThread.
  explicit LocalPlace(unsigned workers = 0) : LocalPlace(PoolSettings{.workers = workers}) {}
  explicit LocalPlace(const PoolSettings& settings) : pool_(settings), record_(&pool_, nullptr) {}

  unsigned workers() const { return pool_.size(); }
  operator Place() const { return record_.name(); }  // NOLINT: a name of the place

 private:
  friend class ExclusivePlace;
  Pool pool_;
  OwnedRecord record_;
};

class ExclusivePlace {
 public:
  // Its families run on the workers of their creators.
  ExclusivePlace() : record_(nullptr, &exclusive_) {}
  // They run on the workers of that place, which is to exist for longer.
  explicit ExclusivePlace(LocalPlace& at) : record_(&at.pool_, &exclusive_) {}

  operator Place() const { return record_.name(); }  // NOLINT: a name of the place

 private:
  Exclusive exclusive_;
  OwnedRecord record_;
};

// Where a family is: the default place.
class AtDefault {
 public:
  static constexpr bool may_be_exclusive = false;
  PlaceName name(const Worker& worker) const { return worker.place(); }
};

// Where a family is: at a place that is known at run time.
class AtPlace {
 public:
  static constexpr bool may_be_exclusive = true;

  // Stops the program if the place has ended.
  explicit AtPlace(const Place& place) : record_(place.is_default() ? nullptr : &place.record()) {}
  AtPlace(const AtPlace& other) : record_(other.record_) {}
  AtPlace& operator=(const AtPlace&) = delete;

  // Gives the task to the place's workers; `worker` is the creator's, or null. Throws
  // std::bad_alloc, where others are before it at an exclusive place.
  void begin(Task& task, const Scope& scope, Worker* worker) {
    if (worker == nullptr || !runs_here(*worker)) [[unlikely]]
      return begin_elsewhere(task, scope, worker);
    if (is_exclusive() && !enter()) [[unlikely]]
      return queue(task, scope, worker);
    worker->offer(task);
  }
  // Where the worker runs it.
  PlaceName name(const Worker& worker) const;
  // Runs the task, which has come to a worker. `body` runs its threads.
  void run(Task& task, void (*body)(Task&, Worker&), Worker& worker);
  // Runs the task, which its creator has taken back.
  void run_own(Task& task, void (*body)(Task&, Worker&), Worker& worker) {
    if (!is_exclusive()) return body(task, worker);
    Exclusive& exclusive = *record_->exclusive;
    exclusive.begin_own(task.scope);
    body(task, worker);
    exclusive.end_own(own_, worker);
  }
  // By the creator of a queued task whose family was stopped. True: it does not run, and no other
  // thread knows it any more.
  bool give_up() { return record_->exclusive->give_up(*queued_); }
  // The end of a task that is queued, and has run.
  void drop_turn() { delete queued_; }
  // Of a task for which no thread waits, and whose family was stopped: where it is queued, it
  // leaves the queue, and comes to a worker as one without a place.
  void leave_queue(Task& task);

 private:
  bool is_exclusive() const { return record_ != nullptr && record_->exclusive != nullptr; }
  bool runs_here(const Worker& worker) const {
    if (record_ == nullptr || record_->pool == &worker.pool()) return true;
    return record_->pool == nullptr && record_->remote == nullptr;
  }
  // False: others are there.
  bool enter() { return record_->exclusive->enter_if_empty(own_); }
  void begin_elsewhere(Task& task, const Scope& scope, Worker* worker);
  void queue(Task& task, const Scope& scope, Worker* worker);

  const PlaceRecord* record_;  // null: the default place
  Turn own_;
  QueuedTurn* queued_;  // of a queued task; without a value elsewhere
};

}  // namespace tombolo::svp
