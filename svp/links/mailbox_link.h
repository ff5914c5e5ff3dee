// SPDX-License-Identifier: Apache-2.0
// Purpose: a link with one mailbox at each site, for one message of any channel (002 section 5.2.2,
// where it is the core's part of the message-passing buffer). A sender takes the mailbox, puts a
// message there and leaves it until the receiver has taken that: one that is not taken blocks all
// channels to its site, which is where the deadlock of that section comes from.
//
// Invariants: MBL1 the mailbox's word is `free`, then `taken` by one sender, then `full` until the
//                 receiver has taken the message.
// Memory: a line of sync words at each home, and the mailbox in its data.
// Data: the message is published before the word is `full` (R4), and refreshed after that was
// loaded (R5).
// Thread safety: sends by one thread at a time, and polls by one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "svp/links/letter.h"

namespace tombolo::svp {

template <machine::Core C>
class MailboxLink {
 public:
  static constexpr bool one_mailbox = true;

  struct Layout {
    machine::Offset state = 0;
    machine::Offset mailbox = 0;  // in the data region
    std::uint64_t bytes = 0;
  };
  static Layout take(machine::SyncLayout& layout, machine::Offset mailbox, std::uint64_t bytes) {
    return {.state = layout.take_lines(1), .mailbox = mailbox, .bytes = bytes};
  }

  MailboxLink(C& core, const Layout& layout)
      : core_(core),
        layout_(layout),
        own_(core.word({core.self(), layout.state})),
        scratch_(detail::reads_in_place<C> ? 0 : most_bytes()) {
    TOMBOLO_CHECK(layout.bytes > header, "link: a mailbox of {} bytes", layout.bytes);
  }

  Site self() const { return core_.self(); }
  Site sites() const { return core_.cores(); }
  std::size_t most_bytes() const { return layout_.bytes - header; }

  bool try_send(const VirtualChannel& to, Kind kind, std::span<const std::byte> bytes) {
    const auto state = core_.word({to.peer, layout_.state});
    // A load first: attempts on a mailbox that is not free would keep its receiver from it.
    refused_ = core_.load(state) != free || core_.compare_exchange(state, free, taken) != free;
    if (refused_) return false;
    const machine::DataPlace at{to.peer, layout_.mailbox};
    const std::uint64_t sender = self();
    (void)core_.write(at, &sender, sizeof sender).ok();  // mapped memory
    core_.publish(at, sizeof sender);                    // R4: before the state is stored
    detail::write_letter(core_, at + sizeof sender,
                         {.bytes = static_cast<std::uint32_t>(bytes.size()),
                          .kind = static_cast<std::uint32_t>(kind),
                          .opener = to.opener,
                          .number = to.number},
                         bytes);
    core_.store(state, full);
    core_.notify(to.peer);
    return true;
  }

  template <class Take>
  bool poll(Take&& take) {
    if (core_.load(own_) != full) return false;
    const machine::DataPlace at{self(), layout_.mailbox};
    std::uint64_t sender = 0;
    core_.refresh(at, sizeof sender);  // R5: after the state was loaded
    (void)core_.read(at, &sender, sizeof sender).ok();
    const machine::DataPlace letter_at = at + sizeof sender;
    const detail::Letter letter = detail::read_letter(core_, letter_at);
    const auto bytes = detail::read_bytes(core_, letter_at, letter, scratch_.data());
    if (!take(detail::message_of(letter, static_cast<Site>(sender), bytes))) return false;
    core_.store(own_, free);
    return true;
  }

  // A mailbox of another site cannot be waited for (R6), nor one whose message is another
  // thread's.
  Status wait() {
    if (refused_ || core_.load(own_) == full) {
      refused_ = false;
      return core_.pause(pause_ns);
    }
    return core_.wait_until(own_, [](std::uint64_t state) { return state == full; });
  }

 private:
  static constexpr std::uint64_t free = 0;
  static constexpr std::uint64_t taken = 1;
  static constexpr std::uint64_t full = 2;
  static constexpr std::size_t header = sizeof(std::uint64_t) + sizeof(detail::Letter);
  static constexpr std::uint64_t pause_ns = 1000;

  C& core_;
  Layout layout_;
  typename C::Word own_;
  std::vector<std::byte> scratch_;
  bool refused_ = false;
};

}  // namespace tombolo::svp
