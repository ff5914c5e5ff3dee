// SPDX-License-Identifier: Apache-2.0
// Purpose: a machine that notes every operation, for tests of the order in which a call does
// things. Nothing is cached, so all cores see one memory; a wait that would last is an error.
//
//   Recorder recorder({.cores = 2, .sync_bytes = ..., .data_bytes = 128});
//   RecordedCore core(recorder.attachment(0));
//   core.publish({1, 8}, 4);
//   EXPECT_EQ(recorder.take(), "0:publish(1,8,4)");
//
// Stores and atomics are noted without their place; loads and notifications are not noted.
// Thread safety: any thread may use any core, one operation at a time.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "machine/optional.h"

namespace tombolo::windows::testing {

struct RecorderShape {
  machine::Home cores = 2;
  std::size_t sync_bytes = 0;  // per home
  std::size_t data_bytes = 0;  // per home
};

class Recorder {
 public:
  explicit Recorder(const RecorderShape& shape)
      : shape_(shape),
        words_(shape.cores * shape.sync_bytes / 8),
        data_(shape.cores * shape.data_bytes) {}

  machine::Attachment attachment(machine::Home self) {
    machine::Attachment at;
    at.self = self;
    at.cores = shape_.cores;
    at.sync = reinterpret_cast<std::byte*>(this);
    at.sync_bytes_per_home = shape_.sync_bytes;
    return at;
  }

  // The notes since the last call, with blanks between.
  std::string take() { return std::exchange(notes_, {}); }
  // Called at the start of each operation, with its name, in the thread that does it.
  void at_each(std::function<void(const std::string&)> body) { body_ = std::move(body); }
  // So many more pauses are no error.
  void allow_pauses(unsigned pauses) { pauses_ = pauses; }

 private:
  friend class RecordedCore;
  using Lock = std::lock_guard<std::mutex>;

  void reached(const char* operation) const {
    if (body_) body_(operation);
  }
  void note(machine::Home core, const std::string& operation) {
    notes_ += fmt::format("{}{}:{}", notes_.empty() ? "" : " ", core, operation);
  }
  void note(machine::Home core, const char* operation, machine::DataPlace at, std::size_t bytes) {
    note(core, fmt::format("{}({},{},{})", operation, at.home, at.offset, bytes));
  }
  std::byte* data(machine::DataPlace at) {
    return data_.data() + at.home * shape_.data_bytes + at.offset;
  }

  RecorderShape shape_;
  std::mutex mutex_;
  std::vector<std::uint64_t> words_;
  std::vector<std::byte> data_;
  std::string notes_;
  unsigned pauses_ = 0;
  std::function<void(const std::string&)> body_;
};

class RecordedCore {
 public:
  using Word = std::size_t;
  using Home = machine::Home;
  static constexpr machine::Properties properties{.name = "recorded",
                                                  .coherent = false,
                                                  .native_atomics = machine::Atomics::full,
                                                  .line_bytes = 64};
  static constexpr bool has_views = false;
  static std::size_t reserved_sync_bytes(Home) { return 0; }
  explicit RecordedCore(const machine::Attachment& at)
      : recorder_(*reinterpret_cast<Recorder*>(at.sync)), self_(at.self) {}

  Home self() const { return self_; }
  Home cores() const { return recorder_.shape_.cores; }
  Word word(machine::SyncPlace place) {
    return (place.home * recorder_.shape_.sync_bytes + place.offset) / 8;
  }
  std::uint64_t load(Word word) {
    recorder_.reached("load");
    const Recorder::Lock lock(recorder_.mutex_);
    return recorder_.words_[word];
  }
  void store(Word word, std::uint64_t v) {
    sync("store", [&] { return recorder_.words_[word] = v; });
  }
  std::uint64_t fetch_add(Word word, std::uint64_t v) {
    return sync("atomic", [&] { return std::exchange(recorder_.words_[word], sum(word, v)); });
  }
  std::uint64_t exchange(Word word, std::uint64_t v) {
    return sync("atomic", [&] { return std::exchange(recorder_.words_[word], v); });
  }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    return sync("atomic", [&] {
      const std::uint64_t old = recorder_.words_[word];
      if (old == expected) recorder_.words_[word] = desired;
      return old;
    });
  }
  void fence() {
    sync("fence", [] { return 0; });
  }
  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    if (predicate(load(word))) return {};
    return Status::io("the wait would last");
  }
  Status pause(std::uint64_t) {
    recorder_.reached("pause");
    const Recorder::Lock lock(recorder_.mutex_);
    if (recorder_.pauses_ == 0) return Status::io("the wait would last");
    --recorder_.pauses_;
    return {};
  }
  void notify(Home) {}

  Status read(machine::DataPlace at, void* out, std::size_t bytes) {
    data("read", at, bytes, [&] { std::memcpy(out, recorder_.data(at), bytes); });
    return {};
  }
  Status write(machine::DataPlace at, const void* in, std::size_t bytes) {
    data("write", at, bytes, [&] { std::memcpy(recorder_.data(at), in, bytes); });
    return {};
  }
  Status write_through(machine::DataPlace at, const void* in, std::size_t bytes) {
    data("write_through", at, bytes, [&] { std::memcpy(recorder_.data(at), in, bytes); });
    return {};
  }
  void publish(machine::DataPlace at, std::size_t bytes) {
    data("publish", at, bytes, [] {});
  }
  void refresh(machine::DataPlace at, std::size_t bytes) {
    data("refresh", at, bytes, [] {});
  }
  void drain() {
    sync("drain", [] { return 0; });
  }
  std::byte* view(machine::DataPlace) { return nullptr; }
  std::byte* memory(machine::DataPlace at) { return recorder_.data(at); }
  std::uint64_t data_bytes(Home) const { return recorder_.shape_.data_bytes; }

 protected:
  template <class Body>
  void note(const std::string& operation, Body&& body) {
    const Recorder::Lock lock(recorder_.mutex_);
    recorder_.note(self_, operation);
    body();
  }

 private:
  std::uint64_t sum(Word word, std::uint64_t v) const { return recorder_.words_[word] + v; }
  template <class Body>
  std::uint64_t sync(const char* operation, Body&& body) {
    recorder_.reached(operation);
    const Recorder::Lock lock(recorder_.mutex_);
    recorder_.note(self_, operation);
    return static_cast<std::uint64_t>(body());
  }
  template <class Body>
  void data(const char* operation, machine::DataPlace at, std::size_t bytes, Body&& body) {
    recorder_.reached(operation);
    const Recorder::Lock lock(recorder_.mutex_);
    recorder_.note(self_, operation, at, bytes);
    body();
  }

  Recorder& recorder_;
  Home self_;
};
static_assert(machine::Core<RecordedCore>);
static_assert(machine::extras_of<RecordedCore> == machine::Extras{.has_no_views = true});

// The same, which serves many pieces at once. Bytes are noted for each piece, as "at+bytes".
class PiecesRecordedCore : public RecordedCore {
 public:
  using Pieces = std::span<const machine::DataPiece>;
  using RecordedCore::RecordedCore;
  void renew_pieces(Home home, Pieces pieces) {
    all("renew_pieces", home, pieces, [](const machine::DataPiece&) {});
  }
  Status read_pieces(Home home, Pieces pieces) {
    all("read_pieces", home, pieces, [&](const machine::DataPiece& piece) {
      std::memcpy(piece.local, memory({home, piece.at}), piece.bytes);
    });
    return {};
  }
  Status write_pieces_through(Home home, Pieces pieces) {
    all("write_pieces_through", home, pieces, [&](const machine::DataPiece& piece) {
      std::memcpy(memory({home, piece.at}), piece.local, piece.bytes);
    });
    return {};
  }

 private:
  template <class Body>
  void all(const char* operation, Home home, Pieces pieces, Body&& body) {
    std::string places;
    for (const auto& [at, local, bytes] : pieces) places += fmt::format(",{}+{}", at, bytes);
    note(fmt::format("{}({}{})", operation, home, places), [&] {
      for (const machine::DataPiece& piece : pieces) body(piece);
    });
  }
};
static_assert(machine::ServesPieces<PiecesRecordedCore>);

// The same, whose memory is reached by plain loads and stores.
class ViewedRecordedCore : public PiecesRecordedCore {
 public:
  static constexpr bool has_views = true;
  using PiecesRecordedCore::PiecesRecordedCore;
  std::byte* view(machine::DataPlace at) { return memory(at); }
};
static_assert(machine::extras_of<ViewedRecordedCore> == machine::Extras{.serves_pieces = true});

// The same as a coherent machine, whose memory is reached by plain loads and stores up to
// `most_in_reach` bytes at a time.
class CoherentRecordedCore : public RecordedCore {
 public:
  static constexpr machine::Properties properties{.name = "recorded, coherent",
                                                  .coherent = true,
                                                  .native_atomics = machine::Atomics::full,
                                                  .line_bytes = 64};
  static constexpr bool has_views = true;
  static constexpr std::size_t most_in_reach = 64;
  using RecordedCore::RecordedCore;
  std::byte* view(machine::DataPlace at) { return view(at, 1); }
  std::byte* view(machine::DataPlace at, std::size_t bytes) {
    return bytes <= most_in_reach ? memory(at) : nullptr;
  }
};
static_assert(machine::Core<CoherentRecordedCore>);
static_assert(machine::ViewsRanges<CoherentRecordedCore>);

}  // namespace tombolo::windows::testing
