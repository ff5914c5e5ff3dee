// SPDX-License-Identifier: Apache-2.0
#include "svp/places/place.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "base/option_table.h"
#include "host/processes/processors.h"
#include "runtime/processes/processors_here.h"
#include "svp/places/default_place.h"
#include "svp/scheduler/read_or_end.h"

namespace tombolo::svp {
namespace {

struct Records {
  std::mutex mutex;
  std::vector<std::unique_ptr<PlaceRecord>> all;
  std::vector<PlaceRecord*> free;

  // Never destroyed: names outlive their places.
  static Records& here() {
    static auto* const records = new Records;
    return *records;
  }
};

PlaceRecord* taken_record() {
  Records& records = Records::here();
  const std::lock_guard lock(records.mutex);
  if (records.free.empty()) {
    records.all.push_back(std::make_unique<PlaceRecord>());
    records.free.reserve(records.all.size());
    records.all.back()->number = static_cast<std::uint32_t>(records.all.size());
    return records.all.back().get();
  }
  PlaceRecord* const record = records.free.back();
  records.free.pop_back();
  return record;
}

unsigned processes_here = 1;

PoolSettings default_settings() {
  PoolSettings settings;
  read_or_end(options::svp_workers, settings.workers);
  // A launcher may have bound each process to its part; a container, all of them to the same.
  if (settings.workers == 0)
    settings.workers =
        std::min(std::max(1u, host::processors() / processes_here), runtime::processors_for(1));
  settings.neighbours = settings.workers * (processes_here - 1);
  return settings;
}

// Ends with the program; but a worker that has called exit() cannot wait for itself, nor for those
// that wait for it. Nor can another thread that has called it while families run: it may be itself
// the one that would sync them.
class DefaultPool {
 public:
  ~DefaultPool() {
    if (Worker::here() == nullptr && Pool::outside_families() == 0) return;
    pool_->record_counts();
    (void)pool_.release();
  }
  Pool& get() const { return *pool_; }

 private:
  std::unique_ptr<Pool> pool_ = std::make_unique<Pool>(default_settings());
};

}  // namespace

OwnedRecord::OwnedRecord(Pool* pool, Exclusive* exclusive, const RemoteRecord* remote) {
  place_.record_ = taken_record();
  place_.record_->pool = pool;
  place_.record_->exclusive = exclusive;
  place_.record_->remote = remote;
  place_.generation_ = place_.record_->generation.load();
}

OwnedRecord::~OwnedRecord() {
  Records& records = Records::here();
  const std::lock_guard lock(records.mutex);
  place_.record_->generation.fetch_add(1);
  records.free.push_back(place_.record_);
}

Pool& default_pool() {
  static const DefaultPool pool;
  return pool.get();
}

void share_default_pool(unsigned processes) { processes_here = processes; }

void AtPlace::begin_elsewhere(Task& task, const Scope& scope, Worker* worker) {
  TOMBOLO_CHECK(record_ == nullptr || record_->remote == nullptr,
                "create: at a place of another process, where a function object does not exist: "
                "name a thread function by remote<>");
  if (is_exclusive() && !enter()) return queue(task, scope, worker);
  Pool* const own = record_ == nullptr ? nullptr : record_->pool;
  Pool& pool = own == nullptr ? default_pool() : *own;
  if (worker != nullptr)
    worker->note(FamilyTrace::Event::delegate, {.range = {}, .place = pool.name()});
  pool.delegate(task);
}

void AtPlace::queue(Task& task, const Scope& scope, Worker* worker) {
  queued_ = new QueuedTurn;
  queued_->task = &task;
  task.queued = 1;
  if (!record_->exclusive->enter(*queued_, scope.parent())) return;
  // Those before it have ended meanwhile.
  Pool* const own = record_->pool != nullptr || worker == nullptr ? record_->pool : &worker->pool();
  (own == nullptr ? default_pool() : *own).delegate(task);
}

void AtPlace::leave_queue(Task& task) {
  if (task.queued == 0 || !give_up()) return;
  Pool* const own = record_->pool;
  task.queued = 0;
  record_ = nullptr;
  (own == nullptr ? default_pool() : *own).delegate(task);
}

PlaceName AtPlace::name(const Worker& worker) const {
  if (!is_exclusive()) return worker.place();
  return {.kind = PlaceName::Kind::exclusive, .number = record_->number};
}

void AtPlace::run(Task& task, void (*body)(Task&, Worker&), Worker& worker) {
  if (is_exclusive()) {
    if (record_->exclusive->serves(task)) return body(task, worker);
    own_.task = &task;
    return record_->exclusive->serve(task.queued == 0 ? own_ : *queued_, worker);
  }
  body(task, worker);
  worker.finish(task);
}

}  // namespace tombolo::svp
