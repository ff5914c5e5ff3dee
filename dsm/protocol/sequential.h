// SPDX-License-Identifier: Apache-2.0
// Purpose: sequential consistency over pages with a single writer: a thread that stores to a page
// has the only copy (Li and Hudak, TOCS 1989). For comparison, and for programs that synchronize by
// plain loads and stores.
//
//   home of a page:  its writer | one bit for each reader | a mutex
//
// The thread that misses holds the mutex and asks the writer, or for a store each reader, to give
// its copy up. A thread answers in poll(): before each of its accesses, and wherever it waits. One
// that does neither, since its accesses meet page faults alone, is interrupted to poll.
//
// Two threads whose instructions need the same two pages at once may take them from each other for
// ever, one page each. bring_together() ends that: one thread at a time has the turn, and keeps the
// pages that it has got until it has all.
//
// Invariants: DSQ1 a page is writable at its writer alone, and at its home out of date only then;
//                  its copies are at its writer and its readers. A page with a writer has no
//                  reader.
//             DSQ2 a thread that waits answers requests, whatever it waits for, but for the pages
//                  that it keeps while it has the turn; a thread that answers waits for nothing. It
//                  has those pages already, and waits for others, which are asked of threads
//                  without the turn. A request that it puts off makes room for those of others.
//                  Hence no circle of threads waits.
//             DSQ3 requests for a page come from the holder of its mutex, so that a thread has one
//                  request under way, and a page one.
//             DSQ4 a copy that is given up is home before the answer (R4), and is got after it
//                  (R5).
// Memory per home: 2 + n / 64 words for each page, a word for each lock, four lines.
// Thread safety: one thread for each object.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "dsm/protocol/consistency.h"
#include "dsm/protocol/page_diff.h"
#include "dsm/protocol/page_store.h"
#include "dsm/protocol/reduction.h"
#include "dsm/protocol/transport.h"
#include "sync/locks/mutex.h"

namespace tombolo::dsm {

template <Transport T, PageStore S>
class Sequential {
 public:
  using Core = typename T::Core;
  using Word = typename Core::Word;
  static constexpr const char* name = "sequential";
  static constexpr bool polls = true;

  struct Layout {
    machine::Offset pages = 0;
    machine::Offset locks = 0;
    machine::Offset request = 0;   // to this thread
    machine::Offset answers = 0;   // to this thread, counted
    machine::Offset arrivals = 0;  // at barriers; at home 0
    machine::Offset turn = 0;      // a mutex; at home 0
    typename Reduction<Core>::Layout reduction;
  };
  static Layout take(machine::SyncLayout& layout, const Shape& shape) {
    return {.pages = layout.take_lines(shape.pages_per_home() * words_per_page(shape)),
            .locks = layout.take_lines(shape.locks_per_home()),
            .request = layout.take_lines(1),
            .answers = layout.take_lines(1),
            .arrivals = layout.take_lines(1),
            .turn = layout.take_lines(1),
            .reduction = Reduction<Core>::take(layout, shape)};
  }

  Sequential(T& transport, S& store, const Layout& layout)
      : transport_(transport),
        core_(transport.core()),
        shape_(transport.shape()),
        store_(store),
        layout_(layout),
        mutex_(core_),
        reduction_(core_, layout.reduction, shape_),
        buffer_(shape_.page_bytes) {}

  // Reaches threads that do not poll of themselves; outlives this object's use.
  void interrupt_by(Interrupter& interrupter) { interrupter_ = &interrupter; }

  // ---- Accesses ---------------------------------------------------------------------------------

  Status read_miss(Page page) {
    shape_.check(page);
    TOMBOLO_TRY(make_room());
    TOMBOLO_TRY(acquire(mutex_of(page)));
    if (const std::uint64_t writer = core_.load(writer_of(page)); writer != 0) {
      const auto thread = static_cast<Thread>(writer - 1);
      TOMBOLO_TRY(ask(thread, page, Request::share));
      core_.store(writer_of(page), 0);
      set_reader(page, thread, true);
    }
    set_reader(page, core_.self(), true);
    TOMBOLO_TRY(get(page));
    mutex_.release(mutex_of(page));
    return {};
  }

  Status write_miss(Page page) {
    shape_.check(page);
    if (store_.lookup(page) == nullptr) TOMBOLO_TRY(make_room());
    // While this thread waits it may lose its copy.
    TOMBOLO_TRY(acquire(mutex_of(page)));
    const std::uint64_t writer = core_.load(writer_of(page));
    if (writer != 0) TOMBOLO_TRY(ask(static_cast<Thread>(writer - 1), page, Request::drop));
    for (Thread thread = 0; thread < shape_.threads; ++thread) {
      if (!reads(page, thread)) continue;
      set_reader(page, thread, false);
      if (thread != core_.self()) TOMBOLO_TRY(ask(thread, page, Request::drop));
    }
    core_.store(writer_of(page), std::uint64_t{core_.self()} + 1);
    if (store_.lookup(page) == nullptr) TOMBOLO_TRY(get(page));
    store_.allow_writes(page);
    mutex_.release(mutex_of(page));
    return {};
  }

  // All of these are as the program needs them when it returns, at once: `accesses` of one
  // instruction, to different pages. For a thread that keeps losing one while it misses the next.
  // The next poll() answers the requests that were put off: after the instruction.
  Status bring_together(std::span<const Access> accesses) {
    TOMBOLO_TRY(acquire(turn()));
    for (const Access& access : accesses) {
      TOMBOLO_TRY(bring(access));
      kept_.push_back(access.page);
    }
    kept_.clear();
    mutex_.release(turn());
    return {};
  }

  // Each store is seen by all at once: there is nothing to note.
  void record(Page page, std::size_t, std::size_t) { shape_.check(page); }

  Status evict(Page page) {
    std::erase(kept_, page);
    TOMBOLO_TRY(acquire(mutex_of(page)));
    // Another thread may have asked for it meanwhile.
    if (store_.lookup(page) != nullptr) {
      if (store_.writable(page)) {
        TOMBOLO_TRY(bring_home(page));
        core_.store(writer_of(page), 0);
      } else {
        set_reader(page, core_.self(), false);
      }
      store_.invalidate(page);
    }
    mutex_.release(mutex_of(page));
    return {};
  }

  // Answers a request, if there is one, and those that were put off. Allocates nothing but in
  // bring_together(): it may interrupt the program anywhere.
  Status poll() {
    TOMBOLO_TRY(answer_late());
    const std::uint64_t request = core_.load(word(core_.self(), layout_.request));
    if (request == 0) return {};
    const bool later = keeps(page_of(request));
    if (!later) TOMBOLO_TRY(give_up(request));
    // The next one may ask, and this one is answered.
    core_.store(word(core_.self(), layout_.request), 0);
    if (later)
      put_off_.push_back(request);
    else
      tell(request);
    return {};
  }

  // ---- Synchronization --------------------------------------------------------------------------

  Status begin_span(Lock lock) {
    shape_.check_lock(lock);
    TOMBOLO_CHECK(!holds(lock), "begin_span: this thread holds lock {} already", lock);
    TOMBOLO_TRY(acquire(mutex_of_lock(lock)));
    held_.push_back(lock);
    return {};
  }
  Status try_begin_span(Lock lock, bool& taken) {
    shape_.check_lock(lock);
    taken = !holds(lock) && mutex_.try_acquire(mutex_of_lock(lock));
    if (!taken) return poll();
    held_.push_back(lock);
    return {};
  }
  Status end_span(Lock lock) {
    shape_.check_lock(lock);
    TOMBOLO_CHECK(holds(lock), "end_span: this thread does not hold lock {}", lock);
    std::erase(held_, lock);
    mutex_.release(mutex_of_lock(lock));
    return {};
  }

  Status barrier() {
    TOMBOLO_CHECK(held_.empty(), "barrier: this thread holds {} locks", held_.size());
    return meet();
  }

  // Each store is seen by all at once.
  Status tell() { return poll(); }
  Status learn() { return poll(); }

  template <class V, class Combine>
  Status reduce(V& value, Combine&& combine) {
    return reduction_.reduce(value, combine, [this] { return meet(); });
  }

  // No thread asks for a page when all have given up theirs.
  Status close() {
    TOMBOLO_CHECK(held_.empty(), "close: this thread holds {} locks", held_.size());
    for (const Page page : store_.cached()) TOMBOLO_TRY(evict(page));
    return meet();
  }

 private:
  enum class Request : std::uint8_t { share, drop };
  static constexpr std::uint64_t kind_bit = std::uint64_t{1} << 47;
  static constexpr std::uint64_t bits = 64;
  static std::size_t words_per_page(const Shape& shape) {
    return 2 + (shape.threads + bits - 1) / bits;
  }

  // ---- Words ------------------------------------------------------------------------------------

  Word word(Thread home, machine::Offset offset, std::size_t index = 0) {
    return core_.word({home, offset + index * sizeof(std::uint64_t)});
  }
  Word word_of(Page page, std::size_t index) {
    return word(shape_.home_of(page), layout_.pages,
                shape_.place_of(page) * words_per_page(shape_) + index);
  }
  Word mutex_of(Page page) { return word_of(page, 0); }
  Word writer_of(Page page) { return word_of(page, 1); }
  Word turn() { return word(0, layout_.turn); }
  Word mutex_of_lock(Lock lock) {
    return word(shape_.home_of_lock(lock), layout_.locks, shape_.place_of_lock(lock));
  }

  // By the holder of the page's mutex.
  bool reads(Page page, Thread thread) {
    return (core_.load(word_of(page, 2 + thread / bits)) >> thread % bits & 1) != 0;
  }
  void set_reader(Page page, Thread thread, bool is_reader) {
    const std::uint64_t bit = std::uint64_t{1} << thread % bits;
    const Word readers = word_of(page, 2 + thread / bits);
    const std::uint64_t now = core_.load(readers);
    core_.store(readers, is_reader ? now | bit : now & ~bit);
  }

  // ---- Requests of others -----------------------------------------------------------------------

  static Page page_of(std::uint64_t request) { return request & (kind_bit - 1); }

  Status give_up(std::uint64_t request) {
    const Page page = page_of(request);
    if (store_.writable(page)) TOMBOLO_TRY(bring_home(page));
    if ((request & kind_bit) != 0)
      store_.invalidate(page);
    else
      store_.forbid_writes(page);
    return {};
  }
  void tell(std::uint64_t request) {
    core_.fetch_add(word(static_cast<Thread>((request >> 48) - 1), layout_.answers), 1);
  }

  bool keeps(Page page) const { return std::ranges::find(kept_, page) != kept_.end(); }

  Status answer_late() {
    for (std::size_t i = 0; i < put_off_.size();) {
      if (keeps(page_of(put_off_[i]))) {
        ++i;
        continue;
      }
      TOMBOLO_TRY(give_up(put_off_[i]));
      tell(put_off_[i]);
      put_off_.erase(put_off_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return {};
  }

  // ---- Pages ------------------------------------------------------------------------------------

  Status bring(const Access& access) {
    const bool cached = store_.lookup(access.page) != nullptr;
    if (cached && (!access.write || store_.writable(access.page))) return {};
    return access.write ? write_miss(access.page) : read_miss(access.page);
  }
  Status make_room() { return store_.full() ? evict(store_.victim()) : Status(); }

  Status get(Page page) {
    TOMBOLO_TRY(transport_.get(page, buffer_));
    store_.install(page, buffer_);
    return {};
  }
  Status bring_home(Page page) {
    TOMBOLO_TRY(transport_.put(page, store_.frame(page)));
    // It is home before another thread is told so (DSQ4).
    return transport_.complete();
  }

  // ---- Waiting ----------------------------------------------------------------------------------

  // Counts the looks for an answer, whose pauses double to 20 us: an interrupt after about 5 us, in
  // which a thread that polls would have answered, then every 30 us, and after half a millisecond
  // half as often each time.
  class Patience {
   public:
    bool ends() {
      if (++looks_ < next_) return false;
      next_ += next_ < rare ? often : next_;
      return true;
    }

   private:
    static constexpr std::uint64_t first = 7;
    static constexpr std::uint64_t often = 2;
    static constexpr std::uint64_t rare = 40;
    std::uint64_t looks_ = 0;
    std::uint64_t next_ = first;
  };

  // All threads do.
  Status meet() {
    ++barriers_;
    const Word arrivals = word(0, layout_.arrivals);
    core_.fetch_add(arrivals, 1);
    return wait([&] { return core_.load(arrivals) >= barriers_ * shape_.threads; });
  }
  bool holds(Lock lock) const { return std::ranges::find(held_, lock) != held_.end(); }

  // Answers requests meanwhile (DSQ2).
  template <class Holds>
  Status wait(Holds&& holds) {
    sync::Backoff<Core> backoff(core_, {.backoff_first_ns = 100, .backoff_max_ns = 20'000});
    while (!holds()) {
      TOMBOLO_TRY(poll());
      TOMBOLO_TRY(backoff.pause());
    }
    return {};
  }

  Status acquire(Word mutex) {
    while (!mutex_.try_acquire(mutex))
      // Polls by load: a failed attempt would take the line from the holder.
      TOMBOLO_TRY(wait([&] { return core_.load(mutex) == 0; }));
    return {};
  }

  Status ask(Thread thread, Page page, Request kind) {
    const std::uint64_t message =
        (std::uint64_t{core_.self()} + 1) << 48 | (kind == Request::drop ? kind_bit : 0) | page;
    TOMBOLO_TRY(wait(
        [&] { return core_.compare_exchange(word(thread, layout_.request), 0, message) == 0; }));
    ++asked_;
    Patience patience;
    return wait([&] {
      const bool answered = core_.load(word(core_.self(), layout_.answers)) >= asked_;
      if (!answered && interrupter_ != nullptr && patience.ends()) interrupter_->interrupt(thread);
      return answered;
    });
  }

  T& transport_;
  Core& core_;
  const Shape& shape_;
  S& store_;
  Layout layout_;
  sync::SpinMutex<Core> mutex_;
  Reduction<Core> reduction_;
  PageBytes buffer_;
  Interrupter* interrupter_ = nullptr;
  std::vector<Lock> held_;
  std::vector<Page> kept_;              // while this thread has the turn
  std::vector<std::uint64_t> put_off_;  // requests for those
  std::uint64_t barriers_ = 0;
  std::uint64_t asked_ = 0;
};

}  // namespace tombolo::dsm
