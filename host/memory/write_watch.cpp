// SPDX-License-Identifier: Apache-2.0
#include "host/memory/write_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "base/check.h"
#include "host/memory/page.h"

namespace tombolo::host {
namespace {

// The kernel's interface as of Linux 6.7; older headers do not have it.
constexpr unsigned user_mode_only = 1;                                // UFFD_USER_MODE_ONLY
constexpr std::uint64_t wp_hugetlbfs_shmem = std::uint64_t{1} << 12;  // UFFD_FEATURE_...
constexpr std::uint64_t wp_unpopulated = std::uint64_t{1} << 13;
constexpr std::uint64_t wp_async = std::uint64_t{1} << 15;

struct pm_scan_arg {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t walk_end;
  std::uint64_t vec;
  std::uint64_t vec_len;
  std::uint64_t max_pages;
  std::uint64_t category_inverted;
  std::uint64_t category_mask;
  std::uint64_t category_anyof_mask;
  std::uint64_t return_mask;
};
constexpr unsigned long pagemap_scan = _IOWR('f', 16, pm_scan_arg);
constexpr std::uint64_t scan_wp_matching = 1;  // PM_SCAN_...
constexpr std::uint64_t scan_check_wpasync = 2;
constexpr std::uint64_t is_written = 2;  // PAGE_IS_...
constexpr std::uint64_t is_present = 8;
constexpr std::uint64_t is_huge = 64;

// The bytes that one page table reaches, at least (x86 and pages of 4 KiB; more with larger pages).
constexpr std::uint64_t page_table_reach = std::uint64_t{2} << 20;

// The process's descriptors and the ranges they watch. Never destroyed: watches may outlive main().
class Kernel {
 public:
  static Kernel& get() {
    static auto* const only = new Kernel;
    return *only;
  }

  Status prepare() {
    const std::lock_guard lock(mutex_);
    return open_once();
  }

  Status watch(std::uint64_t begin, std::uint64_t end, std::uint64_t& generation) {
    const std::lock_guard lock(mutex_);
    TOMBOLO_TRY(open_once());
    // WW4: registering a range twice with one descriptor is no error to the kernel.
    const auto next = watched_.lower_bound(end);
    if (next != watched_.begin() && std::prev(next)->second > begin)
      return Status::unsupported(
          fmt::format("pages of {:#x} to {:#x} are watched already", begin, end));
    uffdio_register range{};
    range.range = {.start = begin, .len = end - begin};
    range.mode = UFFDIO_REGISTER_MODE_WP;
    if (ioctl(uffd_, UFFDIO_REGISTER, &range) != 0)
      return Status::unsupported(fmt::format("no write protection for {} bytes at {:#x}: {}",
                                             end - begin, begin, std::strerror(errno)));
    watched_.emplace(begin, end);
    generation = generation_;
    return {};
  }

  void unwatch(std::uint64_t begin, std::uint64_t end, std::uint64_t generation) {
    const std::lock_guard lock(mutex_);
    if (!is_current(generation)) return;  // WW5: not ours but the parent's
    uffdio_range range{.start = begin, .len = end - begin};
    (void)ioctl(uffd_, UFFDIO_UNREGISTER, &range);  // fails if it was unmapped: that ends it too
    watched_.erase(begin);
  }

  // False in a child that was forked after `generation` began.
  bool is_current(std::uint64_t generation) const {
    // relaxed: written before the watch was made, or by the fork.
    return mark_ != nullptr &&
           std::atomic_ref(*mark_).load(std::memory_order_relaxed) == generation;
  }

  int scan(pm_scan_arg& arg) const { return ioctl(pagemap_, pagemap_scan, &arg); }

 private:
  Status open_once() {
    if (opened_ && (mark_ == nullptr || is_current(generation_))) return error_;
    // The first time, or a child's first time: the parent's descriptors act on the parent's memory.
    if (uffd_ >= 0) close(uffd_);
    if (pagemap_ >= 0) close(pagemap_);
    uffd_ = pagemap_ = -1;
    watched_.clear();
    error_ = open();
    opened_ = true;
    if (mark_ == nullptr) return error_;
    std::atomic_ref(*mark_).store(++generation_, std::memory_order_relaxed);
    return error_;
  }

  Status open() {
    if (mark_ == nullptr) TOMBOLO_TRY(make_mark());
    const long opened = syscall(SYS_userfaultfd, O_CLOEXEC | user_mode_only);
    if (opened < 0)
      return lack("userfaultfd",
                  errno == EPERM ? "; the sandbox of a container may forbid it" : "");
    uffd_ = static_cast<int>(opened);
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = wp_async | wp_unpopulated | wp_hugetlbfs_shmem;
    if (ioctl(uffd_, UFFDIO_API, &api) != 0)
      return lack("asynchronous write protection by userfaultfd", "; it came with Linux 6.7");
    pagemap_ = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap_ < 0) return lack("/proc/self/pagemap", "");
    pm_scan_arg nothing{};
    nothing.size = sizeof nothing;
    nothing.return_mask = is_written;
    if (scan(nothing) != 0) return lack("PAGEMAP_SCAN", "; it came with Linux 6.7");
    return {};
  }

  // A word that every kind of fork, by any caller, sets to zero in the child.
  Status make_mark() {
    const std::size_t bytes = page_bytes();
    void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return lack("a page of memory", "");
    if (madvise(page, bytes, MADV_WIPEONFORK) != 0) {
      const Status why = lack("MADV_WIPEONFORK", "");
      munmap(page, bytes);
      return why;
    }
    mark_ = static_cast<std::uint64_t*>(page);
    return {};
  }

  static Status lack(const char* what, const char* hint) {
    return Status::unsupported(fmt::format("{}: {}{}", what, std::strerror(errno), hint));
  }

  std::mutex mutex_;
  bool opened_ = false;
  Status error_;
  int uffd_ = -1;     // of userfaultfd
  int pagemap_ = -1;  // /proc/self/pagemap
  std::uint64_t* mark_ = nullptr;
  std::uint64_t generation_ = 0;
  std::map<std::uint64_t, std::uint64_t> watched_;  // begin and end
};

}  // namespace

Status WriteWatch::available() { return Kernel::get().prepare(); }

Status WriteWatch::open(std::byte* begin, std::size_t bytes, std::unique_ptr<WriteWatch>& out) {
  const auto first = reinterpret_cast<std::uint64_t>(begin);
  TOMBOLO_CHECK(bytes > 0 && first % page_bytes() == 0 && bytes % page_bytes() == 0,
                "write watch: {} bytes at {:#x} are not whole pages", bytes, first);
  std::uint64_t generation = 0;
  TOMBOLO_TRY(Kernel::get().watch(first, first + bytes, generation));
  out.reset(new WriteWatch(first, first + bytes, generation));
  return {};
}

WriteWatch::~WriteWatch() { Kernel::get().unwatch(begin_, end_, generation_); }

// Which pages to visit. The first question is for pages "not known to be protected": written, or
// not in a page table, or part of a huge page. A page in no page table may have been written and
// then swapped out, and of a huge page the kernel may lose the protection when it splits it, or not
// notice the write (a DAX device's).
//
// Once every page has been seen in a page table, "written" alone is asked for, which the kernel
// answers in half the time. It then counts a page as written that has left the page table, unless
// it was protected; only the loss of a whole page table would hide pages. That does not happen to
// memory watched by userfaultfd unless the program asks for it by MADV_DONTNEED of all that a page
// table reaches, hence only for ranges that are smaller than that.
Status WriteWatch::scan(std::uint64_t& at, Runs& runs, std::size_t& count) {
  const Kernel& kernel = Kernel::get();
  if (!kernel.is_current(generation_)) [[unlikely]]
    return Status::unsupported("write watch: this is a forked child");  // WW5
  pm_scan_arg arg{};
  arg.size = sizeof arg;
  // Refused if the range is not watched any more.
  arg.flags = scan_wp_matching | scan_check_wpasync;
  arg.start = at;
  arg.end = end_;
  arg.vec = reinterpret_cast<std::uint64_t>(runs.data());
  arg.vec_len = runs.size();
  if (settled_) {
    arg.category_mask = is_written;
    arg.return_mask = is_written;
  } else {
    if (at == begin_) all_present_ = true;
    arg.category_inverted = is_present;
    arg.category_anyof_mask = is_written | is_present | is_huge;
    arg.return_mask = is_present | is_huge;
  }
  const int found = kernel.scan(arg);
  if (found < 0)
    return Status::io(
        fmt::format("PAGEMAP_SCAN of {} bytes at {:#x}: {}", end_ - at, at, std::strerror(errno)));
  if (arg.walk_end <= at) return Status::io("PAGEMAP_SCAN does not get on");
  count = static_cast<std::size_t>(found);
  at = arg.walk_end;
  if (settled_) [[likely]]
    return {};
  for (std::size_t i = 0; i < count; ++i)
    all_present_ = all_present_ && runs[i].categories == is_present;
  settled_ = at >= end_ && all_present_ && end_ - begin_ < page_table_reach;
  return {};
}

}  // namespace tombolo::host
