// SPDX-License-Identifier: Apache-2.0
// Purpose: starts a thread of the runtime, where a host that has none left is an error and no
// exception that ends the program.
// Thread safety: yes.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/status.h"

namespace tombolo::host {

// What the user can do where there is none.
inline constexpr std::string_view no_thread_advice =
    "see ulimit -u and the limit of processes of this container or session (pids.max)";

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

}  // namespace tombolo::host
