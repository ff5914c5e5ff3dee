// SPDX-License-Identifier: Apache-2.0
// Purpose: starts a thread of the runtime. Where the host has none left, that is an error with a
// remedy in its text, and not an exception of the C++ library's that ends the program.
// Thread safety: yes.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/status.h"
#include "host/processes/taken_output.h"

namespace tombolo::host {

// The remedy, for the user. The C library gives one error for too many threads and for no memory
// for a stack.
inline constexpr std::string_view no_thread_advice =
    "see ulimit -u and -v, and the limits of this container or session (pids.max, memory.max)";

// Thrown where an interface has no other way. Its text is the sentence.
class NoThread : public std::system_error {
 public:
  explicit NoThread(Status why)
      : std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)),
        why_(std::move(why)) {}
  const char* what() const noexcept override { return why_.message().c_str(); }

 private:
  Status why_;
};

// `purpose` is said behind "thread": "that takes messages". Errors: io (no thread is to be had).
template <class Body>
Status start_thread(std::string_view purpose, Body&& body, std::thread& out) {
  try {
    out = std::thread(std::forward<Body>(body));
    return {};
  } catch (const std::system_error& error) {
    return Status::io(fmt::format("the host has no thread {}: {}; {}", purpose,
                                  error.code().message(), no_thread_advice));
  }
}

// As start_thread(), where other processes would wait for ever for the thread: without it
// this process ends, with the sentence, and the launcher ends the others.
template <class Body>
std::thread start_thread_or_end(std::string_view purpose, Body&& body) {
  std::thread thread;
  const Status started = start_thread(purpose, std::forward<Body>(body), thread);
  if (started.ok()) return thread;
  fail_with("tombolo: " + started.message() + "\n");
}

}  // namespace tombolo::host
