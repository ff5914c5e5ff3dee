// SPDX-License-Identifier: Apache-2.0
// Purpose: the threads of a program that starts and ends them: a record for each, in words, and the
// *servers*, processes that run one thread at a time. A server's number is its ProgramMemory's.
//
//   creator: create()                       server: take(task), run it, finish()
//   joiner:  join()
//
// Invariants: THT1 a record is taken by one creator, and freed once: by the joiner, or for a
//                  detached thread by its server.
//             THT2 the creator's stores before create() are seen by the thread, the thread's stores
//                  by its joiner: each hands over by a lock of the record.
//             THT3 a server is idle again before its thread's end is told: a program that joins
//                  one thread and starts the next needs one server.
//             THT4 a handle names one thread for ever, up to 2^47 threads.
// Thread safety: as ProgramMemory. Errors are the numbers of Pthreads.
#pragma once

#include <cstdint>
#include <functional>

#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

// A thread of the program. Never 0.
using ThreadHandle = std::uint64_t;

struct Task {
  void* (*function)(void*) = nullptr;
  void* argument = nullptr;
  std::uint64_t signal_mask = 0;
  std::byte* stack = nullptr;  // lowest address; null: the server's own
  std::size_t stack_bytes = 0;
  bool stack_is_ours = false;  // to be freed at the end
  bool detached = false;
};

struct ThreadTableLayout {
  static constexpr std::uint64_t records = 8192;
  static constexpr WordIndex words_of_record = 10;
  static constexpr Lock locks = 64;  // for handing over

  static constexpr WordIndex words(Thread servers) {
    return 2 + servers * words_of_server + records * words_of_record;
  }
  static constexpr WordIndex words_of_server = 2;

  WordIndex first_word = 0;
  Lock first_lock = 0;
  Thread servers = 1;  // the program's first thread among them, as server 0
};

class ThreadTable {
 public:
  static constexpr ThreadHandle first_thread = 1;

  // Starts the process of a server that has none. Returns 0, or an error's number.
  using StartServer = std::function<int(Thread server)>;

  ThreadTable(ProgramMemory& memory, const ThreadTableLayout& layout)
      : memory_(memory), layout_(layout) {}

  // EAGAIN if there is no record or server left. `out` is set before the thread starts.
  int create(const Task& task, const StartServer& start, ThreadHandle& out);
  // Whether the last create() of this object failed since all servers had threads.
  bool lacked_server() const { return lacked_server_; }
  // A server's: waits for a task.
  ThreadHandle take(Task& task);
  // A server's, when the thread has ended.
  void finish(ThreadHandle thread, std::uint64_t result);

  // ESRCH, EINVAL if it is detached or another thread joins it, EDEADLK.
  int join(ThreadHandle self, ThreadHandle thread, std::uint64_t& result);
  // EBUSY if it has not ended.
  int try_join(ThreadHandle self, ThreadHandle thread, std::uint64_t& result);
  int detach(ThreadHandle thread);
  // Until all threads but the first have ended.
  void wait_for_all();

  // Whether it exists (joined and detached ones do not).
  bool exists(ThreadHandle thread);
  // Whether a thread waits for its end.
  bool joined(ThreadHandle thread);
  // The server that runs it; 0 if none does.
  Thread server_of(ThreadHandle thread);

  // A thread may be asked to end.
  int ask_cancel(ThreadHandle thread);
  bool cancel_asked(ThreadHandle thread);

 private:
  static std::uint64_t record_of(ThreadHandle thread) { return (thread & 0xffff) - 1; }
  WordIndex field(std::uint64_t record, WordIndex which) const;
  WordIndex server_word(Thread server, WordIndex which) const;
  bool valid(ThreadHandle thread);
  bool reserve_record(std::uint64_t& record);
  bool assign(std::uint64_t record, const StartServer& start, int& error);
  void fill(std::uint64_t record, const Task& task);
  void free_record(std::uint64_t record, std::uint64_t state);
  int claim(ThreadHandle self, ThreadHandle thread);
  int collect(ThreadHandle thread, std::uint64_t& result);
  void hand_over_record(std::uint64_t record);

  ProgramMemory& memory_;
  ThreadTableLayout layout_;
  bool lacked_server_ = false;
};

}  // namespace tombolo::dsm
