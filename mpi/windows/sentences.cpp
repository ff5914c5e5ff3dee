// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string_view>

#include "base/option_table.h"
#include "base/options.h"
#include "runtime/findings/call_sites.h"

namespace tombolo::mpi {
namespace {

using machine::Loss;
using machine::LossFact;
using machine::Writer;

std::string bytes_of(const LossFact& f) {
  return f.bytes == 0 ? "bytes" : fmt::format("{} byte{}", f.bytes, f.bytes == 1 ? "" : "s");
}

const char* were(const LossFact& f) { return f.bytes == 1 ? "was" : "were"; }

std::string times_of(std::uint64_t times) {
  return times == 1 ? "once" : fmt::format("{} times", times);
}

std::string at(const std::string& place) { return place.empty() ? "" : " at " + place; }

std::string doer(const Writer& writer, const std::string& place) {
  if (writer.rank == Writer::nobody) return "another process" + at(place);
  return fmt::format("rank {}{}", writer.rank, at(place));
}

// How often, and where the first of them was.
std::string extent(const LossFact& f) {
  std::string text = "; " + times_of(f.times);
  if (f.evicted != 0) text += fmt::format(", {} by eviction", times_of(f.evicted));
  if (f.end == f.begin) return text;
  const std::string range = f.end == f.begin + 1
                                ? fmt::format("byte {}", f.begin)
                                : fmt::format("bytes {} to {}", f.begin, f.end - 1);
  text +=
      fmt::format("; {} of rank {}'s memory{}", range, f.home, f.times == 1 ? "" : ", and others");
  return text;
}

// A word of the command line that a shell takes as it is.
std::string quoted(const std::string& word) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-+=./:,@%^").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string own_command() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/cmdline", "re"),
                                                             std::fclose);
  std::string text;
  std::string word;
  if (file == nullptr) return text;
  for (int c = std::fgetc(file.get()); c != EOF; c = std::fgetc(file.get())) {
    if (c != 0) {
      word += static_cast<char>(c);
      continue;
    }
    text += " " + quoted(word);
    word.clear();
  }
  return text;
}

// Those that change the work of a window on `stale`, but for the seed and the evictions.
constexpr std::array repeated_settings = {&options::passive_sync, &options::backoff,
                                          &options::reader_bias, &options::atomics,
                                          &options::shared_noncontig};

// "NAME=VALUE " of each that is set.
std::string own_settings() {
  std::string text;
  for (const Option* option : repeated_settings)
    if (is_set(*option)) text += fmt::format("{}={} ", option->variable, quoted(text_of(*option)));
  return text;
}

}  // namespace

std::string sentence(const LossFact& f, const std::string& culprit, const std::string& victim) {
  const std::string what = bytes_of(f);
  const std::string here = doer(f.culprit, culprit);
  const std::string there = doer(f.victim, victim);
  switch (f.loss) {
    case Loss::lost_update:
      return fmt::format(
          "lost update: {} that {} wrote {} overwritten with old values when {} wrote back its "
          "cache "
          "line{}",
          what, there, were(f), here, extent(f));
    case Loss::dropped_write:
      return fmt::format(
          "dropped write: {}, stored and not published, {} lost when {} refreshed its memory{}",
          what, were(f), here, extent(f));
    case Loss::unpublished:
      return fmt::format("never published: {} that {} wrote{}", what, here, extent(f));
    case Loss::undrained:
      return fmt::format(
          "never completed: {} that {} put, in an epoch that was not closed when the window was "
          "freed{}",
          what, here, extent(f));
    case Loss::broken_no_store:
      return fmt::format(
          "broken promise: {} says MPI_MODE_NOSTORE, but it has stored {} that no call has "
          "published{}",
          here, what, extent(f));
    case Loss::broken_no_put:
      return fmt::format(
          "broken promise: MPI_MODE_NOPUT was said for the epoch that ends in {}, but {} wrote {} "
          "to "
          "that memory, which its owner does not see{}",
          here, there, what, extent(f));
    case Loss::late:
      break;
  }
  return fmt::format(
      "note, no mistake: {} that {} wrote came to the memory of rank {} only when the window was "
      "freed, since it neither locked nor synchronized its window after them{}",
      what, there, f.culprit.rank, extent(f));
}

std::string report(const ReportedWindow& window, const std::vector<LossFact>& facts) {
  std::vector<std::uint64_t> sites{window.made_at};
  for (const LossFact& fact : facts) {
    sites.push_back(fact.culprit.site);
    sites.push_back(fact.victim.site);
  }
  const std::vector<std::string> places = runtime::places_of(sites);
  std::string text = fmt::format("tombolo: stale: window{}{} of {} process{}:\n",
                                 window.name.empty() ? "" : fmt::format(" \"{}\"", window.name),
                                 places[0].empty() ? "" : " made at " + places[0], window.size,
                                 window.size == 1 ? "" : "es");
  for (std::size_t i = 0; i < facts.size(); ++i)
    text +=
        fmt::format("tombolo:   {}\n", sentence(facts[i], places[2 * i + 1], places[2 * i + 2]));
  return text;
}

std::string command_again(int ranks, std::uint64_t seed, std::uint64_t evictions) {
  return fmt::format("{}tombolo run -n {} --machine stale --seed {} --evictions {}{}",
                     own_settings(), ranks, seed, evictions, own_command());
}

}  // namespace tombolo::mpi
