// SPDX-License-Identifier: Apache-2.0
// Purpose: the description of a core's memory in the type that its machine wants, from the one that
// all machines share and the facts that some need besides.
// Thread safety: plain functions.
#pragma once

#include <memory>
#include <utility>

#include "machine/optional.h"
#include "runtime/engines/engines.h"

namespace tombolo::runtime {

template <class C>
machine::AttachmentOf<C> attachment_of(machine::Attachment attachment, Particulars particulars) {
  machine::AttachmentOf<C> at{std::move(attachment)};
  if constexpr (machine::KeepsViewsApart<C>) at.own_view = particulars.own_view;
  if constexpr (machine::WantsSharedMemory<C>) at.shared = particulars.shared;
  if constexpr (machine::EvictsAtRandom<C>) at.evictions = particulars.evictions;
  // An assignment would copy the parts out of the memory that they are meant to be in.
  if constexpr (machine::MapsParts<C>) {
    std::destroy_at(&at.parts);
    std::construct_at(&at.parts, std::move(particulars.parts));
  }
  return at;
}

}  // namespace tombolo::runtime
