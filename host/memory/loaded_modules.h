// SPDX-License-Identifier: Apache-2.0
// Purpose: the program and the libraries that this process has loaded: processes that pass
// addresses to each other have to have the same ones at the same places.
// Thread safety: yes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tombolo::host {

struct LoadedModule {
  std::string name;           // of its file, without folders; "the program" for the executable
  std::uint64_t address = 0;  // the distance of its addresses from those in the file
  std::string build;          // the linker's identifier of its contents; empty: it has none
  bool operator==(const LoadedModule&) const = default;
};

// In the order in which they were loaded, without the kernel's own (vDSO).
std::vector<LoadedModule> loaded_modules();

// A line for each, and back. Lines that are none are left out.
std::string text_of(const std::vector<LoadedModule>& modules);
std::vector<LoadedModule> modules_in(std::string_view text);

// The first module of another process (`theirs`) that this one (`mine`) lacks or has otherwise, as
// a part of a sentence: "libz.so.1 is another build". Empty if there is none. Modules that this one
// alone has do not matter.
std::string difference(const std::vector<LoadedModule>& mine,
                       const std::vector<LoadedModule>& theirs);

}  // namespace tombolo::host
