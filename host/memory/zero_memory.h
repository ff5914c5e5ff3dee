// SPDX-License-Identifier: Apache-2.0
// Purpose: private memory that reads as zeros and costs nothing where it is not touched.
//
//   ZeroMemory copies(bytes);
//   if (!copies) return Status::no_memory(...);   // no address space left
//   std::byte* at = copies.as<std::byte>();
//
// Thread safety: one owner.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <utility>

namespace tombolo::host {

class ZeroMemory {
 public:
  ZeroMemory() = default;
  // False, as a bool, if there is no such address space.
  explicit ZeroMemory(std::size_t bytes) : bytes_(bytes) {
    if (bytes < mapped_from) {
      at_ = std::calloc(bytes + 1, 1);
    } else {
      at_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (at_ == MAP_FAILED) at_ = nullptr;
    }
  }
  ~ZeroMemory() {
    if (bytes_ < mapped_from)
      std::free(at_);
    else
      munmap(at_, bytes_);
  }
  ZeroMemory(ZeroMemory&& other) noexcept { *this = std::move(other); }
  ZeroMemory& operator=(ZeroMemory&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(at_);
  }
  explicit operator bool() const { return at_ != nullptr; }

 private:
  static constexpr std::size_t mapped_from = std::size_t{1} << 18;
  void* at_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace tombolo::host
