// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls of tombolo/svp.h.
#include "svp/api/include/tombolo/svp.h"

#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "svp/api/c_channels.h"
#include "svp/api/c_family.h"
#include "svp/api/c_remote.h"
#include "svp/api/include/tombolo/svp.hpp"

namespace tombolo::svp {
namespace {

// The words of a tombolo_svp_family_t.
struct FamilyWords {
  static constexpr std::uint64_t is_created = 0x53565046414d494c;
  std::uint64_t created;
  HeldFamily* held;
  alignas(8) std::byte memory[sizeof(tombolo_svp_family_t) - 2 * sizeof(std::uint64_t)];
};
static_assert(sizeof(FamilyWords) == sizeof(tombolo_svp_family_t));
static_assert(sizeof(CGlobal) <= sizeof(tombolo_svp_global_t));
static_assert(sizeof(CShared) <= sizeof(tombolo_svp_shared_t));
static_assert(sizeof(Place) == sizeof(tombolo_svp_place_t));

FamilyWords& words_of(tombolo_svp_family_t* family) {
  return *reinterpret_cast<FamilyWords*>(family);
}

Place place_of(const tombolo_svp_place_t& place) {
  Place made;
  std::memcpy(static_cast<void*>(&made), &place, sizeof made);
  return made;
}
tombolo_svp_place_t name_of(const Place& place) {
  tombolo_svp_place_t made;
  std::memcpy(&made, &place, sizeof made);
  return made;
}

// The places that the program has made, by their records.
struct Places {
  std::mutex mutex;
  std::map<const void*, std::shared_ptr<void>> all;

  static Places& here() {
    static Places places;
    return places;
  }
};

template <class Made>
int made_place(tombolo_svp_place_t* out, auto... arguments) {
  try {
    const auto place = std::make_shared<Made>(arguments...);
    *out = name_of(*place);
    Places& places = Places::here();
    const std::lock_guard lock(places.mutex);
    places.all[out->record] = place;
  } catch (const std::bad_alloc&) {
    return TOMBOLO_SVP_NO_MEMORY;
  } catch (const std::system_error&) {
    return TOMBOLO_SVP_NO_THREADS;
  }
  return TOMBOLO_SVP_OK;
}

// The status of a call that may have been stopped.
template <class Call>
int status_of(Call&& call) {
  try {
    call();
  } catch (const Stopped&) {
    if (CThread* const thread = CThread::here()) thread->stopped = true;
    return TOMBOLO_SVP_STOPPED;
  } catch (const NoValue&) {
    return TOMBOLO_SVP_NO_VALUE;
  } catch (const std::bad_alloc&) {
    return TOMBOLO_SVP_NO_MEMORY;
  } catch (const std::system_error&) {
    return TOMBOLO_SVP_NO_THREADS;
  }
  return TOMBOLO_SVP_OK;
}

template <class F, class Channels, class... Args>
void hold(FamilyWords& words, const Channels& channels, Args&&... args) {
  using Held = HeldAs<F, Channels>;
  static_assert(sizeof(Held) <= sizeof words.memory);
  static_assert(alignof(Held) <= alignof(FamilyWords));
  words.held = new (words.memory) Held(channels, std::forward<Args>(args)...);
}

template <class At>
void hold_plain(FamilyWords& words, const At& at, const Range* range, const CBody& body) {
  if (range == nullptr)
    hold<Family<At, SingleThread<CBody>>>(words, NoChannels{}, at, CBody(body));
  else
    hold<Family<At, DividedThreads<CBody>>>(words, NoChannels{}, at, *range, CBody(body));
}

CChannels channels_of(const tombolo_svp_channels_t& given) {
  TOMBOLO_CHECK(given.shared_count <= TOMBOLO_SVP_SHARED_CHANNELS,
                "create: {} shared channels; a family has at most {}", given.shared_count,
                TOMBOLO_SVP_SHARED_CHANNELS);
  CChannels channels;
  channels.globals = {.all = given.globals, .count = given.global_count};
  channels.count = given.shared_count;
  for (std::size_t i = 0; i < given.shared_count; ++i) channels.shareds[i] = &of(given.shareds[i]);
  return channels;
}

void hold_with(FamilyWords& words, const Place& place, const Range& range, const CBody& body,
               const tombolo_svp_channels_t& given) {
  const CChannels channels = channels_of(given);
  const AtPlace at(place);
  if (channels.count == 0)
    hold<Family<AtPlace, DividedThreads<CBody, CGlobals>>>(words, channels.globals, at, range,
                                                           CBody(body));
  else
    hold<Family<AtPlace, OrderedThreads<CBody, CChannels>>>(words, channels, at, range,
                                                            CBody(body));
}

void hold_named(FamilyWords& words, const Place& place, const Range& range,
                const FunctionEntry& entry, const tombolo_svp_data_t* data) {
  static_assert(sizeof(HeldRemote) <= sizeof words.memory);
  const RemoteRecord* const remote = place.is_default() ? nullptr : place.record().remote;
  if (remote != nullptr)
    words.held = new (words.memory) HeldRemote(*remote, range, entry, data);
  else
    hold<Family<AtPlace, DividedThreads<CNamedBody>>>(words, NoChannels{}, AtPlace(place), range,
                                                      CNamedBody(CFunction::of(entry), data));
}

Range range_of(const tombolo_svp_range_t& range) {
  return {.start = range.start, .limit = range.limit, .step = range.step, .block = range.block};
}

template <class Hold>
int create_as(tombolo_svp_family_t* family, Hold&& hold_it) {
  FamilyWords& words = words_of(family);
  const int status = status_of([&] { hold_it(words); });
  if (status != TOMBOLO_SVP_OK) return status;
  words.created = FamilyWords::is_created;
  CThread* const thread = CThread::here();
  words.held->creator = thread;
  if (thread != nullptr) ++thread->unsynced;
  return status;
}

tombolo_svp_exit_t exit_of(const Exit& exit) {
  tombolo_svp_exit_t made{.reason = static_cast<tombolo_svp_reason_t>(exit.reason),
                          .value = exit.value};
  try {
    exit.rethrow();
  } catch (const CFailure& failure) {
    made.value = failure.value;
  } catch (...) {  // of a family in C++: its cause has no number
  }
  return made;
}

CThread& thread_for(const char* call) {
  CThread* const thread = CThread::here();
  TOMBOLO_CHECK(thread != nullptr, "{}: outside of all families", call);
  return *thread;
}

SharedEnd<CValue>& end_of(tombolo_svp_shared_t* shared, const char* call) {
  SharedEnd<CValue>* const end = of(shared).end;
  TOMBOLO_CHECK(end != nullptr, "{}: no thread of a family with this shared channel runs", call);
  return *end;
}

template <class Channel>
void init(void* words, std::size_t value_bytes, const char* call) {
  TOMBOLO_CHECK(value_bytes > 0 && value_bytes <= TOMBOLO_SVP_VALUE_BYTES,
                "{}: values of {} bytes; from 1 to {} are possible", call, value_bytes,
                TOMBOLO_SVP_VALUE_BYTES);
  new (words) Channel(value_bytes);
}

}  // namespace
}  // namespace tombolo::svp

using namespace tombolo::svp;  // NOLINT: this file is the API

#define TOMBOLO_SVP_CALL extern "C" __attribute__((visibility("default")))

TOMBOLO_SVP_CALL int tombolo_svp_create(tombolo_svp_family_t* family, tombolo_svp_place_t place,
                                        const tombolo_svp_range_t* range, tombolo_svp_body_t body,
                                        void* argument) {
  return create_as(family, [&](FamilyWords& words) {
    const Range indices = range == nullptr ? Range{} : range_of(*range);
    const Range* const given = range == nullptr ? nullptr : &indices;
    const Place at = place_of(place);
    if (at.is_default())
      hold_plain(words, AtDefault{}, given, CBody(body, argument));
    else
      hold_plain(words, AtPlace(at), given, CBody(body, argument));
  });
}

TOMBOLO_SVP_CALL int tombolo_svp_create_with(tombolo_svp_family_t* family,
                                             tombolo_svp_place_t place,
                                             const tombolo_svp_range_t* range,
                                             tombolo_svp_body_t body, void* argument,
                                             const tombolo_svp_channels_t* channels) {
  if (channels == nullptr) return tombolo_svp_create(family, place, range, body, argument);
  return create_as(family, [&](FamilyWords& words) {
    hold_with(words, place_of(place), range == nullptr ? Range{} : range_of(*range),
              CBody(body, argument), *channels);
  });
}

TOMBOLO_SVP_CALL int tombolo_svp_create_named(tombolo_svp_family_t* family,
                                              tombolo_svp_place_t place,
                                              const tombolo_svp_range_t* range, const char* name,
                                              const tombolo_svp_data_t* data) {
  const FunctionEntry* const entry = find_function(CFunction::id_of(name));
  TOMBOLO_CHECK(entry != nullptr, "create_named: there is no function {}", name);
  return create_as(family, [&](FamilyWords& words) {
    hold_named(words, place_of(place), range == nullptr ? Range{} : range_of(*range), *entry, data);
  });
}

TOMBOLO_SVP_CALL int tombolo_svp_sync(tombolo_svp_family_t* family, tombolo_svp_exit_t* exit) {
  FamilyWords& words = words_of(family);
  TOMBOLO_CHECK(words.created == FamilyWords::is_created,
                "sync: this family was not created, or was synced before");
  CThread* const thread = CThread::here();
  TOMBOLO_CHECK(words.held->creator == thread, "sync: by a thread that has not created the family");
  Exit end{.reason = ExitReason::killed};
  const int status = status_of([&] { end = words.held->sync(); });
  if (exit != nullptr) *exit = exit_of(end);
  words.created = 0;
  std::destroy_at(words.held);
  if (thread != nullptr) --thread->unsynced;
  return status;
}

TOMBOLO_SVP_CALL void tombolo_svp_kill(tombolo_svp_family_t* family) {
  FamilyWords& words = words_of(family);
  TOMBOLO_CHECK(words.created == FamilyWords::is_created,
                "kill: this family was not created, or was synced before");
  words.held->base().kill();
}

TOMBOLO_SVP_CALL int tombolo_svp_break(int64_t value) {
  (void)thread_for("break");
  return status_of([&] { break_family(value); });
}

TOMBOLO_SVP_CALL int tombolo_svp_fail(int64_t value) {
  CThread& thread = thread_for("fail");
  thread.failed = true;
  thread.failure = value;
  return TOMBOLO_SVP_STOPPED;
}

TOMBOLO_SVP_CALL int tombolo_svp_checkpoint(void) {
  return status_of([] { checkpoint(); });
}

TOMBOLO_SVP_CALL tombolo_svp_place_t tombolo_svp_default_place(void) { return name_of(Place()); }

TOMBOLO_SVP_CALL int tombolo_svp_local_place(tombolo_svp_place_t* place, unsigned workers) {
  struct Local : LocalPlace {
    using LocalPlace::LocalPlace;
  };
  return made_place<Local>(place, workers);
}

TOMBOLO_SVP_CALL int tombolo_svp_exclusive_place(tombolo_svp_place_t* place) {
  return made_place<ExclusivePlace>(place);
}

TOMBOLO_SVP_CALL void tombolo_svp_end_place(tombolo_svp_place_t place) {
  TOMBOLO_CHECK(place.record != nullptr, "end_place: the default place does not end");
  (void)place_of(place).record();
  Places& places = Places::here();
  std::shared_ptr<void> ended;
  const std::lock_guard lock(places.mutex);
  const auto found = places.all.find(place.record);
  TOMBOLO_CHECK(found != places.all.end(), "end_place: a place that was not made by a call in C");
  ended = std::move(found->second);
  places.all.erase(found);
}

TOMBOLO_SVP_CALL void tombolo_svp_enter(const char* name, tombolo_svp_function_t function,
                                        const tombolo_svp_parameter_t* parameters,
                                        size_t parameter_count) {
  enter_c_function(name, function, {parameters, parameter_count});
}
TOMBOLO_SVP_CALL int tombolo_svp_run(int (*program)(void* argument), void* argument) {
  int result = 0;
  try {
    return run([&](Job&) {
      run_c_thread(0, [&] { result = program(argument); });
      return result;
    });
  } catch (const CFailure& failure) {
    return static_cast<int>(failure.value);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tombolo: svp_run: %s\n", error.what());
  } catch (...) {
    std::fputs("tombolo: svp_run: the program has ended with an exception\n", stderr);
  }
  return 1;
}
TOMBOLO_SVP_CALL unsigned tombolo_svp_processes(void) { return Job::here().processes(); }
TOMBOLO_SVP_CALL unsigned tombolo_svp_process(void) { return Job::here().rank(); }
TOMBOLO_SVP_CALL tombolo_svp_place_t tombolo_svp_place_of(unsigned process) {
  return name_of(Job::here().place(process));
}
TOMBOLO_SVP_CALL tombolo_svp_place_t tombolo_svp_exclusive_of(unsigned process) {
  return name_of(Job::here().exclusive(process));
}
TOMBOLO_SVP_CALL void* tombolo_svp_allocate(size_t bytes) {
  void* memory = nullptr;
  if (status_of([&] { memory = Job::here().allocate(bytes); }) == TOMBOLO_SVP_OK)
    std::memset(memory, 0, bytes);
  return memory;
}
TOMBOLO_SVP_CALL void tombolo_svp_free(void* memory) {
  if (memory != nullptr) Job::here().free(memory);
}

TOMBOLO_SVP_CALL void tombolo_svp_global_init(tombolo_svp_global_t* global, size_t value_bytes) {
  init<CGlobal>(global, value_bytes, "global_init");
}
TOMBOLO_SVP_CALL void tombolo_svp_global_write(tombolo_svp_global_t* global, const void* value) {
  CGlobal& channel = of(global);
  channel.channel.write(CValue::of(value, channel.value_bytes));
}
TOMBOLO_SVP_CALL int tombolo_svp_global_read(tombolo_svp_global_t* global, void* value) {
  CGlobal& channel = of(global);
  return status_of(
      [&] { std::memcpy(value, channel.channel.read().bytes.data(), channel.value_bytes); });
}

TOMBOLO_SVP_CALL void tombolo_svp_shared_init(tombolo_svp_shared_t* shared, size_t value_bytes) {
  init<CShared>(shared, value_bytes, "shared_init");
}
TOMBOLO_SVP_CALL void tombolo_svp_shared_first(tombolo_svp_shared_t* shared, const void* value) {
  CShared& channel = of(shared);
  channel.channel.write(CValue::of(value, channel.value_bytes));
}
TOMBOLO_SVP_CALL int tombolo_svp_shared_last(tombolo_svp_shared_t* shared, void* value) {
  CShared& channel = of(shared);
  return status_of(
      [&] { std::memcpy(value, channel.channel.read().bytes.data(), channel.value_bytes); });
}
TOMBOLO_SVP_CALL int tombolo_svp_shared_read(tombolo_svp_shared_t* shared, void* value) {
  return status_of([&] {
    const CValue& read = end_of(shared, "shared_read").read();
    std::memcpy(value, read.bytes.data(), of(shared).value_bytes);
  });
}
TOMBOLO_SVP_CALL void tombolo_svp_shared_write(tombolo_svp_shared_t* shared, const void* value) {
  end_of(shared, "shared_write").write(CValue::of(value, of(shared).value_bytes));
}
