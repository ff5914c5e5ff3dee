// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the validator of sync/locks only: ReaderBias without the second
// look at the bias (RB2).
//
// The error: a writer may have ended the bias and looked at the announcements between the
// reader's look and its announcement; both are in.
// Thread safety: as ReaderBias.
#pragma once

#include "sync/locks/reader_bias.h"

namespace tombolo::sync::broken {

template <machine::Core C, class Locks>
class HastyReaderBias : public ReaderBias<C, Locks> {
 public:
  using Base = ReaderBias<C, Locks>;
  using Base::Base;

  Status lock(Access access, machine::Home target) {
    if (access == Access::shared && this->core_.load(this->bias(target)) == Base::set &&
        this->core_.compare_exchange(this->announcement(this->core_.self(), 0), 0,
                                     target + std::uint64_t{1}) == 0)
      return {};
    return Base::lock(access, target);
  }
};

}  // namespace tombolo::sync::broken
