// SPDX-License-Identifier: Apache-2.0
#include "runtime/records/trace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

namespace tombolo::runtime {
namespace {

namespace fs = std::filesystem;

// The file that a path means, behind links; empty for a device, a pipe and the like, and for a path
// to a descriptor of this process, as /dev/stdout: its file is written where it stands.
std::string target_of(const std::string& path) {
  constexpr int most_links = 40;  // as the kernel follows
  std::error_code error;
  const fs::path open_here = fs::canonical("/proc/self/fd", error);
  fs::path at = path;
  for (int links = 0; links < most_links; ++links) {
    if (!open_here.empty() && fs::canonical(at.parent_path(), error) == open_here) return {};
    if (!fs::is_symlink(at, error)) break;
    at = at.parent_path() / fs::read_symlink(at, error);
  }
  return fs::is_other(at, error) ? std::string() : at.string();
}

std::string folder_of(const std::string& file) { return fs::path(file).parent_path().string(); }

// Those that a user ends a program by, and those of a full disk and a pipe without a reader.
sigset_t signals_that_end() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ, SIGPIPE})
    sigaddset(&signals, signal);
  return signals;
}

// Of this thread's own writes: they are errors that append() has returned.
void forget_signals_of_writes() {
  sigset_t own;
  sigemptyset(&own);
  for (const int signal : {SIGXFSZ, SIGPIPE}) sigaddset(&own, signal);
  constexpr timespec none{};
  while (sigtimedwait(&own, nullptr, &none) > 0) {
  }
}

}  // namespace

Status TraceFile::refused(const char* call) const {
  return Status::bad_configuration(
      fmt::format("the trace {} cannot be written: {}: {}; see {} and --trace", path_, call,
                  std::strerror(errno), variable_));
}

Status TraceFile::check() const {
  const std::string target = target_of(path_);
  const std::string& written = target.empty() ? path_ : target;
  std::error_code error;
  if (fs::is_directory(written, error)) {
    errno = EISDIR;
    return refused("open");
  }
  if (access(written.c_str(), W_OK) != 0 && (errno != ENOENT || target.empty()))
    return refused("open");
  const bool fits = target.empty() || access(folder_of(target).c_str(), W_OK | X_OK) == 0;
  return fits ? Status() : refused("open of a new file in its folder");
}

std::string TraceFile::name_of_draft() const {
  return target_.empty() ? path_ : fmt::format("{}/.tombolo-{:016x}", folder_of(target_), draft_);
}

Status TraceFile::open_draft(std::uint64_t draft, int flags) {
  target_ = target_of(path_);
  draft_ = draft;
  if (target_.empty()) flags = 0;
  constexpr mode_t all_may = 0666;
  file_.reset(open(name_of_draft().c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | flags, all_may));
  return file_.valid() ? Status() : refused("open");
}

Status TraceFile::begin() {
  std::uint64_t draft = 0;
  if (getrandom(&draft, sizeof draft, 0) != sizeof draft) return refused("getrandom");
  const sigset_t ending = signals_that_end();
  pthread_sigmask(SIG_BLOCK, &ending, &taken_);
  begun_ = true;
  if (Status opened = open_draft(std::max<std::uint64_t>(draft, 1), O_CREAT | O_EXCL);
      !opened.ok()) {
    leave();
    return opened;
  }
  struct stat before = {};
  if (!target_.empty() && stat(target_.c_str(), &before) == 0) {
    constexpr mode_t rights = 07777;
    // Both may fail: another's file, or a file system without rights.
    [[maybe_unused]] int done = fchown(file_.get(), before.st_uid, before.st_gid);
    done = fchmod(file_.get(), before.st_mode & rights);
  }
  return {};
}

Status TraceFile::join(std::uint64_t draft) { return open_draft(draft, 0); }

Status TraceFile::append(std::string_view text) {
  while (!text.empty()) {
    const ssize_t bytes = write(file_.get(), text.data(), text.size());
    if (bytes < 0 && errno != EINTR) {
      Status failed = refused("write");
      drop();
      return failed;
    }
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  }
  return {};
}

Status TraceFile::replace() {
  if (!target_.empty()) {
    // Some disks tell here only that they are full.
    const char* const call = fsync(file_.get()) == 0 ? "rename" : "fsync";
    if (*call == 'f' || rename(name_of_draft().c_str(), target_.c_str()) != 0) {
      Status failed = refused(call);
      drop();
      return failed;
    }
  }
  leave();
  return {};
}

void TraceFile::drop() {
  if (begun_ && file_.valid() && !target_.empty()) unlink(name_of_draft().c_str());
  leave();
}

void TraceFile::leave() {
  file_.reset(-1);
  if (!std::exchange(begun_, false)) return;
  forget_signals_of_writes();
  pthread_sigmask(SIG_SETMASK, &taken_, nullptr);
}

std::string TraceFile::head() { return "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"; }

std::string TraceFile::end(std::string_view process) {
  return fmt::format(R"({{"name": "process_name", "ph": "M", "pid": 1, "args": )"
                     R"({{"name": "{}"}}}}]}})"
                     "\n",
                     process);
}

}  // namespace tombolo::runtime
