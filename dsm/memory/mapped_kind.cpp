// SPDX-License-Identifier: Apache-2.0
// Purpose: the transport `map` on the coherent machines: the pages are the region of process 0.
#include <utility>

#include "dsm/memory/mapped_memory.h"
#include "dsm/memory/memory_kind.h"
#include "runtime/engines/attachment.h"
#include "runtime/engines/chosen_core.h"

namespace tombolo::dsm {
namespace {

template <machine::SleepsOnWords C>
class MappedKind final : public MemoryKind {
 public:
  Sizes sizes(const Shape& shape, WordIndex words, Thread self) const override {
    return {.sync_bytes = MappedTeamMemory<C>::take(shape, words).sync_bytes,
            .data_bytes = self == 0 ? shape.pages * shape.page_bytes : 0};
  }
  Status make(Parts parts, std::unique_ptr<ProgramMemory>& out) const override {
    const std::size_t bytes = parts.shape.pages * parts.shape.page_bytes;
    TOMBOLO_TRY(parts.range->show(parts.attachment.data[0].memory, bytes));
    out = std::make_unique<MappedTeamMemory<C>>(
        runtime::attachment_of<C>(std::move(parts.attachment), std::move(parts.particulars)),
        MappedTeamMemory<C>::take(parts.shape, parts.words), parts.shape,
        std::span(parts.address, bytes), parts.observer);
    return {};
  }
};

}  // namespace

std::unique_ptr<MemoryKind> mapped_kind(runtime::MachineChoice machine) {
  std::unique_ptr<MemoryKind> kind;
  runtime::with_core(machine, [&]<class C>() {
    if constexpr (C::properties.coherent) kind = std::make_unique<MappedKind<C>>();
  });
  TOMBOLO_CHECK(kind != nullptr, "transport map on machine {}, which is not coherent",
                runtime::name(machine.id));
  return kind;
}

}  // namespace tombolo::dsm
