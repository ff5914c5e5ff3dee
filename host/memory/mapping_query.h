// SPDX-License-Identifier: Apache-2.0
// Purpose: some of this process's mappings, without the text of all of them, which takes the kernel
// a third of a microsecond a line to write and more to read. Linux has a call for it from 6.11 on
// (PROCMAP_QUERY); before, the text is read and filtered. The file that it goes to stays open.
// Thread safety: yes; the answers are those of the moment.
#pragma once

#include <vector>

#include "base/status.h"
#include "host/memory/address_space.h"

namespace tombolo::host {

// Those that overlap the range, by address.
Status read_mappings(const AddressRange& within, std::vector<Mapping>& out);

// Shared mappings of files, devices among them.
Status read_shared_files(std::vector<Mapping>& out);

// The same two from a text like that of /proc/self/maps.
std::vector<Mapping> overlapping(std::vector<Mapping> all, const AddressRange& within);
std::vector<Mapping> shared_files(std::vector<Mapping> all);

}  // namespace tombolo::host
