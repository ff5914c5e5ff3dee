// SPDX-License-Identifier: Apache-2.0
#include "pthreads/program/threaded_program.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "dsm/threads/runtime_hooks.h"
#include "host/memory/page.h"
#include "host/stacks/alternate_stack.h"

namespace tombolo::dsm {

void ThreadedProgram::tell(const std::string& sentence) {
  std::fprintf(stderr, "tombolo: %s\n", sentence.c_str());
}

// ---- The start ----------------------------------------------------------------------------------

Status ThreadedProgram::open_memory(Thread thread, host::CallTarget* calls) {
  own_process_ = static_cast<pid_t>(syscall(SYS_getpid));
  const ProgramLayout& layout = facts_.layout;
  TOMBOLO_TRY(facts_.kind->enter(thread, memory_));
  threads_ = std::make_unique<ThreadTable>(*memory_, layout.threads());
  objects_ = std::make_unique<ObjectTable>(*memory_, layout.objects());
  TOMBOLO_TRY(make_heap());
  mappings_ =
      std::make_unique<Mappings>(*memory_, *heap_, layout.mappings(), layout.mappings_lock());
  if (layout.has_pages)
    calls_ = std::make_unique<SystemCalls>(*memory_, facts_.kind->open_at_once(), calls);
  return {};
}

Status ThreadedProgram::make_heap() {
  const ProgramLayout& layout = facts_.layout;
  const std::span room(reinterpret_cast<std::byte*>(layout.heap()), layout.heap_bytes);
  if (!layout.has_pages) {
    heap_ = std::make_unique<ClassHeap>(*memory_, room, layout.heap_words(), layout.heap_locks());
    return {};
  }
  auto heap = std::make_unique<ArenaHeap>();
  TOMBOLO_TRY(heap->open(*memory_, room, layout.heap_words()));
  heap_ = std::move(heap);
  return {};
}

Status ThreadedProgram::make_room_for_threads(std::byte* bases) {
  TOMBOLO_TRY(facts_.make_bases(bases));
  return facts_.host.create_key(&facts_.end_key, &at_thread_end) == 0
             ? Status()
             : Status::io("pthread_key_create: the C library has no key left");
}

void ThreadedProgram::take_over() {
  running_here = this;
  runtime_hooks.between_looks = &look_for_end;
  runtime_hooks.runtime_begins = [] { ++running_here->busy_; };
  runtime_hooks.runtime_ends = [] { --running_here->busy_; };
  runtime_hooks.runtime_has_ended = [] { running_here->look_when_idle(); };
}

void ThreadedProgram::catch_calls() {
  if (calls_ == nullptr) return;
  const Inside inside;
  // Else a fault would end the process.
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : {SIGSEGV, SIGBUS, SIGSYS}) sigaddset(&ours, signal);
  pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
  must(host::ensure_alternate_stack());
  must(host::catch_calls(*calls_));
  catching = true;
}

// ---- Threads ------------------------------------------------------------------------------------

int ThreadedProgram::create(Task task, ThreadHandle& out) {
  if (const int error = prepare_threads(); error != 0) return error;
  if (task.stack == nullptr && task.stack_bytes > ProgramLayout::stack_bytes) {
    task.stack =
        static_cast<std::byte*>(heap().allocate(task.stack_bytes, host::page_bytes(), false));
    if (task.stack == nullptr) return EAGAIN;
    task.stack_is_ours = true;
  }
  const int error = threads().create(
      task, [this](Thread server) { return start_server(server); }, out);
  if (error != 0 && task.stack_is_ours) heap().free(task.stack);
  if (error != 0 && threads().lacked_server()) tell_of_refusal();
  return error;
}

// Once of the program, which may try again and again.
void ThreadedProgram::tell_of_refusal() {
  if (memory().exchange(layout().refusal(), 1) != 0) return;
  const Inside inside;
  tell(
      fmt::format("pthread_create: there is room for {} threads at once, the first one included: "
                  "give a larger -n (TOMBOLO_DSM_PROCESSES)",
                  layout().servers));
}

int ThreadedProgram::start_server(Thread server) {
  const Inside inside;
  const Status status = facts_.team->add(server);
  if (status.ok()) return 0;
  tell(status.message());
  return EAGAIN;
}

// False: it has ended, and was not joined.
bool ThreadedProgram::process_of(ThreadHandle thread, Thread& server) {
  server = thread == ThreadTable::first_thread ? 0 : threads().server_of(thread);
  return thread == ThreadTable::first_thread || server != 0;
}

int ThreadedProgram::signal(ThreadHandle thread, int number) {
  if (!threads().exists(thread)) return ESRCH;
  Thread server = 0;
  if (!process_of(thread, server) || number == 0) return 0;
  const Busy busy(*this);
  return has_processes() ? facts_.team->signal(server, number) : kill(getpid(), number);
}

void ThreadedProgram::wake_up(ThreadHandle thread) {
  Thread server = 0;
  if (!threads().exists(thread) || !process_of(thread, server) || !has_processes()) return;
  const Busy busy(*this);
  facts_.team->wake_up(server);
}

// Called by the C library at the end of the thread, after its cleanup handlers.
void ThreadedProgram::at_thread_end(void* program) {
  ThreadedProgram& ended = *static_cast<ThreadedProgram*>(program);
  ended.facts_.at_thread_end();
  ended.thread_ends();
}

// ---- The end ------------------------------------------------------------------------------------

void ThreadedProgram::look_for_end() {
  ThreadedProgram& program = *running_here;
  program.facts_.kind->note_counts(false);
  if (program.ends_ || !program.has_processes()) return;
  if (const int status = program.facts_.team->asked_status(); status >= 0) program.end_here(status);
}

// The handler of a signal calls it.
void ThreadedProgram::exit_asked(int status) {
  ThreadedProgram& program = *running_here;
  if (program.ends_) return;
  if (program.busy_ > 0) {
    program.end_waits_ = true;
    return;
  }
  program.end_here(status);
}

void ThreadedProgram::look_when_idle() {
  if (busy_ > 0 || !end_waits_) return;
  end_waits_ = false;
  look_for_end();
}

bool ThreadedProgram::is_in_a_child() const {
  const host::CallsPass of_the_runtime;
  return syscall(SYS_getpid) != own_process_;
}

}  // namespace tombolo::dsm
