// SPDX-License-Identifier: Apache-2.0
#include "host/memory/mapping_query.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "host/descriptor.h"

namespace tombolo::host {
namespace {

// The kernel's struct procmap_query, which headers older than the kernel lack.
struct Query {
  std::uint64_t size = sizeof(Query);
  std::uint64_t flags = 0;
  std::uint64_t address = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t access = 0;
  std::uint64_t page_bytes = 0;
  std::uint64_t offset = 0;
  std::uint64_t inode = 0;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint32_t name_bytes = 0;
  std::uint32_t build_id_bytes = 0;
  std::uint64_t name = 0;
  std::uint64_t build_id = 0;
};
static_assert(sizeof(Query) == 104);
constexpr unsigned long query_request = _IOWR('f', 17, Query);
constexpr std::uint64_t readable = 0x01;
constexpr std::uint64_t writable = 0x02;
constexpr std::uint64_t executable = 0x04;
constexpr std::uint64_t shared = 0x08;
constexpr std::uint64_t or_next = 0x10;
constexpr std::uint64_t of_file = 0x20;

Mapping mapping_of(const Query& query, const char* name) {
  const auto letter = [&](std::uint64_t flag, char yes) {
    return (query.access & flag) != 0 ? yes : '-';
  };
  Mapping mapping;
  mapping.range = {query.start, query.end};
  mapping.access = {letter(readable, 'r'), letter(writable, 'w'), letter(executable, 'x'),
                    (query.access & shared) != 0 ? 's' : 'p'};
  mapping.offset = query.offset;
  mapping.device = makedev(query.device_major, query.device_minor);
  mapping.inode = query.inode;
  mapping.name = name;
  return mapping;
}

// An open /proc/self/maps. It tells of the process that opened it, also in a child of that one.
struct Maps {
  int file = -1;
  pid_t process = 0;
  dev_t device = 0;
  ino_t inode = 0;
  const Maps* replaced = nullptr;

  static Maps opened() {
    Maps maps;
    maps.file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    maps.process = getpid();
    struct stat shape {};
    if (maps.file >= 0 && fstat(maps.file, &shape) == 0) {
      maps.device = shape.st_dev;
      maps.inode = shape.st_ino;
    }
    return maps;
  }
  // The program may have closed it, and have another file at that number.
  bool is_there() const {
    struct stat shape {};
    return inode != 0 && fstat(file, &shape) == 0 && shape.st_dev == device &&
           shape.st_ino == inode;
  }
};

// The one that stays open: to open it takes longer than a query. Replaced ones stay in memory,
// since another thread may be reading them; there is one for each time that the program has closed
// the file.
constinit std::atomic<const Maps*> kept_maps{nullptr};

// An open file; it is closed at the end if it could not be kept.
class MapsInUse {
 public:
  MapsInUse() {
    const Maps* kept = kept_maps.load(std::memory_order_acquire);
    if (kept != nullptr && kept->process == getpid() && kept->is_there()) {
      file_ = kept->file;
      return;
    }
    const Maps maps = Maps::opened();
    file_ = maps.file;
    if (maps.inode == 0) {
      own_.reset(file_);
      return;
    }
    // A child's copy of its parent's is of no use.
    if (kept != nullptr && kept->process != maps.process && kept->is_there()) close(kept->file);
    auto* const mine = new Maps(maps);
    mine->replaced = kept;
    if (kept_maps.compare_exchange_strong(kept, mine, std::memory_order_acq_rel)) return;
    delete mine;  // another thread's is kept
    own_.reset(file_);
  }
  int get() const { return file_; }

 private:
  int file_ = -1;
  Descriptor own_;
};

// False if this kernel has no such call.
bool query_mappings(const AddressRange& within, std::uint64_t kind, std::vector<Mapping>& out,
                    Status& status) {
  const MapsInUse file;
  if (file.get() < 0) {
    status = Status::io(fmt::format("open of /proc/self/maps: {}", std::strerror(errno)));
    return true;
  }
  out.clear();
  std::array<char, 4096> name;
  for (std::uint64_t at = within.low; at < within.high;) {
    Query query;
    query.flags = kind | or_next;
    query.address = at;
    query.name = reinterpret_cast<std::uint64_t>(name.data());
    query.name_bytes = name.size();
    if (ioctl(file.get(), query_request, &query) != 0) {
      if (errno == EINTR) continue;
      if (errno == ENOENT) break;  // no further mapping
      if (errno == ENOTTY || errno == EINVAL) return false;
      status = Status::io(fmt::format("query of /proc/self/maps: {}", std::strerror(errno)));
      return true;
    }
    if (query.start >= within.high) break;
    out.push_back(mapping_of(query, query.name_bytes == 0 ? "" : name.data()));
    at = query.end;
  }
  return true;
}

}  // namespace

std::vector<Mapping> overlapping(std::vector<Mapping> all, const AddressRange& within) {
  std::erase_if(all, [&](const Mapping& mapping) { return !mapping.range.overlaps(within); });
  return all;
}

std::vector<Mapping> shared_files(std::vector<Mapping> all) {
  std::erase_if(
      all, [](const Mapping& mapping) { return mapping.access[3] != 's' || mapping.inode == 0; });
  return all;
}

Status read_mappings(const AddressRange& within, std::vector<Mapping>& out) {
  Status status;
  if (query_mappings(within, 0, out, status)) return status;
  std::vector<Mapping> all;
  TOMBOLO_TRY(read_mappings(all));
  out = overlapping(std::move(all), within);
  return {};
}

Status read_shared_files(std::vector<Mapping>& out) {
  Status status;
  if (query_mappings({0, ~std::uint64_t{0}}, shared | of_file, out, status)) return status;
  std::vector<Mapping> all;
  TOMBOLO_TRY(read_mappings(all));
  out = shared_files(std::move(all));
  return {};
}

}  // namespace tombolo::host
