// SPDX-License-Identifier: Apache-2.0
// Purpose: notices to the thread that keeps a page: another thread has a copy of it now. A keeper
// that has had none since its last notice to all threads has a page that no other has cached, and
// owes no notice of its stores.
//
// A ring as in write_notices.h for each thread, at its own home: one load where there is none.
//
// Invariants: DNR1 the notice is given before the copy is got, and a keeper looks for notices after
//                  its stores, with a fence between: either it finds the notice, or the copy has
//                  the stores. The mark of the page is set before the notice, and stands likewise.
// Thread safety: one thread for each object.
#pragma once

#include <vector>

#include "dsm/protocol/page_directory.h"
#include "dsm/protocol/write_notices.h"

namespace tombolo::dsm {

template <machine::Core C>
class ReaderNotices {
 public:
  using Layout = typename WriteNotices<C>::Layout;
  static Layout take(machine::SyncLayout& layout, const Shape& shape) {
    return WriteNotices<C>::take(layout, shape);
  }

  ReaderNotices(C& core, Layout layout, const Shape& shape) : core_(core) {
    for (Thread keeper = 0; keeper < shape.threads; ++keeper)
      rings_.emplace_back(core, layout, shape, keeper);
  }

  // To a keeper: this thread is about to get a copy of the page (DNR1).
  Status give(Thread keeper, Page page) { return rings_[keeper].append({&page, 1}); }

  // Whether another thread has got a page that this one keeps, by the mark at its home.
  bool has_reader(PageDirectory<C>& directory, Page page) {
    // As in read().
    core_.fence();
    return directory.keeper(page)->shared;
  }

  // Calls body(page) for each notice to this thread that it has not read yet. `lost`: some are
  // overwritten, and body was not called for all.
  template <class Body>
  Status read(Body&& body, bool& lost) {
    // The program's stores are in memory before the ring is looked at (DNR1).
    core_.fence();
    return rings_[core_.self()].read(
        [&](const Update& notice) {
          body(notice.page);
          return Status();
        },
        lost);
  }

 private:
  C& core_;
  std::vector<WriteNotices<C>> rings_;
};

}  // namespace tombolo::dsm
