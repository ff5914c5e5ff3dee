// SPDX-License-Identifier: Apache-2.0
// Purpose: tells the processes of this host that this one has an extent of a pool mapped, as long
// as it can write there, however it ends: by a read lock of the kernel on the extent's bytes.
//
// Invariants: EH1 the locks are of one open file for each pool and process (F_OFD_SETLK), so that a
//                 forked child, which has the mapping too, has the lock as well, until it ends.
//                 Only the process that took a lock gives it back.
//             EH2 an extent that one process has mapped several times is given back with the last.
// Thread safety: distinct objects may be used from distinct threads.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"

namespace tombolo::host {

class ExtentHold {
 public:
  ExtentHold() = default;
  ExtentHold(ExtentHold&& other) noexcept { *this = std::move(other); }
  ExtentHold& operator=(ExtentHold&& other) noexcept;
  ~ExtentHold();

  // `path`: of the pool. To be called while its table is locked, and with an empty object.
  Status take(const std::string& path, std::uint64_t offset, std::uint64_t bytes);

 private:
  class PoolFile;
  std::shared_ptr<PoolFile> file_;
  std::uint64_t offset_ = 0;
  std::uint64_t bytes_ = 0;
};

// Whether a process of this host, this one included, holds some of these bytes. `pool`: a
// descriptor that was opened for itself. True also where the kernel does not tell.
bool extent_is_held(int pool, std::uint64_t offset, std::uint64_t bytes);

}  // namespace tombolo::host
