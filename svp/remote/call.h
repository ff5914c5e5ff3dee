// SPDX-License-Identifier: Apache-2.0
// Purpose: the creator's part of a remote family: the request, the data, values of channels, the
// request to sync, and kills; then the completion with the output.
//
//   Call call(channel, {.function = &remote<&f>.entry(), .range = {.limit = 10}}, pieces);
//   call.open(reach);
//   while (!call.advance(link)) ...                    // create; goes on without it, too
//   call.ask_sync(reach);
//   while (!call.ended()) { call.advance(link); link.poll([&](const Message& m) {
//                              return call.take(m, reach); }); }
//
// Invariants: CLL1 the other site sends nothing before it has the request to sync, or a wish for
//                 the value of a channel and then that alone: so a message never waits in the link
//                 for a creator that waits for another family (002 section 5.2.2). Where the
//                 creator's site takes each message when it comes, a short answer is sent unasked:
//                 there and back are two messages, not three.
//             CLL2 the creator's memory is as its last store left it when the request is sent
//                 (publish), and as the family left it when ended() becomes true (refresh). Memory
//                 is consistent at these two points alone, but for output that goes from memory to
//                 memory: an answer that has come unasked is kept until the creator asks.
//             CLL3 the call ends with exactly one completion, whatever is asked meanwhile.
//                 Where there is no memory for it, it is counted to its end, and the call fails.
//             CLL4 values that the parent writes to channels go before the request to sync: that
//                 closes the other channels there.
//             CLL5 a kill goes behind the request, and not at all after the end. One that is on its
//                 way when the family ends comes before the next request of that number.
// Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "svp/exit.h"
#include "svp/range.h"
#include "svp/remote/function.h"
#include "svp/remote/notes.h"
#include "svp/remote/transport.h"

namespace tombolo::svp {

// Numbers of a site's places.
inline constexpr std::uint32_t default_place = 0;
inline constexpr std::uint32_t exclusive_place = 1;

// In front of the block of a request.
struct RequestHead {
  std::uint64_t function = 0;
  std::uint64_t digest = 0;
  Index start = 0;
  Index limit = 1;
  Index step = 1;
  std::uint64_t block = 0;
  std::uint32_t place = 0;  // of the other site's
  std::uint16_t transport = 0;
  std::uint16_t unasked = 0;      // 1: the completion may come before the request to sync
  std::uint64_t bytes = 0;        // of the head and the block
  std::uint64_t later_bytes = 0;  // of arrays, in messages after it
};

// In front of the block of a completion, and of the text of an error.
struct CompletionHead {
  ExitReason reason = ExitReason::done;
  std::uint32_t text_bytes = 0;
  std::int64_t value = 0;
  std::uint64_t bytes = 0;  // of the head, the text and the block
};

struct Completion {
  ExitReason reason = ExitReason::done;
  std::int64_t value = 0;
  std::string text{};  // of an error
};

// One that was killed or has failed leaves its output as it was, but for memory shown by address.
constexpr bool has_output(ExitReason reason) {
  return reason == ExitReason::done || reason == ExitReason::broken;
}

struct CallPlan {
  const FunctionEntry* function = nullptr;
  Range range{};
  std::uint32_t place = 0;
  Transport transport = Transport::best;
  bool takes_unasked = false;  // the creator's site takes each message when it comes
};

class Call {
 public:
  // The pieces are the creator's memory, and stay.
  Call(const VirtualChannel& channel, const CallPlan& plan, std::span<const Piece> pieces)
      : channel_(channel), plan_(plan) {
    pieces_.reserve(pieces.size());
    for (const Piece& piece : pieces) pieces_.push_back({.piece = piece});
  }

  const VirtualChannel& channel() const { return channel_; }

  // Null, or an argument that this way of travelling has no form for.
  const Piece* unfit() const {
    if (plan_.transport != Transport::stream) return nullptr;
    for (const Routed& routed : pieces_)
      if (routed.piece.form->xdr == nullptr) return &routed.piece;
    return nullptr;
  }
  // Likewise of a channel.
  bool has_unfit_channel() const {
    return encoded() && std::ranges::any_of(plan_.function->channels, [](const ChannelForm& form) {
             return form.value.xdr == nullptr;
           });
  }

  // Writes the request. Memory that travels by address is published, written or not: no old line of
  // the creator's may reach memory later, over the family's output.
  template <Reach R>
  void open(R& reach) {
    for (Routed& routed : pieces_) {
      routed.way = way_of(plan_.transport, routed.piece, channel_.peer, reach);
      routed.address = reinterpret_cast<std::uintptr_t>(routed.piece.at);
      if (routed.way == Way::address) reach.publish(routed.piece.at, routed.piece.bytes());
    }
    unasked_ = plan_.takes_unasked && plan_.function->channels.empty() && has_short_answer();
    write_request();
    sending_.begin(Kind::request, block_.all(), pieces_, Leg::there);
    if (!plan_.function->channels.empty())
      channels_ = std::make_unique<Channels>(NoteForm(plan_.function->channels, encoded()));
  }

  // The parent has written to a channel, by its number; once each.
  void tell_value(std::uint32_t channel, const void* value) {
    if (sync_ != Asked::no || std::exchange(channels_->of[channel].told, true)) return;
    channels_->out.tell_value(channel, value);
  }
  // The parent waits for the value of the last thread. That comes with the end in any case.
  void want_last(std::uint32_t channel) {
    if (sync_ != Asked::no || std::exchange(channels_->of[channel].wanted, true)) return;
    channels_->out.tell(channel, News::wanted);
  }
  // The output of an answer that has come before is with the creator when it returns.
  template <Reach R>
  void ask_sync(R& reach) {
    if (sync_ == Asked::no) sync_ = unasked_ ? Asked::sent : Asked::yes;
    settle(reach);
  }
  // Of a call that takes no answer unasked.
  void ask_sync() {
    TOMBOLO_CHECK(!unasked_, "call: its answer may have come; ask_sync(reach)");
    sync_ = sync_ == Asked::no ? Asked::yes : sync_;
  }
  void ask_kill() { kill_ = kill_ == Asked::no ? Asked::yes : kill_; }

  // Sends all that is due, as far as the link has room. True: nothing is left to be sent.
  template <Link L>
  bool advance(L& link) {
    if (ended_ || is_answered()) return true;
    return advance_request(link) && tell_kill(link) && advance_notes(link) && tell_sync(link);
  }

  // A message that has arrived. False: it is of another virtual channel. `use` is called with each
  // Note that has come.
  template <Reach R, class Use>
  bool take(const Message& message, R& reach, Use&& use) {
    if (!(message.channel == channel_)) return false;
    if (message.kind == Kind::completion)
      take_completion(message.bytes);
    else if (message.kind == Kind::data)
      note(receiving_.take(message.bytes));
    else if (message.kind == Kind::notes)
      note(channels_ != nullptr && channels_->in.take(message.bytes, use));
    settle(reach);
    return true;
  }
  // The answer has come unasked: nothing else is to come, but for the end of arrays that the link
  // moves.
  bool is_answered() const { return unasked_ && whole_; }
  template <Reach R>
  bool take(const Message& message, R& reach) {
    return take(message, reach, [](const Note&) {});
  }
  // After take(): where the link moves arrays, says where those of the output go.
  template <Link L>
  void expect(L& link) {
    if constexpr (MovesArrays<L>) {
      if (!complete_ || ended_ || expecting_ || !link.moves(channel_)) return;
      expecting_ = true;
      receiving_.expect(link, channel_);
    }
  }
  bool ended() const { return ended_; }
  const Completion& completion() const { return completion_; }

  // The other site is gone, or cannot be reached: no message comes any more.
  template <Reach R>
  void fail(std::string text, R& reach) {
    completion_ = {.reason = ExitReason::failed, .value = 0, .text = std::move(text)};
    if (!ended_) end(reach);
  }

 protected:  // for a broken twin
  enum class Asked : std::uint8_t { no, yes, sent };
  template <Link L>
  bool advance_request(L& link) {
    if (!sent_) sent_ = sending_.advance(link, channel_);
    return sent_;
  }
  template <Link L>
  bool tell_kill(L& link) {
    return tell(link, kill_, Kind::kill);
  }
  template <Link L>
  bool advance_notes(L& link) {
    return channels_ == nullptr || channels_->out.advance(link, channel_);
  }
  template <Link L>
  bool tell_sync(L& link) {
    return tell(link, sync_, Kind::sync);
  }

 private:
  struct Channels {
    struct One {
      bool told = false;
      bool wanted = false;
    };
    explicit Channels(const NoteForm& form) : out(form), in(form), of(form.channels()) {}
    NotesOut out;
    NotesIn in;
    std::vector<One> of;
  };

  bool encoded() const { return plan_.transport == Transport::stream; }

  // Its block fits in the room that the call has in any case.
  bool has_short_answer() const {
    return bytes_in_messages(pieces_, Leg::back) == 0 &&
           sizeof(CompletionHead) + bytes_in_block(pieces_, Leg::back, encoded()) <= Bytes::few;
  }
  void write_request() {
    block_.grow(sizeof(RequestHead));  // written last
    BlockWriter(block_, encoded()).write(pieces_, Leg::there);
    RequestHead head{.function = plan_.function->id,
                     .digest = plan_.function->digest,
                     .start = plan_.range.start,
                     .limit = plan_.range.limit,
                     .step = plan_.range.step,
                     .block = plan_.range.block,
                     .place = plan_.place,
                     .transport = static_cast<std::uint16_t>(plan_.transport),
                     .unasked = static_cast<std::uint16_t>(unasked_ ? 1 : 0),
                     .bytes = block_.size(),
                     .later_bytes = bytes_in_messages(pieces_, Leg::there)};
    block_.overwrite(0, &head, sizeof head);
  }

  template <Link L>
  bool tell(L& link, Asked& asked, Kind kind) {
    if (asked != Asked::yes) return true;
    if (!link.try_send(channel_, kind, {})) return false;
    asked = Asked::sent;
    return true;
  }

  template <Reach R>
  void settle(R& reach) {
    if (whole_ && !complete_ && (!unasked_ || sync_ != Asked::no)) read_answer();
    if (complete_ && receiving_.complete() && !ended_) end(reach);
  }
  void take_completion(std::span<const std::byte> bytes) {
    if (!answering_) block_.clear();
    answering_ = true;
    keep(bytes);
    CompletionHead head;
    whole_ = BytesReader(block_.all()).take(head) && head.bytes <= come_;
  }
  void read_answer() {
    CompletionHead head;
    BytesReader reader(block_.all());
    reader.take(head);
    complete_ = true;
    completion_.reason = head.reason;
    completion_.value = head.value;
    if (!no_memory_) read_completion(head, reader);
    if (has_output(head.reason)) receiving_.begin(pieces_, Leg::back);
  }
  void keep(std::span<const std::byte> bytes) {
    come_ += bytes.size();
    try {
      if (!no_memory_) block_.append(bytes.data(), bytes.size());
    } catch (const std::bad_alloc&) {
      no_memory_ = true;
    }
    if (!no_memory_ || block_.size() >= sizeof(CompletionHead)) return;
    // The head has room without an allocation (Bytes::few).
    block_.append(bytes.data(), std::min(bytes.size(), sizeof(CompletionHead) - block_.size()));
  }
  void read_completion(const CompletionHead& head, BytesReader& reader) {
    const std::byte* const text = reader.bytes(head.text_bytes);
    try {
      if (text != nullptr)
        completion_.text.assign(reinterpret_cast<const char*>(text), head.text_bytes);
    } catch (const std::bad_alloc&) {
      no_memory_ = true;
    }
    if (!has_output(head.reason)) return;
    const std::size_t before = sizeof head + head.text_bytes;
    note(text != nullptr &&
         BlockReader(block_.all().subspan(before), encoded()).read(pieces_, Leg::back, [](Routed&) {
         }));
  }
  void note(bool fits) {
    if (!fits) misfit_ = true;
  }
  template <Reach R>
  void end(R& reach) {
    if (misfit_)
      completion_ = {.reason = ExitReason::failed,
                     .value = 0,
                     .text = "the output does not fit the description"};
    if (no_memory_)
      completion_ = {.reason = ExitReason::failed, .value = 0, .text = "no memory for the output"};
    for (const Routed& routed : pieces_)
      if (routed.way == Way::address && comes_out(routed.piece.form->flow))
        reach.refresh(routed.piece.at, routed.piece.bytes());
    ended_ = true;
  }

  VirtualChannel channel_;
  CallPlan plan_;
  std::vector<Routed> pieces_;
  Bytes block_;
  Sending sending_;
  Receiving receiving_;
  std::unique_ptr<Channels> channels_;  // null: the function has none
  Completion completion_;
  Asked sync_ = Asked::no;
  Asked kill_ = Asked::no;
  bool sent_ = false;
  bool unasked_ = false;
  std::uint64_t come_ = 0;  // bytes of the completion
  bool answering_ = false;
  bool no_memory_ = false;  // for all of these
  bool whole_ = false;      // the completion has come,
  bool complete_ = false;   // and is read
  bool misfit_ = false;
  bool expecting_ = false;
  bool ended_ = false;
};

}  // namespace tombolo::svp
