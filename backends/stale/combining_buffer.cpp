// SPDX-License-Identifier: Apache-2.0
#include "backends/stale/combining_buffer.h"

namespace tombolo::stale {

std::size_t CombiningBuffer::find(SpanId span, Line line) const {
  const Key key{span, line};
  for (std::size_t i = 0; i < size_; ++i)
    if (key_[i] == key) return i;
  return size_;
}

void CombiningBuffer::send_entry(std::size_t i) {
  bus_.store(key_[i].span, key_[i].line, entry_[i].data.data(), entry_[i].mask, entry_[i].site);
  --size_;
  key_[i] = key_[size_];
  entry_[i] = entry_[size_];
}

void CombiningBuffer::put(SpanId span, Line line, std::size_t first, const void* data,
                          std::size_t bytes) {
  std::size_t i = find(span, line);
  if (i == size_) {
    if (size_ == capacity) send_one();
    i = size_++;
    key_[i] = {span, line};
    entry_[i].mask = 0;
  }
  std::memcpy(entry_[i].data.data() + first, data, bytes);
  entry_[i].mask |= byte_mask(first, bytes);
  entry_[i].site = bus_.writer().site;
}

void CombiningBuffer::send(SpanId span, Line line) {
  if (const std::size_t i = find(span, line); i < size_) send_entry(i);
}

void CombiningBuffer::send_one() {
  if (size_ > 0) send_entry(random_.below(size_));
}

void CombiningBuffer::send_all() {
  while (size_ > 0) send_one();
}

void CombiningBuffer::overlay(SpanId span, Line line, std::byte* out) const {
  const std::size_t i = find(span, line);
  if (i == size_) return;
  const Entry& entry = entry_[i];
  for (std::size_t b = 0; b < line_bytes; ++b)
    if ((entry.mask >> b & 1) != 0) out[b] = entry.data[b];
}

}  // namespace tombolo::stale
