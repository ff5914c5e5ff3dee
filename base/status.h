// SPDX-License-Identifier: Apache-2.0
// Purpose: the error channel for failures outside the program (no memory, a dead process, a bad
// configuration, a full device). A caller's mistake goes through base/check.h instead.
//
//   Status s = Status::process_failed(3, "rank 3 (process 4711) died while it held the lock");
//   if (!s.ok()) return s;
//
// Invariants: SU1 an ok Status is one null pointer: to return, test and drop it is an instruction
//                 or two in line each. All that an error needs is out of line.
//             SU2 a Status is created where the error is first seen, with its cause and a remedy.
// Thread safety: a Status is immutable; distinct objects may be used from distinct threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tombolo {

enum class [[nodiscard]] Code{
    ok,
    no_memory,          // no memory or segment available; the message names the size in bytes
    process_failed,     // a peer process died; `rank()` names it
    unsupported,        // not possible on this machine or host; the message names an alternative
    bad_configuration,  // an option, an environment variable or a file is wrong
    io,                 // the system refused; the message holds the call and its errno text
    out_of_range,       // memory at the target could not be reached at that address
    epoch,    // an operation or synchronization call outside the epoch it needs, which the
              // interface on top reports as its own kind of error
    stopped,  // a simulated run ended before its programs did; the message names the waiting cores
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(const Status& other) noexcept : error_(other.ok() ? nullptr : share(other.error_)) {}
  Status(Status&& other) noexcept : error_(std::exchange(other.error_, nullptr)) {}
  Status& operator=(Status other) noexcept {
    std::swap(error_, other.error_);
    return *this;
  }
  ~Status() {
    if (!ok()) [[unlikely]]
      drop(error_);
  }

  [[gnu::cold]] static Status no_memory(std::string_view why) {
    return error(Code::no_memory, -1, why);
  }
  [[gnu::cold]] static Status process_failed(int rank, std::string_view why) {
    return error(Code::process_failed, rank, why);
  }
  [[gnu::cold]] static Status unsupported(std::string_view why) {
    return error(Code::unsupported, -1, why);
  }
  [[gnu::cold]] static Status bad_configuration(std::string_view why) {
    return error(Code::bad_configuration, -1, why);
  }
  [[gnu::cold]] static Status io(std::string_view why) { return error(Code::io, -1, why); }
  [[gnu::cold]] static Status out_of_range(std::string_view why) {
    return error(Code::out_of_range, -1, why);
  }
  [[gnu::cold]] static Status stopped(std::string_view why) {
    return error(Code::stopped, -1, why);
  }
  [[gnu::cold]] static Status epoch(std::string_view why) { return error(Code::epoch, -1, why); }

  bool ok() const { return __builtin_expect(error_ == nullptr, 1) != 0; }
  Code code() const { return ok() ? Code::ok : error_->code; }
  // The failed peer for process_failed, else -1.
  int rank() const { return ok() ? -1 : error_->rank; }
  const std::string& message() const {
    static const std::string none;
    return ok() ? none : error_->message;
  }

 private:
  struct Error {
    Code code;
    int rank;
    std::string message;
    std::atomic<std::uint32_t> holders{1};
  };
  [[gnu::cold, gnu::noinline]] static Status error(Code code, int rank, std::string_view why) {
    Status status;
    status.error_ = new Error{code, rank, std::string(why)};
    return status;
  }
  // A count and not a copy: one that is passed on while memory is short must not fail.
  [[gnu::cold, gnu::noinline]] static Error* share(Error* error) noexcept {
    // relaxed: a new holder copies from one that exists.
    error->holders.fetch_add(1, std::memory_order_relaxed);
    return error;
  }
  [[gnu::cold, gnu::noinline]] static void drop(Error* error) noexcept {
    if (error->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete error;
  }

  Error* error_ = nullptr;
};

}  // namespace tombolo

// Returns the Status of `expression` from the enclosing function unless it is ok.
#define TOMBOLO_TRY(expression)                                                             \
  do {                                                                                      \
    if (::tombolo::Status tombolo_status = (expression); !tombolo_status.ok()) [[unlikely]] \
      return tombolo_status;                                                                \
  } while (false)
