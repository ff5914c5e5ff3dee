// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/distribution.h"

#include <algorithm>
#include <stdexcept>

#include "experiments/svp/buffer_channels.h"
#include "experiments/svp/tcp.h"

namespace tombolo::experiments {
namespace {

using scc::MemoryType;
using scc::View;
using simulator::Address;
using simulator::CoreId;

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
constexpr std::uint32_t word_bytes = sizeof(std::uint64_t);
// Arrays of fewer bytes go through the stream (002 section 6.2.1; and for copy cores chapter 9).
constexpr std::uint64_t least_remapped = 64;
constexpr std::uint64_t least_for_copy_cores = 4096;

bool goes(const Shape& shape, bool there) { return there ? shape.in : shape.out; }

// The values of a message that stand before its arrays, as one run of words.
std::vector<Run> runs_of(const Family& family, std::size_t head, bool there) {
  std::vector<Run> runs{{head, word_bytes}};
  for (const Shape& shape : family.shapes)
    if (goes(shape, there)) runs.push_back(shape.run);
  return runs;
}

}  // namespace

std::string name_of(Scheme scheme) {
  constexpr const char* names[] = {"original", "direct",    "own-memory",
                                   "buffers",  "remapping", "copy-cores"};
  return names[static_cast<std::size_t>(scheme)];
}

// ---- Activity ---------------------------------------------------------------------------------

Activity Activity::operator-(const Activity& before) const {
  return {idle - before.idle, running - before.running, flushing - before.flushing,
          mapping - before.mapping, sent_bytes - before.sent_bytes};
}

Activity& Activity::operator+=(const Activity& other) {
  idle += other.idle;
  running += other.running;
  flushing += other.flushing;
  mapping += other.mapping;
  sent_bytes += other.sent_bytes;
  return *this;
}

Activity Node::activity(simulator::Time until) const {
  return {system_.idle(until), running_, shared_->flushing(), shared_->mapping(), sent_bytes_};
}

// ---- Node ---------------------------------------------------------------------------------------

Node::Node(Distribution& all, CoreId core)
    : all_(all),
      system_(all.chip_, core, {.threads = all.shape_.threads, .seed = all.shape_.seed}) {
  const Scheme scheme = all.shape_.scheme;
  if (scheme == Scheme::buffers) {
    streams_ = std::make_unique<BufferChannels>(all.chip_, system_);
  } else {
    // The first slot of a buffer has the words of copy cores.
    streams_ = std::make_unique<Tcp>(all.chip_, system_, scheme == Scheme::copy_cores ? 1 : 0);
  }
  shared_ =
      std::make_unique<SharedMemory>(all.chip_, system_, all.shape_.copy_cores, all.shape_.care);
  // Behind the memory of the image, but for the kernel's two blocks for flushes.
  const auto first = static_cast<std::uint64_t>(system_.times().private_megabytes) * mebibyte;
  const std::uint64_t end = all.chip_.private_bytes();
  const auto blocks = 2 * static_cast<std::uint64_t>(all.chip_.parameters().caches.l2_bytes);
  own_.add(Address(first), end - blocks - first);
  own_.add(Address(end), all.chip_.public_bytes());
}

bool Node::by_address(const Run& run) const {
  const Scheme scheme = all_.shape_.scheme;
  if (scheme == Scheme::remapping) return run.bytes() >= least_remapped;
  return scheme == Scheme::copy_cores && run.bytes() >= least_for_copy_cores;
}

Status Node::allocate(std::uint64_t bytes, View* at) {
  const Scheme scheme = all_.shape_.scheme;
  at->type = MemoryType::dcm;
  if (scheme == Scheme::original || scheme == Scheme::direct || scheme == Scheme::buffers)
    return system_.allocate(bytes, &at->first);
  system_.run_code(system_.times().allocation);
  return own_.allocate(bytes, &at->first);
}

void Node::free(View at) {
  const auto first = static_cast<std::uint64_t>(system_.times().private_megabytes) * mebibyte;
  if (at.first.byte() < first) return system_.free(at.first);
  system_.run_code(system_.times().allocation);
  own_.free(at.first);
}

// ---- Create and sync ----------------------------------------------------------------------------

Status Node::create(CoreId place, const RemoteCall& call, Family* family) {
  family->shapes = all_.functions_.at(call.function).describe(call.scalars);
  family->arrays = call.arrays;
  family->stream = streams_->open(place);
  Scalars head{call.function};
  head.insert(head.end(), call.scalars.begin(), call.scalars.end());
  if (all_.shape_.scheme == Scheme::original)
    return send_gathered(*family->stream, head, *family, true);
  family->stream->send_words(head);
  send_arrays(*family, true);
  return {};
}

Status Node::sync(Family& family) {
  if (all_.shape_.asks) family.stream->ask();
  if (all_.shape_.scheme == Scheme::original) {
    TOMBOLO_TRY(receive_gathered(family, 1, false));
  } else {
    std::uint64_t code = 0;
    family.stream->receive_words({&code, 1});
    receive_arrays(family, false);
  }
  family.stream->close();
  family.stream.reset();
  return {};
}

// ---- Where the family runs ----------------------------------------------------------------------

void Node::serve() {
  while (std::unique_ptr<Stream> stream = streams_->accept())
    system_.spawn([this, held = std::make_shared<std::unique_ptr<Stream>>(std::move(stream))] {
      run_thread(std::move(*held));
    });
}

void Node::run_thread(std::unique_ptr<Stream> stream) {
  Family family;
  family.stream = std::move(stream);
  if (const Status status = run_family(family); !status.ok()) all_.fail(status);
  family.stream->await_close();
  for (const View& array : family.arrays) free(array);
}

Status Node::run_family(Family& family) {
  RemoteCall call;
  TOMBOLO_TRY(receive_call(&call, family));
  TOMBOLO_TRY(run_function(call, family));
  Stream& stream = *family.stream;
  if (all_.shape_.asks) stream.await_asking();
  const Scalars done{0};
  if (all_.shape_.scheme == Scheme::original) return send_gathered(stream, done, family, false);
  stream.send_words(done);
  send_arrays(family, false);
  return {};
}

// Threads of two families may be in functions at once: the time counts once.
Status Node::run_function(const RemoteCall& call, const Family& family) {
  if (functions_running_++ == 0) running_since_ = system_.now();
  const Status status = all_.functions_.at(call.function).run(*this, call.scalars, family.arrays);
  if (--functions_running_ == 0) running_ += system_.now() - running_since_;
  return status;
}

Status Node::allocate_arrays(Family& family) {
  for (const Shape& shape : family.shapes) {
    View at{Address()};
    TOMBOLO_TRY(allocate(shape.run.bytes(), &at));
    family.arrays.push_back(at);
  }
  return {};
}

Status Node::receive_call(RemoteCall* call, Family& family) {
  Stream& stream = *family.stream;
  if (all_.shape_.scheme == Scheme::original) {
    // The function and its values say which arrays the message holds.
    View at{Address()};
    TOMBOLO_TRY(receive_message(stream, &at));
    call->function = __builtin_bswap64(cpu().load<std::uint64_t>(at));
    const Function& function = all_.functions_.at(call->function);
    for (std::size_t i = 1; i <= function.scalars; ++i)
      call->scalars.push_back(__builtin_bswap64(cpu().load<std::uint64_t>(at + i * word_bytes)));
    family.shapes = function.describe(call->scalars);
    family.received = std::make_unique<DataBuffer>(system_);
    TOMBOLO_TRY(family.received->decode(at, runs_of(family, 1 + function.scalars, true)));
    system_.free(at.first);
    TOMBOLO_TRY(allocate_arrays(family));
    scatter(family, 1 + function.scalars, true);
    return {};
  }
  stream.receive_words({&call->function, 1});
  const Function& function = all_.functions_.at(call->function);
  call->scalars.resize(function.scalars);
  stream.receive_words(call->scalars);
  family.shapes = function.describe(call->scalars);
  TOMBOLO_TRY(allocate_arrays(family));
  receive_arrays(family, true);
  return {};
}

// ---- The original implementation ----------------------------------------------------------------

Status Node::send_gathered(Stream& stream, const Scalars& head, const Family& family, bool there) {
  DataBuffer data(system_);
  for (const std::uint64_t word : head) {
    cpu().store(system_.scratch(), word);
    TOMBOLO_TRY(data.gather(system_.scratch(), {1, word_bytes}));
  }
  for (std::size_t i = 0; i < family.shapes.size(); ++i)
    if (goes(family.shapes[i], there))
      TOMBOLO_TRY(data.gather(family.arrays[i], family.shapes[i].run));
  Address message;
  TOMBOLO_TRY(system_.allocate(data.bytes(), &message));
  data.encode({message, MemoryType::dcm});
  const std::uint64_t bytes = data.bytes();
  stream.send_words({&bytes, 1});
  stream.send({message, MemoryType::dcm}, bytes);
  sent_bytes_ += bytes;
  system_.free(message);
  return {};
}

Status Node::receive_message(Stream& stream, View* at) {
  std::uint64_t bytes = 0;
  stream.receive_words({&bytes, 1});
  at->type = MemoryType::dcm;
  TOMBOLO_TRY(system_.allocate(bytes, &at->first));
  stream.receive(*at, bytes);
  return {};
}

Status Node::receive_gathered(Family& family, std::size_t head, bool there) {
  View at{Address()};
  TOMBOLO_TRY(receive_message(*family.stream, &at));
  family.received = std::make_unique<DataBuffer>(system_);  // DSV2
  TOMBOLO_TRY(family.received->decode(at, runs_of(family, head, there)));
  system_.free(at.first);
  scatter(family, head, there);
  return {};
}

void Node::scatter(Family& family, std::size_t head, bool there) {
  for (std::size_t i = 0; i < head; ++i)
    family.received->scatter(system_.scratch(), {1, word_bytes});
  for (std::size_t i = 0; i < family.shapes.size(); ++i)
    if (goes(family.shapes[i], there))
      family.received->scatter(family.arrays[i], family.shapes[i].run);
}

// ---- The others ---------------------------------------------------------------------------------

void Node::send_arrays(const Family& family, bool there) {
  for (std::size_t i = 0; i < family.shapes.size(); ++i) {
    const Run& run = family.shapes[i].run;
    if (!goes(family.shapes[i], there) || run.bytes() == 0) continue;
    if (by_address(run)) {
      const std::uint64_t address = shared_->publish(family.arrays[i]);
      family.stream->send_words({&address, 1});
      sent_bytes_ += word_bytes;
    } else {
      family.stream->send(family.arrays[i], run.bytes());
      sent_bytes_ += run.bytes();
    }
  }
}

void Node::receive_arrays(const Family& family, bool there) {
  for (std::size_t i = 0; i < family.shapes.size(); ++i) {
    const Run& run = family.shapes[i].run;
    if (!goes(family.shapes[i], there) || run.bytes() == 0) continue;
    if (by_address(run)) {
      std::uint64_t address = 0;
      family.stream->receive_words({&address, 1});
      shared_->copy(family.stream->peer(), address, family.arrays[i], run.bytes());
    } else {
      family.stream->receive(family.arrays[i], run.bytes());
    }
  }
}

// ---- All cores ----------------------------------------------------------------------------------

Status Distribution::fits(const scc::Parameters& chip, const DistributionShape& shape) {
  TOMBOLO_TRY(BufferNetwork::fits(chip));
  const auto private_megabytes =
      (chip.layout.private_pages - chip.layout.public_pages) * chip.layout.lut_page_megabytes;
  if (chip.system.private_megabytes >= private_megabytes)
    return Status::bad_configuration(
        fmt::format("chip {}: an image of {} MB leaves none of {} MB of private memory", chip.name,
                    chip.system.private_megabytes, private_megabytes));
  for (const CoreId core : shape.cores)
    if (core.index() >= chip.cores())
      return Status::bad_configuration(
          fmt::format("chip {}: core {} of {}", chip.name, core.index(), chip.cores()));
  return {};
}

Distribution::Distribution(scc::Chip& chip, const DistributionShape& shape,
                           std::vector<Function> functions)
    : chip_(chip), shape_(shape), functions_(std::move(functions)) {
  for (const CoreId core : shape_.cores) nodes_.push_back(std::make_unique<Node>(*this, core));
}

Node& Distribution::node(CoreId core) {
  const auto at = std::find(shape_.cores.begin(), shape_.cores.end(), core);
  TOMBOLO_CHECK(at != shape_.cores.end(), "core {} has no place", core.index());
  return *nodes_[static_cast<std::size_t>(at - shape_.cores.begin())];
}

// Ends the run: the program cannot go on.
void Distribution::fail(const Status& status) {
  if (failure_.ok()) failure_ = status;
  throw std::runtime_error(status.message());
}

void Distribution::stop(scc::Cpu& by) {
  if (!shape_.copy_cores.empty()) nodes_.front()->shared_->stop_copy_cores();
  for (const std::unique_ptr<Node>& node : nodes_) node->system_.stop(by);
}

Status Distribution::run(const Program& master, simulator::RunResult* result) {
  for (const std::unique_ptr<Node>& node : nodes_) {
    Node& own = *node;
    if (&own != nodes_.front().get()) {
      own.system_.start([&own] { own.serve(); });
      continue;
    }
    own.system_.start([&, this] {
      if (const Status status = master(own); !status.ok()) fail(status);
      stop(own.cpu());
    });
  }
  for (const CoreId core : shape_.copy_cores)
    chip_.start(core, [](scc::Cpu& cpu) { CopyCore(cpu).serve(); });
  const simulator::RunResult ran = chip_.run();
  if (result != nullptr) *result = ran;
  return failure_.ok() ? ran.status : failure_;
}

}  // namespace tombolo::experiments
