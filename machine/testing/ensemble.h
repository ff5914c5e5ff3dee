// SPDX-License-Identifier: Apache-2.0
// Purpose: n cores of one machine for tests and benchmarks: threads of this process, or as a
// machine's own Host runs them.
//
//   Ensemble<stale::Core> ensemble({.cores = 3, .sync_bytes = layout.bytes(), .data_bytes = 256});
//   ensemble.run([&](auto& core) { ... });        // one thread per core, joined on return
//
// Thread safety: run() from one thread at a time.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "machine/optional.h"

namespace tombolo::machine::testing {

struct EnsembleShape {
  Home cores = 2;
  std::size_t sync_bytes = 4096;  // per home, the machine's reserved bytes included
  std::size_t data_bytes = 4096;  // per home
  std::uint64_t seed = 1;
  std::uint64_t evictions = 7;
  IdleHook* idle = nullptr;
  std::uint32_t processors = 2;
  std::uint32_t configuration = 0;  // its number, for a machine that has several
};

// The machine of an ensemble of Cs: C itself, or the machine that C says it stands upon.
template <class C>
struct MachineOf {
  using type = C;
};
template <class C>
requires requires { typename C::Machine; }
struct MachineOf<C> {
  using type = typename C::Machine;
};

// A reference to the body that is called for each core, of whatever type: the code that starts the
// cores is compiled once, not for every body.
class BodyRef {
 public:
  template <class Body>
  explicit BodyRef(Body& body)
      : body_(&body), call_([](void* on, Home home) { (*static_cast<Body*>(on))(home); }) {}
  void operator()(Home home) const { call_(body_, home); }

 private:
  void* body_;
  void (*call_)(void*, Home);
};

// Calls the body in a thread for each core, and returns when all have ended.
inline void run_in_threads(Home cores, BodyRef body) {
  std::vector<std::thread> threads;
  for (Home home = 0; home < cores; ++home) threads.emplace_back(body, home);
  for (auto& thread : threads) thread.join();
}

// Memory for n cores and a way to run them: here threads. A machine whose cores are no threads has
// a specialization (backends/scc/testing/host.h).
template <class M>
class Host {
 public:
  explicit Host(const EnsembleShape& shape)
      : shape_(shape),
        sync_bytes_((shape.sync_bytes + 63) / 64 * 64),
        data_bytes_((shape.data_bytes + 63) / 64 * 64),
        sync_(allocate(shape.cores * sync_bytes_)),
        data_(allocate(shape.cores * data_bytes_)) {}

  AttachmentOf<M> attachment(Home self) {
    AttachmentOf<M> at;
    at.self = self;
    at.cores = shape_.cores;
    at.sync = sync_.get();
    at.sync_bytes_per_home = sync_bytes_;
    for (Home home = 0; home < shape_.cores; ++home)
      at.data.push_back({.memory = data_.get() + home * data_bytes_, .bytes = shape_.data_bytes});
    at.waiting = WaitPolicy::for_host(shape_.cores, shape_.processors);
    at.idle = shape_.idle;
    at.seed = shape_.seed;
    if constexpr (EvictsAtRandom<M>) at.evictions = shape_.evictions;
    if constexpr (WantsSharedMemory<M>) {
      if (shared_ == nullptr) shared_ = allocate(M::shared_bytes(at.data));
      at.shared = shared_.get();
    }
    return at;
  }

  void run(BodyRef body) { run_in_threads(shape_.cores, body); }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  static Memory allocate(std::size_t bytes) {
    auto* p = static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
    TOMBOLO_CHECK(p != nullptr, "ensemble: no memory for {} bytes", bytes);
    std::memset(p, 0, (bytes + 4095) / 4096 * 4096);
    return Memory(p);
  }

  EnsembleShape shape_;
  std::size_t sync_bytes_;
  std::size_t data_bytes_;
  Memory sync_;
  Memory data_;
  Memory shared_;  // by all cores, beside the regions
};

// C: a core, or anything else that is made from an Attachment (an engine, say).
template <class C>
class Ensemble {
 public:
  explicit Ensemble(const EnsembleShape& shape) : host_(shape) {
    for (Home self = 0; self < shape.cores; ++self)
      cores_.push_back(std::make_unique<C>(host_.attachment(self)));
  }

  C& core(Home home) { return *cores_[home]; }
  Home cores() const { return static_cast<Home>(cores_.size()); }

  // Calls body(core) for each core, each in its own thread, and returns when all have.
  template <class Body>
  void run(Body&& body) {
    auto for_core = [&](Home home) {
      C& core = *cores_[home];
      body(core);
      // A machine may hold back the last stores of a body; code after run() may look at them.
      if constexpr (DefersStores<C>) core.settle();
    };
    host_.run(BodyRef(for_core));
  }

 private:
  Host<typename MachineOf<C>::type> host_;
  std::vector<std::unique_ptr<C>> cores_;
};

}  // namespace tombolo::machine::testing
