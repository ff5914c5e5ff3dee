// SPDX-License-Identifier: Apache-2.0
// Purpose: one core's cache of one span of memory, which is a data region or several that share
// lines: image, twin and which lines are valid.
//
// Invariants: RC1 a byte of a valid line is dirty if image and twin differ there, or if it was
//                 written by write() since the line was last exchanged with memory (`written_`).
//             RC2 a line of an open region is always valid.
//             RC3 bytes exchanged with memory become both image and twin, but for dirty bytes.
//             RC4 an image byte of an open region that a program changes meanwhile is left alone.
//             RC5 a valid line holds this core's own write_throughs, on their way or not, so that
//                 writing it back cannot undo them.
// Thread safety: none of its own; stale::Core uses it under its lock.
#pragma once

#include <vector>

#include "backends/stale/combining_buffer.h"
#include "backends/stale/findings.h"
#include "backends/stale/memory_bus.h"
#include "base/random.h"
#include "host/memory/zero_memory.h"

namespace tombolo::stale {

class RegionCache {
 public:
  struct Surroundings {
    const Spans& spans;
    MemoryBus& bus;
    CombiningBuffer& combining;
    Findings& findings;
  };
  struct Image {
    std::byte* at;
    bool of_program;  // its memory, with the bytes it keeps there; else zeros
  };
  RegionCache(SpanId span, Image image, Surroundings around);
  RegionCache(const RegionCache&) = delete;
  RegionCache& operator=(const RegionCache&) = delete;

  // Opens the region; memory := image if it is the program's memory, else image := memory.
  void adopt();
  // Opens the region: lines that are not valid come from memory.
  void expose();
  bool open() const { return open_; }

  void read(machine::Offset offset, std::byte* out, std::size_t bytes);
  void write(machine::Offset offset, const std::byte* in, std::size_t bytes);
  void write_through(machine::Offset offset, const std::byte* in, std::size_t bytes);
  void publish(machine::Offset offset, std::size_t bytes);
  void refresh(machine::Offset offset, std::size_t bytes);

  // Writes the line back if dirty; then it is invalid, or as in memory if the region is open.
  void evict(Line line);
  // A line of an open region to evict, if possible a dirty one; lines() for none.
  Line candidate(Random& random);
  Line lines() const { return span().lines(); }
  // Reports the bytes from write() that were never published.
  void report_unpublished();
  // Reports the bytes that the program stored and that were not published: a broken promise.
  void report_stores();
  // Reports the bytes that others wrote and that are not in the image, likewise; if there are none,
  // that there were some.
  void report_missing();
  // One finding for each region that has some of the bytes.
  void report(Loss loss, Line line, ByteMask bytes, Writer culprit, Writer victim = {},
              bool evicted = false) const;
  // Memory becomes image but for dirty bytes, if the image is the program's memory; the bytes that
  // others wrote are reported.
  void hand_back();

 private:
  struct Bytes {
    std::byte at[line_bytes];
  };

  const Span& span() const { return around_.spans[id_]; }
  std::size_t bytes_of(Line line) const { return span().bytes_of(line); }
  std::byte* image_of(Line line) const { return image_ + span().start_of(line); }
  std::byte* twin_of(Line line) const { return twin_.as<std::byte>() + span().start_of(line); }
  // Bytes of the lines [first, end).
  std::size_t bytes_of(Line first, Line end) const {
    return span().start_of(end - 1) + bytes_of(end - 1) - span().start_of(first);
  }
  ByteMask& written(Line line) const { return written_.as<ByteMask>()[line]; }
  std::uint64_t& valid_word(Line line) const { return valid_.as<std::uint64_t>()[line / 64]; }
  bool valid(Line line) const { return open_ || (valid_word(line) >> line % 64 & 1) != 0; }

  void ensure();  // memory for the cache, at first use
  Bytes seen(Line line) const;
  ByteMask dirty(Line line, const Bytes& image) const;
  bool pages_are_clean(Line first, Line end) const;

  // The bytes of memory that others have changed since it was last exchanged.
  ByteMask missing(Line line, const Bytes& image, Bytes& fresh) const;
  // Calls visit(first, end) for the parts of the region whose image is there.
  template <class Visit>
  void each_mapped(Visit&& visit) const;

  // Memory becomes image (which was `before`) and twin, but for the bytes in `keep`.
  void take(Line line, const Bytes& before, const Bytes& fresh, ByteMask keep);
  void fill(Line line);                      // makes an invalid line valid
  void write_back(Line line, bool evicted);  // whole, if dirty
  void drop(Line line, ByteMask range);      // the refresh of a part of a valid line

  // Calls visit(line, first byte, bytes) for the lines of the range.
  template <class Visit>
  void each_piece(machine::Offset offset, std::size_t bytes, Visit&& visit) const;
  // Calls visit(line) for all valid lines in [first, end), less those of an open region that cannot
  // be dirty (if `memory_counts`: nor differ from memory).
  template <class Visit>
  void each_valid(Line first, Line end, bool memory_counts, Visit&& visit);
  // Calls visit(first, end) for the parts of [first, end) that may hold anything but zeros.
  template <class Visit>
  void each_touched(Line first, Line end, bool memory_counts, Visit&& visit);

  SpanId id_;
  std::byte* image_;
  Surroundings around_;
  bool image_of_program_;
  bool open_ = false;
  bool sparse_ = false;        // large, and the image is zero where it is not present
  bool written_used_ = false;  // a bit of `written_` was ever set
  host::ZeroMemory twin_;
  host::ZeroMemory valid_;    // a bit per line; unused once the region is open
  host::ZeroMemory written_;  // by line (RC1)
  std::vector<std::uint8_t> touched_;
};

}  // namespace tombolo::stale
