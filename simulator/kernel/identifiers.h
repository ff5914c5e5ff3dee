// SPDX-License-Identifier: Apache-2.0
// Purpose: counts and addresses as types that cannot be mistaken for each other: a core, a byte's
// address, a cache line.
// Invariants: ID1 a Line is a line's number for one LineSize; mixing two sizes mixes two
//                 numberings.
// Thread safety: values.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace tombolo::simulator {

class CoreId {
 public:
  constexpr explicit CoreId(std::uint32_t index) : index_(index) {}
  constexpr std::uint32_t index() const { return index_; }
  constexpr bool operator==(const CoreId&) const = default;
  constexpr auto operator<=>(const CoreId& other) const { return index_ <=> other.index_; }

 private:
  std::uint32_t index_;
};

class Address {
 public:
  constexpr Address() = default;
  constexpr explicit Address(std::uint64_t byte) : byte_(byte) {}
  constexpr std::uint64_t byte() const { return byte_; }
  constexpr bool operator==(const Address&) const = default;
  constexpr auto operator<=>(const Address& other) const { return byte_ <=> other.byte_; }
  constexpr Address operator+(std::uint64_t bytes) const { return Address(byte_ + bytes); }
  // The bytes from `other` to this one, which is not before it.
  constexpr std::uint64_t operator-(Address other) const { return byte_ - other.byte_; }

 private:
  std::uint64_t byte_ = 0;
};

class Line {
 public:
  constexpr Line() = default;
  constexpr explicit Line(std::uint64_t number) : number_(number) {}
  constexpr std::uint64_t number() const { return number_; }
  constexpr bool operator==(const Line&) const = default;
  constexpr auto operator<=>(const Line& other) const { return number_ <=> other.number_; }

 private:
  std::uint64_t number_ = 0;
};

// Cuts addresses into lines of a power of two of bytes.
class LineSize {
 public:
  constexpr explicit LineSize(std::size_t bytes) : shift_(std::countr_zero(bytes)) {
    TOMBOLO_CHECK(std::has_single_bit(bytes), "a line of {} bytes: not a power of two", bytes);
  }
  constexpr std::size_t bytes() const { return std::size_t{1} << shift_; }
  constexpr Line line(Address a) const { return Line(a.byte() >> shift_); }
  constexpr std::size_t offset(Address a) const { return a.byte() & (bytes() - 1); }
  constexpr Address first(Line line) const { return Address(line.number() << shift_); }
  constexpr bool within_one(Address a, std::size_t count) const {
    return offset(a) + count <= bytes();
  }

 private:
  int shift_;
};

}  // namespace tombolo::simulator
