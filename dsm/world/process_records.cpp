// SPDX-License-Identifier: Apache-2.0
#include "dsm/world/process_records.h"

#include <algorithm>
#include <atomic>

#include "dsm/records/hot_pages.h"

namespace tombolo::dsm {
namespace {

using runtime::Counters;

// The same in each process, which makes counters in an order of its own.
constexpr auto names = std::to_array<const char*>(
    {"dsm_read_faults", "dsm_write_faults", "dsm_fetches", "dsm_collected", "dsm_fetched_bytes",
     "dsm_diffs", "dsm_puts", "dsm_sent_bytes", "dsm_kept", "dsm_updates", "dsm_update_bytes",
     "dsm_atomics", "dsm_lock_waits", "dsm_lock_wait_us"});

}  // namespace

struct ProcessRecords::Slot {
  std::atomic<bool> used;
  std::atomic<bool> has_pages;
  std::array<std::atomic<std::uint64_t>, names.size()> counts;
  std::array<HotPage, PageHeat::most_hot> pages;
};

Status ProcessRecords::make(Thread processes, std::unique_ptr<ProcessRecords>& out) {
  std::unique_ptr<ProcessRecords> records(new ProcessRecords());
  TOMBOLO_TRY(
      host::Segment::create_anonymous(processes * sizeof(Slot), "counts", records->segment_));
  records->segment_.seal();  // the others are forked
  records->processes_ = processes;
  out = std::move(records);
  return {};
}

// All of it is zero at first: no process has entered.
std::span<ProcessRecords::Slot> ProcessRecords::slots() const {
  return {reinterpret_cast<Slot*>(segment_.data()), processes_};
}

Status ProcessRecords::enter(Thread self, const Shape& shape) {
  self_ = self;
  page_bytes_ = shape.page_bytes;
  counted_.clear();
  for (const char* name : names) {
    const runtime::Counter& counter = runtime::counters().counter(name);
    counted_.push_back({&counter, self == 0 ? 0 : counter.value()});  // PRC1
  }
  heat_.emplace(shape);
  if (!heat_->ready()) return Status::no_memory("no address space for counts of pages");
  slots()[self].used = true;
  return {};
}

void ProcessRecords::note() {
  Slot& own = slots()[self_];
  // relaxed: a count orders nothing.
  for (std::size_t i = 0; i < names.size(); ++i)
    own.counts[i].store(counted_[i].counter->value() - counted_[i].before,
                        std::memory_order_relaxed);
}

void ProcessRecords::note_pages() {
  Slot& own = slots()[self_];
  own.has_pages = false;
  own.pages = heat_->hottest();
  own.has_pages = true;
}

std::vector<Counters::Row> ProcessRecords::hottest_pages(std::uint64_t first) const {
  constexpr std::size_t most_told = 10;
  std::vector<HotPage> all(slots().size() * PageHeat::most_hot);
  for (std::size_t i = 0; i < slots().size(); ++i)
    if (slots()[i].has_pages)
      std::ranges::copy(slots()[i].pages,
                        all.begin() + static_cast<std::ptrdiff_t>(i * PageHeat::most_hot));
  return rows_of(hottest_of(all, most_told), first, page_bytes_);
}

std::vector<std::string> ProcessRecords::lines(std::span<const Counters::Fact> facts, bool json,
                                               std::uint64_t first) const {
  const std::vector<Counters::Row> pages = hottest_pages(first);
  const Counters::Table table{.name = "hottest_pages", .rows = pages};
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < slots().size(); ++i) {
    const Slot& slot = slots()[i];
    if (!slot.used) continue;
    Counters counts;
    for (std::size_t name = 0; name < names.size(); ++name)
      counts.counter(names[name]).add(slot.counts[name]);
    std::vector<Counters::Fact> all{{"rank", std::to_string(i)}};
    all.insert(all.end(), facts.begin(), facts.end());
    lines.push_back("stats " + (json ? counts.as_json(all, std::span(&table, i == 0 ? 1 : 0))
                                     : counts.as_text(all)));
  }
  if (!json)
    for (const Counters::Row& row : pages) lines.push_back("page " + text_of(row));
  return lines;
}

}  // namespace tombolo::dsm
