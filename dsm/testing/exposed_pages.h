// SPDX-License-Identifier: Apache-2.0
// Purpose: a page store whose frames lie in place, as far as others can tell: ProgramThread exposes
// a page that may be kept when it is installed, and with each store to it. For tests and the
// explorer: pages are then left to their programs.
// Thread safety: that of PrivatePages.
#pragma once

#include <functional>
#include <utility>

#include "dsm/testing/private_pages.h"

namespace tombolo::dsm::testing {

class ExposedPages : public PrivatePages {
 public:
  using PrivatePages::PrivatePages;
  bool in_place() const { return true; }

  // Called for each page that is installed for stores.
  void on_install(std::function<void(Page)> expose) { expose_ = std::move(expose); }
  void install_run(Page first, std::span<const std::byte> bytes, bool for_stores) {
    PrivatePages::install_run(first, bytes, for_stores);
    for (Page i = 0; for_stores && expose_ && i < bytes.size() / page_bytes(); ++i)
      expose_(first + i);
  }

 private:
  std::function<void(Page)> expose_;
};
static_assert(PageStore<ExposedPages>);

}  // namespace tombolo::dsm::testing
