// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <variant>

#include "base/check.h"
#include "svp/language/program.h"
#include "svp/places/place.h"

namespace tombolo::svp::language {
namespace {

static_assert(sizeof(svp_place) == sizeof(Place) && std::is_trivially_copyable_v<Place>);

struct Made {
  Place name;
  std::variant<std::unique_ptr<LocalPlace>, std::unique_ptr<ExclusivePlace>> place;
};

// The places that the program has made and not ended.
class Places {
 public:
  // Never destroyed: at the end of the program, threads may still be at a place.
  static Places& here() {
    static auto* const places = new Places;
    return *places;
  }
  template <class P>
  svp_place add(std::unique_ptr<P> place) {
    const Place name = *place;
    const std::lock_guard lock(mutex_);
    all_.push_back({name, std::move(place)});
    return std::bit_cast<svp_place>(name);
  }
  Made* find(svp_place name) {
    const std::lock_guard lock(mutex_);
    for (Made& made : all_)
      if (is(made, name)) return &made;
    return nullptr;
  }
  // False: there is none of this name.
  bool drop(svp_place name) {
    std::list<Made> dropped;  // outside of the lock
    const std::lock_guard lock(mutex_);
    for (auto at = all_.begin(); at != all_.end(); ++at) {
      if (!is(*at, name)) continue;
      dropped.splice(dropped.begin(), all_, at);
      return true;
    }
    return false;
  }

 private:
  static bool is(const Made& made, svp_place name) {
    const auto of = std::bit_cast<svp_place>(made.name);
    return of.svp_record == name.svp_record && of.svp_generation == name.svp_generation;
  }
  std::mutex mutex_;
  std::list<Made> all_;
};

// The host has no memory or threads left for a place: the program cannot go on without.
template <class Make>
svp_place made(const char* what, Make&& make) {
  try {
    return Places::here().add(make());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tombolo: %s: no place can be made: %s\n", what, error.what());
    std::_Exit(1);
  }
}

}  // namespace
}  // namespace tombolo::svp::language

using namespace tombolo::svp;

extern "C" {

svp_place svp_local_place(unsigned workers) {
  return language::made("svp_local_place", [&] { return std::make_unique<LocalPlace>(workers); });
}

svp_place svp_exclusive_place(void) {
  return language::made("svp_exclusive_place", [] { return std::make_unique<ExclusivePlace>(); });
}

svp_place svp_exclusive_place_at(svp_place local) {
  language::Made* const at = language::Places::here().find(local);
  const bool is_local =
      at != nullptr && std::holds_alternative<std::unique_ptr<LocalPlace>>(at->place);
  TOMBOLO_CHECK(is_local,
                "svp_exclusive_place_at: the argument is no place of svp_local_place that "
                "exists");
  return language::made("svp_exclusive_place_at", [&] {
    return std::make_unique<ExclusivePlace>(*std::get<std::unique_ptr<LocalPlace>>(at->place));
  });
}

void svp_end_place(svp_place ended) {
  const bool is_known = language::Places::here().drop(ended);
  TOMBOLO_CHECK(is_known,
                "svp_end_place: the place does not exist any more, or is the default one");
}

}  // extern "C"
