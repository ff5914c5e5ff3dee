// SPDX-License-Identifier: Apache-2.0
#include "host/memory/fixed_range.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "host/memory/page.h"
#include "host/memory/raw_calls.h"

namespace tombolo::host {
namespace {

Status refused(const char* call, std::uint64_t address, std::uint64_t bytes) {
  const int error = errno;
  const std::string why =
      fmt::format("{} of {} bytes at {:#x}: {}", call, bytes, address, std::strerror(error));
  if (error == EEXIST) return Status::unsupported(why + "; other memory lies there");
  return Status::no_memory(why + "; see ulimit -v and vm.max_map_count");
}

}  // namespace

FixedRange::FixedRange(FixedRange&& other) noexcept { *this = std::move(other); }

FixedRange& FixedRange::operator=(FixedRange&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

FixedRange::~FixedRange() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

Status FixedRange::reserve(std::uint64_t address, std::uint64_t bytes, FixedRange& out) {
  TOMBOLO_CHECK(bytes > 0 && bytes % page_bytes() == 0 && address % page_bytes() == 0,
                "fixed range: {} bytes at {:#x} are not whole pages", bytes, address);
  void* const wanted = reinterpret_cast<void*>(address);
  void* const at = mmap(wanted, bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == MAP_FAILED) return refused("mmap", address, bytes);
  FixedRange range;
  range.data_ = static_cast<std::byte*>(at);
  range.bytes_ = bytes;
  // Kernels before 4.17 take the address for a wish.
  if (at != wanted) {
    errno = EEXIST;
    return refused("mmap", address, bytes);
  }
  out = std::move(range);
  return {};
}

Status FixedRange::show(std::byte* shared, std::uint64_t shown) {
  TOMBOLO_CHECK(shown <= bytes_ && shown % page_bytes() == 0,
                "fixed range: {} bytes are to be shown in one of {}", shown, bytes_);
  // Past a library's mremap: that of UCX, whose MPI may be in the program, loses the address.
  const auto here = reinterpret_cast<std::uintptr_t>(data_);
  if (!raw::map_again(shared, shown, here)) return refused("mremap", here, shown);
  return {};
}

}  // namespace tombolo::host
