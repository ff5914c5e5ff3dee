// SPDX-License-Identifier: Apache-2.0
// Purpose: the two ends of a channel between a creator and its family at another site, as the
// protocol sees them: without the type of the values, which are plain bytes (DSC1). Their types are
// in channel_parameters.h.
//
// Invariants: CHE1 the creator's end has the parent's value as soon as that is written, the
//                 family's end the last thread's. The other side's value is brought there at most
//                 once.
// Thread safety: as the channel's.
#pragma once

#include <cstddef>

#include "svp/channels/channel.h"
#include "svp/range.h"

namespace tombolo::svp {

// At the creator. Values without a promise of alignment.
class ParentEnd {
 public:
  // False: the channel belongs to another family already.
  virtual bool listen(ChannelListener& listener) = 0;
  virtual void ignore() = 0;
  // The parent's value; null: not written yet.
  virtual const void* value() const = 0;
  // A thread waits for the value of the last thread.
  virtual bool awaits_last() = 0;
  virtual void bring_last(const std::byte* value) = 0;
  // None will come; `early`: as the family was stopped.
  virtual void close_last(bool early) = 0;

 protected:
  ~ParentEnd() = default;
};

// Where the family runs. A global channel has no last value.
class FamilyEnd {
 public:
  virtual void listen(ChannelListener& listener) = 0;
  virtual void bring_value(const std::byte* value) = 0;
  // The parent will write no more.
  virtual void close_parent() = 0;
  // Null: not written yet.
  virtual const void* last() const = 0;
  // The last value is there, or none will come; then whether the family was stopped.
  virtual bool settled() const = 0;
  virtual bool ended_early() const = 0;

  // Of threads in order, as those of OrderedChannel (svp/family/body.h).
  virtual void begin(Index index, bool is_first, bool is_last) = 0;
  virtual void pass_on() = 0;
  virtual void end(bool early) = 0;

 protected:
  ~FamilyEnd() = default;
};

}  // namespace tombolo::svp
