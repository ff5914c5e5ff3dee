// SPDX-License-Identifier: Apache-2.0
#include "host/flush/flush.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/option_table.h"
#include "host/memory/write_watch.h"

namespace tombolo::host::flush {
namespace {

using Clock = std::chrono::steady_clock;

// One size for each class, and how many calls are timed together: a single small call only measures
// how quickly the write buffers take it. The least of `bursts` bursts counts.
struct Trial {
  std::size_t bytes;
  int calls;
};
constexpr std::array<Trial, Policy::classes> trials = {Trial{512, 16}, Trial{8192, 3},
                                                       Trial{32768, 1}};
constexpr std::size_t largest_trial = 32768;
constexpr int bursts = 2;
// Other processes may take the processor in between. A choice not measured by then stays a guess.
constexpr auto time_limit = std::chrono::microseconds(500);

// Two buffers of whole pages, touched.
class Buffers {
 public:
  Buffers()
      : memory_(mmap(nullptr, 2 * largest_trial, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {}
  ~Buffers() {
    if (valid()) munmap(memory_, 2 * largest_trial);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  bool valid() const { return memory_ != MAP_FAILED; }
  std::byte* to() const { return static_cast<std::byte*>(memory_); }
  const std::byte* from() const { return to() + largest_trial; }

 private:
  void* memory_;
};

// The time of body() in nanoseconds. The first call warms up and does not count.
template <class Body>
double time_of(int calls, Body&& body) {
  body();
  double best = std::numeric_limits<double>::max();
  for (int burst = 0; burst < bursts; ++burst) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) body();
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  return best / calls;
}

// Whether the instruction at `index` can be the quickest: clflush waits for each line, so that it
// is of use only where there is nothing else, and timing it would take longer than all the rest.
bool worth_timing(std::size_t index) {
  return cpu::write_backs[index].exists() &&
         (index + 1 < cpu::write_backs.size() || index == 0 ||
          !std::any_of(cpu::write_backs.begin(), cpu::write_backs.end() - 1,
                       [](const cpu::LineOperation& other) { return other.exists(); }));
}

// Fills in the choice for one size class.
void measure_class(Policy& policy, std::size_t index, const Buffers& buffers, bool keep_stream) {
  const auto [bytes, calls] = trials[index];
  double best = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i < cpu::write_backs.size(); ++i) {
    if (!worth_timing(i)) continue;
    const cpu::LineOperation& operation = cpu::write_backs[i];
    // The copy is timed too: an instruction that drops the lines makes the next write fetch them.
    const double ns = time_of(calls, [&, n = bytes] {
      std::memcpy(buffers.to(), buffers.from(), n);
      operation.apply(buffers.to(), buffers.to() + n);
      cpu::write_back_fence();  // the time counts until the bytes are in memory
    });
    if (ns < best) {
      best = ns;
      policy.write_back[index] = operation;
    }
  }
  if (keep_stream) return;
  const double streamed = time_of(calls, [&, n = bytes] {
    policy.stream.copy(buffers.to(), buffers.from(), n);
    cpu::write_back_fence();  // as above
  });
  policy.stream_lines[index] = streamed < best;
}

void measure(Policy& policy, bool keep_stream) {
  const auto start = Clock::now();
  const Buffers buffers;
  if (!buffers.valid()) return;  // the best guesses stay
  for (std::size_t i = 0; i < Policy::classes && Clock::now() - start < time_limit; ++i) {
    measure_class(policy, i, buffers, keep_stream);
    policy.measured = true;
  }
  policy.microseconds = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

template <class Operations>
auto first_existing(const Operations& operations) {
  for (const auto& operation : operations)
    if (operation.exists()) return operation;
  return typename Operations::value_type{};
}

std::string choices() {
  std::string names = "auto, stream";
  for (const auto& operation : cpu::write_backs)
    if (operation.exists()) names += fmt::format(", {}", operation.name);
  return names;
}

std::string watching(const Policy& by) {
  if (!by.watch_writes) return "; publishes whole regions, set by TOMBOLO_WRITE_WATCH";
  const Status available = WriteWatch::available();
  if (available.ok()) return "; publishes the pages of a region that were written";
  return "; publishes whole regions: " + available.message();
}

}  // namespace

Policy choose_policy(const std::string& setting, const std::string& watch) {
  Policy policy;
  policy.error = parse(options::write_watch, watch, policy.watch_writes);
  if (!policy.error.ok()) return policy;
  policy.write_back.fill(first_existing(cpu::write_backs));
  policy.invalidate = first_existing(cpu::invalidates);
  policy.renew = policy.invalidate;  // these drop no line that they have not written back
  policy.stream = first_existing(cpu::streams);
  policy.stream_lines.fill(true);
  if (policy.write_back[0].apply == nullptr || policy.invalidate.apply == nullptr) {
    policy.error = Status::unsupported(
        "this processor has no instruction that writes back a cache line of at most 64 bytes (x86: "
        "clwb, clflushopt or clflush; Arm: dc cvac); use the machine 'coherent' or 'stale'");
    return policy;
  }
  if (setting.empty() || setting == "auto") {
    measure(policy, false);
    return policy;
  }
  if (setting == "stream") {
    measure(policy, true);
    return policy;
  }
  for (const auto& operation : cpu::write_backs) {
    if (!operation.exists() || setting != operation.name) continue;
    policy.write_back.fill(operation);
    policy.stream_lines.fill(false);
    // The same instruction for both where it can do both.
    for (const auto& drop : cpu::invalidates)
      if (setting == drop.name) policy.invalidate = policy.renew = drop;
    return policy;
  }
  policy.error = Status::bad_configuration(
      fmt::format("TOMBOLO_FLUSH is '{}'; on this host it may be {}", setting, choices()));
  return policy;
}

const Policy& policy() {
  static const Policy chosen = choose_policy(
      text_of(options::flush), is_set(options::write_watch) ? text_of(options::write_watch) : "on");
  return chosen;
}

Status available() { return policy().error; }

std::string describe() {
  const Policy& by = policy();
  if (!by.error.ok()) return "flushed: " + by.error.message();
  constexpr std::array<const char*, Policy::classes> names = {"to 1 KiB", "to 32 KiB", "above"};
  std::string text = fmt::format("flushed: refresh by {};", by.invalidate.name);
  for (std::size_t i = 0; i < Policy::classes; ++i)
    text += fmt::format(" {}: publish by {}, write_through by {};", names[i], by.write_back[i].name,
                        by.stream_lines[i] ? fmt::format("streaming stores ({})", by.stream.name)
                                           : fmt::format("copy and {}", by.write_back[i].name));
  text += by.measured ? fmt::format(" measured in {:.0f} us", by.microseconds)
                      : std::string(" set by TOMBOLO_FLUSH");
  return text + watching(by) + cpu::remark;
}

}  // namespace tombolo::host::flush
