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

import re

from twin_text import closing, line_at

FOLDERS = ("channels", "family", "links", "places", "remote", "scheduler", "range.h")
NOT_JUDGED = ("mpi", "link.h", "sleep_handshake.h")  # link.h: a contract
STATEMENT = r"(?:(?<=    )|(?<=[;{)] ))"  # at its beginning
TOLD = re.compile(
    r"\b(?:open->|open\.)?call(?:->|\.)(?:ask_kill|ask_sync)\s*\((?=\)|reach_\))"
    r"|" + STATEMENT + r"settle\s*\("
    r"|\bfamily\.service\.take\s*\(|" + STATEMENT + r"family\.kill\s*\((?=\))"
    r"|" + STATEMENT + r"(?:advance|close_if_ended|orphan)\s*\((?=open\)|family\)|\*open\))"
    r"|" + STATEMENT + r"(?:pass_kills_on|end_site)\s*\("
    r"|\bfree_\.push_back\s*\((?=number\);\n    Pool)"
    r"|" + STATEMENT + r"Pool::(?:finish_elsewhere|retire_alarm)\s*\("
    r"|\bframe_->bind\s*\(|\breach\.(?:publish|refresh|unmap)\s*\("
    r"|\b(?:last_|first_|cell_)\.close\s*\((?=\))|(?<=\{ )end\.(?:end|pass_on)\s*\("
    r"|" + STATEMENT + r"(?:note_taken|drop_kept|poke_stopped)\s*\("
)
COMMENT = re.compile(r"//[^\n]*")
# A statement, and behind it the one that announces or fetches its bytes.
LETTER = r"(?P<first>detail::write_letter\([^;]*;)(?P<between>\s+)"
ORDERED = (
    re.compile(LETTER + r"(?P<second>way\.sent \+=[^;]*;\s*core_\.store[^;]*;)"),
    re.compile(LETTER + r"(?P<second>core_\.store[^;]*;)"),
    re.compile(r"(?P<first>if constexpr \(copies_views\)[^;]*;)(?P<between>\s+)(?P<second>core_\.publish[^;]*;)"),
    re.compile(
        r"(?P<first>core_\.refresh\(place, bytes\);)(?P<between>\s+)(?P<second>if constexpr \(copies_views\)[^;]*;)"
    ),
)
EDGED = ("split_deque.h", "ring_link.h", "heap.cpp", "bytes.h", "range.h")
BOUND = re.compile(r"(?<=[\w)\]] )(?:<=|>=|<|>)(?= [\w(])")
COSTS = re.compile(
    r"\bfor \(|>= layout_\.ring_bytes / 4|ring_bytes >= 8|> capacity_|\bhead_ > 0|\bstep > 0|\bstep == 1|>= size[;)]"
)
CHECK = re.compile(r"\bTOMBOLO_CHECK\s*\(")
OF_THE_RUN_TIME = '"family: '
SAME_LINE = re.compile(r"sizeof (?:entry|sender|letter\))|\(upto - split_\)")
# For GoogleTest: the trees have one machine.
TESTS = "-*/coherent:*/flushed"


def is_judged(path):
    """`path`: of a source of svp/, relative to the root."""
    return path.parts[1] in FOLDERS and not set(NOT_JUDGED) & set(path.parts)


def missing_steps(code, _):
    """(start, end, replacement), as all kinds of broken_twins.py."""
    for call in TOLD.finditer(code):
        yield call.start(), closing(code, call.end() - 1), "(void)0"


def late_statements(code, text):
    for pattern in ORDERED:
        for pair in pattern.finditer(code):
            first, between, second = (text[slice(*pair.span(part))] for part in ("first", "between", "second"))
            # Without the comment in between, behind which the announcement would be one, too.
            yield pair.start(), pair.end(), second + COMMENT.sub("", between) + first


def moved_edges(code, text):
    other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
    for bound in BOUND.finditer(re.sub(r"(?m)^\s*(?:#|template).*", lambda m: " " * len(m.group()), code)):
        if not COSTS.search(line_at(code, bound.start())):
            yield bound.start(), bound.end(), other[bound.group()]


def missing_checks(code, text):
    for check in CHECK.finditer(code):
        end = closing(code, check.end() - 1)
        if OF_THE_RUN_TIME not in text[check.start() : end]:
            yield check.start(), end, "(void)0"
