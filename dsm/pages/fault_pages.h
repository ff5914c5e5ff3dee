// SPDX-License-Identifier: Apache-2.0
// Purpose: the page store of an ordinary program: its loads and stores to a range of addresses are
// caught by real page faults, and drive a protocol.
//
//   std::unique_ptr<FaultPages> pages;
//   TOMBOLO_TRY(FaultPages::create(shape, {.address = at}, pages));
//   Regional<T, FaultPages> protocol(transport, *pages, layout);
//   ProtocolMisses misses(protocol);
//   pages->on_miss(misses);
//   pages->memory()[0] = std::byte{7};              // a fault, and the protocol's write_miss(0)
//   {
//     FaultPages::RuntimeCall call(*pages);         // around each call of the runtime
//     TOMBOLO_TRY(protocol.barrier());
//   }
//
// A page that is dropped keeps its memory until another page needs it: where it comes again, no
// page of memory has to be found and cleared. The memory of a sixteenth of the cached pages, 64 at
// most, is given back at once: the kernel takes four times as long for pages one by one.
//
// A fault is handled in the thread that has met it, wherever that was: in memcpy, qsort or snprintf
// as in the program's own code. The operations that a miss needs allocate nothing and take no lock;
// of all operations only cached() and written() allocate, which the protocols call in
// synchronization alone. A protocol and its transport may allocate in a miss, from the C library's
// allocator: Regional does for an error's text, and where it evicts a page, for the list of changed
// pages and the updates of a span. See miss_handler.h.
//
// Invariants: DFP1 when the program's thread runs, the access of each page of the view is that of
//                  its state (DST1), but for pages that the kernel has taken out of the page table:
//                  their next fault restores it, without a miss.
//             DFP2 at most shape.cached_pages pages have memory: those that are cached, and dropped
//                  ones. It is full() before that, by the pages that are given back at once. A slot
//                  belongs to one frame for ever, whose page changes only while it is not cached
//                  (DST3).
//             DFP3 victim() is the page that has been readable for longest if a quarter of the
//                  pages that fit are readable, or all that are cached; else the one that has been
//                  writable for longest, pages that are left to the program last. So a thread that
//                  has written all of its cache can read a stream beside that. But it is none of
//                  the pages of the
//                  last three misses, as long as there are others. An instruction that needs four
//                  pages at once gets them: otherwise two that are clean could push each other out
//                  of a cache of written pages for ever. So four pages are the least capacity.
//             DFP4 a forked child has no view. It may create a store of its own at the address; the
//                  copy of its parent's object does nothing when it is destroyed.
// Memory: that of the cached pages and of the twins of those that were ever written, 44 bytes for
// each; for each page of the shape that was touched 4 bytes, and 16 of page tables.
// Thread safety: one thread for each store: the one that creates it, uses its view and destroys it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "dsm/pages/frame_table.h"
#include "dsm/pages/miss_handler.h"
#include "dsm/protocol/page_store.h"
#include "host/faults/fault_router.h"
#include "host/faults/guarded_memory.h"
#include "host/memory/zero_memory.h"

namespace tombolo::dsm {

class FaultPages : private host::FaultTarget {
 public:
  struct Options {
    host::FaultMechanism mechanism = host::FaultMechanism::automatic;
    // Where the program's view begins, the same in every process; null: anywhere.
    void* address = nullptr;
    // Memory that is mapped there gives way: a reservation of the caller's. Else it is an error.
    bool replace = false;
    // Shared memory of this process, as long as the view, in which the pages lie: page p as the
    // p-th. It outlives the store. Null: memory of the store's own.
    std::byte* frames = nullptr;
  };

  // An instruction needs as many at once, at most: a load and a store over two pages each.
  static constexpr std::uint32_t least_cached_pages = 4;

  // Memory of shape.pages pages, all absent. The calling thread gets a stack for signals. Errors:
  // bad_configuration (sizes that cannot be, an address that is taken), unsupported (the
  // mechanism), no_memory.
  static Status create(const Shape& shape, const Options& options,
                       std::unique_ptr<FaultPages>& out);
  ~FaultPages() override;
  FaultPages(const FaultPages&) = delete;
  FaultPages& operator=(const FaultPages&) = delete;

  // Before the first access. `handler` outlives the accesses.
  void on_miss(MissHandler& handler) { handler_ = &handler; }

  // The program's view: shape.pages * shape.page_bytes bytes.
  std::span<std::byte> memory() const;
  host::FaultMechanism mechanism() const { return memory_->mechanism(); }
  // The address of the one that has met the last fault; 0: not known.
  std::uint64_t instruction() const { return instruction_; }

  // While one lives, the program's thread is in the runtime and does not touch the view: pages are
  // opened and closed together at the end of the outermost one. Without one, each at once. A fault
  // in the view meanwhile is a mistake of the runtime, or of a signal handler of the program.
  class RuntimeCall {
   public:
    explicit RuntimeCall(FaultPages& pages) : pages_(pages) { ++pages_.calls_; }
    ~RuntimeCall() {
      if (pages_.calls_ == 1) pages_.settle();
      --pages_.calls_;
    }
    RuntimeCall(const RuntimeCall&) = delete;
    RuntimeCall& operator=(const RuntimeCall&) = delete;

   private:
    FaultPages& pages_;
  };

  // Makes [at, at + bytes) readable, or writable, as far as fits into the cache together: from `at`
  // on `touched` bytes are, at least one of them, until the next access to other pages or the next
  // call of the runtime. For system calls, which fail with EFAULT on closed pages. Bytes outside of
  // the view count as touched. It ends before a page that may_access() refuses. Not inside of a
  // RuntimeCall. Errors: those of the misses.
  Status touch(const void* at, std::size_t bytes, bool write, std::size_t& touched);

  // ---- PageStore: see dsm/protocol/page_store.h -------------------------------------------------

  PageNote* lookup(Page page) {
    Frame* const frame = cached_frame(page);
    return frame == nullptr ? nullptr : &frame->note;
  }
  PageNote& install(Page page, std::span<const std::byte> bytes) {
    install_run(page, bytes, for_store_);
    return at(page).note;
  }
  void install_run(Page first, std::span<const std::byte> bytes, bool for_stores);
  void invalidate(Page page) { become(at(page), FrameState::dropped); }

  bool writable(Page page) const { return is_writable(at(page).state); }
  void allow_writes(Page page) { become(at(page), FrameState::writable); }
  void forbid_writes(Page page) { become(at(page), FrameState::readable); }
  void leave_to_program(Page page) { become(at(page), FrameState::left); }

  std::span<std::byte> frame(Page page) { return bytes_of(at(page)); }
  void make_twin(Page page);
  std::span<std::byte> twin(Page page) {
    return {twins_.as<std::byte>() + std::size_t{frames_.slot_of(at(page))} * shape_.page_bytes,
            shape_.page_bytes};
  }
  std::uint32_t slot(Page page) const {
    return in_place_ ? static_cast<std::uint32_t>(page) : frames_.slot_of(at(page));
  }
  bool in_place() const { return in_place_; }

  std::vector<Page> cached() const;
  std::vector<Page> written() const;

  bool full() const { return room() == 0; }
  Page room() const {
    return capacity_ - frames_.count(FrameState::readable) - frames_.count(FrameState::writable) -
           frames_.count(FrameState::left);
  }
  Page victim() const;

 private:
  class Closing;

  static constexpr FrameTable::Slot most_reclaimed = 64;
  explicit FaultPages(const Shape& shape)
      : shape_(shape),
        reclaimed_(std::min(shape.cached_pages / 16, most_reclaimed)),
        capacity_(shape.cached_pages - reclaimed_) {}
  Status prepare(const Options& options);

  bool on_fault(const host::Fault& fault) override;
  Status serve(Page page, host::FaultKind kind);
  Status open_again(const Frame& frame);
  void must(Page page, const Status& status);
  Status miss(Page page, bool write);
  void note_miss(Page page);
  bool missed_lately(Page page) const;

  Status open_pages(Page first, Page count, bool write);
  Page opened(Page first, Page count, bool write) const;
  void reach(Page first, Page count) const;

  // Null if it is not cached.
  Frame* cached_frame(Page page) {
    shape_.check(page);
    Frame* const frame = frames_.find(page);
    return frame == nullptr || frame->state == FrameState::dropped ? nullptr : frame;
  }
  const Frame* cached_frame(Page page) const {
    return const_cast<FaultPages*>(this)->cached_frame(page);
  }
  Frame& at(Page page) {
    Frame* const frame = cached_frame(page);
    TOMBOLO_CHECK(frame != nullptr, "page store: page {} is not cached", page);
    return *frame;
  }
  const Frame& at(Page page) const { return const_cast<FaultPages*>(this)->at(page); }
  static bool is_writable(FrameState state) {
    return state == FrameState::writable || state == FrameState::left;
  }
  static bool allows(const Frame* frame, bool write) {
    return frame != nullptr && (!write || is_writable(frame->state));
  }

  Page install_with_memory(Page first, std::span<const std::byte> bytes);
  Page install_new(Page first, std::span<const std::byte> bytes, bool for_stores);
  Frame& frame_for(Page page);
  void reclaim();
  void become(Frame& frame, FrameState state);
  void settle();
  void apply(std::span<const FrameTable::Slot> run, Closing& closing);

  Page page_at(const void* address) const;
  host::AddressRange range_of(Page page, Page count = 1) const;
  std::span<std::byte> bytes_of(const Frame& frame) {
    return {memory_->alias(range_of(frame.page).low), shape_.page_bytes};
  }

  static constexpr Page no_page = ~Page{0};

  const Shape shape_;
  const FrameTable::Slot reclaimed_;  // frames at once; 0: 1
  const FrameTable::Slot capacity_;   // of cached pages
  bool in_place_ = false;
  std::unique_ptr<host::GuardedMemory> memory_;
  MissHandler* handler_ = nullptr;
  FrameTable frames_;
  host::ZeroMemory twins_;    // by slot
  host::ZeroMemory changes_;  // slots of frames that are `changing`
  std::uint32_t changes_count_ = 0;
  int calls_ = 0;  // RuntimeCalls that live
  std::uint64_t instruction_ = 0;
  bool for_store_ = false;  // a store of the program has missed the page
  std::array<Page, 3> missed_{no_page, no_page, no_page};  // last, the newest at the end
  Page restored_ = no_page;                                // the page that was opened again last
  int times_restored_ = 0;                                 // since the last miss
};
static_assert(PageStore<FaultPages>);

}  // namespace tombolo::dsm
