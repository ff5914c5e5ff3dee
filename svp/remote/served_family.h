// SPDX-License-Identifier: Apache-2.0
// Purpose: a family that another process has created here: runs on the workers of this process as
// any other, and reports its end to the exchange.
//
// Invariants: SVF1 it is kept by the exchange, from its first message until its completion is sent,
//                 or its creator's process has ended.
// Thread safety: the exchange's, under its lock; the rest by the worker that runs it.
#pragma once

#include <optional>

#include "svp/family/family_base.h"
#include "svp/family/threads.h"
#include "svp/places/place.h"
#include "svp/remote/change_list.h"
#include "svp/remote/service.h"

namespace tombolo::svp {

class ServedFamily;

// The exchange, as such a family sees it.
class Host {
 public:
  virtual ~Host() = default;
  virtual Status fetch(Service& service) = 0;
  // All threads have ended.
  virtual void ended(ServedFamily& family) = 0;
  // By any thread, under the lock of a channel: something has happened in one of the family's.
  virtual void told(ServedFamily& family) noexcept = 0;
};

// The channels of such a family, to its threads: the ends are the frame's.
struct ServedChannels {
  class End {
   public:
    explicit End(ServedChannels& channels) : ends_(channels.ends) {}
    void begin(Index index, bool is_first, bool is_last) {
      for (FamilyEnd* const end : ends_) end->begin(index, is_first, is_last);
    }
    void pass_on() {
      for (FamilyEnd* const end : ends_) end->pass_on();
    }
    void end(bool early) {
      for (FamilyEnd* const end : ends_) end->end(early);
    }

   private:
    std::span<FamilyEnd* const> ends_;
  };
  using Value = std::byte;

  void hand_over() {}     // its own
  void close_parent() {}  // the service does
  std::span<FamilyEnd* const> ends{};
};
static_assert(OrderedChannel<ServedChannels>);

class ServedFamily final : public FamilyBase, public ChannelListener {
 public:
  ServedFamily(Host& host, const VirtualChannel& channel)
      : FamilyBase(&ServedFamily::run_taken), service(channel), host_(host) {}
  ~ServedFamily() {
    if (queued != 0) at_->drop_turn();
  }

  // All data have come: some worker of the place runs it.
  void start(const Place& place);
  bool started() const { return at_.has_value(); }
  // Once it is started and was stopped.
  void leave_queue() { at_->leave_queue(*this); }
  // The end, as it is sent; once, after all threads have ended and no kill may come any more.
  Completion completion();
  void channel_changed() noexcept override { host_.told(*this); }

  Service service;
  bool takes_kills = true;
  bool over = false;      // the service has ended
  bool unsent = false;    // listed as such
  bool orphaned = false;  // its creator's process has ended
  ChangeLink<ServedFamily> told;

 private:
  struct Body {
    ServedFamily* family;
    void operator()(Index index) const { family->service.frame().call(index); }
    void operator()(Index index, ServedChannels::End&) const { (*this)(index); }
  };
  void run_threads(Worker& worker);
  static void body(Task& task, Worker& worker);
  static void run_taken(Task& task, Worker& worker);
  static void report(Task& task);

  Host& host_;
  std::optional<AtPlace> at_;
  std::optional<DividedThreads<Body>> threads_;
  ServedChannels channels_;
  std::optional<OrderedThreads<Body, ServedChannels>> threads_in_order_;
};

}  // namespace tombolo::svp
