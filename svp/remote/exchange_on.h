// SPDX-License-Identifier: Apache-2.0
// Purpose: the exchange between processes that share memory of a machine: a ring between any two
// of them, and a bell at each on which its first worker sleeps. Where the job has other hosts, that
// worker looks for their messages now and then: nothing wakes it for them.
// Memory: the sync words and rings of ring_link.h, two lines of sync words more, and behind the
// rings of each home its shared memory.
// Thread safety: yes, as the machine's cores are (`serves_threads`).
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "base/rounding.h"
#include "host/memory/page.h"
#include "host/waiting/doorbell.h"
#include "runtime/engines/attachment.h"
#include "svp/links/ring_link.h"
#include "svp/records/process_records.h"
#include "svp/remote/island_link.h"
#include "svp/remote/reach_on.h"
#include "svp/remote/switchboard.h"

namespace tombolo::svp {

// An exchange whose process is one of a job.
class JobExchange : public Exchange {
 public:
  // The program has ended, at process 0; and whether it has.
  virtual void end() = 0;
  virtual bool has_ended() = 0;
  virtual void site_ended(Site site, const std::string& how) = 0;
  // Conversations that are open: a message may come.
  virtual std::size_t open_calls() = 0;
  bool is_busy() { return open_calls() != 0; }
  // No message is looked for any more.
  virtual void close() = 0;
};

struct ExchangeParts {
  machine::Attachment attachment;
  runtime::Particulars particulars;
  Island island;
  HostLink* far = nullptr;              // to other hosts, if there are some
  std::vector<std::int32_t> processes;  // by site
  std::uint64_t heap_address = 0;       // of the first process's shared memory
  std::uint64_t heap_bytes = 0;         // of each
  const Heap* heap = nullptr;           // of this process
  bool copies = false;                  // the kernel copies from process to process
  std::vector<Place> places;            // of this process, by number
};

// Where the parts lie, alike in all processes.
struct ExchangeShape {
  static constexpr std::uint64_t ring_bytes = std::uint64_t{64} << 10;

  static std::uint64_t heap_offset(machine::Home sites) {
    return round_up(sites * ring_bytes, host::page_bytes());
  }
  static std::uint64_t data_bytes(machine::Home sites, std::uint64_t heap_bytes) {
    return heap_offset(sites) + heap_bytes;
  }
};

template <machine::Core C>
class ExchangeOn final : public JobExchange {
 public:
  using L = RingLink<C>;
  using R = ReachOn<C>;

  static std::size_t sync_bytes(machine::Home sites) {
    machine::SyncLayout layout(C::reserved_sync_bytes(sites));
    (void)take(layout, sites);
    return layout.bytes();
  }

  explicit ExchangeOn(ExchangeParts parts)
      : sync_(parts.attachment.sync),
        sync_bytes_(parts.attachment.sync_bytes_per_home),
        layout_(layout_for(parts.attachment.cores)),
        core_(runtime::attachment_of<C>(std::move(parts.attachment), std::move(parts.particulars))),
        island_(std::move(parts.island)),
        far_(parts.far),
        rings_(core_, layout_.link),
        reach_(core_,
               {.first = parts.heap_address,
                .part_bytes = parts.heap_bytes,
                .parts = core_.cores(),
                .offset = ExchangeShape::heap_offset(core_.cores())},
               *parts.heap, std::move(parts.processes), parts.copies),
        ringing_(rings_, *this),
        link_(ringing_, island_, far_),
        board_(link_, reach_, std::move(parts.places), *this) {}

  C& core() { return core_; }

  void open(OpenCall& call, const RemoteRecord& place, const CallPlan& plan,
            std::span<const Piece> pieces) override {
    ProcessRecords::here().remote_creates().add();
    if (Worker* const creator = Worker::here())
      creator->note(
          FamilyTrace::Event::delegate,
          {.range = {}, .place = {.kind = PlaceName::Kind::process, .number = place.site}});
    board_.open(call, place, plan, pieces);
  }
  void ask_sync(OpenCall& call, bool stopped) override { board_.ask_sync(call, stopped); }
  void told(OpenCall& call) noexcept override { board_.told(call); }
  void forget(OpenCall& call) override { board_.forget(call); }
  bool poll() override {
    const bool any = board_.pump();
    if (any && far_ != nullptr) quiet_sleeps_.store(0, std::memory_order_relaxed);  // a hint
    return any;
  }
  void wake() override { bell(core_.self()).ring(); }
  bool wakes_at_once() const override { return far_ == nullptr; }
  // relaxed (both): a hint.
  bool has_woken() override {
    return woken_.load(std::memory_order_relaxed) &&
           woken_.exchange(false, std::memory_order_relaxed);
  }

  void end() override {
    for (machine::Home home = 0; home < core_.cores(); ++home) {
      core_.store(core_.word({home, layout_.end}), 1);
      core_.notify(home);
    }
    // This process may end at once.
    if constexpr (machine::DefersStores<C>) core_.settle();
    if (far_ != nullptr) board_.alone([this] { far_->say_end(); });
  }
  bool has_ended() override {
    return core_.load(core_.word({core_.self(), layout_.end})) != 0 ||
           (far_ != nullptr && far_->has_ended());
  }
  void close() override { board_.close(); }
  void site_ended(Site site, const std::string& how) override { board_.site_ended(site, how); }
  std::size_t open_calls() override { return board_.open_calls(); }

 private:
  struct Layout {
    typename L::Layout link;
    machine::Offset bell = 0;
    machine::Offset end = 0;
  };
  // Messages with a ring of the receiver's bell.
  class Ringing {
   public:
    Ringing(L& link, ExchangeOn& exchange) : link_(link), exchange_(exchange) {}
    Site self() const { return link_.self(); }
    Site sites() const { return link_.sites(); }
    std::size_t most_bytes() const { return link_.most_bytes(); }
    bool has_arrivals() { return link_.has_arrivals(); }
    bool try_send(const VirtualChannel& to, Kind kind, std::span<const std::byte> bytes) {
      if (!link_.try_send(to, kind, bytes)) return false;
      if constexpr (machine::DefersStores<C>) exchange_.core_.settle();
      exchange_.ring(exchange_.bell(to.peer));
      return true;
    }
    template <class Take>
    bool poll(Take&& take) {
      return link_.poll(std::forward<Take>(take));
    }
    Status wait() { return link_.wait(); }

   private:
    L& link_;
    ExchangeOn& exchange_;
  };
  static_assert(Link<Ringing>);

  static Layout take(machine::SyncLayout& layout, machine::Home sites) {
    const auto link = L::take(layout, sites, 0, ExchangeShape::ring_bytes);
    return {.link = link, .bell = layout.take_lines(8), .end = layout.take_lines(1)};
  }
  static Layout layout_for(machine::Home sites) {
    machine::SyncLayout layout(C::reserved_sync_bytes(sites));
    return take(layout, sites);
  }

  // A hint, so that it need not be a word of the machine (DB1 of doorbell.h).
  host::Doorbell& bell(machine::Home home) {
    return *reinterpret_cast<host::Doorbell*>(sync_ + home * sync_bytes_ + layout_.bell);
  }
  void ring(host::Doorbell& bell) {
    // relaxed (both): a hint.
    if (bell.sleepers.load(std::memory_order_relaxed) != 0)
      woken_.store(true, std::memory_order_relaxed);
    bell.ring();
  }
  void sleep_unless(bool (*ready)(void*), void* on) override {
    bell(core_.self()).sleep(sleep_us(), [&] { return ready(on) || board_.has_arrivals(); });
  }
  // A message of another host waits for the end of the sleep; where none came for long, for longer.
  std::uint32_t sleep_us() {
    if (far_ == nullptr) return longest_sleep_us;
    // relaxed: as above
    const std::uint32_t quiet = quiet_sleeps_.fetch_add(1, std::memory_order_relaxed);
    return std::clamp(quiet / 4, shortest_sleep_us, longest_sleep_us);
  }

  static constexpr std::uint32_t longest_sleep_us = 1000;
  static constexpr std::uint32_t shortest_sleep_us = 50;

  std::byte* sync_;
  std::size_t sync_bytes_;
  Layout layout_;
  C core_;
  Island island_;
  HostLink* far_;
  L rings_;
  R reach_;
  Ringing ringing_;
  IslandLink<Ringing> link_;
  Switchboard<IslandLink<Ringing>, R> board_;
  std::atomic<std::uint32_t> quiet_sleeps_{0};
  std::atomic<bool> woken_{false};
};

}  // namespace tombolo::svp
