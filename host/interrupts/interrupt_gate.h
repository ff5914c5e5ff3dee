// SPDX-License-Identifier: Apache-2.0
// Purpose: a thread that other processes may interrupt, at any instruction but those of its gate's
// closed parts.
//
//   class Answers : public InterruptGate { void serve(std::uint64_t at) override { ... } };
//   TOMBOLO_TRY(catch_interrupts(answers));         // interrupts.h
//   {
//     const InterruptGate::Closed closed(answers);  // serve() waits for its end
//     ...
//   }
//
// A class that is used by threads of both kinds has Interrupted or NotInterrupted as a parameter:
// a thread that nothing interrupts runs no code for closed parts.
//
// Invariants: HIG1 serve() is not called within itself or a closed part, and once at least after
//                  the last interrupt: one that comes meanwhile is noted, and served at the end.
//             HIG2 a thread sleeps with its gate open: an interrupt is served at once, and ends the
//                  sleep.
// Thread safety: the thread that is interrupted, and its signal handler.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

#include "base/check.h"

namespace tombolo::host {

class InterruptGate {
 public:
  InterruptGate() = default;
  virtual ~InterruptGate() = default;
  InterruptGate(const InterruptGate&) = delete;
  InterruptGate& operator=(const InterruptGate&) = delete;

  // May be nested.
  class Closed {
   public:
    explicit Closed(InterruptGate& gate) : gate_(gate) { gate_.close(); }
    ~Closed() { gate_.open(); }
    Closed(const Closed&) = delete;
    Closed& operator=(const Closed&) = delete;

   private:
    InterruptGate& gate_;
  };

  // For so long, or until an interrupt has been served (HIG2). Not in a closed part.
  void sleep(std::uint64_t nanoseconds) {
    TOMBOLO_CHECK(depth() == 0, "a thread sleeps with its gate closed, for {} ns", nanoseconds);
    rest(nanoseconds);
  }

  // An interrupt before the instruction at this address, in the signal handler.
  void arrive(std::uint64_t instruction) {
    if (depth() != 0) return noted_.store(true, order);
    close();
    serve(instruction);
    open();
  }

 protected:
  // 0: a closed part ends. Otherwise the instruction that runs next, in whatever function of the
  // program that is: nothing may be allocated, and no lock taken that the program may hold.
  virtual void serve(std::uint64_t instruction) = 0;
  // Of sleep(): a system call that signals end.
  virtual void rest(std::uint64_t nanoseconds) {
    constexpr std::uint64_t second = 1'000'000'000;
    const timespec time{.tv_sec = static_cast<time_t>(nanoseconds / second),
                        .tv_nsec = static_cast<long>(nanoseconds % second)};
    // An interrupt that came before it was served then.
    nanosleep(&time, nullptr);
  }

 private:
  // relaxed: one thread and its own signal handler.
  static constexpr auto order = std::memory_order_relaxed;
  static void in_order() { std::atomic_signal_fence(std::memory_order_seq_cst); }

  int depth() const { return depth_.load(order); }
  void close() {
    depth_.store(depth() + 1, order);
    in_order();
  }
  void open() {
    for (;;) {
      in_order();
      while (depth() == 1 && noted_.load(order)) {
        noted_.store(false, order);
        in_order();
        serve(0);
      }
      in_order();
      depth_.store(depth() - 1, order);
      in_order();
      // One that came since the last look was noted, and is for this thread to find.
      if (depth() != 0 || !noted_.load(order)) return;
      close();
    }
  }

  std::atomic<int> depth_{0};
  std::atomic<bool> noted_{false};
};

// The thread is interrupted, by the gate that by() has named before the first closed part.
class Interrupted {
 public:
  class Closed : public InterruptGate::Closed {
   public:
    explicit Closed(const Interrupted& interrupts) : InterruptGate::Closed(interrupts.gate()) {}
  };

  void by(InterruptGate& gate) { gate_ = &gate; }
  InterruptGate& gate() const { return *gate_; }

 private:
  InterruptGate* gate_ = nullptr;
};

struct NotInterrupted {
  struct Closed {
    explicit Closed(NotInterrupted /*interrupts*/) {}
  };
};

}  // namespace tombolo::host
