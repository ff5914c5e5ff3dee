// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls of tombolo/dsm.h.
// Thread safety: the thread that calls tombolo_dsm_init(), alone.
#include "dsm/api/include/tombolo/dsm.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "base/check.h"
#include "dsm/api/program.h"
#include "dsm/threads/condition.h"
#include "dsm/threads/instrumented_code.h"
#include "dsm/threads/partial_barrier.h"

namespace tombolo::dsm {
namespace {

std::unique_ptr<Program> the_program;

// Of all threads that run main().
Program& program_of_all(const char* call) {
  Program& in = program(call);
  TOMBOLO_CHECK(in.threads() == nullptr,
                "{}: it is of all processes, some of which wait for threads; after "
                "tombolo_dsm_init_first take one that was made for a number of threads",
                call);
  return in;
}

double reduced(const char* call, double value, ProgramMemory::Combine combine) {
  auto bits = std::bit_cast<std::uint64_t>(value);
  Program::must(program_of_all(call).memory().reduce(bits, combine));
  return std::bit_cast<double>(bits);
}

// A combination of doubles as one of words.
template <double (*Of)(double, double)>
std::uint64_t in_words(std::uint64_t a, std::uint64_t b) {
  return std::bit_cast<std::uint64_t>(Of(std::bit_cast<double>(a), std::bit_cast<double>(b)));
}
double sum(double a, double b) { return a + b; }
double least(double a, double b) { return std::min(a, b); }
double most(double a, double b) { return std::max(a, b); }

// Null outside of the program's memory.
ProgramMemory* memory_of(const void* address) {
  if (the_program == nullptr) return nullptr;
  const std::span<std::byte> memory = the_program->memory().memory();
  const auto* const at = static_cast<const std::byte*>(address);
  return at >= memory.data() && at < memory.data() + memory.size() ? &the_program->memory()
                                                                   : nullptr;
}

// The mutexes that this thread has.
int spans = 0;

void begin_span() { tell_instrumented_code(++spans); }
void end_span() { tell_instrumented_code(--spans); }

void check_block(const char* call, Program& in, const void* block) {
  TOMBOLO_CHECK(in.blocks().bytes_of(block) != nullptr,
                "{}: {} is not the address of a block of tombolo_dsm_malloc", call, block);
}

void start(const char* call, Program::Start how) {
  TOMBOLO_CHECK(the_program == nullptr, "{}: the program has begun before", call);
  the_program = std::make_unique<Program>(how);
  serve_instrumented_code({.memory_of = &memory_of,
                           .first_lock = the_program->atomic_locks(),
                           .locks = Program::atomic_lock_count,
                           .check = &Program::must});
}

void end() {
  the_program->close();
  the_program.reset();
}

}  // namespace

Program& program(const char* call) {
  TOMBOLO_CHECK(the_program != nullptr, "{}: call it between tombolo_dsm_init and _finalize", call);
  return *the_program;
}

}  // namespace tombolo::dsm

using tombolo::dsm::Condition;
using tombolo::dsm::PartialBarrier;
using tombolo::dsm::Program;
using tombolo::dsm::program;

extern "C" {

[[gnu::visibility("default")]] void tombolo_dsm_init(void) {
  tombolo::dsm::start(__func__, Program::Start::all);
}

[[gnu::visibility("default")]] void tombolo_dsm_init_first(void) {
  tombolo::dsm::start(__func__, Program::Start::first);
  Program& in = program(__func__);
  if (in.memory().self() == 0) return;
  in.threads()->serve(tombolo::dsm::spans);
  tombolo::dsm::end();
  // The rest of main() is the first thread's. Output of this process's threads is written.
  std::exit(0);
}

[[gnu::visibility("default")]] void tombolo_dsm_finalize(void) {
  const Program& in = program(__func__);
  TOMBOLO_CHECK(in.threads() == nullptr || in.threads()->is_first(),
                "{}: it is for the first thread to call", __func__);
  tombolo::dsm::end();
}

[[gnu::visibility("default")]] unsigned tombolo_dsm_thread(void) {
  return program(__func__).memory().self();
}

[[gnu::visibility("default")]] unsigned tombolo_dsm_threads(void) {
  return program(__func__).memory().threads();
}

[[gnu::visibility("default")]] int tombolo_dsm_heap_create(size_t bytes) {
  Program& in = program(__func__);
  TOMBOLO_CHECK(in.heap() == nullptr, "{}: there is a heap already", __func__);
  auto* const place = static_cast<std::byte*>(in.blocks().take(bytes));
  if (place == nullptr) return ENOMEM;
  if (in.make_heap({place, bytes}).ok()) return 0;
  in.blocks().give_back(place);
  return ENOMEM;
}

[[gnu::visibility("default")]] void* tombolo_dsm_malloc(size_t bytes) {
  Program& in = program(__func__);
  if (in.heap() != nullptr) return in.heap()->malloc(bytes);
  void* const block = in.blocks().take(bytes);
  if (block == nullptr) errno = ENOMEM;
  return block;
}

[[gnu::visibility("default")]] void tombolo_dsm_free(void* block) {
  Program& in = program(__func__);
  if (block == nullptr) return;
  if (in.heap() != nullptr && in.heap()->owns(block)) return in.heap()->free(block);
  tombolo::dsm::check_block(__func__, in, block);
  in.blocks().give_back(block);
}

[[gnu::visibility("default")]] void* tombolo_dsm_realloc(void* block, size_t bytes) {
  Program& in = program(__func__);
  if (in.heap() != nullptr) {
    TOMBOLO_CHECK(block == nullptr || in.heap()->owns(block),
                  "{}: {} was taken before tombolo_dsm_heap_create", __func__, block);
    return in.heap()->realloc(block, bytes);
  }
  void* const larger = tombolo_dsm_malloc(bytes);
  if (larger == nullptr || block == nullptr) return larger;
  tombolo::dsm::check_block(__func__, in, block);
  Program::must(in.memory().barrier());
  if (in.memory().self() == 0)
    std::memcpy(larger, block, std::min(bytes, *in.blocks().bytes_of(block)));
  Program::must(in.memory().barrier());
  in.blocks().give_back(block);
  return larger;
}

[[gnu::visibility("default")]] void tombolo_dsm_record(const void* address, size_t bytes) {
  program(__func__).memory().record(address, bytes);
}

[[gnu::visibility("default")]] tombolo_dsm_mutex_t tombolo_dsm_mutex_create(void) {
  return {program(__func__).take_lock()};
}

[[gnu::visibility("default")]] void tombolo_dsm_mutex_lock(tombolo_dsm_mutex_t mutex) {
  Program::must(program(__func__).memory().acquire(mutex.number));
  tombolo::dsm::begin_span();
}

[[gnu::visibility("default")]] int tombolo_dsm_mutex_trylock(tombolo_dsm_mutex_t mutex) {
  bool taken = false;
  Program::must(program(__func__).memory().try_acquire(mutex.number, taken));
  if (taken) tombolo::dsm::begin_span();
  return taken ? 1 : 0;
}

[[gnu::visibility("default")]] void tombolo_dsm_mutex_unlock(tombolo_dsm_mutex_t mutex) {
  Program::must(program(__func__).memory().release(mutex.number));
  tombolo::dsm::end_span();
}

[[gnu::visibility("default")]] tombolo_dsm_cond_t tombolo_dsm_cond_create(void) {
  return {
      static_cast<std::uint32_t>(program(__func__).take_words(__func__, Condition::words_needed))};
}

[[gnu::visibility("default")]] void tombolo_dsm_cond_wait(tombolo_dsm_cond_t cond,
                                                          tombolo_dsm_mutex_t mutex) {
  Program::must(Condition(program(__func__).memory(), cond.number).wait(mutex.number));
}

[[gnu::visibility("default")]] void tombolo_dsm_cond_signal(tombolo_dsm_cond_t cond) {
  Condition(program(__func__).memory(), cond.number).signal();
}

[[gnu::visibility("default")]] void tombolo_dsm_cond_broadcast(tombolo_dsm_cond_t cond) {
  Condition(program(__func__).memory(), cond.number).broadcast();
}

[[gnu::visibility("default")]] void tombolo_dsm_barrier_wait(void) {
  Program::must(tombolo::dsm::program_of_all(__func__).memory().barrier());
}

[[gnu::visibility("default")]] tombolo_dsm_barrier_t tombolo_dsm_barrier_create(unsigned threads) {
  Program& in = program(__func__);
  TOMBOLO_CHECK(threads != 0 && threads <= in.memory().threads(),
                "{}: a barrier of {} threads; the program has {}", __func__, threads,
                in.memory().threads());
  return {static_cast<std::uint32_t>(in.take_words(__func__, PartialBarrier::words_needed)),
          threads};
}

[[gnu::visibility("default")]] void tombolo_dsm_barrier_wait_at(tombolo_dsm_barrier_t barrier) {
  Program& in = program(__func__);
  TOMBOLO_CHECK(barrier.threads != 0, "{}: tombolo_dsm_barrier_create has not made this barrier",
                __func__);
  Program::must(PartialBarrier(in.memory(), barrier.number, barrier.threads).wait());
}

[[gnu::visibility("default")]] double tombolo_dsm_sum(double value) {
  return tombolo::dsm::reduced(__func__, value, tombolo::dsm::in_words<tombolo::dsm::sum>);
}

[[gnu::visibility("default")]] double tombolo_dsm_min(double value) {
  return tombolo::dsm::reduced(__func__, value, tombolo::dsm::in_words<tombolo::dsm::least>);
}

[[gnu::visibility("default")]] double tombolo_dsm_max(double value) {
  return tombolo::dsm::reduced(__func__, value, tombolo::dsm::in_words<tombolo::dsm::most>);
}

[[gnu::visibility("default")]] uint64_t tombolo_dsm_sum_u64(uint64_t value) {
  Program::must(tombolo::dsm::program_of_all(__func__).memory().reduce(
      value, [](std::uint64_t a, std::uint64_t b) { return a + b; }));
  return value;
}

// ---- Calls of instrumented code ---------------------------------------------------------------

[[gnu::visibility("default")]] const tombolo_dsm_runtime* tombolo_dsm_attach(
    const tombolo_dsm_module* module) {
  return tombolo::dsm::attach(*module);
}

[[gnu::visibility("default")]] void tombolo_dsm_detach(const tombolo_dsm_module* module) {
  tombolo::dsm::detach(*module);
}

}  // extern "C"
