// SPDX-License-Identifier: Apache-2.0
// Purpose: segments as files of a directory (a tmpfs, or a file system on shared memory), one file
// each, with a name that tells its creator.
//
// Invariants: PD1 the file is created with O_EXCL and mode 0600 under a random name: no file
//                 or link of another user is ever followed.
//             PD2 all its blocks are reserved before it is handed out (no SIGBUS for want of room).
//             PD3 files of creators that are certainly dead are removed at the next creation in the
//                 same directory by the same user.
// Thread safety: yes; also between processes.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "host/descriptor.h"

namespace tombolo::host {

// Creates a file of `bytes` zero bytes in `directory`. The caller unlinks `path`.
Status create_file_in(const std::string& directory, std::uint64_t bytes, Descriptor& out,
                      std::string& path);

// Reserves `bytes` bytes from `offset` of an open file for later use. no_memory if there is no room
// for them; a file system that cannot reserve is asked for its free room instead.
Status reserve_blocks(int descriptor, std::uint64_t offset, std::uint64_t bytes,
                      const std::string& path);

// Removes the files of dead creators in `directory` (PD3); returns how many.
int remove_leftovers(const std::string& directory);

}  // namespace tombolo::host
