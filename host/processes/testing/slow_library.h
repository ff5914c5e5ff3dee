// SPDX-License-Identifier: Apache-2.0
// Purpose: the dynamic linker's lock, held by a thread of the test that loads a library from a
// FIFO, and waits there for the library's first byte. A child that is forked meanwhile waits for
// ever in each call that takes the lock, but where the C library's fork() begins it anew.
// Thread safety: one thread, but for load().
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "base/check.h"
#include "host/descriptor.h"

namespace tombolo::host::testing {

// The FIFO. load() returns, with the lock given back, once its writer has been closed.
class SlowLibrary {
 public:
  SlowLibrary() : path_(fmt::format("/tmp/tombolo-slow-library-{}", getpid())) {
    unlink(path_.c_str());
    TOMBOLO_CHECK(mkfifo(path_.c_str(), 0600) == 0, "test: no FIFO {}", path_);
  }
  ~SlowLibrary() { unlink(path_.c_str()); }
  SlowLibrary(const SlowLibrary&) = delete;
  SlowLibrary& operator=(const SlowLibrary&) = delete;

  void load() const {
    TOMBOLO_CHECK(dlopen(path_.c_str(), RTLD_NOW) == nullptr, "test: {} is a library", path_);
  }
  // The writer, when a thread is in load().
  Descriptor writer() const {
    for (;;) {
      Descriptor file(open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
      if (file.valid()) return file;
      std::this_thread::yield();
    }
  }

 private:
  std::string path_;
};

}  // namespace tombolo::host::testing
