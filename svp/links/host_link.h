// SPDX-License-Identifier: Apache-2.0
// Purpose: a link over the messages of a host MPI, for sites that share no memory. Messages are
// letters; arrays go from memory to memory, apart from them (MovesArrays of link.h). Letters that a
// receiver has no use for yet are kept here, so that they hold up no other channel (LNK2).
//
// Invariants: HLK1 of a site's messages at most `window_bytes` are on their way to another one, or
//                 wait there: each letter tells how much its sender has taken. A receiver that
//                 sends nothing else tells it after a quarter of that.
//             HLK2 an array's tag is its channel's at both sides, one for each direction; channels
//                 are numbered anew only after all arrays of theirs have moved.
//             HLK3 a process of this host that lives is never lost by its silence to this one, as
//                 one that a debugger has stopped: its families would write to memory that their
//                 creators have got back. The kernel says whether it lives. One of another host
//                 that process 0 takes for lost is lost to all, those of its host as well.
//             HLK4 a site that is lost gets no message, and none of its arrays moves. If one cannot
//                 be stopped, the program ends with a message: its memory must not be given away.
// Thread safety: one thread at a time, but for has_ended().
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "host/processes/process.h"
#include "svp/links/beats.h"
#include "svp/links/link.h"
#include "svp/links/mpi/host_messages.h"

namespace tombolo::svp {

class HostLink {
 public:
  using Clock = Beats::Clock;

  struct Process {
    std::string name;                // "process 12 on host a"
    host::ProcessName of_this_host;  // {}: it is of another one
  };
  // `processes` by site.
  HostLink(HostMessages& messages, std::vector<Process> processes);

  Site self() const { return static_cast<Site>(messages_.rank()); }
  Site sites() const { return static_cast<Site>(messages_.size()); }
  std::size_t most_bytes() const;

  bool try_send(const VirtualChannel& to, Kind kind, std::span<const std::byte> bytes);
  template <class Take>
  bool poll(Take&& take, Clock::time_point now = Clock::now()) {
    Taking<Take> taking(take);
    return take_all(taking, now);
  }
  // A look for messages is all that can be done. They are kept for the next poll(); but the
  // room that other sites tell of counts at once.
  Status wait();

  // ---- Arrays -----------------------------------------------------------------------------------

  bool moves(const VirtualChannel& channel) const { return tag_of(channel) < messages_.tags(); }
  void move_out(const VirtualChannel& channel, std::span<const std::byte> from);
  void move_in(const VirtualChannel& channel, std::span<std::byte> to);
  void move_away(const VirtualChannel& channel, std::uint64_t bytes);
  bool is_moving(const VirtualChannel& channel) const { return lanes_.contains(key_of(channel)); }

  // ---- Ends -------------------------------------------------------------------------------------

  struct Loss {
    Site site = 0;
    std::string how;
  };
  // A site that is gone: once each.
  std::optional<Loss> next_loss();
  // All sites are still there.
  bool is_whole() const { return whole_; }
  // At site 0: the program has ended; and at the others, whether it has.
  void say_end();
  bool has_ended() const { return ended_.load(std::memory_order_acquire); }

 private:
  enum class Word : std::uint32_t { message, taken, beat, lost, end };

  // In front of the bytes of a letter.
  struct Head {
    Word word = Word::message;
    std::uint32_t kind = 0;
    std::uint32_t opener = 0;
    std::uint32_t number = 0;  // of the channel; Word::lost: the site
    std::uint64_t taken = 0;   // bytes of the receiver's letters, in all
  };
  struct Peer {
    std::uint64_t sent = 0;
    std::uint64_t given_back = 0;  // of that, as it has told
    std::uint64_t taken = 0;       // of its letters
    std::uint64_t told = 0;        // of that
    bool lost = false;
  };
  class Taker {
   public:
    virtual bool take(const Message& message) = 0;

   protected:
    ~Taker() = default;
  };
  template <class Take>
  class Taking final : public Taker {
   public:
    explicit Taking(Take& take) : take_(take) {}
    bool take(const Message& message) override { return take_(message); }

   private:
    Take& take_;
  };

  // A message that was not taken when it came.
  struct Left {
    VirtualChannel channel;
    Kind kind = Kind::request;
    std::vector<std::byte> bytes;
    bool letter = true;  // else an array
  };
  // The arrays of a channel that move, in their order.
  struct Part {
    HostMessages::Transfer transfer = 0;
    std::byte* to = nullptr;  // null: it goes out
    std::unique_ptr<std::byte[]> unwanted{};
  };
  using Lane = std::deque<Part>;
  using Key = std::tuple<Site, Site, std::uint32_t>;  // opener, peer, number
  static Key key_of(const VirtualChannel& channel) {
    return {channel.opener, channel.peer, channel.number};
  }
  static VirtualChannel channel_of(const Key& key) {
    return {.opener = std::get<0>(key), .peer = std::get<1>(key), .number = std::get<2>(key)};
  }

  // The larger one of its two tags; that of arrays to the opener.
  static std::uint64_t tag_of(const VirtualChannel& channel) {
    return 2 * std::uint64_t{channel.number} + 1;
  }
  std::uint32_t tag(const VirtualChannel& channel, bool out) const {
    const bool to_opener = (channel.opener == self()) != out;
    return static_cast<std::uint32_t>(tag_of(channel) - (to_opener ? 0 : 1));
  }

  void send(Site to, Head head, std::span<const std::byte> bytes);
  bool take_all(Taker& taker, Clock::time_point now);
  bool take_letter(const HostMessages::Letter& letter, Taker& taker);
  void show(const Message& message, bool letter, Taker& taker);
  bool show_left(Taker& taker);
  void note_taken(Site from, std::size_t bytes);
  bool take_arrays(Taker& taker);
  bool take_arrays_of(const Key& key, Taker& taker);
  void look_at_peers(Clock::time_point now);
  bool lives_here(Site site) const;
  void look_at_trouble();
  void lose(Site site, const std::string& how);
  void tell_lost(Site site, const std::string& how);
  void drop_arrays(Site site, const std::string& how);
  [[noreturn]] void end_process(const std::string& how) const;

  HostMessages& messages_;
  std::vector<Process> processes_;
  std::vector<Peer> peers_;
  Beats beats_;
  std::deque<Left> left_;
  std::map<Key, Lane> lanes_;
  Key last_looked_at_{};
  std::deque<Loss> losses_;
  bool whole_ = true;
  std::atomic<bool> ended_{false};
};
static_assert(MovesArrays<HostLink>);

}  // namespace tombolo::svp
