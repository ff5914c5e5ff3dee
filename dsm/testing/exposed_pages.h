// SPDX-License-Identifier: Apache-2.0
// Purpose: a page store whose frames lie in place, as far as others can tell: ProgramThread exposes
// a page with each store to it. For tests and the explorer: pages are then left to their programs.
// Thread safety: that of PrivatePages.
#pragma once

#include "dsm/testing/private_pages.h"

namespace tombolo::dsm::testing {

class ExposedPages : public PrivatePages {
 public:
  using PrivatePages::PrivatePages;
  bool in_place() const { return true; }
};
static_assert(PageStore<ExposedPages>);

}  // namespace tombolo::dsm::testing
