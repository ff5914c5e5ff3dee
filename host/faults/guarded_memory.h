// SPDX-License-Identifier: Apache-2.0
// Purpose: memory with two addresses: the view of the program, each page of which is closed,
// readable or writable, and an alias through which this library always reads and writes it.
//
//   std::unique_ptr<GuardedMemory> memory;
//   TOMBOLO_TRY(GuardedMemory::create(FaultMechanism::automatic, bytes, {}, memory));
//   memory->alias(page.low)[0] = std::byte{7};
//   memory->change(page, Access::closed, Access::readable);
//
// All of it is closed at first and has no memory behind it: a page gets that by the first store
// through the alias, and loses it by discard(). An access by the program that the page does not
// allow is a fault (fault_router.h); one by the kernel for the program (read, write) is EFAULT.
//
// Invariants: HGM1 the program's accesses succeed as its pages allow, or are faults. A fault may
//                  come where the page allows the access: the kernel has taken the page out of the
//                  page table (swapped it out, say), or there were too many mappings. Then change()
//                  from `closed` to the page's access makes it right.
//             HGM2 a forked child has neither the view nor the alias: an access there ends it.
//             HGM3 only the process's user can open the file of the pages.
// Resources: two descriptors at most. 8 bytes of page table for each page that was open.
// Thread safety: one thread at a time; the program's thread does not use pages that are changed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "host/faults/mechanism.h"
#include "host/memory/address_space.h"

namespace tombolo::host {

enum class Access : std::uint8_t { closed, readable, writable };

class GuardedMemory {
 public:
  struct Place {
    void* address = nullptr;  // of the view; null: anywhere
    bool replace = false;     // memory that is mapped there gives way; else it is an error
    // Shared memory of this process that is the alias, as long as the view, and outlives it; null:
    // new memory.
    std::byte* frames = nullptr;
  };
  // `bytes`: whole pages of the host. Errors: bad_configuration (the address is taken), unsupported
  // (the mechanism), no_memory (address space, limits of files).
  static Status create(FaultMechanism mechanism, std::uint64_t bytes, const Place& place,
                       std::unique_ptr<GuardedMemory>& out);
  virtual ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  virtual FaultMechanism mechanism() const = 0;
  const AddressRange& view() const { return view_; }
  AddressRange aliases() const;
  // Of an address of the view.
  std::byte* alias(std::uint64_t address) const { return alias_ + (address - view_.low); }

  // Fills closed pages that have no memory yet. They get `access`, readable or writable, if that is
  // no dearer; else it becomes `closed`. Errors: no_memory, io.
  virtual Status fill(const AddressRange& pages, std::span<const std::byte> bytes, Access& access);
  // Pages with memory behind them, all of which are `from` now; `to` is not closed. Errors:
  // no_memory (page tables, mappings), io.
  virtual Status change(const AddressRange& pages, Access from, Access to) = 0;
  // Whatever they were. Errors: as those of change().
  virtual Status close(std::span<const AddressRange> ranges) = 0;
  // Closes the pages and gives their memory back.
  virtual Status discard(const AddressRange& pages) = 0;

 protected:
  GuardedMemory() = default;
  Status map(std::uint64_t bytes, const Place& place, int access);
  Status map_again(std::uint64_t bytes, const Place& place, int access);
  Status give_back(const AddressRange& pages);

 private:
  Status map_new(std::uint64_t bytes, const Place& place, int access);
  Status map_view(int file, std::uint64_t bytes, const Place& place, int access);
  Status keep_from_children() const;

  AddressRange view_;
  std::byte* alias_ = nullptr;
  bool own_alias_ = false;
  pid_t process_ = 0;  // in which they are mapped
};

}  // namespace tombolo::host
