// SPDX-License-Identifier: Apache-2.0
// Purpose: a machine core between hosts (machine/contract.h): words and data are reached by
// one-sided operations of the host MPI alone, so that CoreTransport, the protocols, and the locks
// and barriers of sync/ run on it as they are. It is no machine of backends/: a user does not
// choose it by name, windows of MPI over windows of MPI have no use, and it has no memory to map.
//
// Invariants: OSC1 every operation is done when it returns (ONS1): the rules R1 to R5 hold without
//                  work of publish, refresh, drain and fence, and nothing is cached.
//             OSC2 a wait polls a word of its own home, and lets the host MPI answer others between
//                  polls; after some yields it sleeps.
// Limits: no view (a home's memory is not mapped here); an operation costs a message to and from
// its home.
// Thread safety: one thread at a time.
#pragma once

#include <chrono>
#include <span>
#include <thread>

#include "dsm/transport/mpi/one_sided.h"
#include "host/waiting/host_waiting.h"
#include "machine/contract.h"

namespace tombolo::dsm {

class OneSidedCore {
 public:
  struct Attachment : machine::Attachment {
    OneSided* job = nullptr;  // outlives the core
  };
  using Word = machine::SyncPlace;
  static constexpr machine::Properties properties{
      .name = "mpi", .coherent = false, .native_atomics = machine::Atomics::full, .line_bytes = 64};
  // For barriers: the launcher of an MPI places consecutive processes on a host.
  static constexpr bool spans_hosts = true;
  static std::size_t reserved_sync_bytes(machine::Home) { return 0; }

  explicit OneSidedCore(const Attachment& attachment) : at_(attachment), job_(*attachment.job) {}

  machine::Home self() const { return at_.self; }
  machine::Home cores() const { return at_.cores; }

  Word word(machine::SyncPlace place) { return place; }
  std::uint64_t load(Word word) { return job_.load(word); }
  // By an atomic: those of others to this word must not lose it.
  void store(Word word, std::uint64_t v) { job_.exchange(word, v); }
  std::uint64_t fetch_add(Word word, std::uint64_t v) { return job_.fetch_add(word, v); }
  std::uint64_t exchange(Word word, std::uint64_t v) { return job_.exchange(word, v); }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    return job_.compare_exchange(word, expected, desired);
  }
  void fence() {}

  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    machine::Waiter waiter(at_.waiting, at_.idle);
    while (!predicate(load(word))) {
      job_.progress();
      TOMBOLO_TRY(waiter.step());
      if (!waiter.wants_sleep()) continue;
      TOMBOLO_TRY(waiter.idle());
      std::this_thread::sleep_for(longest_sleep);
    }
    return {};
  }
  Status pause(std::uint64_t ns) {
    job_.progress();
    return host::pause(at_.waiting, at_.idle, ns);
  }
  // A waiter polls its own word.
  void notify(machine::Home) {}

  Status read(machine::DataPlace place, void* out, std::size_t bytes) {
    job_.get(place, out, bytes);
    return {};
  }
  Status write(machine::DataPlace place, const void* in, std::size_t bytes) {
    job_.put(place, in, bytes);
    return {};
  }
  Status write_through(machine::DataPlace place, const void* in, std::size_t bytes) {
    return write(place, in, bytes);
  }
  void publish(machine::DataPlace, std::size_t) {}
  void refresh(machine::DataPlace, std::size_t) {}
  void drain() {}
  std::byte* view(machine::DataPlace) { return nullptr; }
  std::uint64_t data_bytes(machine::Home home) const { return job_.data_bytes(home); }

  // Beyond the contract (core_transport.h): bytes are changed at their home, without a mutex.
  Status accumulate_xor(machine::DataPlace place, std::span<const std::byte> diff) {
    job_.accumulate_xor(place, diff.data(), diff.size());
    return {};
  }

 private:
  static constexpr std::chrono::microseconds longest_sleep{50};

  Attachment at_;
  OneSided& job_;
};
static_assert(machine::Core<OneSidedCore>);

}  // namespace tombolo::dsm
