# SPDX-License-Identifier: Apache-2.0
"""The broken twins of svp/ that tools/broken_twins.py makes, and the tests that judge them.

told      A step by which one part of the run-time of families tells another one is left out: a
          message, a kill or an end is not passed on, an entry or a number not given back, a channel
          not closed, memory not published or refreshed, arguments not bound (TOLD).
order     The bytes of a message are written after the statement that announces them; those of a
          view are copied after their publish, or before their refresh (ORDERED).
edge      In the deque, the rings, the heap, bytes and ranges, a comparison includes its bound or
          excludes it, against the source.
check     The sentence to a caller's mistake is left out.

Left out, with the reason:
- `edge` of a loop over all sites or of a range that is known not to be empty: it reads behind the
  end; of capacities and quarters (COSTS): room is made, or told of, a step earlier or later;
- `off by one` of a word, or of entries that are words: a byte less is in the same line;
- the fences of sleep_handshake.h, and the steps of turns.h, alarm.h and handover.h: tests with threads find
  them by luck alone. The explorer finds all of them (litmus/programs/families/families.cpp has a twin each);
- the orders of atomic operations, which the processors of this host keep in any case, and locks
  within a process: the thread sanitizer judges those;
- `check` of the run-time itself ("family: ..."): a caller cannot bring it about, and the twins of
  the counts that it looks at fall by it;
- `notify` and bells: without them messages wait for the end of a bounded sleep;
- svp/api, svp/language and svp/links/mpi, whose tests start programs.
"""

from collections.abc import Iterator

from clang.cindex import CursorKind
from syntax_tree import Node
from twin_cuts import Cut, calls_in, calls_named, comparisons, exchanged, is_call, leaving_out, moved

FOLDERS = ("channels", "family", "links", "places", "remote", "scheduler", "range.h")
NOT_JUDGED = ("mpi", "link.h", "sleep_handshake.h")  # link.h: a contract
TOLD = calls_in("""
call open.call open->call: ask_kill ask_sync
family.service: take
family: kill
-: settle advance close_if_ended orphan pass_kills_on end_site note_taken drop_kept poke_stopped
free_: push_back
Pool: finish_elsewhere retire_alarm
frame_: bind
reach: publish refresh unmap
last_ first_ cell_: close
end: end pass_on
""")
# A statement that writes or copies bytes, and those of which the last announces or fetches them.
WRITTEN = calls_in("detail: write_letter")
ANNOUNCED = calls_in("core_: store")
PUBLISHED = calls_in("core_: publish")
REFRESHED = calls_in("core_: refresh")
EDGED = ("split_deque.h", "ring_link.h", "heap.cpp", "bytes.h", "range.h")
# Ends of comparisons.
COSTS = (">= size", "> capacity_", ">= layout_.ring_bytes / 4", ">= 8 * line", "head_ > 0", "step > 0", "limit > start")
OF_THE_RUN_TIME = '"family: '
# For GoogleTest: the trees have one machine.
TESTS = "-*/coherent:*/flushed"


def is_judged(path):
    """`path`: of a source of svp/, relative to the root."""
    return path.parts[1] in FOLDERS and not set(NOT_JUDGED) & set(path.parts)


def late_statements(tree: Node) -> Iterator[Cut]:
    for statements in tree.blocks():
        for at, first in enumerate(statements[:-1]):
            second = statements[at + 1]
            if is_call(first, WRITTEN):
                announced = next((node for node in statements[at + 1 : at + 3] if is_call(node, ANNOUNCED)), None)
                if announced:
                    yield exchanged(first, announced)
            elif (copies(first) and is_call(second, PUBLISHED)) or (is_call(first, REFRESHED) and copies(second)):
                yield exchanged(first, second)


def copies(statement: Node) -> bool:
    return statement.kind == CursorKind.IF_STMT and statement.children[0].text == "copies_views"


def moved_edges(tree: Node) -> Iterator[Cut]:
    for comparison in comparisons(tree):
        if not comparison.text.endswith(COSTS) and not of_loop(comparison):
            yield moved(comparison)


def of_loop(node: Node) -> bool:
    """In the head of one, not in its body."""
    while node.parent is not node:
        if node.parent.kind == CursorKind.FOR_STMT:
            return node is not node.parent.children[-1]
        node = node.parent
    return False


def missing_checks(tree: Node) -> Iterator[Cut]:
    for check in calls_named(tree, "TOMBOLO_CHECK"):
        if OF_THE_RUN_TIME not in check.text:
            yield check.start, check.end, "(void)0"


KINDS = {"told": leaving_out(TOLD), "order": late_statements, "edge": moved_edges, "check": missing_checks}
