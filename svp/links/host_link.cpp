// SPDX-License-Identifier: Apache-2.0
#include "svp/links/host_link.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/check.h"

namespace tombolo::svp {
namespace {

constexpr std::uint64_t window_bytes = std::uint64_t{64} << 10;
// An array of more bytes goes in several parts, alike at both sides.
constexpr std::size_t part_bytes = std::size_t{16} << 20;
// Of one look, so that no look takes long.
constexpr int most_letters = 64;
constexpr std::size_t most_lanes = 16;

}  // namespace

HostLink::HostLink(HostMessages& messages, std::vector<Process> processes)
    : messages_(messages),
      processes_(std::move(processes)),
      peers_(processes_.size()),
      beats_(self(), sites(), Clock::now()) {
  TOMBOLO_CHECK(processes_.size() == sites(), "link: {} names of {} sites", processes_.size(),
                sites());
}

std::size_t HostLink::most_bytes() const { return HostMessages::letter_bytes - sizeof(Head); }

// ---- Letters ------------------------------------------------------------------------------------

void HostLink::send(Site to, Head head, std::span<const std::byte> bytes) {
  Peer& peer = peers_[to];
  head.taken = peer.taken;
  peer.told = peer.taken;
  std::byte* const room = messages_.room();
  std::memcpy(room, &head, sizeof head);
  if (!bytes.empty()) std::memcpy(room + sizeof head, bytes.data(), bytes.size());
  messages_.send(static_cast<int>(to), sizeof head + bytes.size());
}

bool HostLink::try_send(const VirtualChannel& to, Kind kind, std::span<const std::byte> bytes) {
  Peer& peer = peers_[to.peer];
  if (peer.lost) return true;
  const std::uint64_t size = sizeof(Head) + bytes.size();
  if (peer.sent - peer.given_back + size > window_bytes) return false;
  peer.sent += size;
  send(to.peer,
       {.kind = static_cast<std::uint32_t>(kind), .opener = to.opener, .number = to.number}, bytes);
  return true;
}

bool HostLink::take_all(Taker& taker, Clock::time_point now) {
  bool any = !left_.empty() && show_left(taker);
  HostMessages::Letter letter;
  for (int i = 0; i < most_letters && messages_.receive(letter); ++i) {
    beats_.heard(static_cast<Site>(letter.from), now);
    any = take_letter(letter, taker) || any;
  }
  any = take_arrays(taker) || any;
  look_at_peers(now);
  look_at_trouble();
  return any;
}

Status HostLink::wait() {
  constexpr auto keep = [](const Message&) { return false; };
  Taking<decltype(keep)> keeping(keep);
  (void)take_all(keeping, Clock::now());
  return {};
}

// False: it brings nothing forward here, as a beat.
bool HostLink::take_letter(const HostMessages::Letter& letter, Taker& taker) {
  const auto from = static_cast<Site>(letter.from);
  Peer& peer = peers_[from];
  if (peer.lost || letter.bytes.size() < sizeof(Head)) return false;
  Head head;
  std::memcpy(&head, letter.bytes.data(), sizeof head);
  peer.given_back = std::max(peer.given_back, head.taken);
  const std::span<const std::byte> bytes = letter.bytes.subspan(sizeof head);
  switch (head.word) {
    case Word::message:
      show({.channel = {.opener = head.opener, .peer = from, .number = head.number},
            .kind = static_cast<Kind>(head.kind),
            .bytes = bytes},
           true, taker);
      return true;
    case Word::lost:
      lose(head.number, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
      return true;
    case Word::end:
      if (head.number != 0) whole_ = false;
      ended_.store(true, std::memory_order_release);
      return true;
    case Word::taken:
    case Word::beat:
      break;
  }
  return false;
}

// Behind those of its channel that were left.
void HostLink::show(const Message& message, bool letter, Taker& taker) {
  const bool waits =
      std::ranges::any_of(left_, [&](const Left& left) { return left.channel == message.channel; });
  if (!waits && taker.take(message)) {
    if (letter) note_taken(message.channel.peer, message.bytes.size());
    return;
  }
  left_.push_back({.channel = message.channel,
                   .kind = message.kind,
                   .bytes = {message.bytes.begin(), message.bytes.end()},
                   .letter = letter});
}

bool HostLink::show_left(Taker& taker) {
  bool any = false;
  std::deque<Left> before;
  before.swap(left_);
  for (Left& left : before) {
    const auto seen = [&](const Left& other) { return other.channel == left.channel; };
    const Message message{.channel = left.channel, .kind = left.kind, .bytes = left.bytes};
    if (std::ranges::any_of(left_, seen) || !taker.take(message)) {
      left_.push_back(std::move(left));
      continue;
    }
    any = true;
    if (left.letter) note_taken(left.channel.peer, left.bytes.size());
  }
  return any;
}

void HostLink::note_taken(Site from, std::size_t bytes) {
  Peer& peer = peers_[from];
  peer.taken += sizeof(Head) + bytes;
  if (peer.taken - peer.told >= window_bytes / 4) send(from, {.word = Word::taken}, {});
}

// ---- Arrays -------------------------------------------------------------------------------------

void HostLink::move_out(const VirtualChannel& channel, std::span<const std::byte> from) {
  if (peers_[channel.peer].lost) return;
  Lane& lane = lanes_[key_of(channel)];
  while (!from.empty()) {
    const auto part = from.first(std::min(part_bytes, from.size()));
    lane.push_back({.transfer = messages_.send_array(static_cast<int>(channel.peer),
                                                     tag(channel, true), part)});
    from = from.subspan(part.size());
  }
}

void HostLink::move_in(const VirtualChannel& channel, std::span<std::byte> to) {
  if (peers_[channel.peer].lost) return;
  Lane& lane = lanes_[key_of(channel)];
  while (!to.empty()) {
    const auto part = to.first(std::min(part_bytes, to.size()));
    lane.push_back({.transfer = messages_.receive_array(static_cast<int>(channel.peer),
                                                        tag(channel, false), part),
                    .to = part.data()});
    to = to.subspan(part.size());
  }
}

void HostLink::move_away(const VirtualChannel& channel, std::uint64_t bytes) {
  if (peers_[channel.peer].lost) return;
  const std::size_t part = std::min<std::uint64_t>(part_bytes, bytes);
  std::unique_ptr<std::byte[]> unwanted(new std::byte[part]);
  std::byte* const to = unwanted.get();
  const HostMessages::Transfer transfer =
      messages_.receive_array(static_cast<int>(channel.peer), tag(channel, false), {to, part});
  lanes_[key_of(channel)].push_back(
      {.transfer = transfer, .to = to, .unwanted = std::move(unwanted)});
}

bool HostLink::take_arrays(Taker& taker) {
  bool any = false;
  for (std::size_t i = std::min(lanes_.size(), most_lanes); i > 0 && !lanes_.empty(); --i) {
    auto next = lanes_.upper_bound(last_looked_at_);
    if (next == lanes_.end()) next = lanes_.begin();
    last_looked_at_ = next->first;
    any = take_arrays_of(last_looked_at_, taker) || any;
  }
  return any;
}

// The taker may begin further arrays, of this channel too.
bool HostLink::take_arrays_of(const Key& key, Taker& taker) {
  const Key channel = key;
  bool any = false;
  for (auto lane = lanes_.find(channel); lane != lanes_.end(); lane = lanes_.find(channel)) {
    const std::optional<std::size_t> bytes = messages_.done(lane->second.front().transfer);
    if (!bytes) break;
    const Part part = std::move(lane->second.front());
    lane->second.pop_front();
    const bool last = lane->second.empty();
    if (last) lanes_.erase(lane);
    any = true;
    const std::size_t shown = part.to == nullptr ? 0 : *bytes;
    if (shown != 0 || last)
      show({.channel = channel_of(channel), .kind = Kind::data, .bytes = {part.to, shown}}, false,
           taker);
  }
  return any;
}

// ---- Ends ---------------------------------------------------------------------------------------

std::optional<HostLink::Loss> HostLink::next_loss() {
  if (losses_.empty()) return std::nullopt;
  Loss loss = std::move(losses_.front());
  losses_.pop_front();
  return loss;
}

void HostLink::say_end() {
  for (Site site = 0; site < sites(); ++site)
    if (site != self() && !peers_[site].lost)
      send(site, {.word = Word::end, .number = whole_ ? 0u : 1u}, {});
}

void HostLink::look_at_peers(Clock::time_point now) {
  if (ended_.load(std::memory_order_relaxed)) return;  // the same thread has stored it
  std::vector<Site> silent;
  beats_.look(
      now, [this](Site peer) { send(peer, {.word = Word::beat}, {}); },
      [&](Site peer) { silent.push_back(peer); });
  for (const Site peer : silent)
    if (!lives_here(peer))
      lose(peer, fmt::format("process {} of the program ({}) does not answer any more", peer,
                             processes_[peer].name));
}

bool HostLink::lives_here(Site site) const {
  const host::ProcessName& process = processes_[site].of_this_host;
  return process.pid != 0 && !host::has_ended(process);
}

void HostLink::look_at_trouble() {
  while (const auto trouble = messages_.next_trouble()) {
    if (trouble->with < 0) end_process("the host MPI failed: " + trouble->text);
    const auto site = static_cast<Site>(trouble->with);
    lose(site, fmt::format("process {} of the program ({}) cannot be reached any more: {}", site,
                           processes_[site].name, trouble->text));
  }
}

void HostLink::lose(Site site, const std::string& how) {
  if (site >= sites() || peers_[site].lost) return;
  peers_[site].lost = true;
  whole_ = false;
  beats_.forget(site);
  if (site == 0) end_process(how);
  drop_arrays(site, how);
  losses_.push_back({site, how});
  if (self() == 0) tell_lost(site, how);
}

void HostLink::tell_lost(Site site, const std::string& how) {
  const auto text = std::as_bytes(std::span(how)).first(std::min(how.size(), most_bytes()));
  for (Site other = 1; other < sites(); ++other)
    if (!peers_[other].lost) send(other, {.word = Word::lost, .number = site}, text);
}

void HostLink::drop_arrays(Site site, const std::string& how) {
  for (auto lane = lanes_.begin(); lane != lanes_.end();) {
    if (std::get<1>(lane->first) != site) {
      ++lane;
      continue;
    }
    for (const Part& part : lane->second)
      if (!messages_.drop(part.transfer)) end_process(how + ", in the midst of an array");
    lane = lanes_.erase(lane);
  }
}

void HostLink::end_process(const std::string& how) const {
  // Of processes of one host the first tells; by then the launcher has ended the others.
  const auto host = [this](Site site) {
    const std::string& name = processes_[site].name;
    return name.substr(name.rfind(' '));
  };
  Site first = 0;
  while (host(first) != host(self())) ++first;
  if (first != self()) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const std::string text = fmt::format("tombolo: process {}: {}\n", self(), how);
  // Without stdio, whose locks other threads may hold.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  _exit(1);
}

}  // namespace tombolo::svp
