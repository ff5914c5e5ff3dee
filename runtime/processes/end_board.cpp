// SPDX-License-Identifier: Apache-2.0
#include "runtime/processes/end_board.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstring>

namespace tombolo::runtime {

Status EndBoard::create(int size, EndBoard& out) {
  return host::Segment::create_anonymous(static_cast<std::uint64_t>(size) * sizeof(Word), "ends",
                                         out.segment_);
}

std::string EndBoard::name() const {
  const host::SegmentName& name = segment_.name();
  return fmt::format("{}:{}:{}:{}:{}", name.pid, name.descriptor, name.inode, name.bytes,
                     name.path);
}

void EndBoard::note(int rank, int wait_status) {
  word(rank).store(ended | static_cast<std::uint32_t>(wait_status), std::memory_order_release);
}

Status EndBoard::join(EndBoard& out) {
  const std::string text = text_of(end_board_option);
  host::SegmentName name;
  unsigned long long inode = 0;
  unsigned long long bytes = 0;
  int length = 0;
  const int found = std::sscanf(text.c_str(), "%d:%d:%llu:%llu:%n", &name.pid, &name.descriptor,
                                &inode, &bytes, &length);
  if (found != 4 || length == 0 || text.size() - length >= sizeof name.path)
    return Status::bad_configuration("this process's launcher keeps no board of ends");
  name.inode = inode;
  name.bytes = bytes;
  std::strcpy(name.path, text.c_str() + length);
  return host::Segment::attach(name, out.segment_);
}

std::string EndBoard::text(int rank) const {
  return text_of_end(static_cast<int>(word(rank).load(std::memory_order_acquire) & ~ended));
}

std::string text_of_end(int wait_status) {
  if (WIFEXITED(wait_status)) return fmt::format("ended with status {}", WEXITSTATUS(wait_status));
  return fmt::format("was killed by signal {} ({})", WTERMSIG(wait_status),
                     strsignal(WTERMSIG(wait_status)));
}

}  // namespace tombolo::runtime
