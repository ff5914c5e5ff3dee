// SPDX-License-Identifier: Apache-2.0
// Purpose: an operation of all processes of a job that may fail at any of them, at any step: they
// go on together or stop together, and none waits for one that has left.
//
//   Agreed make(Collective<MpiExchange>& all) {
//     all.gather(mine, everyones);
//     TOMBOLO_AGREE(all.step({Code::no_memory, "another process has no memory"},
//                            [&] { return reserve(); }));        // local: no exchange in it
//     ...
//     return all.done();
//   }
//
// Invariants: CL1 a function that returns Agreed cannot return early with an error that this
//                 process alone has met: only Collective makes an Agreed, and a Status does not
//                 become one. So the processes leave it at the same step.
//             CL2 an error of the exchange itself, and one that was thrown for want of memory, ends
//                 the next step at all processes.
//             CL3 decisions between two steps are made from data gathered, broadcast or agreed,
//                 which are the same at all processes.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "runtime/collective/exchange.h"

namespace tombolo::runtime {

// Ok at all processes, or an error at all of them (whose texts differ).
class [[nodiscard]] Agreed {
 public:
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  // This process's own part went wrong: the others know no cause.
  bool own() const { return own_; }

 private:
  template <Exchange X>
  friend class Collective;
  Agreed() = default;
  Agreed(Status status, bool own) : status_(std::move(status)), own_(own) {}

  Status status_;
  bool own_ = false;
};

// The error at processes whose own part of a step went well.
struct Elsewhere {
  Code code = Code::io;  // no_memory or io
  const char* message = "another process failed";

  Status status() const {
    return code == Code::no_memory ? Status::no_memory(message) : Status::io(message);
  }
};

template <Exchange X>
class Collective {
 public:
  explicit Collective(X& exchange) : exchange_(exchange) {}

  int rank() const { return exchange_.rank(); }
  int size() const { return exchange_.size(); }

  // By rank. After an error of the exchange `everyones` holds its old values, in part (CL2).
  template <class T>
  void gather(const T& mine, std::span<T> everyones) {
    static_assert(std::is_trivially_copyable_v<T>);
    TOMBOLO_CHECK(everyones.size() == static_cast<std::size_t>(size()),
                  "gather of {} processes into room for {}", size(), everyones.size());
    note(exchange_.gather(&mine, everyones.data(), sizeof mine));
  }

  template <class T>
  void broadcast(T& value, int root) {
    static_assert(std::is_trivially_copyable_v<T>);
    note(exchange_.broadcast(&value, sizeof value, root));
  }
  void broadcast(std::string& text, int root) {
    std::uint64_t bytes = text.size();
    broadcast(bytes, root);
    note(guarded([&] {
      text.resize(bytes);
      return Status();
    }));
    // Where one has no room for the text, none exchanges it (CL2).
    if (all(true)) note(exchange_.broadcast(text.data(), bytes, root));
  }

  // Does `local` at every process, and tells all whether it went well everywhere.
  template <class Local>
  Agreed step(Elsewhere elsewhere, Local&& local) {
    Status mine = std::exchange(pending_, {});
    if (mine.ok()) mine = guarded(std::forward<Local>(local));
    if (exchange_.all(mine.ok())) return Agreed();
    if (Agreed end = done(); !end.ok()) return end;
    if (mine.ok()) return Agreed(elsewhere.status(), false);
    return Agreed(std::move(mine), true);
  }

  // Whether all processes say yes: a question, not an error.
  bool all(bool mine) { return exchange_.all(mine && pending_.ok()); }

  // Whether `local` goes well at all processes: tried, not insisted on.
  template <class Local>
  bool attempt(Local&& local) {
    return all(pending_.ok() && guarded(std::forward<Local>(local)).ok());
  }

  // The end of an operation that went well. The exchange may have been broken since the last step,
  // by a question or an attempt, which only know no.
  Agreed done() const {
    if constexpr (requires { exchange_.broken(); })
      if (!exchange_.broken().ok()) return Agreed(exchange_.broken(), true);
    return Agreed();
  }

 private:
  void note(Status status) {
    if (pending_.ok()) pending_ = std::move(status);
  }
  template <class Local>
  static Status guarded(Local&& local) try {
    return std::forward<Local>(local)();
  } catch (const std::bad_alloc&) {
    return Status::no_memory("no memory for the data that the processes exchange");
  }

  X& exchange_;
  Status pending_;
};

}  // namespace tombolo::runtime

// Returns the Agreed of `expression` from the enclosing function unless it is ok.
#define TOMBOLO_AGREE(expression)                                                        \
  do {                                                                                   \
    if (auto tombolo_agreed = (expression); !tombolo_agreed.ok()) return tombolo_agreed; \
  } while (false)
