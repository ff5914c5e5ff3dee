// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/compute_server.h"

#include <fmt/format.h>

#include <utility>

#include "dsm/memory/program_shape.h"

namespace tombolo::dsm {
bool ComputeServer::room_in_place(int size) const {
  const Settings& settings = request_.settings;
  return settings.protocol == ProtocolKind::regional &&
         can_lie_in_place(request_.options, settings.memory_bytes, static_cast<Thread>(size));
}

Status ComputeServer::choose(int size, bool in_place) {
  const Settings& settings = request_.settings;
  const runtime::MachineChoice machine{request_.options.machine, request_.options.native_atomics()};
  if (!request_.options.complaints.empty())
    return Status::bad_configuration(request_.options.complaints.front());
  TOMBOLO_TRY(check_memory_servers(settings.servers, static_cast<Thread>(size)));
  TOMBOLO_TRY(shape_of(needs_of_calls,
                       {.memory_bytes = settings.memory_bytes,
                        .cache_bytes = settings.cache_bytes,
                        .threads = static_cast<Thread>(size) - settings.servers,
                        .servers = settings.servers,
                        .locks = settings.locks,
                        .tuning = tuning_without(settings.without)},
                       shape_));
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
  shape_.in_place = in_place;
  kind_ =
      paged_kind(machine, settings.protocol == ProtocolKind::sequential ? PageProtocol::sequential
                                                                        : PageProtocol::regional);
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
  kind_ = remote_kind(PageProtocol::regional);
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
          .address = range_.data(),
          .range = &range_,
          .closed = {},
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
    parts.attachment.waiting = waiting_of(shape_.cores());
    return kind_->make(std::move(parts), memory_);
  }
  const runtime::SharedMemory::Surroundings surroundings{
      .waiting = waiting_of(shape_.threads),
      .idle = &*watch_,
      .for_regions = std::pmr::new_delete_resource(),
      .for_engine = nullptr};
  TOMBOLO_CHECK(shared_->made(), "compute server {} is started without its memory", rank);
  parts.attachment = shared_->attachment(surroundings, request_.options);
  parts.particulars = shared_->particulars(surroundings, request_.options);
  return kind_->make(std::move(parts), memory_);
}

}  // namespace tombolo::dsm
