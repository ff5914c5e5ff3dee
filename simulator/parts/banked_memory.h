// SPDX-License-Identifier: Apache-2.0
// Purpose: memory of several banks behind a controller that serves its requests in order: one that
// waits for its bank, or for the bus to turn between a write and a read, holds up those behind it
// (decision 0012).
//
// Invariants: BM1 a bank serves one request at a time, longer than the controller is busy with it.
//             BM2 a request takes an idle stretch of the controller only if it is served, with its
//                 stall, before that ends; a short one that would do may be passed over.
// Thread safety: see memory_model.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "simulator/parts/memory_model.h"

namespace tombolo::simulator {

class BankedMemory {
 public:
  struct Shape {
    std::uint64_t bytes;
    std::uint32_t banks;
    std::uint64_t interleave;  // consecutive bytes of one bank; 0: each has an equal part of all
    Duration busy;             // of the controller with a request
    Duration bank_busy;        // from one access to a bank to the next
    Duration write_to_read, read_to_write;  // the bus turns
  };

  explicit BankedMemory(const Shape& shape) : shape_(shape), banks_(shape.banks) {
    TOMBOLO_CHECK(shape.banks > 0 && shape.bytes >= shape.banks, "{} bytes in {} banks",
                  shape.bytes, shape.banks);
    if (shape_.interleave == 0) shape_.interleave = shape.bytes / shape.banks;
  }

  Time serve(const MemoryRequest& request, Time arrives) {
    Server& bank = banks_[bank_of(request.offset)];
    const Duration turns = request.in_burst ? Duration() : turn_bus(request.writes, arrives);
    const Admission found = admit(bank, turns, arrives);
    const Time begin =
        controller_.serve(found.begin, found.stalls + shape_.busy).begin + found.stalls;
    bank.serve(found.begin + turns, shape_.bank_busy);
    waited_ += begin - arrives;
    return begin;
  }

  std::size_t bank_of(std::uint64_t offset) const {
    return offset / shape_.interleave % banks_.size();
  }
  const Server& controller() const { return controller_; }
  std::span<const Server> banks() const { return banks_; }
  Duration waited() const { return waited_; }

 private:
  // When a request is the first at its controller, and for how long it holds up those behind it.
  struct Admission {
    Time begin;
    Duration stalls;
  };

  // The time that the bus takes to turn before a request that comes at `arrives`. Whether it has
  // turned is judged by the order in which requests are handed in.
  Duration turn_bus(bool writes, Time arrives) {
    if (writes == written_last_) return {};
    written_last_ = writes;
    const Time turned =
        controller_.free_from() + (writes ? shape_.read_to_write : shape_.write_to_read);
    if (arrives >= turned) return {};  // while it was unused
    return turned - std::max(arrives, controller_.free_from());
  }

  Admission admit(const Server& bank, Duration turns, Time arrives) const {
    Admission found{arrives, turns};
    for (;;) {  // a request that stalls longer may not fit into a gap, and stall less after it
      const Time begin = controller_.begin_of(found.begin, found.stalls + shape_.busy);
      const Duration stalls = bank.begin_of(begin + turns, shape_.bank_busy) - begin;
      if (begin == found.begin && stalls == found.stalls) return found;
      found = {begin, stalls};
    }
  }

  Shape shape_;
  Server controller_;
  std::vector<Server> banks_;
  bool written_last_ = false;
  Duration waited_;
};

static_assert(MemoryModel<BankedMemory>);

}  // namespace tombolo::simulator
