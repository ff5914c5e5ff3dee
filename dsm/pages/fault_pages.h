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
// Thread safety: one thread for each store: the one that creates it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "dsm/pages/miss_handler.h"
#include "dsm/protocol/page_store.h"
#include "host/faults/mechanism.h"

namespace tombolo::dsm {

class FaultPages {
 public:
  struct Options {
    host::FaultMechanism mechanism = host::FaultMechanism::automatic;
    // Where the program's view begins, the same in every process; null: anywhere.
    void* address = nullptr;
    // What is mapped there gives way: a reservation of the caller's. Else that is an error.
    bool replace = false;
  };

  // Memory of shape.pages pages, all absent. Errors: bad_configuration (sizes that cannot be, an
  // address that is taken), unsupported (the mechanism), no_memory.
  static Status create(const Shape& shape, const Options& options,
                       std::unique_ptr<FaultPages>& out);
  ~FaultPages();
  FaultPages(const FaultPages&) = delete;
  FaultPages& operator=(const FaultPages&) = delete;

  // Before the first access. `handler` outlives the accesses.
  void on_miss(MissHandler& handler);

  // The program's view: shape.pages * shape.page_bytes bytes.
  std::span<std::byte> memory() const;
  host::FaultMechanism mechanism() const;

  // While one lives, the program's thread is in the runtime and does not touch the view: pages are
  // opened and closed together at the end of the outermost one. Without one, each at once.
  class RuntimeCall {
   public:
    explicit RuntimeCall(FaultPages& pages);
    ~RuntimeCall();
    RuntimeCall(const RuntimeCall&) = delete;
    RuntimeCall& operator=(const RuntimeCall&) = delete;

   private:
    FaultPages& pages_;
  };

  // Makes [at, at + bytes) readable, or writable, as far as fits into the cache together: from `at`
  // on `touched` bytes are, at least one of them, until the next access to other pages or the next
  // call of the runtime. For system calls, which fail with EFAULT on closed pages. Bytes outside of
  // the view count as touched. Errors: those of the misses.
  Status touch(const void* at, std::size_t bytes, bool write, std::size_t& touched);

  // ---- PageStore: see dsm/protocol/page_store.h -------------------------------------------------

  PageNote* lookup(Page page);
  PageNote& install(Page page, std::span<const std::byte> bytes);
  void invalidate(Page page);
  bool writable(Page page) const;
  void allow_writes(Page page);
  void forbid_writes(Page page);
  std::span<std::byte> frame(Page page);
  void make_twin(Page page);
  std::span<std::byte> twin(Page page);
  std::uint32_t slot(Page page) const;
  std::vector<Page> cached() const;
  std::vector<Page> written() const;
  bool full() const;
  Page victim() const;

 private:
  FaultPages();
};
static_assert(PageStore<FaultPages>);

}  // namespace tombolo::dsm
