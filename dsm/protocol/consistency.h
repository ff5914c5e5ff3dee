// SPDX-License-Identifier: Apache-2.0
// Purpose: a consistency protocol as a concept: the calls by which a page store, and the
// synchronization calls of a program, drive it. Three satisfy it: regional.h, release.h and
// sequential.h.
//
// Invariants: DCN1 all threads use one protocol, and call barrier(), reduce() and close() together.
// Thread safety: one thread for each protocol.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/status.h"
#include "dsm/protocol/shape.h"

namespace tombolo::dsm {

// Makes a thread that computes call poll(), soon. A protocol that polls asks for it where an answer
// does not come; it may ask in vain, and then asks again.
class Interrupter {
 public:
  virtual ~Interrupter() = default;
  virtual void interrupt(Thread thread) = 0;
};

// An access of an instruction of the program.
struct Access {
  Page page = 0;
  bool write = false;
};

template <class P>
concept ConsistencyProtocol = requires(P& p, Page page, std::size_t offset, std::size_t bytes,
                                       Lock lock, bool& taken, std::uint64_t& value,
                                       std::plus<std::uint64_t> sum) {
  // The model's name, for reports.
  { P::name } -> std::convertible_to<const char*>;
  // The program is about to load from an absent page. It is cached when this returns.
  { p.read_miss(page) } -> std::same_as<Status>;
  // The program is about to store to a page that is not writable. It is when this returns.
  { p.write_miss(page) } -> std::same_as<Status>;
  // The program is about to store `bytes` bytes there. Inside a span these travel with the lock,
  // bytes by bytes; stores that are not recorded travel by pages. Outside it does nothing.
  { p.record(page, offset, bytes) } -> std::same_as<void>;
  // The page leaves the cache.
  { p.evict(page) } -> std::same_as<Status>;
  // True if a thread has to call poll() now and then, and wherever it waits: others wait for it.
  { P::polls } -> std::convertible_to<bool>;
  { p.poll() } -> std::same_as<Status>;

  // A span begins when its lock is taken and ends when that is given back. Spans may be nested, and
  // need not end in the opposite order.
  { p.begin_span(lock) } -> std::same_as<Status>;
  { p.end_span(lock) } -> std::same_as<Status>;
  // Begins a span if the lock is free: `taken`. If not, only earlier stores may have been sent.
  { p.try_begin_span(lock, taken) } -> std::same_as<Status>;
  // Outside of all spans.
  { p.barrier() } -> std::same_as<Status>;
  // Likewise, a barrier's two halves, for a caller that lets some threads wait for each other in
  // between: all that this thread has stored, in spans too, is seen by threads that learn after
  // tell() has returned.
  { p.tell() } -> std::same_as<Status>;
  { p.learn() } -> std::same_as<Status>;
  // `value` becomes the sum (or another associative operation) of all threads' values, combined in
  // the order of threads. It orders no loads and stores.
  { p.reduce(value, sum) } -> std::same_as<Status>;
  // The end: all pages are at their homes, and none is cached.
  { p.close() } -> std::same_as<Status>;
};

}  // namespace tombolo::dsm
