// SPDX-License-Identifier: Apache-2.0
// Purpose: a link over the memory of a machine: a ring of messages from each site to each other
// one, at the receiver's home. Sites are cores. A receiver that takes every message, and keeps
// those that it has no use for yet with their channel, holds up none (LNK2).
//
//   head  bytes that the sender has written, in all; a word of the receiver
//   tail  bytes that the receiver has given back; a word of the sender
//
// Invariants: RLK1 the head is stored by the sender alone, the tail by the receiver alone. Bytes
//                 from the tail on belong to the receiver as far as the head.
//             RLK2 a message lies in whole lines, without a gap: one that would not fit in front of
//                 the end of the ring is written at its beginning.
//             RLK3 a tail that is stored late leaves room for the largest message.
// Memory: two lines of sync words at each home for each other site, and a ring of data.
// Data: each message is published before the head is stored (R4), and refreshed after that was
// loaded (R5).
// Thread safety: sends by one thread at a time, and polls by one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/rounding.h"
#include "svp/links/letter.h"

namespace tombolo::svp {

template <machine::Core C>
class RingLink {
 public:
  struct Layout {
    machine::Offset heads = 0;  // of the rings to this site, a line for each sender
    machine::Offset tails = 0;  // of the rings from this site, a line for each receiver
    machine::Offset rings = 0;  // in the data region
    std::uint64_t ring_bytes = 0;
  };
  static Layout take(machine::SyncLayout& layout, machine::Home sites, machine::Offset rings,
                     std::uint64_t ring_bytes) {
    return {.heads = layout.take_lines(sites * words_of_line),
            .tails = layout.take_lines(sites * words_of_line),
            .rings = rings,
            .ring_bytes = round_up(ring_bytes, 2 * line)};
  }
  static std::size_t data_bytes(machine::Home sites, std::uint64_t ring_bytes) {
    return sites * round_up(ring_bytes, 2 * line);
  }

  RingLink(C& core, const Layout& layout)
      : core_(core), layout_(layout), ways_(core.cores()), scratch_(scratch_bytes()) {
    TOMBOLO_CHECK(layout.ring_bytes >= 8 * line, "link: a ring of {} bytes", layout.ring_bytes);
    for (Site other = 0; other < core.cores(); ++other) {
      Way& way = ways_[other];
      way.out_head = core.word({other, layout.heads + core.self() * line});
      way.out_tail = core.word({core.self(), layout.tails + other * line});
      way.in_head = core.word({core.self(), layout.heads + other * line});
      way.in_tail = core.word({other, layout.tails + core.self() * line});
    }
  }

  Site self() const { return core_.self(); }
  Site sites() const { return core_.cores(); }
  // A quarter of a ring, so that a message at its end and one that goes round it fit (RLK3).
  std::size_t most_bytes() const { return layout_.ring_bytes / 4 - sizeof(detail::Letter); }

  bool try_send(const VirtualChannel& to, Kind kind, std::span<const std::byte> bytes) {
    Way& way = ways_[to.peer];
    const std::uint64_t size = round_up(sizeof(detail::Letter) + bytes.size(), line);
    const std::uint64_t at = way.sent % layout_.ring_bytes;
    const std::uint64_t gap = at + size > layout_.ring_bytes ? layout_.ring_bytes - at : 0;
    if (!has_room(way, gap + size)) {
      refused_ = true;
      return false;
    }
    const machine::DataPlace ring{to.peer, layout_.rings + self() * layout_.ring_bytes};
    if (gap != 0) detail::write_letter(core_, ring + at, {.bytes = goes_round}, {});
    const detail::Letter letter{.bytes = static_cast<std::uint32_t>(bytes.size()),
                                .kind = static_cast<std::uint32_t>(kind),
                                .opener = to.opener,
                                .number = to.number};
    detail::write_letter(core_, ring + (gap != 0 ? 0 : at), letter, bytes);
    way.sent += gap + size;
    core_.store(way.out_head, way.sent);
    core_.notify(to.peer);
    return true;
  }

  // True if poll() would show a message.
  bool has_arrivals() {
    for (Site sender = 0; sender < sites(); ++sender)
      if (sender != self() && core_.load(ways_[sender].in_head) != ways_[sender].taken) return true;
    return false;
  }

  template <class Take>
  bool poll(Take&& take) {
    bool any = false;
    for (Site sender = 0; sender < sites(); ++sender)
      if (sender != self()) any = poll_one(sender, take) || any;
    return any;
  }

  Status wait() {
    // One word at most can be waited for (R6); and a message that was left is there already.
    if (refused_ || left_ || sites() != 2) {
      refused_ = false;
      left_ = false;
      return core_.pause(pause_ns);
    }
    Way& way = ways_[1 - self()];
    return core_.wait_until(way.in_head,
                            [seen = way.taken](std::uint64_t head) { return head != seen; });
  }

 private:
  static constexpr std::uint64_t line = 64;
  static constexpr std::size_t words_of_line = line / sizeof(std::uint64_t);
  static constexpr std::uint32_t goes_round = ~std::uint32_t{0};
  static constexpr std::uint64_t pause_ns = 1000;

  // To and from one other site.
  struct Way {
    typename C::Word out_head;
    typename C::Word out_tail;
    typename C::Word in_head;
    typename C::Word in_tail;
    std::uint64_t sent = 0;        // the head
    std::uint64_t given_back = 0;  // the tail, as it was seen last
    std::uint64_t taken = 0;       // of the other's messages
    std::uint64_t told = 0;        // of that, the other's tail
  };

  std::size_t scratch_bytes() const { return detail::reads_in_place<C> ? 0 : most_bytes(); }

  bool has_room(Way& way, std::uint64_t size) {
    if (layout_.ring_bytes - (way.sent - way.given_back) >= size) return true;
    way.given_back = core_.load(way.out_tail);
    return layout_.ring_bytes - (way.sent - way.given_back) >= size;
  }

  template <class Take>
  bool poll_one(Site sender, Take& take) {
    Way& way = ways_[sender];
    const std::uint64_t before = way.taken;
    const std::uint64_t head = core_.load(way.in_head);
    while (way.taken != head && take_one(way, sender, take)) {
    }
    if (way.taken - way.told >= layout_.ring_bytes / 4) {
      way.told = way.taken;
      core_.store(way.in_tail, way.told);
    }
    return way.taken != before;
  }
  template <class Take>
  bool take_one(Way& way, Site sender, Take& take) {
    const machine::DataPlace ring{self(), layout_.rings + sender * layout_.ring_bytes};
    const std::uint64_t at = way.taken % layout_.ring_bytes;
    const detail::Letter letter = detail::read_letter(core_, ring + at);
    if (letter.bytes == goes_round) {
      way.taken += layout_.ring_bytes - at;
      return true;
    }
    const auto bytes = detail::read_bytes(core_, ring + at, letter, scratch_.data());
    left_ = !take(detail::message_of(letter, sender, bytes));
    if (left_) return false;
    way.taken += round_up(sizeof letter + letter.bytes, line);
    return true;
  }

  C& core_;
  Layout layout_;
  std::vector<Way> ways_;
  std::vector<std::byte> scratch_;
  bool refused_ = false;
  bool left_ = false;
};

}  // namespace tombolo::svp
