// SPDX-License-Identifier: Apache-2.0
// Purpose: the channel of RCKMPI, which carries packets between processes through the message
// passing buffers (000 sections 2.3.3 and 3.4.1), and its progress engine.
//
// The buffer of each receiver is divided into equal write sections, one for each other process. The
// first line of a section is about the sequence, the rest is payload:
//
//     word 0   number of fragments that the owner of the section has sent
//     word 1   number of fragments that the owner has taken out of its own section of the other
//     word 2   bytes of the last fragment
//
// A packet is a header of 32 bytes and its data. It is cut into fragments as large as a payload, so
// that they get smaller with the number of processes; one fragment is under way at a time. The
// receiver takes it out into a buffer of the channel, answers, and copies it to the buffer that the
// device provides (000 section 4.1.2). The channel's loop loads the lines of its target first; the
// second copy is the C library's and does not, so lines not cached there are stored by words.
// Nothing happens but in progress(): a process that does not call in neither takes nor answers.
//
// Invariants: CH1 a section has one writer, and so no lock: its words are in order because the
//                 stores of a core are (Cpu, CU3).
//             CH2 the payload is written again only after word 1 of the other side says that it was
//                 taken out.
//             CH3 a process never loads from a section of its own at another's buffer: stores do
//                 not hit stale lines in L1.
//             CH4 packets from one process are delivered in the order in which they were sent.
// Thread safety: a channel belongs to the program of its core. One channel for each process and
// run.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "base/status.h"
#include "baselines/omitted.h"
#include "baselines/private_memory.h"

namespace tombolo::baselines {

enum class PacketType : std::uint8_t {
  // Two-sided messages.
  eager,
  request_to_send,
  clear_to_send,
  rendezvous_data,
  // One-sided operations and their synchronization.
  post,
  complete,
  put,
  get,
  get_response,
  accumulate,
  lock_request,
  lock_granted,
  unlock,
  unlock_done,
};
inline constexpr std::size_t packet_types = 14;

struct Packet {
  PacketType type = PacketType::eager;
  std::uint8_t flags = 0;
  std::uint16_t window = 0;
  std::int32_t tag = 0;
  std::uint32_t request = 0;  // of the process to be answered
  std::uint32_t data = 0;     // bytes behind the header
  std::uint64_t bytes = 0;    // of the message or the operation
  std::uint64_t offset = 0;   // in the window
};
static_assert(sizeof(Packet) == 32);

class Channel {
 public:
  // Where the data of a packet go, and the function called once they are there. Handlers and these
  // functions may send, but make no progress.
  struct Incoming {
    Place to;
    std::function<void()> done;
  };
  using Handler = std::function<Incoming(std::uint32_t from, const Packet&)>;

  // `cores` has the core of each process, and outlives the channel.
  Channel(Cpu& cpu, std::uint32_t rank, const std::vector<CoreId>& cores, Omitted omitted = {});
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // bad_configuration if a section for each of so many processes has no room for a header.
  static Status fits(const scc::Parameters& parameters, std::uint32_t processes);

  Cpu& cpu() { return cpu_; }
  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(cores_.size()); }
  // Bytes of a packet that go at once.
  std::size_t fragment_bytes() const { return section_bytes_ - line_size; }

  void handle(PacketType type, Handler handler);

  // To another process. Data without room in the section now go out in progress(); `data` stays
  // until `sent` is called, which is when the last of it is in the receiver's buffer.
  void send(std::uint32_t to, const Packet& packet, Place data = {},
            std::function<void()> sent = {});
  // Looks at each section of this process's buffer once.
  void progress();
  // Bytes of data, headers apart, that have come from a process.
  std::uint64_t received_from(std::uint32_t from) const { return peers_.at(from).received; }
  // Nothing waits to be sent.
  bool idle() const { return waiting_ == 0; }

 private:
  static constexpr std::size_t line_size = 32;

  struct Outgoing {
    Packet packet;
    Place data;
    std::function<void()> sent;
    std::size_t pushed = 0;  // bytes of header and data
  };
  struct Peer {
    View inbox;   // its section of our buffer
    View outbox;  // our section of its buffer
    std::uint32_t sent = 0;
    std::uint32_t acknowledged = 0;
    std::uint32_t taken = 0;
    std::deque<Outgoing> queue;
    Packet packet;               // that is arriving
    Incoming incoming;           // where it goes
    std::size_t arrived = 0;     // bytes of header and data
    std::uint64_t received = 0;  // of data, of all packets
  };

  View section(std::uint32_t owner, std::uint32_t at) const;
  void poll(std::uint32_t from);
  void push(Peer& peer);
  void take(std::uint32_t from);
  void begin_packet(std::uint32_t from);
  void acknowledge(Peer& peer);
  void flush();

  Cpu& cpu_;
  const std::vector<CoreId>& cores_;
  std::uint32_t rank_;
  Omitted omitted_;
  std::size_t section_bytes_;
  std::vector<std::byte> taken_bytes_;
  Place taken_;  // the fragment taken out last
  std::vector<Peer> peers_;
  std::vector<Handler> handlers_{packet_types};
  std::size_t waiting_ = 0;
};

}  // namespace tombolo::baselines
