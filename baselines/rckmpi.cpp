// SPDX-License-Identifier: Apache-2.0
#include "baselines/rckmpi.h"

#include <algorithm>
#include <utility>

namespace tombolo::baselines {
namespace {

// Tags of the library's own messages (RK3).
constexpr std::int32_t barrier_tag = -100;
constexpr std::int32_t reduce_tag = -200;
constexpr std::int32_t broadcast_tag = -201;
constexpr std::int32_t all_to_all_tag = -202;

}  // namespace

Rckmpi::Rckmpi(Cpu& cpu, std::uint32_t rank, const std::vector<CoreId>& cores, Omitted omitted)
    : cpu_(cpu), memory_(cpu), channel_(cpu, rank, cores, omitted) {
  const auto handle = [this](PacketType type, auto method) {
    channel_.handle(type, [this, method](std::uint32_t from, const Packet& packet) {
      return (this->*method)(from, packet);
    });
  };
  handle(PacketType::eager, &Rckmpi::on_eager);
  handle(PacketType::request_to_send, &Rckmpi::on_request_to_send);
  handle(PacketType::clear_to_send, &Rckmpi::on_clear_to_send);
  handle(PacketType::rendezvous_data, &Rckmpi::on_rendezvous_data);
  for (auto type = static_cast<std::size_t>(PacketType::post); type < packet_types; ++type)
    handle(static_cast<PacketType>(type), &Rckmpi::on_window_packet);
}

std::uint16_t Rckmpi::attach(WindowPackets* window) {
  windows_.push_back(window);
  return static_cast<std::uint16_t>(windows_.size() - 1);
}

Channel::Incoming Rckmpi::on_window_packet(std::uint32_t from, const Packet& packet) {
  TOMBOLO_CHECK(packet.window < windows_.size() && windows_[packet.window] != nullptr,
                "rank {}: a packet from rank {} for window {}, which is not there", rank(), from,
                packet.window);
  return windows_[packet.window]->on_packet(from, packet);
}

// ---- Calls --------------------------------------------------------------------------------------

Request Rckmpi::isend(Place from, std::uint64_t bytes, std::uint32_t to, std::int32_t tag) {
  enter();
  return start_send(from, bytes, to, tag);
}

Request Rckmpi::irecv(Place to, std::uint64_t bytes, std::int32_t from, std::int32_t tag) {
  enter();
  return start_recv(to, bytes, from, tag);
}

void Rckmpi::send(Place from, std::uint64_t bytes, std::uint32_t to, std::int32_t tag) {
  enter();
  finish_wait(start_send(from, bytes, to, tag));
}

RequestState Rckmpi::recv(Place to, std::uint64_t bytes, std::int32_t from, std::int32_t tag) {
  enter();
  const Request request = start_recv(to, bytes, from, tag);
  finish_wait(request);
  return *request;
}

bool Rckmpi::test(const Request& request) {
  enter();
  if (!request->done) channel_.progress();
  return request->done;
}

void Rckmpi::wait(const Request& request) {
  enter();
  finish_wait(request);
}

void Rckmpi::wait_all(std::span<const Request> requests) {
  enter();
  for (const Request& request : requests) finish_wait(request);
}

void Rckmpi::finish_wait(const Request& request) {
  progress_until([&] { return request->done; });
}

// ---- Sending ------------------------------------------------------------------------------------

Request Rckmpi::start_send(Place from, std::uint64_t bytes, std::uint32_t to, std::int32_t tag) {
  TOMBOLO_CHECK(to < size(), "rank {} sends to rank {} of {}", rank(), to, size());
  Request request = std::make_shared<RequestState>(RequestState{false, to, tag, bytes});
  Packet packet{.type = PacketType::eager, .tag = tag, .bytes = bytes};
  if (to == rank()) {
    packet.data = static_cast<std::uint32_t>(bytes);
    send_to_self(packet, from);
    request->done = true;
  } else if (bytes <= eager_bytes) {
    packet.data = static_cast<std::uint32_t>(bytes);
    channel_.send(to, packet, from, [request] { request->done = true; });
  } else {
    packet.type = PacketType::request_to_send;
    packet.request = next_rendezvous_++;
    rendezvous_[packet.request] = {from, request};
    channel_.send(to, packet);
  }
  return request;
}

void Rckmpi::send_to_self(const Packet& packet, Place from) {
  cpu_.compute(cpu_.timing().packet);
  const Channel::Incoming incoming = on_eager(rank(), packet);
  copy(cpu_, from, incoming.to, packet.data);
  incoming.done();
}

Channel::Incoming Rckmpi::on_clear_to_send(std::uint32_t from, const Packet& packet) {
  const auto found = rendezvous_.find(static_cast<std::uint32_t>(packet.offset));
  TOMBOLO_CHECK(found != rendezvous_.end(), "rank {}: rank {} agrees to a request never made",
                rank(), from);
  const Rendezvous ours = found->second;
  rendezvous_.erase(found);
  Packet data{.type = PacketType::rendezvous_data,
              .request = packet.request,
              .data = static_cast<std::uint32_t>(ours.request->bytes),
              .bytes = ours.request->bytes};
  return {{}, [this, from, data, ours] {
            channel_.send(from, data, ours.place, [ours] { ours.request->done = true; });
          }};
}

// ---- Receiving ----------------------------------------------------------------------------------

void Rckmpi::fill(const Request& request, std::uint32_t from, const Packet& packet) {
  TOMBOLO_CHECK(packet.bytes <= request->bytes,
                "a message of {} bytes from rank {}, tag {}, for a receive of {}", packet.bytes,
                from, packet.tag, request->bytes);
  request->from = from;
  request->tag = packet.tag;
  request->bytes = packet.bytes;
}

Request Rckmpi::start_recv(Place to, std::uint64_t bytes, std::int32_t from, std::int32_t tag) {
  Request request = std::make_shared<RequestState>(RequestState{false, 0, tag, bytes});
  const auto found = std::find_if(unexpected_.begin(), unexpected_.end(), [&](const auto& m) {
    return matches(from, tag, m->from, m->packet.tag);
  });
  if (found == unexpected_.end()) {
    posted_.push_back({to, bytes, from, tag, request});
    return request;
  }
  const std::shared_ptr<Unexpected> message = *found;
  unexpected_.erase(found);
  fill(request, message->from, message->packet);
  if (message->packet.type == PacketType::request_to_send) {
    agree(message->from, message->packet, to, request);
  } else {
    take_unexpected(message, to, request);
  }
  return request;
}

void Rckmpi::take_unexpected(std::shared_ptr<Unexpected> message, Place to,
                             const Request& request) {
  const auto take = [this, to, request](const Unexpected& from) {
    copy(cpu_, from.data, to, from.packet.data);
    memory_.give_back(from.data, from.packet.data);
    request->done = true;
  };
  if (message->arrived) return take(*message);
  Unexpected* const arriving = message.get();
  message->wanted = [take, arriving] { take(*arriving); };
}

bool Rckmpi::take_posted(std::uint32_t from, const Packet& packet, Posted* posted) {
  const auto found = std::find_if(posted_.begin(), posted_.end(), [&](const Posted& p) {
    return matches(p.from, p.tag, from, packet.tag);
  });
  if (found == posted_.end()) return false;
  *posted = *found;
  posted_.erase(found);
  fill(posted->request, from, packet);
  return true;
}

Channel::Incoming Rckmpi::on_eager(std::uint32_t from, const Packet& packet) {
  Posted posted;
  if (take_posted(from, packet, &posted))
    return {posted.to, [request = posted.request] { request->done = true; }};
  const auto message = std::make_shared<Unexpected>(
      Unexpected{packet, from, memory_.borrow(packet.data), false, {}});
  unexpected_.push_back(message);
  return {message->data, [message] {
            message->arrived = true;
            if (message->wanted) message->wanted();
          }};
}

Channel::Incoming Rckmpi::on_request_to_send(std::uint32_t from, const Packet& packet) {
  Posted posted;
  if (!take_posted(from, packet, &posted)) {
    unexpected_.push_back(std::make_shared<Unexpected>(Unexpected{packet, from, {}, true, {}}));
    return {};
  }
  return {{}, [this, from, packet, posted] { agree(from, packet, posted.to, posted.request); }};
}

void Rckmpi::agree(std::uint32_t from, const Packet& asked, Place to, const Request& request) {
  const Packet answer{
      .type = PacketType::clear_to_send, .request = next_rendezvous_++, .offset = asked.request};
  rendezvous_[answer.request] = {to, request};
  channel_.send(from, answer);
}

Channel::Incoming Rckmpi::on_rendezvous_data(std::uint32_t from, const Packet& packet) {
  const auto found = rendezvous_.find(packet.request);
  TOMBOLO_CHECK(found != rendezvous_.end(), "rank {}: data from rank {} that no request waits for",
                rank(), from);
  const Rendezvous ours = found->second;
  rendezvous_.erase(found);
  return {ours.place, [ours] { ours.request->done = true; }};
}

// ---- Collectives --------------------------------------------------------------------------------

void Rckmpi::barrier() {
  enter();
  for (std::uint32_t distance = 1, round = 0; distance < size(); distance *= 2, ++round) {
    const std::int32_t tag = barrier_tag - static_cast<std::int32_t>(round);
    const std::uint32_t from = (rank() + size() - distance) % size();
    const Request in = start_recv({}, 0, static_cast<std::int32_t>(from), tag);
    const Request out = start_send({}, 0, (rank() + distance) % size(), tag);
    finish_wait(in);
    finish_wait(out);
  }
}

void Rckmpi::all_to_all(Place from, Place to, std::uint64_t bytes) {
  enter();
  std::vector<Request> requests;
  // Each begins with another neighbour, so that not all send to one.
  for (std::uint32_t i = 0; i < size(); ++i) {
    const std::uint32_t other = (rank() + size() - i) % size();
    requests.push_back(
        start_recv(to + other * bytes, bytes, static_cast<std::int32_t>(other), all_to_all_tag));
  }
  for (std::uint32_t i = 0; i < size(); ++i) {
    const std::uint32_t other = (rank() + i) % size();
    requests.push_back(start_send(from + other * bytes, bytes, other, all_to_all_tag));
  }
  for (const Request& request : requests) finish_wait(request);
}

void Rckmpi::all_reduce(std::uint64_t* numbers, std::size_t count) {
  enter();
  const std::size_t bytes = count * sizeof *numbers;
  const Place ours = memory_.borrow(bytes);
  const Place theirs = memory_.borrow(bytes);
  store(cpu_, ours, numbers, bytes);
  // Towards rank 0: a process with the bit set hands on its sums.
  std::uint32_t bit = 1;
  for (; bit < size() && (rank() & bit) == 0; bit *= 2) {
    if (rank() + bit >= size()) continue;
    finish_wait(start_recv(theirs, bytes, static_cast<std::int32_t>(rank() + bit), reduce_tag));
    std::vector<std::uint64_t> add(count);
    load(cpu_, theirs, add.data(), bytes);
    for (std::size_t i = 0; i < count; ++i) numbers[i] += add[i];
    store(cpu_, ours, numbers, bytes);
  }
  if (rank() != 0) {
    finish_wait(start_send(ours, bytes, rank() - bit, reduce_tag));
    finish_wait(start_recv(ours, bytes, static_cast<std::int32_t>(rank() - bit), broadcast_tag));
  }
  // And back.
  for (bit /= 2; bit > 0; bit /= 2)
    if (rank() + bit < size()) finish_wait(start_send(ours, bytes, rank() + bit, broadcast_tag));
  load(cpu_, ours, numbers, bytes);
  memory_.give_back(ours, bytes);
  memory_.give_back(theirs, bytes);
}

void Rckmpi::finish() {
  progress_until([this] { return channel_.idle(); });
  barrier();
  progress_until([this] { return channel_.idle(); });
}

}  // namespace tombolo::baselines
