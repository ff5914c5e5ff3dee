// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/stream.h"

namespace tombolo::experiments {

void Stream::send_words(std::span<const std::uint64_t> words) {
  const scc::View at = system_.scratch();
  for (const std::uint64_t word : words) {
    system_.cpu().store(at, word);
    send(at, sizeof word);
  }
}

void Stream::receive_words(std::span<std::uint64_t> words) {
  const scc::View at = system_.scratch();
  for (std::uint64_t& word : words) {
    receive(at, sizeof word);
    word = system_.cpu().load<std::uint64_t>(at);
  }
}

}  // namespace tombolo::experiments
