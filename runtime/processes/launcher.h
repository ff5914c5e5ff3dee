// SPDX-License-Identifier: Apache-2.0
// Purpose: starts n processes of one program on this host, which find each other by an exchange
// over sockets, and ends them together.
//
//   Launcher launcher;
//   TOMBOLO_TRY(Launcher::start({.command = {"./program", "argument"}, .size = 4}, launcher));
//   const Status ended = launcher.wait();
//
//   std::unique_ptr<SocketExchange> exchange;          // in such a process
//   TOMBOLO_TRY(join(exchange));
//
// Invariants: LA1 no process of it outlives the launcher's object, nor the launcher's process,
//                 however that ends.
//             LA2 when one process fails the others are ended: by SIGTERM, and after `grace` by
//                 SIGKILL. With `first_is_program` only process 0 does so, and the others end after
//                 it; their ends are on a board that all see (end_board.h).
// Limits: processes that these start themselves are theirs to end.
// Thread safety: one thread at a time. LA1 holds as long as the thread that called start() lives.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/options.h"
#include "base/status.h"
#include "host/descriptor.h"
#include "runtime/collective/socket_exchange.h"
#include "runtime/processes/end_board.h"

namespace tombolo::runtime {

struct Launch {
  std::vector<std::string> command;  // the program, looked for in PATH, and its arguments
  int size = 1;
  std::vector<std::pair<std::string, std::string>> environment = {};  // besides this process's
  std::chrono::milliseconds grace{2000};
  bool first_is_program = false;
};

class Launcher {
 public:
  Launcher() = default;
  Launcher(Launcher&&) = default;
  Launcher& operator=(Launcher&& other) noexcept;
  ~Launcher() { end(); }

  // Errors: bad_configuration if the program cannot be started, io if the host has no processes or
  // descriptors left.
  static Status start(const Launch& launch, Launcher& out);

  // Until all have ended. Ok if all did so with status 0 (or the first one, LA2); else
  // process_failed with the rank of the first that did not, and how it ended. `interrupt`, looked
  // at now and then, ends them all.
  Status wait(const std::atomic<bool>* interrupt = nullptr);

  // As a shell tells it: 0, the status of the first process that failed, or 128 and the number of
  // the signal that killed it; 1 after other errors. After wait().
  int exit_status() const;

  // Ends all that still run (LA2).
  void end();

  // By rank; -1 if that process has been waited for.
  const std::vector<pid_t>& processes() const { return pids_; }

 private:
  Status make_board(Launch& launch);
  Status start_one(const Launch& launch, int rank, std::vector<SocketExchange::Ends>& ends);
  // Waits for a while, at most `most`, for one to end; notes those that have.
  void look(std::chrono::milliseconds most);
  void note_end(std::size_t rank, int status);
  void end_after_program();
  bool running() const;
  void signal_all(int signal);

  std::vector<pid_t> pids_;
  std::vector<host::Descriptor> ends_of_processes_;  // readable when the process has ended
  std::chrono::milliseconds grace_{0};
  std::unique_ptr<EndBoard> board_;  // first_is_program
  std::chrono::steady_clock::time_point program_ended_{};
  Status failed_;          // the first
  int failed_status_ = 0;  // as waitpid tells it; 0 if it was no process
};

// Whether a Launcher has started this process.
bool is_launched();
// The number of this process in that launcher's job; 0 elsewhere.
int launched_rank();

// In a process that a Launcher has started: its exchange. bad_configuration elsewhere.
Status join(std::unique_ptr<SocketExchange>& out);

}  // namespace tombolo::runtime
