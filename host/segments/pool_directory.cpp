// SPDX-License-Identifier: Apache-2.0
#include "host/segments/pool_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>

#include "host/memory/memory_room.h"
#include "host/processes/host_identity.h"

namespace tombolo::host {
namespace {

constexpr const char* prefix = "tombolo-";

// tombolo-BOOT-NAMESPACE-PID-START-RANDOM, numbers in hexadecimal.
std::string name_for(const Owner& owner, std::uint64_t random) {
  return fmt::format("{}{:x}-{:x}-{:x}-{:x}-{:x}", prefix, boot_number(owner.host),
                     owner.host.pid_namespace, owner.process.pid, owner.process.started, random);
}

// Whether `name` is one of ours and its creator is certainly dead.
bool left_over(const char* name, const Owner& self) {
  std::uint64_t boot = 0;
  std::uint64_t random = 0;
  Owner owner = self;
  std::uint32_t pid = 0;
  int length = 0;
  const int fields =
      std::sscanf(name, "tombolo-%" SCNx64 "-%" SCNx64 "-%" SCNx32 "-%" SCNx64 "-%" SCNx64 "%n",
                  &boot, &owner.host.pid_namespace, &pid, &owner.process.started, &random, &length);
  if (fields != 5 || name[length] != '\0' || boot != boot_number(self.host)) return false;
  owner.process.pid = static_cast<std::int32_t>(pid);
  return gone(owner);
}

std::uint64_t free_bytes(int descriptor) {
  struct statvfs room = {};
  return fstatvfs(descriptor, &room) == 0 ? std::uint64_t{room.f_bavail} * room.f_frsize : 0;
}

Status no_room(const std::string& path, std::uint64_t bytes, int descriptor) {
  return Status::no_memory(
      fmt::format("{} has no room for {} bytes ({} bytes are free); enlarge it (for a tmpfs: mount "
                  "-o remount,size=...), remove files there, or use another pool",
                  path, bytes, free_bytes(descriptor)));
}

// A tmpfs may promise more than the host has; reserving would then get a process killed.
Status check_tmpfs(int descriptor, std::uint64_t bytes, const std::string& path) {
  struct statfs system = {};
  if (fstatfs(descriptor, &system) != 0 || system.f_type != TMPFS_MAGIC) return {};
  const MemoryRoom room = memory_room();
  if (bytes <= room.bytes) return {};
  return Status::no_memory(
      fmt::format("{} lies in memory, and {} bytes are needed but {} are left ({})", path, bytes,
                  room.bytes, room.limit));
}

// Not every file system reserves (a device's memory always exists). Else only the free
// room of the moment is known, if the file still has to grow into it.
Status grow_unreserved(int descriptor, std::uint64_t end, std::uint64_t bytes,
                       const std::string& path) {
  struct stat shape = {};
  if (fstat(descriptor, &shape) != 0)
    return Status::io(fmt::format("fstat of {}: {}", path, std::strerror(errno)));
  if (static_cast<std::uint64_t>(shape.st_size) >= end) return {};
  if (bytes > free_bytes(descriptor)) return no_room(path, bytes, descriptor);
  if (ftruncate(descriptor, static_cast<off_t>(end)) != 0)
    return Status::io(
        fmt::format("ftruncate of {} to {} bytes: {}", path, end, std::strerror(errno)));
  return {};
}

}  // namespace

Status reserve_blocks(int descriptor, std::uint64_t offset, std::uint64_t bytes,
                      const std::string& path) {
  TOMBOLO_TRY(check_tmpfs(descriptor, bytes, path));
  int failed = 0;
  do {
    failed = fallocate(descriptor, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0
                 ? errno
                 : 0;
  } while (failed == EINTR);
  switch (failed) {
    case 0:
      return {};
    case ENOSPC:
    case EFBIG:
    case EDQUOT:
    case ENOMEM:
      return no_room(path, bytes, descriptor);
    case EOPNOTSUPP:
    case ENODEV:
    case EINVAL:
    case ENOSYS:
      return grow_unreserved(descriptor, offset + bytes, bytes, path);
    default:
      return Status::io(
          fmt::format("fallocate of {} bytes in {}: {}", bytes, path, std::strerror(failed)));
  }
}

Status create_file_in(const std::string& directory, std::uint64_t bytes, Descriptor& out,
                      std::string& path) {
  remove_leftovers(directory);
  const Owner self = this_process();
  Descriptor file;
  for (int attempt = 0; attempt < 8 && !file.valid(); ++attempt) {
    std::uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
      return Status::io(fmt::format("getrandom: {}", std::strerror(errno)));
    path = directory + "/" + name_for(self, random);
    file.reset(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.valid() && errno != EEXIST) break;
  }
  if (!file.valid()) {
    const int error = errno;
    const auto what =
        fmt::format("no file for a segment in {}: {}", directory, std::strerror(error));
    if (error == ENOSPC || error == EDQUOT)
      return Status::no_memory(fmt::format("{}; {} bytes are needed", what, bytes));
    return Status::io(what + "; check that this user may write there");
  }
  if (Status reserved = reserve_blocks(file.get(), 0, bytes, directory); !reserved.ok()) {
    unlink(path.c_str());
    return reserved;
  }
  out = std::move(file);
  return {};
}

int remove_leftovers(const std::string& directory) {
  DIR* folder = opendir(directory.c_str());
  if (folder == nullptr) return 0;
  const Owner self = this_process();
  int removed = 0;
  while (const dirent* entry = readdir(folder)) {
    if (std::strncmp(entry->d_name, prefix, std::strlen(prefix)) != 0) continue;
    struct stat shape = {};
    if (fstatat(dirfd(folder), entry->d_name, &shape, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(shape.st_mode) || shape.st_uid != geteuid()) continue;
    if (left_over(entry->d_name, self) && unlinkat(dirfd(folder), entry->d_name, 0) == 0) ++removed;
  }
  closedir(folder);
  return removed;
}

}  // namespace tombolo::host
