// SPDX-License-Identifier: Apache-2.0
// Purpose: the families of a program in the language of families, over
// svp/api/include/tombolo/svp.hpp. tombolo-svpc writes a function for each create of a program,
// which constructs a Created<...> in the program's variable of type `family`; the threads
// themselves are functions in C.
//
//   struct step : language::Thread<svp_thread_step, 8, 8, int> {
//     static constexpr std::array<const char*, 1> shared_names{"sum"};
//   };
//   extern "C" void svpc_create_0(svp_family* family, const svp_site* site, long start, long limit,
//                                 const void* arguments) {
//     language::create<step>(*family, *site, {.start = start, .limit = limit}, arguments);
//   }
//
// Invariants: LNG1 a variable has an object from a create to the end of its sync, and no longer:
//                  each later use is found out.
//             LNG2 arguments and channels lie in the object before the family is offered to others:
//                  no thread reads them in its creator's frame.
// Thread safety: as Family.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "svp/api/include/tombolo/svp.hpp"
#include "svp/language/include/tombolo/svp_program.h"

// Of a shared parameter's type.
struct svp_end_operations {
  const void* (*read)(void* channel);
  void (*write)(void* channel, const void* value);
};

namespace tombolo::svp::language {

// A struct or union of the program.
template <std::size_t bytes, std::size_t alignment>
struct alignas(alignment) Bytes {
  std::array<std::byte, bytes> content;
};

// The call of a thread: its index, its global arguments, and an end for each shared parameter.
using Call = void (*)(long index, const void* globals, svp_end* ends);

// A thread function: its call, the size and alignment of its global arguments, and the types of
// its shared parameters. Their names are added by the generated type.
template <Call function, std::size_t global_bytes, std::size_t global_alignment, class... Values>
struct Thread {
  static constexpr Call call = function;
  static constexpr std::size_t bytes = global_bytes;
  static constexpr std::size_t alignment = global_alignment;
  // Between and behind bindings and globals.
  static constexpr std::size_t padding(std::size_t shared) {
    const std::size_t bindings = shared * sizeof(svp_binding);
    const std::size_t largest = shared == 0 ? alignment : std::max(alignment, alignof(svp_binding));
    const auto rounded = [](std::size_t n, std::size_t to) { return (n + to - 1) / to * to; };
    return rounded(rounded(bindings, alignment) + bytes, largest) - bindings - bytes;
  }
  using Shares = std::tuple<Shared<Values>...>;
};

// An array that takes no space where it has no elements: std::array may.
template <class T, std::size_t count>
struct Elements : std::array<T, count> {};
template <class T>
struct Elements<T, 0> {
  const void* data() const { return nullptr; }
};

// A mistake of the program: stops it.
[[noreturn]] void stop_at(const svp_site& site, const std::string& why);

// ---- Shared channels --------------------------------------------------------------------------

template <class Value>
inline constexpr svp_end_operations end_operations{
    .read = [](void* channel) -> const void* {
      return &static_cast<SharedEnd<Value>*>(channel)->read();
    },
    .write =
        [](void* channel, const void* value) {
          Value copied;
          std::memcpy(&copied, value, sizeof(Value));
          static_cast<SharedEnd<Value>*>(channel)->write(copied);
        }};

// The value for the first thread: now, by the creator.
template <class Value>
Value bound(const svp_binding& binding, const svp_site& site) {
  const void* const value =
      binding.end != nullptr ? svp_read(binding.end, &site) : binding.variable;
  Value copied;
  std::memcpy(&copied, value, sizeof(Value));
  return copied;
}
// The value of the last thread, to where the first one's came from.
template <class Value>
void give_back(const svp_binding& binding, Value value, const svp_site& site) {
  if (binding.end != nullptr)
    svp_write(binding.end, &value, &site);
  else
    std::memcpy(binding.variable, &value, sizeof(Value));
}

// ---- Families ---------------------------------------------------------------------------------

// At the sync, where the creator reads the value of the last thread.
void check_written(const svp_site& site, bool is_missing, const char* name);

// The end of a family that is not done, in its variable.
void keep(svp_family& family, const Exit& exit);

// A family in a variable, whatever its threads are.
class Object {
 public:
  // Also drops it.
  virtual svp_exit sync(svp_family& family, const svp_site& site) = 0;
  // Kills and joins it, if it was not synced.
  virtual void drop(svp_family& family) = 0;
  virtual void kill() = 0;

 protected:
  ~Object() = default;
};

// Without a range: a single thread.
struct One {};

template <class Thread, class At, class Indices, class Shares = typename Thread::Shares>
class Created;

template <class Thread, class At, class Indices, class... Values>
class Created<Thread, At, Indices, std::tuple<Shared<Values>...>> final : public Object {
  static constexpr std::size_t shared = sizeof...(Values);
  static constexpr auto each = std::index_sequence_for<Values...>{};
  struct Arguments {
    [[no_unique_address]] Elements<svp_binding, shared> bindings;
    [[no_unique_address]] alignas(Thread::alignment) Elements<std::byte, Thread::bytes> globals;
  };
  // As the program's C has it.
  static_assert(std::is_empty_v<Arguments> || sizeof(Arguments) == sizeof(svp_binding) * shared +
                                                                       Thread::bytes +
                                                                       Thread::padding(shared));
  struct Body {
    Created* of;
    void operator()(Index index, SharedEnd<Values>&... channels) const {
      if constexpr (shared == 0)
        Thread::call(index, of->arguments_.globals.data(), nullptr);
      else
        of->run_with(index, each, channels...);
    }
  };
  static constexpr bool is_one = std::is_same_v<Indices, One>;
  using Threads = std::conditional_t<is_one, detail::OneThread<Body, Shared<Values>...>,
                                     detail::RangeThreads<Body, Shared<Values>...>>;

 public:
  Created(const svp_site& site, const At& at, const Range& range, const void* arguments)
      : arguments_(copied(arguments)), family_(made(site, at, range)) {}

  svp_exit sync(svp_family& family, const svp_site& site) override {
    const Dropped dropped{family, *this};
    const Exit exit = family_.sync();
    family.reason = static_cast<svp_exit>(exit.reason);
    if (!exit.done()) [[unlikely]]
      keep(family, exit);
    else if constexpr (shared != 0)
      give_all_back(site, each);
    return family.reason;
  }
  void drop(svp_family& family) override { const Dropped dropped{family, *this}; }
  void kill() override { family_.kill(); }

 private:
  struct Dropped {
    svp_family& family;
    Created& object;
    ~Dropped() {
      family.object = nullptr;
      if constexpr (sizeof(Created) <= SVP_FAMILY_BYTES)
        std::destroy_at(&object);
      else
        delete &object;
    }
  };
  static Arguments copied(const void* from) {
    Arguments arguments;
    if constexpr (shared != 0 || Thread::bytes != 0)
      std::memcpy(&arguments, from, sizeof(Arguments));
    return arguments;
  }
  Family<At, Threads> made(const svp_site& site, const At& at, const Range& range) {
    if constexpr (shared != 0) bind(site, each);
    return std::apply(
        [&](Shared<Values>&... channels) {
          if constexpr (is_one && shared == 0)
            return Family<At, Threads>(at, std::in_place, Body{this});
          else
            return Family<At, Threads>(at, std::in_place, range, Body{this}, channels...);
        },
        channels_);
  }
  template <std::size_t... number>
  void bind(const svp_site& site, std::index_sequence<number...>) {
    (std::get<number>(channels_).write(bound<Values>(arguments_.bindings[number], site)), ...);
  }
  // Threads run in order: each finds the channels that the one before has not written.
  template <std::size_t... number>
  void run_with(Index index, std::index_sequence<number...>, SharedEnd<Values>&... channels) {
    std::array<svp_end, shared> ends{svp_end{.operations = &end_operations<Values>,
                                             .channel = &channels,
                                             .missing = missing_[number],
                                             .written = 0}...};
    Thread::call(index, arguments_.globals.data(), ends.data());
    ((missing_[number] = ends[number].written == 0), ...);
  }
  template <std::size_t... number>
  void give_all_back(const svp_site& site, std::index_sequence<number...>) {
    (check_written(site, missing_[number], Thread::shared_names[number]), ...);
    (give_back<Values>(arguments_.bindings[number], std::get<number>(channels_).read(), site), ...);
  }

  Arguments arguments_;
  [[no_unique_address]] std::tuple<Shared<Values>...> channels_;
  [[no_unique_address]] Elements<bool, shared> missing_{};
  Family<At, Threads> family_;
};

// The variable has a family, or was never declared as one.
[[noreturn]] void stop_not_free(const svp_family& family, const svp_site& site);
void check_range(const Range& range, const svp_site& site);

template <class T, class... Args>
void construct(svp_family& family, const svp_site& site, const Args&... args) {
  static_assert(alignof(T) <= alignof(svp_family));
  if (family.count == 0 || family.object != nullptr) [[unlikely]]
    stop_not_free(family, site);
  Object* object = nullptr;
  if constexpr (sizeof(T) <= SVP_FAMILY_BYTES)
    object = new (family.storage) T(site, args...);
  else
    object = new T(site, args...);
  family.object = object;
  family.site = &site;
}

// One thread.
template <class Thread>
void create(svp_family& family, const svp_site& site, const void* arguments) {
  construct<Created<Thread, AtDefault, One>>(family, site, AtDefault{}, Range{}, arguments);
}
template <class Thread>
void create(svp_family& family, const svp_site& site, svp_place place, const void* arguments) {
  construct<Created<Thread, AtPlace, One>>(family, site, AtPlace(std::bit_cast<Place>(place)),
                                           Range{}, arguments);
}
// A thread for each index.
template <class Thread>
void create(svp_family& family, const svp_site& site, const Range& range, const void* arguments) {
  check_range(range, site);
  construct<Created<Thread, AtDefault, Range>>(family, site, AtDefault{}, range, arguments);
}
template <class Thread>
void create(svp_family& family, const svp_site& site, svp_place place, const Range& range,
            const void* arguments) {
  check_range(range, site);
  construct<Created<Thread, AtPlace, Range>>(family, site, AtPlace(std::bit_cast<Place>(place)),
                                             range, arguments);
}

// The program: `thread main` as a family of one thread, and its end as the exit status.
int run(void (*program)(long index, int argc, char** argv), int argc, char** argv);

}  // namespace tombolo::svp::language
