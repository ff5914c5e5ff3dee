// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/chip/chip_sites.h"

#include <algorithm>
#include <utility>

#include "svp/scheduler/blocked.h"
#include "svp/scheduler/worker.h"

namespace tombolo::experiments {

using simulator::Address;
using simulator::CoreId;
using svp::ExitReason;

namespace {

// Behind the copy cores' part of a buffer, where there are some.
std::uint64_t message_data(const scc::Chip& chip, const ChipSitesShape& shape) {
  constexpr std::uint64_t line_bytes = 32;
  return shape.copy_cores.empty() ? line_bytes : CopyClient::buffer_bytes(chip);
}

// A fibre waits there for its core. Physical addresses are smaller, so no program stores there.
Address word_of(CoreId core, std::size_t fibre) {
  return Address((std::uint64_t{1} << 48) + (std::uint64_t{core.index()} << 24) + fibre * 8);
}

}  // namespace

// ---- A family elsewhere -------------------------------------------------------------------------

void OpenFamily::create_here(OwnOnChip& family) {
  TOMBOLO_CHECK(
      !family.is_exclusive() || here_.running_family() == nullptr ||
          !here_.running_family()->within_exclusive(),
      "create at an exclusive place, from within a family of that place: neither could end");
  own_ = &family;
  here_.queue(family);
}

void OpenFamily::create(const ChipPlace& place, svp::CallPlan plan,
                        std::span<const svp::Piece> pieces, std::span<svp::ParentEnd* const> ends) {
  const svp::Site peer = place.site;
  TOMBOLO_CHECK(peer < here_.sites(), "create: by core {} at core {} of {}", here_.link().self(),
                peer, here_.sites());
  plan.place = place.is_exclusive ? svp::exclusive_place : svp::default_place;
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
  const bool wanted =
      plan.transport == svp::Transport::direct || plan.transport == svp::Transport::engine;
  return wanted && std::ranges::all_of(pieces_, [&](const svp::Piece& piece) {
           return !piece.form->array || piece.bytes() == 0 ||
                  here_.reach().can_show(peer, piece.at, piece.bytes());
         });
}

void OpenFamily::publish_copied() {
  for (const svp::Piece& piece : pieces_)
    if (piece.form->array && piece.bytes() != 0) here_.reach().publish(piece.at, piece.bytes());
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

void OpenFamily::kill() {
  if (own_ != nullptr)
    own_->ask_kill();
  else
    call_->ask_kill();
}

void OpenFamily::ask_sync() {
  if (own_ != nullptr) return own_->close_parent();
  look_at_channels();  // CLL4
  call_->ask_sync();
}

const svp::Completion& OpenFamily::sync() {
  ask_sync();
  const auto over = [this] { return ended(); };
  const bool stopped = !here_.wait(over, true);
  if (stopped) {
    kill();
    here_.wait(over, false);
  }
  if (copied_) refresh_copied();
  for (svp::ParentEnd* const end : ends_)
    end->close_last(stopped || completion().reason != ExitReason::done);
  if (stopped) throw svp::Stopped{};
  return completion();
}

void OpenFamily::leave() {
  if (!ended() && here_.goes_on()) {
    kill();
    ask_sync();
    try {
      here_.wait([this] { return ended(); }, false);
    } catch (const simulator::Cancelled&) {
      // Not through a destructor: the next call of the kernel throws it again.
    }
  }
  for (svp::ParentEnd* const end : ends_) end->ignore();
  here_.leave(*this);
}

// ---- A site -------------------------------------------------------------------------------------

ChipSite::ChipSite(ChipSites& all, CoreId core)
    : all_(all),
      chip_(all.chip_),
      cpu_(chip_.cpu(core)),
      memory_(all.memory_),
      link_(cpu_, message_data(chip_, all.shape_)),
      engine_(cpu_, all.shape_.copy_cores, all.shape_.room_bytes, all.shape_.engine_care,
              [this](const Ready& ready) { return wait(ready, false); }),
      reach_(cpu_, memory_, engine_, all.shape_.care),
      fibres_(1) {
  running_ = &fibres_.front();
  running_->word = word_of(core, 0);
}

std::uint32_t ChipSite::sites() const { return static_cast<std::uint32_t>(all_.sites_.size()); }

ChipSite& ChipSite::here() {
  auto* const all = static_cast<ChipSites*>(svp::ExternalThreads::here());
  TOMBOLO_CHECK(all != nullptr, "ChipSite: this is no thread of a chip");
  return *all->of_fibres_.at(all->chip_.simulation().running()->id().index());
}

void ChipSite::run(const std::function<void(ChipSite&)>* creator) {
  fibres_[0].core = &cpu_.fibre();
  if (creator != nullptr) {
    (*creator)(*this);
    for (const CoreId core : all_.shape_.copy_cores) CopyClient(cpu_).stop(core);
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
    if (exclusive_ == fibre.family) exclusive_ = nullptr;
    fibre.family = nullptr;
    hand_over(fibres_.front());
  }
}

void ChipSite::work() {
  TOMBOLO_CHECK(!std::exchange(working_, true), "core {}: its program waits within its own work",
                cpu_.id().index());
  for (OpenFamily* const call : calls_) call->advance();
  const bool any = link_.poll([this](const svp::Message& message) { return take(message); });
  std::erase_if(served_, [this](const auto& family) { return family->advance(*this); });
  const bool begun = begin_families();
  bool went_on = false;
  for (std::size_t n = 1; n < fibres_.size(); ++n) {
    Fibre& fibre = fibres_[n];
    if (fibre.family == nullptr || fibre.core == nullptr || !fibre.may_run()) continue;
    hand_over(fibre);
    went_on = true;
  }
  if (!any && !begun && !went_on) (void)link_.wait();
  working_ = false;
}

bool ChipSite::take(const svp::Message& message) {
  for (OpenFamily* const call : calls_)
    if (call->take(message)) return true;
  for (const auto& family : served_)
    if (family->take(message)) {
      queue_if_ready(*family);
      return true;
    }
  if (!svp::Service::begins(message)) return true;  // CLL5
  served_.push_back(std::make_unique<ServedOnChip>(message.channel));
  const bool taken = served_.back()->take(message);
  queue_if_ready(*served_.back());
  return taken;
}

void ChipSite::queue_if_ready(ServedOnChip& family) {
  if (family.becomes_ready()) queue_.push_back(&family);
}

bool ChipSite::begin_families() {
  bool any = false;
  for (std::size_t n = 0; n < queue_.size();) {
    ChipThreads& family = *queue_[n];
    if (family.is_exclusive() && exclusive_ != nullptr && !family.stopped()) {  // CST3
      ++n;
      continue;
    }
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(n));
    begin(family);
    any = true;
  }
  return any;
}

void ChipSite::begin(ChipThreads& family) {
  if (family.stopped()) return family.run(*this);  // CHT2
  if (family.is_exclusive()) exclusive_ = &family;
  give_fibre(family);
}

void ChipSite::give_fibre(ChipThreads& family) {
  const auto free = std::find_if(fibres_.begin() + 1, fibres_.end(),
                                 [](const Fibre& fibre) { return fibre.family == nullptr; });
  Fibre& fibre = free != fibres_.end() ? *free : add_fibre();
  fibre.family = &family;
  fibre.may_run = [] { return true; };
}

// It begins in its own turn, and gets the core after that.
ChipSite::Fibre& ChipSite::add_fibre() {
  const std::size_t n = fibres_.size();
  Fibre& added = fibres_.emplace_back();
  added.word = word_of(cpu_.id(), n);
  cpu_.fibre().await_turn();
  const CoreId fibre = chip_.simulation().spawn(
      fmt::format("cpu {} family {}", cpu_.id().index(), n),
      [this, &added](simulator::Core& core) { run_families(added, core); });
  if (fibre != simulator::no_core) all_.note_fibre(fibre, *this);
  return added;
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

ChipSites::ChipSites(scc::Chip& chip, const ChipSitesShape& shape) : chip_(chip), shape_(shape) {
  for (const CoreId core : shape.copy_cores)
    TOMBOLO_CHECK(core.index() >= shape.sites && core.index() < chip.cores(),
                  "sites: core {} is one of {} sites, or none of the chip, and cannot copy",
                  core.index(), shape.sites);
  for (std::uint32_t core = 0; core < shape.sites; ++core)
    sites_.push_back(std::make_unique<ChipSite>(*this, CoreId(core)));
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

void ChipSites::note_fibre(CoreId fibre, ChipSite& site) {
  TOMBOLO_CHECK(fibre.index() < chip_.simulation().cores(), "sites: no fibre {}", fibre.index());
  of_fibres_.resize(std::max<std::size_t>(of_fibres_.size(), fibre.index() + std::size_t{1}));
  of_fibres_[fibre.index()] = &site;
}

simulator::RunResult ChipSites::run(const std::function<void(ChipSite&)>& creator) {
  TOMBOLO_CHECK(svp::Worker::here() == nullptr, "sites: run by a thread of a family");  // SRR1
  for (const auto& site : sites_) {
    const bool creates = site == sites_.front();
    chip_.start(site->cpu().id(),
                [&, creates](scc::Cpu&) { site->run(creates ? &creator : nullptr); });
    of_fibres_.push_back(site.get());
  }
  for (const CoreId core : shape_.copy_cores) {
    chip_.start(core, [](scc::Cpu& cpu) { CopyCore(cpu).serve(); });
    of_fibres_.push_back(nullptr);
  }
  TOMBOLO_CHECK(chip_.simulation().cores() == of_fibres_.size(), "sites: other programs run");
  const Entered entered(*this);
  return chip_.run();
}

}  // namespace tombolo::experiments
