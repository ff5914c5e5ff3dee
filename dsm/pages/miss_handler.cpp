// SPDX-License-Identifier: Apache-2.0
#include "dsm/pages/miss_handler.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace tombolo::dsm {

void MissHandler::fail(Page page, const Status& why) {
  std::array<char, 500> line;
  const auto end = fmt::format_to_n(line.data(), line.size() - 1,
                                    "tombolo: virtual shared memory: page {} cannot be had: {}",
                                    page, why.message());
  const std::size_t bytes = std::min(end.size, line.size() - 1);
  line[bytes] = '\n';
  (void)!write(STDERR_FILENO, line.data(), bytes + 1);
  _exit(1);
}

}  // namespace tombolo::dsm
