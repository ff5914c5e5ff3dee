// SPDX-License-Identifier: Apache-2.0
// Purpose: families of C programs whose thread function has a name: at places of this process, and
// of others.
//
// Invariants: CRE1 a function is entered in each process before the job begins, by its name; its
//                 entry is never freed.
//             CRE2 all data are arrays of plain elements without a form in XDR.
// Thread safety: as Family; functions are entered by one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "svp/api/c_family.h"
#include "svp/remote/distributed.h"
#include "svp/remote/function.h"
#include "svp/remote/remote_place.h"

namespace tombolo::svp {

// A function, as the program describes it.
struct CFunction {
  std::string name;
  tombolo_svp_function_t call;
  std::vector<Form> forms;

  static std::uint64_t id_of(std::string_view name) {
    return Digest().add("function of C ").add(name).value();
  }
  static const CFunction& of(const FunctionEntry& entry) {
    return *static_cast<const CFunction*>(entry.program);
  }
};

// The arguments of a family where it runs for another process.
class CFrame final : public Frame {
 public:
  explicit CFrame(const CFunction& function) : function_(function) {
    for (const Form& form : function.forms) pieces_.push_back({&form, nullptr, 0});
    data_.resize(pieces_.size());
  }
  std::span<Piece> pieces() override { return pieces_; }
  void bind() override {
    std::transform(pieces_.begin(), pieces_.end(), data_.begin(), [](const Piece& piece) {
      return tombolo_svp_data_t{.at = piece.at, .count = piece.count};
    });
  }
  void call(Index index) override {
    run_c_thread(index, [&] { function_.call(index, data_.data()); });
  }
  static std::unique_ptr<Frame> make(const FunctionEntry& entry) {
    return std::make_unique<CFrame>(CFunction::of(entry));
  }

 private:
  const CFunction& function_;
  std::vector<Piece> pieces_;
  std::vector<tombolo_svp_data_t> data_;
};

inline Form c_form_of(const tombolo_svp_parameter_t& parameter) {
  constexpr std::uint32_t most = 16;
  const auto bytes = static_cast<std::uint32_t>(parameter.element_bytes);
  // The largest that elements of this size may need.
  const std::uint32_t alignment = std::min(most, bytes & (~bytes + 1));
  return {.flow = static_cast<Flow>(parameter.flow),
          .array = true,
          .element_bytes = bytes,
          .alignment = alignment,
          .kind = ElementKind::other};
}

inline void enter_c_function(std::string_view name, tombolo_svp_function_t call,
                             std::span<const tombolo_svp_parameter_t> parameters) {
  auto function = std::make_unique<CFunction>();
  function->name = name;
  function->call = call;
  Digest digest;
  for (const tombolo_svp_parameter_t& parameter : parameters) {
    TOMBOLO_CHECK(parameter.flow >= TOMBOLO_SVP_IN && parameter.flow <= TOMBOLO_SVP_INOUT &&
                      parameter.element_bytes > 0 && parameter.element_bytes <= UINT32_MAX,
                  "enter: function {} has a parameter of flow {} with elements of {} bytes", name,
                  static_cast<int>(parameter.flow), parameter.element_bytes);
    function->forms.push_back(c_form_of(parameter));
    add_form(digest, function->forms.back());
  }
  TOMBOLO_CHECK(find_function(CFunction::id_of(name)) == nullptr,
                "enter: there is a function {} already", name);
  enter_function({.id = CFunction::id_of(name),
                  .name = function->name,
                  .digest = digest.value(),
                  .frame = &CFrame::make,
                  .program = function.get()});
  (void)function.release();  // CRE1
}

// At a place of this process: the creator's data themselves.
class CNamedBody {
 public:
  CNamedBody(const CFunction& function, const tombolo_svp_data_t* data)
      : call_(function.call), data_(data) {}
  void operator()(Index index) const {
    run_c_thread(index, [&] { call_(index, data_); });
  }

 private:
  tombolo_svp_function_t call_;
  const tombolo_svp_data_t* data_;
};

// At a place of another one.
class CRemoteFamily final : public FamilyBase {
 public:
  CRemoteFamily(const RemoteRecord& at, const Range& range, const FunctionEntry& entry,
                const tombolo_svp_data_t* data)
      : FamilyBase(nullptr, Worker::here()) {
    std::vector<Piece> pieces;
    for (const Form& form : CFunction::of(entry).forms) {
      pieces.push_back({&form, data->at, data->count});
      ++data;
    }
    range.check();
    Exchange::here()->open(
        call_, at,
        {.function = &entry, .range = range, .place = at.place, .transport = at.transport}, pieces);
    if (creator == nullptr) count_outside();
    if (creator != nullptr && creator->wanted() && creator->attend()) {
      (void)end();
      throw Stopped{};
    }
  }
  // Throws Stopped if the caller's family was stopped.
  Exit sync() {
    const Exit end = this->end();
    if (!end.done() && parent() != nullptr && parent()->stopped()) throw Stopped{};
    if (creator != nullptr && creator->wanted()) sync_attentively(*creator);
    return end;
  }

 private:
  Exit end() {
    Worker* const worker = syncing();
    Exchange::here()->ask_sync(call_, parent() != nullptr && parent()->stopped());
    join(worker);
    (void)exit();
    const Completion& there = call_.call->completion();
    return {.reason = there.reason, .value = there.value};
  }

  OpenCall call_{*this};
};

class HeldRemote final : public HeldFamily {
 public:
  template <class... Args>
  explicit HeldRemote(Args&&... args)
      : family_(std::make_unique<CRemoteFamily>(std::forward<Args>(args)...)) {}
  Exit sync() override { return family_->sync(); }
  FamilyBase& base() override { return *family_; }

 private:
  std::unique_ptr<CRemoteFamily> family_;  // larger than the program's words
};

}  // namespace tombolo::svp
