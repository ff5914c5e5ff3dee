// SPDX-License-Identifier: Apache-2.0
// Purpose: tests of random programs: their seeds, by the command line, and that of one that hangs.
//
//   TEST [--first SEED] [--programs N] [--gtest_filter=...]
//
// Without an option the seeds are others each day (UTC), and those of the same day the same: the
// test prints the first. A failure names the seed, and the next run with it makes the same program;
// its schedule differs.
// Thread safety: one thread.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "base/options.h"

namespace tombolo::svp::testing {

inline std::uint64_t first_seed_of_today() {
  using Days = std::chrono::days;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  constexpr std::uint64_t seeds_of_a_day = 100'000;
  return static_cast<std::uint64_t>(std::chrono::floor<Days>(now).count()) * seeds_of_a_day + 1;
}

struct RandomChoices {
  std::uint64_t first = first_seed_of_today();
  std::uint64_t programs = 0;

  // Options behind the name of the program. False: they are others.
  bool read(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
      const std::string_view name = argv[i];
      const auto number = number_in(argv[i + 1]);
      if (!number || (name != "--first" && name != "--programs")) return false;
      (name == "--first" ? first : programs) = *number;
    }
    return argc % 2 == 1;
  }
  void say() const {
    std::printf("random programs: --first %llu --programs %llu\n",
                static_cast<unsigned long long>(first), static_cast<unsigned long long>(programs));
  }
};

// Where a program hangs, its seed is told, and the process ends. alarm(0) ends the watch.
inline void say_seed_at_alarm(std::uint64_t seed) {
  constexpr unsigned most_s = 120;
  static std::atomic<std::uint64_t> running{0};
  running = seed;
  struct sigaction action {};
  action.sa_handler = [](int) {
    char line[64];
    const int n = std::snprintf(line, sizeof line, "seed %llu hangs\n",
                                static_cast<unsigned long long>(running.load()));
    [[maybe_unused]] const ssize_t written =
        write(STDERR_FILENO, line, static_cast<std::size_t>(n));
    _exit(1);
  };
  sigaction(SIGALRM, &action, nullptr);
  alarm(most_s);
}

}  // namespace tombolo::svp::testing
