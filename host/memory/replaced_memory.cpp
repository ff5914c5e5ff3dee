// SPDX-License-Identifier: Apache-2.0
#include "host/memory/replaced_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "host/memory/memory_room.h"
#include "host/memory/page.h"

namespace tombolo::host {
namespace {

constexpr std::uint64_t mebibyte = 1 << 20;
// Bytes that exist twice while they are moved.
constexpr std::uint64_t chunk_bytes = 16 * mebibyte;
constexpr std::uint64_t huge_page = 2 * mebibyte;
constexpr std::uint64_t few_bytes = 64 * mebibyte;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

bool is_zero(const void* page, std::uint64_t bytes) {
  const auto* words = static_cast<const std::uint64_t*>(page);
  return std::all_of(words, words + bytes / sizeof *words, [](std::uint64_t w) { return w == 0; });
}

Status refused(const char* call, const AddressRange& range) {
  return Status::io(
      fmt::format("{} of {:#x} to {:#x}: {}", call, range.low, range.high, std::strerror(errno)));
}

// Each such memory keeps a descriptor open; the program needs some as well.
bool may_keep_descriptor(int descriptor) {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
         static_cast<rlim_t>(descriptor) < limit.rlim_cur / 2;
}

// How often this process has forked, counted from the first call on.
std::uint64_t forks() {
  static std::atomic<std::uint64_t> count{0};
  static const int registered =
      pthread_atfork([] { count.fetch_add(1, std::memory_order_relaxed); }, nullptr, nullptr);
  // Where nothing is counted, every answer is another one.
  if (registered != 0) count.fetch_add(1, std::memory_order_relaxed);
  return count.load(std::memory_order_relaxed);
}

template <class Visit>
Status for_each_chunk(const AddressRange& range, Visit&& visit) {
  for (std::uint64_t at = range.low; at < range.high;) {
    // Chunks end at multiples of their size, so that huge pages are moved whole.
    const std::uint64_t end = std::min(range.high, (at / chunk_bytes + 1) * chunk_bytes);
    TOMBOLO_TRY(visit(AddressRange{at, end}));
    at = end;
  }
  return {};
}

// Private memory without contents whose address has the same place in a huge page as `like`, so
// that the kernel may use huge pages and move them whole.
class Scratch {
 public:
  Scratch(std::uint64_t bytes, std::uint64_t like) : bytes_(bytes) {
    void* const start = mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return;
    const std::uint64_t before = (like - reinterpret_cast<std::uint64_t>(start)) % huge_page;
    data_ = static_cast<std::byte*>(start) + before;
    if (before > 0) munmap(start, before);
    munmap(data_ + bytes, huge_page - before);
  }
  ~Scratch() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::byte* data() const { return data_; }
  // Puts the memory in the place of the pages at `to`. Afterwards it is no longer ours.
  bool move_to(std::uint64_t to) {
    // Past the C library: UCX, which MPIs use, puts a function of four arguments in the place of
    // mremap, and the fifth, the new address, is then anything.
    if (syscall(SYS_mremap, data_, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, to) !=
        static_cast<long>(to))
      return false;
    data_ = nullptr;
    return true;
  }

 private:
  std::uint64_t bytes_;
  std::byte* data_ = nullptr;
};

// The most bytes of pages never touched; see take().
std::uint64_t most_absent_bytes(std::uint64_t processes) {
  // Then untouched pages are reserved, that is: occupied.
  if (strict_overcommit()) return few_bytes;
  return memory_room().bytes / 8 / std::max<std::uint64_t>(processes, 1);
}

}  // namespace

AddressRange replaceable_part(const AddressRange& region) {
  const AddressRange pages = whole_pages(region, page_bytes());
  if (pages.empty()) return {};
  std::vector<Mapping> mappings;
  std::string status;
  if (!read_mappings(mappings).ok() || !read_proc("/proc/self/status", status).ok()) return {};
  if (memory_may_be_registered(mappings, status)) return {};
  const char here = 0;
  return longest_plain_run(mappings, pages, reinterpret_cast<std::uint64_t>(&here));
}

ReplacedMemory::ReplacedMemory(ReplacedMemory&& other) noexcept { *this = std::move(other); }

ReplacedMemory& ReplacedMemory::operator=(ReplacedMemory&& other) noexcept {
  std::swap(range_, other.range_);
  std::swap(segment_, other.segment_);
  std::swap(device_, other.device_);
  std::swap(forks_, other.forks_);
  std::swap(file_, other.file_);
  return *this;
}

Status ReplacedMemory::take(const AddressRange& pages, std::uint64_t processes,
                            ReplacedMemory& out) {
  TOMBOLO_CHECK(!pages.empty() && pages.low % page_bytes() == 0 && pages.high % page_bytes() == 0,
                "{:#x} to {:#x} are not whole pages", pages.low, pages.high);
  std::vector<Page> kinds;
  TOMBOLO_TRY(read_pages(pages, page_bytes(), kinds));
  const auto touched = std::count(kinds.begin(), kinds.end(), Page::present);
  const std::uint64_t absent = pages.bytes() - static_cast<std::uint64_t>(touched) * page_bytes();
  if (absent > few_bytes && absent > most_absent_bytes(processes))
    return Status::unsupported(
        fmt::format("{} of {} bytes were never written", absent, pages.bytes()));
  ReplacedMemory memory;
  TOMBOLO_TRY(Segment::create_anonymous(pages.bytes(), "tombolo-created", memory.segment_));
  memory.file_.reset(fcntl(memory.segment_.name().descriptor, F_DUPFD_CLOEXEC, 0));
  if (!memory.file_.valid() || !may_keep_descriptor(memory.file_.get()))
    return Status::unsupported("too many descriptors are open");
  struct stat shape = {};
  if (fstat(memory.file_.get(), &shape) != 0) return refused("fstat", pages);
  memory.device_ = shape.st_dev;
  memory.forks_ = forks();
  memory.range_ = {pages.low, pages.low};
  const Status moved = for_each_chunk(pages, [&](const AddressRange& part) -> Status {
    TOMBOLO_TRY(memory.move_in(part));
    memory.range_.high = part.high;
    return {};
  });
  if (!moved.ok()) return moved;  // and the moved pages are given back
  out = std::move(memory);
  return {};
}

// Copies the pages' contents and maps the copy in their place, by which the originals are freed.
Status ReplacedMemory::move_in(const AddressRange& part) {
  const std::uint64_t page = page_bytes();
  std::vector<Page> kinds;
  TOMBOLO_TRY(read_pages(part, page, kinds));
  const auto holds = [&](std::size_t i) {
    return kinds[i] == Page::present ||
           (kinds[i] == Page::read && !is_zero(pointer(part.low + i * page), page));
  };
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::size_t first = i;
    while (i < kinds.size() && holds(i)) ++i;
    // Cheaper than stores through a mapping, which take a page fault each.
    TOMBOLO_TRY(write_file({part.low + first * page, part.low + i * page}));
  }
  const auto offset = static_cast<off_t>(part.low - range_.low);
  if (mmap(pointer(part.low), part.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           file_.get(), offset) != MAP_FAILED)
    return {};
  const Status error = refused("mmap", part);
  // Some kernels unmap the old pages before they find that they cannot map the new ones.
  unsigned char residency = 0;
  if (mincore(pointer(part.low), page, &residency) != 0 && errno == ENOMEM)
    TOMBOLO_CHECK(move_out(part).ok(), "the kernel took memory away: {}", error.message());
  return error;
}

Status ReplacedMemory::write_file(AddressRange from) const {
  while (!from.empty()) {
    const ssize_t n = pwrite(file_.get(), pointer(from.low), from.bytes(),
                             static_cast<off_t>(from.low - range_.low));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return refused("write of a copy", from);
    from.low += static_cast<std::uint64_t>(n);
  }
  return {};
}

// Puts a private copy in the place of the pages, so that no thread ever finds them missing (RM4).
Status ReplacedMemory::move_out(const AddressRange& part) {
  const std::uint64_t page = page_bytes();
  Scratch scratch(part.bytes(), part.low);
  if (scratch.data() == nullptr) return refused("mmap of private memory instead", part);
  const std::byte* const from = alias(part.low);
  const std::uint64_t start = part.low - range_.low;
  const auto copy = [&](std::uint64_t low, std::uint64_t high, bool look) {
    for (std::uint64_t at = low; at < high; at += page)
      if (!look || !is_zero(from + at, page)) std::memcpy(scratch.data() + at, from + at, page);
  };
  if (file_is_ours()) {
    const auto end = static_cast<off_t>(start + part.bytes());
    auto low = lseek(file_.get(), static_cast<off_t>(start), SEEK_DATA);
    while (low >= 0 && low < end) {
      const auto high = std::min(end, lseek(file_.get(), low, SEEK_HOLE));
      if (high <= low) return refused("lseek", part);
      copy(static_cast<std::uint64_t>(low) - start, static_cast<std::uint64_t>(high) - start,
           false);
      low = lseek(file_.get(), high, SEEK_DATA);
    }
    if (low < 0 && errno != ENXIO) return refused("lseek", part);
  } else {
    copy(0, part.bytes(), true);
  }
  if (!scratch.move_to(part.low)) {
    const Status error = refused("mremap", part);
    TOMBOLO_CHECK(stays_mapped(part), "the kernel took memory away: {}", error.message());
    return error;
  }
  // These bytes are needed no more, unless a child that was forked meanwhile shares them.
  if (forks() == forks_) madvise(alias(part.low), part.bytes(), MADV_REMOVE);
  return {};
}

// Some kernels unmap the pages in the way before they find that they cannot move. The bytes are
// still in the file.
bool ReplacedMemory::stays_mapped(const AddressRange& part) const {
  std::array<unsigned char, chunk_bytes / 4096> residency;  // of pages of that size or larger
  if (mincore(pointer(part.low), part.bytes(), residency.data()) == 0 || errno != ENOMEM)
    return true;
  if (file_is_ours())
    return mmap(pointer(part.low), part.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                file_.get(), static_cast<off_t>(part.low - range_.low)) != MAP_FAILED;
  // Of shared memory, mremap from a length of 0 makes a second mapping.
  return syscall(SYS_mremap, alias(part.low), 0, part.bytes(), MREMAP_MAYMOVE | MREMAP_FIXED,
                 part.low) == static_cast<long>(part.low);
}

// A program may close all descriptors that it does not know.
bool ReplacedMemory::file_is_ours() const {
  struct stat shape = {};
  return file_.valid() && fstat(file_.get(), &shape) == 0 && shape.st_dev == device_ &&
         shape.st_ino == segment_.name().inode;
}

Status ReplacedMemory::give_back() {
  if (segment_.data() == nullptr) return {};
  const Status given = segment_.name().pid == getpid() ? give_back_mappings() : Status();
  if (!file_is_ours()) (void)file_.release();
  file_.reset(-1);
  segment_ = Segment();  // swaps: the old one ends here
  range_ = {};
  return given;
}

Status ReplacedMemory::give_back_mappings() {
  std::vector<Mapping> mappings;
  TOMBOLO_TRY(read_mappings(mappings));
  Status first_error;
  for (const Mapping& mapping : mappings) {
    // RM2: only where our file is still where we put it.
    const AddressRange part = common_part(mapping.range, range_);
    if (part.empty() || mapping.inode != segment_.name().inode || mapping.device != device_ ||
        mapping.offset != mapping.range.low - range_.low)
      continue;
    const Status moved =
        for_each_chunk(part, [&](const AddressRange& chunk) { return move_out(chunk); });
    if (first_error.ok()) first_error = moved;
  }
  return first_error;
}

}  // namespace tombolo::host
