// SPDX-License-Identifier: Apache-2.0
// Purpose: the page store as a concept: the page cache of one thread. A protocol asks it for pages
// and decides their fate; how an access to a page is caught, and when the protocol is called for
// it, is the store's business: a page fault, a check before each access, a simulated cost.
//
//   absent --install--> readable --allow_writes--> writable
//     ^-----------------invalidate-------------------'  (and back by forbid_writes)
//
// A page that is left to the program is writable, and its stores are not asked after.
//
// Invariants: DST1 a load by the program succeeds on readable and writable pages only, a store on
//                  writable ones only: before any other the store calls its protocol.
//             DST2 written() are the writable pages that are not left to the program: a program's
//                  store to any other page cannot have happened.
//             DST3 slot() of a page does not change while it is cached, and differs from the slots
//                  of all other cached pages.
// Thread safety: one thread for each store.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dsm/protocol/shape.h"

namespace tombolo::dsm {

// A protocol's own notes on a cached page; of no meaning to the store.
struct PageNote {
  std::uint64_t version = 0;  // the page has all changes up to this version, perhaps later ones
  bool kept = false;          // this thread is its keeper
  bool shared = false;        // kept: another thread may have a copy
  bool twin = false;          // writable: it has one
  // Writable: a store to it was met, or the stores of a stream have gone past it.
  bool met = false;
  // Not kept: this thread was the last to store to it, as far as it knows, outside of spans.
  bool alone = false;
  // Not kept: so many more begins or ends of spans it stays writable.
  std::uint8_t open = 0;
  // Kept: the times that it will be left to the program without a store that was met, and those
  // that it was given last; and when it was closed to stores.
  std::uint8_t left = 0;
  std::uint8_t granted = 0;
  std::uint32_t closed_at = 0;
};

template <class S>
concept PageStore = requires(S& s, Page page, std::span<const std::byte> bytes, bool for_stores) {
  // Null if the page is absent.
  { s.lookup(page) } -> std::same_as<PageNote*>;
  // The page is readable then. Not if full(), nor if it is cached.
  { s.install(page, bytes) } -> std::same_as<PageNote&>;
  // Likewise neighbours from `page` on, as many as these bytes are: not if there is no room() for
  // them. `for_stores`: they will be writable next.
  { s.install_run(page, bytes, for_stores) } -> std::same_as<void>;
  { s.invalidate(page) } -> std::same_as<void>;

  { s.writable(page) } -> std::same_as<bool>;
  { s.allow_writes(page) } -> std::same_as<void>;
  { s.forbid_writes(page) } -> std::same_as<void>;
  // Of any cached page.
  { s.leave_to_program(page) } -> std::same_as<void>;

  // The page as the program sees it, and a second copy for the protocol.
  { s.frame(page) } -> std::same_as<std::span<std::byte>>;
  { s.make_twin(page) } -> std::same_as<void>;
  { s.twin(page) } -> std::same_as<std::span<std::byte>>;
  { s.slot(page) } -> std::same_as<std::uint32_t>;
  // Whether the frame of a page is the page that other threads get as exposed from its slot, with
  // each store as soon as it is made: on coherent memory alone, and at all threads alike.
  { s.in_place() } -> std::same_as<bool>;

  // In ascending order: the results of two runs are the same.
  { s.cached() } -> std::same_as<std::vector<Page>>;
  { s.written() } -> std::same_as<std::vector<Page>>;

  { s.full() } -> std::same_as<bool>;
  // The pages that can be cached besides those that are.
  { s.room() } -> std::same_as<Page>;
  // The page to give up next. Readable ones first (003 section 5.2), pages that are left to the
  // program last.
  { s.victim() } -> std::same_as<Page>;
};

}  // namespace tombolo::dsm
