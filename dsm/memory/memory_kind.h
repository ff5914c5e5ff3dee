// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: one kind of ProgramMemory on one machine, chosen at run time,
// for programs that call tombolo/dsm.h and for unchanged ones of Pthreads: the sizes of the memory
// that the processes have to share for it, and the making of it.
// Thread safety: stateless.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "dsm/memory/settings.h"
#include "dsm/protocol/shape.h"
#include "dsm/records/observer.h"
#include "dsm/threads/program_memory.h"
#include "dsm/transport/mpi/one_sided.h"
#include "host/memory/fixed_range.h"
#include "host/processes/process.h"
#include "runtime/engines/engines.h"

namespace tombolo::dsm {

// How the copies of pages are kept consistent: as the user asks for it (ProtocolKind), or, for
// unchanged programs of Pthreads, by release.h.
enum class PageProtocol : std::uint8_t { regional, sequential, release };

class MemoryKind {
 public:
  struct Sizes {
    std::size_t sync_bytes = 0;  // of each process
    std::size_t data_bytes = 0;  // of this process's region
  };
  // Facts of its process that a memory is made from.
  struct Parts {
    machine::Attachment attachment;
    runtime::Particulars particulars;
    Shape shape;
    std::byte* address = nullptr;        // of the program's memory
    host::FixedRange* range = nullptr;   // transport map: the same; outlives the ProgramMemory
    std::span<std::byte* const> closed;  // pages of it that the program may not access
    std::span<const host::ProcessName> processes;  // of all threads; for the protocol sequential
    void (*give_up)(const Status&) = nullptr;
    WordIndex words = 0;
    Observer observer{};
    OneSided* one_sided = nullptr;  // transport mpi; outlives the ProgramMemory
  };

  virtual ~MemoryKind() = default;
  virtual Sizes sizes(const Shape& shape, WordIndex words, Thread self) const = 0;
  virtual Status make(Parts parts, std::unique_ptr<ProgramMemory>& out) const = 0;
};

// On a coherent machine.
std::unique_ptr<MemoryKind> mapped_kind(runtime::MachineChoice machine);
std::unique_ptr<MemoryKind> paged_kind(runtime::MachineChoice machine, PageProtocol protocol);
// Pages are cached between hosts, where `sequential` is not there.
std::unique_ptr<MemoryKind> remote_kind(PageProtocol protocol);

}  // namespace tombolo::dsm
