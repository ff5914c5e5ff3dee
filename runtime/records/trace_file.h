// SPDX-License-Identifier: Apache-2.0
// Purpose: the file of a trace: events of Chrome's format in JSON, which Perfetto opens.
//
//   TOMBOLO_TRY(file.create());                  // at the start: a bad path is told at once
//   file.append(TraceFile::head());
//   file.append(text);                           // lines of events, each with a comma behind it
//   file.append(TraceFile::end("4 threads"));    // no comma behind the last event
//
// Thread safety: as the file: each append is a call or several of the kernel, at the file's end.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/options.h"
#include "base/status.h"

namespace tombolo::runtime {

class TraceFile {
 public:
  TraceFile() = default;
  // `by`: the setting that names the path.
  TraceFile(std::string path, const Option& by) : path_(std::move(path)), variable_(by.variable) {}

  // Makes it anew, empty. Error: bad_configuration, as of append().
  Status create() const;
  Status append(const std::string& text) const;

  static std::string head();
  // `process`: the name of process 1 of the trace.
  static std::string end(std::string_view process);

 private:
  Status refused(const char* call) const;

  std::string path_;
  std::string_view variable_;
};

}  // namespace tombolo::runtime
