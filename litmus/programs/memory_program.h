// SPDX-License-Identifier: Apache-2.0
// Purpose: programs on virtual shared memory: each core is a thread with a page cache of its own,
// and the protocols of dsm/ run on the explored machine as they are.
//
// A program is a function template over the kind of thread, which each thread runs:
//
//   template <class Thread>
//   void handed_over(MemoryThread<Thread>& t) {
//     if (t.self() == 0) t.store(x, 1);
//     ...
//   }
//
// Invariants: GP1 of explorer/program.h: the sections completed and the values seen follow from how
//                 far each thread has come; pages in private memory from its loads of words and
//                 data.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "dsm/protocol/regional.h"
#include "dsm/protocol/release.h"
#include "dsm/protocol/sequential.h"
#include "dsm/testing/deferring.h"
#include "dsm/testing/exposed_pages.h"
#include "dsm/testing/private_pages.h"
#include "dsm/testing/program_thread.h"
#include "dsm/transport/core_transport.h"
#include "litmus/explorer/explored.h"
#include "litmus/explorer/run.h"

namespace tombolo::litmus {

using dsm::Shape;
using dsm::testing::Variable;

// Variables 0, 2, 4 share page 0; 1, 3, 5 share page 1.
enum SharedVariable : std::uint8_t { on_first, on_second, beside_first, beside_second };

// The smallest rings: they are run over.
inline constexpr Shape two_pages{.threads = 2,
                                 .pages = 2,
                                 .page_bytes = line_bytes,
                                 .cached_pages = 2,
                                 .locks = 2,
                                 .notices = 2,
                                 .updates = 2};

// Both pages pass through one place: each access to another page is an eviction.
constexpr Shape with_one_place(Shape shape) {
  shape.cached_pages = 1;
  return shape;
}

// The progress of all threads.
struct MemoryScore {
  std::uint64_t completed = 0;  // sections
  std::vector<std::vector<std::uint64_t>> seen;
};

template <class Thread>
class MemoryThread {
 public:
  using Core = typename Thread::Core;
  MemoryThread(Thread& thread, machine::Offset signals, MemoryScore& score, Run& run)
      : thread_(thread), signals_(signals), score_(score), run_(run) {
    thread.on_error([&run](const Status& status) { run.fail(status.message()); });
  }

  dsm::Thread self() { return thread_.self(); }
  Thread& memory() { return thread_; }
  std::uint64_t load(Variable v) { return thread_.load(v); }
  void store(Variable v, std::uint64_t value) { thread_.store(v, value); }
  void store_unrecorded(Variable v, std::uint64_t value) { thread_.store(v, value, false); }
  void begin(dsm::Lock lock) { thread_.begin_span(lock); }
  void end(dsm::Lock lock) { thread_.end_span(lock); }
  void barrier() { thread_.barrier(); }
  // A barrier of this thread and another alone.
  void meet(dsm::Thread other, std::uint64_t step) {
    thread_.tell();
    reach(step);
    await(other, step);
    thread_.learn();
  }

  // An order of the program's steps that the protocol does not see: the others wait until this
  // thread has reached `step`.
  void reach(std::uint64_t step) {
    for (dsm::Thread thread = 0; thread < thread_.shape().threads; ++thread) {
      if (thread == self()) continue;
      thread_.core().store(signal(thread, self()), step);
      thread_.core().notify(thread);
    }
  }
  void await(dsm::Thread thread, std::uint64_t step) {
    const auto word = signal(self(), thread);
    if constexpr (Thread::Protocol::polls) {
      while (thread_.core().load(word) < step) {
        thread_.must(thread_.protocol().poll());
        thread_.must(thread_.core().pause(1));
      }
    } else {
      thread_.must(thread_.core().wait_until(word, [step](std::uint64_t v) { return v >= step; }));
    }
  }

  // By one thread after the other, where it is not of interest that they do so at once.
  template <class Body>
  void in_turn(std::uint64_t step, Body&& body) {
    if (self() != 0) await(self() - 1, step);
    body();
    reach(step);
  }

  // For the outcome.
  void saw(std::uint64_t value) { score_.seen[self()].push_back(value); }
  void expect(const char* what, std::uint64_t seen, std::uint64_t wanted) {
    if (seen != wanted)
      run_.fail(fmt::format("lost or stale data: thread {} sees {} as {}, not {}", self(), seen,
                            what, wanted));
  }
  // Within a section: counts the variable up.
  void count_up(Variable v, bool recorded) {
    const std::uint64_t seen = load(v);
    expect("the number of sections", seen, score_.completed);
    thread_.store(v, seen + 1, recorded);
    ++score_.completed;
  }
  std::uint64_t completed() const { return score_.completed; }
  void fail(const std::string& why) { run_.fail(why); }

 private:
  typename Core::Word signal(dsm::Thread to, dsm::Thread from) {
    return thread_.core().word({to, signals_ + from * sizeof(std::uint64_t)});
  }

  Thread& thread_;
  machine::Offset signals_;
  MemoryScore& score_;
  Run& run_;
};

template <class Thread>
class MemoryProgram final : public Program {
 public:
  using Core = typename Thread::Core;
  using Body = std::function<void(MemoryThread<Thread>&)>;
  using Seen = std::vector<std::vector<std::uint64_t>>;  // by thread
  // `forbidden`: an outcome that is a failure; may be null.
  using Forbidden = bool (*)(const Seen& seen);
  MemoryProgram(dsm::Thread threads, Shape shape, Body body, Forbidden forbidden)
      : shape_(shape), body_(std::move(body)), forbidden_(forbidden) {
    shape_.threads = threads;
    machine::SyncLayout sync(Core::reserved_sync_bytes(threads));
    signals_ = sync.take_lines(threads);
    layout_ = Thread::take(sync, shape_);
  }

  MemoryShape shape() const override {
    return {.cores = shape_.threads,
            .sync_bytes = layout_.sync_bytes,
            .data_bytes = layout_.data_bytes};
  }
  void begin() override { score_ = {.seen = Seen(shape_.threads)}; }
  void run(const machine::Attachment& at, Run& run) override {
    Core core(at);
    Thread memory(core, layout_, shape_);
    MemoryThread<Thread> thread(memory, signals_, score_, run);
    body_(thread);
  }
  std::string outcome(const Memory&, Run& run) override {
    if (forbidden_ != nullptr && forbidden_(score_.seen))
      run.fail("lost or stale data: the values seen are of no order of the steps");
    std::string text = fmt::format("sections: {}; seen:", score_.completed);
    for (const auto& values : score_.seen)
      for (const std::uint64_t value : values) text += fmt::format(" {}", value);
    return text;
  }

 private:
  Shape shape_;
  Body body_;
  Forbidden forbidden_;
  machine::Offset signals_ = 0;
  typename Thread::Layout layout_;
  MemoryScore score_;
};

template <class C>
using ExploredTransport = dsm::testing::Deferring<dsm::CoreTransport<C>>;
template <class C, template <class, class> class Protocol>
using ThreadOn =
    dsm::testing::ProgramThread<ExploredTransport<C>, dsm::testing::PrivatePages, Protocol>;

// Pages lie where others get them from.
template <class C, template <class, class> class Protocol = dsm::Regional>
using ThreadInPlace =
    dsm::testing::ProgramThread<ExploredTransport<C>, dsm::testing::ExposedPages, Protocol>;

}  // namespace tombolo::litmus
