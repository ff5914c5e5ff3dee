// SPDX-License-Identifier: Apache-2.0
// Purpose: the part of the site where a remote family runs: takes the request, the data and the
// parent's values of channels, has the family run by its threads, and sends the completion
// with the output and the last thread's values once the creator has asked for it, or takes it
// unasked.
//
//   Service service(channel);                          // a request has come on an unknown channel
//   ... link.poll([&](const Message& m) { return service.take(m, reach); })
//   if (service.ready()) {
//     const Status there = service.fetch(reach);
//     ... service.frame().call(index) for each index of service.range() ...
//     service.end(reach, {.reason = ExitReason::done});
//   }
//   while (!service.advance(link)) ...                 // the channel is closed
//
// Invariants: SVC1 nothing is sent before the request to sync has come, but values of channels that
//                 the creator wants, and completions that it takes unasked (CLL1). Where the former
//                 cannot be known, as the function is not there, the completion comes instead.
//             SVC2 memory that was shown by address is refreshed by fetch(), and published by
//                 end(), before the completion is sent.
//             SVC3 a request that cannot be served is answered by `failed` with the cause, after
//                 all its data have come. One without memory for them, or for the output, is
//                 answered so, too.
// Thread safety: one thread at a time; fetch(), frame() and end() may be used by another one than
// take() and advance() as long as those do not wait for them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "svp/remote/call.h"

namespace tombolo::svp {

class Service {
 public:
  explicit Service(const VirtualChannel& channel) : channel_(channel) {}
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  const VirtualChannel& channel() const { return channel_; }

  // Whether a message on a channel that has no service begins one. A kill does not: it has crossed
  // the completion (CLL5), and is dropped.
  static bool begins(const Message& message) { return message.kind == Kind::request; }

  // A message that has arrived. False: it is of another channel.
  bool take(const Message& message) {
    if (!(message.channel == channel_)) return false;
    try {
      if (message.kind == Kind::request) take_request(message.bytes);
      if (message.kind == Kind::data) take_data(message.bytes);
      if (message.kind == Kind::notes) take_notes(message.bytes);
    } catch (const std::bad_alloc&) {
      refused_ = no_memory();
    }
    if (message.kind == Kind::sync) take_sync();
    if (message.kind == Kind::kill) kill_asked_ = true;
    return true;
  }

  // After take(): where the link moves arrays, says where those of the input go.
  template <Link L>
  void expect(L& link) {
    if constexpr (MovesArrays<L>) {
      if (!parsed_ || later_bytes_ == 0 || !link.moves(channel_)) return;
      if (expecting_) return;
      if (refused_.ok()) {
        expecting_ = true;
        receiving_.expect(link, channel_);
      } else if (!link.is_moving(channel_)) {
        link.move_away(channel_, later_bytes_);
      }
    }
  }

  // All data have come, and the family may run; or it is refused: then fetch() says why.
  bool ready() const { return parsed_ && later_bytes_ == 0; }
  bool kill_asked() const { return kill_asked_; }
  bool ended() const { return ended_; }
  // Instead of the family's run: fetch() fails with this.
  void refuse(std::string_view why) {
    if (refused_.ok()) refused_ = Status::unsupported(why);
  }
  // Of a family that is ready.
  const Range& range() const { return range_; }
  std::uint32_t place() const { return place_; }
  Frame& frame() { return *frame_; }
  // Its threads run in order: it has shared channels.
  bool is_ordered() const {
    return channels_ != nullptr &&
           std::ranges::any_of(channels_->form,
                               [](const ChannelForm& form) { return form.shared; });
  }
  // The family's ends of its channels; none if it was refused.
  std::span<FamilyEnd* const> channels() const {
    return channels_ == nullptr ? std::span<FamilyEnd* const>() : frame_->channels();
  }

  // Fetches the data that did not come in messages. An error is the family's: it is not to run, and
  // end() is called with it (refusal()).
  template <Reach R>
  Status fetch(R& reach) {
    if (!refused_.ok()) return refused_;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      Routed& routed = pieces_[i];
      TOMBOLO_TRY(fetch_one(routed, reach));
      frame_->pieces()[i] = routed.piece;
    }
    frame_->bind();
    return {};
  }

  // The family has ended, or was refused. Output that goes from memory to memory is with the
  // creator when it returns.
  template <Reach R>
  void end(R& reach, const Completion& completion) {
    Completion answer = completion;
    if (Status status = give_back(reach, has_output(answer.reason)); !status.ok())
      answer = refusal(status);
    if (!notes_fit_.load() && answer.reason != ExitReason::failed)
      answer = refusal(Status::unsupported("the notes of a channel do not fit the description"));
    try {
      write_completion({.reason = answer.reason, .value = answer.value}, answer.text);
    } catch (const std::bad_alloc&) {  // this one needs none (Bytes::few)
      write_completion({.reason = ExitReason::failed}, "no memory for the output");
    }
    ended_ = true;
  }
  static Completion refusal(const Status& status) {
    return {.reason = ExitReason::failed, .value = 0, .text = status.message()};
  }

  // Sends the values that the creator wants, as far as they and room in the link are there; also
  // while the family runs. True: none is left to be sent.
  template <Link L>
  bool advance_channels(L& link, bool over = false) {
    if (channels_ == nullptr) return true;
    for (std::uint32_t i = 0; i < channels_->of.size(); ++i)
      if (channels_->of[i].wanted) answer_channel(i, over);
    return channels_->out.advance(link, channel_);
  }
  // Sends the completion once it may, as far as the link has room. True: all is sent, and the
  // virtual channel is closed.
  template <Link L>
  bool advance(L& link) {
    if (!advance_channels(link, ended_)) return false;
    return (sync_asked_ || !notes_fit_.load()) && answer(link);
  }

 protected:  // for broken twins
  void want_all() {
    if (channels_ == nullptr) return;
    for (auto& channel : channels_->of) channel.wanted = true;
  }
  template <Link L>
  bool answer(L& link) {
    if (!ended_) return false;
    if (channels_ != nullptr) {
      for (std::uint32_t i = 0; i < channels_->of.size(); ++i)
        if (channels()[i]->last() != nullptr) answer_channel(i, true);
      if (!channels_->out.advance(link, channel_)) return false;
    }
    return sending_.advance(link, channel_);
  }

 private:
  struct Channels {
    struct One {
      bool wanted = false;
      bool answered = false;
    };
    Channels(std::span<const ChannelForm> forms, const NoteForm& notes)
        : form(forms), out(notes), in(notes), of(notes.channels()) {}
    std::span<const ChannelForm> form;
    NotesOut out;
    NotesIn in;
    std::vector<One> of;
  };

  bool encoded() const { return transport_ == Transport::stream; }

  void take_request(std::span<const std::byte> bytes) {
    keep(bytes);
    RequestHead head;
    BytesReader reader(block_.all());
    if (parsed_ || !reader.take(head) || head.bytes > come_) return;
    parsed_ = true;
    later_bytes_ = head.later_bytes;
    range_ = {.start = head.start, .limit = head.limit, .step = head.step, .block = head.block};
    place_ = head.place;
    transport_ = static_cast<Transport>(head.transport);
    sync_asked_ = head.unasked != 0;  // also of one that there is no memory for, which throws below
    if (refused_.ok()) refused_ = understand(head);
    if (refused_.ok()) receiving_.begin(pieces_, Leg::there);
  }
  // Without memory for it, the request is counted to its end. Its head has room in any case
  // (Bytes::few).
  void keep(std::span<const std::byte> bytes) {
    come_ += bytes.size();
    try {
      if (refused_.ok()) block_.append(bytes.data(), bytes.size());
    } catch (const std::bad_alloc&) {
      refused_ = no_memory();
    }
    if (refused_.ok() || block_.size() >= sizeof(RequestHead)) return;
    block_.append(bytes.data(), std::min(bytes.size(), sizeof(RequestHead) - block_.size()));
  }
  static Status no_memory() {
    return Status::no_memory("no memory for the data of a family from another site");
  }
  Status understand(const RequestHead& head) {
    const FunctionEntry* const function = find_function(head.function);
    if (function == nullptr)
      return Status::unsupported(
          "this site has no thread function of that name: all run the same "
          "program");
    if (function->digest != head.digest)
      return Status::unsupported("the description of " + std::string(function->name) +
                                 " is another one here: all sites run the same program");
    if (transport_ > last_transport) return Status::unsupported("no such way for data to travel");
    frame_ = function->frame(*function);
    if (!function->channels.empty())
      channels_ =
          std::make_unique<Channels>(function->channels, NoteForm(function->channels, encoded()));
    for (const Piece& piece : frame_->pieces()) pieces_.push_back({.piece = piece});
    const bool fits = BlockReader(block_.all().subspan(sizeof head), encoded())
                          .read(pieces_, Leg::there, [&](Routed& routed) { make_room(routed); });
    if (!fits || bytes_in_messages(pieces_, Leg::there) != head.later_bytes)
      return Status::unsupported("the data do not fit the description of " +
                                 std::string(function->name));
    return {};
  }
  // Zero where no input fills it: output that the family does not write is that, not old memory.
  void make_room(Routed& routed) {
    if (routed.way == Way::address) return;
    const std::size_t bytes = routed.piece.bytes();
    const bool filled = goes_in(routed.piece.form->flow);
    rooms_.emplace_back(filled ? new std::byte[bytes] : new std::byte[bytes]());
    routed.piece.at = rooms_.back().get();
  }

  void take_data(std::span<const std::byte> bytes) {
    later_bytes_ -= std::min<std::uint64_t>(later_bytes_, bytes.size());
    if (refused_.ok() && !receiving_.take(bytes))
      refused_ = Status::unsupported("more data have come than the description has");
  }

  void take_notes(std::span<const std::byte> bytes) {
    const bool fit = channels_ != nullptr && channels_->in.take(bytes, [this](const Note& note) {
      if (note.news == News::wanted)
        channels_->of[note.channel].wanted = true;
      else if (note.news == News::value)
        channels()[note.channel]->bring_value(note.value);
    });
    if (!fit) notes_fit_.store(false);
  }
  void take_sync() {
    sync_asked_ = true;
    for (FamilyEnd* const end : channels()) end->close_parent();
  }
  // With the value, if it is there; `over`: or that none will come.
  void answer_channel(std::uint32_t number, bool over) {
    auto& [wanted, answered] = channels_->of[number];
    FamilyEnd& end = *channels()[number];
    // Settled first: a value that comes in between is seen.
    const bool settled = end.settled();
    const void* const last = end.last();
    if (answered || (last == nullptr && !settled && !over)) return;
    answered = true;
    if (last != nullptr)
      channels_->out.tell_value(number, last);
    else
      channels_->out.tell(number, !settled || end.ended_early() ? News::none_early : News::none);
  }

  template <Reach R>
  Status fetch_one(Routed& routed, R& reach) {
    if (routed.way == Way::address) {
      routed.piece.at = reach.map(channel_.peer, routed.address, routed.piece.bytes());
      mapped_ = true;
      if (routed.piece.at == nullptr && routed.piece.bytes() != 0)
        return Status::out_of_range("memory of the creator cannot be reached at its address");
    } else if (goes_in(routed.piece.form->flow)) {
      return get(routed, reach);
    }
    return {};
  }
  // Of arrays that go from memory to memory; of others nothing.
  template <Reach R>
  Status get(Routed& routed, R& reach) {
    if (routed.way == Way::direct)
      return reach.get(channel_.peer, routed.address, routed.piece.at, routed.piece.bytes());
    if (routed.way != Way::engine) return {};
    if constexpr (CopiesByEngine<R>)
      return reach.engine_get(channel_.peer, routed.address, routed.piece.at, routed.piece.bytes());
    return no_engine();
  }
  template <Reach R>
  Status put(const Routed& routed, R& reach) {
    if (routed.way == Way::direct)
      return reach.put(channel_.peer, routed.address, routed.piece.at, routed.piece.bytes());
    if (routed.way != Way::engine) return {};
    if constexpr (CopiesByEngine<R>)
      return reach.engine_put(channel_.peer, routed.address, routed.piece.at, routed.piece.bytes());
    return no_engine();
  }
  static Status no_engine() { return Status::unsupported("this site has no engine that copies"); }
  template <Reach R>
  Status give_back(R& reach, bool output) {
    Status first;
    for (const Routed& routed : pieces_) {
      const bool out = comes_out(routed.piece.form->flow);
      if (routed.way == Way::address && mapped_ && routed.piece.at != nullptr)
        reach.unmap(channel_.peer, routed.address, routed.piece.at, routed.piece.bytes(), out);
      if (out && output && first.ok()) first = put(routed, reach);
    }
    return first;
  }

  // Throws std::bad_alloc.
  void write_completion(CompletionHead head, std::string_view text) {
    const bool output = has_output(head.reason);
    block_.clear();
    block_.grow(sizeof head);  // written last
    block_.append(text.data(), text.size());
    if (output) BlockWriter(block_, encoded()).write(pieces_, Leg::back);
    head.text_bytes = static_cast<std::uint32_t>(text.size());
    head.bytes = block_.size();
    block_.overwrite(0, &head, sizeof head);
    sending_.begin(Kind::completion, block_.all(),
                   output ? std::span<const Routed>(pieces_) : std::span<const Routed>(),
                   Leg::back);
  }

  VirtualChannel channel_;
  Bytes block_;
  std::unique_ptr<Frame> frame_;
  std::vector<Routed> pieces_;
  std::vector<std::unique_ptr<std::byte[]>> rooms_;
  std::unique_ptr<Channels> channels_;  // null: the function has none
  Receiving receiving_;
  Sending sending_;
  Range range_{};
  std::uint32_t place_ = 0;
  Transport transport_ = Transport::best;
  std::uint64_t come_ = 0;  // bytes of the request
  std::uint64_t later_bytes_ = 0;
  Status refused_;
  std::atomic<bool> notes_fit_{true};
  bool parsed_ = false;
  bool expecting_ = false;
  bool mapped_ = false;
  bool ended_ = false;
  bool sync_asked_ = false;
  bool kill_asked_ = false;
};

}  // namespace tombolo::svp
