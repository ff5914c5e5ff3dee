// SPDX-License-Identifier: Apache-2.0
#include "baselines/ircce.h"

#include <algorithm>

namespace tombolo::baselines {

Ircce::Ircce(Cpu& cpu, std::uint32_t rank, const std::vector<CoreId>& cores, Omitted omitted)
    : Rcce(cpu, rank, cores, omitted),
      receives_(cores.size()),
      chunks_sent_(cores.size()),
      chunks_taken_(cores.size()) {}

IrcceRequest Ircce::transfer(Place place, std::size_t bytes, std::uint32_t other) const {
  TOMBOLO_CHECK(other < size() && other != rank(), "rank {} of {}: a message with rank {}", rank(),
                size(), other);
  Transfer t{place, bytes, other};
  t.chunks = (bytes + half_bytes() - 1) / half_bytes();
  t.done = bytes == 0;
  return std::make_shared<Transfer>(t);
}

std::size_t Ircce::chunk_bytes(const Transfer& t) const {
  return std::min(half_bytes(), t.bytes - t.moved * half_bytes());
}

IrcceRequest Ircce::isend(Place from, std::size_t bytes, std::uint32_t to) {
  IrcceRequest request = transfer(from, bytes, to);
  if (!request->done) sends_.push_back(request);
  progress();
  return request;
}

IrcceRequest Ircce::irecv(Place to, std::size_t bytes, std::uint32_t from) {
  IrcceRequest request = transfer(to, bytes, from);
  if (!request->done) receives_[from].push_back(request);
  progress();
  return request;
}

// ---- Progress -----------------------------------------------------------------------------------

void Ircce::progress() {
  cpu().compute(cpu().timing().loop);
  if (!sends_.empty()) push();
  for (std::uint32_t from = 0; from < size(); ++from)
    if (!receives_[from].empty()) take(from);
}

// Writes a chunk if a half is free.
void Ircce::push() {
  Transfer& t = *sends_.front();
  const std::uint8_t taken = flag(chunks_taken, t.other);
  const auto in_buffer = static_cast<std::uint8_t>(chunks_sent_[t.other] - taken);
  if (t.moved == t.chunks) {
    if (in_buffer != 0) return;
    t.done = true;
    sends_.pop_front();
    return;
  }
  if (in_buffer == 2) return;  // IC2
  put(t.place + t.moved * half_bytes(), rank(), t.moved % 2 * half_bytes(), chunk_bytes(t));
  ++t.moved;
  set_flag(t.other, chunks_sent, rank(), ++chunks_sent_[t.other]);
}

void Ircce::take(std::uint32_t from) {
  Transfer& t = *receives_[from].front();
  if (flag(chunks_sent, from) == chunks_taken_[from]) return;
  const std::size_t bytes = chunk_bytes(t);
  const Place to = t.place + t.moved * half_bytes();
  get(from, t.moved % 2 * half_bytes(), to, bytes, TargetLines::fetched);
  set_flag(from, chunks_taken, rank(), ++chunks_taken_[from]);
  if (++t.moved < t.chunks) return;
  t.done = true;
  receives_[from].pop_front();
}

// ---- Waiting ------------------------------------------------------------------------------------

bool Ircce::test(const IrcceRequest& request) {
  if (!request->done) progress();
  return request->done;
}

void Ircce::wait(const IrcceRequest& request) {
  while (!request->done) progress();
}

IrcceRequest WaitList::take_done() {
  const auto found = std::find_if(requests_.begin(), requests_.end(),
                                  [](const IrcceRequest& request) { return request->done; });
  if (found == requests_.end()) return nullptr;
  IrcceRequest request = *found;
  requests_.erase(found);
  return request;
}

IrcceRequest Ircce::test_any(WaitList& list) {
  progress();
  return list.take_done();
}

IrcceRequest Ircce::wait_any(WaitList& list) {
  while (!list.empty()) {
    if (IrcceRequest request = list.take_done()) return request;
    progress();
  }
  return nullptr;
}

void Ircce::wait_all(WaitList& list) {
  while (wait_any(list) != nullptr) {
  }
}

}  // namespace tombolo::baselines
