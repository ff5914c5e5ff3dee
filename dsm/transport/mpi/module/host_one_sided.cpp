// SPDX-License-Identifier: Apache-2.0
// Purpose: the job of dsm/transport/mpi/one_sided.h by the host MPI that this module is compiled
// for. The MPI is loaded before the module is.
//
// Invariants: HOS1 the window and its communicator are used by the program's thread; the thread
//                  that lets the host MPI answer uses a communicator of its own.
//             HOS2 the window is locked for all from make() on (a passive target epoch), and each
//                  operation ends with a flush of its home.
// Thread safety: as OneSided.
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "dsm/transport/mpi/load.h"
#include "dsm/transport/mpi/module/answering_thread.h"
#include "dsm/transport/mpi/module/host_losses.h"
#include "dsm/transport/mpi/one_sided.h"
#include "dsm/transport/mpi/shared_room.h"
#include "host/mpi/host.h"
#include "host/processes/processors.h"
#include "host/processes/start_thread.h"
#include "machine/waiting.h"

namespace tombolo::dsm {
namespace {

using mpi::host;

class HostOneSided final : public OneSided {
 public:
  Status start() {
    TOMBOLO_TRY(mpi::check_host());
    TOMBOLO_TRY(check_version());
    int level = 0;
    TOMBOLO_HOST(Init_thread)(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    if (level != MPI_THREAD_MULTIPLE)
      return Status::unsupported(
          "transport mpi needs a host MPI that several threads may call (MPI_THREAD_MULTIPLE)");
    TOMBOLO_HOST(Comm_dup)(MPI_COMM_WORLD, &comm_);
    host().Comm_rank(comm_, &rank_);
    host().Comm_size(comm_, &size_);
    waiting_ = machine::WaitPolicy::for_host(static_cast<std::uint32_t>(size_),
                                             tombolo::host::processors());
    losses_.emplace(comm_);
    answers_.emplace(comm_);
    return {};
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Status gather(const void* mine, void* everyones, std::size_t bytes) override {
    const int n = static_cast<int>(bytes);
    return done(TOMBOLO_HOST(Allgather)(mine, n, MPI_BYTE, everyones, n, MPI_BYTE, comm_));
  }
  Status broadcast(void* data, std::size_t bytes, int root) override {
    return done(TOMBOLO_HOST(Bcast)(data, static_cast<int>(bytes), MPI_BYTE, root, comm_));
  }
  bool all(bool yes) override {
    const int in = yes ? 1 : 0;
    int out = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    TOMBOLO_HOST(Iallreduce)(&in, &out, 1, MPI_INT, MPI_MIN, comm_, &request);
    machine::Waiter waiter(waiting_, nullptr);
    for (int complete = 0; complete == 0;) {
      TOMBOLO_HOST(Test)(&request, &complete, MPI_STATUS_IGNORE);
      (void)waiter.step().ok();  // without a hook it does not fail
      if (waiter.wants_sleep()) usleep(sleep_us);
    }
    return out != 0;
  }

  Status make(std::size_t word_bytes, std::size_t data_bytes) override {
    word_bytes_ = word_bytes;
    std::uint64_t mine = data_bytes;
    data_bytes_.resize(static_cast<std::size_t>(size_));
    TOMBOLO_TRY(gather(&mine, data_bytes_.data(), sizeof mine));
    const std::size_t bytes = word_bytes + data_bytes;
    TOMBOLO_TRY(check_room(bytes));
    void* memory = nullptr;
    TOMBOLO_HOST(Win_allocate)
    (static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, comm_, &memory, &window_);
    TOMBOLO_HOST(Win_lock_all)(MPI_MODE_NOCHECK, window_);
    std::memset(memory, 0, bytes);
    TOMBOLO_HOST(Win_sync)(window_);
    return done(TOMBOLO_HOST(Barrier)(comm_));
  }
  std::uint64_t data_bytes(machine::Home home) const override { return data_bytes_[home]; }

  std::uint64_t load(machine::SyncPlace word) override { return fetch(word, 0, MPI_NO_OP); }
  std::uint64_t exchange(machine::SyncPlace word, std::uint64_t value) override {
    return fetch(word, value, MPI_REPLACE);
  }
  std::uint64_t fetch_add(machine::SyncPlace word, std::uint64_t value) override {
    return fetch(word, value, MPI_SUM);
  }
  std::uint64_t compare_exchange(machine::SyncPlace word, std::uint64_t expected,
                                 std::uint64_t desired) override {
    std::uint64_t before = 0;
    const int home = static_cast<int>(word.home);
    host().Compare_and_swap(&desired, &expected, &before, MPI_UINT64_T, home,
                            static_cast<MPI_Aint>(word.offset), window_);
    host().Win_flush(home, window_);
    return before;
  }

  void get(machine::DataPlace from, void* out, std::size_t bytes) override {
    const int n = static_cast<int>(bytes);
    const int home = static_cast<int>(from.home);
    host().Get(out, n, MPI_BYTE, home, at(from), n, MPI_BYTE, window_);
    host().Win_flush(home, window_);
  }
  void put(machine::DataPlace to, const void* in, std::size_t bytes) override {
    const int n = static_cast<int>(bytes);
    const int home = static_cast<int>(to.home);
    host().Put(in, n, MPI_BYTE, home, at(to), n, MPI_BYTE, window_);
    host().Win_flush(home, window_);
  }
  void accumulate_xor(machine::DataPlace to, const void* in, std::size_t bytes) override {
    const int n = static_cast<int>(bytes / sizeof(std::uint64_t));
    const int home = static_cast<int>(to.home);
    host().Accumulate(in, n, MPI_UINT64_T, home, at(to), n, MPI_UINT64_T, MPI_BXOR, window_);
    host().Win_flush(home, window_);
  }

  void progress() override { answers_->progress(); }

  void post(int to, std::span<const std::byte> message) override { answers_->post(to, message); }
  void listen(Listener* listener) override { answers_->listen(listener); }

  void finish() override {
    all(true);
    answers_.reset();
    if (window_ != MPI_WIN_NULL) {
      TOMBOLO_HOST(Win_unlock_all)(window_);
      TOMBOLO_HOST(Win_free)(&window_);
    }
    losses_.reset();
    TOMBOLO_HOST(Comm_free)(&comm_);
    finalize();
  }

 private:
  static constexpr unsigned sleep_us = 50;

  // MPICH 4 over TCP by UCX may wait for ever for a process that has ended its part.
  void finalize() {
    constexpr int looks = 3000;
    std::atomic<bool> ended{false};
    std::thread watch;
    const Status watched = tombolo::host::start_thread(
        "that watches the end of the host MPI",
        [this, &ended] {
          for (int i = 0; i < looks && !ended; ++i) usleep(10'000);
          if (!ended) leave();
        },
        watch);
    TOMBOLO_HOST(Finalize)();  // which nearly always returns
    ended = true;
    if (watched.ok()) watch.join();
  }
  [[noreturn]] void leave() const {
    std::fflush(nullptr);
    std::fprintf(stderr,
                 "tombolo: rank %d: MPI_Finalize of the host MPI does not return; the program had "
                 "ended as it should (CAVEATS)\n",
                 rank_);
    _exit(1);
  }
  Status check_room(std::uint64_t bytes) {
    const SharedRoom mine = room_here(bytes);
    std::vector<SharedRoom> all(static_cast<std::size_t>(size_));
    TOMBOLO_TRY(gather(&mine, all.data(), sizeof mine));
    return check_rooms(all);
  }
  // One-sided operations of several threads crash Open MPI 4 (osc/rdma over btl/vader).
  static Status check_version() {
#if defined(OPEN_MPI)
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    TOMBOLO_HOST(Get_library_version)(text.data(), &length);
    if (std::strstr(text.data(), " v4.") != nullptr)
      return Status::unsupported(
          "transport mpi needs Open MPI 5 or MPICH: one-sided operations of Open MPI 4 fail where "
          "several threads call it");
#endif
    return {};
  }
  static Status done(int error) {
    if (error == MPI_SUCCESS) return {};
    return Status::io("the host MPI failed to tell the processes of each other");
  }
  MPI_Aint at(machine::DataPlace place) const {
    return static_cast<MPI_Aint>(word_bytes_ + place.offset);
  }
  std::uint64_t fetch(machine::SyncPlace word, std::uint64_t value, MPI_Op op) {
    std::uint64_t before = 0;
    const int home = static_cast<int>(word.home);
    host().Fetch_and_op(&value, &before, MPI_UINT64_T, home, static_cast<MPI_Aint>(word.offset), op,
                        window_);
    host().Win_flush(home, window_);
    return before;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  int rank_ = 0;
  int size_ = 1;
  machine::WaitPolicy waiting_;
  std::size_t word_bytes_ = 0;
  std::vector<std::uint64_t> data_bytes_;  // by home
  std::optional<HostLosses> losses_;
  std::optional<AnsweringThread> answers_;
};

}  // namespace
}  // namespace tombolo::dsm

extern "C" [[gnu::visibility("default")]] bool tombolo_dsm_one_sided(
    std::unique_ptr<tombolo::dsm::OneSided>* out, tombolo::Status* why) {
  auto job = std::make_unique<tombolo::dsm::HostOneSided>();
  *why = job->start();
  if (why->ok()) *out = std::move(job);
  return why->ok();
}
