// SPDX-License-Identifier: Apache-2.0
// Purpose: the hottest pages of a program, all threads together, as text for people: their
// addresses, how often they moved, and the source lines that share them falsely.
//
// Two threads share a page falsely if one of them stores to it, both have missed it, and the bytes
// at which they missed it lie apart. Only misses are known: an access to a page that is cached
// leaves no trace.
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dsm/records/page_heat.h"
#include "runtime/counters/counters.h"

namespace tombolo::dsm {

struct SharedPage {
  Page page = 0;
  std::uint64_t faults = 0;
  std::uint64_t fetches = 0;
  std::uint64_t sent = 0;
  std::vector<Thread> threads;  // those that missed it
  bool shared_falsely = false;
  struct Place {
    Thread thread = 0;
    MissSite uses;
  };
  std::vector<Place> places;
};

// `all`: `PageHeat::most_hot` of each thread, by thread. At most `most`, the first one first.
std::vector<SharedPage> hottest_of(std::span<const HotPage> all, std::size_t most);

// A row for each page: address, faults, fetches, sent, threads, shared_falsely, and places as
// "FILE:LINE (thread 1: 30 stores, 2 loads, bytes 0 to 64)". Starts processes to find the lines.
std::vector<runtime::Counters::Row> rows_of(std::span<const SharedPage> pages, std::uint64_t first,
                                            std::size_t page_bytes);

// "name=value name=value ...": on one line without its end.
std::string text_of(const runtime::Counters::Row& row);

}  // namespace tombolo::dsm
