// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/attached.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <iterator>

#include "host/memory/foreign_memory.h"

namespace tombolo::mpi {

static_assert(sizeof(Attached::Table) == 3 * sizeof(std::uint64_t));

class Attached::Change {
 public:
  explicit Change(Attached& attached) : attached_(attached) {
    attached_.table_.version.fetch_add(1);
  }
  ~Change() {
    Table& table = attached_.table_;
    table.count.store(attached_.listed_.size());
    table.ranges.store(reinterpret_cast<std::uint64_t>(attached_.listed_.data()));
    table.version.fetch_add(1);
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  Attached& attached_;
};

bool Attached::add(const void* base, std::uint64_t bytes) {
  const auto start = reinterpret_cast<std::uint64_t>(base);
  const host::AddressRange range{start, start + bytes};
  const std::lock_guard lock(mutex_);
  const auto next = entries_.lower_bound(start);
  if (next != entries_.end() && next->first < range.high) return false;
  if (next != entries_.begin() && std::prev(next)->second.use.range().high > start) return false;
  if (bytes == 0) {
    empty_.insert(start);
    return true;
  }
  const Change change(*this);
  entries_.emplace_hint(next, start, Entry{host::own_memory().enter(base, bytes), listed_.size()});
  listed_.push_back(range);
  return true;
}

bool Attached::remove(const void* base) {
  const auto start = reinterpret_cast<std::uint64_t>(base);
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(start);
  if (found == entries_.end()) {
    const auto empty = empty_.find(start);
    if (empty == empty_.end()) return false;
    empty_.erase(empty);
    return true;
  }
  const Change change(*this);
  const std::size_t place = found->second.place;
  listed_[place] = listed_.back();
  entries_.at(listed_[place].low).place = place;
  listed_.pop_back();
  entries_.erase(found);
  return true;
}

bool AttachedView::covers(const host::AddressRange& range) const {
  if (range.empty()) return true;
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), range.low,
                       [](std::uint64_t at, const host::AddressRange& r) { return at < r.low; });
  return after != ranges_.begin() && range.high <= std::prev(after)->high;
}

Status AttachedView::read(std::int32_t pid, std::uint64_t published) {
  constexpr int tries = 20'000;  // about a second
  struct Seen {
    std::uint64_t version;
    std::uint64_t count;
    std::uint64_t ranges;
    bool operator==(const Seen&) const = default;
  };
  for (int i = 0; i < tries; ++i) {
    if (i > 0) {
      const timespec briefly{0, 50'000};
      nanosleep(&briefly, nullptr);
    }
    Seen before{};
    Seen after{};
    TOMBOLO_TRY(host::read_foreign(pid, published, &before, sizeof before));
    if (before.version % 2 != 0) continue;
    std::vector<host::AddressRange> found(before.count);
    // It may be gone meanwhile, which the version tells.
    const Status listed = found.empty() ? Status()
                                        : host::read_foreign(pid, before.ranges, found.data(),
                                                             found.size() * sizeof found.front());
    TOMBOLO_TRY(host::read_foreign(pid, published, &after, sizeof after));
    if (before != after) continue;
    TOMBOLO_TRY(listed);
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a.low < b.low; });
    ranges_.clear();
    for (const host::AddressRange& range : found) {
      if (!ranges_.empty() && ranges_.back().high == range.low)
        ranges_.back().high = range.high;
      else
        ranges_.push_back(range);
    }
    return {};
  }
  return Status::io(fmt::format("process {} attaches and detaches memory without an end", pid));
}

}  // namespace tombolo::mpi
