// SPDX-License-Identifier: Apache-2.0
// Purpose: TCP/IP of sccLinux for one core, over its network through the buffers: connections with
// a handshake, segments, acknowledgements, the receiver's window, and the copies between the
// program's memory and the kernel's. Segments are neither lost nor out of order, so that nothing is
// sent again; small sends are not held back (TCP_NODELAY).
//
//   auto stream = tcp.open(CoreId(2));            // three packets
//   stream->send(view, bytes);
//
// Invariants: TCS1 a sender is ahead of the receiver's program by a window at most.
//             TCS2 packets that answer others are sent after the interrupt has taken in all
//                  that came.
// Thread safety: as Cpu.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "experiments/svp/buffer_network.h"
#include "experiments/svp/stream.h"

namespace tombolo::experiments {

class Tcp final : public Streams {
 public:
  Tcp(scc::Chip& chip, Linux& system, std::uint8_t first_slot = 0);

  std::unique_ptr<Stream> open(simulator::CoreId peer) override;
  std::unique_ptr<Stream> accept() override;

  std::uint64_t segments_sent() const { return segments_sent_; }

 private:
  friend class TcpStream;

  enum class Kind : std::uint32_t { open, opened, data, acknowledgement, close };

  struct Segment {
    simulator::Address buffer;
    std::uint32_t from = 0;
    std::uint32_t end = 0;
  };
  struct Connection {
    std::uint32_t number = 0;
    simulator::CoreId peer{0};
    std::deque<Segment> received;
    std::uint64_t bytes_received = 0;
    std::uint64_t bytes_consumed = 0;
    std::uint64_t told = 0;  // the window's end, as the peer knows it
    std::uint64_t sent = 0;
    std::uint64_t allowed = 0;
    unsigned unanswered = 0;  // segments without an acknowledgement
    bool opened = false;
    bool closed = false;
  };
  struct Answer {
    std::uint32_t connection;
    Kind kind;
  };

  Connection& make(std::uint32_t number, simulator::CoreId peer);
  void interrupt();
  void deliver(const PacketHeader& header, simulator::Address data);
  void deliver_data(Connection& connection, const PacketHeader& header, simulator::Address data);
  void answer_all();
  void transmit(Connection& connection, Kind kind, std::uint32_t bytes, simulator::Address data);
  void send(Connection& connection, scc::View from, std::uint64_t bytes);
  void receive(Connection& connection, scc::View to, std::uint64_t bytes);
  std::uint64_t take_from(Connection& connection, scc::View to, std::uint64_t bytes);
  void open_window(Connection& connection);
  void forget(std::uint32_t number);

  Linux& system_;
  BufferNetwork network_;
  std::uint64_t window_;
  std::map<std::uint32_t, Connection> connections_;
  std::deque<std::uint32_t> to_accept_;
  std::vector<Answer> answers_;
  bool answering_ = false;
  std::uint32_t opened_ = 0;
  std::uint64_t segments_sent_ = 0;
};

}  // namespace tombolo::experiments
