// SPDX-License-Identifier: Apache-2.0
// Purpose: finds the description of a datatype: the table of predefined types, a small memory
// per thread, the attribute on the datatype, and last the datatype's own make-up.
// Invariants: a description is tied to its datatype by an attribute whose deletion the host
// reports, so that a handle used again for another datatype never finds the old description; every
// deletion raises `generation`, which voids the threads' memories.
// Thread safety: see type_info.h. The mutex is never taken by a callback.
#include "mpi/datatypes/type_info.h"

#include <atomic>
#include <cstdint>
#include <mutex>

#include "host/mpi/host.h"
#include "mpi/datatypes/flatten.h"
#include "mpi/datatypes/predefined.h"

namespace tombolo::mpi {
namespace {

using Holder = std::shared_ptr<const TypeInfo>;

struct State {
  std::mutex mutex;
  std::atomic<int> keyval{MPI_KEYVAL_INVALID};
  MPI_Comm probe{};
  bool has_probe = false;
};

State& state() {
  static State& only = *new State;
  return only;
}

std::atomic<std::uint64_t> generation{1};

struct Recent {
  MPI_Datatype datatype{};
  std::uint64_t generation = 0;
  const TypeInfo* info = nullptr;
};
constexpr unsigned recent_bits = 4;
thread_local Recent recent_types[std::size_t{1} << recent_bits];

Recent& recent_of(MPI_Datatype datatype) {
  return recent_types[place_of_key<recent_bits>(handle_key(datatype))];
}

int copy_nothing(MPI_Datatype, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

int forget(MPI_Datatype, int, void* value, void*) {
  generation.fetch_add(1, std::memory_order_acq_rel);
  delete static_cast<Holder*>(value);
  return MPI_SUCCESS;
}

const TypeInfo* from_attribute(MPI_Datatype datatype) {
  const int keyval = state().keyval.load(std::memory_order_acquire);
  if (keyval == MPI_KEYVAL_INVALID) return nullptr;
  void* value = nullptr;
  int found = 0;
  if (TOMBOLO_HOST(Type_get_attr)(datatype, keyval, static_cast<void*>(&value), &found) !=
          MPI_SUCCESS ||
      found == 0)
    return nullptr;
  return static_cast<Holder*>(value)->get();
}

int make_keyval() {
  int keyval = state().keyval.load(std::memory_order_acquire);
  if (keyval != MPI_KEYVAL_INVALID) return MPI_SUCCESS;
  const int error = TOMBOLO_HOST(Type_create_keyval)(&copy_nothing, &forget, &keyval, nullptr);
  if (error == MPI_SUCCESS) state().keyval.store(keyval, std::memory_order_release);
  return error;
}

// A send of one to MPI_PROC_NULL, which reads nothing, on a communicator that returns errors: the
// one way to ask every host whether a datatype is valid and committed. Without MPI_Init (sessions)
// nothing is asked.
int check_committed(MPI_Datatype datatype) {
  State& s = state();
  if (!s.has_probe) {
    int initialized = 0;
    TOMBOLO_HOST(Initialized)(&initialized);
    if (initialized == 0) return MPI_SUCCESS;
    const int error = TOMBOLO_HOST(Comm_split)(MPI_COMM_SELF, 0, 0, &s.probe);
    if (error != MPI_SUCCESS) return error;
    TOMBOLO_HOST(Comm_set_errhandler)(s.probe, MPI_ERRORS_RETURN);
    s.has_probe = true;
  }
  char nothing = 0;
  return TOMBOLO_HOST(Send)(&nothing, 1, datatype, MPI_PROC_NULL, 0, s.probe);
}

const TypeInfo* create(MPI_Datatype datatype, int* error) {
  const std::lock_guard lock(state().mutex);
  *error = check_committed(datatype);
  if (*error != MPI_SUCCESS) return nullptr;
  if (const TypeInfo* info = from_attribute(datatype); info != nullptr) return info;
  *error = make_keyval();
  if (*error != MPI_SUCCESS) return nullptr;
  Holder info = flatten(datatype, error);
  if (info == nullptr) return nullptr;
  auto holder = std::make_unique<Holder>(std::move(info));
  *error = TOMBOLO_HOST(Type_set_attr)(datatype, state().keyval.load(), holder.get());
  if (*error != MPI_SUCCESS) return nullptr;
  return holder.release()->get();  // the attribute owns the holder now
}

const TypeInfo* derived_info(MPI_Datatype datatype, int* error) {
  const std::uint64_t now = generation.load(std::memory_order_acquire);
  Recent& recent = recent_of(datatype);
  if (recent.datatype == datatype && recent.generation == now) return recent.info;
  const TypeInfo* info = create(datatype, error);
  if (info != nullptr) recent = {datatype, now, info};
  return info;
}

}  // namespace

void TypeInfo::become_predefined() {
  predefined = true;
  one_element = element && contiguous && size == windows::bytes(*element);
  // The standard's types, and MPI_CHAR, which MPI libraries take as well.
  swappable = element && (windows::valid_compare_and_swap(*element) ||
                          *element == windows::Element::character);
}

std::size_t TypeInfo::elements() const {
  if (!element) return 0;
  std::size_t total = 0;
  for (const Block& run : runs()) total += run.bytes;
  return total / windows::bytes(*element);
}

const TypeInfo* detail::find_type_info(MPI_Datatype datatype, int* error) {
  int code = MPI_SUCCESS;
  const TypeInfo* info = predefined_info(datatype, &code);
  if (info != nullptr) {
    if (info->handle == datatype) known_type(datatype).store(info, std::memory_order_release);
    return info;
  }
  if (code == MPI_SUCCESS) {
    if (datatype == MPI_Datatype{} || datatype == MPI_DATATYPE_NULL)
      code = MPI_ERR_TYPE;
    else
      info = derived_info(datatype, &code);
  }
  if (error != nullptr) *error = code;
  return info;
}

void release_type_info() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  generation.fetch_add(1, std::memory_order_acq_rel);
  int keyval = s.keyval.exchange(MPI_KEYVAL_INVALID);
  if (keyval != MPI_KEYVAL_INVALID) TOMBOLO_HOST(Type_free_keyval)(&keyval);
  if (s.has_probe) TOMBOLO_HOST(Comm_free)(&s.probe);
  s.has_probe = false;
}

}  // namespace tombolo::mpi
