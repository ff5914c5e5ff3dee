// SPDX-License-Identifier: Apache-2.0
#include "dsm/transport/mpi/heartbeat.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "dsm/transport/mpi/one_sided.h"
#include "host/mpi/host.h"

namespace tombolo::dsm {
namespace {

using mpi::host;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds between_beats{500};
// A page or a word that others want waits about so long for a process that computes.
constexpr microseconds between_looks{50};
constexpr int tag = 1;
constexpr int message_tag = 3;
constexpr char last_beat = 1;

struct Name {
  std::array<char, 64> host{};
  std::int64_t process = 0;
};

Name name_of_this() {
  Name name;
  gethostname(name.host.data(), name.host.size() - 1);
  name.process = getpid();
  return name;
}

}  // namespace

Heartbeat::Heartbeat(MPI_Comm comm) {
  TOMBOLO_HOST(Comm_dup)(comm, &comm_);
  host().Comm_rank(comm_, &rank_);
  host().Comm_size(comm_, &size_);
  learn_names();
  peers_.resize(static_cast<std::size_t>(rank_ == 0 ? size_ - 1 : 1));
  for (std::size_t i = 0; i < peers_.size(); ++i)
    peers_[i].rank = rank_ == 0 ? static_cast<int>(i) + 1 : 0;
  // Signals are the program's thread's.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Heartbeat::~Heartbeat() {
  ends_ = true;
  thread_.join();
  for (Peer& peer : peers_) say_last(peer);
  for (Peer& peer : peers_) hear_last(peer);
  listener_ = nullptr;
  receive();
  TOMBOLO_HOST(Comm_free)(&comm_);
}

void Heartbeat::say_last(Peer& peer) {
  if (peer.sends != MPI_REQUEST_NULL) TOMBOLO_HOST(Wait)(&peer.sends, MPI_STATUS_IGNORE);
  peer.beat = last_beat;
  TOMBOLO_HOST(Isend)(&peer.beat, 1, MPI_BYTE, peer.rank, tag, comm_, &peer.sends);
}

// A message that is never received may keep the host MPI from its end.
void Heartbeat::hear_last(Peer& peer) {
  for (;;) {
    if (peer.hears != MPI_REQUEST_NULL) TOMBOLO_HOST(Wait)(&peer.hears, MPI_STATUS_IGNORE);
    if (peer.heard == last_beat) break;
    TOMBOLO_HOST(Irecv)(&peer.heard, 1, MPI_BYTE, peer.rank, tag, comm_, &peer.hears);
  }
  TOMBOLO_HOST(Wait)(&peer.sends, MPI_STATUS_IGNORE);
}

void Heartbeat::learn_names() {
  const Name mine = name_of_this();
  std::vector<Name> all(static_cast<std::size_t>(size_));
  TOMBOLO_HOST(Allgather)
  (&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, comm_);
  for (const Name& name : all)
    names_.push_back(fmt::format("process {} on host {}", name.process, name.host.data()));
  const auto here = [&](const Name& name) { return name.host == mine.host; };
  first_here_ = static_cast<int>(std::ranges::find_if(all, here) - all.begin());
}

// A look for messages drives the host MPI where others take part.
void Heartbeat::look() {
  int found = 0;
  TOMBOLO_HOST(Iprobe)(MPI_ANY_SOURCE, tag + 1, comm_, &found, MPI_STATUS_IGNORE);
}

void Heartbeat::post(int to, std::span<const std::byte> message) {
  TOMBOLO_HOST(Send)
  (message.data(), static_cast<int>(message.size()), MPI_BYTE, to, message_tag, comm_);
}

// HBT3. At the end, when the thread has gone, the messages that are left are received and dropped.
void Heartbeat::receive() {
  OneSided::Listener* const listener = listener_.load();
  if (listener == nullptr && !ends_) return;
  for (;;) {
    int found = 0;
    MPI_Status status;
    TOMBOLO_HOST(Iprobe)(MPI_ANY_SOURCE, message_tag, comm_, &found, &status);
    if (found == 0) return;
    int bytes = 0;
    TOMBOLO_HOST(Get_count)(&status, MPI_BYTE, &bytes);
    message_.resize(static_cast<std::size_t>(bytes));
    const int from = status.MPI_SOURCE;
    TOMBOLO_HOST(Recv)
    (message_.data(), bytes, MPI_BYTE, from, message_tag, comm_, MPI_STATUS_IGNORE);
    if (listener != nullptr) listener->hear(from, message_);
  }
}

void Heartbeat::run() {
  Clock::time_point next_beat{};
  Clock::time_point last_look = Clock::now();
  for (Peer& peer : peers_) peer.last = last_look;
  while (!ends_) {
    look();
    receive();
    const auto now = Clock::now();
    // Kept from running, as by a debugger: the beats of that time have yet to be read (HBT1).
    if (now - last_look > 2 * between_beats)
      for (Peer& peer : peers_) peer.last += now - last_look;
    last_look = now;
    for (Peer& peer : peers_) {
      listen(peer, now);
      check(peer, now);
    }
    if (now >= next_beat) {
      beat();
      next_beat = now + between_beats;
    }
    std::this_thread::sleep_for(between_looks);
  }
}

void Heartbeat::beat() {
  for (Peer& peer : peers_) {
    int sent = 1;
    if (peer.sends != MPI_REQUEST_NULL) TOMBOLO_HOST(Test)(&peer.sends, &sent, MPI_STATUS_IGNORE);
    if (sent != 0) TOMBOLO_HOST(Isend)(&peer.beat, 1, MPI_BYTE, peer.rank, tag, comm_, &peer.sends);
  }
}

void Heartbeat::listen(Peer& peer, Clock::time_point now) {
  if (peer.heard == last_beat) {
    peer.last = now;
    return;
  }
  int heard = 1;
  if (peer.hears != MPI_REQUEST_NULL) {
    TOMBOLO_HOST(Test)(&peer.hears, &heard, MPI_STATUS_IGNORE);
    if (heard != 0) peer.last = now;
  }
  if (heard != 0 && peer.heard != last_beat)
    TOMBOLO_HOST(Irecv)(&peer.heard, 1, MPI_BYTE, peer.rank, tag, comm_, &peer.hears);
}

void Heartbeat::check(const Peer& peer, Clock::time_point now) const {
  if (now - peer.last > OneSided::silence_limit) lost(peer);
}

void Heartbeat::lost(const Peer& peer) const {
  if (rank_ != first_here_) std::this_thread::sleep_for(milliseconds(300));
  const std::string text =
      fmt::format("tombolo: rank {}: rank {} ({}) of the program does not answer any more\n", rank_,
                  peer.rank, names_[static_cast<std::size_t>(peer.rank)]);
  // Without stdio, whose locks the program may hold.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  _exit(1);
}

}  // namespace tombolo::dsm
