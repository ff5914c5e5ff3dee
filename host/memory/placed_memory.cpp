// SPDX-License-Identifier: Apache-2.0
#include "host/memory/placed_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "host/memory/page.h"

namespace tombolo::host {
namespace {

// Takes the addresses, if nothing lies there.
Status take_addresses(std::byte* at, std::size_t bytes) {
  void* const taken =
      mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
           -1, 0);
  if (taken == at) return {};
  const int error = taken == MAP_FAILED ? errno : EEXIST;
  if (taken != MAP_FAILED) munmap(taken, bytes);  // kernels before 4.17 put it elsewhere
  const auto why = fmt::format("{} bytes at {}: {}", bytes, fmt::ptr(at), std::strerror(error));
  if (error == EEXIST) return Status::unsupported(why + ": other memory lies there");
  return Status::no_memory(why + "; see ulimit -v and vm.overcommit_memory");
}

}  // namespace

Status place_in_front(std::byte* shared, std::span<std::byte> place, std::size_t filled) {
  const auto address = reinterpret_cast<std::uintptr_t>(place.data());
  TOMBOLO_CHECK(address % page_bytes() == 0 && place.size() % page_bytes() == 0 &&
                    filled % page_bytes() == 0 && filled <= place.size(),
                "{} bytes at {:#x}, {} of them filled, are not whole pages", place.size(), address,
                filled);
  if (filled < place.size())
    TOMBOLO_TRY(take_addresses(place.data() + filled, place.size() - filled));
  std::memcpy(shared, place.data(), filled);
  // Of shared memory nothing is moved: an old size of 0 asks for a second mapping.
  if (mremap(shared, 0, place.size(), MREMAP_MAYMOVE | MREMAP_FIXED, place.data()) != MAP_FAILED)
    return {};
  return Status::no_memory(fmt::format("mremap of {} bytes to {:#x}: {}; see vm.max_map_count",
                                       place.size(), address, std::strerror(errno)));
}

}  // namespace tombolo::host
