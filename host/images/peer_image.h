// SPDX-License-Identifier: Apache-2.0
// Purpose: other processes' images (memory_image.h) mapped here: each part once, whatever windows
// use it, in pieces large enough that many windows share one.
//
//   PeerImage part;
//   TOMBOLO_TRY(PeerImage::map(name, range, part));
//   part.at(range.low) ...
//
// Invariants: PI1 a process maps a peer's memory in spans that start and end at multiples of
//                 PeerImage::span_bytes: as many mappings as such spans hold windows' memory,
//                 not as many as there are windows.
//             PI2 a span that no window uses stays mapped for the next one, until its process has
//                 ended or many are unused.
// Thread safety: yes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "host/images/memory_image.h"

namespace tombolo::host {

class PeerImage {
 public:
  static constexpr std::uint64_t span_bytes = std::uint64_t{64} << 20;

  // The range of the process's addresses. Errors: unsupported if this process may not open the
  // image, process_failed, no_memory if the kernel gives no further mapping, io.
  static Status map(const ImageName& name, const AddressRange& range, PeerImage& out);

  std::byte* at(std::uint64_t address) const;

  class Span;

 private:
  std::shared_ptr<const Span> span_;
};

}  // namespace tombolo::host
