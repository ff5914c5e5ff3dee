// SPDX-License-Identifier: Apache-2.0
// Purpose: how sites that serve places reach each other. A *site* is a process or a core. A *link*
// carries messages between sites on *virtual channels* (002 section 5.2.2); a *reach* moves bytes
// between the memories of two sites, or shows one the memory of the other. Neither knows families.
// Protocols over them are call.h, at the creator of a remote family, and service.h, where it runs.
//
// Invariants: LNK1 messages of a channel arrive in the order of their sends.
//             LNK2 a message that its receiver does not take keeps back only later ones of its own
//                  channel; or, on a link of which each site has one mailbox (`one_mailbox`), of
//                  all channels. Call and Service work on both: neither sends a message that the
//                  other side is not about to take, but for short answers to a site that takes
//                  each message when it comes.
// Thread safety: types and concepts; each link says its own.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace tombolo::svp {

using Site = std::uint32_t;

// A conversation about one remote family. The two sites have the same opener and number in it.
struct VirtualChannel {
  Site opener = 0;           // the site of the creator
  Site peer = 0;             // the other site, seen from this one
  std::uint32_t number = 0;  // of the opener's, while it is open

  bool operator==(const VirtualChannel&) const = default;
};

enum class Kind : std::uint32_t {
  request,     // opens the channel: a family is to be created
  data,        // of arrays, in either direction
  sync,        // the creator waits for the end, and takes its message
  kill,        // the family is to end
  completion,  // the family has ended
  notes,       // of channels, in either direction
};

struct Message {
  VirtualChannel channel;
  Kind kind = Kind::request;
  std::span<const std::byte> bytes{};  // the link's memory, while the message is looked at
};

namespace detail {

struct TakesAll {
  bool operator()(const Message&) const { return true; }
};

}  // namespace detail

template <class L>
concept Link = requires(L& link, const L& seen, const VirtualChannel& to, Kind kind,
                        std::span<const std::byte> bytes, detail::TakesAll& take) {
  { seen.self() } -> std::same_as<Site>;
  { seen.sites() } -> std::same_as<Site>;
  // Of one message.
  { seen.most_bytes() } -> std::convertible_to<std::size_t>;
  // False: there is no room now. The bytes are the caller's again when it returns.
  { link.try_send(to, kind, bytes) } -> std::same_as<bool>;
  // Shows messages that have arrived to `take`, which says of each whether it has taken it. One
  // that was not taken is shown again. True if one was taken.
  { link.poll(take) } -> std::same_as<bool>;
  // Returns when poll() or try_send() may do more than before, or with the error that ended a peer.
  { link.wait() } -> std::same_as<Status>;
};

// Where each site has one mailbox for all channels.
template <class L>
concept HasOneMailbox = Link<L> && requires {
  requires L::one_mailbox;
};

// A link that has no memory of other sites, but may move arrays from memory to memory where both
// sides take part: the receiver says where the bytes of a channel go, before they come. They are
// shown as a message of kind `data` once they are there; and one without bytes when the last of a
// channel's own arrays is out of the sender's hands. Data so moved keep back no message, and are
// kept back by none; those of one channel come in order.
template <class L>
concept MovesArrays = Link<L> &&
    requires(L& link, const L& seen, const VirtualChannel& channel, std::span<const std::byte> from,
             std::span<std::byte> to, std::uint64_t bytes) {
  // Whether those of this channel go so: the same at both sites.
  { seen.moves(channel) } -> std::same_as<bool>;
  // The memory stays until is_moving() is false.
  { link.move_out(channel, from) } -> std::same_as<void>;
  { link.move_in(channel, to) } -> std::same_as<void>;
  // Arrays that are not wanted: some of the `bytes` that are to come at most.
  { link.move_away(channel, bytes) } -> std::same_as<void>;
  { seen.is_moving(channel) } -> std::same_as<bool>;
};

// Whether the link still reads or writes memory for the channel.
template <Link L>
bool is_moving(const L& link, const VirtualChannel& channel) {
  if constexpr (MovesArrays<L>) return link.is_moving(channel);
  return false;
}

// The memory of other sites, as this one reaches it. An address is one of the named site.
template <class R>
concept Reach = requires(R& reach, Site site, std::uint64_t address, void* to, const void* from,
                         std::size_t bytes) {
  // ---- direct: from memory to memory, in one piece ----
  { reach.copies(site) } -> std::same_as<bool>;
  { reach.get(site, address, to, bytes) } -> std::same_as<Status>;
  { reach.put(site, address, from, bytes) } -> std::same_as<Status>;

  // ---- remap: only an address travels ----
  // This memory of the own site can be shown to that one.
  { reach.can_show(site, from, bytes) } -> std::same_as<bool>;
  // At the creator: before its request is sent, and after the completion has come.
  { reach.publish(from, bytes) } -> std::same_as<void>;
  { reach.refresh(to, bytes) } -> std::same_as<void>;
  // Where the family runs: the bytes at the creator's address, to be read and written; null if they
  // cannot be reached. unmap() makes writes seen by the creator, if there were some.
  { reach.map(site, address, bytes) } -> std::same_as<void*>;
  { reach.unmap(site, address, to, bytes, bool{}) } -> std::same_as<void>;
};

// Where the machine has an engine that copies between the memories of two sites while their cores
// do other work. An address is one of the named site.
template <class R>
concept CopiesByEngine = Reach<R> && requires(R& reach, Site site, std::uint64_t address, void* to,
                                              const void* from, std::size_t bytes) {
  // At the creator: whether this array is to go so.
  { reach.engine_copies(site, from, bytes) } -> std::same_as<bool>;
  // Where the family runs; they return when the bytes are there.
  { reach.engine_get(site, address, to, bytes) } -> std::same_as<Status>;
  { reach.engine_put(site, address, from, bytes) } -> std::same_as<Status>;
};

// No memory of another site is reached; arrays travel in messages.
struct NoReach {
  static bool copies(Site) { return false; }
  static Status get(Site, std::uint64_t, void*, std::size_t) { return refused(); }
  static Status put(Site, std::uint64_t, const void*, std::size_t) { return refused(); }
  static bool can_show(Site, const void*, std::size_t) { return false; }
  static void publish(const void*, std::size_t) {}
  static void refresh(void*, std::size_t) {}
  static void* map(Site, std::uint64_t, std::size_t) { return nullptr; }
  static void unmap(Site, std::uint64_t, void*, std::size_t, bool) {}

 private:
  static Status refused() { return Status::unsupported("the sites reach no memory of each other"); }
};
static_assert(Reach<NoReach>);

}  // namespace tombolo::svp
