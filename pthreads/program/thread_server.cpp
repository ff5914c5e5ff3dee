// SPDX-License-Identifier: Apache-2.0
#include "pthreads/program/thread_server.h"

#include <langinfo.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "dsm/threads/runtime_hooks.h"
#include "host/interrupts/wake_up.h"
#include "host/stacks/alternate_stack.h"
#include "host/stacks/other_stack.h"
#include "pthreads/program/carried_signals.h"
#include "pthreads/program/own_streams.h"

namespace tombolo::dsm {

void ThreadServer::run(const Main& /*main*/) {
  take_over();
  block_all_but_faults();
  must(enter());
  give_own_buffers(facts_);
  serve();
}

void ThreadServer::serve() {
  for (;;) {
    Task task;
    running_ = 0;
    running_ = threads().take(task);
    adopt_program();
    std::uint64_t result = 0;
    run_thread(task, result);
    if (task.stack_is_ours) heap().free(task.stack);
    heap().settle();
    facts_.kind->note_counts(true);
    threads().finish(running_, result);
  }
}

// ---- A thread -----------------------------------------------------------------------------------

struct ThreadServer::Run {
  ThreadServer& server;
  const Task& task;
  void* result = nullptr;
};

namespace {

// The C library reads these of the program's language as a thread starts, which holds all signals
// back: a page fault there would end the process. So they are read before.
void open_language() {
  for (const nl_item item : {_NL_CTYPE_CLASS, _NL_CTYPE_TOUPPER, _NL_CTYPE_TOLOWER})
    static_cast<void>(*static_cast<const volatile char*>(nl_langinfo(item)));
}

}  // namespace

void ThreadServer::run_thread(const Task& task, std::uint64_t& result) {
  stack_ =
      task.stack != nullptr ? std::span(task.stack, task.stack_bytes) : facts_.stack_of(number_);
  Run made{.server = *this, .task = task};
  const std::span<std::byte> base = facts_.base_of(number_);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, base.data(), base.size());
  pthread_t thread{};
  open_language();
  const NoCarriers while_it_runs;
  const int error = facts_.host.create(&thread, &attributes, &ThreadServer::run_task, &made);
  TOMBOLO_CHECK(error == 0, "a thread of the C library in process {}: {}", getpid(),
                std::strerror(error));
  pthread_attr_destroy(&attributes);
  void* value = nullptr;
  facts_.host.join(thread, &value);
  result = reinterpret_cast<std::uint64_t>(value);
}

void* ThreadServer::run_task(void* object) {
  Run& made = *static_cast<Run*>(object);
  ThreadServer& server = made.server;
  server.notice_thread_end();
  served = &server;
  sigset_t mask;
  sigemptyset(&mask);
  std::memcpy(&mask, &made.task.signal_mask, sizeof made.task.signal_mask);
  must(server.serve_signals_of_thread(mask));
  must(host::serve_wake_ups());
  {
    const Inside inside;
    must(host::ensure_alternate_stack());  // for the fault of a stack that is too small
  }
  host::OtherStack stack(server.stack_);
  server.catch_calls();
  stack.run([&] {
    let_signals_come();
    made.result = made.task.function(made.task.argument);
  });
  return made.result;
}

Status ThreadServer::serve_signals_of_thread(sigset_t mask) {
  return serve_signals(mask, facts_.first_process);
}

void ThreadServer::thread_ends() {
  host::leave_wake_ups();
  leave_signals();
  served = nullptr;
  catching = false;
  host::leave_calls();
}

// ---- The end ------------------------------------------------------------------------------------

void ThreadServer::exit(int status) {
  std::fflush(stdout);
  {
    const Busy busy(*this);
    facts_.team->ask_exit(status);
  }
  wait_for_end();
  __builtin_unreachable();
}

// A signal ends this process.
void ThreadServer::wait_for_end() {
  for (;;) pause();
}

}  // namespace tombolo::dsm
