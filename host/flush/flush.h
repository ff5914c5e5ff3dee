// SPDX-License-Identifier: Apache-2.0
// Purpose: moves bytes between this host's caches and memory that other hosts use without snooping
// them. This is the one place that selects a processor: flush_x86.h, flush_arm.h.
//
//   TOMBOLO_TRY(available());              // once; then
//   publish(at, bytes);                    // this host's stores there are in memory
//   refresh(at, bytes);                    // this host's next loads there come from memory
//   write_through(to, from, bytes); drain();   // byte-exact, past the caches
//
// Which instruction is quickest depends on the processor and on the size. It is measured once for
// each process, on private memory, and can be set (TOMBOLO_FLUSH).
//
// Invariants: HF1 write_through changes memory in no byte but those named, whatever stale bytes the
//                 caches hold next to them (x86). On Arm this holds for whole lines, and for parts
//                 of lines only where the mapping is not cacheable: cached stores go back in whole
//                 lines.
//             HF2 publish, refresh and drain are complete when they return: fences included.
//             HF3 refresh is ordered after all earlier loads, and before all later ones.
// Thread safety: yes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/status.h"
#include "machine/place.h"

#if defined(__x86_64__)
#include "host/flush/flush_x86.h"
#elif defined(__aarch64__)
#include "host/flush/flush_arm.h"
#else
#error "host/flush knows x86-64 and 64-bit Arm; write a flush_ARCH.h for this processor"
#endif

namespace tombolo::host::flush {

inline constexpr std::size_t line_bytes = 64;

// The choices for this process.
struct Policy {
  static constexpr std::size_t classes = 3;
  static constexpr std::array<std::size_t, classes - 1> class_ends = {1024, 32768};

  static constexpr std::size_t class_of(std::size_t bytes) {
    return bytes <= class_ends[0] ? 0 : bytes <= class_ends[1] ? 1 : 2;
  }

  // Write-back of lines by size, and whether whole lines are better streamed than copied and
  // written back.
  std::array<cpu::LineOperation, classes> write_back{};
  std::array<bool, classes> stream_lines{};
  cpu::LineOperation invalidate{};
  cpu::LineOperation renew{};  // writes lines back and drops them, in one pass
  cpu::CopyLines stream{};
  void (*drain)() = cpu::write_back_fence;
  bool watch_writes = true;  // publish the written pages of a region only, where the kernel knows
  bool measured = false;
  double microseconds = 0;  // that the measurement took
  Status error;             // why flushed memory cannot be used here
};

// Chosen at the first call.
const Policy& policy();

// Ok, or unsupported (no flush instruction) or bad_configuration (TOMBOLO_FLUSH,
// TOMBOLO_WRITE_WATCH).
Status available();
// One line: instructions found, choice for each size, whether writes are watched.
std::string describe();

// The measurement itself; `setting` as TOMBOLO_FLUSH, `watch` as TOMBOLO_WRITE_WATCH.
Policy choose_policy(const std::string& setting, const std::string& watch = "on");

inline const std::byte* line_of(const void* at) {
  return reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(at) &
                                            ~std::uintptr_t{line_bytes - 1});
}

inline void publish(const Policy& by, const void* at, std::size_t bytes) {
  if (bytes == 0) return;
  const auto* end = static_cast<const std::byte*>(at) + bytes;
  by.write_back[Policy::class_of(bytes)].apply(line_of(at), end);
  cpu::write_back_fence();  // HF2: the lines are in memory before any later store
}

inline void refresh(const Policy& by, const void* at, std::size_t bytes) {
  if (bytes == 0) return;
  cpu::before_invalidate();  // HF3: the load that told us to refresh is complete
  by.invalidate.apply(line_of(at), static_cast<const std::byte*>(at) + bytes);
  cpu::invalidate_fence();  // HF3: no later load finds a line that is still to be dropped
}

inline void drain() { cpu::write_back_fence(); }

// Calls apply(first, end) for the lines that the pieces touch, from `base` on: once for pieces in
// the same or in neighbouring lines that follow each other in the list.
template <class Apply>
void for_each_stretch(const std::byte* base, std::span<const machine::DataPiece> pieces,
                      Apply&& apply) {
  const std::byte* first = nullptr;
  const std::byte* end = nullptr;
  for (const auto& [at, local, bytes] : pieces) {
    if (bytes == 0) continue;
    const std::byte* const start = line_of(base + at);
    const std::byte* const behind = line_of(base + at + bytes - 1) + line_bytes;
    if (start < first || start > end) {
      if (first != end) apply(first, end);
      first = start;
      end = behind;
    } else if (behind > end) {
      end = behind;
    }
  }
  if (first != end) apply(first, end);
}

// publish and refresh of all pieces, with the fences of one. Each line is written back before it is
// dropped, by the same instruction: no publish before that.
inline void renew_pieces(const Policy& by, const std::byte* base,
                         std::span<const machine::DataPiece> pieces) {
  cpu::before_invalidate();  // HF3: the load that told us to refresh is complete
  for_each_stretch(base, pieces, [&](const std::byte* first, const std::byte* end) {
    by.renew.apply(first, end);
  });
  // HF2: the lines are in memory; HF3: no later load finds one that is yet to be dropped
  cpu::invalidate_fence();
}

// write_through of any bytes anywhere. A function of its own, so that a call with a word saves no
// registers: many words follow each other.
[[gnu::noinline]] inline void write_range_through(const Policy& by, void* to, const void* from,
                                                  std::size_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  // Up to the first whole line, the whole lines, and the rest.
  const std::size_t to_line = (0 - reinterpret_cast<std::uintptr_t>(to)) % line_bytes;
  const std::size_t head = to_line < bytes ? to_line : bytes;
  if (head != 0) cpu::stream_part(out, in, head);
  const std::size_t whole = (bytes - head) / line_bytes * line_bytes;
  if (whole != 0) {
    const std::size_t size_class = Policy::class_of(whole);
    if (by.stream_lines[size_class]) {
      by.stream.copy(out + head, in + head, whole);
    } else {
      // Whole lines, all bytes of them ours: their write-back carries no other core's bytes.
      std::memcpy(out + head, in + head, whole);
      by.write_back[size_class].apply(out + head, out + head + whole);
    }
  }
  const std::size_t done = head + whole;
  if (done != bytes) cpu::stream_part(out + done, in + done, bytes - done);
}

// Byte-exact (HF1); in memory after drain().
[[gnu::always_inline]] inline void write_through(const Policy& by, void* to, const void* from,
                                                 std::size_t bytes) {
  if (bytes == 8 && reinterpret_cast<std::uintptr_t>(to) % 8 == 0) [[likely]]
    return cpu::stream_word(static_cast<std::byte*>(to), static_cast<const std::byte*>(from));
  write_range_through(by, to, from, bytes);
}

// A word that no cache may hold: always from memory, and in memory on return.
inline std::uint64_t load_word(const Policy& by, const std::uint64_t* word) {
  const auto* at = reinterpret_cast<const std::byte*>(word);
  by.invalidate.apply(line_of(at), at + sizeof *word);
  cpu::invalidate_fence();  // the load must not find the line before it is dropped
  return cpu::load_ordered(word);
}
inline void store_word(const Policy& by, std::uint64_t* word, std::uint64_t v) {
  cpu::store_ordered(word, v, by.write_back[0]);
}

// As above, with the policy of this process.
inline void publish(const void* at, std::size_t bytes) { publish(policy(), at, bytes); }
inline void refresh(const void* at, std::size_t bytes) { refresh(policy(), at, bytes); }

}  // namespace tombolo::host::flush
