// SPDX-License-Identifier: Apache-2.0
// Purpose: pages of the program's own memory in a file that peers can map: the image of this
// process. A byte has the offset of its address in it, so that one file serves all windows, peers
// need to map it once, and pages that follow each other are one mapping. The program sees the same
// bytes at the same addresses all the time.
//
//   MemoryImage image;
//   TOMBOLO_TRY(image.open());
//   TOMBOLO_TRY(image.move_in(pages));    // ... peers map image.name() at pages.low ...
//   TOMBOLO_TRY(image.move_out(pages));
//
// Invariants: MI1 pages that the program never touched stay untouched, in the image and afterwards:
//                 a sparse region costs no memory.
//             MI2 pages that the program unmapped, or mapped anew, while they were in the image are
//                 left alone when they are to move out.
//             MI3 an error leaves the program's memory with its contents.
//             MI4 at every moment a load finds the program's bytes. A store of another thread while
//                 pages are moved waits if `hold` is asked for, and else may be lost; so may bytes
//                 that another process copies there, which with `hold` it is told (EFAULT).
//             MI5 between the copy of a page and its replacement nothing is stored to memory of the
//                 program but the stack: a caller that moves pages of the stack runs on another.
//             MI6 only the process's user can open the file.
// Thread safety: none of its own; OwnMemory uses it under its lock.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "host/descriptor.h"
#include "host/memory/address_space.h"
#include "host/memory/range_set.h"

namespace tombolo::host {

// All that a peer needs to map an image. Trivially copyable.
struct ImageName {
  std::int32_t pid = 0;
  std::int32_t descriptor = -1;  // -1: there is no image
  std::uint64_t inode = 0;       // guards against a reused pid or descriptor
  bool operator==(const ImageName&) const = default;
};

class MemoryImage {
 public:
  // Of other threads' stores while pages move; `if_possible`: they may be lost where it is not.
  enum class Hold : std::uint8_t { no, if_possible, yes };

  // Makes the file, if it is not there yet. To be called before pages move in: a limit of files'
  // sizes may be new. Errors: unsupported (such a limit, or too many open files), io.
  Status open();
  // The file is there, and still under its descriptor: a program may close all that it does not
  // know.
  bool is_open() const;
  const ImageName& name() const { return name_; }

  // The mapping is of the image, at its own place.
  bool is_at_home(const Mapping& mapping) const;
  // The mapping is of the image, wherever.
  bool is_of_image(const Mapping& mapping) const;

  // Pages of the program, all of them private and to be read and written, whole pages. `whole`: the
  // kernel does not tell which of them hold something, as of a file's; all are copied.
  Status move_in(const AddressRange& pages, Hold hold, bool whole);
  // Pages of the image, as far as they are still at home (MI2): private again, with the bytes put
  // there. If the kernel refuses, they stay, in whole or in part, with their contents. The file
  // keeps its memory for the next time, until forget().
  Status move_out(const AddressRange& pages, Hold hold);
  // Frees the file's memory of pages that nothing maps.
  void forget(const AddressRange& pages) const;
  // New memory, of zeros, in the image from the start, in whole pages. Null without memory.
  std::byte* allocate(std::uint64_t bytes);
  // Unmaps pages of the image and frees their memory.
  void release(const AddressRange& pages);
  // For a fork, of pages that map the file from `offset` on: a private copy, null if there is no
  // memory for it; and, in the child, the copy in their place, or, if it is null, pages that follow
  // the image's until the child stores to them.
  std::byte* copied(const AddressRange& pages, std::uint64_t offset) const;
  // False if the kernel refuses: then the child shares them with its parent.
  bool leave_in_child(const AddressRange& pages, std::uint64_t offset, std::byte* copy) const;

  // In the child: the file is the parent's.
  void abandon();

  // The system call that failed, if one did. Made where nothing may be allocated.
  struct Refusal {
    const char* call = nullptr;
    int error = 0;  // errno
  };

 private:
  template <class Move>
  static Status move_held(const AddressRange& pages, Hold hold, Move&& move);
  Refusal move_in_chunk(const AddressRange& part, bool whole) const;
  Refusal copy_in(const AddressRange& part, bool whole, bool& all) const;
  Refusal write_file(AddressRange from) const;
  Refusal read_file(AddressRange from, std::byte* to) const;
  void forget_unmapped(RangeSet pages) const;
  Refusal move_out_chunk(const AddressRange& part) const;
  Refusal copy_out(const AddressRange& part, std::byte* to) const;
  bool stays_mapped(const AddressRange& part) const;

  ImageName name_;
  Descriptor file_;
  std::uint64_t device_ = 0;
};

}  // namespace tombolo::host
