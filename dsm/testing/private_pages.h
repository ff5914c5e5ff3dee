// SPDX-License-Identifier: Apache-2.0
// Purpose: a page store in private memory, whose program looks before each access: for tests, the
// explorer and the simulated chip, where no page fault is to be had.
//
// Invariants: those of page_store.h. victim() is the page that was cached first, of the readable
//             ones if there is one.
// Thread safety: one thread for each store.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "base/check.h"
#include "dsm/protocol/page_diff.h"
#include "dsm/protocol/page_store.h"

namespace tombolo::dsm::testing {

class PrivatePages {
 public:
  explicit PrivatePages(const Shape& shape) : page_bytes_(shape.page_bytes) {
    for (std::uint32_t slot = shape.cached_pages; slot-- != 0;) free_.push_back(slot);
  }

  PageNote* lookup(Page page) {
    const auto found = pages_.find(page);
    return found == pages_.end() ? nullptr : &found->second.note;
  }
  PageNote& install(Page page, std::span<const std::byte> bytes) {
    TOMBOLO_CHECK(!full() && !pages_.contains(page), "page store: no room for page {}", page);
    Cached& cached = pages_[page];
    cached.slot = free_.back();
    cached.frame.assign(bytes.begin(), bytes.end());
    cached.twin.resize(page_bytes_);
    free_.pop_back();
    order_.push_back(page);
    return cached.note;
  }
  void install_run(Page first, std::span<const std::byte> bytes, bool /*for_stores*/) {
    for (Page i = 0; i < bytes.size() / page_bytes_; ++i)
      install(first + i, bytes.subspan(i * page_bytes_, page_bytes_));
  }
  void invalidate(Page page) {
    free_.push_back(at(page).slot);
    pages_.erase(page);
    std::erase(order_, page);
  }

  bool writable(Page page) { return at(page).writable; }
  void allow_writes(Page page) {
    at(page).writable = true;
    at(page).left = false;
  }
  void forbid_writes(Page page) { at(page).writable = at(page).left = false; }
  void leave_to_program(Page page) { at(page).writable = at(page).left = true; }

  std::size_t page_bytes() const { return page_bytes_; }
  std::span<std::byte> frame(Page page) { return at(page).frame; }
  void make_twin(Page page) { at(page).twin = at(page).frame; }
  std::span<std::byte> twin(Page page) { return at(page).twin; }
  std::uint32_t slot(Page page) { return at(page).slot; }
  bool in_place() const { return false; }

  std::vector<Page> cached() const {
    std::vector<Page> pages;
    for (const auto& [page, cached] : pages_) pages.push_back(page);
    return pages;
  }
  std::vector<Page> written() const {
    std::vector<Page> pages;
    for (const auto& [page, cached] : pages_)
      if (cached.writable && !cached.left) pages.push_back(page);
    return pages;
  }

  bool full() const { return free_.empty(); }
  Page room() const { return free_.size(); }
  Page victim() const {
    const auto readable =
        std::ranges::find_if(order_, [&](Page page) { return !pages_.at(page).writable; });
    return readable == order_.end() ? order_.front() : *readable;
  }

 private:
  struct Cached {
    PageNote note;
    std::uint32_t slot = 0;
    bool writable = false;
    bool left = false;  // to the program
    PageBytes frame;
    PageBytes twin;
  };
  Cached& at(Page page) {
    const auto found = pages_.find(page);
    TOMBOLO_CHECK(found != pages_.end(), "page store: page {} is not cached", page);
    return found->second;
  }

  std::size_t page_bytes_;
  std::map<Page, Cached> pages_;
  std::vector<std::uint32_t> free_;
  std::vector<Page> order_;  // in which they were cached
};
static_assert(PageStore<PrivatePages>);

}  // namespace tombolo::dsm::testing
