// SPDX-License-Identifier: Apache-2.0
#include "host/segments/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/option_table.h"
#include "base/rounding.h"
#include "host/descriptor.h"
#include "host/memory/memory_grants.h"
#include "host/memory/memory_room.h"
#include "host/memory/page.h"
#include "host/segments/lost_memory.h"
#include "host/segments/pool.h"
#include "host/segments/pool_directory.h"

namespace tombolo::host {
namespace {

constexpr const char* shared_memory = "/dev/shm";

Status refused(const std::string& call) {
  return Status::io(fmt::format("{}: {}", call, std::strerror(errno)));
}

std::string descriptor_path(std::int32_t pid, int descriptor) {
  return fmt::format("/proc/{}/fd/{}", pid, descriptor);
}

Status check_room(std::uint64_t bytes) {
  static MemoryGrants grants;
  const auto now = MemoryGrants::Clock::now();
  if (grants.take(bytes, now)) return {};
  const MemoryRoom room = memory_room();
  if (bytes <= room.bytes) {
    grants.looked(room.bytes, bytes, now);
    return {};
  }
  return Status::no_memory(fmt::format("a segment needs {} bytes of memory; {} bytes are left ({})",
                                       bytes, room.bytes, room.limit));
}

// Whether peers can open this descriptor by its name in /proc.
bool reachable(int descriptor) {
  const Descriptor again(open(descriptor_path(getpid(), descriptor).c_str(), O_RDWR | O_CLOEXEC));
  return again.valid();
}

// A file of the kernel's own, without a name anywhere. Pages come with the first touch, close to
// the process that touches them, unless the kernel grants only reserved memory.
Status create_memfd(std::uint64_t bytes, const std::string& purpose, Descriptor& out) {
  const std::string name = "tombolo:" + purpose.substr(0, 200);
  Descriptor file(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return refused("memfd_create");
  if (fchmod(file.get(), 0600) != 0) return refused("fchmod of a memfd");  // SG3
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur)  // else SIGXFSZ ends us
    return Status::no_memory(fmt::format(
        "a segment needs {} bytes; files may have {} here (ulimit -f)", bytes, limit.rlim_cur));
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    return refused(fmt::format("ftruncate of a memfd to {} bytes", bytes));
  if (strict_overcommit()) TOMBOLO_TRY(reserve_blocks(file.get(), 0, bytes, "a memfd"));
  // SG2: no peer can make the file shorter below our mapping.
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return refused("sealing a memfd");
  if (!reachable(file.get())) return Status::unsupported("/proc is not usable");
  out = std::move(file);
  return {};
}

// A file of /dev/shm without a name. Its size is limited by the mount: its blocks are reserved.
Status create_nameless(std::uint64_t bytes, Descriptor& out) {
  Descriptor file(open(shared_memory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid()) return refused(fmt::format("O_TMPFILE in {}", shared_memory));
  TOMBOLO_TRY(reserve_blocks(file.get(), 0, bytes, shared_memory));
  if (!reachable(file.get())) return Status::unsupported("/proc is not usable");
  out = std::move(file);
  return {};
}

// memfd where it works, else a nameless file, else a file with a random name until seal().
// TOMBOLO_SEGMENT allows only one of them.
Status create_file(std::uint64_t bytes, const std::string& purpose, Segment::Found found,
                   Descriptor& out, std::string& path) {
  const std::string only = text_of(options::segment);
  TOMBOLO_TRY(check(options::segment, only));
  Status tried = Status::unsupported("TOMBOLO_SEGMENT allows no file with a name");
  for (const std::string_view way : options::segment.choices) {
    if (only != "" && only != way) continue;
    if (found == Segment::Found::by_path && way != "named") continue;
    if (way == "memfd") {
      tried = create_memfd(bytes, purpose, out);
    } else if (way == "nameless") {
      tried = create_nameless(bytes, out);
    } else {
      tried = create_file_in(shared_memory, bytes, out, path);
    }
    // Another way would not find more memory.
    if (tried.ok() || tried.code() == Code::no_memory) return tried;
  }
  return Status::io(
      fmt::format("no shared memory is available: {}; allow memfd_create and /proc, or "
                  "mount a tmpfs at {}",
                  tried.message(), shared_memory));
}

Status mapping_refused(std::uint64_t bytes) {
  const auto what = fmt::format("mmap of {} bytes", bytes);
  if (errno == ENOMEM)
    return Status::no_memory(what + ": no address space left; see ulimit -v and vm.max_map_count");
  return refused(what);
}

// Room for `bytes` bytes at a multiple of `alignment`, to be mapped over.
Status reserve_aligned(std::uint64_t bytes, std::uint64_t alignment, std::byte*& out) {
  const std::uint64_t all = bytes + alignment;
  void* const start =
      mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return mapping_refused(all);
  auto* const low = static_cast<std::byte*>(start);
  const std::uint64_t before =
      (alignment - reinterpret_cast<std::uintptr_t>(low) % alignment) % alignment;
  if (before > 0) munmap(low, before);
  munmap(low + before + bytes, alignment - before);
  out = low + before;
  return {};
}

Status map(int descriptor, std::uint64_t offset, std::uint64_t bytes, std::uint64_t alignment,
           std::byte*& out) {
  std::byte* wanted = nullptr;
  if (alignment > page_bytes()) TOMBOLO_TRY(reserve_aligned(bytes, alignment, wanted));
  void* const at =
      mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (wanted != nullptr ? MAP_FIXED : 0),
           descriptor, static_cast<off_t>(offset));
  if (at == MAP_FAILED) {
    const Status failed = mapping_refused(bytes);
    if (wanted != nullptr) munmap(wanted, bytes);
    return failed;
  }
  out = static_cast<std::byte*>(at);
  return {};
}

Status keep_path(const std::string& path, SegmentName& name) {
  if (path.size() >= sizeof name.path)
    return Status::bad_configuration(
        fmt::format("the pool's path {} is longer than {} characters", path, sizeof name.path - 1));
  std::memcpy(name.path, path.c_str(), path.size() + 1);
  return {};
}

std::uint64_t inode_of(int descriptor) {
  struct stat shape = {};
  return fstat(descriptor, &shape) == 0 ? shape.st_ino : 0;
}

Status not_opened(const SegmentName& name, const std::string& path, bool anonymous, int error) {
  if (anonymous && kill(name.pid, 0) != 0 && errno == ESRCH)
    return Status::process_failed(
        -1, fmt::format("process {}, which created the segment, has ended", name.pid));
  const auto what = fmt::format(
      "open of {}: {}; a segment is open to processes of its creator's user on its host, until "
      "it is sealed",
      path, std::strerror(error));
  // The creator is there: namespaces, PR_SET_DUMPABLE or another /dev/shm are in the way.
  const bool kept_out = error == EACCES || error == EPERM || error == ENOENT;
  return kept_out ? Status::unsupported(what) : Status::io(what);
}

// Another file may have come to the name.
Status is_meant(const SegmentName& name, const std::string& path, int descriptor) {
  struct stat shape = {};
  if (fstat(descriptor, &shape) != 0) return refused("fstat of " + path);
  const auto size = static_cast<std::uint64_t>(shape.st_size);
  if (shape.st_ino != name.inode || !S_ISREG(shape.st_mode) || size < name.bytes)
    return Status::io(fmt::format(
        "{} is not the segment that was meant (inode {} of {} bytes, not inode {} of {} bytes)",
        path, shape.st_ino, size, name.inode, name.bytes));
  if (shape.st_uid != geteuid() && geteuid() != 0)
    return Status::io(fmt::format("{} belongs to user {}", path, shape.st_uid));
  return {};
}

// Opens a peer's anonymous or named file and makes sure that it is the one that was meant.
Status open_file(const SegmentName& name, Descriptor& out) {
  const bool anonymous = name.path[0] == '\0';
  const std::string path =
      anonymous ? descriptor_path(name.pid, name.descriptor) : std::string(name.path);
  Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC | (anonymous ? 0 : O_NOFOLLOW)));
  if (!file.valid()) return not_opened(name, path, anonymous, errno);
  TOMBOLO_TRY(is_meant(name, path, file.get()));
  out = std::move(file);
  return {};
}

}  // namespace

Segment::Segment(Segment&& other) noexcept { *this = std::move(other); }

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(data_, other.data_);
  std::swap(mapped_, other.mapped_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(creator_, other.creator_);
  std::swap(sealed_, other.sealed_);
  std::swap(hold_, other.hold_);
  return *this;
}

Segment::~Segment() {
  if (data_ == nullptr) return;
  if (name_.path[0] != '\0') is_unmapped(data_);
  munmap(data_, mapped_);
  // A forked child has the mapping and the descriptor, but is not the creator.
  const bool creator = creator_ && name_.pid == getpid();
  if (name_.offset != 0) {
    Pool pool;
    // An error leaves the extent to be reclaimed after this process's end.
    if (creator && Pool::open(name_.path, pool).ok())
      (void)pool.free({name_.offset, mapped_, name_.inode}).ok();
    return;
  }
  if (creator) {
    seal();
    release_promise(promised_bytes());
  } else if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

std::uint64_t Segment::promised_bytes() const { return name_.path[0] == '\0' ? mapped_ : 0; }

Status Segment::create_anonymous(std::uint64_t bytes, const std::string& purpose, Segment& out,
                                 std::uint64_t alignment, Found found) {
  TOMBOLO_CHECK(bytes > 0, "segment '{}' of 0 bytes", purpose);
  Segment segment;
  segment.mapped_ = round_up(bytes, page_bytes());
  if (segment.mapped_ < bytes)
    return Status::no_memory(fmt::format("{} bytes do not exist", bytes));
  TOMBOLO_TRY(check_room(segment.mapped_));
  Descriptor file;
  std::string path;
  TOMBOLO_TRY(create_file(segment.mapped_, purpose, found, file, path));
  Status mapped = keep_path(path, segment.name_);
  segment.name_.alignment = alignment;
  if (mapped.ok()) mapped = map(file.get(), 0, segment.mapped_, alignment, segment.data_);
  if (!mapped.ok()) {
    if (!path.empty()) unlink(path.c_str());
    return mapped;
  }
  segment.name_.bytes = bytes;
  segment.name_.pid = getpid();
  segment.name_.inode = inode_of(file.get());
  segment.name_.descriptor = file.get();
  segment.descriptor_ = file.release();
  segment.creator_ = true;
  promise_memory(segment.promised_bytes());
  out = std::move(segment);
  return {};
}

Status Segment::create_in_pool(const std::string& pool, std::uint64_t bytes, Segment& out,
                               std::uint64_t alignment) {
  TOMBOLO_CHECK(bytes > 0, "segment of 0 bytes in pool {}", pool);
  struct stat shape = {};
  if (stat(pool.c_str(), &shape) != 0)
    return Status::bad_configuration(fmt::format(
        "the pool {}: {}. A pool is a directory, a /dev/dax device or a file (truncate -s 1G {})",
        pool, std::strerror(errno), pool));
  if (!S_ISDIR(shape.st_mode)) return create_extent(pool, bytes, alignment, out);
  Segment segment;
  segment.mapped_ = round_up(bytes, page_bytes());
  Descriptor file;
  std::string path;
  TOMBOLO_TRY(create_file_in(pool, segment.mapped_, file, path));
  Status mapped = keep_path(path, segment.name_);
  segment.name_.alignment = alignment;
  if (mapped.ok()) mapped = map(file.get(), 0, segment.mapped_, alignment, segment.data_);
  if (!mapped.ok()) {
    unlink(path.c_str());
    return mapped;
  }
  segment.name_.bytes = bytes;
  segment.name_.pid = getpid();
  segment.name_.inode = inode_of(file.get());
  segment.creator_ = true;
  out = std::move(segment);
  return {};
}

// Takes an extent of a pool file or device.
Status Segment::create_extent(const std::string& path, std::uint64_t bytes, std::uint64_t alignment,
                              Segment& out) {
  Segment segment;
  TOMBOLO_TRY(keep_path(path, segment.name_));
  Pool pool;
  TOMBOLO_TRY(Pool::open(path, pool));
  Extent extent;
  TOMBOLO_TRY(pool.allocate(bytes, extent, &segment.hold_));
  if (Status mapped = map(pool.descriptor(), extent.offset, extent.bytes, alignment, segment.data_);
      !mapped.ok()) {
    (void)pool.free(extent).ok();
    return mapped;
  }
  segment.mapped_ = extent.bytes;
  segment.name_.bytes = bytes;
  segment.name_.offset = extent.offset;
  segment.name_.alignment = alignment;
  segment.name_.pid = getpid();
  segment.name_.inode = extent.nonce;
  segment.creator_ = true;
  tell_if_lost(segment.data_, extent.bytes, path);
  out = std::move(segment);
  return {};
}

Status Segment::attach(const SegmentName& name, Segment& out) {
  TOMBOLO_CHECK(name.bytes > 0, "attach to a segment without a name");
  Segment segment;
  segment.name_ = name;
  if (name.offset != 0) {
    Pool pool;
    TOMBOLO_TRY(Pool::open(name.path, pool));
    Extent extent;
    TOMBOLO_TRY(pool.find(name.offset, name.inode, extent, &segment.hold_));
    if (extent.bytes < name.bytes)
      return Status::io(fmt::format("the segment at offset {} of the pool {} has {} bytes, not {}",
                                    name.offset, name.path, extent.bytes, name.bytes));
    TOMBOLO_TRY(map(pool.descriptor(), extent.offset, extent.bytes, name.alignment, segment.data_));
    segment.mapped_ = extent.bytes;
    tell_if_lost(segment.data_, extent.bytes, name.path);
  } else {
    Descriptor file;
    TOMBOLO_TRY(open_file(name, file));
    segment.mapped_ = round_up(name.bytes, page_bytes());
    TOMBOLO_TRY(map(file.get(), 0, segment.mapped_, name.alignment, segment.data_));
  }
  out = std::move(segment);
  return {};
}

void Segment::seal() {
  if (!creator_ || name_.pid != getpid()) return;
  if (descriptor_ >= 0) {
    close(descriptor_);  // and with it the name under /proc
    descriptor_ = -1;
  }
  if (name_.offset != 0) {
    Pool pool;
    if (Pool::open(name_.path, pool).ok())
      (void)pool.seal({name_.offset, mapped_, name_.inode}).ok();
  } else if (name_.path[0] != '\0' && !sealed_) {
    unlink(name_.path);
  }
  sealed_ = true;
}

}  // namespace tombolo::host
