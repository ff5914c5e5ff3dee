// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/chip/chip_threads.h"

#include <exception>

#include "experiments/svp/chip/chip_sites.h"
#include "svp/scheduler/scope.h"

namespace tombolo::experiments {

using svp::ExitReason;

// ---- Of both kinds ------------------------------------------------------------------------------

bool ChipThreads::within_exclusive() const {
  return is_exclusive() || (creator_ != nullptr && creator_->within_exclusive());
}

void ChipThreads::break_with(std::int64_t value) {
  stop({.reason = ExitReason::broken, .value = value});
  throw svp::Stopped{};
}

void ChipThreads::run(ChipSite& site) {
  const bool all = !stopped() && run_guarded(site);
  end_channels(!all || stopped());
  if (end_.reason == ExitReason::done && kill_asked()) end_.reason = ExitReason::killed;
  end(site, end_);
}

// False: the threads ended early, and end_ or the kill says why.
bool ChipThreads::run_guarded(ChipSite& site) {
  try {
    if (const Status status = fetch(site); !status.ok()) {
      stop(svp::Service::refusal(status));
      return false;
    }
    run_threads(site);
    return true;
  } catch (const svp::Stopped&) {
  } catch (const svp::NumberedFailure& failure) {
    stop({.reason = ExitReason::failed, .value = failure.value, .text = failure.what()});
  } catch (const std::exception& error) {
    stop({.reason = ExitReason::failed, .value = 0, .text = error.what()});
  } catch (const simulator::Cancelled&) {
    throw;
  } catch (...) {
    stop({.reason = ExitReason::failed,
          .value = 0,
          .text = "an exception that is no std::exception"});
  }
  return false;
}

void ChipThreads::run_threads(ChipSite& site) {
  const std::uint64_t count = range().count();
  if (count == 0) pass_on();
  for (std::uint64_t n = 0; n != count && !stopped(); ++n) {
    const svp::Index index = range().index(n);
    begin_thread(index, n == 0, n + 1 == count);
    call(index);
    if (n + 1 != count) site.pass();
  }
}

// ---- Of another core's request ------------------------------------------------------------------

bool ServedOnChip::becomes_ready() {
  if (!service_.ready() || std::exchange(was_ready_, true)) return false;
  if (service_.place() > svp::exclusive_place) service_.refuse("there is no such place on a core");
  return true;
}

bool ServedOnChip::advance(ChipSite& site) { return service_.advance(site.link()); }

Status ServedOnChip::fetch(ChipSite& site) { return service_.fetch(site.reach()); }

void ServedOnChip::begin_thread(svp::Index index, bool is_first, bool is_last) {
  for (svp::FamilyEnd* const channel : service_.channels())
    channel->begin(index, is_first, is_last);
}

void ServedOnChip::pass_on() {
  for (svp::FamilyEnd* const channel : service_.channels()) channel->pass_on();
}

void ServedOnChip::end_channels(bool early) {
  for (svp::FamilyEnd* const channel : service_.channels()) channel->end(early);
}

void ServedOnChip::end(ChipSite& site, const svp::Completion& completion) {
  service_.end(site.reach(), completion);
}

// ---- Of a program of the same core --------------------------------------------------------------

void OwnOnChip::end(ChipSite& site, const svp::Completion& completion) {
  if (begun_) store_output(site);
  completion_ = completion;
}

// CHT3: the threads have stored to the host's bytes. Nothing is published: a create that hands the
// array to another core does that.
void OwnOnChip::store_output(ChipSite& site) {
  for (const svp::Piece& piece : pieces_) {
    if (!piece.form->array || piece.bytes() == 0 || !svp::comes_out(piece.form->flow)) continue;
    const ChipMemory::Block* const block = site.memory().find(piece.at, piece.bytes());
    if (block != nullptr && block->owner == site.cpu().id())
      site.memory().stored(site.cpu(), piece.at, piece.bytes());
  }
}

}  // namespace tombolo::experiments
