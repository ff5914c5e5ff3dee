// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/compute_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "host/memory/memory_room.h"
#include "host/memory/page.h"
#include "runtime/processes/processes_here.h"
#include "runtime/processes/processors_here.h"

namespace tombolo::dsm {
namespace {

// Fewer cannot hold the pages of one instruction: it may touch four, and store to each.
constexpr std::uint64_t fewest_cached_pages = 8;
constexpr std::uint32_t notices = 16384;
// 128 KiB, as the kernel reads files: most of the speed that larger pieces have.
constexpr std::uint32_t read_ahead = 32;

machine::WaitPolicy waiting(std::size_t threads) {
  const auto cores = std::max(static_cast<std::uint32_t>(threads), runtime::processes_here());
  return machine::WaitPolicy::for_host(cores, runtime::processors_for(runtime::processes_here()));
}

Status shape_of(const Settings& settings, int size, Shape& out) {
  const std::uint64_t page = host::page_bytes();
  const std::uint64_t pages = settings.memory_bytes / page;
  const std::uint64_t cached = std::min(settings.cache_bytes / page, pages);
  if (pages == 0 || pages > std::uint64_t{1} << 31)
    return Status::bad_configuration(
        fmt::format("a memory of {} bytes cannot be: from {} to 8 TiB; see "
                    "TOMBOLO_DSM_MEMORY and --memory",
                    settings.memory_bytes, page));
  if (settings.cache_bytes / page < fewest_cached_pages)
    return Status::bad_configuration(
        fmt::format("a cache of {} bytes is too small: at least {} ({} pages); see "
                    "TOMBOLO_DSM_CACHE and --cache",
                    settings.cache_bytes, fewest_cached_pages * page, fewest_cached_pages));
  if (settings.servers >= static_cast<Thread>(size))
    return Status::bad_configuration(
        fmt::format("{} memory servers of {} processes leave none for a thread; see "
                    "TOMBOLO_DSM_SERVERS and --servers",
                    settings.servers, size));
  out = {.threads = static_cast<Thread>(size) - settings.servers,
         .servers = settings.servers,
         .pages = pages,
         .page_bytes = page,
         .cached_pages = static_cast<std::uint32_t>(cached),
         .locks = settings.locks,
         .notices = notices,
         .read_ahead = read_ahead};
  return {};
}

}  // namespace

// Pages in place take address space in the region of each thread, of the whole memory, besides the
// homes; and the regions are made as if all of it were used.
bool ComputeServer::room_in_place(int size) const {
  const Settings& settings = request_.settings;
  const std::uint64_t parts = static_cast<std::uint64_t>(size) + 1;
  return settings.memory_bytes <= host::memory_room().bytes / parts;
}

Status ComputeServer::choose(int size, bool in_place) {
  const Settings& settings = request_.settings;
  const runtime::MachineChoice machine{request_.options.machine, request_.options.native_atomics};
  if (!request_.options.complaints.empty())
    return Status::bad_configuration(request_.options.complaints.front());
  TOMBOLO_TRY(shape_of(settings, size, shape_));
  if (settings.transport == TransportKind::map) {
    if (!runtime::served(machine).traits().coherent)
      return Status::bad_configuration(
          fmt::format("transport map needs a coherent machine, and {} is none; with transport "
                      "window it can be used",
                      runtime::name(machine.id)));
    if (settings.servers != 0)
      return Status::bad_configuration(
          "transport map has no use for memory servers: all processes map the same pages; they "
          "serve transport window: give --transport window");
    kind_ = mapped_kind(machine);
    return {};
  }
  if (settings.transport == TransportKind::mpi) return choose_between_hosts();
  shape_.in_place = in_place && settings.protocol == ProtocolKind::regional &&
                    request_.options.pool.empty() && runtime::served(machine).traits().coherent;
  kind_ = paged_kind(machine, settings.protocol);
  return {};
}

runtime::Member ComputeServer::member(int rank) const {
  runtime::Member me = runtime::this_member(request_.options);
  me.bytes = kind_->sizes(shape_, request_.settings.words, static_cast<Thread>(rank)).data_bytes;
  return me;
}

Status ComputeServer::meet(int rank, std::vector<runtime::Member> members) {
  for (const runtime::Member& member : members) processes_.push_back(member.process);
  watch_.emplace(rank, processes_, nullptr, "the program");
  const auto sizes = kind_->sizes(shape_, request_.settings.words, static_cast<Thread>(rank));
  shared_.emplace(runtime::SharedMemory::Request{.sync_bytes = sizes.sync_bytes}, rank,
                  std::move(members));
  if (!shared_->refusal().empty())
    return Status::unsupported(
        fmt::format("the processes cannot share memory: {}", shared_->refusal()));
  return {};
}

std::uint64_t ComputeServer::view_bytes() const { return shape_.pages * shape_.page_bytes; }

// No pages are counted where all processes map the same.
Status ComputeServer::keep_records() {
  const Settings& settings = request_.settings;
  if (settings.timed && settings.transport != TransportKind::map) heat_.emplace(shape_);
  if (settings.traced) trace_.emplace();
  if ((heat_ && !heat_->ready()) || (trace_ && !trace_->ready()))
    return Status::no_memory("no address space for counts of pages, or for a trace");
  return {};
}

Status ComputeServer::choose_between_hosts() {
  if (request_.one_sided == nullptr)
    return Status::bad_configuration(
        "transport mpi needs processes that the host MPI has started: by tombolo dsm run "
        "--transport mpi, or by mpiexec");
  if (request_.settings.protocol == ProtocolKind::sequential)
    return Status::unsupported(
        "protocol sequential needs threads that answer each other while they compute, which "
        "transport mpi does not have; use regional, or transport window");
  kind_ = remote_kind();
  return {};
}

Status ComputeServer::make_between_hosts(int rank) {
  const auto sizes = kind_->sizes(shape_, request_.settings.words, static_cast<Thread>(rank));
  return request_.one_sided->make(sizes.sync_bytes, sizes.data_bytes);
}

MemoryKind::Parts ComputeServer::parts() {
  return {.attachment = {},
          .particulars = {},
          .shape = shape_,
          .range = range_,
          .processes = processes_,
          .give_up = request_.give_up,
          .words = request_.settings.words,
          .observer = {.timed = request_.settings.timed,
                       .heat = heat_ ? &*heat_ : nullptr,
                       .trace = trace_ ? &*trace_ : nullptr},
          .one_sided = request_.one_sided};
}

Status ComputeServer::start(int rank) {
  TOMBOLO_TRY(keep_records());
  // A memory server holds the memory that is made by now: the others reach it by themselves.
  if (static_cast<Thread>(rank) >= shape_.threads) return {};
  MemoryKind::Parts parts = this->parts();
  if (request_.settings.transport == TransportKind::mpi) {
    parts.attachment.self = static_cast<Thread>(rank);
    parts.attachment.cores = shape_.cores();
    parts.attachment.waiting = waiting(shape_.cores());
    return kind_->make(std::move(parts), memory_);
  }
  const runtime::SharedMemory::Surroundings surroundings{
      .waiting = waiting(shape_.threads),
      .idle = &*watch_,
      .for_regions = std::pmr::new_delete_resource(),
      .for_engine = nullptr};
  TOMBOLO_CHECK(shared_->made(), "compute server {} is started without its memory", rank);
  parts.attachment = shared_->attachment(surroundings, request_.options);
  parts.particulars = shared_->particulars(surroundings, request_.options);
  return kind_->make(std::move(parts), memory_);
}

}  // namespace tombolo::dsm
