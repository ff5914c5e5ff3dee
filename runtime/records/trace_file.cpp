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

std::string folder_of(const std::string& file) {
  const std::string folder = fs::path(file).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Why a rename over a file would fail, though the file and its folder may be written, with its
// errno; null if it would not.
const char* why_it_stays(const std::string& file) {
  struct stat folder = {};
  struct statx there = {};
  if (statx(AT_FDCWD, file.c_str(), 0, STATX_UID, &there) != 0) return nullptr;
  if ((there.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) {
    errno = EBUSY;
    return "rename over a mount point";
  }
  const uid_t user = geteuid();
  if (user == 0 || user == there.stx_uid || stat(folder_of(file).c_str(), &folder) != 0 ||
      (folder.st_mode & S_ISVTX) == 0 || user == folder.st_uid)
    return nullptr;
  errno = EPERM;
  return "rename over another user's file in a folder with the sticky bit";
}

// Some file systems have none: their writes are as safe as they get.
bool synchronize(int file) {
  return fsync(file) == 0 || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP;
}

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
  const bool is_kept = errno == EPERM || errno == EBUSY;
  return Status::bad_configuration(fmt::format(
      "the trace {} cannot be written: {}: {}; {}see {} and --trace", path_, call,
      std::strerror(errno), is_kept ? "name a path in a folder of yours; " : "", variable_));
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
  if (target.empty()) return {};
  if (access(folder_of(target).c_str(), W_OK | X_OK) != 0)
    return refused("open of a new file in its folder");
  const char* const kept = why_it_stays(target);
  return kept == nullptr ? Status() : refused(kept);
}

std::string TraceFile::name_of_draft() const {
  return target_.empty() ? path_ : fmt::format("{}/.tombolo-{:016x}", folder_of(target_), draft_);
}

bool TraceFile::is_ours() const { return maker_ == getpid(); }

Status TraceFile::open_draft(std::uint64_t draft, int flags) {
  target_ = target_of(path_);
  draft_ = draft;
  if (target_.empty()) flags = 0;
  const sigset_t ending = signals_that_end();
  pthread_sigmask(SIG_BLOCK, &ending, &taken_.emplace());
  constexpr mode_t all_may = 0666;
  file_.reset(open(name_of_draft().c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | flags, all_may));
  if (file_.valid()) return {};
  Status failed = refused("open");
  leave();
  return failed;
}

Status TraceFile::begin() {
  drop();
  std::uint64_t draft = 0;
  if (getrandom(&draft, sizeof draft, 0) != sizeof draft) return refused("getrandom");
  TOMBOLO_TRY(open_draft(std::max<std::uint64_t>(draft, 1), O_CREAT | O_EXCL));
  maker_ = getpid();
  struct stat before = {};
  if (!target_.empty() && stat(target_.c_str(), &before) == 0) {
    constexpr mode_t rights = 07777;
    // Both may fail: another's file, or a file system without rights.
    [[maybe_unused]] int done = fchown(file_.get(), before.st_uid, before.st_gid);
    done = fchmod(file_.get(), before.st_mode & rights);
  }
  return {};
}

Status TraceFile::join(std::uint64_t draft) {
  drop();
  return open_draft(draft, 0);
}

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

Status TraceFile::end_part() {
  const bool is_file = !target_.empty();
  if (is_file && !synchronize(file_.get())) {
    Status failed = refused("fsync");
    drop();
    return failed;
  }
  if (is_ours()) return {};
  const bool closed = close(file_.release()) == 0 || errno == EINTR || !is_file;
  const Status done = closed ? Status() : refused("close");
  leave();
  return done;
}

Status TraceFile::replace() {
  if (!target_.empty()) {
    // Some disks tell here only that they are full.
    const char* const call = synchronize(file_.get()) ? "rename" : "fsync";
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
  if (is_ours() && file_.valid() && !target_.empty()) unlink(name_of_draft().c_str());
  leave();
}

void TraceFile::leave() {
  file_.reset(-1);
  maker_ = 0;
  if (!taken_) return;
  forget_signals_of_writes();
  pthread_sigmask(SIG_SETMASK, &*taken_, nullptr);
  taken_.reset();
}

void TraceFile::swap(TraceFile& other) noexcept {
  path_.swap(other.path_);
  std::swap(variable_, other.variable_);
  target_.swap(other.target_);
  std::swap(draft_, other.draft_);
  std::swap(file_, other.file_);
  std::swap(maker_, other.maker_);
  taken_.swap(other.taken_);
}

std::string TraceFile::head() { return "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"; }

std::string TraceFile::end(std::string_view process) {
  return fmt::format(R"({{"name": "process_name", "ph": "M", "pid": 1, "args": )"
                     R"({{"name": "{}"}}}}]}})"
                     "\n",
                     process);
}

}  // namespace tombolo::runtime
