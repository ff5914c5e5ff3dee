// SPDX-License-Identifier: Apache-2.0
// Purpose: the processes of a job that share memory with this one: those of its host. Sites are
// processes of the whole job; a home of the shared memory is one of the island.
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/place.h"
#include "svp/links/link.h"

namespace tombolo::svp {

struct Island {
  static constexpr machine::Home none = ~machine::Home{0};

  std::vector<Site> sites;           // of the island, by home
  std::vector<machine::Home> homes;  // of all sites; none: it is on another island

  // `colors` of all sites: those of one island have the same.
  static Island of(Site self, const std::vector<Site>& colors) {
    Island island;
    for (Site site = 0; site < colors.size(); ++site) {
      const bool here = colors[site] == colors[self];
      island.homes.push_back(here ? static_cast<machine::Home>(island.sites.size()) : none);
      if (here) island.sites.push_back(site);
    }
    return island;
  }

  bool has(Site site) const { return homes[site] != none; }
  bool is_whole_job() const { return sites.size() == homes.size(); }
};

}  // namespace tombolo::svp
