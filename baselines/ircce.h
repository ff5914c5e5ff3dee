// SPDX-License-Identifier: Apache-2.0
// Purpose: iRCCE, the extension of RCCE by messages that do not block (002 section 4.2): the buffer
// in two halves, so that one is written while the other is read, and the receiver's lines fetched
// into the caches before they are stored to.
//
//   Ircce ircce(cpu, rank, cores);
//   WaitList list;
//   list.add(ircce.irecv(in, bytes, left));
//   list.add(ircce.isend(out, bytes, right));
//   ircce.wait_all(list);
//
// Chunks are counted, modulo 256, by the sender at the receiver and by the receiver at the sender.
//
// Invariants: IC1 one message of a process is in its buffer at a time; others wait their turn.
//             IC2 a half is written again after its last chunk was taken.
//             IC3 messages between two processes match in the order of their calls.
//             IC4 nothing moves but in the calls of this object. RCCE's own send and recv may be
//                 used while no isend is unfinished.
// Thread safety: belongs to the program of its core.
#pragma once

#include <deque>
#include <memory>

#include "baselines/rcce.h"

namespace tombolo::baselines {

struct Transfer {
  Place place;
  std::size_t bytes = 0;
  std::uint32_t other = 0;
  std::size_t moved = 0;   // chunks that were written, or taken
  std::size_t chunks = 0;  // in all
  bool done = false;
};
using IrcceRequest = std::shared_ptr<Transfer>;

class WaitList {
 public:
  void add(IrcceRequest request) { requests_.push_back(std::move(request)); }
  bool empty() const { return requests_.empty(); }
  // Takes a request that is done out of the list; null if there is none.
  IrcceRequest take_done();

 private:
  std::deque<IrcceRequest> requests_;
};

class Ircce : public Rcce {
 public:
  Ircce(Cpu& cpu, std::uint32_t rank, const std::vector<CoreId>& cores, Omitted omitted = {});

  IrcceRequest isend(Place from, std::size_t bytes, std::uint32_t to);
  IrcceRequest irecv(Place to, std::size_t bytes, std::uint32_t from);

  bool test(const IrcceRequest& request);
  void wait(const IrcceRequest& request);
  // Takes a request from the list, and returns it: null if none is done, or none is left.
  IrcceRequest test_any(WaitList& list);
  IrcceRequest wait_any(WaitList& list);
  void wait_all(WaitList& list);

  void progress();

 private:
  std::size_t half_bytes() const { return buffer_bytes() / 2 / 32 * 32; }
  IrcceRequest transfer(Place place, std::size_t bytes, std::uint32_t other) const;
  std::size_t chunk_bytes(const Transfer& t) const;
  void push();
  void take(std::uint32_t from);

  std::deque<IrcceRequest> sends_;
  std::vector<std::deque<IrcceRequest>> receives_;  // by source
  std::vector<std::uint8_t> chunks_sent_;           // by receiver
  std::vector<std::uint8_t> chunks_taken_;          // by sender
};

}  // namespace tombolo::baselines
