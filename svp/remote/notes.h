// SPDX-License-Identifier: Apache-2.0
// Purpose: the news that creator and family tell each other of their channels: values, that none
// will come, and that one is wanted. Notes of one direction form a stream of bytes, which is cut
// into messages where the link's size has it.
//
// Invariants: NTS1 a stream that is none of these channels' is found out by its reader, which reads
//                 no byte beyond it.
//             NTS2 a channel has at most two notes in a direction (a wish and a value): memory for
//                 all of them is taken at the beginning, so that a note needs none later.
// Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "svp/links/link.h"
#include "svp/remote/bytes.h"
#include "svp/remote/description.h"

namespace tombolo::svp {

enum class News : std::uint32_t {
  value,       // it follows
  none,        // the last thread has ended without a write
  none_early,  // likewise, as the family was stopped
  wanted,      // the parent waits for the value of the last thread
};

struct Note {
  std::uint32_t channel = 0;  // of the function's, by number
  News news = News::value;
  const std::byte* value = nullptr;  // as in memory, but for its alignment
};

struct NoteHead {
  std::uint32_t channel = 0;
  News news = News::value;
};

// The channels of a function, and the form of their values on their way.
class NoteForm {
 public:
  NoteForm(std::span<const ChannelForm> channels, bool encoded)
      : channels_(channels), encoded_(encoded) {}

  std::size_t channels() const { return channels_.size(); }
  const ChannelForm& operator[](std::size_t channel) const { return channels_[channel]; }
  bool encoded() const { return encoded_; }
  std::size_t value_bytes(std::size_t channel) const {
    const Form& form = channels_[channel].value;
    return encoded_ ? form.xdr->bytes : form.element_bytes;
  }
  // Of all that is ever told in one direction (NTS2).
  std::size_t most_bytes() const {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < channels(); ++i) bytes += 2 * sizeof(NoteHead) + value_bytes(i);
    return bytes;
  }

 private:
  std::span<const ChannelForm> channels_;
  bool encoded_;
};

class NotesOut {
 public:
  // Throws std::bad_alloc.
  explicit NotesOut(const NoteForm& form) : form_(form) {
    queue_.grow(form.most_bytes());
    queue_.clear();
  }

  void tell(std::uint32_t channel, News news) { queue_.append(NoteHead{channel, news}); }
  void tell_value(std::uint32_t channel, const void* value) {
    tell(channel, News::value);
    const Form& form = form_[channel].value;
    if (form_.encoded())
      form.xdr->encode(value, 1, queue_.grow(form.xdr->bytes));
    else
      queue_.append(value, form.element_bytes);
  }
  // True: all of them are on their way.
  template <Link L>
  bool advance(L& link, const VirtualChannel& channel) {
    while (at_ != queue_.size()) {
      const std::size_t shot = std::min<std::size_t>(link.most_bytes(), queue_.size() - at_);
      if (!link.try_send(channel, Kind::notes, queue_.all().subspan(at_, shot))) return false;
      at_ += shot;
    }
    return true;
  }

 private:
  NoteForm form_;
  Bytes queue_;
  std::size_t at_ = 0;
};

class NotesIn {
 public:
  // Throws std::bad_alloc.
  explicit NotesIn(const NoteForm& form) : form_(form) {
    queue_.grow(form.most_bytes());
    queue_.clear();
    std::size_t most = 0;
    for (std::size_t i = 0; i < form.channels(); ++i)
      most = std::max<std::size_t>(most, form[i].value.element_bytes);
    if (form.encoded()) decoded_.reset(new std::byte[most]);
  }

  // Calls use(Note) for each that is complete. False: NTS1.
  template <class Use>
  bool take(std::span<const std::byte> bytes, Use&& use) {
    if (bytes.size() > form_.most_bytes() - queue_.size()) return false;
    queue_.append(bytes.data(), bytes.size());
    for (;;) {
      BytesReader reader(queue_.all().subspan(at_));
      NoteHead head;
      if (!reader.take(head)) return true;
      if (head.channel >= form_.channels() || head.news > News::wanted) return false;
      const std::size_t size = head.news == News::value ? form_.value_bytes(head.channel) : 0;
      const std::byte* const value = reader.bytes(size);
      if (value == nullptr) return true;
      at_ += sizeof head + size;
      use(Note{head.channel, head.news, size == 0 ? nullptr : plain(head.channel, value)});
    }
  }

 private:
  const std::byte* plain(std::uint32_t channel, const std::byte* value) {
    if (!form_.encoded()) return value;
    form_[channel].value.xdr->decode(value, 1, decoded_.get());
    return decoded_.get();
  }

  NoteForm form_;
  Bytes queue_;
  std::unique_ptr<std::byte[]> decoded_;
  std::size_t at_ = 0;
};

}  // namespace tombolo::svp
