// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/chip_sites.h"

#include <algorithm>

namespace tombolo::experiments {

void ChipSite::work() {
  for (svp::Call* const call : calls_) call->advance(link_);
  const bool any = link_.poll([this](const svp::Message& message) {
    return std::any_of(calls_.begin(), calls_.end(),
                       [&](svp::Call* call) { return call->take(message, reach_); });
  });
  if (!any) (void)link_.wait();
}

namespace {

// A family that is served, until its channel is closed.
class Served {
 public:
  explicit Served(const svp::VirtualChannel& channel) : service_(channel) {}

  bool take(const svp::Message& message) { return service_.take(message); }
  // True: it has ended, and all is sent.
  bool advance(ChipSite& site) {
    if (!ran_ && service_.ready()) run(site);
    return service_.advance(site.link());
  }

 private:
  void run(ChipSite& site) {
    ran_ = true;
    if (const Status status = service_.fetch(site.reach()); !status.ok())
      return service_.end(site.reach(), svp::Service::refusal(status));
    for (std::uint64_t n = 0; n < service_.range().count(); ++n)
      service_.frame().call(service_.range().index(n));
    service_.end(site.reach(), {});
  }

  svp::Service service_;
  bool ran_ = false;
};

}  // namespace

void ChipSites::serve(scc::Cpu& cpu) {
  ChipSite site(cpu, memory_, care_);
  std::vector<std::unique_ptr<Served>> families;
  const auto take = [&](const svp::Message& message) {
    const auto known = std::any_of(families.begin(), families.end(),
                                   [&](const auto& family) { return family->take(message); });
    if (known) return true;
    families.push_back(std::make_unique<Served>(message.channel));
    return families.back()->take(message);
  };
  while (true) {
    cpu.fibre().await_turn();
    if (done_) return;
    const bool any = site.link().poll(take);
    std::erase_if(families, [&](const auto& family) { return family->advance(site); });
    if (!any) (void)site.link().wait();
  }
}

simulator::RunResult ChipSites::run(const std::function<void(ChipSite&)>& creator) {
  chip_.start(simulator::CoreId(0), [&](scc::Cpu& cpu) {
    ChipSite site(cpu, memory_, care_);
    creator(site);
    cpu.fibre().await_turn();
    done_ = true;
  });
  for (std::uint32_t n = 1; n < sites_; ++n)
    chip_.start(simulator::CoreId(n), [this](scc::Cpu& cpu) { serve(cpu); });
  return chip_.run();
}

}  // namespace tombolo::experiments
