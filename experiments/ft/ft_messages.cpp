// SPDX-License-Identifier: Apache-2.0
#include "experiments/ft/ft_messages.h"

#include <algorithm>
#include <cstring>

#include "baselines/rckmpi_windows.h"
#include "experiments/common/messages_job.h"

namespace tombolo::experiments {
namespace {

using baselines::Place;
using baselines::Rckmpi;
using baselines::Request;
using machine::Home;

constexpr std::size_t line_size = 32;

// The memory of a process that uses RCKMPI, all of it private.
class PrivateTransport : public FtTransport {
 public:
  PrivateTransport(Rckmpi& mpi, const FtClass& problem)
      : mpi_(mpi), received_(mpi.memory().allocate(ft_bytes_received(problem))) {}

  void barrier() override { mpi_.barrier(); }

  // As a window's copy loop, but for the type of its memory.
  void read(std::uint64_t at, void* to, std::size_t bytes) override {
    std::byte ignored[line_size];
    const Place from = received_ + at;
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t n =
          std::min<std::size_t>(bytes - done, line_size - (from.address + done).byte() % line_size);
      mpi_.cpu().copy_from({from.address + done, scc::MemoryType::dcm}, ignored, n);
      done += n;
    }
    std::memcpy(to, from.host, bytes);
  }

  std::byte* allocate(std::size_t bytes) override {
    arrays_.push_back({mpi_.memory().allocate(bytes), bytes});
    return arrays_.back().place.host;
  }
  void touch_read(const void* from, std::size_t bytes) override {
    baselines::touch_read(mpi_.cpu(), place_of(from), bytes);
  }
  void touch_write(const void* to, std::size_t bytes) override {
    baselines::touch_write(mpi_.cpu(), place_of(to), bytes);
  }

 protected:
  Rckmpi& mpi() { return mpi_; }
  Place received() const { return received_; }

  Place place_of(const void* p) const {
    const auto* byte = static_cast<const std::byte*>(p);
    const auto array = std::find_if(arrays_.begin(), arrays_.end(), [&](const Array& a) {
      return byte >= a.place.host && byte < a.place.host + a.bytes;
    });
    TOMBOLO_CHECK(array != arrays_.end(), "ft: memory that allocate() did not give");
    return array->place + static_cast<std::size_t>(byte - array->place.host);
  }

 private:
  struct Array {
    Place place;
    std::size_t bytes;
  };
  Rckmpi& mpi_;
  Place received_;
  std::vector<Array> arrays_;
};

class TwoSided final : public PrivateTransport {
 public:
  using PrivateTransport::PrivateTransport;

  void open(std::span<const Home>, std::span<const FtArrival> arrivals) override {
    for (const FtArrival& a : arrivals)
      requests_.push_back(
          mpi().irecv(received() + a.at, a.bytes, static_cast<std::int32_t>(a.from), message_tag));
  }
  void send(Home to, std::uint64_t, const void* from, std::size_t bytes) override {
    requests_.push_back(mpi().isend(place_of(from), bytes, to, message_tag));
  }
  void close() override {
    mpi().wait_all(requests_);
    requests_.clear();
  }

 private:
  static constexpr std::int32_t message_tag = 1;
  std::vector<Request> requests_;
};

class OneSided final : public PrivateTransport {
 public:
  OneSided(Rckmpi& rckmpi, const FtClass& problem)
      : PrivateTransport(rckmpi, problem), window_(mpi(), received(), ft_bytes_received(problem)) {}

  void open(std::span<const Home> peers, std::span<const FtArrival>) override {
    window_.post(peers);
    window_.start(peers);
  }
  void send(Home to, std::uint64_t at, const void* from, std::size_t bytes) override {
    window_.put(place_of(from), bytes, to, at);
  }
  void close() override {
    window_.complete();
    window_.wait();
  }
  void free() { window_.free(); }

 private:
  baselines::RckmpiWindow window_;
};

std::vector<std::uint64_t> received(Rckmpi& mpi) {
  std::vector<std::uint64_t> bytes;
  for (std::uint32_t from = 0; from < mpi.size(); ++from)
    bytes.push_back(mpi.channel().received_from(from));
  return bytes;
}

}  // namespace

Status ft_by_messages(const Context& context, Recorder& recorder, FtMessages messages,
                      const FtClass& problem, int iterations, FtResult* result) {
  scc::JobShape shape;
  shape.processes = ft_processes;
  result->received.resize(ft_processes);
  TOMBOLO_TRY(run_rckmpi(context, recorder, shape, [&](Rckmpi& mpi, const machine::Attachment& at) {
    if (messages == FtMessages::two_sided) {
      TwoSided transport(mpi, problem);
      ft_solve(mpi.cpu(), transport, problem, iterations, at.self, *result);
    } else {
      OneSided transport(mpi, problem);
      ft_solve(mpi.cpu(), transport, problem, iterations, at.self, *result);
      transport.free();
    }
    result->received[at.self] = received(mpi);
  }));
  ft_finish(problem, *result);
  return {};
}

}  // namespace tombolo::experiments
