// SPDX-License-Identifier: Apache-2.0
// Purpose: the end of a family, as its sync tells it.
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

namespace tombolo::svp {

enum class ExitReason : std::uint32_t {
  done,    // all threads have ended
  broken,  // a thread of the family called break_family()
  killed,  // kill() reached it
  failed,  // a thread ended with an exception
};

// A failure that a number tells, also where the family was in another process.
struct NumberedFailure : std::runtime_error {
  NumberedFailure(const std::string& text, std::int64_t number)
      : std::runtime_error(text), value(number) {}
  std::int64_t value;
};

struct Exit {
  ExitReason reason = ExitReason::done;
  std::int64_t value = 0;              // of break_family()
  std::exception_ptr error = nullptr;  // of the first thread that failed

  bool done() const { return reason == ExitReason::done; }
  // Throws `error`, if there is one.
  void rethrow() const {
    if (error != nullptr) std::rethrow_exception(error);
  }
};

}  // namespace tombolo::svp
