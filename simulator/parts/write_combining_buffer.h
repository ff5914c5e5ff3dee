// SPDX-License-Identifier: Apache-2.0
// Purpose: a write-combining buffer: collects writes to one line, byte by byte, until it is emptied
// by a write to another line, by being full, or on demand. Like the cache it knows no time and no
// memory.
//
//   if (auto out = buffer.write(address, &value, 8)) ... bring *out to memory
//   if (buffer.full()) ... the same with buffer.drain()
//
// Invariants: WB1 a line that leaves the buffer has exactly the bytes that were written, in their
//                 last values (`mask`, bit n for byte n of the line).
//             WB2 lines leave in the order in which they were first written to.
// Thread safety: one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/check.h"
#include "base/copy.h"
#include "simulator/kernel/identifiers.h"

namespace tombolo::simulator {

struct CombinedLine {
  static constexpr std::size_t most_bytes = 64;
  Line line;
  std::uint64_t mask = 0;
  std::array<std::byte, most_bytes> bytes{};
};

class WriteCombiningBuffer {
 public:
  explicit WriteCombiningBuffer(LineSize line_size) : line_size_(line_size) {
    TOMBOLO_CHECK(line_size.bytes() <= CombinedLine::most_bytes,
                  "a write-combining buffer of {} bytes: {} at most", line_size.bytes(),
                  CombinedLine::most_bytes);
  }

  bool empty() const { return held_.mask == 0; }
  bool full() const { return held_.mask == bits(line_size_.bytes()); }
  // The line that it holds, if it is not empty.
  Line line() const { return held_.line; }
  // Whether a write to this line would be combined with the bytes held.
  bool holds(Line line) const { return !empty() && held_.line == line; }

  // The bytes lie in one line. Returns the lines that had to leave for them.
  std::optional<CombinedLine> write(Address to, const void* from, std::size_t bytes) {
    const std::size_t offset = line_size_.offset(to);
    TOMBOLO_CHECK(bytes > 0 && line_size_.within_one(to, bytes),
                  "{} bytes at {:#x} are not in one line of {} bytes", bytes, to.byte(),
                  line_size_.bytes());
    const Line line = line_size_.line(to);
    std::optional<CombinedLine> out;
    if (!holds(line)) out = drain();
    held_.line = line;
    held_.mask |= bits(bytes) << offset;
    copy_bytes(held_.bytes.data() + offset, from, bytes);
    return out;
  }

  std::optional<CombinedLine> drain() {
    if (empty()) return std::nullopt;
    const CombinedLine out = held_;
    held_ = {};
    return out;
  }

 private:
  static constexpr std::uint64_t bits(std::size_t n) {
    return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
  }

  LineSize line_size_;
  CombinedLine held_;
};

}  // namespace tombolo::simulator
