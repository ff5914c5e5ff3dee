// SPDX-License-Identifier: Apache-2.0
// Purpose: the file of a trace: events of Chrome's format in JSON, which Perfetto opens.
//
//   TOMBOLO_TRY(file.check());                         // at the start: a bad path is told at once
//   TOMBOLO_TRY(file.begin());                         // at the end
//   TOMBOLO_TRY(file.append(TraceFile::head()));
//   TOMBOLO_TRY(file.append(text));                    // events, each with a comma behind it
//   TOMBOLO_TRY(file.append(TraceFile::end("4 threads")));  // no comma behind the last event
//   TOMBOLO_TRY(file.replace());                       // the path means the new trace from here on
//
// Other processes fill the file of the one that has begun it after join(file.draft()), in turn:
// each calls end_part() before the next one appends.
//
// Invariants: TRF1 the path means the file of before until the new one is whole: that one is beside
//                  it, under a name of its own, and takes its place by a rename.
//             TRF2 an error, and the object's end, remove the new one in the process that has begun
//                  it; a fork of that process leaves it. From begin() or join() until the file is
//                  left, the thread takes no signal by which a user ends a program.
//             TRF3 a link is followed, and stays. A device, a pipe, and /dev/stdout are no files:
//                  they are written to as they are.
// Thread safety: one thread calls begin() and all that follows; each append is at the file's end.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/options.h"
#include "base/status.h"
#include "host/descriptor.h"

namespace tombolo::runtime {

class TraceFile {
 public:
  TraceFile() = default;
  // `by`: the setting that names the path.
  TraceFile(std::string path, const Option& by) : path_(std::move(path)), variable_(by.variable) {}
  TraceFile(TraceFile&& other) noexcept { swap(other); }
  TraceFile& operator=(TraceFile&& other) noexcept {
    TraceFile moved(std::move(other));
    swap(moved);  // a new file that this object had begun is dropped
    return *this;
  }
  ~TraceFile() { drop(); }

  // Whether a file can be made there, and can replace the one that is there, as of now. Error:
  // bad_configuration, as of all others.
  Status check() const;

  Status begin();
  // The number in the name of the new file: 0 before begin() has succeeded.
  std::uint64_t draft() const { return file_.valid() ? draft_ : 0; }
  // Called in another process than begin().
  Status join(std::uint64_t draft);
  Status append(std::string_view text);
  // Puts the text that this process has appended on the disk, so that the next process finds the
  // file's end, also on another host. A process that has joined leaves the file.
  Status end_part();
  Status replace();
  // Leaves the file of before.
  void drop();

  static std::string head();
  // `process`: the name of process 1 of the trace.
  static std::string end(std::string_view process);

 private:
  Status open_draft(std::uint64_t draft, int flags);
  std::string name_of_draft() const;
  Status refused(const char* call) const;
  bool is_ours() const;
  void leave();
  void swap(TraceFile& other) noexcept;

  std::string path_;
  std::string_view variable_;
  std::string target_;  // behind links; empty: a device and the like
  std::uint64_t draft_ = 0;
  host::Descriptor file_;
  pid_t maker_ = 0;                // the process that has begun it; 0: this one has joined
  std::optional<sigset_t> taken_;  // the thread's signals before, while it takes none
};

}  // namespace tombolo::runtime
