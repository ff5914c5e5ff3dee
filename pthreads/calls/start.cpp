// SPDX-License-Identifier: Apache-2.0
// Purpose: stands in front of the C library's function that calls main(): the program's memory is
// made after its libraries are loaded and before its own constructors run, and main() runs on a
// stack in it.
#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/option_table.h"
#include "dsm/memory/cached_memory.h"
#include "dsm/memory/job.h"
#include "dsm/memory/mapped_memories.h"
#include "dsm/memory/paged_memories.h"
#include "dsm/memory/remote_memories.h"
#include "dsm/memory/settings.h"
#include "dsm/threads/instrumented_code.h"
#include "dsm/threads/runtime_hooks.h"
#include "dsm/transport/mpi/load.h"
#include "host/faults/fault_router.h"
#include "host/memory/loaded_modules.h"
#include "host/processes/fixed_addresses.h"
#include "pthreads/calls/calls.h"
#include "pthreads/program/first_process.h"
#include "pthreads/program/launched_processes.h"
#include "runtime/engines/chosen_core.h"
#include "runtime/options/options.h"

extern "C" int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv,
                                 void (*init)(), void (*fini)(), void (*loader_fini)(),
                                 void* stack_end);

// The runtime's own: the program's may lie in its memory, whose pages the runtime closes.
char __libc_single_threaded = 0;

namespace tombolo::dsm {
namespace {

void at_thread_end() {
  Pthreads& own = *pthreads();
  own.keys.destroy_values();
  own.robust_mutexes.owner_ends();
  own.cancel_enabled = true;
  flush_output();
}

// A page cannot be had: by a handler of a signal.
void give_up(const Status& why) {
  const std::string line = "tombolo: " + why.message() + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  _exit(EXIT_FAILURE);
}

// Nothing: as is usual for so many threads.
std::optional<std::uint64_t> cache_of(const Settings& settings) {
  if (!is_set(options::dsm_cache)) return std::nullopt;
  return settings.cache_bytes;
}

Status refuse_sequential(const Settings& settings) {
  if (settings.protocol != ProtocolKind::sequential) return {};
  return Status::unsupported(
      "protocol sequential is not there for programs of Pthreads with transport window: other "
      "threads would take pages away that a system call of the program is using; use regional, "
      "or transport map, where all stores are seen at once");
}

// Of cached pages, where there are none.
Status refuse_settings_of_pages(const Settings& settings, const runtime::Options& options) {
  if (settings.servers != 0)
    return Status::bad_configuration(
        "transport map has no use for memory servers: all processes map the same pages; see "
        "TOMBOLO_DSM_SERVERS and --transport window");
  if (!runtime::served({options.machine, options.native_atomics()}).traits().coherent)
    return Status::bad_configuration(
        fmt::format("transport map needs a coherent machine, and {} is none; see TOMBOLO_MACHINE "
                    "and --transport window",
                    name(options.machine)));
  for (const Option* option : {&options::dsm_cache, &options::dsm_protocol, &options::dsm_without})
    if (is_set(*option))
      return Status::bad_configuration(
          fmt::format("{} is of pages that processes cache, and with transport map all map the "
                      "same pages; see TOMBOLO_DSM_TRANSPORT and --transport window",
                      option->variable));
  return {};
}

Status choose_kind(const Settings& settings, std::unique_ptr<ProgramMemories>& out) {
  runtime::Options options = runtime::read_environment();
  WantedRecords records{.statistics = options.statistics, .trace = text_of(options::dsm_trace)};
  if (!options.complaints.empty()) return Status::bad_configuration(options.complaints.front());
  if (settings.transport == TransportKind::map) {
    TOMBOLO_TRY(refuse_settings_of_pages(settings, options));
    out = std::make_unique<MappedMemories>(std::move(records));
    return {};
  }
  TOMBOLO_TRY(refuse_sequential(settings));
  out = std::make_unique<PagedMemories>(
      PagedMemories::Settings{.options = std::move(options),
                              .records = std::move(records),
                              .cache_bytes = cache_of(settings),
                              .memory_servers = settings.servers,
                              .tuning = tuning_without(settings.without),
                              .give_up = &give_up});
  return {};
}

// ---- Between hosts ------------------------------------------------------------------------------

Status check_for_hosts(const Settings& settings, const runtime::Options& options) {
  if (!options.complaints.empty()) return Status::bad_configuration(options.complaints.front());
  TOMBOLO_TRY(refuse_sequential(settings));
  if (is_set(options::dsm_trace))
    return Status::unsupported(
        "a trace of a program of Pthreads with transport mpi: its processes are on several hosts; "
        "see TOMBOLO_DSM_TRACE and --trace");
  return {};
}

// As the first process has them: addresses go from process to process.
Status check_modules(int rank, const std::vector<host::LoadedModule>& modules,
                     const std::string& firsts) {
  const std::string differs = host::difference(modules, host::modules_in(firsts));
  if (differs.empty()) return {};
  std::array<char, 64> name{};
  gethostname(name.data(), name.size() - 1);
  return Status::bad_configuration(
      fmt::format("process {} on host {} is not as process 0: {}. All processes need the same "
                  "files, and kernels that lay out their addresses alike",
                  rank, name.data(), differs));
}

// The C++ library's streams, which a constructor of the program makes: it does not run here.
void make_library_streams() {
  using Make = void(void*);
  static char object;
  auto* const make = reinterpret_cast<Make*>(dlsym(RTLD_DEFAULT, "_ZNSt8ios_base4InitC1Ev"));
  if (make != nullptr) make(&object);
}

// More memory servers than processes are refused later.
Thread threads_of(const OneSided& job, const Settings& settings) {
  const auto processes = static_cast<Thread>(job.size());
  return processes - std::min(settings.servers, processes - 1);
}

// The processes of the launcher's job, as far as this one goes without another.
Status join(char** arguments, std::vector<host::LoadedModule>& modules, std::unique_ptr<Job>& out) {
  TOMBOLO_TRY(host::have_fixed_addresses(arguments));
  modules = host::loaded_modules();
  ThreadedProgram::runtime_starts_threads();
  // The host MPI's threads leave the program's signals alone.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::unique_ptr<OneSided> mpi;
  const Status joined = load_one_sided(mpi);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  TOMBOLO_TRY(joined);
  out = std::make_unique<Job>(std::move(mpi));
  return {};
}

runtime::Agreed choose_kind_between_hosts(runtime::Collective<Job>& all, OneSided& mpi,
                                          const Settings& settings, const Status& understood,
                                          const std::vector<host::LoadedModule>& modules,
                                          std::unique_ptr<ProgramMemories>& out) {
  const runtime::Options options = runtime::read_environment();
  TOMBOLO_AGREE(all.step({}, [&] {
    TOMBOLO_TRY(understood);
    return check_for_hosts(settings, options);
  }));
  std::string firsts = host::text_of(modules);
  all.broadcast(firsts, 0);
  TOMBOLO_AGREE(all.step({}, [&] { return check_modules(all.rank(), modules, firsts); }));
  if (all.rank() != 0) make_library_streams();
  RemoteMemories::Settings chosen{
      .statistics = options.statistics,
      .cache_bytes = cache_of(settings).value_or(default_cache_bytes(threads_of(mpi, settings))),
      .memory_servers = settings.servers,
      .tuning = tuning_without(settings.without),
      .give_up = &give_up};
  all.broadcast(chosen.cache_bytes, 0);
  all.broadcast(chosen.memory_servers, 0);
  all.broadcast(chosen.tuning, 0);
  return all.step({}, [&] {
    out = std::make_unique<RemoteMemories>(mpi, chosen);
    return Status();
  });
}

// Ends all processes of the job unless they go on.
void go_on(Job& job, const runtime::Agreed& agreed, const std::string& advice = {}) {
  if (!agreed.ok())
    job.end(agreed,
            fmt::format("the program does not start: {}{}", agreed.status().message(), advice));
}

// The job lasts to the end of the process.
Job& join_job(char** arguments, std::unique_ptr<ProgramMemories>& kind) {
  Settings settings;
  const Status understood = read_options(settings);
  auto own = std::make_unique<Job>();
  runtime::Collective alone(*own);
  if (settings.transport != TransportKind::mpi) {
    go_on(*own, alone.step({}, [&] {
      return understood.ok() ? choose_kind(settings, kind) : understood;
    }));
    return *own.release();
  }
  std::vector<host::LoadedModule> modules;
  std::unique_ptr<Job> launched;
  go_on(*own, alone.step({}, [&] { return join(arguments, modules, launched); }));
  runtime::Collective all(*launched);
  go_on(*launched, choose_kind_between_hosts(all, *launched->one_sided(), settings, understood,
                                             modules, kind));
  return *launched.release();
}

// A copy in the heap, behind which a null pointer is.
char** in_heap(char** texts) {
  Heap& heap = ThreadedProgram::here()->heap();
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (; texts[count] != nullptr; ++count) bytes += std::strlen(texts[count]) + 1;
  const std::size_t head = (count + 1) * sizeof(char*);
  auto* const block =
      static_cast<char*>(heap.allocate(head + bytes, alignof(std::max_align_t), false));
  if (block == nullptr) return texts;
  auto** const pointers = reinterpret_cast<char**>(block);
  char* to = block + head;
  for (std::size_t i = 0; i < count; ++i) {
    pointers[i] = to;
    to = std::strcpy(to, texts[i]) + std::strlen(texts[i]) + 1;
  }
  pointers[count] = nullptr;
  return pointers;
}

// The kernel has put them where this process alone has them.
void share_arguments(char**& arguments) {
  arguments = in_heap(arguments);
  environ = in_heap(environ);
  if (arguments[0] == nullptr) return;
  program_invocation_name = arguments[0];
  char* const folder = std::strrchr(arguments[0], '/');
  program_invocation_short_name = folder == nullptr ? arguments[0] : folder + 1;
}

// Null for memory that all processes map.
ProgramMemory* cached_memory_of(const void* address) {
  ThreadedProgram* const program = ThreadedProgram::here();
  const bool caches = program != nullptr && program->layout().has_pages && program->owns(address);
  return caches ? &program->memory() : nullptr;
}

constinit std::span<const std::byte> memory_of_the_program;

// In the handler of a fault.
const char* explain_fault(const void* address) {
  const auto* const at = static_cast<const std::byte*>(address);
  const std::span<const std::byte> all = memory_of_the_program;
  if (at < all.data() || at >= all.data() + all.size())
    return "; it was never in the memory that the program's threads share";
  return "; in the memory that the program's threads share no page is there: a stack may be too "
         "small";
}

void tell_of_faults() {
  memory_of_the_program = ThreadedProgram::here()->memory().memory();
  const ThreadedProgram::Inside inside;
  (void)host::tell_faults(&explain_fault).ok();  // without it, faults are as ever
}

// Its parts that were compiled with store instrumentation.
void serve_program() {
  const ProgramLayout& layout = ThreadedProgram::here()->layout();
  serve_instrumented_code({.memory_of = &cached_memory_of,
                           .first_lock = layout.atomics(),
                           .locks = ProgramLayout::atomic_locks,
                           .check = &must});
  runtime_hooks.spans_have_changed = &tell_instrumented_code;
}

void begin_to_serve() {
  runtime_hooks.cancellation_point = &end_if_cancelled;
  serve_program();
  tell_of_faults();
}

HostThreads threads_of_the_host() {
  return {.create = TOMBOLO_HOST(pthread_create),
          .join = TOMBOLO_HOST(pthread_join),
          .create_key = TOMBOLO_HOST(pthread_key_create),
          .set_specific = TOMBOLO_HOST(pthread_setspecific),
          .exit = TOMBOLO_HOST(exit),
          .flush = &flush_streams,
          .single_threaded = static_cast<char*>(dlsym(RTLD_DEFAULT, "__libc_single_threaded"))};
}

runtime::Agreed make_program(Job& job, ProgramFacts& facts, std::unique_ptr<ProgramProcess>& out) {
  runtime::Collective all(job);
  TOMBOLO_AGREE(facts.agree(all, job.one_sided() != nullptr));
  OneSided* const mpi = job.one_sided();
  if (mpi != nullptr)
    out = make_launched_process(facts, *mpi);
  else
    out = std::make_unique<FirstProcess>(facts);
  TOMBOLO_AGREE(all.step({}, [&] { return out->meet_others(); }));
  return all.step({}, [&] { return out->enter(); });
}

struct Program {
  int (*main)(int, char**, char**);
  int argc;
  char** argv;
  void (*init)();
  void (*fini)();
  void (*loader_fini)();
  void* stack_end;
  bool is_launched = false;  // with other processes, by the launcher of a host MPI
};

// On the program's stack, where the runtime's calls are told from the program's.
void run_main(void* object) {
  Program& p = *static_cast<Program*>(object);
  if (p.is_launched) share_arguments(p.argv);
  // Programs that it starts are no part of it.
  unsetenv("LD_PRELOAD");
  TOMBOLO_HOST(__libc_start_main)
  (p.main, p.argc, p.argv, p.init, p.fini, p.loader_fini, p.stack_end);
}

[[noreturn]] void run_program(Program& program) {
  std::unique_ptr<ProgramMemories> kind;
  Job& job = join_job(program.argv, kind);
  program.is_launched = job.one_sided() != nullptr;
  ThreadedProgram::runtime_starts_threads();
  // Both last to the end of the process.
  auto& facts = *new ProgramFacts{.host = threads_of_the_host(),
                                  .at_thread_end = &at_thread_end,
                                  .kind = std::move(kind),
                                  .environment = environ};
  std::unique_ptr<ProgramProcess> process;
  const runtime::Agreed made = make_program(job, facts, process);
  go_on(job, made, facts.advice(made.status()));
  process.release()->run({.begun = &begin_to_serve, .run = &run_main, .object = &program});
  __builtin_unreachable();
}

}  // namespace
}  // namespace tombolo::dsm

TOMBOLO_PTHREAD_CALL int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv,
                                           void (*init)(), void (*fini)(), void (*loader_fini)(),
                                           void* stack_end) {
  using tombolo::dsm::Program;
  Program program{main, argc, argv, init, fini, loader_fini, stack_end};
  tombolo::dsm::run_program(program);
}
