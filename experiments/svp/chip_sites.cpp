// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/chip_sites.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "svp/scheduler/blocked.h"
#include "svp/scheduler/scope.h"
#include "svp/scheduler/worker.h"

namespace tombolo::experiments {

using simulator::CoreId;
using svp::ExitReason;

// ---- A family that is served --------------------------------------------------------------------

// From its request until its channel is closed.
class ServedOnChip {
 public:
  explicit ServedOnChip(const svp::VirtualChannel& channel) : service_(channel) {}

  bool take(const svp::Message& message) { return service_.take(message); }
  bool stopped() const { return end_.reason != ExitReason::done || service_.kill_asked(); }
  bool may_begin() const { return !begun_ && service_.ready(); }
  void begin() { begun_ = true; }
  // All threads, one after the other, up to the end of the family.
  void run(ChipSite& site);
  // True: the completion has been sent.
  bool advance(ChipSite& site) { return service_.advance(site.link()); }

  [[noreturn]] void break_with(std::int64_t value) {
    stop({.reason = ExitReason::broken, .value = value});
    throw svp::Stopped{};
  }

 private:
  // CST3.
  void stop(const svp::Completion& end) {
    if (!stopped()) end_ = end;
  }
  void run_threads(ChipSite& site);
  void run_guarded(ChipSite& site);

  svp::Service service_;
  svp::Completion end_;
  bool begun_ = false;
};

void ServedOnChip::run(ChipSite& site) {
  if (!stopped()) {
    if (const Status status = service_.fetch(site.reach()); !status.ok())
      end_ = svp::Service::refusal(status);
    else
      run_guarded(site);
  }
  if (end_.reason == ExitReason::done && service_.kill_asked()) end_.reason = ExitReason::killed;
  service_.end(site.reach(), end_);
}

void ServedOnChip::run_guarded(ChipSite& site) {
  bool all = false;
  try {
    run_threads(site);
    all = true;
  } catch (const svp::Stopped&) {
    // end_ or the kill says why.
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
  for (svp::FamilyEnd* const channel : service_.channels()) channel->end(!all || stopped());
}

void ServedOnChip::run_threads(ChipSite& site) {
  const svp::Range& range = service_.range();
  const std::uint64_t count = range.count();
  const auto channels = service_.channels();
  if (count == 0)
    for (svp::FamilyEnd* const channel : channels) channel->pass_on();
  for (std::uint64_t n = 0; n != count && !stopped(); ++n) {
    const svp::Index index = range.index(n);
    for (svp::FamilyEnd* const channel : channels) channel->begin(index, n == 0, n + 1 == count);
    service_.frame().call(index);
    if (n + 1 != count) site.pass();
  }
}

// ---- A family elsewhere -------------------------------------------------------------------------

void OpenFamily::create(svp::Site peer, const svp::CallPlan& plan,
                        std::span<const svp::Piece> pieces, std::span<svp::ParentEnd* const> ends) {
  TOMBOLO_CHECK(peer != here_.link().self() && peer < here_.sites(),
                "create: by core {} at core {}: a place is another core of the sites",
                here_.link().self(), peer);
  pieces_ = pieces;
  ends_ = ends;
  call_.emplace(here_.open(peer), plan, pieces);
  TOMBOLO_CHECK(call_->unfit() == nullptr && !call_->has_unfit_channel(),
                "create: {} has an argument without a form in XDR", plan.function->name);
  copied_ = may_copy(plan, peer);
  here_.reach().let_copy(copied_);
  call_->open(here_.reach());
  if (copied_) publish_copied();
  for (svp::ParentEnd* const end : ends_)
    TOMBOLO_CHECK(end->listen(*this), "create: a channel that belongs to another family");
  changed_ = true;  // the channels may have been, before
  here_.enter(*this);
  here_.wait([this] { return all_sent_; }, false);
}

bool OpenFamily::may_copy(const svp::CallPlan& plan, svp::Site peer) const {
  return plan.carriage == svp::Carriage::direct &&
         std::ranges::all_of(pieces_, [&](const svp::Piece& piece) {
           return !piece.form->array || piece.bytes() == 0 ||
                  here_.reach().can_show(peer, piece.at, piece.bytes());
         });
}

void OpenFamily::publish_copied() {
  for (const svp::Piece& piece : pieces_)
    if (piece.form->array) here_.reach().publish(piece.at, piece.bytes());
}

void OpenFamily::refresh_copied() {
  for (const svp::Piece& piece : pieces_)
    if (piece.form->array && piece.bytes() != 0 && svp::comes_out(piece.form->flow))
      here_.reach().refresh(piece.at, piece.bytes());
}

void OpenFamily::look_at_channels() {
  if (!std::exchange(changed_, false)) return;
  for (std::uint32_t i = 0; i < ends_.size(); ++i) {
    if (const void* const value = ends_[i]->value()) call_->tell_value(i, value);
    if (ends_[i]->awaits_last()) call_->want_last(i);
  }
}

void OpenFamily::advance() {
  look_at_channels();
  all_sent_ = call_->advance(here_.link());
}

bool OpenFamily::take(const svp::Message& message) {
  return call_->take(message, here_.reach(), [this](const svp::Note& note) {
    if (note.news == svp::News::value)
      ends_[note.channel]->bring_last(note.value);
    else
      ends_[note.channel]->close_last(note.news == svp::News::none_early);
  });
}

const svp::Completion& OpenFamily::sync() {
  look_at_channels();  // CLL4
  call_->ask_sync();
  const auto ended = [this] { return call_->ended(); };
  const bool stopped = !here_.wait(ended, true);
  if (stopped) {
    call_->ask_kill();
    here_.wait(ended, false);
  }
  if (copied_) refresh_copied();
  for (svp::ParentEnd* const end : ends_)
    end->close_last(call_->completion().reason != ExitReason::done || stopped);
  if (stopped) throw svp::Stopped{};
  return call_->completion();
}

void OpenFamily::leave() {
  if (!call_->ended() && here_.goes_on()) {
    call_->ask_kill();
    call_->ask_sync();
    try {
      here_.wait([this] { return call_->ended(); }, false);
    } catch (const simulator::Cancelled&) {
      // Not through a destructor: the next call of the kernel throws it again.
    }
  }
  for (svp::ParentEnd* const end : ends_) end->ignore();
  here_.leave(*this);
}

// ---- A site -------------------------------------------------------------------------------------

ChipSite::ChipSite(ChipSites& all, scc::Chip& chip, CoreId core, ChipMemory& memory,
                   ChipReach::Care care, std::uint32_t families_at_a_time)
    : all_(all),
      chip_(chip),
      cpu_(chip.cpu(core)),
      memory_(memory),
      link_(cpu_),
      reach_(cpu_, memory, care),
      fibres_(families_at_a_time + 1) {
  running_ = &fibres_.front();
  // Stores to the buffer wake a fibre too early; it looks again.
  for (std::size_t n = 0; n < fibres_.size(); ++n) fibres_[n].word = chip.mpb(core) + (n + 1) * 8;
}

ChipSite::~ChipSite() = default;

std::uint32_t ChipSite::sites() const { return static_cast<std::uint32_t>(all_.sites_.size()); }

ChipSite& ChipSite::here() {
  auto* const all = static_cast<ChipSites*>(svp::Surroundings::here());
  TOMBOLO_CHECK(all != nullptr, "ChipSite: this is no thread of a chip");
  return *all->of_fibres_.at(all->chip_.simulation().running()->id().index());
}

void ChipSite::run(const std::function<void(ChipSite&)>* creator) {
  fibres_[0].core = &cpu_.fibre();
  if (creator != nullptr) {
    (*creator)(*this);
    cpu_.fibre().await_turn();
    all_.done_ = true;
  }
  while (cpu_.fibre().await_turn(), !all_.done_) work();
  end_fibres();
}

void ChipSite::run_families(Fibre& fibre, simulator::Core& core) {
  fibre.core = &core;
  while (true) {
    core.wait_until(fibre.word, "a family", [&] { return running_ == &fibre || ended_; });
    if (running_ != &fibre) return;
    fibre.family->run(*this);
    fibre.family = nullptr;
    hand_over(fibres_.front());
  }
}

void ChipSite::work() {
  for (OpenFamily* const call : calls_) call->advance();
  const bool any = link_.poll([this](const svp::Message& message) { return take(message); });
  std::erase_if(served_, [this](const auto& family) { return family->advance(*this); });
  const bool begun = begin_families();
  bool went_on = false;
  for (std::size_t n = 1; n < fibres_.size(); ++n) {
    if (fibres_[n].family == nullptr || !fibres_[n].may_run()) continue;
    hand_over(fibres_[n]);
    went_on = true;
  }
  if (!any && !begun && !went_on) (void)link_.wait();
}

bool ChipSite::take(const svp::Message& message) {
  for (OpenFamily* const call : calls_)
    if (call->take(message)) return true;
  for (const auto& family : served_)
    if (family->take(message)) return true;
  if (!svp::Service::begins(message)) return true;  // CLL5
  served_.push_back(std::make_unique<ServedOnChip>(message.channel));
  return served_.back()->take(message);
}

bool ChipSite::begin_families() {
  bool any = false;
  for (const auto& family : served_) {
    if (!family->may_begin()) continue;
    if (family->stopped()) {  // it blocks nowhere
      family->begin();
      family->run(*this);
      any = true;
      continue;
    }
    const auto free = std::find_if(fibres_.begin() + 1, fibres_.end(),
                                   [](const Fibre& fibre) { return fibre.family == nullptr; });
    if (free == fibres_.end()) continue;
    family->begin();
    free->family = family.get();
    free->may_run = [] { return true; };
    any = true;
  }
  return any;
}

void ChipSite::hand_over(Fibre& next) {
  Fibre& self = *running_;
  TOMBOLO_CHECK(next.core != nullptr, "core {}: a fibre that has not begun", cpu_.id().index());
  cpu_.compute(cpu_.timing().system_call);
  self.core->await_turn();
  running_ = &next;
  cpu_.run_on(*next.core);
  chip_.simulation().wake(next.word);
  self.core->wait_until(self.word, "the core", [&] { return running_ == &self || ended_; });
}

bool ChipSite::wait(const Ready& ready, bool unless_stopped) {
  Fibre& self = *running_;
  if (self.family == nullptr) {
    while (!ready() && goes_on()) work();
    return goes_on();
  }
  while (!ready()) {
    if (!goes_on()) return false;
    if (unless_stopped && self.family->stopped()) return false;
    self.may_run = [&] { return ready() || (unless_stopped && self.family->stopped()); };
    hand_over(fibres_.front());
  }
  return true;
}

void ChipSite::pass() {
  if (running_->family == nullptr) return;
  running_->may_run = [] { return true; };
  hand_over(fibres_.front());
}

bool ChipSite::stopped() { return running_->family != nullptr && running_->family->stopped(); }

void ChipSite::break_with(std::int64_t value) {
  TOMBOLO_CHECK(running_->family != nullptr, "break_family: outside of all families");
  running_->family->break_with(value);
}

void ChipSite::end_fibres() {
  ended_ = true;
  for (std::size_t n = 1; n < fibres_.size(); ++n) {
    TOMBOLO_CHECK(fibres_[n].family == nullptr, "core {}: a family runs at the end",
                  cpu_.id().index());
    cpu_.fibre().await_turn();  // one that is woken may come first
    chip_.simulation().wake(fibres_[n].word);
  }
}

// ---- All sites ----------------------------------------------------------------------------------

ChipSites::ChipSites(scc::Chip& chip, std::uint32_t n, ChipReach::Care care, std::uint32_t families)
    : chip_(chip) {
  for (std::uint32_t core = 0; core < n; ++core)
    sites_.push_back(
        std::make_unique<ChipSite>(*this, chip, CoreId(core), memory_, care, families));
}

bool ChipSites::block(const svp::Blocked& blocked) {
  return ChipSite::here().wait([&] { return blocked.delivered; }, true);
}

// Without a look at messages no kill would come to a thread that waits nowhere.
bool ChipSites::stopped() {
  ChipSite& here = ChipSite::here();
  here.pass();
  return here.stopped();
}

simulator::RunResult ChipSites::run(const std::function<void(ChipSite&)>& creator) {
  TOMBOLO_CHECK(svp::Worker::here() == nullptr, "sites: run by a thread of a family");  // SRR1
  for (const auto& site : sites_) {
    const bool creates = site == sites_.front();
    chip_.start(site->cpu().id(),
                [&, creates](scc::Cpu&) { site->run(creates ? &creator : nullptr); });
    of_fibres_.push_back(site.get());
  }
  TOMBOLO_CHECK(chip_.simulation().cores() == of_fibres_.size(), "sites: other programs run");
  for (const auto& site : sites_)
    for (std::size_t n = 1; n < site->fibres_.size(); ++n) {
      chip_.simulation().spawn(
          fmt::format("cpu {} family {}", site->cpu().id().index(), n),
          [&site, n](simulator::Core& core) { site->run_families(site->fibres_[n], core); });
      of_fibres_.push_back(site.get());
    }
  const Entered entered(*this);
  return chip_.run();
}

}  // namespace tombolo::experiments
