// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/mpi_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

#include "host/mpi/host.h"

namespace tombolo::mpi {
namespace {

std::mutex& registry_mutex() {
  static std::mutex& the_mutex = *new std::mutex;
  return the_mutex;
}

int error_class(const Status& status) {
  switch (status.code()) {
    case Code::epoch:
      return MPI_ERR_RMA_SYNC;
    case Code::out_of_range:
      return MPI_ERR_RMA_RANGE;
    case Code::no_memory:
      return MPI_ERR_NO_MEM;
    default:
      return MPI_ERR_OTHER;
  }
}

std::int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::pmr::memory_resource& MpiWindow::memory_for_peers() {
  constexpr std::size_t each =
      sizeof(machine::DataRegion) + sizeof(machine::RegionPart) + sizeof(Extent);
  return peers.size() * each <= room_bytes / 2 ? first_page_ : more_memory_;
}

void MpiWindow::extend() {
  std::pmr::polymorphic_allocator<Extent> allocator(&memory_for_peers());
  Extent* const all = allocator.allocate(peers.size());
  for (std::size_t r = 0; r < peers.size(); ++r)
    std::construct_at(all + r, Extent{memory->members()[r].bytes, peers[r].disp_unit});
  extents = all;
}

Status MpiWindow::serve(const runtime::Options& options,
                        const windows::EngineOptions& engine_options, machine::WaitPolicy waiting) {
  extend();
  TOMBOLO_TRY(progress_.open());
  const std::uint64_t here = memory->members()[static_cast<std::size_t>(rank)].host;
  std::vector<host::ProcessName> processes;
  for (const runtime::Member& member : memory->members())
    processes.push_back(member.host == here ? member.process : host::ProcessName{});
  watch_.emplace(rank, std::move(processes), &progress_);
  TOMBOLO_TRY(memory->start_engine({.waiting = waiting,
                                    .idle = &*watch_,
                                    .for_regions = &memory_for_peers(),
                                    .for_engine = &first_page_},
                                   options, engine_options, engine_));
  serving_ = engine_.get();
  return {};
}

void MpiWindow::let_host_progress() {
  std::int64_t calls = ProgressPace::most_calls;
  if (const std::int64_t start = now_ns(); pace_.due(start)) {
    (void)progress_.idle().ok();
    calls = pace_.attempted(start, now_ns());
  }
  calls_until_progress_.store(static_cast<std::uint32_t>(calls - 1),
                              std::memory_order_relaxed);  // as in count_call()
}

void register_window(std::unique_ptr<MpiWindow> window) {
  const std::lock_guard lock(registry_mutex());
  MpiWindow* const raw = window.release();
  detail::served_windows.by_handle.insert(raw->handle, raw);
}

std::unique_ptr<MpiWindow> unregister_window(MpiWindow* window) {
  const std::lock_guard lock(registry_mutex());
  detail::served_windows.by_handle.erase(window->handle, window);
  return std::unique_ptr<MpiWindow>(window);
}

void for_each_window(const std::function<void(MpiWindow&)>& visit) {
  // Not under the mutex: a visitor may be in an exit handler that interrupted its holder.
  detail::served_windows.by_handle.each(visit);
}

int error_code(const Status& status, const char* call) {
  // A host has some thousands of codes for a whole run, and dies when they are used up: each text
  // gets one, and when many have been given out the class must do.
  constexpr std::size_t codes_at_most = 500;
  static std::mutex& mutex = *new std::mutex;
  static auto& codes = *new std::map<std::string, int>;
  const int plain = error_class(status);
  auto text = fmt::format("{}: {}", call, status.message());
  text.resize(std::min<std::size_t>(text.size(), MPI_MAX_ERROR_STRING - 1));
  const std::lock_guard lock(mutex);
  if (const auto known = codes.find(text); known != codes.end()) return known->second;
  int with_text = plain;
  if (codes.size() == codes_at_most || host().Add_error_code(plain, &with_text) != MPI_SUCCESS)
    return plain;
  host().Add_error_string(with_text, text.c_str());
  codes.emplace(std::move(text), with_text);
  return with_text;
}

namespace {

bool errors_end_the_job(const MpiWindow& window) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (host().Win_get_errhandler(window.handle, &handler) != MPI_SUCCESS) return false;
  bool fatal = handler == MPI_ERRORS_ARE_FATAL;
#if defined(MPI_ERRORS_ABORT)
  fatal = fatal || handler == MPI_ERRORS_ABORT;
#endif
  host().Errhandler_free(&handler);
  return fatal;
}

int raise(MpiWindow& window, int error, const char* call, const std::string& cause) {
  if (errors_end_the_job(window)) job().reports().own_once(fmt::format("{}: {}", call, cause));
  host().Win_call_errhandler(window.handle, error);
  return error;
}

}  // namespace

int raise(MpiWindow& window, int error, const char* call) {
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  host().Error_string(error, text.data(), &length);
  return raise(window, error, call, text.data());
}

int raise(MpiWindow& window, const Status& status, const char* call) {
  // Epoch errors are a class of their own in the standard; a program may compare codes with it.
  const int error = status.code() == Code::epoch ? int{MPI_ERR_RMA_SYNC} : error_code(status, call);
  return raise(window, error, call, status.message());
}

}  // namespace tombolo::mpi
