// SPDX-License-Identifier: Apache-2.0
#include "svp/remote/job.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>

#include "host/memory/fixed_range.h"
#include "host/processes/host_identity.h"
#include "host/processes/process.h"
#include "host/processes/processors.h"
#include "host/processes/start_thread.h"
#include "runtime/collective/shared_memory.h"
#include "runtime/engines/chosen_core.h"
#include "runtime/host_mpi/launched.h"
#include "runtime/options/options.h"
#include "runtime/processes/end_board.h"
#include "runtime/processes/launcher.h"
#include "runtime/processes/processes_here.h"
#include "svp/family/family.h"
#include "svp/links/mpi/load.h"
#include "svp/places/default_place.h"
#include "svp/remote/exchange_on.h"
#include "svp/scheduler/svp_options.h"

namespace tombolo::svp {
namespace {

constexpr std::size_t transports = std::size(transport_names);
static_assert(std::equal(options::svp_transport.choices.begin(),
                         options::svp_transport.choices.end(), std::begin(transport_names)),
              "a TransportChoice is a Transport");
// Where none of the usual mappings of a program lie, nor a sanitizer's, nor virtual shared memory.
constexpr std::uint64_t first_address = std::uint64_t{0x3000} << 32;

std::atomic<Job*> job_here{nullptr};

// Trivially copyable, to be gathered.
struct Name {
  std::array<char, 64> host{};
  host::ProcessName process{};
};
Name name_of_this() {
  Name name;
  gethostname(name.host.data(), name.host.size() - 1);
  name.process = host::process_named(getpid());
  return name;
}
std::string described(const Name& name) {
  return fmt::format("process {} on host {}", name.process.pid, name.host.data());
}

// The places of other processes, each with all ways for arrays to travel.
struct RemotePlaces {
  std::array<RemoteRecord, transports> records;
  std::vector<std::unique_ptr<OwnedRecord>> places;

  RemotePlaces(Site site, std::uint32_t number) {
    for (std::size_t i = 0; i < transports; ++i) {
      records[i] = {.site = site, .place = number, .transport = static_cast<Transport>(i)};
      places.push_back(std::make_unique<OwnedRecord>(nullptr, nullptr, &records[i]));
    }
  }
};

}  // namespace

struct Job::State {
  int rank = 0;
  int size = 1;
  SvpOptions settings;  // of process 0; trivially copyable, to be broadcast
  runtime::Options options;
  std::unique_ptr<runtime::SocketExchange> sockets;
  std::unique_ptr<HostMessages> messages;
  std::unique_ptr<HostLink> far;
  Island island;
  std::optional<runtime::EndBoard> ends;
  std::optional<runtime::SharedMemory> memory;
  std::vector<host::FixedRange> ranges;  // by rank: of the shared memory
  std::uint64_t heap_address = 0;
  bool copies = false;
  Heap heap;
  ExclusivePlace exclusive;
  std::vector<std::unique_ptr<RemotePlaces>> remote;  // by rank, default and exclusive
  JobExchange* exchange = nullptr;                    // workers look at it until the process ends

  Transport transport() const { return static_cast<Transport>(settings.transport); }
  Status join();
  template <runtime::Exchange X>
  runtime::Agreed agree(runtime::Collective<X>& all);
  template <runtime::Exchange X>
  runtime::Agreed share(runtime::Collective<X>& island);
  template <runtime::Exchange X>
  runtime::Agreed reserve(runtime::Collective<X>& all);
  Status open_by_sockets();
  Status open_by_mpi();
  Status meet(std::vector<runtime::Member> members);
  // Processes that share memory with this one, and the number of this one among them.
  machine::Home homes() const { return static_cast<machine::Home>(island.sites.size()); }
  machine::Home home() const { return island.homes[static_cast<std::size_t>(rank)]; }
  Site sites() const { return static_cast<Site>(size); }
  bool reserve_all_at(std::uint64_t address);
  Status start_exchange();
  template <class C>
  Status show(C& core);
  void name_places();
};

Status Job::State::meet(std::vector<runtime::Member> members) {
  runtime::SharedMemory::Request request{.alignment = host::page_bytes()};
  runtime::with_core({options.machine, options.native_atomics()},
                     [&]<class C>() { request.sync_bytes = ExchangeOn<C>::sync_bytes(homes()); });
  memory.emplace(request, static_cast<int>(home()), std::move(members));
  if (memory->refusal().empty()) return {};
  return Status::unsupported(
      fmt::format("the processes cannot share memory: {}", memory->refusal()));
}

bool Job::State::reserve_all_at(std::uint64_t address) {
  ranges.clear();
  for (machine::Home h = 0; h < homes(); ++h) {
    host::FixedRange range;
    const std::uint64_t at = address + h * settings.heap_bytes;
    if (!host::FixedRange::reserve(at, settings.heap_bytes, range).ok()) return false;
    ranges.push_back(std::move(range));
  }
  heap_address = address;
  return true;
}

template <runtime::Exchange X>
runtime::Agreed Job::State::reserve(runtime::Collective<X>& all) {
  constexpr std::uint64_t attempts = 16;
  constexpr std::uint64_t between = std::uint64_t{1} << 44;
  for (std::uint64_t i = 0; i < attempts; ++i) {
    const bool free = all.attempt([&] {
      return reserve_all_at(first_address + i * between)
                 ? Status()
                 : Status::no_memory("part of it is in use");
    });
    if (free) return all.done();
  }
  return all.step({}, [] {
    return Status::no_memory("no range of addresses for shared memory is free in all processes");
  });
}

constexpr runtime::Elsewhere cannot_join{.message = "another process cannot join the program"};

template <runtime::Exchange X>
runtime::Agreed Job::State::agree(runtime::Collective<X>& all) {
  TOMBOLO_AGREE(all.step(cannot_join, [&] {
    options = runtime::read_environment();
    if (!options.complaints.empty()) return Status::bad_configuration(options.complaints.front());
    return read_options(settings);
  }));
  all.broadcast(settings, 0);
  all.broadcast(options.machine, 0);
  all.broadcast(options.atomics, 0);
  return all.done();
}

// Those of the island, by themselves.
template <runtime::Exchange X>
runtime::Agreed Job::State::share(runtime::Collective<X>& all) {
  runtime::Member me = runtime::this_member(options);
  me.bytes = ExchangeShape::data_bytes(homes(), settings.heap_bytes);
  me.threads = true;
  std::vector<runtime::Member> members(homes());
  all.gather(me, std::span(members));
  const runtime::Member right = members[(home() + 1) % homes()];
  TOMBOLO_AGREE(all.step(cannot_join, [&] { return meet(std::move(members)); }));
  std::uint64_t seen = 0;
  copies = all.attempt(
      [&] { return host::read_foreign(right.process.pid, right.probe, &seen, sizeof seen); });
  TOMBOLO_AGREE(memory->make(all, options));
  TOMBOLO_AGREE(reserve(all));
  return all.step(cannot_join, [&] { return start_exchange(); });
}

Status Job::State::open_by_sockets() {
  runtime::Collective all(*sockets);
  if (const auto agreed = agree(all); !agreed.ok()) return agreed.status();
  island = Island::of(static_cast<Site>(rank), std::vector<Site>(sites(), 0));
  const auto shared = share(all);
  // A launcher without a board ends all processes when one ends.
  ends.emplace();
  if (!runtime::EndBoard::join(*ends).ok()) ends.reset();
  return shared.status();
}

// Processes with one name of their host, which can name each other's memory, are an island.
Status Job::State::open_by_mpi() {
  runtime::Collective<HostExchange> all(*messages);
  if (const auto agreed = agree(all); !agreed.ok()) return agreed.status();
  std::vector<Name> names(sites());
  std::vector<std::uint64_t> hosts(sites());
  all.gather(name_of_this(), std::span(names));
  all.gather(host::this_host().digest(), std::span(hosts));
  const auto self = static_cast<Site>(rank);
  const auto of_one_host = [&](Site one, Site other) {
    return names[one].host == names[other].host && hosts[one] == hosts[other];
  };
  std::vector<Site> colors;
  std::vector<HostLink::Process> processes;
  for (Site site = 0; site < sites(); ++site) {
    Site first = 0;
    while (!of_one_host(first, site)) ++first;
    colors.push_back(settings.shares_hosts ? first : site);
    processes.push_back(
        {.name = described(names[site]),
         .of_this_host = of_one_host(self, site) ? names[site].process : host::ProcessName{}});
  }
  island = Island::of(self, colors);
  const auto group = messages->group(static_cast<int>(colors[self]));
  runtime::Collective<HostExchange> mine(*group);
  Status shared;
  const auto opened = all.step(cannot_join, [&] {
    far = std::make_unique<HostLink>(*messages, std::move(processes));
    shared = share(mine).status();
    return shared;
  });
  return opened.status();
}

Status Job::State::join() {
  if (runtime::is_launched()) {
    TOMBOLO_TRY(runtime::join(sockets));
    rank = sockets->rank();
    size = sockets->size();
    return size > 1 ? open_by_sockets() : Status();
  }
  const int started = runtime::processes_of_mpi_job();
  if (started < 2) return {};
  TOMBOLO_TRY(load_host_messages(messages));
  rank = messages->rank();
  size = messages->size();
  if (size > 1) return open_by_mpi();
  return Status::bad_configuration(fmt::format(
      "the launcher has started {} processes, and each is alone for the MPI that was found: name "
      "the library of the launcher's MPI by {}",
      started, options::svp_mpi.variable));
}

// The shared memory of all processes, at its address here.
template <class C>
Status Job::State::show(C& core) {
  for (machine::Home of = 0; of < homes(); ++of) {
    host::FixedRange& range = ranges[of];
    if constexpr (!ReachOn<C>::copies_views) {
      TOMBOLO_TRY(
          range.show(core.view({of, ExchangeShape::heap_offset(homes())}), settings.heap_bytes));
    } else if (mprotect(range.data(), settings.heap_bytes, PROT_READ | PROT_WRITE) != 0) {
      return Status::no_memory("no memory for copies of shared memory");
    }
  }
  return {};
}

Status Job::State::start_exchange() {
  heap.begin(ranges[home()].data(), settings.heap_bytes);
  const std::uint32_t here =
      far == nullptr ? homes() : std::max(homes(), runtime::processes_here());
  share_default_pool(here);
  const runtime::SharedMemory::Surroundings surroundings{
      .waiting = machine::WaitPolicy::for_host(here, host::processors()),
      .idle = nullptr,
      .for_regions = std::pmr::new_delete_resource(),
      .for_engine = nullptr};
  ExchangeParts parts{.attachment = memory->attachment(surroundings, options),
                      .particulars = memory->particulars(surroundings, options),
                      .island = island,
                      .far = far.get(),
                      .processes = std::vector<std::int32_t>(sites(), of_another_host),
                      .heap_address = heap_address,
                      .heap_bytes = settings.heap_bytes,
                      .heap = &heap,
                      .copies = copies,
                      .places = {Place(), exclusive}};
  for (machine::Home of = 0; of < homes(); ++of)
    parts.processes[island.sites[of]] = memory->members()[of].process.pid;
  Status status;
  runtime::with_core(memory->machine(), [&]<class C>() {
    auto started = std::make_unique<ExchangeOn<C>>(std::move(parts));
    status = show(started->core());
    exchange = started.release();
  });
  return status;
}

void Job::State::name_places() {
  for (Site site = 0; site < sites(); ++site)
    for (const std::uint32_t number : {default_place, exclusive_place})
      remote.push_back(std::make_unique<RemotePlaces>(site, number));
}

Job::Job(std::unique_ptr<State> state) : state_(std::move(state)) {}
Job::~Job() = default;

Job& Job::here() {
  Job* const job = job_here.load(std::memory_order_acquire);
  TOMBOLO_CHECK(job != nullptr, "Job::here: outside of svp::run()");
  return *job;
}

unsigned Job::processes() const { return static_cast<unsigned>(state_->size); }
unsigned Job::rank() const { return static_cast<unsigned>(state_->rank); }

Place Job::place(unsigned process) const { return place(process, state_->transport()); }

Place Job::place(unsigned process, Transport transport) const {
  TOMBOLO_CHECK(process < processes(), "place: there is no process {} of {}", process, processes());
  if (process == rank()) return {};
  return state_->remote[std::size_t{2} * process]
      ->places[static_cast<std::size_t>(transport)]
      ->name();
}

Place Job::exclusive(unsigned process) const {
  TOMBOLO_CHECK(process < processes(), "exclusive: there is no process {} of {}", process,
                processes());
  if (process == rank()) return state_->exclusive;
  const auto transport = static_cast<std::size_t>(state_->transport());
  return state_->remote[std::size_t{2} * process + exclusive_place]->places[transport]->name();
}

std::vector<Place> Job::places() const {
  std::vector<Place> all;
  for (unsigned process = 0; process < processes(); ++process) all.push_back(place(process));
  return all;
}

void* Job::allocate(std::size_t bytes) {
  if (state_->exchange == nullptr) return ::operator new (bytes, std::align_val_t{Heap::line});
  std::byte* const at = state_->heap.take(bytes);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}

void Job::free(void* at) {
  if (state_->exchange == nullptr) return ::operator delete (at, std::align_val_t{Heap::line});
  state_->heap.give_back(static_cast<std::byte*>(at));
}

Status Job::start(std::unique_ptr<Job>& out) {
  auto state = std::make_unique<State>();
  TOMBOLO_TRY(state->join());
  if (state->exchange != nullptr) RemotePoller::set(state->exchange);
  state->name_places();
  out.reset(new Job(std::move(state)));
  return {};
}

// Messages that no worker takes for want of time, and processes that have ended.
void Job::look() {
  if (state_->exchange == nullptr) return;
  state_->exchange->poll();
  if (!state_->ends) return;
  for (int r = 0; r < state_->size; ++r) {
    if (r == state_->rank || !state_->ends->has_ended(r)) continue;
    state_->exchange->site_ended(static_cast<Site>(r), fmt::format("process {} of the program {}",
                                                                   r, state_->ends->text(r)));
  }
}

namespace {

constexpr std::chrono::milliseconds busy_interval{1};
constexpr std::chrono::milliseconds quiet_interval{10};

}  // namespace

int Job::run_program(const std::function<int(Job&)>& program) {
  std::mutex mutex;
  std::condition_variable ended;
  bool over = false;
  int result = 0;
  Exit exit;
  std::exception_ptr error;  // of the pool
  std::thread thread;  // before the workers': where the host has few threads, they do with fewer
  const Status started = host::start_thread(
      "for the first family of the program",
      [&] {
        try {
          auto family = create(Place(), [&] { result = program(*this); });
          exit = family.sync();
        } catch (...) {
          error = std::current_exception();
        }
        const std::lock_guard lock(mutex);
        over = true;
        ended.notify_all();
      },
      thread);
  if (!started.ok()) throw host::NoThread(started);
  std::unique_lock lock(mutex);
  while (!over) {
    const bool busy = state_->exchange != nullptr && state_->exchange->is_busy();
    ended.wait_for(lock, busy ? busy_interval : quiet_interval);
    lock.unlock();
    look();
    lock.lock();
  }
  lock.unlock();
  thread.join();
  if (state_->exchange != nullptr) state_->exchange->end();
  if (error) std::rethrow_exception(error);
  exit.rethrow();
  return exit.reason == ExitReason::broken ? static_cast<int>(exit.value) : result;
}

void Job::serve() {
  default_pool();  // its workers take the messages
  while (!state_->exchange->has_ended()) {
    std::this_thread::sleep_for(state_->exchange->is_busy() ? busy_interval : quiet_interval);
    look();
  }
}

// The other processes of an MPI's job end together with this one.
void Job::leave() {
  if (state_->messages == nullptr) return;
  if (state_->exchange != nullptr) state_->exchange->close();
  state_->messages->finish(state_->far == nullptr || state_->far->is_whole());
}

int run(const std::function<int(Job&)>& program) {
  std::unique_ptr<Job> started;
  if (const Status status = Job::start(started); !status.ok()) {
    std::fprintf(stderr, "tombolo: %s\n", status.message().c_str());
    return 1;
  }
  Job* const job = started.release();  // workers look at its parts until the process ends
  job_here.store(job, std::memory_order_release);
  int result = 0;
  std::exception_ptr error;
  try {
    if (job->rank() == 0)
      result = job->run_program(program);
    else
      job->serve();
  } catch (const host::NoThread& lack) {
    std::fprintf(stderr, "tombolo: %s\n", lack.what());
    result = 1;
  } catch (...) {
    error = std::current_exception();
  }
  job->leave();  // also where a caller catches the error: the host MPI has to be finalized
  if (error) std::rethrow_exception(error);
  return result;
}

}  // namespace tombolo::svp
