// SPDX-License-Identifier: Apache-2.0
// Purpose: system calls about descriptors and paths, which are those of the program's first
// process: another process sends such a call there as bytes, and gets bytes back. This file knows
// the calls and their parameters, and no way to send them.
//
//   another process                                    the first one
//   kind_of(call) == CallKind::forwarded
//   request_of(call) ----------------------------->    execute(request)
//   finish(call, answer) <-------------------------
//
// Invariants: FWC1 a call that is about a descriptor, a path or another process, and is not known
//                  here, is refused: it would reach another one of the same number or name.
//             FWC2 a call that may wait for long is made when its descriptor is ready; until then
//                  the answer says so (`not_ready`), so that the caller may do other things.
//             FWC3 a call that may transfer less transfers `most_bytes` at most.
// Thread safety: stateless; execute() by any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "host/faults/caught_calls.h"

namespace tombolo::dsm {

enum class CallKind : std::uint8_t {
  local,      // of this process: time, memory, its thread
  forwarded,  // of the first process
  refused,
};

class ForwardedCall {
 public:
  using Bytes = std::vector<std::byte>;
  static constexpr std::size_t most_bytes = std::size_t{256} << 10;

  static CallKind kind_of(const host::SystemCall& call);

  // Reads the memory that the call's arguments name. False if there is too much of it, or an
  // address cannot be one: then the result is set.
  static bool request_of(host::SystemCall& call, Bytes& out);
  // Stores to that memory, and sets the result. False: FWC2, the call is to be sent again.
  static bool finish(host::SystemCall& call, std::span<const std::byte> answer);

  // In the first process.
  static Bytes execute(std::span<const std::byte> request);
};

}  // namespace tombolo::dsm
