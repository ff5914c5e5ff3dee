// SPDX-License-Identifier: Apache-2.0
// Purpose: which pages of this process may be moved to its image (memory_image.h) without the
// program noticing.
//
// Memory of malloc, new and mmap, the variables of the program and of its libraries, and the stack
// of the caller may be. Memory that devices may know by its physical address, mapped files and
// other threads' stacks may not, nor a region with a hole or with other memory in between: a region
// over the whole address space is no array of the program, and its heap must not become shared.
// Thread safety: yes; the answers are those of the moment.
#pragma once

#include <cstdint>
#include <vector>

#include "host/images/memory_image.h"
#include "host/memory/address_space.h"

namespace tombolo::host {

// Pages that are not in the image yet.
struct PrivatePages {
  AddressRange range;
  bool of_file = false;  // all of them hold something, whatever the kernel says
  // Of the heap or of variables: no allocator unmaps them, discards or moves them and relies on the
  // result, so that they can stay in the image.
  bool may_stay = false;
};

// Whether all of `pages` (whole pages) are in the image or may be moved there; `out`: those that
// must be. `edges`: some hold other variables, too. `stack`: an address in the frame of the caller,
// 0 if its stack may not be moved.
bool find_private_pages(const MemoryImage& image, const AddressRange& pages, bool edges,
                        std::uint64_t stack, std::vector<PrivatePages>& out);

// A device may use this process's memory by its physical address, or the kernel does not tell.
bool may_be_registered();

// False if a device may use this process's memory by its physical address, or if the image's bytes
// of these pages are in use: the program has moved their mapping elsewhere, as realloc() does.
bool may_be_replaced(const MemoryImage& image, const std::vector<PrivatePages>& pages);

}  // namespace tombolo::host
