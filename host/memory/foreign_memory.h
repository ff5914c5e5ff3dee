// SPDX-License-Identifier: Apache-2.0
// Purpose: memory of another process of this host, reached by the kernel's copy calls. It needs
// neither the other process's help nor a mapping; each access costs a system call.
// Thread safety: yes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "machine/place.h"

namespace tombolo::host {

// Lets other processes of this user copy from and to this one, on hosts where each process has to
// allow it (kernel.yama.ptrace_scope 1, Ubuntu's default); host MPIs that copy so do the same. It
// lets them trace it as well. Elsewhere nothing is to be allowed.
void allow_foreign_copies();

// Copies `bytes` from address `from` of process `pid`. Errors: out_of_range if nothing is mapped
// there, process_failed if the process is gone, io otherwise.
Status read_foreign(std::int32_t pid, std::uint64_t from, void* to, std::size_t bytes);

// Copies `bytes` to address `to` of process `pid`; errors as read_foreign.
Status write_foreign(std::int32_t pid, std::uint64_t to, const void* from, std::size_t bytes);

// The same for many pieces, whose offsets are from address `base`: with the calls of a few.
Status read_foreign(std::int32_t pid, std::uint64_t base,
                    std::span<const machine::DataPiece> pieces);
Status write_foreign(std::int32_t pid, std::uint64_t base,
                     std::span<const machine::DataPiece> pieces);

}  // namespace tombolo::host
