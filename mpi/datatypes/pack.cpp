// SPDX-License-Identifier: Apache-2.0
// Purpose: copies typed data to and from contiguous buffers.
// Invariants: the order of bytes is that of the type map.
// Thread safety: see type_info.h.
#include <cstring>

#include "mpi/datatypes/type_info.h"

namespace tombolo::mpi {
namespace {

// Small blocks are the rule in derived types; copies of known size need no call.
inline void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  switch (bytes) {
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    case 16:
      std::memcpy(to, from, 16);
      return;
    default:
      std::memcpy(to, from, bytes);
  }
}

void gather(const TypeInfo& info, const std::vector<Block>& list, std::size_t count,
            const void* base, std::byte* out) {
  const auto* from = static_cast<const std::byte*>(base);
  detail::visit_list(info, list, count, [&](std::ptrdiff_t offset, std::size_t bytes) {
    copy(out, from + offset, bytes);
    out += bytes;
  });
}

void scatter(const TypeInfo& info, const std::vector<Block>& list, std::size_t count,
             const std::byte* in, void* base) {
  auto* to = static_cast<std::byte*>(base);
  detail::visit_list(info, list, count, [&](std::ptrdiff_t offset, std::size_t bytes) {
    copy(to + offset, in, bytes);
    in += bytes;
  });
}

}  // namespace

void pack(const TypeInfo& info, const void* base, std::size_t count, std::byte* out) {
  gather(info, info.blocks, count, base, out);
}

void unpack(const TypeInfo& info, const std::byte* in, void* base, std::size_t count) {
  scatter(info, info.blocks, count, in, base);
}

void pack_elements(const TypeInfo& info, const void* base, std::size_t count, std::byte* out) {
  gather(info, info.runs(), count, base, out);
}

void unpack_elements(const TypeInfo& info, const std::byte* in, void* base, std::size_t count) {
  scatter(info, info.runs(), count, in, base);
}

}  // namespace tombolo::mpi
