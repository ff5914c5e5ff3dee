// SPDX-License-Identifier: Apache-2.0
#include "dsm/transport/mpi/module/answering_thread.h"

#include <chrono>

#include "host/mpi/host.h"
#include "host/processes/no_signals.h"
#include "host/processes/start_thread.h"

namespace tombolo::dsm {
namespace {

using mpi::host;

// A page or a word that others want waits about so long for a process that computes.
constexpr std::chrono::microseconds between_looks{50};
constexpr int message_tag = 1;
constexpr int unused_tag = 2;

int size_of(MPI_Comm comm) {
  int size = 0;
  host().Comm_size(comm, &size);
  return size;
}

}  // namespace

AnsweringThread::AnsweringThread(MPI_Comm comm) : posted_(static_cast<std::size_t>(size_of(comm))) {
  TOMBOLO_HOST(Comm_dup)(comm, &comm_);
  const tombolo::host::NoSignals none;  // they are the program's thread's
  thread_ =
      tombolo::host::start_thread_or_end("that answers the other processes", [this] { run(); });
}

AnsweringThread::~AnsweringThread() {
  ends_ = true;
  thread_.join();
  listener_ = nullptr;
  const std::uint32_t all = sent_to_this();
  while (received_ != all) receive();
  TOMBOLO_HOST(Comm_free)(&comm_);
}

std::uint32_t AnsweringThread::sent_to_this() {
  const std::vector<std::uint32_t> sent(posted_.begin(), posted_.end());
  std::uint32_t all = 0;
  TOMBOLO_HOST(Reduce_scatter_block)(sent.data(), &all, 1, MPI_UINT32_T, MPI_SUM, comm_);
  return all;
}

// A look for messages drives the host MPI where others take part.
void AnsweringThread::look() {
  int found = 0;
  TOMBOLO_HOST(Iprobe)(MPI_ANY_SOURCE, unused_tag, comm_, &found, MPI_STATUS_IGNORE);
}

void AnsweringThread::post(int to, std::span<const std::byte> message) {
  ++posted_[static_cast<std::size_t>(to)];
  TOMBOLO_HOST(Send)
  (message.data(), static_cast<int>(message.size()), MPI_BYTE, to, message_tag, comm_);
}

// ANT1
void AnsweringThread::receive() {
  OneSided::Listener* const listener = listener_.load();
  if (listener == nullptr && !ends_) return look();
  while (has_message()) {
    ++received_;
    if (listener != nullptr) listener->hear(from_, message_);
  }
}

// ANT2
bool AnsweringThread::has_message() {
  if (arrives_ == MPI_REQUEST_NULL) {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    TOMBOLO_HOST(Improbe)(MPI_ANY_SOURCE, message_tag, comm_, &found, &message, &status);
    if (found == 0) return false;
    int bytes = 0;
    TOMBOLO_HOST(Get_count)(&status, MPI_BYTE, &bytes);
    message_.resize(static_cast<std::size_t>(bytes));
    from_ = status.MPI_SOURCE;
    TOMBOLO_HOST(Imrecv)(message_.data(), bytes, MPI_BYTE, &message, &arrives_);
  }
  int here = 0;
  TOMBOLO_HOST(Test)(&arrives_, &here, MPI_STATUS_IGNORE);
  return here != 0;
}

void AnsweringThread::run() {
  while (!ends_) {
    receive();
    std::this_thread::sleep_for(between_looks);
  }
}

}  // namespace tombolo::dsm
