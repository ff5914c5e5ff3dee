// SPDX-License-Identifier: Apache-2.0
#include "backends/scc/job.h"

#include <set>

namespace tombolo::scc {
namespace {

std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

Status Job::fits(const Parameters& parameters, const JobShape& shape) {
  const auto no = [&](const std::string& why) {
    return Status::bad_configuration(fmt::format("chip {}: {}", parameters.name, why));
  };
  if (shape.processes == 0 || shape.processes > parameters.cores())
    return no(fmt::format("{} processes on {} cores", shape.processes, parameters.cores()));
  if (!shape.cores.empty() && shape.cores.size() != shape.processes)
    return no(fmt::format("{} cores for {} processes", shape.cores.size(), shape.processes));
  std::set<std::uint32_t> taken;
  for (const CoreId core : shape.cores)
    if (core.index() >= parameters.cores() || !taken.insert(core.index()).second)
      return no(fmt::format("core {} is not there, or given twice", core.index()));
  const auto controllers = static_cast<std::int32_t>(parameters.layout.controllers.size());
  if (shape.placement.sync_controller >= controllers)
    return no(fmt::format("controller {} of {}", shape.placement.sync_controller, controllers));
  const std::uint64_t page = parameters.page_bytes();
  const std::uint64_t blocks =
      shape.placement.sync_controller >= 0
          ? shape.processes
          : (parameters.cores() + parameters.layout.controllers.size() - 1) /
                parameters.layout.controllers.size();
  // The last lines of the page take the dummy stores.
  const std::uint64_t sync = shape.placement.sync_offset + blocks * whole_lines(shape.sync_bytes) +
                             parameters.cores() * 32ull;
  if (sync > page)
    return no(
        fmt::format("{} bytes of sync memory for each of {} processes need {} of legacy "
                    "shared memory at a controller; there are {}",
                    shape.sync_bytes, shape.processes, sync, page));
  const std::uint64_t room = static_cast<std::uint64_t>(parameters.layout.public_pages) * page;
  if (shape.placement.data_offset + shape.data_bytes > room)
    return no(fmt::format("{} bytes of data for each process; its public pages have {}",
                          shape.placement.data_offset + shape.data_bytes, room));
  const auto needs_commit = [](MemoryType t) { return t == MemoryType::wt; };
  if ((needs_commit(shape.placement.own) || needs_commit(shape.placement.peers)) &&
      !parameters.extensions.guaranteed_commit)
    return no("memory of type WT is for chips with guaranteed_commit");
  return {};
}

Job::Job(const Parameters& parameters, const JobShape& shape)
    : shape_(shape), chip_(parameters, shape.options), cores_(shape.cores) {
  const Status status = fits(parameters, shape);
  TOMBOLO_CHECK(status.ok(), "{}", status.message());
  if (cores_.empty())
    for (std::uint32_t core = 0; core < shape.processes; ++core) cores_.emplace_back(core);
  for (machine::Home home = 0; home < shape.processes; ++home) {
    Attachment at;
    at.self = home;
    at.cores = shape.processes;
    at.sync_bytes_per_home = whole_lines(shape.sync_bytes);
    at.data.assign(shape.processes, {.bytes = shape.data_bytes});
    at.idle = shape.idle;
    at.seed = shape.options.seed;
    at.cpu = &chip_.cpu(cores_[home]);
    at.placement = shape.placement;
    at.core_of_home = &cores_;
    attachments_.push_back(std::move(at));
  }
}

simulator::RunResult Job::run(const Program& program) {
  for (machine::Home home = 0; home < shape_.processes; ++home)
    chip_.start(cores_[home],
                [this, home, &program](Cpu& cpu) { program(attachments_[home], cpu); });
  return chip_.run();
}

}  // namespace tombolo::scc
