# SPDX-License-Identifier: Apache-2.0
"""`tombolo doctor`: the abilities of this host, with a hint for each lack."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from rich.table import Table

from tombolo import compilers, dsm, dsm_pthreads, hints, host, libraries, mpis, paths, probes, svp
from tombolo.console import console
from tombolo.errors import UserError
from tombolo.scc import native

GIB = 1 << 30
SMALL_SHM = GIB  # a container's default of 64 MiB is the usual trap
USUAL_MAPPINGS = 65530  # of a process: the kernel's default
STRICT = 2  # vm.overcommit_memory
FLUSHES = ("clwb", "clflushopt", "clflush")
TOOLS = ("g++", "cmake", "ninja", "clang-format", "clang-tidy", "gfortran", "git")
MARKS = {"yes": "[green]yes[/]", "no": "[red]no[/]", "partly": "[yellow]partly[/]"}


@dataclass(frozen=True)
class Finding:
    """One row: the thing looked for, whether it is there, and a remedy if it is not."""

    about: str
    state: str  # yes, partly, no
    what: str
    hint: str = ""


def doctor() -> None:
    """List the abilities of this host, with a remedy for each lack."""
    table = Table(title="This host", title_justify="left")
    for heading in ("", "here", "what", "hint"):
        table.add_column(heading, overflow="fold")
    for found in findings():
        table.add_row(found.about, MARKS[found.state], found.what, found.hint)
    console.print(table)


def findings() -> Iterator[Finding]:
    yield from _mpis()
    yield from _libraries()
    yield _cores()
    yield _shared_memory()
    yield from _kernel()
    yield from _virtual_shared_memory()
    yield from _threaded_programs()
    yield _flushes()
    yield _dax()
    if paths.checkout():
        yield _tools()


def _mpis() -> Iterator[Finding]:
    for key in mpis.KEYS:
        mpi = mpis.find(key)
        if mpi is None:
            yield Finding(key, "no", "not found", mpis.hint(key))
        elif mpi.mpicc is None:
            what = f"{mpi.label} runs programs, and compiles none: its mpicc is not here"
            yield Finding(key, "partly", what, mpis.hint(key))
        elif lack := mpis.lack_of_headers(mpi):
            what = f"{mpi.label} runs programs, and compiles none: {lack}"
            yield Finding(key, "partly", what, mpis.hint(key))
        else:
            yield Finding(key, "yes", f"{mpi.label}, {paths.shown(mpi.launcher)}")


def _libraries() -> Iterator[Finding]:
    for abi in ("mpich", "openmpi", "abi"):
        library = libraries.find(abi)
        name = f"libtombolo_mpi_{abi}.so"
        if library:
            yield Finding(name, "yes", paths.shown(library))
        else:
            yield Finding(name, "no", "not there", libraries.hint())
    programs = (
        native.NAME, dsm.LAUNCHER, dsm.LIBRARY, dsm_pthreads.LIBRARY, dsm_pthreads.HOSTS, svp.LAUNCHER, svp.ARCHIVE,
        svp.LIBRARY_OF_C,
    )  # fmt: skip
    for name in programs:
        program = libraries.find_program(name)
        if program:
            yield Finding(name, "yes", paths.shown(program))
        else:
            yield Finding(name, "no", "not there", libraries.program_hint(name))
    yield _compiler()


def _compiler() -> Finding:
    about, plugin = "tombolo dsm cc", compilers.find_plugin()
    if plugin is None:
        can_be_built = libraries.are_built_on_demand() and compilers.has_llvm()
        hint = libraries.hint() if can_be_built else libraries.compiler_hint()
        return Finding(about, "no", "the plugin of clang is not there", hint)
    try:
        clang = compilers.clang_of(plugin, "clang")
    except UserError as lack:
        return Finding(about, "no", str(lack), hints.COMPILER)
    return Finding(about, "yes", f"{paths.shown(plugin)} for {clang}")


def _cores() -> Finding:
    threads, cores = host.cores(), host.physical_cores()
    what = f"{threads} processors on {cores} cores, {host.cpu_name()}"
    if threads < 2:
        return Finding("cores", "partly", what, "speed with one core says little: ranks take turns")
    return Finding("cores", "yes", what)


def _shared_memory() -> Finding:
    try:
        size = os.statvfs("/dev/shm")
    except OSError:
        return Finding("/dev/shm", "no", "not mounted", hints.NO_SHARED_MEMORY)
    total, free = (n * size.f_frsize / GIB for n in (size.f_blocks, size.f_bavail))
    what = f"{free:.1f} GiB free of {total:.1f}"
    if free * GIB < SMALL_SHM:
        return Finding("/dev/shm", "partly", what, hints.LITTLE_SHARED_MEMORY)
    return Finding("/dev/shm", "yes", what)


def _kernel() -> Iterator[Finding]:
    yield Finding("kernel", "yes", f"{os.uname().sysname} {os.uname().release} {os.uname().machine}")
    yield _probed("memfd_create", probes.memfd(), "segments without a name", "segments get names in /dev/shm")
    yield _probed(
        "process_vm_readv",
        probes.process_vm(),
        "another process's memory can be read",
        hints.FOREIGN_MEMORY,
    )
    yield _probed("futex", probes.futex(), "waiting ranks sleep", "waiting ranks yield instead of sleeping")
    yield _probed(
        "pidfd_open",
        probes.pidfd(),
        "the death of a rank is noticed at once",
        "the death of a rank is noticed by its process number only",
    )
    yield _write_watch(probes.write_watch())


def _probed(name: str, works: bool, good: str, lack: str) -> Finding:
    return Finding(name, "yes", good) if works else Finding(name, "no", "refused here", lack)


def _write_watch(lack: str) -> Finding:
    about = "asynchronous write protection"
    if not lack:
        return Finding(about, "yes", "`flushed` publishes the pages that were written")
    return Finding(
        about,
        "no",
        lack,
        "`flushed` publishes whole regions: Linux 6.7 or newer, and in a container "
        "a seccomp profile that allows userfaultfd",
    )


def _virtual_shared_memory() -> Iterator[Finding]:
    """The needs of page caches: those without userfaultfd close their pages by mprotect."""
    lack = probes.own_faults()
    yield _own_faults(lack)
    mappings = probes.kernel_setting("vm/max_map_count")
    if mappings is not None:
        few = bool(lack) and mappings <= USUAL_MAPPINGS
        yield Finding(
            "mappings of a process",
            "partly" if few else "yes",
            f"{mappings} (vm.max_map_count)" + ("" if lack else "; userfaultfd needs few"),
            hints.FEW_MAPPINGS if few else "",
        )
    overcommit = probes.kernel_setting("vm/overcommit_memory")
    if overcommit is not None:
        strict = overcommit == STRICT
        yield Finding(
            "memory beyond what is there",
            "partly" if strict else "yes",
            "counted when reserved" if strict else "counted when touched",
            hints.STRICT_OVERCOMMIT if strict else "",
        )


def _threaded_programs() -> Iterator[Finding]:
    """The needs of `tombolo dsm run` with unchanged programs beyond those of page caches."""
    lack = probes.caught_calls()
    yield Finding(
        "own system calls caught",
        "no" if lack else "yes",
        f"Syscall User Dispatch: {lack}" if lack else "Syscall User Dispatch",
        "threads with `--transport window` or `mpi` need Linux 5.11 on x86-64; `map` does not" if lack else "",
    )
    lack = probes.fixed_addresses()
    yield Finding(
        "fixed addresses",
        "no" if lack else "yes",
        f"personality: {lack}" if lack else "personality",
        "threads on several hosts (`--transport mpi`) need it: allow personality() in the container" if lack else "",
    )
    lack = next((name for name in ("iced_x86", "lief") if find_spec(name) is None), "")
    yield Finding(
        "decoder",
        "no" if lack else "yes",
        f"{lack} of Python is not there" if lack else "atomic instructions of programs that were not rebuilt are found",
        hints.here(hints.DECODER, hints.DECODER_OF_PACKAGE) if lack else "",
    )


def _own_faults(lack: str) -> Finding:
    about = "own page faults"
    if not lack:
        what = "userfaultfd by signals, of this process alone: no right needed; written pages likewise"
        return Finding(about, "yes", what)
    return Finding(
        about,
        "partly",
        f"mprotect; {lack}; written pages likewise",
        "a page cache of `tombolo dsm run` takes longer for pages apart: Linux 5.19 or newer, and in a "
        "container a seccomp profile that allows userfaultfd",
    )


def _flushes() -> Finding:
    flags = host.cpu_flags()
    if os.uname().machine == "aarch64":
        has = "dcpop" in flags
        what = "dc cvac, dc civac" + (", dc cvap" if has else "")
        return Finding("flush instructions", "yes", what)
    have = [name for name in FLUSHES if name in flags]
    if "sse2" in flags:
        have.append("movnti")
    if not have:
        return Finding("flush instructions", "no", "none", "the machine `flushed` cannot run here")
    lacks = [name for name in FLUSHES[:2] if name not in have]
    hint = f"{', '.join(lacks)} would be faster" if lacks else ""
    return Finding("flush instructions", "partly" if lacks else "yes", ", ".join(have), hint)


def _dax() -> Finding:
    devices = probes.dax_devices()
    if devices:
        return Finding("dax and CXL devices", "yes", ", ".join(devices))
    return Finding("dax and CXL devices", "no", "none", "`flushed` maps a file instead: TOMBOLO_POOL=PATH")


def _tools() -> Finding:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return Finding("build tools", "partly", "missing: " + ", ".join(missing), hints.TOOLS)
    return Finding("build tools", "yes", ", ".join(TOOLS))
