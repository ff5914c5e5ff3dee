// SPDX-License-Identifier: Apache-2.0
// Purpose: the ways by which the data of a description travel (002 sections 3.3, 5.2.2 to 5.2.4),
// and their form in a message. A *block* is written at one side and read at the other, there with
// the request, back with the completion. It holds the scalars, and of arrays the contents or the
// address.
//
//   stream  all in one block, in the form of XDR: the original
//   direct  each array apart, from memory to memory; without a gathering buffer or a form
//   buffer  each array apart, in messages of the link's size (shots)
//   remap   the address alone, of memory that the other site can be shown; of other memory as
//           direct
//   engine  as direct, copied by an engine of the machine beside its cores; without one as direct
//   best    few bytes in the block, shown memory by address, the rest as direct
//
// Invariants: CRG1 a block that does not fit its description is found out by its reader, which
//                 reads no byte beyond it.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "svp/links/link.h"
#include "svp/remote/bytes.h"
#include "svp/remote/description.h"

namespace tombolo::svp {

enum class Transport : std::uint32_t { best, stream, direct, buffer, remap, engine };
inline constexpr std::string_view transport_names[] = {"best",   "stream", "direct",
                                                       "buffer", "remap",  "engine"};
inline constexpr Transport last_transport = Transport::engine;

// Of one array.
enum class Way : std::uint32_t { inside, messages, direct, address, engine };
inline constexpr Way last_way = Way::engine;

// An argument on its way. `address` is the creator's.
struct Routed {
  Piece piece;
  Way way = Way::inside;
  std::uint64_t address = 0;
};

// Arrays of up to so many bytes travel in the block, where the way is free.
inline constexpr std::size_t few_bytes = 512;

template <Reach R>
Way way_of(Transport transport, const Piece& piece, Site there, R& reach) {
  if (!piece.form->array || transport == Transport::stream) return Way::inside;
  if (transport == Transport::buffer) return Way::messages;
  if constexpr (CopiesByEngine<R>)
    if (transport == Transport::engine && reach.engine_copies(there, piece.at, piece.bytes()))
      return Way::engine;
  const bool may_show = transport == Transport::best || transport == Transport::remap;
  const bool by_address = may_show && reach.can_show(there, piece.at, piece.bytes());
  if (by_address) return Way::address;
  if (transport == Transport::best && piece.bytes() <= few_bytes) return Way::inside;
  return reach.copies(there) ? Way::direct : Way::messages;
}

// The direction of a block.
enum class Leg : std::uint32_t { there, back };
constexpr bool travels(Flow flow, Leg leg) {
  return leg == Leg::there ? goes_in(flow) : comes_out(flow);
}

// Bytes of all arrays that travel in messages.
inline std::uint64_t bytes_in_messages(std::span<const Routed> pieces, Leg leg) {
  std::uint64_t bytes = 0;
  for (const Routed& routed : pieces)
    if (routed.way == Way::messages && travels(routed.piece.form->flow, leg))
      bytes += routed.piece.bytes();
  return bytes;
}

// Bytes of the contents that travel in the block.
inline std::uint64_t bytes_in_block(std::span<const Routed> pieces, Leg leg, bool encoded) {
  std::uint64_t bytes = 0;
  for (const Routed& routed : pieces)
    if (routed.way == Way::inside && travels(routed.piece.form->flow, leg))
      bytes += encoded ? routed.piece.count * routed.piece.form->xdr->bytes : routed.piece.bytes();
  return bytes;
}

class BlockWriter {
 public:
  BlockWriter(Bytes& block, bool encoded) : block_(block), encoded_(encoded) {}

  void write(std::span<const Routed> pieces, Leg leg) {
    for (const Routed& routed : pieces) {
      const Form& form = *routed.piece.form;
      if (form.array && leg == Leg::there) describe(routed);
      if (routed.way == Way::inside && travels(form.flow, leg)) contents(routed.piece);
    }
  }

 private:
  void describe(const Routed& routed) {
    if (encoded_) {
      XdrForm<std::uint64_t>::encode(routed.piece.count, block_.grow(8));
    } else {
      block_.append(routed.piece.count);
      block_.append(routed.address);
      block_.append(std::uint64_t{static_cast<std::uint32_t>(routed.way)});
    }
  }
  void contents(const Piece& piece) {
    if (encoded_) {
      const Xdr& xdr = *piece.form->xdr;
      xdr.encode(piece.at, piece.count, block_.grow(piece.count * xdr.bytes));
    } else {
      block_.append(piece.at, piece.bytes());
    }
  }

  Bytes& block_;
  bool encoded_;
};

class BlockReader {
 public:
  BlockReader(std::span<const std::byte> block, bool encoded) : block_(block), encoded_(encoded) {}

  // There: fills in the way, address and count of arrays, and has `room` (Routed&) provide memory
  // for each that travels in the block. False: the block is no block of this description (CRG1).
  template <class Room>
  bool read(std::span<Routed> pieces, Leg leg, Room&& room) {
    for (Routed& routed : pieces) {
      const Form& form = *routed.piece.form;
      if (form.array && leg == Leg::there) {
        if (!described(routed) || !has_contents(routed)) return false;
        room(routed);
      }
      if (routed.way == Way::inside && travels(form.flow, leg) && !contents(routed.piece))
        return false;
    }
    return block_.ok() && block_.at_end();
  }

 private:
  bool described(Routed& routed) {
    if (encoded_) {
      const std::byte* const count = block_.bytes(8);
      if (count != nullptr) XdrForm<std::uint64_t>::decode(count, routed.piece.count);
      return block_.ok();
    }
    std::uint64_t way = 0;
    block_.take(routed.piece.count);
    block_.take(routed.address);
    if (!block_.take(way) || way > static_cast<std::uint32_t>(last_way)) return false;
    routed.way = static_cast<Way>(way);
    return true;
  }
  // No room is made for more elements than have come.
  bool has_contents(const Routed& routed) const {
    const Form& form = *routed.piece.form;
    if (routed.piece.count > most_bytes / form.element_bytes) return false;
    if (routed.way != Way::inside || !goes_in(form.flow)) return true;
    return block_.left() >= travelling_bytes(routed.piece);
  }
  std::size_t travelling_bytes(const Piece& piece) const {
    return encoded_ ? piece.count * piece.form->xdr->bytes : piece.bytes();
  }
  bool contents(const Piece& piece) {
    const std::size_t bytes = travelling_bytes(piece);
    const std::byte* const from = block_.bytes(bytes);
    if (from == nullptr) return false;
    if (encoded_)
      piece.form->xdr->decode(from, piece.count, piece.at);
    else if (bytes != 0)
      std::memcpy(piece.at, from, bytes);
    return true;
  }

  static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 47;  // of an address space

  BytesReader block_;
  bool encoded_;
};

// Sends a block, which opens with its head, and the arrays that travel in messages after it, as far
// as the link has room each time.
class Sending {
 public:
  void begin(Kind kind, std::span<const std::byte> block, std::span<const Routed> pieces, Leg leg) {
    kind_ = kind;
    block_ = block;
    pieces_ = pieces;
    leg_ = leg;
    at_ = 0;
  }
  // True: all of it is on its way.
  template <Link L>
  bool advance(L& link, const VirtualChannel& channel) {
    if (!block_.empty()) {
      if (!send(link, channel, kind_, block_, at_)) return false;
      block_ = {};
      at_ = 0;
    }
    while (!pieces_.empty()) {
      const Routed& routed = pieces_.front();
      if (routed.way == Way::messages && travels(routed.piece.form->flow, leg_)) {
        const auto* const from = static_cast<const std::byte*>(routed.piece.at);
        if (!send_array(link, channel, {from, routed.piece.bytes()}, at_)) return false;
      }
      pieces_ = pieces_.subspan(1);
      at_ = 0;
    }
    return true;
  }

 private:
  template <Link L>
  static bool send(L& link, const VirtualChannel& channel, Kind kind,
                   std::span<const std::byte> bytes, std::size_t& at) {
    while (at != bytes.size()) {
      const std::size_t shot = std::min<std::size_t>(link.most_bytes(), bytes.size() - at);
      if (!link.try_send(channel, kind, bytes.subspan(at, shot))) return false;
      at += shot;
    }
    return true;
  }
  template <Link L>
  static bool send_array(L& link, const VirtualChannel& channel, std::span<const std::byte> bytes,
                         std::size_t& at) {
    if constexpr (MovesArrays<L>) {
      if (link.moves(channel)) {
        if (!bytes.empty()) link.move_out(channel, bytes);
        return true;
      }
    }
    return send(link, channel, Kind::data, bytes, at);
  }

  Kind kind_ = Kind::request;
  std::span<const std::byte> block_;
  std::span<const Routed> pieces_;
  Leg leg_ = Leg::there;
  std::size_t at_ = 0;
};

// Puts the bytes of data messages into the arrays.
class Receiving {
 public:
  void begin(std::span<const Routed> pieces, Leg leg) {
    pieces_ = pieces;
    leg_ = leg;
    at_ = 0;
    skip();
  }
  bool complete() const { return pieces_.empty(); }
  // Says where the arrays go that have not come, before any of them has begun to.
  template <MovesArrays L>
  void expect(L& link, const VirtualChannel& channel) const {
    for (const Routed& routed : pieces_) {
      const Piece& piece = routed.piece;
      if (routed.way == Way::messages && travels(piece.form->flow, leg_) && piece.bytes() != 0)
        link.move_in(channel, {static_cast<std::byte*>(piece.at), piece.bytes()});
    }
  }
  // Bytes that are in their place already stay there. False: there are more bytes than the
  // description has.
  bool take(std::span<const std::byte> bytes) {
    while (!bytes.empty() && !complete()) {
      const Piece& piece = pieces_.front().piece;
      const std::size_t part = std::min<std::size_t>(bytes.size(), piece.bytes() - at_);
      std::byte* const to = static_cast<std::byte*>(piece.at) + at_;
      if (to != bytes.data()) std::memcpy(to, bytes.data(), part);
      bytes = bytes.subspan(part);
      at_ += part;
      skip();
    }
    return bytes.empty();
  }

 private:
  // To the next array that has bytes to come.
  void skip() {
    while (!complete()) {
      const Routed& routed = pieces_.front();
      const bool comes = routed.way == Way::messages && travels(routed.piece.form->flow, leg_);
      if (comes && at_ < routed.piece.bytes()) return;
      pieces_ = pieces_.subspan(1);
      at_ = 0;
    }
  }

  std::span<const Routed> pieces_;
  Leg leg_ = Leg::there;
  std::size_t at_ = 0;
};

}  // namespace tombolo::svp
