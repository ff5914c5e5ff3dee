// SPDX-License-Identifier: Apache-2.0
#include "dsm/records/hot_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/findings/call_sites.h"

namespace tombolo::dsm {
namespace {

// An access is of 8 bytes, mostly: two that begin within as many may touch one byte.
constexpr std::uint32_t near = 8;

bool apart(const MissSite& one, const MissSite& other) {
  return one.high + near <= other.low || other.high + near <= one.low;
}

bool shared_falsely(std::span<const SharedPage::Place> places) {
  bool found = false;
  for (const auto& one : places)
    for (const auto& other : places) {
      if (one.thread == other.thread || one.uses.stores == 0) continue;
      if (!apart(one.uses, other.uses)) return false;
      found = true;
    }
  return found;
}

void add(SharedPage& into, Thread thread, const HotPage& page) {
  into.page = page.page;
  into.faults += page.faults;
  into.fetches += page.fetches;
  into.sent += page.sent;
  into.threads.push_back(thread);
  for (const MissSite& each : page.sites)
    if (each.loads + each.stores != 0) into.places.push_back({.thread = thread, .uses = each});
}

std::string text_of(const SharedPage::Place& place, const std::string& line) {
  return fmt::format("{} (thread {}: {} stores, {} loads, bytes {} to {})", line, place.thread,
                     place.uses.stores, place.uses.loads, place.uses.low, place.uses.high);
}

std::string text_of(const runtime::Counters::Value& value) {
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return std::to_string(*number);
  if (const auto* yes = std::get_if<bool>(&value)) return *yes ? "yes" : "no";
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* numbers = std::get_if<std::vector<std::uint64_t>>(&value))
    return fmt::format("{}", fmt::join(*numbers, ","));
  return fmt::format("{}", fmt::join(std::get<std::vector<std::string>>(value), "; "));
}

}  // namespace

std::vector<SharedPage> hottest_of(std::span<const HotPage> all, std::size_t most) {
  std::map<Page, SharedPage> by_page;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].faults != 0)
      add(by_page[all[i].page], static_cast<Thread>(i / PageHeat::most_hot), all[i]);
  std::vector<SharedPage> pages;
  for (auto& [page, each] : by_page) pages.push_back(std::move(each));
  std::ranges::stable_sort(pages, std::greater(), &SharedPage::faults);
  if (pages.size() > most) pages.resize(most);
  for (SharedPage& each : pages) each.shared_falsely = shared_falsely(each.places);
  return pages;
}

std::vector<runtime::Counters::Row> rows_of(std::span<const SharedPage> pages, std::uint64_t first,
                                            std::size_t page_bytes) {
  std::vector<std::uint64_t> codes;
  for (const SharedPage& page : pages)
    for (const auto& place : page.places) codes.push_back(place.uses.code);
  const std::vector<std::string> lines = runtime::places_of(codes);
  std::vector<runtime::Counters::Row> rows;
  std::size_t next = 0;
  for (const SharedPage& page : pages) {
    std::vector<std::string> places;
    for (const auto& place : page.places) places.push_back(text_of(place, lines[next++]));
    rows.push_back(
        {{"address", fmt::format("{:#x}", first + page.page * page_bytes)},
         {"faults", page.faults},
         {"fetches", page.fetches},
         {"sent", page.sent},
         {"threads", std::vector<std::uint64_t>(page.threads.begin(), page.threads.end())},
         {"shared_falsely", page.shared_falsely},
         {"places", places}});
  }
  return rows;
}

std::string text_of(const runtime::Counters::Row& row) {
  std::string line;
  for (const auto& [name, value] : row)
    line += fmt::format("{}{}={}", line.empty() ? "" : " ", name, text_of(value));
  return line;
}

}  // namespace tombolo::dsm
