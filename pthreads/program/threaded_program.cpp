// SPDX-License-Identifier: Apache-2.0
#include "pthreads/program/threaded_program.h"

#include <fmt/format.h>
#include <langinfo.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/rounding.h"
#include "dsm/allocator/private_heap.h"
#include "dsm/memory/off_stack_memory.h"
#include "dsm/threads/runtime_hooks.h"
#include "host/faults/caught_calls.h"
#include "host/interrupts/wake_up.h"
#include "host/memory/page.h"
#include "host/memory/program_variables.h"
#include "host/memory/raw_calls.h"
#include "host/processes/no_signals.h"
#include "host/stacks/alternate_stack.h"
#include "host/stacks/other_stack.h"
#include "pthreads/program/carried_signals.h"
#include "pthreads/program/forked_servers.h"
#include "pthreads/program/launched_team.h"
#include "pthreads/program/program_layout.h"
#include "pthreads/program/program_state.h"

namespace tombolo::dsm {
namespace {

// Never destroyed: the program's stack lies in its memory.
constinit ThreadedProgram* the_program = nullptr;

// Room for the C library's part of a thread: its descriptor, thread-local memory, and the calls
// that end it.
std::size_t base_bytes() {
  static const std::size_t bytes =
      round_up(host::thread_local_bytes() + (std::size_t{1} << 20), host::page_bytes());
  return bytes;
}

std::byte* pointer(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

// A stream of the C library is each process's own; its buffer, if it was used before, is the
// program's, and would be written by all. Nothing is in it: it was flushed before the fork.
void give_buffer(std::FILE* stream, const ThreadedProgram& program) {
  if (!program.owns(stream->_IO_buf_base)) return;
  constexpr int no_buffer_to_free = 1;  // _IO_USER_BUF
  constexpr int by_line = 0x200;        // _IO_LINE_BUF
  constexpr int writes = 0x800;         // _IO_CURRENTLY_PUTTING
  const std::ptrdiff_t bytes = stream->_IO_buf_end - stream->_IO_buf_base;
  auto* const buffer = static_cast<char*>(PrivateHeap::allocate(static_cast<std::size_t>(bytes)));
  if (buffer == nullptr) return;
  stream->_IO_buf_base = buffer;
  stream->_IO_buf_end = buffer + bytes;
  stream->_IO_read_base = stream->_IO_read_ptr = stream->_IO_read_end = buffer;
  stream->_IO_write_base = stream->_IO_write_ptr = stream->_IO_write_end = buffer;
  // Else the C library would write each part of the first line by itself.
  if ((stream->_flags & (by_line | writes)) == writes) stream->_IO_write_end = buffer + bytes;
  stream->_flags |= no_buffer_to_free;
}

// Lines of several processes come to the launcher by a pipe of each, and whole.
void write_by_line(std::FILE* stream) {
  constexpr std::size_t bytes = 65536;
  auto* const buffer = static_cast<char*>(PrivateHeap::allocate(bytes));
  if (buffer != nullptr) std::setvbuf(stream, buffer, _IOLBF, bytes);
}

// Of this thread.
void block_all_but_faults() {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGABRT})
    sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

void tell(const std::string& sentence) { std::fprintf(stderr, "tombolo: %s\n", sentence.c_str()); }

}  // namespace

ThreadedProgram::ThreadedProgram() = default;
ThreadedProgram::~ThreadedProgram() = default;

runtime::Agreed ThreadedProgram::start(Job& job, const HostThreads& host, AtEnd at_end,
                                       std::unique_ptr<ProgramMemories> kind, std::string& advice) {
  runtime_starts_threads();
  auto* const program = new ThreadedProgram();
  program->host_ = host;
  program->at_end_ = at_end;
  program->kind_ = std::move(kind);
  program->job_ = job.one_sided();
  program->environment_ = environ;
  runtime::Collective all(job);
  runtime::Agreed agreed = program->begin(all);
  if (!agreed.ok()) {
    advice = program->advice(agreed.status());
    return agreed;
  }
  the_program = program;
  served = the_program;
  runtime_hooks.between_looks = &ThreadedProgram::look_for_end;
  runtime_hooks.runtime_begins = [] { ++the_program->busy_; };
  runtime_hooks.runtime_ends = [] { --the_program->busy_; };
  runtime_hooks.runtime_has_ended = [] { the_program->look_when_idle(); };
  if (program->launched_ != nullptr) program->launched_->tell_end_to(&ThreadedProgram::exit_asked);
  if (!program->is_server()) std::atexit(&ThreadedProgram::end_team);
  return agreed;
}

runtime::Agreed ThreadedProgram::begin(runtime::Collective<Job>& all) {
  TOMBOLO_AGREE(agree_with_others(all));
  TOMBOLO_AGREE(kind_->make(all, memory_plan()));
  TOMBOLO_AGREE(all.step({}, [&] { return holds_memory() ? Status() : make_bases(); }));
  TOMBOLO_AGREE(all.step({}, [&] { return start_launched_team(); }));
  return all.step({}, [&] {
    if (!holds_memory()) TOMBOLO_TRY(enter(static_cast<Thread>(all.rank())));
    const bool has_key = host_.create_key(&end_key_, &at_thread_end) == 0;
    return has_key ? Status() : Status::io("pthread_key_create: the C library has no key left");
  });
}

// The layout of the first process is that of all.
runtime::Agreed ThreadedProgram::agree_with_others(runtime::Collective<Job>& all) {
  layout_ = std::make_unique<ProgramLayout>();
  first_process_ = getpid();
  const auto launched = static_cast<Thread>(job_ == nullptr ? 0 : all.size());
  TOMBOLO_AGREE(all.step({}, [&] { return lay_out(*kind_, launched, *layout_); }));
  all.broadcast(*layout_, 0);
  all.broadcast(first_process_, 0);
  return all.step({}, [&] {
    memory_ = {pointer(layout_->variables.low), layout_->end() - layout_->variables.low};
    return Status();
  });
}

MemoryPlan ThreadedProgram::memory_plan() const {
  return {.at = memory_,
          .filled = layout_->variables.bytes(),
          .threads = layout_->servers,
          .locks = layout_->locks(),
          .words = layout_->words(),
          .closed = stack_ends()};
}

std::string ThreadedProgram::advice(const Status& why) const {
  if (why.code() != Code::no_memory) return {};
  return fmt::format(
      ". It is for {} processes and a heap of {} bytes{}; smaller numbers need less: "
      "-n (TOMBOLO_DSM_PROCESSES), --memory (TOMBOLO_DSM_HEAP){}",
      layout_->servers, layout_->heap_bytes,
      layout_->has_pages ? ", and the pages that each caches" : "",
      layout_->has_pages ? ", --cache (TOMBOLO_DSM_CACHE)" : "");
}

// WLL1
std::vector<std::byte*> ThreadedProgram::stack_ends() const {
  std::vector<std::byte*> pages = {pointer(layout_->variables.high)};
  for (Thread server = 0; server < layout_->servers; ++server)
    pages.push_back(pointer(layout_->stacks() + server * ProgramLayout::stack_bytes));
  return pages;
}

Status ThreadedProgram::enter(Thread thread) {
  own_process_ = static_cast<pid_t>(syscall(SYS_getpid));
  // The one that was inherited is the first thread's.
  static_cast<void>(process_.release());
  auto process = std::make_unique<Process>();
  TOMBOLO_TRY(kind_->enter(thread, process->memory));
  ProgramMemory& memory = *process->memory;
  process->threads = std::make_unique<ThreadTable>(memory, layout_->threads());
  process->objects = std::make_unique<ObjectTable>(memory, layout_->objects());
  TOMBOLO_TRY(make_heap(memory, process->heap));
  process->mappings = std::make_unique<Mappings>(memory, *process->heap, layout_->mappings(),
                                                 layout_->mappings_lock());
  if (layout_->has_pages)
    process->calls =
        std::make_unique<SystemCalls>(memory, kind_->open_at_once(), launched_calls_.get());
  process_ = std::move(process);
  return {};
}

Status ThreadedProgram::make_heap(ProgramMemory& memory, std::unique_ptr<Heap>& out) const {
  const std::span room(pointer(layout_->heap()), layout_->heap_bytes);
  if (!layout_->has_pages) {
    out = std::make_unique<ClassHeap>(memory, room, layout_->heap_words(), layout_->heap_locks());
    return {};
  }
  auto heap = std::make_unique<ArenaHeap>();
  TOMBOLO_TRY(heap->open(memory, room, layout_->heap_words()));
  out = std::move(heap);
  return {};
}

Status ThreadedProgram::make_bases() {
  const std::size_t bytes = base_bytes() * layout_->servers;
  // Between hosts at the same address in all (WLD2), far behind the memory.
  constexpr std::uint64_t between = std::uint64_t{1} << 30;
  const std::uint64_t at = job_ == nullptr ? 0 : round_up(layout_->end() + between, between);
  void* const bases = mmap(
      pointer(at), bytes, PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at == 0 ? 0 : MAP_FIXED_NOREPLACE), -1, 0);
  if (bases == MAP_FAILED)
    return Status::no_memory(
        fmt::format("{} bytes for thread-local memory: {}", bytes, std::strerror(errno)));
  bases_ = {static_cast<std::byte*>(bases), bytes};
  return {};
}

std::span<std::byte> ThreadedProgram::stack_of(Thread server) const {
  const std::uint64_t page = host::page_bytes();
  return {pointer(layout_->stacks() + server * ProgramLayout::stack_bytes + page),
          ProgramLayout::stack_bytes - page};
}

std::span<std::byte> ThreadedProgram::base_of(Thread server) const {
  return bases_.subspan(server * base_bytes(), base_bytes());
}

void ThreadedProgram::run_on_first_stack(void (*function)(void*), void* object) {
  const std::uint64_t page = host::page_bytes();
  process_->stack = {pointer(layout_->variables.high + page),
                     ProgramLayout::first_stack_bytes - page};
  host::OtherStack stack(process_->stack);
  catch_calls();
  stack.run([=] { function(object); });
}

// Of the calling thread.
void ThreadedProgram::catch_calls() {
  if (process_->calls == nullptr) return;
  const Inside inside;
  // Else a fault would end the process.
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : {SIGSEGV, SIGBUS, SIGSYS}) sigaddset(&ours, signal);
  pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
  must(host::ensure_alternate_stack());
  must(host::catch_calls(*process_->calls));
  catching = true;
}

// ---- The first process ----------------------------------------------------------------------

int ThreadedProgram::create(Task task, ThreadHandle& out) {
  if (!team_) {
    if (const Status status = start_team(); !status.ok()) {
      tell("no process for a thread: " + status.message());
      return EAGAIN;
    }
  }
  if (task.stack == nullptr && task.stack_bytes > ProgramLayout::stack_bytes) {
    task.stack =
        static_cast<std::byte*>(heap().allocate(task.stack_bytes, host::page_bytes(), false));
    if (task.stack == nullptr) return EAGAIN;
    task.stack_is_ours = true;
  }
  if (job_ != nullptr && memory().load(layout_->state()) == 0) {
    void* const block = heap().allocate(sizeof(ProgramState), alignof(ProgramState), true);
    if (block == nullptr) return EAGAIN;
    memory().store(layout_->state(), reinterpret_cast<std::uint64_t>(new (block) ProgramState()));
  }
  const int error = threads().create(
      task, [this](Thread server) { return start_server(server); }, out);
  if (error != 0 && task.stack_is_ours) heap().free(task.stack);
  if (error != 0 && threads().lacked_server()) tell_of_refusal();
  return error;
}

// Once of the program, which may try again and again.
void ThreadedProgram::tell_of_refusal() {
  if (memory().exchange(layout_->refusal(), 1) != 0) return;
  const Inside inside;
  tell(
      fmt::format("pthread_create: there is room for {} threads at once, the first one included: "
                  "give a larger -n (TOMBOLO_DSM_PROCESSES)",
                  layout_->servers));
}

Status ThreadedProgram::start_team() {
  if (!is_first())
    return Status::unsupported("the program's first thread has to create the second");
  std::fflush(nullptr);  // else the new processes would write it once more
  const Busy busy(*this);
  const Inside inside;
  // The C++ library counts references without atomic operations as long as this is set.
  if (host_.single_threaded != nullptr) *host_.single_threaded = 0;
  TOMBOLO_TRY(keep_carriers());
  // Of a server, too, until it runs a thread: a signal for that one may come before.
  const host::NoSignals before_its_thread;
  auto servers = std::make_unique<ForkedServers>();
  ForkedServers& forked = *servers;
  team_ = std::move(servers);  // before the fork
  Status started =
      forked.start({.most = static_cast<int>(layout_->servers + layout_->memory_servers),
                    .naming = [](int rank) { return the_program->name_of_member(rank); },
                    .member = [](int rank) { the_program->be_member(rank); },
                    .exit_asked = &ThreadedProgram::exit_asked});
  for (Thread i = 0; i < layout_->memory_servers && started.ok(); ++i)
    started = team_->add(layout_->servers + i);
  if (!started.ok()) team_.reset();
  return started;
}

// The compute servers first, whose rank 0 stays free, then the memory servers.
std::string ThreadedProgram::name_of_member(int rank) const {
  const auto number = static_cast<Thread>(rank);
  return number < layout_->servers ? fmt::format("compute server {}", number)
                                   : fmt::format("memory server {}", number - layout_->servers);
}

void ThreadedProgram::be_member(int rank) {
  const auto number = static_cast<Thread>(rank);
  if (number < layout_->servers) serve(number);
  // It holds the memory that was mapped before it was forked, until the keeper ends it.
  prctl(PR_SET_NAME, "tombolo-memory");
  block_all_but_faults();
  for (;;) pause();
}

Status ThreadedProgram::start_launched_team() {
  if (job_ == nullptr) return {};
  std::unique_ptr<LaunchedTeam> servers;
  TOMBOLO_TRY(make_launched_team(*job_, servers));
  TOMBOLO_TRY(servers->start());
  launched_ = servers.get();
  launched_calls_ = servers->calls({.program = first_process_,
                                    .first = !is_server(),
                                    .ends = &exit_at_once,
                                    .looks = &look_for_end});
  team_ = std::move(servers);
  return {};
}

int ThreadedProgram::start_server(Thread server) {
  const Inside inside;
  const Status status = team_->add(server);
  if (status.ok()) return 0;
  tell(status.message());
  return EAGAIN;
}

// At the end of the first process.
void ThreadedProgram::end_team() {
  the_program->ends_ = true;
  the_program->host_.flush();
  if (the_program->job_ != nullptr) the_program->keep_stack_open();
  Inside inside;
  if (the_program->team_) the_program->team_->end();
  the_program->tell_counts();
  if (the_program->job_ == nullptr) return;
  // The rest of the program's end is the C library's and the host MPI's.
  inside.for_ever();
  catching = false;
  host::leave_calls();
}

// No page of the memory can be fetched once the job is finished: the rest of exit() on this stack,
// and with the program's streams, is to find its pages open. Open MPI's end reads the environment.
void ThreadedProgram::keep_stack_open() {
  environ = environment_;
  constexpr std::size_t above = std::size_t{64} << 10;
  constexpr std::size_t below = std::size_t{128} << 10;
  std::fflush(nullptr);
  give_buffer(stdout, *this);
  give_buffer(stderr, *this);
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  const std::span<std::byte> all = process_->stack;
  std::byte* const low = std::max(pointer(here - below), all.data());
  std::byte* const high = std::min(pointer(here + above), all.data() + all.size());
  const OffStackMemory::Stack stack;
  if (low >= high || !stack) return;
  host::call_on(stack.memory(), [this, low, high] {
    const host::CallsPass of_the_runtime;
    std::size_t touched = 0;
    must(memory().touch(low, static_cast<std::size_t>(high - low), true, touched));
  });
}

void ThreadedProgram::look_for_end() {
  ThreadedProgram& program = *the_program;
  program.kind_->note_counts(false);
  if (program.ends_ || !program.team_ || (program.job_ == nullptr && !program.is_first())) return;
  if (const int status = program.team_->asked_status(); status >= 0) program.end_here(status);
}

// By the handler of a signal.
void ThreadedProgram::exit_asked(int status) {
  if (the_program->ends_) return;
  if (the_program->busy_ > 0) {
    the_program->end_waits_ = true;
    return;
  }
  the_program->end_here(status);
}

void ThreadedProgram::end_here(int status) {
  if (is_server()) leave();
  if (team_->asked_at_once()) end_at_once(status);
  host_.exit(status);
  __builtin_unreachable();
}

void ThreadedProgram::end_others() {
  ends_ = true;
  const Inside inside;
  if (team_) team_->end();
  tell_counts();
}

void ThreadedProgram::tell_counts() { kind_->tell_counts(team_ ? layout_->memory_servers : 0); }

bool ThreadedProgram::is_in_a_child() const {
  const host::CallsPass of_the_runtime;
  return syscall(SYS_getpid) != own_process_;
}

// Without handlers of atexit(), and with streams as they are.
void ThreadedProgram::end_at_once(int status) {
  end_others();
  _exit(status);
}

void ThreadedProgram::look_when_idle() {
  if (busy_ > 0 || !end_waits_) return;
  end_waits_ = false;
  look_for_end();
}

void ThreadedProgram::exit(int status) {
  if (is_first()) host_.exit(status);
  std::fflush(stdout);
  {
    const Busy busy(*this);
    team_->ask_exit(status);
  }
  if (job_ == nullptr)
    for (;;) pause();  // for the signal that ends this process
  wait_for_end();
}

// A process of several that were launched; not a forked one.
void ThreadedProgram::wait_for_end() {
  constexpr timespec between_ends{0, 1'000'000};
  for (;;) {
    look_for_end();
    nanosleep(&between_ends, nullptr);
  }
}

// In place of the kernel's call; returns in the first process, which then makes it.
void ThreadedProgram::exit_at_once(int status) {
  ThreadedProgram& program = *the_program;
  if (!program.is_server()) {
    program.ends_ = true;
    const Inside inside;
    program.team_->end();
    return;
  }
  program.team_->ask_exit(status);
  program.wait_for_end();
}

// On a stack of its own: the caller's is of the program's memory, which ends.
void ThreadedProgram::leave() {
  ends_ = true;
  environ = environment_;  // the host MPI's end reads it, when no page can be fetched any more
  const OffStackMemory::Stack stack;
  if (has_run_) std::fflush(stdout);
  host::call_on(stack.memory(), [this] {
    const Inside inside;
    const host::CallsPass of_the_runtime;
    tell_counts();
    team_->leave();
    host_.exit(0);
  });
  __builtin_unreachable();
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
  return has_processes() ? team_->signal(server, number) : kill(getpid(), number);
}

void ThreadedProgram::wake_up(ThreadHandle thread) {
  Thread server = 0;
  if (!threads().exists(thread) || !process_of(thread, server) || !has_processes()) return;
  const Busy busy(*this);
  team_->wake_up(server);
}

// ---- The process of a server ----------------------------------------------------------------

struct ThreadedProgram::Run {
  ThreadedProgram& program;
  const Task& task;
  std::span<std::byte> stack;
  void* result = nullptr;
};

bool ThreadedProgram::is_server() const { return job_ != nullptr && job_->rank() != 0; }

void ThreadedProgram::serve() {
  served = nullptr;
  serve(memory().self());
}

bool ThreadedProgram::holds_memory() const {
  return job_ != nullptr && static_cast<Thread>(job_->rank()) >= layout_->servers;
}

// No page of the program's is cached here, and none of its code runs.
void ThreadedProgram::hold_memory() {
  served = nullptr;
  prctl(PR_SET_NAME, "tombolo-memory");
  block_all_but_faults();
  sigset_t notice;
  sigemptyset(&notice);
  sigaddset(&notice, SIGRTMAX);  // LNS2
  for (;;) {
    look_for_end();
    sigwaitinfo(&notice, nullptr);
  }
}

void ThreadedProgram::serve(Thread server) {
  block_all_but_faults();
  if (job_ == nullptr) {
    must(enter(server));
    give_buffer(stdout, *this);
    give_buffer(stderr, *this);
  }
  for (;;) {
    Task task;
    process_->running = 0;
    const ThreadHandle thread = threads().take(task);
    process_->running = thread;
    if (job_ != nullptr && !std::exchange(has_run_, true)) adopt_program();
    std::uint64_t result = 0;
    run(task, result);
    if (task.stack_is_ours) heap().free(task.stack);
    heap().settle();
    kind_->note_counts(true);
    threads().finish(thread, result);
  }
}

// Before its first thread, whose creator's stores are seen by now: the program's variables are
// among them, and such as `stdout`.
void ThreadedProgram::adopt_program() {
  reinterpret_cast<const ProgramState*>(memory().load(layout_->state()))->adopt();
  write_by_line(stdout);
}

namespace {

// The C library reads these of the program's language as a thread starts, which holds all signals
// back: a page fault there would end the process. So they are read before.
void open_language() {
  for (const nl_item item : {_NL_CTYPE_CLASS, _NL_CTYPE_TOUPPER, _NL_CTYPE_TOLOWER})
    static_cast<void>(*static_cast<const volatile char*>(nl_langinfo(item)));
}

}  // namespace

void ThreadedProgram::run(const Task& task, std::uint64_t& result) {
  const Thread server = memory().self();
  Run made{.program = *this, .task = task, .stack = stack_of(server)};
  if (task.stack != nullptr) made.stack = {task.stack, task.stack_bytes};
  process_->stack = made.stack;
  const std::span<std::byte> base = base_of(server);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, base.data(), base.size());
  pthread_t thread{};
  open_language();
  const NoCarriers while_it_runs;
  const int error = host_.create(&thread, &attributes, &ThreadedProgram::run_task, &made);
  TOMBOLO_CHECK(error == 0, "a thread of the C library in process {}: {}", getpid(),
                std::strerror(error));
  pthread_attr_destroy(&attributes);
  void* value = nullptr;
  host_.join(thread, &value);
  result = reinterpret_cast<std::uint64_t>(value);
}

void* ThreadedProgram::run_task(void* object) {
  Run& made = *static_cast<Run*>(object);
  made.program.host_.set_specific(made.program.end_key_, &made.program);
  served = &made.program;
  sigset_t mask;
  sigemptyset(&mask);
  std::memcpy(&mask, &made.task.signal_mask, sizeof made.task.signal_mask);
  if (made.program.job_ != nullptr) sigdelset(&mask, SIGRTMAX);  // LNS2
  must(serve_signals(mask, made.program.job_ == nullptr ? made.program.first_process_ : 0));
  must(host::serve_wake_ups());
  {
    const Inside inside;
    must(host::ensure_alternate_stack());  // for the fault of a stack that is too small
  }
  host::OtherStack stack(made.stack);
  made.program.catch_calls();
  stack.run([&] {
    let_signals_come();
    made.result = made.task.function(made.task.argument);
  });
  return made.result;
}

// Called by the C library at the end of the thread, after its cleanup handlers.
void ThreadedProgram::at_thread_end(void* program) {
  ThreadedProgram& ended = *static_cast<ThreadedProgram*>(program);
  ended.at_end_();
  if (ended.is_first()) {
    ended.threads().wait_for_all();
    ended.exit(0);
  }
  host::leave_wake_ups();
  leave_signals();
  served = nullptr;
  catching = false;
  host::leave_calls();
}

}  // namespace tombolo::dsm
