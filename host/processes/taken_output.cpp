// SPDX-License-Identifier: Apache-2.0
#include "host/processes/taken_output.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

namespace tombolo::host {
namespace {

// Bytes that were written and not yet read; 0 where the kernel does not tell.
int left(int descriptor, mode_t mode) {
  int bytes = 0;
  // A pipe tells it at both of its ends.
  const unsigned long question = S_ISFIFO(mode) ? FIONREAD : SIOCOUTQ;
  return ioctl(descriptor, question, &bytes) == 0 ? bytes : 0;
}

}  // namespace

bool wait_until_taken(int descriptor, std::chrono::milliseconds limit) {
  struct stat about = {};
  if (fstat(descriptor, &about) != 0) return true;
  if (!S_ISFIFO(about.st_mode) && !S_ISSOCK(about.st_mode)) return true;
  const auto end = std::chrono::steady_clock::now() + limit;
  while (left(descriptor, about.st_mode) > 0) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

void fail_with(std::string_view line) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  wait_until_taken(STDERR_FILENO, std::chrono::seconds(2));
  _exit(EXIT_FAILURE);
}

}  // namespace tombolo::host
