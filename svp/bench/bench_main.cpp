// SPDX-License-Identifier: Apache-2.0
// Purpose: `tombolo-svp-bench [--workers N] [--rounds N] [--quick] [--only NAME] [--runtime NAME]`:
// families beside oneTBB (Debian: libtbb-dev) and OpenMP, where these are, in one run; a line of
// JSON for each contestant of each benchmark. `tombolo bench svp` starts it.
// Thread safety: -
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/options.h"
#include "svp/bench/contest.h"

namespace tombolo::svp::bench {
namespace {

constexpr std::pair<std::string_view, void (*)(const Settings&)> all[] = {
    {"fib", fib},           {"skynet", skynet}, {"tree", tree_search}, {"queens", queens},
    {"matrices", matrices}, {"loop", loop},     {"chain", chain},      {"counter", counter}};

bool read_number(std::string_view text, auto& out) {
  const auto number = number_in(text);
  if (!number || *number == 0 || *number > 1024) return false;
  out = static_cast<std::remove_reference_t<decltype(out)>>(*number);
  return true;
}

bool read(int argc, char** argv, Settings& out) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--quick") {
      out.quick = true;
      continue;
    }
    if (++i == argc) return false;
    if (option == "--only")
      out.only = argv[i];
    else if (option == "--runtime")
      out.runtime = argv[i];
    else if (option == "--workers" ? !read_number(argv[i], out.workers)
                                   : option != "--rounds" || !read_number(argv[i], out.rounds))
      return false;
  }
  return true;
}

}  // namespace
}  // namespace tombolo::svp::bench

int main(int argc, char** argv) {
  namespace bench = tombolo::svp::bench;
  bench::Settings settings;
  if (!bench::read(argc, argv, settings)) {
    std::fprintf(stderr,
                 "usage: tombolo-svp-bench [--workers N] [--rounds N] [--quick] [--only NAME] "
                 "[--runtime NAME]\n");
    return 2;
  }
  bool found = false;
  for (const auto& [name, run] : bench::all) {
    if (!settings.only.empty() && settings.only != name) continue;
    found = true;
    run(settings);
  }
  if (!found) std::fprintf(stderr, "no benchmark is called %s\n", settings.only.c_str());
  return found ? 0 : 2;
}
