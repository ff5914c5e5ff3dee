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
// Places of other processes: svp/job/job.h.
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

struct RemoteRecord;  // svp/places/remote_place.h

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
  // 0: a worker for each processor. Throws std::bad_alloc, std::system_error.
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

  explicit AtPlace(const Place& place) : place_(place) {}
  AtPlace(const AtPlace& other) : place_(other.place_) {}
  AtPlace& operator=(const AtPlace&) = delete;

  // Gives the task to the place's workers; `worker` is the creator's, or null.
  void begin(Task& task, const Scope& scope, void (*body)(Task&, Worker&), Worker* worker) {
    const PlaceRecord* const record = place_.is_default() ? nullptr : &place_.record();
    task.creator = worker;
    if (record != nullptr && record->exclusive != nullptr) {
      exclusive_ = record->exclusive;
      turn_.task = &task;
      turn_.body = body;
      task.queued = !exclusive_->enter(turn_, scope.parent());
      if (task.queued) return;
    }
    if (worker != nullptr && runs_here(record, *worker)) return worker->offer(task);
    begin_elsewhere(task, record, worker);
  }
  // Where the worker runs it.
  PlaceName name(const Worker& worker) const;
  // Runs the task, which has come to a worker.
  void run(Task& task, void (*body)(Task&, Worker&), Worker& worker);
  // Runs the task, which its creator has taken back.
  void run_own(Task& task, void (*body)(Task&, Worker&), Worker& worker) {
    if (exclusive_ == nullptr) return body(task, worker);
    exclusive_->begin_own(turn_);
    body(task, worker);
    exclusive_->end_own(turn_, worker);
  }

 private:
  static bool runs_here(const PlaceRecord* record, const Worker& worker) {
    if (record == nullptr || record->pool == &worker.pool()) return true;
    return record->pool == nullptr && record->remote == nullptr;
  }
  static void begin_elsewhere(Task& task, const PlaceRecord* record, Worker* worker);

  Place place_;
  Exclusive* exclusive_ = nullptr;
  Turn turn_;
};

}  // namespace tombolo::svp
