// SPDX-License-Identifier: Apache-2.0
#include "host/images/memory_image.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "host/images/write_hold.h"
#include "host/memory/mapping_query.h"
#include "host/memory/page.h"
#include "host/memory/raw_calls.h"
#include "host/processes/no_signals.h"

namespace tombolo::host {
namespace {

constexpr std::uint64_t mebibyte = 1 << 20;
// Bytes that exist twice while they are moved.
constexpr std::uint64_t chunk_bytes = 16 * mebibyte;
constexpr std::uint64_t huge_page = 2 * mebibyte;
// Of the file: past every address, and a size that files may have.
constexpr std::uint64_t image_bytes = std::uint64_t{1} << 57;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

bool is_zero(const void* page, std::uint64_t bytes) {
  const auto* words = static_cast<const std::uint64_t*>(page);
  return std::all_of(words, words + bytes / sizeof *words, [](std::uint64_t w) { return w == 0; });
}

MemoryImage::Refusal refused(const char* call) { return {call, errno}; }

Status status_of(const MemoryImage::Refusal& refusal, const AddressRange& range) {
  if (refusal.call == nullptr) return {};
  return Status::io(fmt::format("{} of {:#x} to {:#x}: {}", refusal.call, range.low, range.high,
                                std::strerror(refusal.error)));
}

// A write past this limit ends the process.
bool files_may_have(std::uint64_t bytes) {
  rlimit limit = {};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= bytes;
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
    void* const start = raw::map(0, bytes + huge_page, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return;
    const std::uint64_t before = (like - reinterpret_cast<std::uint64_t>(start)) % huge_page;
    data_ = static_cast<std::byte*>(start) + before;
    if (before > 0) raw::unmap(start, before);
    raw::unmap(data_ + bytes, huge_page - before);
  }
  ~Scratch() {
    if (data_ != nullptr) raw::unmap(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::byte* data() const { return data_; }
  std::byte* release() { return std::exchange(data_, nullptr); }
  // Puts the memory in the place of the pages at `to`. Afterwards it is no longer ours.
  bool move_to(std::uint64_t to) {
    if (!raw::move(data_, bytes_, to)) return false;
    data_ = nullptr;
    return true;
  }

 private:
  std::uint64_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace

Status MemoryImage::open() {
  if (!files_may_have(image_bytes))
    return Status::unsupported("the size of files is limited (ulimit -f)");
  if (is_open()) return {};
  if (name_.descriptor >= 0) return Status::unsupported("the program closed the image's file");
  Descriptor file(static_cast<int>(syscall(SYS_memfd_create, "tombolo-image", MFD_CLOEXEC)));
  if (!file.valid())
    return Status::unsupported(fmt::format("memfd_create: {}", std::strerror(errno)));
  if (fchmod(file.get(), 0600) != 0)  // MI6
    return Status::unsupported(fmt::format("fchmod of a memfd: {}", std::strerror(errno)));
  struct stat shape = {};
  if (ftruncate(file.get(), image_bytes) != 0 || fstat(file.get(), &shape) != 0)
    return Status::unsupported(fmt::format("a file for all memory: {}", std::strerror(errno)));
  name_ = {getpid(), file.get(), shape.st_ino};
  device_ = shape.st_dev;
  file_ = std::move(file);
  return {};
}

bool MemoryImage::is_open() const {
  struct stat shape = {};
  return file_.valid() && raw::stat(file_.get(), &shape) && shape.st_dev == device_ &&
         shape.st_ino == name_.inode;
}

bool MemoryImage::is_of_image(const Mapping& mapping) const {
  return file_.valid() && mapping.inode == name_.inode && mapping.device == device_;
}

bool MemoryImage::is_at_home(const Mapping& mapping) const {
  return is_of_image(mapping) && mapping.offset == mapping.range.low && mapping.access[3] == 's';
}

// MI5: between take() and the end of the hold nothing may be allocated.
template <class Move>
Status MemoryImage::move_held(const AddressRange& pages, Hold hold, Move&& move) {
  return for_each_chunk(pages, [&](const AddressRange& part) -> Status {
    const NoSignals none;
    WriteHold writes;
    if (hold != Hold::no && !writes.take(part) && hold == Hold::yes)
      return Status::unsupported("other threads cannot be kept from storing to the memory");
    const Refusal refusal = move(part);
    writes.release();
    return status_of(refusal, part);
  });
}

Status MemoryImage::move_in(const AddressRange& pages, Hold hold, bool whole) {
  TOMBOLO_CHECK(pages.low % page_bytes() == 0 && pages.high % page_bytes() == 0,
                "{:#x} to {:#x} are not whole pages", pages.low, pages.high);
  return move_held(pages, hold,
                   [&](const AddressRange& part) { return move_in_chunk(part, whole); });
}

// Cheaper than stores through a mapping, which take a page fault each.
MemoryImage::Refusal MemoryImage::copy_in(const AddressRange& part, bool whole, bool& all) const {
  all = whole;
  if (whole) return write_file(part);
  const std::uint64_t page = page_bytes();
  const std::uint64_t pages = part.bytes() / page;
  std::array<Page, chunk_bytes / 4096> kinds;  // of pages of that size or larger
  if (!read_pages(part, page, std::span(kinds).first(pages))) return refused("/proc/self/pagemap");
  const auto holds = [&](std::size_t i) {
    return kinds[i] == Page::present ||
           (kinds[i] == Page::read && !is_zero(pointer(part.low + i * page), page));
  };
  std::uint64_t written = 0;
  for (std::size_t i = 0; i < pages;) {
    const std::size_t first = i;
    const bool here = holds(first);
    while (i < pages && holds(i) == here) ++i;
    const AddressRange run{part.low + first * page, part.low + i * page};
    if (!here) {
      forget(run);
      continue;
    }
    if (const Refusal refusal = write_file(run); refusal.call != nullptr) return refusal;
    written += i - first;
  }
  all = written == pages;
  return {};
}

// Copies the pages' contents and maps the copy in their place, by which the originals are freed.
MemoryImage::Refusal MemoryImage::move_in_chunk(const AddressRange& part, bool whole) const {
  bool all = false;
  if (const Refusal refusal = copy_in(part, whole, all); refusal.call != nullptr) return refusal;
  // The program needs its pages at once, by one fault each; those without contents stay so (MI1).
  const int populate = all ? MAP_POPULATE : 0;
  if (raw::map(part.low, part.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | populate,
               file_.get(), part.low) != MAP_FAILED)
    return {};
  const Refusal refusal = refused("mmap");
  // Some kernels unmap the old pages before they find that they cannot map the new ones.
  unsigned char residency = 0;
  if (!raw::is_mapped({part.low, part.low + page_bytes()}, &residency) && errno == ENOMEM)
    TOMBOLO_CHECK(move_out_chunk(part).call == nullptr, "the kernel took memory away: {}",
                  std::strerror(refusal.error));
  else
    forget(part);
  return refusal;
}

MemoryImage::Refusal MemoryImage::write_file(AddressRange from) const {
  while (!from.empty()) {
    const long n = raw::write(file_.get(), pointer(from.low), from.bytes(), from.low);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return refused("write of a copy");
    from.low += static_cast<std::uint64_t>(n);
  }
  return {};
}

MemoryImage::Refusal MemoryImage::read_file(AddressRange from, std::byte* to) const {
  while (!from.empty()) {
    const long n = raw::read(file_.get(), to, from.bytes(), from.low);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return refused("read of a copy");
    from.low += static_cast<std::uint64_t>(n);
    to += n;
  }
  return {};
}

// To new memory of zeros; pages without contents stay untouched.
MemoryImage::Refusal MemoryImage::copy_out(const AddressRange& part, std::byte* to) const {
  const std::uint64_t page = page_bytes();
  if (!is_open()) {
    for (std::uint64_t at = part.low; at < part.high; at += page)
      if (!is_zero(pointer(at), page)) std::memcpy(to + (at - part.low), pointer(at), page);
    return {};
  }
  const auto end = static_cast<long>(part.high);
  long low = raw::seek(file_.get(), part.low, SEEK_DATA);
  while (low >= 0 && low < end) {
    const long high =
        std::min(end, raw::seek(file_.get(), static_cast<std::uint64_t>(low), SEEK_HOLE));
    if (high <= low) return refused("lseek");
    const AddressRange data{static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high)};
    std::byte* const copy = to + (data.low - part.low);
    // One call instead of a page fault each; where the kernel cannot, they fault.
    raw::advise(copy, data.bytes(), MADV_POPULATE_WRITE);
    if (const Refusal refusal = read_file(data, copy); refusal.call != nullptr) return refusal;
    low = raw::seek(file_.get(), static_cast<std::uint64_t>(high), SEEK_DATA);
  }
  if (low < 0 && errno != ENXIO) return refused("lseek");
  return {};
}

// Puts a private copy in the place of the pages, so that no thread ever finds them missing (MI4).
MemoryImage::Refusal MemoryImage::move_out_chunk(const AddressRange& part) const {
  Scratch scratch(part.bytes(), part.low);
  if (scratch.data() == nullptr) return refused("mmap of private memory instead");
  if (const Refusal refusal = copy_out(part, scratch.data()); refusal.call != nullptr)
    return refusal;
  if (!scratch.move_to(part.low)) {
    const Refusal refusal = refused("mremap");
    TOMBOLO_CHECK(stays_mapped(part), "the kernel took memory away: {}",
                  std::strerror(refusal.error));
    return refusal;
  }
  return {};
}

// Some kernels unmap the pages in the way before they find that they cannot move. The bytes are
// still in the file.
bool MemoryImage::stays_mapped(const AddressRange& part) const {
  std::array<unsigned char, chunk_bytes / 4096> residency;  // of pages of that size or larger
  if (raw::is_mapped(part, residency.data()) || errno != ENOMEM) return true;
  return is_open() && raw::map(part.low, part.bytes(), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_FIXED, file_.get(), part.low) != MAP_FAILED;
}

void MemoryImage::forget(const AddressRange& part) const {
  if (is_open()) raw::punch_hole(file_.get(), part);
}

Status MemoryImage::move_out(const AddressRange& pages, Hold hold) {
  std::vector<Mapping> mappings;
  TOMBOLO_TRY(read_mappings(pages, mappings));
  Status first_error;
  RangeSet gone;
  gone.add(pages);
  for (const Mapping& mapping : mappings) {
    const AddressRange home = common_part(mapping.range, pages);
    if (home.empty() || !is_at_home(mapping)) continue;  // MI2
    gone.remove(home);
    const Status moved =
        move_held(home, hold, [&](const AddressRange& part) { return move_out_chunk(part); });
    if (first_error.ok()) first_error = moved;
  }
  if (gone.size() > 0) forget_unmapped(gone);
  return first_error;
}

// New memory at these addresses must not find the old bytes, but the program may have moved its
// mapping of them elsewhere.
void MemoryImage::forget_unmapped(RangeSet pages) const {
  std::vector<Mapping> shared;
  if (!read_shared_files(shared).ok()) return;
  for (const Mapping& mapping : shared)
    if (is_of_image(mapping)) pages.remove(file_range(mapping));
  for (const AddressRange& part : pages.all()) forget(part);
}

// Runs in a forked child: system calls only.
bool MemoryImage::leave_in_child(const AddressRange& pages, std::uint64_t offset,
                                 std::byte* copy) const {
  if (copy != nullptr) return raw::move(copy, pages.bytes(), pages.low);
  return raw::map(pages.low, pages.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                  file_.get(), offset) != MAP_FAILED;
}

void MemoryImage::abandon() {
  if (!is_open()) (void)file_.release();
  file_.reset(-1);
  name_ = {};
}

std::byte* MemoryImage::copied(const AddressRange& pages, std::uint64_t offset) const {
  Scratch scratch(pages.bytes(), pages.low);
  const AddressRange from = is_open() ? AddressRange{offset, offset + pages.bytes()} : pages;
  if (scratch.data() == nullptr || copy_out(from, scratch.data()).call != nullptr) return nullptr;
  return scratch.release();
}

std::byte* MemoryImage::allocate(std::uint64_t bytes) {
  // The kernel chooses the place; nothing can be mapped there meanwhile.
  void* const place =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return nullptr;
  if (mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_.get(),
           static_cast<off_t>(reinterpret_cast<std::uint64_t>(place))) == MAP_FAILED) {
    munmap(place, bytes);
    return nullptr;
  }
  return static_cast<std::byte*>(place);
}

void MemoryImage::release(const AddressRange& pages) {
  munmap(pointer(pages.low), pages.bytes());
  forget(pages);
}

}  // namespace tombolo::host
