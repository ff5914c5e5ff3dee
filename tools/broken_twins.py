#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Broken twins: breaks sync/, windows/, dsm/, svp/ and the machines in one place after the other; a
test must fail.

    tools/broken_twins.py                         all twins but those of families; exit status 1 if
                                                  one survives
    tools/broken_twins.py --list                  the twins, without running anything
    tools/broken_twins.py --only 'window.h:2'     those whose "kind: file:line: statement" matches
    tools/broken_twins.py --slice 1/4             every fourth of them
    tools/broken_twins.py --slice day/60          a sixtieth, another one each day: for CI
    tools/broken_twins.py --folders svp           those of families: minutes each, too long for CI
    tools/broken_twins.py --json twins.jsonl      a JSON line for each twin as well

removal      A publish, refresh, drain or fence is replaced by `(void)0`, so that the twin differs
             from the original in nothing else. A call counts if its receiver is a core (`core.`,
             `core_.`), or if it stands for such calls on all of the program's own copies
             (`own_.publish_all()` and its like in windows/). `notify` is left out: a missing one
             costs time, never correctness (R6); the explorer checks it (litmus/).
swap         Such a statement is exchanged with the next one, where that announces the first (a
             lock is freed, a peer told, a barrier entered) or is the refresh that must come
             later. Likewise the work under a mutex and its release, and each `wrote_to` with the
             operation before it, which it notes.
off by one   A publish or refresh of a range is a byte short.
step         A step of a protocol of dsm/ is removed: a call on its transport, its page store, its
             directory of pages, its sender or its notices, or on a part of its own (PROTOCOL
             below). The wait of write_notices.h for a slower writer is left out: the explorer finds
             it missing, tests by luck alone.
view         In dsm/pages/, a step that makes the program's view follow the states of its pages, a twin,
             or a note of an instruction's pages is left out (VIEW below).
early        In dsm/allocator/, a statement that a comment explains by "Before ..." is exchanged with
             the next one.
unrenewed    In dsm/allocator/, a renewal of pages between two users is left out.
guard        A lock that keeps threads of one process apart in windows/ is removed. (Those of
             sync/ are left to tests with many threads and to the thread sanitizer.) In dsm/threads/
             and dsm/transport/, an object that keeps interrupts away, or the program from its view.
call         In dsm/threads/ and dsm/memory/paged_memory.h, a call on a part of the object, or on
             its memory (CALLED below), is left out.
bound        There, a comparison includes its bound or excludes it, against the source.
condition    A condition that keeps kinds of windows apart is left out: promises are kept where the
             program stores to its peers' regions, whose stores are forgotten (SCOPE below). A
             best-effort lock that is freed inside another takes that one's registration with it.
machine      In backends/ and host/flush/: a publish, a refresh or a write-back does nothing; `stale`
             keeps quiet of a loss, or of one by an eviction. Fences of the processor are left out:
             nothing on one host shows that one is missing.
line short   There, a publish, a refresh or a write-back leaves the last line of its range out.

The kinds of svp/ (told, order, edge, check) are those of family_twins.py.

Files below a folder `testing` or `broken` are no part of the system. The folders of dsm/ whose tests
start processes are left out, and the transports of whole programs.

How: the tree is copied to a scratch folder for each job, with the list of machines cut down to
`stale`, so that tests compile quickly. Objects are compiled by direct compiler calls, and only
those that include the changed file, directly or not. A twin is caught if a test program
exceeds its time, or fails or crashes and does so again in one of as many runs as there are attempts,
of the failed test alone where the program has named it; it survives if none does in any attempt. A
program ends at its first failure: where that does not come again, it is run without that test. With
the unchanged tree the program must then pass once, and the failed test, or else the program, once
more than there are attempts. If such a run fails and one of the same again passes, luck has a part in
that test, and the twin is not judged: named and counted, neither caught nor a survivor.
The tests that note the order of operations (windows/recorded_test.cpp) come first: they compile in
seconds, and luck has no part in them.
Exit status: 0 all caught that were judged, 1 a survivor, 2 nothing could be concluded: the unchanged
tree fails in all those runs, or more than half of the twins were not judged.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import family_twins
import option_table
import slices
from twin_text import blank_comments, closing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

from tombolo import files
from tombolo.errors import UserError

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Parts of dsm/ whose tests start processes, and need more libraries: folders and names of files.
ABOVE_PROTOCOLS = {"api", "compiler", "memory", "objects", "arena_heap", "class_heap", "heap", "keys", "private_heap",
                   "process_records", "runtime_hooks", "thread_table"}  # fmt: skip
JUDGED_IN_MEMORY = {"mapped_memory", "paged_memory"}
LAYERS = ("base", "machine", "host", "backends", "sync", "windows", "runtime", "dsm", "svp")
CALL = re.compile(
    r"\bcore_?\s*\.\s*(?:publish|refresh|drain|fence|renew_pieces)\s*\("
    r"|\bown_\s*\.\s*(?:publish_all|refresh_all|note_put|announce_puts)\s*\("
    r"|(?<=    )publish_all\s*\("
)
# The steps of a protocol, in dsm/. A Status that is returned or tried becomes an ok one.
PROTOCOL = re.compile(
    r"\btransport_\s*\.\s*(?:put|accumulate_xor|expose|put_update|complete)\s*\("
    r"|\bstore_\s*\.\s*(?:make_twin|forbid_writes|invalidate)\s*\("
    r"|\bdirectory_\s*\.\s*(?:set_keeper|clear_keeper|mark_cleared|lock|unlock|raise_version)\s*\("
    r"|\bnotices_?\s*\.\s*append\s*\("
    r"|\bsender_\s*\.\s*(?:send|keep|try_keep|mark_cleared|announce|announce_to_some|give_back|give_back_changed)\s*\("
    r"|(?<=TOMBOLO_TRY\()(?:self\(\)\.)?(?:wait_for_all|send_stores|end_region|end_part|tell_of_spans|append_told"
    r"|find_readers|catch_up|drop_old|apply_updates|collect|bring_home|ask)\s*\("
    r"|(?:(?<=return )|(?<=\? ))(?:self\(\)\.)?(?:send_stores|tell_of_spans|append_told|end_region|drop_old)\s*\("
    r"|(?<=    )drop_all_old\s*\(|(?:(?<=    )|(?<=\) )|(?<== ))raise\s*\("
)
# The steps of a page store, in dsm/pages/, likewise.
VIEW = re.compile(
    r"\bclosing_?\s*\.\s*(?:add|close)\s*\(|(?:\bpages_\.)?\bmemory_->(?:change|discard|close|fill)\s*\("
    r"|\bpages_\.settle\s*\(|(?<=[{;)] )become\s*\(|(?<=  )(?:settle|note_miss|copy)\s*\("
    r"|(?<=[{] )copy\s*\("
    r"|\bstd::rotate\s*\("
)
# The calls of objects of dsm/threads/ and dsm/memory/paged_memory.h on their parts.
CALLED = re.compile(
    r"\bmemory_\s*\.\s*(?:tell|learn|release|pause|paused_enough|fetch_add)\s*\("
    r"|\bbackoff_\s*\.\s*reset\s*\(|\btrace_->add\s*\("
    r"|\bprotocol_\s*\.\s*(?:record|evict|poll|tell|learn|barrier|close|end_span|begin_span"
    r"|try_begin_span|try_hand_over|bring_together|write_miss|read_miss|interrupt_by|reduce)\s*\("
    r"|\bmisses_\s*\.\s*fail\s*\(|\bunfinished_\s*\.\s*brought\s*\(|\bstore_->on_miss\s*\("
    r"|(?<=  )(?:open_for_stores|MissHandler::fail)\s*\(|\bhost::leave_interrupts\s*\(|\bmemory_\.give_up_\s*\("
    r"|\bobserver_\.heat->fault\s*\(|\bthis->interrupted_by\s*\(|\b(?:reads|writes)_\s*\.\s*add\s*\("
)
# At the memory's size an address has no bytes in it either way; the bound of a wait costs time.
BOUND = re.compile(r"(?<=[\w)\]] )(?:<=|>=|<|>)(?= [\w(])(?! size)(?! short_wait_ns)")
# Conditions, and the text in the place of each.
SCOPE = {
    re.compile(r" && !program_reads_peers_\b"): "",
    re.compile(r"(?<=return )peers_too_ \|\| "): "",
    re.compile(r"(?<=if \()!peers_too_(?=\))"): "true",
    re.compile(r"(?<=return )peers_too_(?=;)"): "false",
    re.compile(r" \|\| exclusive_held_ != 0"): "",
}
# The machines' operations on lines. A call on the hardware does nothing, or leaves a line out.
HARDWARE = re.compile(
    r"\b(?:host::)?flush::(?:publish|refresh|renew_pieces)\s*\(|\bwritten_->publish\s*\("
    r"|\bby\.(?:write_back\[[^]]*\]|invalidate|renew)\.apply\s*\("
)
# `stale`, by the operations on its lines.
ON_LINES = re.compile(r"(?<![\w:.~>])(?:caches_\[span\]->)?(?:write_back|drop|fill|report)\s*\((?=line\b|Loss::)")
LINES_OF = {
    re.compile(r"\? offset \+ bytes - start(?= :)"): "? offset + bytes - start - 1",
    re.compile(r"line_of\(offset \+ bytes - 1\) \+ 1"): "line_of(offset + bytes - 1)",
    re.compile(r"if \(lost != 0\)"): "if (lost != 0 && !evicted)",
}
# A statement that must come before one that announces it, at the start of a line.
EARLIER = re.compile(
    r"(?m)^ +(?P<first>(?:if \([^;{}]*?\)\s+)?"
    r"(?:core_\.(?:drain|publish)|own_\.(?:publish_all|announce_puts)|publish_all|end_passive_epoch"
    r"|Status status = body)\s*\([^;]*;)(?=(?P<between>\s+)(?P<second>[^;{}]))"
)
LATER = re.compile(
    r"\b(?:announce_puts|arrive_and_wait|active_\.(?:post|complete)|with_locks|release"
    r"|core_\.refresh)\s*\("
)
NOTED = re.compile(r"(Status status = [^;]*;)(\s*)([^;\n]*\bwrote_to\s*\([^;]*;)")
BEFORE = re.compile(r"(?m)^ +// Before .*\n(?: +//.*\n)* +(?=[^\s/])")
RENEWAL = re.compile(r"(?<![\w:.])(?:pages_\.)?renew\s*\((?!std::uint64_t|Blocks|PageRuns)")
RANGE = re.compile(r"\bcore_?\s*\.\s*(?:publish|refresh)\s*\(")
GUARD = re.compile(
    r"const (?:Guard guard\(\*this\)|std::lock_guard guard\(refreshing_\)|Closed closed\(gate(?:_|\(\))\)"
    r"|Call call\(\*this\)|RuntimeCall call\(\*store_\))"
)
# Their sources are linked to the tests that include their headers.
PARTS_BY_HEADER = ("runtime/counters", "runtime/findings", "dsm/pages", "dsm/records", "dsm/threads")
# These need more libraries; no test here uses them.
NOT_COPIED = {"host": ("mpi",), "svp": ("module", "bench", "svp.cpp", "language")}
MACHINE_LIST = re.compile(r"using AllMachines\s*=[^;]*;")
INCLUDE = re.compile(r'(?m)^ *#include "([^"]+)"')  # always from the root
FLAGS = ("-std=c++20", "-O1", "-w")
# A twin may wait for ever: a killed run of this tool takes it along.
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
# On the machine, or on none.
TESTS = (
    "*stale*:Recorded.*:RegionalPages.*:RegionalSteps.*:ReleaseSteps.*:PageSend.*:PageFetchTest.*:ReaderNoticesTest.*"
    ":Scheduled.*:*userfault:*protection:UnfinishedInstruction.*:ConditionTest.*:PartialBarrierTest.*"
    ":CoreMemory.*:PagedMemoryTest.*:Waited.*:PagesInPlace.*:PartialReductionTest.*:AtomicChange.*"
    ":InstrumentedCodeTest.*"
    ":Stale*:TwoHosts/*:W*Region*:SettledRegion*:Flush*:WriteThrough*"
)
COMMON = "common.h"  # GoogleTest's header, parsed once for all tests
FAILED_TEST = re.compile(r"^\[  FAILED  \] ([\w/.]+)", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Twin:
    kind: str
    path: str  # relative to the root
    line: int
    start: int  # of the replaced text in the file, in characters
    end: int
    statement: str
    replacement: str

    @property
    def name(self):
        return f"{self.kind}: {self.path}:{self.line}: {self.statement}"


@dataclasses.dataclass(frozen=True)
class Failure:
    text: str
    only: str = ""  # the test that failed, where the program has named it
    endless: bool = False


@dataclasses.dataclass
class Outcome:
    twin: Twin
    caught_by: str  # empty: survived, or not judged
    seconds: float
    not_judged: str = ""  # why


class NotJudged(Exception):
    """A test that fails with a twin fails without it, too, now and then."""


def is_above_protocols(source):
    """`source`: a path of a source or a test, relative to the root."""
    name = source.stem.removesuffix("_test")
    if source.parts[0] != "dsm" or name in JUDGED_IN_MEMORY:
        return False
    return bool(ABOVE_PROTOCOLS & {*source.parts[:-1], name})


def find_twins(folders):
    twins = []
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            relative = path.relative_to(ROOT)
            if path.suffix not in (".h", ".cpp") or path.stem.endswith(("_test", "_bench")):
                continue
            if {"testing", "broken"} & set(relative.parts):
                continue
            if is_above_protocols(relative):
                continue
            if relative.parts[0] == "svp" and not family_twins.is_judged(relative):
                continue
            layer = next((f for f in FOLDERS_OF_THEIR_OWN if f in relative.parts), relative.parts[0])
            text = path.read_text()
            code = blank_comments(text)
            for kind, generate in KINDS.items():
                if layer not in FOLDERS_OF.get(kind, layer):
                    continue
                if kind == "edge" and path.name not in family_twins.EDGED:
                    continue
                for start, end, replacement in generate(code, text):
                    statement = " ".join(text[start:end].split())
                    line = text.count("\n", 0, start) + 1
                    twins.append(Twin(kind, str(relative), line, start, end, statement, replacement))
    return sorted(twins, key=lambda twin: (twin.path, twin.start, twin.kind))


def removals(code, _):
    """(start, end, replacement): the texts that are replaced. Likewise below."""
    for call in CALL.finditer(code):
        yield call.start(), closing(code, call.end() - 1), "(void)0"


def removed_steps(code, _):
    for call in PROTOCOL.finditer(code):
        before = code[: call.start()].rstrip()
        if before.endswith("requires {"):  # asks for the call, and makes none
            continue
        used = before.endswith(("return", "TOMBOLO_TRY(", "?", ":", "="))
        value = "0" if "raise" in call.group() else "Status()"
        yield call.start(), closing(code, call.end() - 1), value if used else "(void)0"


def end_of_statement(code, start):
    """The position behind the semicolon of the statement at `start`; None at the end of a block."""
    depth = 0
    for at in range(start, len(code)):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(code[at], 0)
        if depth < 0:
            return None
        if depth == 0 and code[at] == ";":
            return at + 1
    return None


def swaps(code, text):
    for pair in EARLIER.finditer(code):
        end = end_of_statement(code, pair.start("second"))
        if end and LATER.search(code, pair.start("second"), end):
            first, between = (text[slice(*pair.span(part))] for part in ("first", "between"))
            yield pair.start("first"), end, text[pair.start("second") : end] + between + first
    for pair in NOTED.finditer(code):
        operation, between, note = (text[slice(*pair.span(group))] for group in (1, 2, 3))
        yield pair.start(), pair.end(), note + between + operation


def ranges_cut_short(code, text):
    for call in RANGE.finditer(code):
        end = closing(code, call.end() - 1)
        if not family_twins.SAME_LINE.search(code, call.start(), end):
            yield call.start(), end, text[call.start() : end - 1] + " - 1)"


def missing_views(code, _):
    for call in VIEW.finditer(code):
        used = code[: call.start()].rstrip().endswith(("return", "TOMBOLO_TRY(", ","))
        yield call.start(), closing(code, call.end() - 1), "Status()" if used else "(void)0"


def early_statements(code, text):
    for comment in BEFORE.finditer(text):
        middle = end_of_statement(code, comment.end())
        end = middle and end_of_statement(code, middle)
        if end:
            first, second = text[comment.end() : middle], text[middle:end]
            yield comment.end(), end, f"{second.strip()} {first}"


def missing_renewals(code, _):
    for call in RENEWAL.finditer(code):
        statement = code[: call.start()].rstrip().endswith((";", "{", "}"))
        yield call.start(), closing(code, call.end() - 1), "(void)0" if statement else "true"


def missing_calls(code, _):
    for call in CALLED.finditer(code):
        before = code[: call.start()].rstrip()
        if before.endswith("requires {"):
            continue
        used = before.endswith(("return", "TOMBOLO_TRY(", "?", ":", "="))
        value = "0" if "fetch_add" in call.group() else "Status()"
        yield call.start(), closing(code, call.end() - 1), value if used else "(void)0"


def moved_bounds(code, _):
    other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
    for bound in BOUND.finditer(re.sub(r"(?m)^\s*(?:#|template).*", lambda m: " " * len(m.group()), code)):
        yield bound.start(), bound.end(), other[bound.group()]


def conditions(code, _):
    for pattern, replacement in SCOPE.items():
        for condition in pattern.finditer(code):
            yield condition.start(), condition.end(), replacement


def idle_machines(code, _):
    for call in [*HARDWARE.finditer(code), *ON_LINES.finditer(code)]:
        yield call.start(), closing(code, call.end() - 1), "(void)0"
    for pattern, replacement in LINES_OF.items():
        for part in pattern.finditer(code):
            yield part.start(), part.end(), replacement


def ranges_without_their_last_line(code, text):
    for call in HARDWARE.finditer(code):
        end = closing(code, call.end() - 1)
        whole = text[call.start() : end - 1]
        if ".apply" in call.group():
            yield call.start(), end, f"{whole} - line_bytes)"
        elif re.search(r"flush::(publish|refresh)\b", call.group()):
            bytes_ = whole.rpartition(",")[2].strip()
            yield call.start(), end, f"{whole} - std::min<std::size_t>({bytes_}, 64))"


def missing_guards(code, _):
    for guard in GUARD.finditer(code):
        yield guard.start(), guard.end(), "(void)0"


KINDS = {
    "removal": removals,
    "step": removed_steps,
    "view": missing_views,
    "swap": swaps,
    "off by one": ranges_cut_short,
    "early": early_statements,
    "unrenewed": missing_renewals,
    "guard": missing_guards,
    "call": missing_calls,
    "bound": moved_bounds,
    "condition": conditions,
    "machine": idle_machines,
    "line short": ranges_without_their_last_line,
    "told": family_twins.missing_steps,
    "order": family_twins.late_statements,
    "edge": family_twins.moved_edges,
    "check": family_twins.missing_checks,
}
FOLDERS_OF_THEIR_OWN = ("allocator", "pages", "threads", "paged_memory.h")  # of dsm/
# The others: all. The ranges of dsm/ are whole lines, of which a byte less is as many.
PROGRAMS = ("threads", "paged_memory.h")
FOLDERS_OF = {"off by one": ("sync", "windows", "svp"), "guard": ("windows", *PROGRAMS), "step": ("dsm",),
              "view": ("pages",), "early": ("allocator",), "unrenewed": ("allocator",), "call": PROGRAMS,
              "bound": PROGRAMS, "condition": ("sync", "windows"), "machine": ("backends", "host"),
              "line short": ("backends", "host"),
              **dict.fromkeys(("told", "order", "edge", "check"), ("svp",))}  # fmt: skip
MACHINES = ("backends/stale", "backends/flushed", "host/flush")


class Tree:
    """A copy of the sources in which one twin at a time is built and run.

    All trees share the objects of the unchanged sources: an object is named by its source and by
    the contents of its inputs.
    """

    def __init__(self, folder, objects, options):
        self.folder = pathlib.Path(folder)
        self.objects = pathlib.Path(objects)
        self.options = options
        for layer in LAYERS:
            if (ROOT / layer).exists():
                left_out = shutil.ignore_patterns(*NOT_COPIED.get(layer, ("scc", "mpi")))
                shutil.copytree(ROOT / layer, self.folder / layer, ignore=left_out)
        for header, text in option_table.headers(option_table.load()).items():
            option_table.write(self.folder / header, text)
        self.add_engines()
        machines = self.folder / "backends/machines.h"
        reduced, count = MACHINE_LIST.subn("using AllMachines = TypeList<stale::Core>;", machines.read_text())
        if count == 0:
            raise RuntimeError("backends/machines.h has no list of machines any more")
        machines.write_text(reduced)

    def add_engines(self):
        """The files that runtime/CMakeLists.txt makes for each machine that programs may choose."""
        engines = self.folder / "runtime/engines"
        template = (engines / "engine_on.cpp.in").read_text()
        for header in sorted((self.folder / "backends").glob("*/machine.h")):
            machine = header.parent.name
            (engines / f"engine_on_{machine}.cpp").write_text(template.replace("@machine@", machine))

    def sources(self, folders, suffixes):
        found = [p.relative_to(self.folder) for layer in folders for p in sorted((self.folder / layer).rglob("*.cpp"))]
        return [
            s
            for s in found
            if s.stem.endswith(("_test", "_bench")) == bool(suffixes) and (not suffixes or s.stem.endswith(suffixes))
        ]

    def compiler(self, source, *more):
        command = [self.options.cxx, *FLAGS, f"-I{self.folder}", *more, str(self.folder / source)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def includes(self, source):
        """The files of the tree that `source` includes, under whatever condition, and itself."""
        found, left = set(), [str(source)]
        while left:
            name = left.pop()
            if name not in found and (self.folder / name).exists():
                found.add(name)
                left += INCLUDE.findall((self.folder / name).read_text())
        return found

    def compile(self, source, inputs):
        digest = hashlib.sha256()
        for name in sorted(inputs):
            digest.update((self.folder / name).read_bytes())
        target = self.objects / f"{str(source).replace('/', '_')}.{digest.hexdigest()[:16]}.o"
        if not target.exists():
            made = self.folder / "new.o"
            test = source.stem.endswith("_test") or "testing" in source.parts
            common = ["-include", str(self.objects / COMMON)] if test else []
            self.compiler(source, *common, "-c", "-o", str(made))
            made.rename(target)
        return target


def must_run(command):
    subprocess.run(command, check=True, capture_output=True, text=True)


def run_to_end(command, timeout):
    """Exit status and output of a program. Its children, which a broken twin may leave waiting, end
    with it. Raises TimeoutExpired."""
    running = subprocess.Popen(
        [*DIES_WITH_US, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = running.communicate(timeout=timeout)
        return running.returncode, output
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


class Bench:
    """The tests that the selected twins concern, and how to run them."""

    def __init__(self, twins, scratch, options):
        self.options = options
        self.scratch = pathlib.Path(scratch)
        (self.scratch / "objects").mkdir()
        common = self.scratch / "objects" / COMMON
        common.write_text("#include <gtest/gtest.h>\n")
        must_run([options.cxx, *FLAGS, "-x", "c++-header", str(common), "-o", f"{common}.gch"])
        tree = self.new_tree()
        self.library = tree.sources(("base", "host", "backends", "windows", *PARTS_BY_HEADER), ())
        self.of_families = tree.sources(("svp", "runtime", "host/fibres"), ())
        tests = [
            t
            for t in tree.sources(("sync", "windows", "dsm", "svp", *MACHINES), ("_test",))
            if options.tests.search(str(t)) and not is_above_protocols(t)
        ]
        self.inputs = {source: tree.includes(source) for source in {*self.library, *self.of_families, *tests}}
        changed = {t.path for t in twins}
        self.tests = [t for t in tests if self.concerns(changed, t)]
        self.caught: collections.Counter[pathlib.Path] = collections.Counter()  # by test
        self.seconds: dict[pathlib.Path, float] = collections.defaultdict(float)  # to compile and run it
        self.unchanged = tree
        self.passes: set[tuple[pathlib.Path, str]] = (
            set()
        )  # (test program, one of its tests) that the unchanged tree passes
        self.asking = threading.Lock()

    def new_tree(self):
        return Tree(tempfile.mkdtemp(dir=self.scratch), self.scratch / "objects", self.options)

    def parts(self, test):
        """The sources of a test program: tests of sync do without windows, and those of windows
        that have processes of their own without the common ones."""
        folders = ("base", "host", "backends", "windows" if test.parts[0] == "svp" else test.parts[0])
        processes = f"{test.parts[0]}/testing/processes"
        left_out = "" if f"{processes}.h" in self.inputs[test] else f"{processes}.cpp"
        by_header = self.parts_by_header(test)
        others = [s for s in self.library if s.parts[0] in folders and s.parts[0] != "dsm" and s.parts[1] != "fibres"]
        return [test, *by_header, *(s for s in others if s not in by_header and str(s) != left_out)]

    def parts_by_header(self, test):
        """Those whose headers the test includes, or one of them does."""
        found, included = [], set(self.inputs[test])
        among = (
            self.of_families
            if test.parts[0] == "svp"
            else [s for s in self.library if s.parts[0] in ("dsm", "runtime")]
        )
        while more := [s for s in among if s not in found and self.header_of(s) in included]:
            found += more
            included.update(*(self.inputs[s] for s in more))
        return found

    @staticmethod
    def header_of(source):
        of_engines = source.parts[:2] == ("runtime", "engines")  # machines, and one file for each
        return str(source.with_name("machine_id.h") if of_engines else source.with_suffix(".h"))

    def concerns(self, changed, test):
        return any(changed & self.inputs[s] for s in self.parts(test))

    def run_test(self, tree, test, only="", left_out=()):
        """How a run of the test program failed, None if it passed. `only`: that test alone;
        `left_out`: all but those."""
        program = tree.folder / "program"
        objects = [tree.compile(s, self.inputs[s]) for s in self.parts(test)]
        families = test.parts[0] == "svp"
        libraries = ("-lboost_context", "-ldl") if families else ()
        common = ("-lgtest", "-lgtest_main", "-lpthread", "-lsodium")
        must_run([self.options.cxx, *map(str, objects), "-o", str(program), *common, *libraries])
        tests = only or tests_but(left_out, family_twins.TESTS if families else TESTS)
        try:
            status, output = run_to_end(
                [str(program), f"--gtest_filter={tests}", "--gtest_fail_fast", "--gtest_brief=1"], self.options.timeout
            )
        except subprocess.TimeoutExpired:
            return Failure(f"{test} (no end in {self.options.timeout} s)", endless=True)
        if status == 0:
            return None
        named = FAILED_TEST.search(output)
        return Failure(named[1], only=named[1]) if named else Failure(f"{test} (exit status {status})")

    def in_order(self, changed):
        """The tests that include one of the changed files. First those named after one and, of
        machines, those beside it; then those that took the least time for each twin that they caught."""
        names = {pathlib.Path(path).with_suffix("") for path in changed}
        folders = {name.parent for name in names}

        def order(test):
            named = test.with_name(test.stem.removesuffix("_test")) in names
            beside = test.parent in folders and test.parts[0] not in ("sync", "windows", "dsm", "svp")
            caught, seconds = self.caught[test], self.seconds[test]
            return not named, not beside, not caught, seconds / (caught or 1), "recorded" not in test.name

        return sorted((t for t in self.tests if self.concerns(changed, t)), key=order)

    def run_tests(self, tree, changed):
        """The failure that catches the changes, or an empty text; tests that find soon come first."""
        for test in self.in_order(changed):
            started = time.monotonic()
            failure = self.failure_that_repeats(tree, test)
            self.seconds[test] += time.monotonic() - started
            if failure:
                self.caught[test] += 1
                self.must_pass_unchanged(test, failure)
                return failure.text
        return ""

    def failure_that_repeats(self, tree, test):
        """Leaves out tests whose failure does not come again: those behind them were not run."""
        left_out: list[str] = []
        while failure := self.run_test(tree, test, left_out=left_out):
            if self.repeats(tree, test, failure):
                return failure
            if not failure.only or failure.only in left_out:
                return None
            left_out.append(failure.only)
        return None

    def repeats(self, tree, test, failure):
        """An endless program has failed all the time. Others have as many runs as there are attempts."""
        return failure.endless or any(self.run_test(tree, test, failure.only) for _ in range(self.options.attempts))

    def must_pass_unchanged(self, test, failure):
        """Raises NotJudged if the unchanged tree fails now and then, RuntimeError if it always does."""
        with self.asking:
            for only, runs in (("", 1), (failure.only, 1 + self.options.attempts)):
                for _ in range(0 if (test, only) in self.passes else runs):
                    failed = self.run_test(self.unchanged, test, only)
                    if failed:
                        self.must_pass_again(test, only, failed)
                        raise NotJudged(f"the unchanged tree fails {failed.text} now and then")
                self.passes.add((test, only))

    def must_pass_again(self, test, only, failed):
        if all(self.run_test(self.unchanged, test, only) for _ in range(self.options.attempts)):
            raise RuntimeError(f"the unchanged tree fails {failed.text}; nothing can be concluded")

    def try_twin(self, tree, twin):
        started = time.monotonic()
        path = tree.folder / twin.path
        original = path.read_text()
        path.write_text(original[: twin.start] + twin.replacement + original[twin.end :])
        caught = not_judged = ""
        try:
            for _ in range(self.options.attempts):
                caught = caught or self.run_tests(tree, {twin.path})
        except NotJudged as reason:
            not_judged = str(reason)
        except subprocess.CalledProcessError as error:
            raise RuntimeError(f"{twin.name} does not build:\n{error.stderr}") from error
        finally:
            path.write_text(original)
        return Outcome(twin, caught, time.monotonic() - started, not_judged)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="only list the twins")
    parser.add_argument("--only", metavar="REGEX", type=re.compile, default=re.compile(""))
    parser.add_argument(
        "--tests", metavar="REGEX", type=re.compile, default=re.compile(""), help="only test sources that match"
    )
    parser.add_argument("--slice", metavar="K/N", default="1/1", help=slices.HELP)
    parser.add_argument("--folders", nargs="+", default=["sync", "windows", "dsm", *MACHINES])
    parser.add_argument("--attempts", type=int, default=3, help="runs of all tests before a twin counts as survivor")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a test program")
    parser.add_argument("--jobs", type=int, choices=(1, 2), default=2)
    parser.add_argument("--json", metavar="FILE", help="one JSON line for each twin")
    parser.add_argument("--cxx", default=os.environ.get("CXX", "g++"))
    options = parser.parse_args()
    options.slice = slices.slice_of(options.slice, slices.today())
    if options.slice is None:
        parser.error(f"--slice: {slices.EXPECTED}")
    return options


def tests_but(left_out, tests):
    """GoogleTest's filter for them."""
    return f"{tests}-{':'.join(left_out)}" if left_out else tests


def run_all(twins, options, scratch):
    """Yields an Outcome for each twin."""
    bench = Bench(twins, scratch, options)
    local = threading.local()

    def run(twin):
        if not hasattr(local, "tree"):
            local.tree = bench.new_tree()
        return bench.try_twin(local.tree, twin)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        yield from pool.map(run, twins)


def report(outcome, lines):
    twin = outcome.twin
    end = "not judged" if outcome.not_judged else "caught" if outcome.caught_by else "SURVIVED"
    print(f"{end:10} {outcome.seconds:6.1f} s  {twin.name}  {outcome.caught_by or outcome.not_judged}", flush=True)
    record = {
        "kind": twin.kind,
        "file": twin.path,
        "line": twin.line,
        "statement": twin.statement,
        "caught_by": outcome.caught_by or None,
        "not_judged": outcome.not_judged or None,
        "seconds": round(outcome.seconds, 1),
    }
    lines.append(json.dumps(record) + "\n")


def main():
    options = parse_options()
    try:
        if options.json:
            files.check(pathlib.Path(options.json))
        return run_and_report(options)
    except UserError as error:
        print(f"broken_twins: {error}", file=sys.stderr)
        return 2


def run_and_report(options):
    number, of = options.slice
    twins = [t for t in find_twins(options.folders) if options.only.search(t.name)][number::of]
    print(f"slice {number + 1}/{of}: {len(twins)} twins", file=sys.stderr)
    if options.list:
        for twin in twins:
            print(twin.name)
        return 0
    outcomes: list[Outcome] = []
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="broken_twins.") as scratch:
        try:
            for outcome in run_all(twins, options, scratch):
                outcomes.append(outcome)
                report(outcome, lines)
        except RuntimeError as error:
            print(f"broken_twins: {error}", file=sys.stderr)
            return 2
        except subprocess.CalledProcessError as error:
            print(f"broken_twins: the unchanged tree does not build:\n{error.stderr}", file=sys.stderr)
            return 2
    if options.json:
        files.write(pathlib.Path(options.json), "".join(lines))
    for kind in KINDS:
        print_rate(kind, [outcome for outcome in outcomes if outcome.twin.kind == kind])
    print_rate("all", outcomes)
    return exit_status(outcomes)


def exit_status(outcomes):
    """One unlucky run of a loaded host turns nothing red; a survivor does, and luck as a rule."""
    judged = [outcome for outcome in outcomes if not outcome.not_judged]
    if not all(outcome.caught_by for outcome in judged):
        return 1
    return 0 if 2 * len(judged) >= len(outcomes) else 2


def print_rate(what, outcomes):
    if outcomes:
        caught = sum(bool(outcome.caught_by) for outcome in outcomes)
        not_judged = sum(bool(outcome.not_judged) for outcome in outcomes)
        survived = len(outcomes) - caught - not_judged
        print(
            f"{what}: {len(outcomes)} twins, {caught} caught ({100 * caught / len(outcomes):.0f} %), "
            f"{survived} survived" + (f", {not_judged} not judged" if not_judged else "")
        )


if __name__ == "__main__":
    sys.exit(main())
