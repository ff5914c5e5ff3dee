# SPDX-License-Identifier: Apache-2.0
"""The broken twins of sync/, windows/, dsm/ and the machines that tools/broken_twins.py makes.

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
"""

from collections.abc import Iterator

from clang.cindex import CursorKind
from syntax_tree import Node
from twin_cuts import Cut, calls, calls_in, calls_named, comparisons, exchanged, is_call, leaving_out, moved

REMOVED = calls_in("""
core core_: publish refresh drain fence renew_pieces
own_: publish_all refresh_all note_put announce_puts
-: publish_all
""")
# The steps of a protocol, in dsm/.
PROTOCOL = calls_in("""
transport_: put accumulate_xor expose put_update complete
store_: make_twin forbid_writes invalidate
directory_: set_keeper clear_keeper mark_cleared lock unlock raise_version
notices notices_: append
sender_: send keep try_keep mark_cleared announce announce_to_some give_back give_back_changed
- self(): wait_for_all send_stores end_region end_part tell_of_spans append_told find_readers
- self(): catch_up drop_old apply_updates collect bring_home ask drop_all_old raise
""")
# The steps of a page store, in dsm/pages/.
VIEW = calls_in("""
closing closing_: add close
memory_ pages_.memory_: change discard close fill
pages_: settle
-: become settle note_miss copy
std: rotate
""")
# The calls of objects of dsm/threads/ and dsm/memory/paged_memory.h on their parts.
CALLED = calls_in("""
memory_: tell learn release pause paused_enough fetch_add give_up_
backoff_: reset
trace_: add
protocol_: record evict poll tell learn barrier close end_span begin_span try_begin_span try_hand_over
protocol_: bring_together write_miss read_miss interrupt_by reduce
misses_ MissHandler: fail
unfinished_: brought
store_: on_miss
-: open_for_stores
host: leave_interrupts
observer_.heat: fault
this: interrupted_by
reads_ writes_: add
""")
RENEWALS = calls_in("- pages_: renew")
# Conditions that keep kinds of windows apart.
SCOPE = {"!program_reads_peers_", "peers_too_", "!peers_too_", "exclusive_held_ != 0"}
# The machines' operations on lines.
HARDWARE = calls_in("""
flush host::flush: publish refresh renew_pieces
written_: publish
by.write_back by.invalidate by.renew: apply
""")
# `stale`, by the operations on its lines.
ON_LINES = calls_in("- caches_: write_back drop fill report")
LINES_OF = {
    "offset + bytes - start": "offset + bytes - start - 1",
    "span().line_of(offset + bytes - 1) + 1": "span().line_of(offset + bytes - 1)",
    "lost != 0": "lost != 0 && !evicted",
}
# A statement that must come before one that announces it.
EARLIER = calls_in("""
core_: drain publish
own_: publish_all announce_puts
-: publish_all end_passive_epoch body
""")
LATER = ("announce_puts", "arrive_and_wait", "with_locks", "release")  # of any receiver
LATER_OF = calls_in("""
active_: post complete
core_: refresh
""")
RANGES = calls_in("core core_: publish refresh")
GUARDS = {"Guard", "Closed", "Call", "RuntimeCall"}
# At the memory's size an address has no bytes in it either way; the bound of a wait costs time.
BOUNDS_OF_COST = {"size", "short_wait_ns"}


def swaps(tree: Node) -> Iterator[Cut]:
    for statements in tree.blocks():
        for at, first in enumerate(statements[:-1]):
            after = followers(statements[at + 1 :])
            if must_be_earlier(first) and any(map(is_later, after)):
                yield exchanged(first, after[-1])
            elif first.kind == CursorKind.DECL_STMT and any(calls_named(after[0], "wrote_to")):
                yield exchanged(first, after[0])


def followers(statements: list[Node]) -> list[Node]:
    """The next statement, with the blocks before it, which keep threads apart while it is prepared."""
    last = next((at for at, node in enumerate(statements) if node.kind != CursorKind.COMPOUND_STMT), 0)
    return statements[: last + 1]


def must_be_earlier(statement: Node) -> bool:
    """A call itself, under a condition, or for a value that is kept."""
    node = statement
    while node.children and node.kind in (CursorKind.IF_STMT, CursorKind.DECL_STMT, CursorKind.VAR_DECL):
        node = node.children[-1]
    return is_call(node, EARLIER)


def is_later(statement: Node) -> bool:
    return any(calls_named(statement, *LATER)) or any(calls(statement, LATER_OF))


def ranges_cut_short(tree: Node) -> Iterator[Cut]:
    for call in calls(tree, RANGES):
        if not of_words(call.children[-1]):
            yield call.start, call.end, call.text[:-1] + " - 1)"


def of_words(size: Node) -> bool:
    """A byte less of a word, or of entries that are words, is in the same line."""
    return size.kind == CursorKind.CXX_UNARY_EXPR or (size.operator == "*" and of_words(size.children[-1]))


def early_statements(tree: Node) -> Iterator[Cut]:
    for statements in tree.blocks():
        ends = [0, *(node.end_of_statement for node in statements)]
        for first, second, end_before in zip(statements, statements[1:], ends, strict=False):
            comment = tree.source[end_before or first.parent.start : first.start]
            if "// Before " in comment:
                middle, end = first.end_of_statement, second.end_of_statement
                yield first.start, end, f"{tree.source[middle:end].strip()} {tree.source[first.start : middle]}"


def missing_guards(tree: Node) -> Iterator[Cut]:
    for node in tree.all:
        if node.kind == CursorKind.VAR_DECL and node.children and is_guard(node):
            yield node.start, node.end, "(void)0"


def is_guard(variable: Node) -> bool:
    return variable.children[0].text in GUARDS or variable.text.endswith("lock_guard guard(refreshing_)")


def moved_bounds(tree: Node) -> Iterator[Cut]:
    return (moved(node) for node in comparisons(tree) if node.children[-1].text not in BOUNDS_OF_COST)


def conditions(tree: Node) -> Iterator[Cut]:
    """A part of a conjunction goes with its operator."""
    for node in tree.all:
        if node.text in SCOPE and node.parent.operator in ("&&", "||"):
            left, right = node.parent.children
            yield (node.start, right.start, "") if node is left else (left.end, node.end, "")
        elif node.text in SCOPE and node.parent.kind in (CursorKind.IF_STMT, CursorKind.RETURN_STMT):
            yield node.start, node.end, "true" if node.text.startswith("!") else "false"


def idle_machines(tree: Node) -> Iterator[Cut]:
    yield from leaving_out(HARDWARE)(tree)
    yield from leaving_out(ON_LINES)(tree)
    for node in tree.all:
        if node.text in LINES_OF:
            yield node.start, node.end, LINES_OF[node.text]


def ranges_without_their_last_line(tree: Node) -> Iterator[Cut]:
    for call in calls(tree, HARDWARE):
        if call.name == "apply":
            yield call.start, call.end, f"{call.text[:-1]} - line_bytes)"
        elif call.name in ("publish", "refresh"):
            yield call.start, call.end, f"{call.text[:-1]} - std::min<std::size_t>({call.children[-1].text}, 64))"


KINDS = {
    "removal": leaving_out(REMOVED),
    "step": leaving_out(PROTOCOL),
    "view": leaving_out(VIEW),
    "swap": swaps,
    "off by one": ranges_cut_short,
    "early": early_statements,
    "unrenewed": leaving_out(RENEWALS, "true"),
    "guard": missing_guards,
    "call": leaving_out(CALLED),
    "bound": moved_bounds,
    "condition": conditions,
    "machine": idle_machines,
    "line short": ranges_without_their_last_line,
}
