// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/tcp.h"

#include <algorithm>
#include <vector>

namespace tombolo::experiments {

using scc::MemoryType;
using scc::View;
using simulator::Address;
using simulator::CoreId;

class TcpStream final : public Stream {
 public:
  TcpStream(Linux& system, Tcp& tcp, Tcp::Connection& connection)
      : Stream(system), tcp_(tcp), connection_(connection) {}
  ~TcpStream() override { tcp_.forget(connection_.number); }

  CoreId peer() const override { return connection_.peer; }
  void send(View from, std::uint64_t bytes) override { tcp_.send(connection_, from, bytes); }
  void receive(View to, std::uint64_t bytes) override { tcp_.receive(connection_, to, bytes); }
  void close() override {
    system_.system_call();
    tcp_.transmit(connection_, Tcp::Kind::close, 0, {});
  }
  void await_close() override {
    system_.system_call();
    system_.wait([this] { return connection_.closed; });
  }

 private:
  Tcp& tcp_;
  Tcp::Connection& connection_;
};

Tcp::Tcp(scc::Chip& chip, Linux& system, std::uint8_t first_slot)
    : system_(system),
      network_(
          chip, system, [this](const PacketHeader& header, Address data) { deliver(header, data); },
          first_slot),
      window_(static_cast<std::uint64_t>(system.times().window_bytes)) {
  system_.on_interrupt([this] { interrupt(); });
}

// ---- Kernel -------------------------------------------------------------------------------------

void Tcp::interrupt() {
  network_.receive();
  answer_all();
}

Tcp::Connection& Tcp::make(std::uint32_t number, CoreId peer) {
  Connection& connection = connections_[number];
  connection.number = number;
  connection.peer = peer;
  connection.allowed = connection.told = window_;
  return connection;
}

void Tcp::deliver(const PacketHeader& header, Address data) {
  const auto kind = static_cast<Kind>(header.kind);
  system_.run_code(kind == Kind::acknowledgement ? system_.times().acknowledgement
                                                 : system_.times().segment_receive);
  if (kind == Kind::open) {
    make(header.connection, CoreId(header.from));
    answers_.push_back({header.connection, Kind::opened});
    to_accept_.push_back(header.connection);
    return;
  }
  const auto found = connections_.find(header.connection);
  if (found == connections_.end()) {  // this side has closed it
    if (header.data_bytes > 0) network_.give_buffer(data);
    return;
  }
  Connection& connection = found->second;
  connection.allowed = std::max(connection.allowed, header.allowed);
  if (kind == Kind::opened) {
    connection.opened = true;
    answers_.push_back({header.connection, Kind::acknowledgement});
  }
  if (kind == Kind::close) {
    connection.closed = true;
    answers_.push_back({header.connection, Kind::acknowledgement});
  }
  if (kind == Kind::data) deliver_data(connection, header, data);
}

// Every second segment is acknowledged.
void Tcp::deliver_data(Connection& connection, const PacketHeader& header, Address data) {
  connection.received.push_back({data, 0, header.data_bytes});
  connection.bytes_received += header.data_bytes;
  if (++connection.unanswered < 2) return;
  connection.unanswered = 0;
  answers_.push_back({connection.number, Kind::acknowledgement});
}

void Tcp::answer_all() {
  if (answering_) return;
  answering_ = true;
  while (!answers_.empty()) {
    const Answer answer = answers_.front();
    answers_.erase(answers_.begin());
    const auto found = connections_.find(answer.connection);
    if (found != connections_.end()) transmit(found->second, answer.kind, 0, {});
  }
  answering_ = false;
}

void Tcp::transmit(Connection& connection, Kind kind, std::uint32_t bytes, Address data) {
  system_.run_code(kind == Kind::acknowledgement ? system_.times().acknowledgement
                                                 : system_.times().segment_send);
  connection.told = connection.bytes_consumed + window_;
  PacketHeader header;
  header.data_bytes = bytes;
  header.kind = static_cast<std::uint32_t>(kind);
  header.connection = connection.number;
  header.from = system_.cpu().id().index();
  header.allowed = connection.told;
  ++segments_sent_;
  network_.send(connection.peer, header, data);
}

// ---- Calls --------------------------------------------------------------------------------------

std::unique_ptr<Stream> Tcp::open(CoreId peer) {
  system_.system_call();  // socket()
  system_.system_call();  // connect()
  system_.run_code(system_.times().socket_call);
  constexpr std::uint32_t most = 1 << 20;
  const std::uint32_t number = system_.cpu().id().index() * most + opened_++ % most;
  Connection& connection = make(number, peer);
  transmit(connection, Kind::open, 0, {});
  answer_all();
  system_.wait([&] { return connection.opened; });
  return std::make_unique<TcpStream>(system_, *this, connection);
}

std::unique_ptr<Stream> Tcp::accept() {
  system_.system_call();
  system_.wait([this] { return !to_accept_.empty() || system_.stopped(); });
  if (to_accept_.empty()) return nullptr;
  const std::uint32_t number = to_accept_.front();
  to_accept_.pop_front();
  return std::make_unique<TcpStream>(system_, *this, connections_.at(number));
}

void Tcp::forget(std::uint32_t number) {
  for (const Segment& segment : connections_.at(number).received)
    network_.give_buffer(segment.buffer);
  connections_.erase(number);
}

void Tcp::send(Connection& connection, View from, std::uint64_t bytes) {
  system_.system_call();
  system_.run_code(system_.times().socket_call);
  scc::Cpu& cpu = system_.cpu();
  std::vector<std::byte> held(network_.most_data());
  while (bytes > 0) {
    const std::uint64_t n = std::min(bytes, network_.most_data());
    system_.wait([&] { return connection.sent + n <= connection.allowed; });  // TCS1
    const Address buffer = network_.take_buffer();
    cpu.copy_from(from, held.data(), n);
    cpu.write({buffer, MemoryType::dcm}, held.data(), n);
    connection.sent += n;
    connection.unanswered = 0;  // the segment acknowledges, too
    transmit(connection, Kind::data, static_cast<std::uint32_t>(n), buffer);
    network_.give_buffer(buffer);
    answer_all();
    system_.look_around();
    from = from + n;
    bytes -= n;
  }
}

std::uint64_t Tcp::take_from(Connection& connection, View to, std::uint64_t bytes) {
  Segment& segment = connection.received.front();
  const std::uint64_t n = std::min<std::uint64_t>(bytes, segment.end - segment.from);
  scc::Cpu& cpu = system_.cpu();
  std::vector<std::byte> held(n);
  cpu.copy_from({segment.buffer + segment.from, MemoryType::dcm}, held.data(), n);
  cpu.write(to, held.data(), n);
  segment.from += static_cast<std::uint32_t>(n);
  connection.bytes_consumed += n;
  if (segment.from == segment.end) {
    network_.give_buffer(segment.buffer);
    connection.received.pop_front();
  }
  return n;
}

// Tells the peer of half a window that the program has made free.
void Tcp::open_window(Connection& connection) {
  if (connection.bytes_consumed + window_ - connection.told < window_ / 2) return;
  transmit(connection, Kind::acknowledgement, 0, {});
  answer_all();
}

void Tcp::receive(Connection& connection, View to, std::uint64_t bytes) {
  system_.system_call();
  system_.run_code(system_.times().socket_call);
  while (bytes > 0) {
    system_.wait([&] { return !connection.received.empty(); });
    const std::uint64_t n = take_from(connection, to, bytes);
    open_window(connection);
    to = to + n;
    bytes -= n;
    if (bytes > 0) system_.look_around();
  }
}

}  // namespace tombolo::experiments
