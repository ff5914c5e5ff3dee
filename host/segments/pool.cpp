// SPDX-License-Identifier: Apache-2.0
#include "host/segments/pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "base/rounding.h"
#include "host/flush/flush.h"
#include "host/memory/page.h"
#include "host/segments/pool_directory.h"

namespace tombolo::host {
namespace {

constexpr std::array<char, 8> magic = {'t', 'o', 'm', 'b', 'o', 'l', 'o', '\0'};
constexpr std::uint32_t version = 2;

Status system_refused(const std::string& call, const std::string& path) {
  return Status::io(fmt::format("{} of {}: {}", call, path, std::strerror(errno)));
}

// Hosts that share a pool do not see each other's caches: this host's writes are put into memory,
// and its reads are taken from memory. On a host without such instructions the pool
// cannot be shared with another host, and its own processes need neither.
void to_memory(const void* at, std::size_t bytes) {
  if (flush::available().ok()) flush::publish(at, bytes);
}
void from_memory(const void* at, std::size_t bytes) {
  if (flush::available().ok()) flush::refresh(at, bytes);
}

// PO6
Status check_user(const ExtentRecord& record, const std::string& path) {
  if (record.user == geteuid() || geteuid() == 0) return {};
  return Status::io(fmt::format("the segment at offset {} of the pool {} belongs to user {}",
                                record.offset, path, record.user));
}

}  // namespace

// The locked and mapped table of a pool. A changed record is put into memory at once: the next
// holder of the lock may be another host.
class Pool::Table {
 public:
  explicit Table(const Pool& pool) : pool_(pool) {}
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() {
    if (memory_ == nullptr) return;
    munmap(memory_, pool_.table_bytes());
    flock(pool_.descriptor(), LOCK_UN);
  }

  Status lock() {
    while (flock(pool_.descriptor(), LOCK_EX) != 0)
      if (errno != EINTR) return system_refused("flock", pool_.path_);
    void* at = mmap(nullptr, pool_.table_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED,
                    pool_.descriptor(), 0);
    if (at == MAP_FAILED) {
      const Status refused = system_refused("mmap of the table", pool_.path_);
      flock(pool_.descriptor(), LOCK_UN);
      return refused;
    }
    memory_ = static_cast<std::byte*>(at);
    look_again();  // the last holder may have been another host
    return {};
  }
  // Only the records: with the alignment of a device the table has room for many more.
  void look_again() {
    from_memory(memory_, sizeof(PoolHeader) + pool_.capacity() * sizeof(ExtentRecord));
  }

  PoolHeader& header() { return *reinterpret_cast<PoolHeader*>(memory_); }
  ExtentRecord* records() { return reinterpret_cast<ExtentRecord*>(memory_ + sizeof(PoolHeader)); }
  ExtentRecord* begin() { return records(); }
  ExtentRecord* end() { return records() + header().capacity; }

  bool managed_here() {
    from_memory(&header(), sizeof(PoolHeader));  // another host may have become the manager
    return header().manager == boot_number();
  }
  bool in_use() {
    return std::any_of(begin(), end(), [](const ExtentRecord& r) { return r.bytes != 0; });
  }

  ExtentRecord* record_at(std::uint64_t offset, std::uint64_t nonce) {
    for (ExtentRecord& record : *this)
      if (record.bytes != 0 && record.offset == offset && record.nonce == nonce) return &record;
    return nullptr;
  }
  // PO1: nothing else of the record may reach memory before `bytes` does.
  static void release(ExtentRecord& record) {
    record.bytes = 0;
    to_memory(&record, sizeof record);
  }
  static void take(ExtentRecord& record, const Extent& extent, const Owner& owner) {
    record.offset = extent.offset;
    record.nonce = extent.nonce;
    record.boot = owner.host.boot;
    record.pid_namespace = static_cast<std::uint32_t>(owner.host.pid_namespace);  // as the kernel's
    record.user = geteuid();
    record.start_time = owner.process.started;
    record.pid = owner.process.pid;
    record.sealed = 0;
    to_memory(&record, sizeof record);  // PO1: before `bytes` says that the record is valid
    record.bytes = extent.bytes;
    to_memory(&record, sizeof record);
  }

  // Frees the extents of dead creators that are not mapped (PO4). Most records have the same few
  // creators, so that the last answer is kept.
  void reclaim() {
    std::optional<Owner> asked;
    bool dead = false;
    for (ExtentRecord& record : *this) {
      if (record.bytes == 0) continue;
      const Owner owner{{record.boot, record.pid_namespace}, {record.pid, record.start_time}};
      if (asked != owner) {
        asked = owner;
        dead = gone(owner);
      }
      if (dead && !extent_is_held(pool_.descriptor(), record.offset, record.bytes)) release(record);
    }
  }

  // The first gap of `bytes` bytes, or 0. `largest` becomes the largest gap seen.
  std::uint64_t first_fit(std::uint64_t bytes, std::uint64_t& largest) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> used;
    for (const ExtentRecord& record : *this)
      if (record.bytes != 0) used.emplace_back(record.offset, record.bytes);
    used.emplace_back(header().bytes, 0);
    std::sort(used.begin(), used.end());
    std::uint64_t at = header().data_start;
    largest = 0;
    for (const auto& [offset, length] : used) {
      const std::uint64_t gap = offset > at ? offset - at : 0;
      largest = std::max(largest, gap);
      if (gap >= bytes) return at;
      at = std::max(at, offset + length);
    }
    return 0;
  }

 private:
  const Pool& pool_;
  std::byte* memory_ = nullptr;
};

Status dax_shape(const std::string& sysfs, std::uint64_t& bytes, std::uint64_t& alignment) {
  constexpr std::uint64_t usual_alignment = 2u << 20;
  const auto number = [&](const char* name) {
    std::ifstream file(sysfs + "/" + name);
    std::string text;
    file >> text;
    // Older kernels write the alignment in decimal, some values in hexadecimal.
    return text.empty() ? 0 : std::strtoull(text.c_str(), nullptr, 0);
  };
  bytes = number("size");
  if (bytes == 0)
    return Status::bad_configuration(sysfs +
                                     "/size is missing: this is not a DAX device. A pool is a "
                                     "directory, a regular file or a /dev/dax device");
  alignment = 0;
  for (const char* name : {"align", "dax_region/align", "../dax_region/align"})
    if (alignment == 0) alignment = number(name);
  if (alignment == 0) alignment = usual_alignment;
  return {};
}

std::uint32_t Pool::capacity() const {
  // One record for each 64 KiB, and enough for a program with some thousand windows.
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(bytes_ >> 16, 63, 8191));
}

std::uint64_t Pool::table_bytes() const {
  return round_up(sizeof(PoolHeader) + capacity() * sizeof(ExtentRecord), alignment_);
}

Status Pool::open(const std::string& path, Pool& out) {
  Pool pool;
  pool.path_ = path;
  pool.file_.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!pool.file_.valid()) return system_refused("open", path);
  struct stat shape = {};
  if (fstat(pool.descriptor(), &shape) != 0) return system_refused("fstat", path);
  if (S_ISCHR(shape.st_mode)) {
    pool.device_ = true;
    TOMBOLO_TRY(
        dax_shape(fmt::format("/sys/dev/char/{}:{}", major(shape.st_rdev), minor(shape.st_rdev)),
                  pool.bytes_, pool.alignment_));
  } else if (S_ISREG(shape.st_mode)) {
    pool.bytes_ = static_cast<std::uint64_t>(shape.st_size);
    pool.alignment_ = page_bytes();
    struct statfs system = {};
    if (fstatfs(pool.descriptor(), &system) == 0 && system.f_type == HUGETLBFS_MAGIC)
      pool.alignment_ = static_cast<std::uint64_t>(system.f_bsize);
  } else {
    return Status::bad_configuration(
        path + " cannot be a pool; a pool is a directory, a regular file or a /dev/dax device");
  }
  if (pool.bytes_ < pool.table_bytes() + pool.alignment_) return pool.too_small();
  if (!pool.device_)  // PO1 and no SIGBUS: the table's own blocks must exist before it is mapped
    TOMBOLO_TRY(reserve_blocks(pool.descriptor(), 0, pool.table_bytes(), path));
  {
    Table table(pool);
    TOMBOLO_TRY(table.lock());
    TOMBOLO_TRY(pool.format(table));
  }  // unlocked before the descriptor moves on
  out = std::move(pool);
  return {};
}

// Only zeros, as far as the head of a pool reaches or the file does.
bool Pool::head_is_zero() const {
  std::vector<char> head(std::min(bytes_, table_bytes()));
  const ssize_t read = pread(descriptor(), head.data(), head.size(), 0);
  return read == static_cast<ssize_t>(head.size()) &&
         std::all_of(head.begin(), head.end(), [](char c) { return c == 0; });
}

// No advice that would destroy the data of a file that was named by mistake.
Status Pool::not_a_pool() const {
  return Status::bad_configuration(
      fmt::format("{} holds other data than a pool's, and is left as it is. Name a DAX device, a "
                  "directory, or a "
                  "file made for it: truncate -s 1G NEW_FILE",
                  path_));
}

Status Pool::too_small() const {
  std::array<char, magic.size()> start{};
  const ssize_t read = pread(descriptor(), start.data(), start.size(), 0);
  const bool pool = read == static_cast<ssize_t>(start.size()) && start == magic;
  if (!pool && !head_is_zero()) return not_a_pool();
  return Status::bad_configuration(fmt::format(
      "the pool {} has {} bytes; it needs more than {} for its table alone. Enlarge it while "
      "it is unused: truncate -s 1G {}",
      path_, bytes_, table_bytes(), path_));
}

// Checks the header, or writes it into an empty pool (PO2). The table is locked.
Status Pool::format(Table& table) {
  PoolHeader& header = table.header();
  if (header.magic == magic) {
    if (header.version == version && header.bytes == bytes_ && header.alignment == alignment_ &&
        header.capacity == capacity() && header.data_start == table_bytes())
      return {};
    return Status::bad_configuration(fmt::format(
        "the pool {} was formatted with version {}, {} bytes, alignment {}; here it has version "
        "{}, {} bytes, alignment {}. If it is unused, empty its head: dd if=/dev/zero of={} "
        "bs=1M count=1 conv=notrunc",
        path_, header.version, header.bytes, header.alignment, version, bytes_, alignment_, path_));
  }
  const auto* bytes = reinterpret_cast<const char*>(&header);
  if (!std::all_of(bytes, bytes + table_bytes(), [](char c) { return c == 0; }))
    return not_a_pool();
  struct stat shape = {};
  if (fstat(descriptor(), &shape) == 0 && S_ISREG(shape.st_mode) && shape.st_uid == geteuid())
    if (fchmod(descriptor(), 0600) != 0 && errno != EPERM && errno != EROFS)
      return system_refused("fchmod", path_);
  header.version = version;
  header.capacity = capacity();
  header.bytes = bytes_;
  header.alignment = alignment_;
  header.data_start = table_bytes();
  to_memory(&header, sizeof header);  // before the magic says that the header is valid
  header.magic = magic;
  to_memory(&header, sizeof header);
  return {};
}

Status Pool::allocate(std::uint64_t bytes, Extent& out, ExtentHold* hold) {
  if (bytes > bytes_)
    return Status::no_memory(fmt::format(
        "the pool {} has {} bytes in all; {} are needed. Use a larger pool", path_, bytes_, bytes));
  Extent extent;
  extent.bytes = round_up(bytes, alignment_);
  if (getrandom(&extent.nonce, sizeof extent.nonce, 0) != sizeof extent.nonce)
    return system_refused("getrandom", path_);
  Table table(*this);
  TOMBOLO_TRY(table.lock());
  table.reclaim();
  TOMBOLO_TRY(manage(table));
  std::uint64_t largest = 0;
  extent.offset = table.first_fit(extent.bytes, largest);
  if (extent.offset == 0)
    return Status::no_memory(
        fmt::format("the pool {} has no {} bytes in one piece; the largest free piece has {} "
                    "bytes. Enlarge the pool. Pieces of another host or of an earlier boot are "
                    "never reclaimed: if the pool is unused, empty its head: dd if=/dev/zero of={} "
                    "bs=1M count=1 conv=notrunc",
                    path_, extent.bytes, largest, path_));
  ExtentRecord* const record =
      std::find_if(table.begin(), table.end(), [](const ExtentRecord& r) { return r.bytes == 0; });
  if (record == table.end())
    return Status::no_memory(fmt::format(
        "the pool {} holds {} segments, as many as its table has room for; a larger pool "
        "has a larger table (at most 8191)",
        path_, table.header().capacity));
  // First the record, then a look at who is the manager: a host that becomes one does the same in
  // the other order (PO5). Clearing the extent takes long, and no other host knows the extent yet.
  Table::take(*record, extent, this_process());
  Status status = table.managed_here() ? clear(extent) : managed_elsewhere();
  if (status.ok() && hold != nullptr) status = hold->take(path_, extent.offset, extent.bytes);
  if (!status.ok()) {
    Table::release(*record);
    return status;
  }
  out = extent;
  return {};
}

// Makes this host the manager, or refuses (PO5). The table is locked.
Status Pool::manage(Table& table) {
  constexpr auto settling_ms = std::chrono::milliseconds(50);
  if (table.managed_here()) return {};
  if (table.in_use()) return managed_elsewhere();
  table.header().manager = boot_number();
  to_memory(&table.header(), sizeof(PoolHeader));  // the other hosts look there
  // A host that does the same at this moment, and one that was the manager and takes a record now.
  std::this_thread::sleep_for(settling_ms);
  table.look_again();
  return table.managed_here() && !table.in_use() ? Status{} : managed_elsewhere();
}

Status Pool::managed_elsewhere() const {
  return Status::bad_configuration(fmt::format(
      "another host, or this one before its last boot, hands out the pool {}. A window over "
      "several "
      "hosts needs a process on the one that does; windows of one host a pool of their own. If "
      "the pool is unused, empty its head: dd if=/dev/zero of={} bs=1M count=1 conv=notrunc",
      path_, path_));
}

// Makes the extent zero, with its blocks reserved.
Status Pool::clear(const Extent& extent) {
  if (!device_) {
    const auto offset = static_cast<off_t>(extent.offset);
    const auto length = static_cast<off_t>(extent.bytes);
    const bool punched =
        fallocate(descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length) == 0;
    TOMBOLO_TRY(reserve_blocks(descriptor(), extent.offset, extent.bytes, path_));
    if (punched) return {};
  }
  void* at = mmap(nullptr, extent.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor(),
                  static_cast<off_t>(extent.offset));
  if (at == MAP_FAILED) return system_refused("mmap", path_);
  std::memset(at, 0, extent.bytes);
  to_memory(at, extent.bytes);  // other hosts read these zeros from memory
  munmap(at, extent.bytes);
  return {};
}

Status Pool::free(const Extent& extent) {
  Table table(*this);
  TOMBOLO_TRY(table.lock());
  // A missing record was reclaimed by a process that saw the creator dead: nothing to do.
  ExtentRecord* const record = table.record_at(extent.offset, extent.nonce);
  if (record == nullptr) return {};
  TOMBOLO_TRY(check_user(*record, path_));
  Table::release(*record);
  return {};
}

Status Pool::find(std::uint64_t offset, std::uint64_t nonce, Extent& out, ExtentHold* hold) {
  Table table(*this);
  TOMBOLO_TRY(table.lock());
  const ExtentRecord* record = table.record_at(offset, nonce);
  if (record == nullptr || record->sealed != 0)
    return Status::io(fmt::format(
        "the segment at offset {} of the pool {} is gone or sealed: its creator freed it, or died",
        offset, path_));
  TOMBOLO_TRY(check_user(*record, path_));
  if (hold != nullptr) TOMBOLO_TRY(hold->take(path_, record->offset, record->bytes));
  out = {record->offset, record->bytes, record->nonce};
  return {};
}

Status Pool::seal(const Extent& extent) {
  Table table(*this);
  TOMBOLO_TRY(table.lock());
  ExtentRecord* const record = table.record_at(extent.offset, extent.nonce);
  if (record == nullptr) return {};
  TOMBOLO_TRY(check_user(*record, path_));
  record->sealed = 1;
  to_memory(record, sizeof *record);
  return {};
}

}  // namespace tombolo::host
