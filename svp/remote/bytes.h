// SPDX-License-Identifier: Apache-2.0
// Purpose: bytes that are written one after the other and read in the same order; a few of them
// need no allocation.
// Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>

namespace tombolo::svp {

class Bytes {
 public:
  // So many need no allocation.
  static constexpr std::size_t few = 256;

  Bytes() {}
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  std::span<const std::byte> all() const { return {data(), size_}; }
  std::size_t size() const { return size_; }
  void clear() { size_ = 0; }

  // Room for so many more; throws std::bad_alloc.
  std::byte* grow(std::size_t bytes) {
    if (size_ + bytes > capacity_) move_to(std::max(size_ + bytes, 2 * capacity_));
    std::byte* const at = data() + size_;
    size_ += bytes;
    return at;
  }
  void append(const void* from, std::size_t bytes) {
    if (bytes != 0) std::memcpy(grow(bytes), from, bytes);
  }
  void overwrite(std::size_t at, const void* from, std::size_t bytes) {
    std::memcpy(data() + at, from, bytes);
  }
  template <class T>
  void append(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    append(&value, sizeof value);
  }

 private:
  const std::byte* data() const { return large_ ? large_.get() : small_; }
  std::byte* data() { return large_ ? large_.get() : small_; }
  void move_to(std::size_t capacity) {
    std::unique_ptr<std::byte[]> larger(new std::byte[capacity]);
    std::memcpy(larger.get(), data(), size_);
    large_ = std::move(larger);
    capacity_ = capacity;
  }

  std::size_t size_ = 0;
  std::size_t capacity_ = few;
  std::unique_ptr<std::byte[]> large_;
  alignas(8) std::byte small_[few];  // without a value
};

// Reads past the end fail, and all later ones with them.
class BytesReader {
 public:
  explicit BytesReader(std::span<const std::byte> bytes) : left_(bytes) {}

  bool ok() const { return ok_; }
  std::size_t left() const { return left_.size(); }
  bool at_end() const { return left_.empty(); }
  // Null after a failure.
  const std::byte* bytes(std::size_t bytes) {
    if (!ok_ || bytes > left_.size()) {
      ok_ = false;
      return nullptr;
    }
    const std::byte* const at = left_.data();
    left_ = left_.subspan(bytes);
    return at;
  }
  template <class T>
  bool take(T& value) {
    const std::byte* const at = bytes(sizeof value);
    if (at != nullptr) std::memcpy(&value, at, sizeof value);
    return at != nullptr;
  }

 private:
  std::span<const std::byte> left_;
  bool ok_ = true;
};

}  // namespace tombolo::svp
