// SPDX-License-Identifier: Apache-2.0
#include "dsm/world/world.h"

#include <fmt/format.h>
#include <langinfo.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/rounding.h"
#include "dsm/world/must.h"
#include "dsm/world/private_heap.h"
#include "dsm/world/world_layout.h"
#include "host/faults/alternate_stack.h"
#include "host/faults/caught_calls.h"
#include "host/interrupts/wake_up.h"
#include "host/memory/other_stack.h"
#include "host/memory/page.h"
#include "host/memory/program_variables.h"
#include "host/memory/raw_calls.h"

namespace tombolo::dsm {
namespace {

// Never destroyed: the program's stack lies in its memory.
constinit World* the_world = nullptr;

// Room for the C library's part of a thread: its descriptor, thread-local memory, and the calls
// that end it.
std::size_t base_bytes() {
  static const std::size_t bytes =
      round_up(host::thread_local_bytes() + (std::size_t{1} << 20), host::page_bytes());
  return bytes;
}

std::byte* pointer(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

void block_signals(sigset_t& mask) {
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGALRM, SIGWINCH, SIGRTMAX})
    sigaddset(&mask, signal);
}

void tell(const std::string& sentence) { std::fprintf(stderr, "tombolo: %s\n", sentence.c_str()); }

}  // namespace

Status World::start(const HostThreads& host, AtEnd at_end, std::unique_ptr<ProgramMemories> kind) {
  std::unique_ptr<World> world(new World());
  world->host_ = host;
  world->at_end_ = at_end;
  world->kind_ = std::move(kind);
  world->layout_ = std::make_unique<WorldLayout>();
  world->first_process_ = getpid();
  TOMBOLO_TRY(lay_out(world->kind_->has_pages(), *world->layout_));
  TOMBOLO_TRY(world->make_memory());
  TOMBOLO_TRY(world->make_bases());
  TOMBOLO_TRY(world->enter(0));
  if (host.create_key(&world->end_key_, &at_thread_end) != 0)
    return Status::io("pthread_key_create: the C library has no key left");
  the_world = world.release();
  served = the_world;
  between_looks = &World::look_for_end;
  runtime_begins = [] { ++the_world->busy_; };
  runtime_ends = [] { the_world->leave_busy(); };
  std::atexit(&World::end_team);
  return {};
}

Status World::make_memory() {
  const WorldLayout& layout = *layout_;
  memory_ = {pointer(layout.variables.low), layout.end() - layout.variables.low};
  return kind_->make({.at = memory_,
                      .filled = layout.variables.bytes(),
                      .threads = layout.servers,
                      .locks = layout.locks(),
                      .words = layout.words(),
                      .closed = stack_ends()});
}

// WLL1
std::vector<std::byte*> World::stack_ends() const {
  std::vector<std::byte*> pages = {pointer(layout_->variables.high)};
  for (Thread server = 0; server < layout_->servers; ++server)
    pages.push_back(pointer(layout_->stacks() + server * WorldLayout::stack_bytes));
  return pages;
}

Status World::enter(Thread thread) {
  // The one that was inherited is the first thread's.
  static_cast<void>(process_.release());
  auto process = std::make_unique<Process>();
  entering = true;
  const Status entered = kind_->enter(thread, process->memory);
  entering = false;
  TOMBOLO_TRY(Status(entered));
  ProgramMemory& memory = *process->memory;
  process->threads = std::make_unique<ThreadTable>(memory, layout_->threads());
  process->objects = std::make_unique<ObjectTable>(memory, layout_->objects());
  TOMBOLO_TRY(make_heap(memory, process->heap));
  if (layout_->has_pages)
    process->calls = std::make_unique<SystemCalls>(memory, kind_->open_at_once());
  process_ = std::move(process);
  return {};
}

Status World::make_heap(ProgramMemory& memory, std::unique_ptr<Heap>& out) const {
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

Status World::make_bases() {
  const std::size_t bytes = base_bytes() * layout_->servers;
  void* const bases = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bases == MAP_FAILED)
    return Status::no_memory(
        fmt::format("{} bytes for thread-local memory: {}", bytes, std::strerror(errno)));
  bases_ = {static_cast<std::byte*>(bases), bytes};
  return {};
}

std::span<std::byte> World::stack_of(Thread server) const {
  const std::uint64_t page = host::page_bytes();
  return {pointer(layout_->stacks() + server * WorldLayout::stack_bytes + page),
          WorldLayout::stack_bytes - page};
}

std::span<std::byte> World::base_of(Thread server) const {
  return bases_.subspan(server * base_bytes(), base_bytes());
}

void World::run_on_first_stack(void (*function)(void*), void* object) {
  const std::uint64_t page = host::page_bytes();
  process_->stack = {pointer(layout_->variables.high + page),
                     WorldLayout::first_stack_bytes - page};
  host::OtherStack stack(process_->stack);
  catch_calls();
  stack.run([=] { function(object); });
}

// Of the calling thread.
void World::catch_calls() {
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

bool World::is_block_of(const void* at, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uint64_t>(at);
  if (address < layout_->heap()) return false;
  return process_->heap->starts_block(at) && process_->heap->usable(at) < bytes * 2;
}

// ---- The first process ----------------------------------------------------------------------

int World::create(Task task, ThreadHandle& out) {
  if (!team_) {
    if (const Status status = start_team(); !status.ok()) {
      tell("no process for a thread: " + status.message());
      return EAGAIN;
    }
  }
  if (task.stack == nullptr && task.stack_bytes > WorldLayout::stack_bytes) {
    task.stack =
        static_cast<std::byte*>(heap().allocate(task.stack_bytes, host::page_bytes(), false));
    if (task.stack == nullptr) return EAGAIN;
    task.stack_is_ours = true;
  }
  const int error = threads().create(
      task, [this](Thread server) { return start_server(server); }, out);
  if (error != 0 && task.stack_is_ours) heap().free(task.stack);
  return error;
}

Status World::start_team() {
  if (!is_first())
    return Status::unsupported("the program's first thread has to create the second");
  std::fflush(nullptr);  // else the new processes would write it once more
  const Busy busy(*this);
  const Inside inside;
  // The C++ library counts references without atomic operations as long as this is set.
  if (host_.single_threaded != nullptr) *host_.single_threaded = 0;
  return runtime::ForkedTeam::start(
      {.most = static_cast<int>(layout_->servers),  // its rank 0 stays free
       .name = "compute server",
       .member = [](int rank) { the_world->serve(static_cast<Thread>(rank)); },
       .exit_asked = &World::exit_asked},
      team_);
}

int World::start_server(Thread server) {
  const Inside inside;
  const Status status = team_->add(static_cast<int>(server));
  if (status.ok()) return 0;
  tell(status.message());
  return EAGAIN;
}

// At the end of the first process.
void World::end_team() {
  the_world->host_.flush();
  const Inside inside;
  if (the_world->team_) the_world->team_->end();
  the_world->kind_->tell_counts();
}

void World::look_for_end() {
  World& world = *the_world;
  world.kind_->note_counts(false);
  if (!world.team_ || !world.is_first()) return;
  if (const int status = world.team_->asked_status(); status >= 0) world.host_.exit(status);
}

// By the handler of a signal.
void World::exit_asked(int status) {
  if (the_world->busy_ > 0) {
    the_world->end_waits_ = true;
    return;
  }
  the_world->host_.exit(status);
}

void World::leave_busy() {
  if (--busy_ > 0 || !end_waits_) return;
  end_waits_ = false;
  look_for_end();
}

void World::exit(int status) {
  if (is_first()) host_.exit(status);
  std::fflush(stdout);
  team_->ask_exit(status);
  for (;;) pause();  // for the signal that ends this process
}

// 0: it has ended, and was not joined.
pid_t World::process_of(ThreadHandle thread) {
  if (thread == ThreadTable::first_thread) return first_process_;
  const Thread server = threads().server_of(thread);
  return server == 0 ? 0 : team_->process(static_cast<int>(server));
}

int World::signal(ThreadHandle thread, int number) {
  if (!threads().exists(thread)) return ESRCH;
  const pid_t process = process_of(thread);
  if (number == 0 || process == 0) return 0;
  return kill(process, number) == 0 ? 0 : errno;
}

void World::wake_up(ThreadHandle thread) {
  const pid_t process = threads().exists(thread) ? process_of(thread) : 0;
  if (process != 0) host::wake_up(process);
}

// ---- The process of a server ----------------------------------------------------------------

namespace {

// A stream of the C library is each process's own; its buffer, if it was used before, is the
// program's, and would be written by all. Nothing is in it: it was flushed before the fork.
void give_buffer(std::FILE* stream, const World& world) {
  if (!world.owns(stream->_IO_buf_base)) return;
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

}  // namespace

struct World::Run {
  World& world;
  const Task& task;
  std::span<std::byte> stack;
  void* result = nullptr;
};

void World::serve(Thread server) {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGABRT})
    sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  must(enter(server));
  give_buffer(stdout, *this);
  give_buffer(stderr, *this);
  for (;;) {
    Task task;
    process_->running = 0;
    const ThreadHandle thread = threads().take(task);
    process_->running = thread;
    std::uint64_t result = 0;
    run(task, result);
    if (task.stack_is_ours) heap().free(task.stack);
    heap().settle();
    kind_->note_counts(true);
    threads().finish(thread, result);
  }
}

namespace {

// The C library reads these of the program's language as a thread starts, which holds all signals
// back: a page fault there would end the process. So they are read before.
void open_language() {
  for (const nl_item item : {_NL_CTYPE_CLASS, _NL_CTYPE_TOUPPER, _NL_CTYPE_TOLOWER})
    static_cast<void>(*static_cast<const volatile char*>(nl_langinfo(item)));
}

}  // namespace

void World::run(const Task& task, std::uint64_t& result) {
  const Thread server = memory().self();
  Run made{.world = *this, .task = task, .stack = stack_of(server)};
  if (task.stack != nullptr) made.stack = {task.stack, task.stack_bytes};
  process_->stack = made.stack;
  const std::span<std::byte> base = base_of(server);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, base.data(), base.size());
  pthread_t thread{};
  open_language();
  const int error = host_.create(&thread, &attributes, &World::run_task, &made);
  TOMBOLO_CHECK(error == 0, "a thread of the C library in process {}: {}", getpid(),
                std::strerror(error));
  pthread_attr_destroy(&attributes);
  void* value = nullptr;
  host_.join(thread, &value);
  result = reinterpret_cast<std::uint64_t>(value);
}

void* World::run_task(void* object) {
  Run& made = *static_cast<Run*>(object);
  made.world.host_.set_specific(made.world.end_key_, &made.world);
  served = &made.world;
  sigset_t mask;
  sigemptyset(&mask);
  std::memcpy(&mask, &made.task.signal_mask, sizeof made.task.signal_mask);
  block_signals(mask);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  must(host::serve_wake_ups());
  host::OtherStack stack(made.stack);
  made.world.catch_calls();
  stack.run([&] { made.result = made.task.function(made.task.argument); });
  return made.result;
}

// Called by the C library at the end of the thread, after its cleanup handlers.
void World::at_thread_end(void* world) {
  static_cast<World*>(world)->at_end_();
  host::leave_wake_ups();
  served = nullptr;
  catching = false;
  host::leave_calls();
}

}  // namespace tombolo::dsm
