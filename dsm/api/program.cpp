// SPDX-License-Identifier: Apache-2.0
#include "dsm/api/program.h"

#include <fmt/format.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/option_table.h"
#include "dsm/records/count_lines.h"
#include "dsm/records/hot_pages.h"
#include "dsm/threads/runtime_hooks.h"
#include "host/faults/fault_router.h"
#include "host/processes/process.h"
#include "host/stacks/alternate_stack.h"
#include "runtime/counters/counters.h"
#include "runtime/findings/call_sites.h"
#include "runtime/processes/launcher.h"

namespace tombolo::dsm {
namespace {

// This process's number in its job, for a message from a signal handler.
int rank_here = 0;

// The processes of its job once they have met, by rank.
std::vector<host::ProcessName> processes_here;

// The memory, and whether it has ended; for a signal handler.
host::AddressRange memory_here{};
volatile bool memory_ended = false;

const char* explain_fault(const void* address) {
  const auto at = reinterpret_cast<std::uint64_t>(address);
  if (at < memory_here.low || at >= memory_here.high)
    return "; it was never in the memory of tombolo_dsm_malloc";
  return memory_ended ? "; the memory of tombolo_dsm_malloc has ended with tombolo_dsm_finalize"
                      : "";
}

// The launcher of the job knows how the process ended.
void wait_for_the_launcher(int failed) {
  const auto rank = static_cast<std::size_t>(failed);
  while (rank < processes_here.size() && host::is_uncollected(processes_here[rank]))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

// Without stdio, whose locks the program may hold at a page fault.
void say(const std::string& text) {
  const std::string line = fmt::format("tombolo: {}\n", text);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

Program::Program(Start start) : start_(start) {
  // Those that are not understood are told of once the processes can agree who tells.
  Settings settings;
  (void)read_options(settings).ok();
  must(Job::join(settings.transport, exchange_));
  rank_here = exchange_->rank();
  all_.emplace(*exchange_);
  if (const runtime::Agreed opened = open(); !opened.ok())
    exchange_->end(opened, opened.status().message());
  processes_here = server_->processes();
  if (server_->holds_memory()) serve();
  blocks_ = std::make_unique<CollectiveBlocks>(memory().memory(), memory().page_bytes());
  const auto low = reinterpret_cast<std::uint64_t>(memory().memory().data());
  memory_here = {low, low + memory().memory().size()};
  must(host::ensure_alternate_stack());  // a stack that overflows cannot hold a handler
  must(host::tell_faults(explain_fault));
  runtime_hooks.memory_has_failed = &Program::give_up;
  keys_.emplace(memory(), first_of_keys, Keys::Numbers{&runtime::code_place, &runtime::address_of});
  if (start_ == Start::first) start_threads();
}

void Program::start_threads() {
  must(make_heap(memory().memory()));
  threads_.emplace(memory(), *keys_, first_of_threads(), most_mutexes + atomic_lock_count);
}

// A heap has words for each 64 KiB, also for those that it never uses.
std::uint64_t Program::most_in_heap() const {
  constexpr std::uint64_t of_several = std::uint64_t{16} << 30;
  const std::uint64_t bytes = (server_ ? server_->settings() : request_.settings).memory_bytes;
  return start_ == Start::first ? bytes : std::min(bytes, of_several);
}

WordIndex Program::first_of_threads() const {
  return first_of_heap +
         MemoryHeap::words_for(most_in_heap(), static_cast<Thread>(exchange_->size()));
}

int Program::take_key(std::uint32_t& key, void (*destructor)(void*)) {
  if (threads_) return keys_->create(key, destructor);
  key = next_key_++;
  return keys_->create_together(key, destructor);
}

Status Program::make_heap(std::span<std::byte> place) {
  if (place.size() > most_in_heap())
    return Status::no_memory(
        fmt::format("a heap of {} bytes: at most {}", place.size(), most_in_heap()));
  heap_.emplace();
  Status opened = heap_->open(memory(), place, first_of_heap);
  if (!opened.ok()) heap_.reset();
  return opened;
}

void Program::serve() {
  // It fails only where others have left early, and these, or the launcher, tell why.
  if (!server_->close(*all_).ok())
    give_up(Status::process_failed(0, "another process has left the program"));
  // Its part of calls of all: it has met no page.
  (void)hottest_pages();
  if (server_->trace() != nullptr) write_trace();
  server_.reset();
  exchange_->finish();
  // Without the rest of main(), and without output of the program that waits to be written.
  if (exchange_->one_sided() == nullptr) _exit(0);
  // MPICH tells its launcher in a handler of exit() that the process ends as it should.
  __fpurge(stdout);
  std::exit(0);
}

runtime::Agreed Program::open() {
  request_.options = runtime::read_environment();
  request_.give_up = &Program::give_up;
  request_.one_sided = exchange_->one_sided();
  request_.settings.timed = request_.options.statistics != runtime::Statistics::off;
  TOMBOLO_AGREE(all_->step({.message = "another process has settings that are not understood"},
                           [&] { return choose_sizes(); }));
  Start of_first = start_;
  all_->broadcast(of_first, 0);
  TOMBOLO_AGREE(all_->step({.message = "another process starts in another way"}, [&] {
    return of_first == start_ ? Status()
                              : Status::bad_configuration(
                                    "one process has called tombolo_dsm_init, another "
                                    "tombolo_dsm_init_first");
  }));
  TOMBOLO_AGREE(all_->step({.message = "another process cannot write the trace"},
                           [&] { return open_trace(); }));
  return ComputeServer::open(*all_, request_, server_);
}

Status Program::choose_sizes() {
  Settings& settings = request_.settings;
  TOMBOLO_TRY(read_options(settings));
  settings.locks = most_mutexes + atomic_lock_count;
  settings.words = first_of_threads();
  if (start_ == Start::all) return {};
  settings.locks += CreatedThreads::locks;
  settings.words += CreatedThreads::words(static_cast<Thread>(exchange_->size()));
  return {};
}

// The program may change its folder.
Status Program::open_trace() {
  const std::string path = text_of(options::dsm_trace);
  request_.settings.traced = !path.empty();
  if (path.empty()) return {};
  std::error_code error;
  trace_ = runtime::TraceFile(std::filesystem::absolute(path, error), options::dsm_trace);
  return rank_here == 0 ? trace_.check() : Status();
}

void Program::give_up(const Status& why) {
  using std::chrono::milliseconds;
  // The launcher names a process that was killed, and ends the others: one message, not one of
  // each. Where it has seen no failure, the first of those that wait tells.
  if (why.code() == Code::process_failed && runtime::is_launched()) {
    wait_for_the_launcher(why.rank());
    std::this_thread::sleep_for(milliseconds(2000 + 250 * std::min(rank_here, 8)));
  }
  say(fmt::format("rank {}: {}", rank_here, why.message()));
  _exit(1);
}

Lock Program::take_lock() {
  const Lock lock = threads_ ? static_cast<Lock>(memory().fetch_add(locks_taken, 1)) : next_lock_++;
  TOMBOLO_CHECK(lock < most_mutexes, "tombolo_dsm_mutex_create: all {} locks are taken",
                most_mutexes);
  return lock;
}

WordIndex Program::take_words(const char* call, WordIndex count) {
  const WordIndex first = threads_ ? memory().fetch_add(words_taken, count)
                                   : std::exchange(next_word_, next_word_ + count);
  TOMBOLO_CHECK(first + count <= most_words, "{}: all {} words are taken", call, most_words);
  return first;
}

void Program::close() {
  if (threads_ && memory().self() == 0) threads_->end();
  keys_->destroy_values();
  must(server_->close(*all_).status());
  write_counters(hottest_pages());
  if (server_->trace() != nullptr) write_trace();
  memory_ended = true;
  threads_.reset();
  keys_.reset();
  heap_.reset();
  server_.reset();
  exchange_->finish();
}

void Program::write_counters(const std::vector<runtime::Counters::Row>& pages) {
  using runtime::Counters;
  const runtime::Options& options = request_.options;
  if (options.statistics == runtime::Statistics::off) return;
  const Settings& settings = server_->settings();
  const auto choice = [](const Option& option, auto kind) {
    return std::string(option.choices[static_cast<std::size_t>(kind)]);
  };
  const std::array facts{
      Counters::Fact{"machine", std::string(name(options.machine))},
      Counters::Fact{"transport", choice(options::dsm_transport, settings.transport)},
      Counters::Fact{"protocol", choice(options::dsm_protocol, settings.protocol)}};
  const bool told_here = rank_here == 0 && server_->heat() != nullptr;
  CountLines lines(options.statistics, facts, told_here ? &pages : nullptr);
  lines.add("rank", static_cast<std::uint64_t>(rank_here), runtime::counters());
  lines.tell(STDERR_FILENO);
}

// Of all threads together, for process 0 to tell; for the others none. A call of all that keep
// records, as process 0 has settled: a process's own environment may differ.
std::vector<runtime::Counters::Row> Program::hottest_pages() {
  constexpr std::size_t most_told = 10;
  if (server_->heat() == nullptr) return {};
  const auto mine = server_->heat()->hottest();
  std::vector<HotPage> all(mine.size() * static_cast<std::size_t>(exchange_->size()));
  must(exchange_->gather(mine.data(), all.data(), sizeof mine));
  if (rank_here != 0) return {};
  const std::vector<SharedPage> pages = hottest_of(all, most_told);
  return rows_of(pages, reinterpret_cast<std::uint64_t>(memory().memory().data()),
                 memory().page_bytes());
}

// A trace that cannot be written fails nothing else.
void Program::write_trace() {
  const std::uint64_t mine = server_->trace()->first();
  std::vector<std::uint64_t> all(static_cast<std::size_t>(exchange_->size()));
  must(exchange_->gather(&mine, all.data(), sizeof mine));
  const Status written = write_trace_in_turn(*std::ranges::min_element(all));
  if (!written.ok()) say(fmt::format("rank {}: {}", rank_here, written.message()));
}

// One after the other, in the order of their numbers, to the file that process 0 has begun. Each
// has the Status of its own part; the trace is written if all have succeeded.
Status Program::write_trace_in_turn(std::uint64_t zero) {
  const int size = exchange_->size();
  Status written = rank_here == 0 ? trace_.begin() : Status();
  const std::uint64_t mine = trace_.draft();
  std::vector<std::uint64_t> drafts(static_cast<std::size_t>(size));
  gather_for_trace(&mine, drafts.data(), sizeof mine);
  if (drafts[0] == 0) return written;
  for (int turn = 0; turn < size; ++turn) {
    if (turn == rank_here) written = write_own_part(drafts[0], zero);
    const char failed = written.ok() ? 0 : 1;
    std::vector<char> all(static_cast<std::size_t>(size));
    gather_for_trace(&failed, all.data(), sizeof failed);
    if (std::ranges::find(all, 1) == all.end()) continue;
    trace_.drop();
    return written;
  }
  return rank_here == 0 ? trace_.replace() : Status();
}

// A part of the trace that process 0 has begun is not left behind where a process has died.
void Program::gather_for_trace(const void* mine, void* everyones, std::size_t bytes) {
  const Status told = exchange_->gather(mine, everyones, bytes);
  if (!told.ok()) trace_.drop();
  must(told);
}

Status Program::write_own_part(std::uint64_t draft, std::uint64_t zero) {
  const int size = exchange_->size();
  if (rank_here != 0) TOMBOLO_TRY(trace_.join(draft));
  std::string text = rank_here == 0 ? runtime::TraceFile::head() : "";
  text += server_->trace()->lines(static_cast<Thread>(rank_here), zero);
  if (rank_here == size - 1)
    text += runtime::TraceFile::end(fmt::format("{} threads on virtual shared memory", size));
  TOMBOLO_TRY(trace_.append(text));
  return trace_.end_part();
}

}  // namespace tombolo::dsm
