// SPDX-License-Identifier: Apache-2.0
// Purpose: test programs of several processes: the parts that they run, by name, and their
// complaints. The test's own program plays the processes.
// Thread safety: one test at a time; EXPECT_HERE by one thread of each process.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "host/processes/process.h"
#include "runtime/processes/launcher.h"
#include "svp/api/include/tombolo/svp.hpp"
#include "svp/testing/random_choices.h"

namespace tombolo::svp::testing {

inline std::string program;  // NOLINT: main's
inline int failures = 0;     // NOLINT: of a process

#define EXPECT_HERE(condition)                                                           \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "line %d: %s is not so (process %u)\n", __LINE__, #condition, \
                   Job::here().rank());                                                  \
      ++::tombolo::svp::testing::failures;                                               \
    }                                                                                    \
  } while (false)

inline std::string text_of(const Exit& exit) try {
  exit.rethrow();
  return "";
} catch (const std::exception& error) {
  return error.what();
}
inline bool contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  std::fprintf(stderr, "'%s' does not contain '%s'\n", text.c_str(), part.c_str());
  return false;
}

using Part = int (*)(Job&);
using Parts = std::map<std::string, Part>;

// By machine.
class JobTest : public ::testing::TestWithParam<const char*> {
 protected:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  // The exit status of process 0.
  static int ran(const std::string& part, int size, Environment environment = {}) {
    environment.emplace_back("TOMBOLO_MACHINE", GetParam());
    runtime::Launcher launcher;
    const Status started = runtime::Launcher::start({.command = {program, "--part", part},
                                                     .size = size,
                                                     .environment = environment,
                                                     .first_is_program = true},
                                                    launcher);
    EXPECT_TRUE(started.ok()) << started.message();
    const std::vector<pid_t> processes = launcher.processes();
    (void)launcher.wait().ok();
    for (const pid_t process : processes) EXPECT_EQ(::kill(process, 0), -1) << process;
    return launcher.exit_status();
  }
  // The same, and the processes' stderr.
  static std::pair<int, std::string> said(const std::string& part, int size,
                                          Environment environment = {}) {
    ::testing::internal::CaptureStderr();
    const int status = ran(part, size, std::move(environment));
    return {status, ::testing::internal::GetCapturedStderr()};
  }
};
inline auto machines() {
#ifdef TOMBOLO_FEW_MACHINES
  return ::testing::Values("coherent", "stale");
#else
  return ::testing::Values("coherent", "flushed", "stale");
#endif
}
inline std::string name_of(const ::testing::TestParamInfo<const char*>& machine) {
  return machine.param;
}

// Of such a test.
inline int main_of(int argc, char** argv, const Parts& parts) {
  program = argv[0];
  if (argc == 3 && std::string(argv[1]) == "--part") try {
      return run(parts.at(argv[2]));
    } catch (const std::runtime_error&) {
      return 77;
    }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
// Of one with random programs, which may be chosen.
inline int main_of(int argc, char** argv, const Parts& parts, RandomChoices& choices) {
  if (argc == 3 && std::string(argv[1]) == "--part") return main_of(argc, argv, parts);
  ::testing::InitGoogleTest(&argc, argv);
  program = argv[0];
  if (choices.read(argc, argv)) return RUN_ALL_TESTS();
  std::fprintf(stderr, "usage: %s [--first SEED] [--programs N]\n", argv[0]);
  return 2;
}

}  // namespace tombolo::svp::testing
