// SPDX-License-Identifier: Apache-2.0
// Purpose: the program `tombolo-settings`: all settings, as docs/settings.md has them, or with
// --json for programs. Exit status 2: an unknown argument.
// Thread safety: one thread.
#include <cstdio>
#include <string_view>

#include "runtime/options/table.h"

int main(int argc, char** argv) {
  const std::string_view how = argc > 1 ? argv[1] : "";
  if (argc > 2 || (!how.empty() && how != "--json")) {
    std::fputs("usage: tombolo-settings [--json]\n", stderr);
    return 2;
  }
  using namespace tombolo::runtime;
  std::fputs((how.empty() ? options_as_markdown() : options_as_json()).c_str(), stdout);
  return 0;
}
