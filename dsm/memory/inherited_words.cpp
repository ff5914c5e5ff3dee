// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/inherited_words.h"

#include <utility>

#include "host/memory/page.h"

namespace tombolo::dsm {
namespace {

using Core = runtime::HostCore;

constexpr std::uint32_t longest_sleep_us = 10'000;

}  // namespace

InheritedWords::InheritedWords(const MemoryPlan& plan)
    : shape_{.threads = plan.threads, .page_bytes = host::page_bytes(), .locks = plan.locks},
      pages_(plan.at) {
  machine::SyncLayout layout(Core::reserved_sync_bytes(plan.threads));
  layout_ = Memory::take(layout, shape_, plan.words, 1);
  bytes_ = layout.bytes();
}

std::unique_ptr<InheritedWords::Memory> InheritedWords::enter(Thread self, std::byte* block,
                                                              const Observer& observer) const {
  Core::Attachment at;
  at.self = self;
  at.cores = shape_.threads;
  at.sync = block;
  at.waiting.sleep_us_max = longest_sleep_us;
  return std::make_unique<Memory>(std::move(at), layout_, shape_, pages_, observer);
}

}  // namespace tombolo::dsm
