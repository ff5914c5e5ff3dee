// SPDX-License-Identifier: Apache-2.0
#include "runtime/reports/reports.h"

#include <cstdio>

namespace tombolo::runtime {

bool Reports::is_new(const std::string& text) {
  const std::lock_guard lock(mutex_);
  return written_.insert(text).second;
}

void Reports::once(const std::string& text) {
  if (is_new(text) && rank_ == 0) std::fprintf(stderr, "tombolo: %s\n", text.c_str());
}

void Reports::own_once(const std::string& text) {
  if (is_new(text)) std::fprintf(stderr, "tombolo: rank %d: %s\n", rank_, text.c_str());
}

}  // namespace tombolo::runtime
