// SPDX-License-Identifier: Apache-2.0
#include "dsm/threads/thread_table.h"

#include <cerrno>

#include "dsm/threads/runtime_hooks.h"

namespace tombolo::dsm {
namespace {

// Of the table.
constexpr WordIndex running_word = 0;  // threads that have not ended, but for the first
constexpr WordIndex hint_word = 1;     // the record that is looked at first
constexpr WordIndex head_words = 2;

// Of a server.
constexpr WordIndex task_word = 0;
constexpr std::uint64_t absent = 0;
constexpr std::uint64_t idle = 1;
constexpr std::uint64_t first_task = 2;  // + record

// Of a record.
constexpr WordIndex state_word = 0;
constexpr WordIndex generation_word = 1;
constexpr WordIndex function_word = 2;
constexpr WordIndex argument_word = 3;
constexpr WordIndex result_word = 3;  // once it has ended
constexpr WordIndex mask_word = 4;
constexpr WordIndex stack_word = 5;
constexpr WordIndex stack_bytes_word = 6;       // twice, + 1 if it is to be freed
constexpr WordIndex joiner_word = 7;            // a handle, or 0
constexpr WordIndex server_word_of_record = 8;  // + 1
constexpr WordIndex cancel_word = 9;

constexpr std::uint64_t free_state = 0;
constexpr std::uint64_t reserved = 1;
constexpr std::uint64_t alive = 2;
constexpr std::uint64_t alive_detached = 3;
constexpr std::uint64_t ended = 4;  // and not detached

constexpr unsigned generation_shift = 16;

}  // namespace

WordIndex ThreadTable::field(std::uint64_t record, WordIndex which) const {
  return layout_.first_word + head_words + layout_.servers * ThreadTableLayout::words_of_server +
         record * ThreadTableLayout::words_of_record + which;
}

WordIndex ThreadTable::server_word(Thread server, WordIndex which) const {
  return layout_.first_word + head_words + server * ThreadTableLayout::words_of_server + which;
}

bool ThreadTable::valid(ThreadHandle thread) {
  if ((thread & 0xffff) == 0 || record_of(thread) >= ThreadTableLayout::records) return false;
  return memory_.load(field(record_of(thread), generation_word)) == thread >> generation_shift;
}

bool ThreadTable::exists(ThreadHandle thread) {
  if (thread == first_thread) return true;
  return valid(thread) && memory_.load(field(record_of(thread), state_word)) >= alive;
}

void ThreadTable::hand_over_record(std::uint64_t record) {
  hand_over(memory_, layout_.first_lock + static_cast<Lock>(record % ThreadTableLayout::locks));
}

// Record 0 is the first thread's.
bool ThreadTable::reserve_record(std::uint64_t& record) {
  const std::uint64_t hint = memory_.fetch_add(layout_.first_word + hint_word, 1);
  for (std::uint64_t looks = 0; looks < ThreadTableLayout::records; ++looks) {
    record = (hint + looks) % (ThreadTableLayout::records - 1) + 1;
    if (memory_.load(field(record, state_word)) == free_state &&
        memory_.compare_exchange(field(record, state_word), free_state, reserved) == free_state)
      return true;
  }
  return false;
}

void ThreadTable::fill(std::uint64_t record, const Task& task) {
  memory_.store(field(record, function_word), reinterpret_cast<std::uint64_t>(task.function));
  memory_.store(field(record, argument_word), reinterpret_cast<std::uint64_t>(task.argument));
  memory_.store(field(record, mask_word), task.signal_mask);
  memory_.store(field(record, stack_word), reinterpret_cast<std::uint64_t>(task.stack));
  memory_.store(field(record, stack_bytes_word), task.stack_bytes * 2 + task.stack_is_ours);
  memory_.store(field(record, joiner_word), 0);
  memory_.store(field(record, cancel_word), 0);
}

int ThreadTable::create(const Task& task, const StartServer& start, ThreadHandle& out) {
  std::uint64_t record = 0;
  lacked_server_ = false;
  if (!reserve_record(record)) return EAGAIN;
  fill(record, task);
  out = memory_.load(field(record, generation_word)) << generation_shift | (record + 1);
  memory_.record(&out, sizeof out);
  const std::uint64_t state = task.detached ? alive_detached : alive;
  memory_.store(field(record, state_word), state);
  memory_.fetch_add(layout_.first_word + running_word, 1);
  // The creator's stores are where the thread looks before it is told (THT2).
  hand_over_record(record);
  int error = EAGAIN;
  if (assign(record, start, error)) return 0;
  memory_.fetch_add(layout_.first_word + running_word, ~std::uint64_t{0});
  free_record(record, state);
  return error;
}

bool ThreadTable::assign(std::uint64_t record, const StartServer& start, int& error) {
  for (Thread server = 1; server < layout_.servers; ++server) {
    const WordIndex word = server_word(server, task_word);
    if (memory_.load(word) != idle) continue;
    memory_.store(field(record, server_word_of_record), server + 1);
    if (memory_.compare_exchange(word, idle, first_task + record) == idle) return true;
  }
  for (Thread server = 1; server < layout_.servers; ++server) {
    const WordIndex word = server_word(server, task_word);
    if (memory_.load(word) != absent) continue;
    memory_.store(field(record, server_word_of_record), server + 1);
    if (memory_.compare_exchange(word, absent, first_task + record) != absent) continue;
    error = start(server);
    if (error != 0) memory_.store(word, absent);
    return error == 0;
  }
  lacked_server_ = true;
  return false;
}

ThreadHandle ThreadTable::take(Task& task) {
  const WordIndex word = server_word(memory_.self(), task_word);
  std::uint64_t found = 0;
  wait_until(memory_, [&] { return (found = memory_.load(word)) >= first_task; });
  const std::uint64_t record = found - first_task;
  // Stores of the creator before create() (THT2).
  hand_over_record(record);
  const std::uint64_t stack_bytes = memory_.load(field(record, stack_bytes_word));
  task = {
      .function = reinterpret_cast<void* (*)(void*)>(memory_.load(field(record, function_word))),
      .argument = reinterpret_cast<void*>(memory_.load(field(record, argument_word))),
      .signal_mask = memory_.load(field(record, mask_word)),
      .stack = reinterpret_cast<std::byte*>(memory_.load(field(record, stack_word))),
      .stack_bytes = stack_bytes / 2,
      .stack_is_ours = stack_bytes % 2 != 0};
  return memory_.load(field(record, generation_word)) << generation_shift | (record + 1);
}

void ThreadTable::finish(ThreadHandle thread, std::uint64_t result) {
  const std::uint64_t record = record_of(thread);
  memory_.store(field(record, result_word), result);
  // The thread's stores are where its joiner looks before it is told (THT2).
  hand_over_record(record);
  memory_.store(field(record, server_word_of_record), 0);
  memory_.store(server_word(memory_.self(), task_word), idle);  // THT3
  if (memory_.compare_exchange(field(record, state_word), alive, ended) == alive_detached)
    free_record(record, alive_detached);
  memory_.fetch_add(layout_.first_word + running_word, ~std::uint64_t{0});
}

// Of several that try, one does (THT1). The generation changes first: from then on no handle names
// the record.
void ThreadTable::free_record(std::uint64_t record, std::uint64_t state) {
  if (memory_.compare_exchange(field(record, state_word), state, reserved) != state) return;
  memory_.fetch_add(field(record, generation_word), 1);
  memory_.store(field(record, state_word), free_state);
}

int ThreadTable::claim(ThreadHandle self, ThreadHandle thread) {
  if (self == thread) return EDEADLK;
  // The first thread is not joined by others here: it would be after its end only.
  if (thread == first_thread) return EINVAL;
  if (!exists(thread)) return ESRCH;
  if (self != 0 && memory_.load(field(record_of(self), joiner_word)) == thread) return EDEADLK;
  const std::uint64_t record = record_of(thread);
  if (memory_.load(field(record, state_word)) == alive_detached) return EINVAL;
  return memory_.compare_exchange(field(record, joiner_word), 0, self) == 0 ? 0 : EINVAL;
}

int ThreadTable::collect(ThreadHandle thread, std::uint64_t& result) {
  const std::uint64_t record = record_of(thread);
  // Stores of the thread that has ended (THT2).
  hand_over_record(record);
  result = memory_.load(field(record, result_word));
  free_record(record, ended);
  return 0;
}

int ThreadTable::join(ThreadHandle self, ThreadHandle thread, std::uint64_t& result) {
  if (const int error = claim(self, thread); error != 0) return error;
  // A joiner that is cancelled leaves the thread to be joined by another.
  struct Claim {
    ProgramMemory& memory;
    WordIndex word;
    bool done = false;
    ~Claim() {
      if (!done) memory.store(word, 0);
    }
  } claimed{memory_, field(record_of(thread), joiner_word)};
  const WordIndex state = field(record_of(thread), state_word);
  wait_cancellably(memory_, [&] { return memory_.load(state) == ended; });
  claimed.done = true;
  return collect(thread, result);
}

int ThreadTable::try_join(ThreadHandle self, ThreadHandle thread, std::uint64_t& result) {
  if (thread != first_thread && self != thread && exists(thread) &&
      memory_.load(field(record_of(thread), state_word)) == alive)
    return EBUSY;
  if (const int error = claim(self, thread); error != 0) return error;
  return collect(thread, result);
}

int ThreadTable::detach(ThreadHandle thread) {
  if (thread == first_thread) return 0;
  if (!exists(thread)) return ESRCH;
  const std::uint64_t record = record_of(thread);
  if (memory_.load(field(record, joiner_word)) != 0) return EINVAL;
  const std::uint64_t found =
      memory_.compare_exchange(field(record, state_word), alive, alive_detached);
  if (found == ended) free_record(record, ended);
  return found == alive_detached ? EINVAL : 0;
}

void ThreadTable::wait_for_all() {
  wait_until(memory_, [&] { return memory_.load(layout_.first_word + running_word) == 0; });
}

bool ThreadTable::joined(ThreadHandle thread) {
  return exists(thread) && memory_.load(field(record_of(thread), joiner_word)) != 0;
}

Thread ThreadTable::server_of(ThreadHandle thread) {
  if (!exists(thread)) return 0;
  const std::uint64_t server = memory_.load(field(record_of(thread), server_word_of_record));
  return server == 0 ? 0 : static_cast<Thread>(server - 1);
}

int ThreadTable::ask_cancel(ThreadHandle thread) {
  if (!exists(thread)) return ESRCH;
  // Not by a store, which may take its time: the thread is woken up next, and looks.
  memory_.exchange(field(record_of(thread), cancel_word), 1);
  return 0;
}

bool ThreadTable::cancel_asked(ThreadHandle thread) {
  return memory_.load(field(record_of(thread), cancel_word)) != 0;
}

}  // namespace tombolo::dsm
