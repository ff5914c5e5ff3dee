// SPDX-License-Identifier: Apache-2.0
// Purpose: the distributed implementation of SVP that 002 measures (sections 3.3, 5 and 6.2.1), on
// cores of the simulated chip: remote create and sync of a function whose data are described,
// by each of the implementations of its communication.
//
//   Distribution svp(chip, {.scheme = Scheme::direct, .cores = {CoreId(0), CoreId(2)}}, functions);
//   const Status status = svp.run([&](Node& master) {
//     Family family;
//     TOMBOLO_TRY(master.create(CoreId(2), {.function = 0, .scalars = {n}, .arrays = views},
//     &family)); return master.sync(family);
//   });
//
//   original      data are gathered, encoded and sent in one message over TCP/IP
//   direct        each described element is sent by itself, an array at once
//   own-memory    the same, with the run-time's own memory
//   buffers       the same, over the message passing buffers
//   remapping     arrays stay where they are: the sender flushes its second level and sends the
//                 address; the receiver maps the memory and copies
//   copy-cores    the same, but copy cores copy (002 chapter 9)
//
// Each family has a stream of its own, which the creator opens and closes.
//
// Invariants: DSV1 memory is consistent at create and at sync: the creator's stores before a create
//                 are seen by the family, and the family's by the creator after the sync.
//                 shared_memory.h has the operations of schemes that share memory.
//             DSV2 a family's receive buffers live as long as its record (assumed; it decides when
//                 the original implementation runs out of memory).
// Thread safety: as Cpu.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "experiments/svp/data_buffer.h"
#include "experiments/svp/shared_memory.h"
#include "experiments/svp/stream.h"

namespace tombolo::experiments {

enum class Scheme : std::uint8_t {
  original,
  direct,
  own_memory,
  buffers,
  remapping,
  copy_cores,
};
inline constexpr Scheme all_schemes[] = {Scheme::original, Scheme::direct,    Scheme::own_memory,
                                         Scheme::buffers,  Scheme::remapping, Scheme::copy_cores};
std::string name_of(Scheme scheme);

// An array of a function, in the order of its description.
struct Shape {
  bool in = true;
  bool out = false;
  Run run;
};

class Node;

using Scalars = std::vector<std::uint64_t>;
using Arrays = std::vector<scc::View>;

struct Function {
  std::size_t scalars = 0;
  std::function<std::vector<Shape>(const Scalars&)> describe;
  std::function<Status(Node&, const Scalars&, const Arrays&)> run;
};

struct RemoteCall {
  std::uint64_t function = 0;
  Scalars scalars = {};
  Arrays arrays = {};
};

// A remote family, from its create to its sync; then its memory until it goes.
struct Family {
  std::unique_ptr<Stream> stream;
  std::vector<Shape> shapes;
  Arrays arrays;
  std::unique_ptr<DataBuffer> received;  // of the original implementation
};

struct DistributionShape {
  Scheme scheme = Scheme::direct;
  std::vector<simulator::CoreId> cores = {};  // the first is the master
  std::vector<simulator::CoreId> copy_cores = {};
  std::uint32_t threads = 4;  // of each core, beside those that wait for families
  std::uint64_t seed = 1;
  // For tests, which leave a part out.
  SharedMemory::Care care = {};
  bool asks = true;  // families are synced on request (002 section 5.2.2)
};

// The times of a node, and the bytes that it has sent.
struct Activity {
  simulator::Duration idle;      // no thread of its core could run
  simulator::Duration running;   // functions of families that were created here ran
  simulator::Duration flushing;  // of both levels, for memory that is shared
  simulator::Duration mapping;   // of other cores' memory
  std::uint64_t sent_bytes = 0;  // of arrays, or of their addresses; gathered ones with all else

  Activity operator-(const Activity& before) const;
  Activity& operator+=(const Activity& other);
};

class Distribution;

class Node {
 public:
  Node(Distribution& all, simulator::CoreId core);

  Linux& system() { return system_; }
  const Linux& system() const { return system_; }
  scc::Cpu& cpu() { return system_.cpu(); }

  // Memory for arrays: the run-time's own where the scheme wants it.
  Status allocate(std::uint64_t bytes, scc::View* at);
  void free(scc::View at);
  std::uint64_t bytes_used() const { return system_.heap().bytes_used() + own_.bytes_used(); }

  // Returns when the data have been sent. `family` outlives the sync.
  Status create(simulator::CoreId place, const RemoteCall& call, Family* family);
  // Returns when the family's output is in the arrays.
  Status sync(Family& family);

  // Up to that moment, at which no family may be under way here. By a program of any core.
  Activity activity(simulator::Time until) const;

  // Takes families that others create here, until the system stops.
  void serve();

 private:
  friend class Distribution;

  bool by_address(const Run& run) const;
  Status send_gathered(Stream& stream, const Scalars& head, const Family& family, bool there);
  Status receive_gathered(Family& family, std::size_t head, bool there);
  void scatter(Family& family, std::size_t head, bool there);
  void send_arrays(const Family& family, bool there);
  void receive_arrays(const Family& family, bool there);
  Status receive_message(Stream& stream, scc::View* at);
  Status receive_call(RemoteCall* call, Family& family);
  Status allocate_arrays(Family& family);
  Status run_family(Family& family);
  Status run_function(const RemoteCall& call, const Family& family);
  void run_thread(std::unique_ptr<Stream> stream);

  Distribution& all_;
  Linux system_;
  std::unique_ptr<Streams> streams_;
  Heap own_;
  std::unique_ptr<SharedMemory> shared_;
  std::uint32_t functions_running_ = 0;
  simulator::Time running_since_;
  simulator::Duration running_;  // intervals that have ended
  std::uint64_t sent_bytes_ = 0;
};

class Distribution {
 public:
  using Program = std::function<Status(Node&)>;

  // bad_configuration, with the reason, if the chip is too small for it.
  static Status fits(const scc::Parameters& chip, const DistributionShape& shape);

  Distribution(scc::Chip& chip, const DistributionShape& shape, std::vector<Function> functions);

  Node& node(simulator::CoreId core);
  // Runs the program on the master, and serves on all others until it ends.
  Status run(const Program& master, simulator::RunResult* result = nullptr);

 private:
  friend class Node;
  void fail(const Status& status);
  void stop(scc::Cpu& by);

  scc::Chip& chip_;
  DistributionShape shape_;
  std::vector<Function> functions_;
  std::vector<std::unique_ptr<Node>> nodes_;
  Status failure_;
};

}  // namespace tombolo::experiments
