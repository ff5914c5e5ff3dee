// SPDX-License-Identifier: Apache-2.0
// Purpose: the error channel for a caller's mistake. Always on. Stops the process with operation,
// place and cause, in one line on stderr.
// Thread safety: may be called from any thread.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace tombolo {

[[noreturn]] inline void stop(const char* file, int line, const char* condition,
                              const std::string& why) {
  std::fprintf(stderr, "tombolo: %s (%s does not hold, %s:%d)\n", why.c_str(), condition, file,
               line);
  std::abort();
}

}  // namespace tombolo

// TOMBOLO_CHECK(offset < bytes, "put: offset {} is past the {} bytes of rank {}", offset, bytes,
// r);
#define TOMBOLO_CHECK(condition, ...)                                              \
  do {                                                                             \
    if (!(condition)) [[unlikely]]                                                 \
      ::tombolo::stop(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
