// SPDX-License-Identifier: Apache-2.0
#include "dsm/records/page_heat.h"

#include <algorithm>

#include "runtime/findings/call_sites.h"

namespace tombolo::dsm {
namespace {

bool hotter(const HotPage& one, const HotPage& other) {
  if (one.faults != other.faults) return one.faults > other.faults;
  return one.page < other.page;
}

std::size_t hash_of(Page page, const void* instruction) {
  const std::uint64_t mixed =
      (page * 0x9E3779B97F4A7C15u) ^ (reinterpret_cast<std::uint64_t>(instruction) * 0xC2B2AE3D27u);
  return mixed ^ mixed >> 29;
}

}  // namespace

PageHeat::PageHeat(const Shape& shape)
    : shape_(shape),
      counts_(shape.pages * sizeof(Counts)),
      touched_(shape.pages / pages_in_run + 1),
      sites_(most_sites * sizeof(Site)) {}

PageHeat::Counts& PageHeat::at(Page page) {
  touched_.as<char>()[page / pages_in_run] = 1;
  return counts_.as<Counts>()[page];
}

// Null where the table is full near its place: then the page has fewer places than it could.
PageHeat::Site* PageHeat::site(Page page, const void* instruction) {
  const std::size_t first = hash_of(page, instruction);
  for (std::size_t i = 0; i < most_probes; ++i) {
    Site& each = sites_.as<Site>()[(first + i) % most_sites];
    if (each.page_and_1 == page + 1 && each.instruction == instruction) return &each;
    if (each.page_and_1 != 0) continue;
    each.page_and_1 = page + 1;
    each.instruction = instruction;
    each.uses.low = ~std::uint32_t{0};
    return &each;
  }
  return nullptr;
}

void PageHeat::fault(Page page, std::uint64_t offset, bool store, const void* instruction) {
  ++at(page).faults;
  Site* const found = instruction == nullptr ? nullptr : site(page, instruction);
  if (found == nullptr) return;
  MissSite& uses = found->uses;
  ++(store ? uses.stores : uses.loads);
  uses.low = std::min(uses.low, static_cast<std::uint32_t>(offset));
  uses.high = std::max(uses.high, static_cast<std::uint32_t>(offset));
}

std::array<HotPage, PageHeat::most_hot> PageHeat::hottest() const {
  std::vector<HotPage> found;
  for (Page run = 0; run * pages_in_run < shape_.pages; ++run) {
    if (touched_.as<char>()[run] == 0) continue;
    const Page end = std::min<Page>((run + 1) * pages_in_run, shape_.pages);
    for (Page page = run * pages_in_run; page < end; ++page) {
      const Counts& counts = counts_.as<Counts>()[page];
      if (counts.faults == 0) continue;
      found.push_back(
          {.page = page, .faults = counts.faults, .fetches = counts.fetches, .sent = counts.sent});
    }
  }
  std::array<HotPage, most_hot> hottest{};
  std::ranges::partial_sort_copy(found, hottest, hotter);
  for (HotPage& each : hottest)
    if (each.faults != 0) add_sites(each);
  return hottest;
}

// Those with the most stores, and among them with the most loads.
void PageHeat::add_sites(HotPage& page) const {
  std::vector<MissSite> all;
  for (const Site& each : std::span(sites_.as<const Site>(), most_sites)) {
    if (each.page_and_1 != page.page + 1) continue;
    all.push_back(each.uses);
    // It returns to the instruction behind.
    all.back().code = runtime::call_site(static_cast<const char*>(each.instruction) + 1);
  }
  std::ranges::partial_sort_copy(all, page.sites, [](const MissSite& one, const MissSite& other) {
    return std::pair(one.stores, one.loads) > std::pair(other.stores, other.loads);
  });
}

}  // namespace tombolo::dsm
