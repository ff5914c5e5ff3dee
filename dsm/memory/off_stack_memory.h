// SPDX-License-Identifier: Apache-2.0
// Purpose: a ProgramMemory whose callers' stacks are pages of it. Each call runs on a stack of the
// runtime's own, of this process alone: the pages of the caller's may be closed meanwhile.
//
// Invariants: OSM1 inside of a call no byte of the program's memory is accessed: arguments and
//                  results are copied outside of it.
//             OSM2 a wait for a lock is made of tries and pauses: between two of them the thread,
//                  or the process, may be ended (must.h).
//             OSM3 system calls of the runtime are not caught.
//             OSM4 the program's handlers of signals, if it has any, wait: they would access its
//                  memory, and call this one, in the middle of a call. They run behind it: on the
//                  program's side, with its calls served.
// Thread safety: as the memory.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "dsm/threads/runtime_hooks.h"
#include "dsm/threads/waited.h"
#include "host/faults/caught_calls.h"
#include "host/memory/page.h"
#include "host/memory/raw_calls.h"
#include "host/stacks/stack_call.h"

namespace tombolo::dsm {

// As long as it lives the program's handlers wait (OSM4); those of faults do not. On the program's
// stack, around the work of the runtime: a handler runs when the program's calls are served again,
// and may make one on the runtime's stack, or leave by a jump.
class SignalsWait {
 public:
  // `mask`: a place for the program's signals, as the kernel has them, outside of its memory.
  explicit SignalsWait(std::uint64_t& mask)
      : mask_(runtime_hooks.has_signal_handlers ? &mask : nullptr) {
    if (mask_ != nullptr) set_mask(&all_but_faults, mask_);
  }
  ~SignalsWait() {
    if (mask_ != nullptr) set_mask(mask_, nullptr);
  }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  static constexpr std::uint64_t all_but_faults = [] {
    std::uint64_t all = ~std::uint64_t{0};
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGABRT})
      all &= ~(std::uint64_t{1} << (fault - 1));
    return all;
  }();
  static void set_mask(const std::uint64_t* mask, std::uint64_t* before) {
    host::call_uncaught(SYS_rt_sigprocmask,
                        {SIG_SETMASK, reinterpret_cast<std::uint64_t>(mask),
                         reinterpret_cast<std::uint64_t>(before), sizeof *mask});
  }

  std::uint64_t* mask_;
};

class OffStackMemory final : public ProgramMemory {
 public:
  // Below it lies a page that cannot be accessed.
  class Stack {
   public:
    Stack()
        : start_(host::raw::map(0, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0)) {
      const auto low = reinterpret_cast<std::uint64_t>(start_);
      if (*this) host::raw::protect({low, low + host::page_bytes()}, PROT_NONE);
    }
    ~Stack() {
      if (*this) host::raw::unmap(start_, bytes);
    }
    Stack(Stack&& other) noexcept : start_(std::exchange(other.start_, MAP_FAILED)) {}
    Stack& operator=(Stack&&) = delete;
    explicit operator bool() const { return start_ != MAP_FAILED; }
    std::span<std::byte> memory() const { return {static_cast<std::byte*>(start_), bytes}; }

   private:
    static constexpr std::size_t bytes = std::size_t{256} << 10;
    void* start_;
  };

  OffStackMemory(std::unique_ptr<ProgramMemory> memory, Stack stack, const Observer& observer)
      : memory_(std::move(memory)),
        stack_(std::move(stack)),
        threads_(memory_->threads()),
        waited_(observer) {}

  Thread self() const override { return memory_->self(); }
  Thread threads() const override { return threads_; }
  std::span<std::byte> memory() const override { return memory_->memory(); }
  std::size_t page_bytes() const override { return memory_->page_bytes(); }
  void record(const void* address, std::size_t bytes) override {
    if (spans_ == 0) return;
    off([=](ProgramMemory& memory) { return memory.record(address, bytes), true; });
  }
  Status renew(const void* address, std::size_t bytes) override {
    return off([=](ProgramMemory& memory) { return memory.renew(address, bytes); });
  }
  // In a handler of a signal, which is off the program's stack already.
  Status touch(const void* address, std::size_t bytes, bool write, std::size_t& touched) override {
    return memory_->touch(address, bytes, write, touched);
  }

  Status try_change(Lock lock, void* address, std::size_t bytes, const AtomicChange& change,
                    std::uint64_t& old, bool& done) override {
    struct Tried {
      Status status;
      std::uint64_t old = 0;
      bool done = false;
    };
    Tried tried = off([=](ProgramMemory& memory) {
      Tried now;
      now.status = memory.try_change(lock, address, bytes, change, now.old, now.done);
      return now;
    });
    old = tried.old;
    done = tried.done;
    return std::move(tried.status);
  }

  WordIndex words() const override { return memory_->words(); }
  std::uint64_t load(WordIndex word) override {
    return off([=](ProgramMemory& memory) { return memory.load(word); });
  }
  void store(WordIndex word, std::uint64_t value) override {
    off([=](ProgramMemory& memory) { return memory.store(word, value), true; });
  }
  std::uint64_t exchange(WordIndex word, std::uint64_t value) override {
    return off([=](ProgramMemory& memory) { return memory.exchange(word, value); });
  }
  std::uint64_t fetch_add(WordIndex word, std::uint64_t value) override {
    return off([=](ProgramMemory& memory) { return memory.fetch_add(word, value); });
  }
  std::uint64_t compare_exchange(WordIndex word, std::uint64_t expected,
                                 std::uint64_t desired) override {
    return off(
        [=](ProgramMemory& memory) { return memory.compare_exchange(word, expected, desired); });
  }

  Lock locks() const override { return memory_->locks(); }
  // OSM2
  Status acquire(Lock lock) override {
    return waited_.for_lock(
        [&] { return wait_for([&](bool& taken) { return try_acquire(lock, taken); }); });
  }
  Status try_acquire(Lock lock, bool& taken) override {
    auto [status, has] = off([=](ProgramMemory& memory) {
      bool now = false;
      Status tried = memory.try_acquire(lock, now);
      return std::pair(std::move(tried), now);
    });
    taken = has;
    if (has) spans_changed(1);
    return std::move(status);
  }
  // In one call: a handler of a signal that hands over, too, never finds the lock this thread's.
  Status hand_over(Lock lock) override {
    return waited_.for_lock([&] {
      return wait_for([&](bool& done) {
        auto [status, has] = off([=](ProgramMemory& memory) {
          bool now = false;
          Status tried = memory.try_hand_over(lock, now);
          return std::pair(std::move(tried), now);
        });
        done = has;
        return std::move(status);
      });
    });
  }
  Status release(Lock lock) override {
    Status status = off([=](ProgramMemory& memory) { return memory.release(lock); });
    spans_changed(-1);
    return status;
  }
  Status barrier() override {
    return off([](ProgramMemory& memory) { return memory.barrier(); });
  }
  Status tell() override {
    return off([](ProgramMemory& memory) { return memory.tell(); });
  }
  Status learn() override {
    return off([](ProgramMemory& memory) { return memory.learn(); });
  }
  Status reduce(std::uint64_t& value, Combine combine) override {
    auto [status, combined] = off([combine, mine = value](ProgramMemory& memory) {
      std::uint64_t all = mine;
      Status reduced = memory.reduce(all, combine);
      return std::pair(std::move(reduced), all);
    });
    value = combined;
    return std::move(status);
  }

  Status pause() override {
    return off([](ProgramMemory& memory) { return memory.pause(); });
  }
  void paused_enough() override {
    off([](ProgramMemory& memory) { return memory.paused_enough(), true; });
  }
  Status close() override {
    return off([](ProgramMemory& memory) { return memory.close(); });
  }

 private:
  // `call` has its arguments by value, and returns its result.
  template <class F, class Result = std::invoke_result_t<const F&, ProgramMemory&>>
  Result off(const F& call) {
    Result result{};
    {
      const SignalsWait of_the_program(signals_);
      runtime_hooks.runtime_begins();
      host::call_on(stack_.memory(), [this, &call, &result] {
        Result made{};
        {
          const F copied = call;  // before the first page is closed
          const host::CallsPass of_the_runtime;
          made = copied(*memory_);
        }
        result = std::move(made);  // as the program stores: it may be a page fault
      });
      runtime_hooks.runtime_ends();
    }
    runtime_hooks.runtime_has_ended();
    return result;
  }

  template <class Try>
  Status wait_for(Try&& attempt) {
    bool done = false;
    TOMBOLO_TRY(attempt(done));
    while (!done) {
      runtime_hooks.between_looks();
      TOMBOLO_TRY(pause());
      TOMBOLO_TRY(attempt(done));
    }
    paused_enough();
    return {};
  }

  void spans_changed(int by) {
    spans_ += by;
    runtime_hooks.spans_have_changed(spans_);
  }

  std::unique_ptr<ProgramMemory> memory_;
  Stack stack_;
  Thread threads_;
  Waited waited_;
  int spans_ = 0;
  std::uint64_t signals_ = 0;  // of SignalsWait
};

}  // namespace tombolo::dsm
