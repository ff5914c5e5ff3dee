# SPDX-License-Identifier: Apache-2.0
"""Tries the abilities of this process; each probe answers yes or no and leaves nothing behind."""

import ctypes
import errno
import fcntl
import os
import platform
import signal
import struct
from pathlib import Path

FUTEX_NUMBERS = {"x86_64": 202, "aarch64": 98}
FUTEX_WAKE = 1
USERFAULTFD_NUMBERS = {"x86_64": 323, "aarch64": 282}
UFFD_USER_MODE_ONLY = 1
UFFDIO_API = 0xC018AA3F
UFFD_API = 0xAA
WRITE_WATCH_FEATURES = 1 << 15 | 1 << 13 | 1 << 12  # WP_ASYNC, WP_UNPOPULATED, WP_HUGETLBFS_SHMEM
# SIGBUS, MISSING_SHMEM, MINOR_SHMEM, WP_HUGETLBFS_SHMEM: as host/faults/userfault_memory.cpp
OWN_FAULTS_FEATURES = 1 << 7 | 1 << 5 | 1 << 10 | 1 << 12
PR_SET_SYSCALL_USER_DISPATCH = 59
ASK_PERSONALITY = 0xFFFFFFFF
ADDR_NO_RANDOMIZE = 0x0040000


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def memfd() -> bool:
    try:
        os.close(os.memfd_create("tombolo-probe"))
    except OSError:
        return False
    return True


def process_vm() -> bool:
    """Reads a word of a sibling's memory: ranks are siblings, and parents may always read."""
    secret = ctypes.c_uint64(0x1EAF)
    sleeper = os.fork()
    if sleeper == 0:
        signal.pause()
        os._exit(0)
    reader = os.fork()
    if reader == 0:
        os._exit(0 if _reads(sleeper, secret) else 1)
    _, status = os.waitpid(reader, 0)
    os.kill(sleeper, signal.SIGKILL)
    os.waitpid(sleeper, 0)
    return status == 0


def _reads(pid: int, secret: ctypes.c_uint64) -> bool:
    """A forked copy has the secret at the address that it has here."""
    libc = ctypes.CDLL(None, use_errno=True)
    copy = ctypes.c_uint64(0)
    size = ctypes.sizeof(secret)
    here = _Vector(ctypes.addressof(copy), size)
    there = _Vector(ctypes.addressof(secret), size)
    try:
        count = libc.process_vm_readv(
            ctypes.c_int(pid), ctypes.byref(here), ctypes.c_ulong(1), ctypes.byref(there),
            ctypes.c_ulong(1), ctypes.c_ulong(0),
        )  # fmt: skip
    except AttributeError:
        return False
    return count == size and copy.value == secret.value


def futex() -> bool:
    number = FUTEX_NUMBERS.get(platform.machine())
    if number is None:
        return False
    word = ctypes.c_int(0)
    return ctypes.CDLL(None).syscall(number, ctypes.byref(word), FUTEX_WAKE, 1, None) == 0


def pidfd() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError):
        return False
    return True


def write_watch() -> str:
    """Why the kernel cannot tell the pages that a program wrote; empty if it can."""
    if lack := _userfault_lack(WRITE_WATCH_FEATURES, "asynchronous write protection"):
        return lack
    try:
        os.close(os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return ""


def own_faults() -> str:
    """Why a process cannot catch its own page faults by userfaultfd; empty if it can."""
    return _userfault_lack(OWN_FAULTS_FEATURES, "userfaultfd for shared memory")


def caught_calls() -> str:
    """Why a process cannot catch its own system calls; empty if it can."""
    libc = ctypes.CDLL(None, use_errno=True)
    off = [ctypes.c_ulong(0)] * 4
    return "" if libc.prctl(PR_SET_SYSCALL_USER_DISPATCH, *off) == 0 else os.strerror(ctypes.get_errno())


def fixed_addresses() -> str:
    """Why a process cannot turn the randomization of its addresses off; empty if it can."""
    child = os.fork()
    if child == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        now = libc.personality(ctypes.c_ulong(ASK_PERSONALITY))
        wanted = ctypes.c_ulong(now | ADDR_NO_RANDOMIZE)
        if now < 0 or libc.personality(wanted) < 0:
            os._exit(ctypes.get_errno())
        # Some kernels take the call and change nothing.
        os._exit(0 if libc.personality(ctypes.c_ulong(ASK_PERSONALITY)) & ADDR_NO_RANDOMIZE else errno.ENOSYS)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return os.strerror(code) if code else ""


def _userfault_lack(features: int, about: str) -> str:
    number = USERFAULTFD_NUMBERS.get(platform.machine())
    if number is None:
        return "unknown processor"
    flags = os.O_CLOEXEC | UFFD_USER_MODE_ONLY
    descriptor = ctypes.CDLL(None, use_errno=True).syscall(number, flags)
    if descriptor < 0:
        return f"userfaultfd: {os.strerror(ctypes.get_errno())}"
    try:
        fcntl.ioctl(descriptor, UFFDIO_API, struct.pack("QQQ", UFFD_API, features, 0))
    except OSError as error:
        return f"{about}: {error.strerror}"
    finally:
        os.close(descriptor)
    return ""


def kernel_setting(name: str) -> int | None:
    """A number below /proc/sys, such as `vm/max_map_count`; None where there is none."""
    try:
        return int(Path("/proc/sys", name).read_text())
    except (OSError, ValueError):
        return None


def dax_devices() -> list[str]:
    """Device files of memory that hosts may share."""
    return [str(p) for pattern in ("dax*", "cxl/mem*") for p in sorted(Path("/dev").glob(pattern))]
