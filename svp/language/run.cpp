// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "host/processes/start_thread.h"
#include "svp/language/program.h"

namespace tombolo::svp::language {
namespace {

int failed(const Exit& exit) {
  try {
    exit.rethrow();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tombolo: thread main ended with an exception: %s\n", error.what());
  } catch (...) {
    std::fprintf(stderr, "tombolo: thread main ended with an exception\n");
  }
  return EXIT_FAILURE;
}

int run_family(void (*program)(long index, int argc, char** argv), int argc, char** argv) {
  auto family = svp::create([&] { program(0, argc, argv); });
  const Exit exit = family.sync();
  switch (exit.reason) {
    case ExitReason::done:
      return EXIT_SUCCESS;
    case ExitReason::broken:
      return static_cast<int>(exit.value);
    case ExitReason::killed:
      return EXIT_FAILURE;
    case ExitReason::failed:
      return failed(exit);
  }
  return EXIT_FAILURE;
}

}  // namespace

int run(void (*program)(long index, int argc, char** argv), int argc, char** argv) {
  try {
    return run_family(program, argc, argv);
  } catch (const host::NoThread& lack) {
    std::fprintf(stderr, "tombolo: %s\n", lack.what());
    return EXIT_FAILURE;
  }
}

}  // namespace tombolo::svp::language
