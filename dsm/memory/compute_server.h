// SPDX-License-Identifier: Apache-2.0
// Purpose: a compute server (003 section 5.2): one process of a program, with one of its threads.
// All processes of a job open theirs together, over any exchange, and get the program's memory. The
// last ones of a job may be memory servers (figure 4.3): these hold pages, locks and words for the
// others, and have no thread.
//
//   runtime::Collective all(exchange);
//   std::unique_ptr<ComputeServer> server;
//   const runtime::Agreed opened = ComputeServer::open(all, {.settings = ...}, server);
//   if (!opened.ok()) ... opened.status()
//   if (server->holds_memory()) ... server->close(all), which waits for the program's end
//   ProgramMemory& memory = server->memory();
//   ... server->close(all);
//
// Invariants: CSV1 all processes take the settings and the options of process 0 where they have to
//                  be alike, and decide alike (SM1).
//             CSV2 the memory starts at one address in all processes.
//             CSV3 a process that waits for another, which has died, gets an error: each wait looks
//                  whether all live. So a process may end only when none waits any more: after
//                  close().
// Thread safety: the thread that opens it, alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dsm/memory/memory_kind.h"
#include "dsm/memory/settings.h"
#include "dsm/threads/program_memory.h"
#include "host/memory/fixed_range.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/shared_memory.h"
#include "runtime/options/options.h"
#include "runtime/processes/peer_watch.h"

namespace tombolo::dsm {

class ComputeServer {
 public:
  struct Request {
    Settings settings{};
    runtime::Options options{};
    // Called when a page cannot be had where the program needs it, in a signal handler
    // (dsm/pages/miss_handler.h); ends the process. Null: with the error on stderr.
    void (*give_up)(const Status&) = nullptr;
    // The job of a host MPI, for transport mpi; outlives the server.
    OneSided* one_sided = nullptr;
  };

  // Errors, at all processes alike: bad_configuration (settings that cannot be), no_memory,
  // unsupported (no way to share memory, no page faults), io.
  template <runtime::Exchange X>
  static runtime::Agreed open(runtime::Collective<X>& all, const Request& request,
                              std::unique_ptr<ComputeServer>& out);

  // The end of the program, of all processes together.
  template <runtime::Exchange X>
  runtime::Agreed close(runtime::Collective<X>& all) {
    return all.step({.message = "another process cannot end the program as it should"},
                    [&] { return holds_memory() ? Status() : memory_->close(); });
  }

  // This process is a memory server.
  bool holds_memory() const { return memory_ == nullptr; }

  ProgramMemory& memory() { return *memory_; }
  const Settings& settings() const { return request_.settings; }
  // By rank; none with transport mpi.
  const std::vector<host::ProcessName>& processes() const { return processes_; }
  // Null where they are not wanted.
  const PageHeat* heat() const { return heat_ ? &*heat_ : nullptr; }
  const Trace* trace() const { return trace_ ? &*trace_ : nullptr; }

 private:
  explicit ComputeServer(const Request& request) : request_(request) {}

  // The steps of open(), in their order; each is of this process alone.
  bool room_in_place(int size) const;
  Status choose(int size, bool in_place);
  runtime::Member member(int rank) const;
  Status meet(int rank, std::vector<runtime::Member> members);
  std::uint64_t view_bytes() const;
  Status choose_between_hosts();
  Status keep_records();
  MemoryKind::Parts parts();
  Status start(int rank);

  template <runtime::Exchange X>
  runtime::Agreed reserve(runtime::Collective<X>& all);
  template <runtime::Exchange X>
  runtime::Agreed share(runtime::Collective<X>& all, runtime::Elsewhere failed);
  Status make_between_hosts(int rank);

  Request request_;
  Shape shape_;
  std::unique_ptr<MemoryKind> kind_;
  host::FixedRange range_;
  std::vector<host::ProcessName> processes_;  // by rank
  std::optional<runtime::PeerWatch> watch_;
  std::optional<runtime::SharedMemory> shared_;
  std::optional<PageHeat> heat_;
  std::optional<Trace> trace_;
  std::unique_ptr<ProgramMemory> memory_;
};

// Where none of the usual mappings of a program lie, nor a sanitizer's.
inline constexpr std::uint64_t first_address = std::uint64_t{0x2000} << 32;

template <runtime::Exchange X>
runtime::Agreed ComputeServer::reserve(runtime::Collective<X>& all) {
  constexpr std::uint64_t between = std::uint64_t{1} << 40;
  constexpr std::uint64_t attempts = 16;
  const std::uint64_t step = (view_bytes() + between - 1) / between * between;
  for (std::uint64_t i = 0; i < attempts; ++i) {
    const bool free = all.attempt(
        [&] { return host::FixedRange::reserve(first_address + i * step, view_bytes(), range_); });
    if (free) return all.done();
    range_ = {};
  }
  return all.step({}, [&] {
    return Status::no_memory("no range of addresses for the memory is free in all processes");
  });
}

// The memory of all processes, by one-sided operations or by mappings.
template <runtime::Exchange X>
runtime::Agreed ComputeServer::share(runtime::Collective<X>& all, runtime::Elsewhere failed) {
  // All processes have agreed on the transport: none is missing in the host MPI's collective call.
  if (request_.settings.transport == TransportKind::mpi)
    return all.step(failed, [&] { return make_between_hosts(all.rank()); });
  std::vector<runtime::Member> members(static_cast<std::size_t>(all.size()));
  all.gather(member(all.rank()), std::span(members));
  TOMBOLO_AGREE(all.step(failed, [&] { return meet(all.rank(), std::move(members)); }));
  return shared_->make(all, request_.options);
}

template <runtime::Exchange X>
runtime::Agreed ComputeServer::open(runtime::Collective<X>& all, const Request& request,
                                    std::unique_ptr<ComputeServer>& out) {
  const runtime::Elsewhere failed{.message = "another process cannot join the program"};
  std::unique_ptr<ComputeServer> server(new ComputeServer(request));
  all.broadcast(server->request_.settings, 0);
  all.broadcast(server->request_.options.machine, 0);
  all.broadcast(server->request_.options.atomics, 0);
  bool in_place = server->room_in_place(all.size());
  all.broadcast(in_place, 0);
  TOMBOLO_AGREE(all.step(failed, [&] { return server->choose(all.size(), in_place); }));
  TOMBOLO_AGREE(server->reserve(all));
  TOMBOLO_AGREE(server->share(all, failed));
  TOMBOLO_AGREE(all.step(failed, [&] { return server->start(all.rank()); }));
  out = std::move(server);
  return all.done();
}

}  // namespace tombolo::dsm
