// SPDX-License-Identifier: Apache-2.0
// Purpose: host_messages.h by the host MPI that this module is compiled for. The MPI is loaded
// before the module is.
//
// Invariants: HMM1 a letter is received once a probe has found it, from its sender by name; those
//                 of one sender are shown in that order (HMS1). No receive is posted for any
//                 sender: MPICH 5 over UCX leaves letters unmatched where many come at a time.
//             HMM2 letters and arrays have a communicator each; a group has one of its own.
//             HMM3 an error of MPI is returned, and becomes a trouble; none ends the job.
// Thread safety: as HostMessages.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <deque>
#include <iterator>
#include <list>
#include <thread>
#include <vector>

#include "host/mpi/host.h"
#include "host/processes/start_thread.h"
#include "svp/links/mpi/host_messages.h"

namespace tombolo::svp {
namespace {

using mpi::host;

std::string text_of(int error) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  TOMBOLO_HOST(Error_string)(error, text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

Status done_or(int error) {
  if (error == MPI_SUCCESS) return {};
  return Status::io("the host MPI failed to tell the processes of each other: " + text_of(error));
}

MPI_Comm duplicate(MPI_Comm of) {
  MPI_Comm made = MPI_COMM_NULL;
  TOMBOLO_HOST(Comm_dup)(of, &made);
  TOMBOLO_HOST(Comm_set_errhandler)(made, MPI_ERRORS_RETURN);  // HMM3
  return made;
}

class Group final : public HostExchange {
 public:
  // Takes the communicator.
  explicit Group(MPI_Comm comm) : comm_(comm) {
    TOMBOLO_HOST(Comm_rank)(comm_, &rank_);
    TOMBOLO_HOST(Comm_size)(comm_, &size_);
  }
  ~Group() override {
    if (comm_ != MPI_COMM_NULL) TOMBOLO_HOST(Comm_free)(&comm_);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  MPI_Comm comm() const { return comm_; }
  // Of a job that is not whole: it is not freed.
  void leave() { comm_ = MPI_COMM_NULL; }

  Status gather(const void* mine, void* everyones, std::size_t bytes) override {
    const int n = static_cast<int>(bytes);
    return done_or(TOMBOLO_HOST(Allgather)(mine, n, MPI_BYTE, everyones, n, MPI_BYTE, comm_));
  }
  Status broadcast(void* data, std::size_t bytes, int root) override {
    return done_or(TOMBOLO_HOST(Bcast)(data, static_cast<int>(bytes), MPI_BYTE, root, comm_));
  }
  bool all(bool yes) override {
    const int in = yes ? 1 : 0;
    int out = 0;
    const int error = TOMBOLO_HOST(Allreduce)(&in, &out, 1, MPI_INT, MPI_MIN, comm_);
    return error == MPI_SUCCESS && out != 0;
  }

 private:
  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
};

class Messages final : public HostMessages {
 public:
  Status start() {
    TOMBOLO_TRY(mpi::check_host());
    TOMBOLO_TRY(initialize());
    all_ = std::make_unique<Group>(duplicate(MPI_COMM_WORLD));
    letters_ = duplicate(MPI_COMM_WORLD);
    arrays_ = duplicate(MPI_COMM_WORLD);
    learn_tags();
    return {};
  }

  int rank() const override { return all_->rank(); }
  int size() const override { return all_->size(); }
  Status gather(const void* mine, void* everyones, std::size_t bytes) override {
    return all_->gather(mine, everyones, bytes);
  }
  Status broadcast(void* data, std::size_t bytes, int root) override {
    return all_->broadcast(data, bytes, root);
  }
  bool all(bool yes) override { return all_->all(yes); }
  std::unique_ptr<HostExchange> group(int color) override {
    MPI_Comm made = MPI_COMM_NULL;
    TOMBOLO_HOST(Comm_split)(all_->comm(), color, rank(), &made);
    TOMBOLO_HOST(Comm_set_errhandler)(made, MPI_ERRORS_RETURN);
    return std::make_unique<Group>(made);
  }

  // ---- Letters ----------------------------------------------------------------------------------

  std::byte* room() override {
    constexpr std::size_t looks = 4;  // the eldest are the next
    for (std::size_t i = 0; i < std::min(outgoing_.size(), looks); ++i) {
      next_ = (next_ + 1) % outgoing_.size();
      if (is_free(outgoing_[next_])) return outgoing_[next_].bytes.get();
    }
    outgoing_.push_back({.bytes = std::unique_ptr<std::byte[]>(new std::byte[letter_bytes])});
    next_ = outgoing_.size() - 1;
    return outgoing_[next_].bytes.get();
  }
  void send(int to, std::size_t bytes) override {
    Outgoing& letter = outgoing_[next_];
    letter.to = to;
    const int error = host().Isend(letter.bytes.get(), static_cast<int>(bytes), MPI_BYTE, to, tag,
                                   letters_, &letter.request);
    note(error, to);
  }
  bool receive(Letter& out) override {
    if (shown_ != incoming_.end()) {
      unused_.splice(unused_.end(), incoming_, shown_);
      shown_ = incoming_.end();
    }
    for (auto letter = incoming_.begin(); letter != incoming_.end(); ++letter)
      if (!waits_behind_another(letter) && show(letter, out)) return true;
    while (begin_next()) {
      const auto letter = std::prev(incoming_.end());
      if (!waits_behind_another(letter) && show(letter, out)) return true;
    }
    return false;
  }

  // ---- Arrays -----------------------------------------------------------------------------------

  std::uint32_t tags() const override { return tags_; }
  Transfer send_array(int to, std::uint32_t of, std::span<const std::byte> from) override {
    const Transfer number = take_number(to);
    note(host().Isend(from.data(), static_cast<int>(from.size()), MPI_BYTE, to,
                      static_cast<int>(of), arrays_, &moving_[number].request),
         to);
    return number;
  }
  Transfer receive_array(int from, std::uint32_t of, std::span<std::byte> to) override {
    const Transfer number = take_number(from);
    note(host().Irecv(to.data(), static_cast<int>(to.size()), MPI_BYTE, from, static_cast<int>(of),
                      arrays_, &moving_[number].request),
         from);
    return number;
  }
  std::optional<std::size_t> done(Transfer number) override {
    Moving& moving = moving_[number];
    int ended = 0;
    MPI_Status status;
    const int error = host().Test(&moving.request, &ended, &status);
    note(error, moving.with);
    if (error != MPI_SUCCESS || ended == 0) return std::nullopt;
    int bytes = 0;
    host().Get_count(&status, MPI_BYTE, &bytes);
    free_.push_back(number);
    return static_cast<std::size_t>(bytes);
  }
  bool drop(Transfer number) override {
    Moving& moving = moving_[number];
    if (moving.request != MPI_REQUEST_NULL) {
      TOMBOLO_HOST(Cancel)(&moving.request);
      int ended = 0;
      for (int i = 0; i < looks_for_cancelled && ended == 0; ++i)
        if (host().Test(&moving.request, &ended, MPI_STATUS_IGNORE) != MPI_SUCCESS) ended = 1;
      if (ended == 0) return false;
    }
    free_.push_back(number);
    return true;
  }

  std::optional<Trouble> next_trouble() override {
    if (troubles_.empty()) return std::nullopt;
    Trouble trouble = std::move(troubles_.front());
    troubles_.pop_front();
    return trouble;
  }

  void finish(bool whole) override {
    if (!whole) return all_->leave();
    within_limit([this] {
      // No letter is sent after it; those before, as beats, are taken, or UCX complains of them.
      (void)all_->all(true);
      Letter letter;
      while (receive(letter)) {
      }
      free_all();
      if (initialized_here_) TOMBOLO_HOST(Finalize)();
    });
  }

 private:
  static constexpr int tag = 1;
  static constexpr int looks_for_cancelled = 1000;

  struct Incoming {
    MPI_Request request = MPI_REQUEST_NULL;
    int from = 0;
    std::array<std::byte, letter_bytes> bytes;
  };
  using Incomings = std::list<Incoming>;
  struct Outgoing {
    MPI_Request request = MPI_REQUEST_NULL;
    int to = 0;
    std::unique_ptr<std::byte[]> bytes;
  };
  struct Moving {
    MPI_Request request = MPI_REQUEST_NULL;
    int with = 0;
  };

  Status initialize() {
    int before = 0;
    TOMBOLO_HOST(Initialized)(&before);
    // All calls of ours are under a lock; a program of MPI makes its own as well.
    const int needed = before != 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
    int level = 0;
    if (before != 0)
      TOMBOLO_HOST(Query_thread)(&level);
    else
      TOMBOLO_HOST(Init_thread)(nullptr, nullptr, needed, &level);
    initialized_here_ = before == 0;
    if (level >= needed) return {};
    return Status::unsupported(
        before != 0 ? "families in several processes need a program that has initialized MPI by "
                      "MPI_Init_thread with MPI_THREAD_MULTIPLE"
                    : "families in several processes need a host MPI that several threads may "
                      "call (MPI_THREAD_SERIALIZED)");
  }
  void learn_tags() {
    void* value = nullptr;
    int found = 0;
    TOMBOLO_HOST(Comm_get_attr)(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found);
    constexpr std::uint32_t at_least = 32767;  // of each MPI
    tags_ = found != 0 ? static_cast<std::uint32_t>(*static_cast<int*>(value)) : at_least;
  }

  // The next letter that has come begins to arrive. False: there is none.
  bool begin_next() {
    int here = 0;
    MPI_Status status;
    const int error = host().Iprobe(MPI_ANY_SOURCE, tag, letters_, &here, &status);
    note(error, -1);
    if (error != MPI_SUCCESS || here == 0) return false;
    if (unused_.empty()) unused_.emplace_back();
    incoming_.splice(incoming_.end(), unused_, std::prev(unused_.end()));
    Incoming& letter = incoming_.back();
    letter.from = status.MPI_SOURCE;
    note(host().Irecv(letter.bytes.data(), static_cast<int>(letter_bytes), MPI_BYTE, letter.from,
                      tag, letters_, &letter.request),
         letter.from);
    return true;
  }
  bool waits_behind_another(Incomings::iterator letter) {
    return std::any_of(incoming_.begin(), letter,
                       [&](const Incoming& before) { return before.from == letter->from; });
  }
  // If it is there as a whole.
  bool show(Incomings::iterator letter, Letter& out) {
    int here = 0;
    MPI_Status status;
    const int error = host().Test(&letter->request, &here, &status);
    note(error, letter->from);
    if (error != MPI_SUCCESS || here == 0) return false;
    int bytes = 0;
    host().Get_count(&status, MPI_BYTE, &bytes);
    shown_ = letter;
    out = {.from = letter->from, .bytes = {letter->bytes.data(), static_cast<std::size_t>(bytes)}};
    return true;
  }
  bool is_free(Outgoing& letter) {
    if (letter.request == MPI_REQUEST_NULL) return true;
    int sent = 0;
    note(host().Test(&letter.request, &sent, MPI_STATUS_IGNORE), letter.to);
    return sent != 0;
  }
  Transfer take_number(int with) {
    if (free_.empty()) {
      free_.reserve(moving_.size() + 1);
      free_.push_back(static_cast<Transfer>(moving_.size()));
      moving_.emplace_back();
    }
    const Transfer number = free_.back();
    free_.pop_back();
    moving_[number] = {.with = with};
    return number;
  }
  void note(int error, int with) {
    if (error != MPI_SUCCESS) troubles_.push_back({.with = with, .text = text_of(error)});
  }

  void free_all() {
    for (Outgoing& letter : outgoing_)
      if (letter.request != MPI_REQUEST_NULL)
        TOMBOLO_HOST(Wait)(&letter.request, MPI_STATUS_IGNORE);
    TOMBOLO_HOST(Comm_free)(&letters_);
    TOMBOLO_HOST(Comm_free)(&arrays_);
    all_.reset();
  }
  // MPICH 4 over TCP by UCX may wait for ever for a process that has ended its part.
  template <class End>
  static void within_limit(End&& end) {
    constexpr int looks = 1000;
    std::atomic<bool> ended{false};
    std::thread watch;
    const Status watched = tombolo::host::start_thread(
        "that watches the end of the host MPI",
        [&ended] {
          for (int i = 0; i < looks && !ended; ++i) usleep(10'000);
          if (!ended) give_up();
        },
        watch);
    end();  // which nearly always returns
    ended = true;
    if (watched.ok()) watch.join();
  }
  [[noreturn]] static void give_up() {
    std::fflush(nullptr);
    std::fprintf(stderr,
                 "tombolo: the host MPI does not come to its end; the program had ended as it "
                 "should (CAVEATS)\n");
    _exit(1);
  }

  bool initialized_here_ = false;
  std::unique_ptr<Group> all_;
  MPI_Comm letters_ = MPI_COMM_NULL;
  MPI_Comm arrays_ = MPI_COMM_NULL;
  std::uint32_t tags_ = 0;
  Incomings incoming_;  // in the order of their probes
  Incomings unused_;
  Incomings::iterator shown_ = incoming_.end();  // to the caller of receive()
  std::deque<Outgoing> outgoing_;
  std::size_t next_ = 0;
  std::deque<Moving> moving_;
  std::vector<Transfer> free_;
  std::deque<Trouble> troubles_;
};

}  // namespace
}  // namespace tombolo::svp

extern "C" [[gnu::visibility("default")]] bool tombolo_svp_host_messages(
    std::unique_ptr<tombolo::svp::HostMessages>* out, tombolo::Status* why) {
  auto messages = std::make_unique<tombolo::svp::Messages>();
  *why = messages->start();
  if (why->ok()) *out = std::move(messages);
  return why->ok();
}
