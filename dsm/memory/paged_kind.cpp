// SPDX-License-Identifier: Apache-2.0
// Purpose: the transport `window` on each machine: pages have homes in the regions of all threads.
#include <utility>

#include "dsm/memory/memory_kind.h"
#include "dsm/memory/paged_memory.h"
#include "dsm/memory/process_interrupter.h"
#include "dsm/pages/fault_pages.h"
#include "dsm/protocol/regional.h"
#include "dsm/protocol/release.h"
#include "dsm/protocol/sequential.h"
#include "dsm/transport/core_transport.h"
#include "dsm/transport/counting.h"
#include "runtime/engines/attachment.h"
#include "runtime/engines/chosen_core.h"

namespace tombolo::dsm {
namespace {

template <machine::Core C, template <class, class> class Protocol>
class PagedKind final : public MemoryKind {
  using Memory = PagedMemory<Counting<CoreTransport<C>>, FaultPages, Protocol>;

 public:
  Sizes sizes(const Shape& shape, WordIndex words, Thread self) const override {
    const auto layout = Memory::take(shape, words);
    return {.sync_bytes = layout.sync_bytes,
            .data_bytes = CoreTransport<C>::data_bytes(shape, self)};
  }
  Status make(Parts parts, std::unique_ptr<ProgramMemory>& out) const override {
    std::unique_ptr<FaultPages> pages;
    FaultPages::Options options{.address = parts.address, .replace = true};
    if (parts.shape.in_place)
      options.frames = parts.attachment.data[parts.attachment.self].memory +
                       CoreTransport<C>::exposed_at(parts.shape);
    TOMBOLO_TRY(FaultPages::create(parts.shape, options, pages));
    auto memory = std::make_unique<Memory>(
        runtime::attachment_of<C>(std::move(parts.attachment), std::move(parts.particulars)),
        Memory::take(parts.shape, parts.words), parts.shape, std::move(pages), parts.give_up,
        parts.observer);
    for (std::byte* const page : parts.closed) memory->close_to_program(page);
    if constexpr (Memory::interrupted)
      TOMBOLO_TRY(memory->interrupt_by(std::make_unique<ProcessInterrupter>(parts.processes)));
    out = std::move(memory);
    return {};
  }
};

}  // namespace

std::unique_ptr<MemoryKind> paged_kind(runtime::MachineChoice machine, PageProtocol protocol) {
  std::unique_ptr<MemoryKind> kind;
  runtime::with_core(machine, [&]<class C>() {
    switch (protocol) {
      case PageProtocol::regional:
        kind = std::make_unique<PagedKind<C, Regional>>();
        break;
      case PageProtocol::sequential:
        kind = std::make_unique<PagedKind<C, Sequential>>();
        break;
      case PageProtocol::release:
        kind = std::make_unique<PagedKind<C, Release>>();
        break;
    }
  });
  return kind;
}

}  // namespace tombolo::dsm
