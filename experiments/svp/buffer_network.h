// SPDX-License-Identifier: Apache-2.0
// Purpose: sccLinux's network driver for one core: packets between cores through the message
// passing buffers. Written after the description that the driver's sources (rckmb, later sccmb)
// give.
//
// The sender puts a packet into its own buffer, a byte that says where it lies into the receiver's
// (one for each sender, under the receiver's test-and-set register), and interrupts the receiver.
// That looks through the bytes of all senders, copies the packet out of the sender's buffer,
// and sets the byte free. One packet is under way from a core to another.
//
//   slots 0 to 4     a packet of 1,500 bytes each, after its length
//   at the end       a byte for each core: the slot in that core's buffer, or none
//
// Invariants: BN1 a slot is used again when the packet in it was taken.
//             BN2 receive() never sends, so that a sender that waits for its receiver takes in
//                 the packets of others meanwhile: two cores that send to each other both go on.
// Thread safety: as Cpu; used inside the kernel of its core alone.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

#include "experiments/svp/linux.h"

namespace tombolo::experiments {

// In front of a packet's data: the headers of IP and TCP, as far as they are used.
struct PacketHeader {
  std::uint32_t data_bytes = 0;
  std::uint32_t kind = 0;
  std::uint32_t connection = 0;
  std::uint32_t from = 0;     // a core
  std::uint64_t allowed = 0;  // the receiver's window: how far the peer may send
  std::uint32_t unused[4] = {};
};
inline constexpr std::size_t packet_header_bytes = 40;
static_assert(sizeof(PacketHeader) == packet_header_bytes);

class BufferNetwork {
 public:
  // Kernel memory for the data of a packet.
  using Buffers = std::vector<simulator::Address>;
  using Deliver = std::function<void(const PacketHeader&, simulator::Address data)>;

  // Bad configuration: the chip's buffers are too small.
  static Status fits(const scc::Parameters& chip);

  // `first_slot`: those before it are left to others (the driver's mpb_offset).
  BufferNetwork(scc::Chip& chip, Linux& system, Deliver deliver, std::uint8_t first_slot = 0);

  std::uint64_t most_data() const { return packet_bytes_ - packet_header_bytes; }

  // Waits until the packet is in the buffer, and its receiver told. `data` is in kernel memory.
  void send(simulator::CoreId to, const PacketHeader& header, simulator::Address data);
  // Takes in all packets that have come.
  void receive();

  // A buffer for a packet's data, the last that was given back first.
  simulator::Address take_buffer();
  void give_buffer(simulator::Address buffer) { free_.push_back(buffer); }

 private:
  struct Slot {
    bool used = false;
    simulator::CoreId to{0};
  };

  scc::View in_buffer(simulator::CoreId of, std::uint64_t at) const;
  scc::View descriptor(simulator::CoreId at, simulator::CoreId of) const;
  bool pending(simulator::CoreId to);
  void wait_until_taken(simulator::CoreId to);
  void set_descriptor(simulator::CoreId at, simulator::CoreId of, std::uint8_t value);
  bool next_sender(simulator::CoreId* sender, std::uint8_t* slot);
  void take(simulator::CoreId sender, std::uint8_t slot);

  scc::Chip& chip_;
  Linux& system_;
  Deliver deliver_;
  std::uint64_t packet_bytes_;
  std::array<Slot, 5> slots_{};
  std::uint8_t first_slot_;
  std::uint8_t next_slot_;
  std::vector<bool> busy_;  // a packet to that core may be under way
  std::uint32_t last_sender_ = 0;
  Buffers free_;
};

}  // namespace tombolo::experiments
