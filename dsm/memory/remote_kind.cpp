// SPDX-License-Identifier: Apache-2.0
// Purpose: the transport `mpi`: pages have homes at processes of other hosts.
#include <utility>

#include "base/check.h"
#include "dsm/memory/memory_kind.h"
#include "dsm/memory/paged_memory.h"
#include "dsm/pages/fault_pages.h"
#include "dsm/protocol/regional.h"
#include "dsm/protocol/release.h"
#include "dsm/transport/core_transport.h"
#include "dsm/transport/counting.h"
#include "dsm/transport/mpi/one_sided_core.h"

namespace tombolo::dsm {
namespace {

template <template <class, class> class Protocol>
class RemoteKind final : public MemoryKind {
  using Transport = CoreTransport<OneSidedCore>;
  using Memory = PagedMemory<Counting<Transport>, FaultPages, Protocol>;

 public:
  Sizes sizes(const Shape& shape, WordIndex words, Thread self) const override {
    return {.sync_bytes = Memory::take(shape, words).sync_bytes,
            .data_bytes = Transport::data_bytes(shape, self)};
  }

  Status make(Parts parts, std::unique_ptr<ProgramMemory>& out) const override {
    std::unique_ptr<FaultPages> pages;
    TOMBOLO_TRY(
        FaultPages::create(parts.shape, {.address = parts.address, .replace = true}, pages));
    OneSidedCore::Attachment attachment{std::move(parts.attachment), parts.one_sided};
    auto memory =
        std::make_unique<Memory>(std::move(attachment), Memory::take(parts.shape, parts.words),
                                 parts.shape, std::move(pages), parts.give_up, parts.observer);
    for (std::byte* const page : parts.closed) memory->close_to_program(page);
    out = std::move(memory);
    return {};
  }
};

}  // namespace

std::unique_ptr<MemoryKind> remote_kind(PageProtocol protocol) {
  TOMBOLO_CHECK(protocol != PageProtocol::sequential,
                "pages between hosts: no protocol sequential");
  if (protocol == PageProtocol::release) return std::make_unique<RemoteKind<Release>>();
  return std::make_unique<RemoteKind<Regional>>();
}

}  // namespace tombolo::dsm
