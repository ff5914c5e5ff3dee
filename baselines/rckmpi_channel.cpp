// SPDX-License-Identifier: Apache-2.0
#include "baselines/rckmpi_channel.h"

#include <algorithm>
#include <utility>

namespace tombolo::baselines {
namespace {

constexpr std::size_t sent_word = 0;
constexpr std::size_t taken_word = 4;
constexpr std::size_t bytes_word = 8;

// Of two processes or more; one alone has no section.
std::size_t section_of(std::uint64_t mpb_bytes, std::uint32_t processes) {
  const std::uint64_t sections = processes > 1 ? processes - 1 : 1;
  return static_cast<std::size_t>(mpb_bytes / sections / 32 * 32);
}

}  // namespace

Status Channel::fits(const scc::Parameters& parameters, std::uint32_t processes) {
  const auto mpb = static_cast<std::uint64_t>(parameters.layout.mpb_bytes_per_tile /
                                              parameters.layout.cores_per_tile);
  if (section_of(mpb, processes) >= 2 * line_size) return {};
  return Status::bad_configuration(
      fmt::format("chip {}: the {} bytes of a message passing buffer have no room for a section of "
                  "{} bytes for each of {} processes",
                  parameters.name, mpb, 2 * line_size, processes));
}

Channel::Channel(Cpu& cpu, std::uint32_t rank, const std::vector<CoreId>& cores, Omitted omitted)
    : cpu_(cpu),
      cores_(cores),
      rank_(rank),
      omitted_(omitted),
      section_bytes_(section_of(cpu.chip().mpb_bytes(), static_cast<std::uint32_t>(cores.size()))),
      taken_bytes_(section_bytes_),
      taken_{cpu.allocate_private(section_bytes_), taken_bytes_.data()},
      peers_(cores.size()) {
  const Status room = fits(cpu.chip().parameters(), size());
  TOMBOLO_CHECK(room.ok(), "{}", room.message());
  for (std::uint32_t other = 0; other < size(); ++other) {
    if (other == rank_) continue;
    peers_[other].inbox = section(other, rank_);
    peers_[other].outbox = section(rank_, other);
  }
}

View Channel::section(std::uint32_t owner, std::uint32_t at) const {
  const std::uint32_t number = owner < at ? owner : owner - 1;
  return {cpu_.chip().mpb(cores_[at]) + number * section_bytes_, MemoryType::mpbt_wb};
}

void Channel::handle(PacketType type, Handler handler) {
  handlers_.at(static_cast<std::size_t>(type)) = std::move(handler);
}

// ---- Sending ------------------------------------------------------------------------------------

void Channel::send(std::uint32_t to, const Packet& packet, Place data, std::function<void()> sent) {
  TOMBOLO_CHECK(to < size() && to != rank_, "rank {} of {} sends to rank {}", rank_, size(), to);
  cpu_.compute(cpu_.timing().packet);
  Peer& peer = peers_[to];
  peer.queue.push_back({packet, data, std::move(sent)});
  ++waiting_;
  if (peer.acknowledged == peer.sent) push(peer);
}

// The next fragment of the first packet in the queue.
void Channel::push(Peer& peer) {
  Outgoing& out = peer.queue.front();
  const std::size_t total = sizeof(Packet) + out.packet.data;
  const std::size_t n = std::min(total - out.pushed, fragment_bytes());
  const View payload = peer.outbox + line_size;
  const std::size_t header = out.pushed == 0 ? sizeof(Packet) : 0;
  if (header != 0) cpu_.copy_to(payload, &out.packet, header);
  if (n > header) {
    const std::size_t done = out.pushed == 0 ? 0 : out.pushed - sizeof(Packet);
    copy_out(cpu_, out.data + done, payload + header, n - header);
  }
  // The last line of the payload leaves the combining buffer before this one (CH1).
  const std::uint32_t words[] = {++peer.sent, peer.taken, static_cast<std::uint32_t>(n)};
  cpu_.write(peer.outbox, words, sizeof words);
  flush();
  out.pushed += n;
  if (out.pushed < total) return;
  const std::function<void()> sent = std::move(out.sent);
  peer.queue.pop_front();
  --waiting_;
  if (sent) sent();
}

// The words of the sequence are part of a line: they would stay in the combining buffer, and the
// other side would poll for ever.
void Channel::flush() {
  if (!omitted_.flush) cpu_.flush_combined();
}

// ---- Progress -----------------------------------------------------------------------------------

void Channel::progress() {
  // The sections' contents at the last look are still in L1: sequence and payload would be stale.
  if (!omitted_.invalidation) cpu_.cl1invmb();
  for (std::uint32_t from = 0; from < size(); ++from)
    if (from != rank_) poll(from);
}

void Channel::poll(std::uint32_t from) {
  Peer& peer = peers_[from];
  cpu_.compute(cpu_.timing().loop);
  std::uint32_t words[2];
  cpu_.read(peer.inbox + sent_word, words, sizeof words);
  static_assert(taken_word == sent_word + 4);
  peer.acknowledged = words[1];
  if (words[0] != peer.taken) take(from);
  if (peer.acknowledged == peer.sent && !peer.queue.empty()) push(peer);
}

void Channel::take(std::uint32_t from) {
  Peer& peer = peers_[from];
  // In L1 since the look at the sequence: they are in the same line.
  const std::size_t n = cpu_.load<std::uint32_t>(peer.inbox + bytes_word);
  copy_in(cpu_, peer.inbox + line_size, taken_, n, TargetLines::fetched);
  acknowledge(peer);
  std::size_t used = 0;
  if (peer.arrived == 0) {
    load(cpu_, taken_, &peer.packet, sizeof(Packet));
    used = sizeof(Packet);
    begin_packet(from);
  }
  if (n > used) {
    copy(cpu_, taken_ + used, peer.incoming.to + (peer.arrived - sizeof(Packet)), n - used);
    peer.arrived += n - used;
    peer.received += n - used;
  }
  if (peer.arrived < sizeof(Packet) + peer.packet.data) return;
  peer.arrived = 0;
  const std::function<void()> done = std::move(peer.incoming.done);
  if (done) done();
}

void Channel::begin_packet(std::uint32_t from) {
  Peer& peer = peers_[from];
  cpu_.compute(cpu_.timing().packet);
  const Handler& handler = handlers_.at(static_cast<std::size_t>(peer.packet.type));
  TOMBOLO_CHECK(handler != nullptr, "rank {}: packets of type {} have no handler", rank_,
                static_cast<int>(peer.packet.type));
  peer.arrived = sizeof(Packet);
  peer.incoming = handler(from, peer.packet);
}

void Channel::acknowledge(Peer& peer) {
  const std::uint32_t taken = ++peer.taken;
  cpu_.write(peer.outbox + taken_word, &taken, sizeof taken);
  flush();
}

}  // namespace tombolo::baselines
