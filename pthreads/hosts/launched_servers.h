// SPDX-License-Identifier: Apache-2.0
// Purpose: servers that the launcher of a host MPI has started together with the first process, on
// any host. They reach each other by messages of the job (dsm/transport/mpi/one_sided.h).
//
//   first process                      another one
//   ...                                exit() in its thread: ask_exit(7)
//   asked_status() is 7: it exits
//   end(): `end` to all                asked_status() is not -1: leave(), then it exits with 0
//     waits for `left` of all            `left`
//     finishes the job                   finishes the job
//
// Invariants: LNS1 the job is finished by all processes together, when none is in an operation.
//             LNS2 the program's thread is told of an end by a signal where it computes, and
//                  between two looks of a wait: so it is at no operation then.
//             LNS3 calls of the job are made on a stack of this object: the caller's may be pages
//                  of the program's memory.
//             LNS4 one call of a process is forwarded at a time; it waits for the answer.
// Thread safety: as ServerTeam; hear() by the thread of the job that answers.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "dsm/memory/off_stack_memory.h"
#include "dsm/transport/mpi/one_sided.h"
#include "pthreads/hosts/call_service.h"
#include "pthreads/program/launched_team.h"
#include "pthreads/program/team_runtime.h"

namespace tombolo::dsm {

class LaunchedServers final : public LaunchedTeam, private OneSided::Listener {
 public:
  // The first bytes of a message.
  enum class Kind : std::uint32_t { signal, wake_up, exit, end, left, call, answer };

  // This process has no other team, and keeps this one to its end.
  LaunchedServers(OneSided& job, TeamRuntime& runtime);

  Status start() override;
  void tell_end_to(void (*exit_asked)(int status)) override { exit_asked_ = exit_asked; }
  std::unique_ptr<host::CallTarget> calls(const Facts& facts) override;

  Status add(Thread) override { return {}; }
  int signal(Thread server, int number) override;
  void wake_up(Thread server) override;
  void ask_exit(int status) override;
  int asked_status() const override { return asked_.load() - 1; }
  void end() override;
  void leave() override;

  // In another process than the first: makes the call there, within a caught call of this one's
  // thread. `looks` is called while it waits, and may end the process.
  void forward(host::SystemCall& call, void (*looks)());

 private:
  static ForwardedCall::Bytes message_of(Kind kind, std::span<const std::byte> contents);
  void hear(int from, std::span<const std::byte> message) override;
  void hear(Kind kind, int value);
  void ask(int status);
  void send(int to, Kind kind, int value = 0);
  void send(int to, Kind kind, std::span<const std::byte> contents);
  void forward_now(host::SystemCall& call, void (*looks)());
  ForwardedCall::Bytes wait_for_answer(void (*looks)());
  bool all_have_left() const;
  static void on_signal(int signal);

  OneSided& job_;
  TeamRuntime& runtime_;
  std::atomic<void (*)(int)> exit_asked_{nullptr};
  OffStackMemory::Stack stack_;
  std::uint64_t signals_ = 0;  // of SignalsWait
  std::atomic<int> asked_{0};  // status + 1
  std::atomic<int> left_{0};
  std::atomic<int> interruptions_{0};  // signals and wake-ups that have come

  CallService service_;
  std::mutex mutex_;  // of the two below
  std::optional<ForwardedCall::Bytes> answer_;
  bool finished_ = false;
  bool forwards_ = false;
};

}  // namespace tombolo::dsm
