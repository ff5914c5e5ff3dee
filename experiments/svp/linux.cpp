// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/linux.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/random.h"

namespace tombolo::experiments {
namespace {

using simulator::Address;
using simulator::Duration;
using simulator::Time;

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

// Words to wait at, one for each thread of each core. No program stores there, so that they wake by
// hand over alone.
Address word_of(const scc::Chip& chip, simulator::CoreId core, std::uint64_t thread) {
  return chip.mpb(core) + (thread + 1) * 8;
}

}  // namespace

Linux::Linux(scc::Chip& chip, simulator::CoreId core, const LinuxShape& shape)
    : chip_(chip),
      cpu_(chip.cpu(core)),
      times_(chip.parameters().system),
      tick_(Duration::microseconds(times_.tick_microseconds)) {
  const std::uint64_t first = static_cast<std::uint64_t>(times_.kernel_megabytes) * mebibyte;
  const std::uint64_t end = static_cast<std::uint64_t>(times_.private_megabytes) * mebibyte;
  heap_.add(Address(first), end - first);
  touched_ = Address(first);
  Random random(shape.seed ^ (core.index() + 1) * 0x9e3779b97f4a7c15);
  phase_ = Duration::ticks(
      static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(tick_.in_ticks())));
  threads_.resize(shape.threads + 1);
}

void Linux::start(Body program) {
  for (std::size_t n = 0; n < threads_.size(); ++n) {
    Thread& thread = threads_[n];
    thread.word = word_of(chip_, cpu_.id(), n);
    thread.scratch = cpu_.allocate_private(256);
  }
  threads_[0].body = std::move(program);
  threads_[0].alive = true;
  running_ = &threads_[0];
  chip_.start(cpu_.id(), [this](scc::Cpu& cpu) {
    threads_[0].fibre = &cpu.fibre();
    threads_[0].body();
    join();
    wait([this] { return stopped_; });
    threads_[0].alive = false;
  });
  for (std::size_t n = 1; n < threads_.size(); ++n)
    chip_.simulation().spawn(fmt::format("cpu {} thread {}", cpu_.id().index(), n),
                             [this, n](simulator::Core& fibre) { run_thread(threads_[n], fibre); });
}

void Linux::run_thread(Thread& thread, simulator::Core& fibre) {
  thread.fibre = &fibre;
  while (true) {
    fibre.wait_until(thread.word, "the core", [&] { return running_ == &thread || stopped_; });
    if (running_ != &thread) return;
    thread.body();
    run_code(times_.thread);
    thread.body = nullptr;
    thread.alive = false;
    give_way();
  }
}

void Linux::stop(scc::Cpu& by) {
  by.fibre().await_turn();
  stopped_ = true;
  for (Thread& thread : threads_) {
    by.fibre().await_turn();  // one that is woken may come first
    chip_.simulation().wake(thread.word);
  }
  by.interrupt(cpu_.id());
}

// ---- Scheduler ----------------------------------------------------------------------------------

bool Linux::may_run(Thread& thread) const {
  if (!thread.alive) return false;
  if (thread.wants_core) return true;
  if (thread.ready != nullptr) return (*thread.ready)();
  return thread.wakes <= now();
}

// Those that wait or sleep come before those that compute; else in turn.
Linux::Thread* Linux::pick() {
  Thread* computing = nullptr;
  for (std::size_t i = 1; i <= threads_.size(); ++i) {
    const std::size_t n = (last_picked_ + i) % threads_.size();
    Thread& thread = threads_[n];
    if (!may_run(thread)) continue;
    if (!thread.wants_core) {
      last_picked_ = n;
      return &thread;
    }
    if (computing == nullptr) computing = &thread;
  }
  return computing;
}

Time Linux::next_wake() const {
  Time first = Time::never();
  for (const Thread& thread : threads_)
    if (thread.alive && thread.ready == nullptr) first = std::min(first, thread.wakes);
  return first;
}

// The thread that calls has named its condition, or has ended. The core idles while no thread can
// run.
void Linux::give_way() {
  while (true) {
    cpu_.fibre().await_turn();
    if (Thread* const next = pick()) {
      next->ready = nullptr;
      next->wakes = Time::never();
      next->wants_core = false;
      if (next != running_) hand_core_to(*next);
      return;
    }
    idle_since_ = now();
    const bool came = cpu_.wait_for_interrupt(next_wake());
    idle_ += now() - std::exchange(idle_since_, Time::never());
    if (came) take_interrupt();
  }
}

Duration Linux::idle(Time until) const {
  return until > idle_since_ ? idle_ + (until - idle_since_) : idle_;
}

void Linux::hand_core_to(Thread& next) {
  Thread& self = *running_;
  run_code(times_.context_switch);
  self.fibre->await_turn();
  running_ = &next;
  cpu_.run_on(*next.fibre);
  chip_.simulation().wake(next.word);
  if (self.alive) self.fibre->wait_until(self.word, "the core", [&] { return running_ == &self; });
}

void Linux::make_way_for_ready() {
  running_->wants_core = true;
  Thread* const next = pick();
  if (next == nullptr || next->wants_core) {  // this one, or one that computes as well
    running_->wants_core = false;
    return;
  }
  give_way();
}

// ---- Interrupts ---------------------------------------------------------------------------------

void Linux::take_interrupt() {
  if (in_interrupt_ || !handler_) return;
  in_interrupt_ = true;
  run_code(times_.interrupt);
  handler_();
  in_interrupt_ = false;
}

void Linux::look_around() {
  if (!in_interrupt_ && cpu_.take_interrupt()) take_interrupt();
}

void Linux::compute(Duration d) {
  Time end = now() + d;
  while (now() < end) {
    const bool came = cpu_.wait_for_interrupt(std::min(end, next_wake()));
    if (!came && now() >= end) return;
    const Time begin = now();
    if (came) take_interrupt();
    make_way_for_ready();
    end = end + (now() - begin);
  }
}

// ---- Waiting ------------------------------------------------------------------------------------

void Linux::wait(const Ready& ready) {
  look_around();
  if (ready()) return;
  running_->ready = &ready;
  give_way();
}

void Linux::sleep() {
  system_call();
  const std::int64_t tick = tick_.in_ticks();
  const std::int64_t since = (now().since_start() + phase_).in_ticks();
  running_->wakes = now() + Duration::ticks((since / tick + 1) * tick - since);
  give_way();
}

void Linux::spawn(Body body) {
  run_code(times_.thread);
  const auto free_slot = [this] {
    return std::find_if(threads_.begin(), threads_.end(),
                        [](const Thread& thread) { return !thread.alive; });
  };
  wait([&] { return free_slot() != threads_.end(); });
  Thread& thread = *free_slot();
  thread.body = std::move(body);
  thread.alive = true;
  thread.wants_core = false;
  thread.ready = nullptr;
  thread.wakes = now();
}

void Linux::join() {
  const Thread* const self = running_;
  wait([this, self] {
    return std::none_of(threads_.begin(), threads_.end(),
                        [self](const Thread& thread) { return thread.alive && &thread != self; });
  });
}

// ---- Memory -------------------------------------------------------------------------------------

// Pages that the kernel gives are zeroed by stores that no cache takes in.
void Linux::zero_pages(Address from, std::uint64_t bytes) {
  static constexpr std::array<std::byte, page_bytes> zeros{};
  for (std::uint64_t done = 0; done < bytes; done += page_bytes) {
    run_code(times_.page_fault);
    cpu_.copy_to({from + done, scc::MemoryType::dcm}, zeros.data(),
                 std::min(page_bytes, bytes - done));
    look_around();
  }
}

// As glibc's: large blocks are pages of their own, and the threshold rises when one is freed.
Status Linux::allocate(std::uint64_t bytes, Address* at) {
  run_code(times_.allocation);
  if (bytes >= map_threshold_) {
    system_call();
    TOMBOLO_TRY(heap_.allocate(bytes, at, Heap::From::above));
    zero_pages(*at, bytes);
    return {};
  }
  TOMBOLO_TRY(heap_.allocate(bytes, at));
  if (const Address end = *at + heap_.bytes_of(*at); end > touched_) {
    zero_pages(std::max(*at, touched_), end - std::max(*at, touched_));
    touched_ = end;
  }
  return {};
}

void Linux::free(Address at) {
  run_code(times_.allocation);
  const std::uint64_t bytes = heap_.bytes_of(at);
  if (bytes >= map_threshold_) {
    // The next one of that size is no longer large.
    const auto most = static_cast<std::uint64_t>(times_.map_threshold_kilobytes) << 10;
    if (bytes < most) map_threshold_ = std::max(map_threshold_, bytes + 1);
    system_call();
  }
  heap_.free(at);
}

}  // namespace tombolo::experiments
