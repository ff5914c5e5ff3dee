// SPDX-License-Identifier: Apache-2.0
#include "dsm/records/process_records.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "base/option_table.h"
#include "dsm/records/count_lines.h"
#include "dsm/records/hot_pages.h"

namespace tombolo::dsm {
namespace {

using runtime::Counters;

// The same in each process, which makes counters in an order of its own. Those of pages first.
constexpr auto names = std::to_array<const char*>(
    {"dsm_read_faults", "dsm_write_faults", "dsm_fetches", "dsm_collected", "dsm_fetched_bytes",
     "dsm_diffs", "dsm_puts", "dsm_sent_bytes", "dsm_kept", "dsm_updates", "dsm_update_bytes",
     "dsm_atomics", "dsm_lock_waits", "dsm_lock_wait_us", "dsm_barriers", "dsm_barrier_us"});
constexpr std::size_t of_pages = 12;

constexpr std::size_t bytes_of_traces = std::size_t{96} << 20;

}  // namespace

struct ProcessRecords::Slot {
  std::atomic<bool> used;
  std::atomic<bool> has_pages;
  std::array<std::atomic<std::uint64_t>, names.size()> counts;
  std::array<HotPage, PageHeat::most_hot> pages;
};

Status ProcessRecords::make(const WantedRecords& wanted, Thread processes,
                            std::unique_ptr<ProcessRecords>& out) {
  std::unique_ptr<ProcessRecords> records(new ProcessRecords());
  records->wanted_ = wanted;
  records->processes_ = processes;
  TOMBOLO_TRY(
      host::Segment::create_anonymous(processes * sizeof(Slot), "counts", records->segment_));
  records->segment_.seal();  // the others are forked
  if (!wanted.trace.empty()) TOMBOLO_TRY(records->start_trace());
  // Away from those that the program opens. Without it they are told where it has closed nothing.
  constexpr int past_the_programs = 500;
  const int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, past_the_programs);
  if (kept >= 0) records->standard_error_ = kept;
  out = std::move(records);
  return {};
}

// The program may change its folder.
Status ProcessRecords::start_trace() {
  std::error_code error;
  file_ = runtime::TraceFile(std::filesystem::absolute(wanted_.trace, error), options::dsm_trace);
  TOMBOLO_TRY(file_.check());
  TOMBOLO_TRY(host::Segment::create_anonymous(bytes_of_traces, "trace", traces_));
  traces_.seal();
  return {};
}

// All of it is zero at first: no process has entered.
std::span<ProcessRecords::Slot> ProcessRecords::slots() const {
  return {reinterpret_cast<Slot*>(segment_.data()), processes_};
}

std::span<std::byte> ProcessRecords::trace_of(Thread process) const {
  constexpr std::size_t line = 64;
  const std::size_t bytes =
      std::min(bytes_of_traces / processes_ / line * line, Trace::bytes_for(Trace::capacity));
  return {traces_.data() + process * bytes, bytes};
}

Status ProcessRecords::enter(Thread self, const Shape* shape) {
  self_ = self;
  counted_.clear();
  for (const char* name : names) {
    const runtime::Counter& counter = runtime::counters().counter(name);
    counted_.push_back({&counter, self == 0 ? 0 : counter.value()});  // PRC1
  }
  if (shape != nullptr && wants_counts()) {
    page_bytes_ = shape->page_bytes;
    heat_.emplace(*shape);
    if (!heat_->ready()) return Status::no_memory("no address space for counts of pages");
  }
  if (!wanted_.trace.empty()) trace_.emplace(trace_of(self));
  slots()[self].used = true;
  return {};
}

Observer ProcessRecords::observer() {
  return {.timed = wants_counts(),
          .heat = heat_ ? &*heat_ : nullptr,
          .trace = trace_ ? &*trace_ : nullptr};
}

void ProcessRecords::note() {
  Slot& own = slots()[self_];
  // relaxed: a count orders nothing.
  for (std::size_t i = 0; i < names.size(); ++i)
    own.counts[i].store(counted_[i].counter->value() - counted_[i].before,
                        std::memory_order_relaxed);
}

void ProcessRecords::note_pages() {
  if (!heat_) return;
  Slot& own = slots()[self_];
  own.has_pages = false;
  own.pages = heat_->hottest();
  own.has_pages = true;
}

// ---- The end ------------------------------------------------------------------------------------

void ProcessRecords::tell(std::span<const Counters::Fact> facts, std::uint64_t first,
                          std::span<const std::uint64_t> held) {
  note();
  note_pages();
  if (wants_counts()) tell_counts(facts, first, held);
  if (wanted_.trace.empty()) return;
  if (const Status written = write_trace(); !written.ok()) say(written.message());
}

void ProcessRecords::say(const std::string& line) const {
  const std::string whole = "tombolo: " + line + "\n";
  [[maybe_unused]] const ssize_t written = write(standard_error_, whole.data(), whole.size());
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

std::span<const char* const> ProcessRecords::names_told() const {
  return std::span(names).subspan(heat_ ? 0 : of_pages);
}

void ProcessRecords::tell_counts(std::span<const Counters::Fact> facts, std::uint64_t first,
                                 std::span<const std::uint64_t> held) const {
  const std::vector<Counters::Row> pages =
      heat_ ? hottest_pages(first) : std::vector<Counters::Row>();
  CountLines lines(wanted_.statistics, facts, heat_ ? &pages : nullptr);
  for (std::size_t i = 0; i < slots().size(); ++i) {
    const Slot& slot = slots()[i];
    if (!slot.used) continue;
    Counters counts;
    const std::size_t skipped = names.size() - names_told().size();
    for (std::size_t name = skipped; name < names.size(); ++name)
      counts.counter(names[name]).add(slot.counts[name]);
    lines.add("rank", i, counts);
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    Counters counts;
    counts.counter("dsm_held_pages").add(held[i]);
    lines.add("memory_server", i, counts);
  }
  lines.tell(standard_error_);
}

Status ProcessRecords::write_trace() {
  std::vector<Thread> entered;
  std::uint64_t zero = Trace::now();
  for (Thread i = 0; i < processes_; ++i) {
    if (!slots()[i].used) continue;
    entered.push_back(i);
    zero = std::min(zero, Trace(trace_of(i)).first());
  }
  TOMBOLO_TRY(file_.begin());
  TOMBOLO_TRY(file_.append(runtime::TraceFile::head()));
  for (const Thread i : entered)
    TOMBOLO_TRY(file_.append(Trace(trace_of(i)).lines(i, zero, "process")));
  TOMBOLO_TRY(file_.append(
      runtime::TraceFile::end(fmt::format("a program in {} processes", entered.size()))));
  return file_.replace();
}

}  // namespace tombolo::dsm
