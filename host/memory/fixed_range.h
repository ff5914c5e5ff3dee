// SPDX-License-Identifier: Apache-2.0
// Purpose: a range of addresses that several processes keep free alike, so that memory which they
// share lies at one address in all of them.
//
//   FixedRange range;
//   TOMBOLO_TRY(FixedRange::reserve(address, bytes, range));   // the same at each process
//   TOMBOLO_TRY(range.show(shared));                           // that memory is there as well now
//
// Invariants: FXR1 reserve() takes no address that this process uses already.
// Thread safety: an object is used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace tombolo::host {

class FixedRange {
 public:
  FixedRange() = default;
  FixedRange(FixedRange&& other) noexcept;
  FixedRange& operator=(FixedRange&& other) noexcept;
  ~FixedRange();  // unmaps

  // `bytes` > 0 and `address` are multiples of the page's size. No access succeeds there yet.
  // Errors: unsupported if part of it is in use here, no_memory if the kernel has no more.
  static Status reserve(std::uint64_t address, std::uint64_t bytes, FixedRange& out);

  // From now on the first `shown` bytes of the range, whole pages, are those at `shared`: memory
  // that this process maps with MAP_SHARED, and may unmap there afterwards.
  Status show(std::byte* shared, std::uint64_t shown);

  std::byte* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace tombolo::host
