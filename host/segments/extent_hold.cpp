// SPDX-License-Identifier: Apache-2.0
#include "host/segments/extent_hold.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "host/descriptor.h"

namespace tombolo::host {
namespace {

struct flock range(short type, std::uint64_t offset, std::uint64_t bytes) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(offset);
  lock.l_len = static_cast<off_t>(bytes);
  return lock;
}

std::mutex& files_mutex() {
  static std::mutex& the_mutex = *new std::mutex;
  return the_mutex;
}

}  // namespace

// A pool, opened for its locks. Under files_mutex().
class ExtentHold::PoolFile {
 public:
  // One for each pool, while it is in use.
  static std::shared_ptr<PoolFile> of(const std::string& path) {
    using Key = std::pair<dev_t, ino_t>;
    static auto& all = *new std::map<Key, std::weak_ptr<PoolFile>>;
    Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
    struct stat shape {};
    if (!file.valid() || fstat(file.get(), &shape) != 0) return nullptr;
    std::weak_ptr<PoolFile>& known = all[{shape.st_dev, shape.st_ino}];
    std::shared_ptr<PoolFile> found = known.lock();
    if (found == nullptr || found->process_ != getpid()) {
      found = std::make_shared<PoolFile>(std::move(file));
      known = found;
    }
    return found;
  }
  explicit PoolFile(Descriptor file) : file_(std::move(file)) {}

  bool hold(std::uint64_t offset, std::uint64_t bytes) {
    struct flock lock = range(F_RDLCK, offset, bytes);
    if (fcntl(file_.get(), F_OFD_SETLK, &lock) != 0) return false;
    ++times_[offset];
    return true;
  }
  void give_back(std::uint64_t offset, std::uint64_t bytes) {
    if (process_ != getpid() || --times_[offset] > 0) return;  // EH1, EH2
    times_.erase(offset);
    struct flock lock = range(F_UNLCK, offset, bytes);
    (void)fcntl(file_.get(), F_OFD_SETLK, &lock);
  }

 private:
  Descriptor file_;
  pid_t process_ = getpid();
  std::map<std::uint64_t, int> times_;  // by offset: how often it is held
};

ExtentHold& ExtentHold::operator=(ExtentHold&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(offset_, other.offset_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

ExtentHold::~ExtentHold() {
  if (file_ == nullptr) return;
  const std::lock_guard lock(files_mutex());
  file_->give_back(offset_, bytes_);
  file_ = nullptr;
}

Status ExtentHold::take(const std::string& path, std::uint64_t offset, std::uint64_t bytes) {
  const std::lock_guard lock(files_mutex());
  std::shared_ptr<PoolFile> file = PoolFile::of(path);
  if (file == nullptr || !file->hold(offset, bytes))
    return Status::io(
        fmt::format("a lock on {} bytes of the pool {}: {}", bytes, path, std::strerror(errno)));
  file_ = std::move(file);
  offset_ = offset;
  bytes_ = bytes;
  return {};
}

bool extent_is_held(int pool, std::uint64_t offset, std::uint64_t bytes) {
  struct flock lock = range(F_WRLCK, offset, bytes);
  return fcntl(pool, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace tombolo::host
