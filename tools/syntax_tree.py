# SPDX-License-Identifier: Apache-2.0
"""libclang's tree of C++ sources, as the operators of broken twins look at it: calls, statements
and comparisons, each with its place in the file.

All sources are parsed as one, so that each header is read once. A name that stays unknown (an
instruction of the processor) costs the statement that it is in, not those around it. Offsets count
bytes, which are characters: the sources are ASCII.
"""

import dataclasses
import functools
import pathlib
import subprocess
from collections.abc import Iterator

import option_table
from clang import cindex
from clang.cindex import CursorKind

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Macros around expressions, by their headers; here they are functions, so that the tree has calls.
AS_FUNCTIONS = {"base/check.h": "TOMBOLO_CHECK", "base/status.h": "TOMBOLO_TRY"}
# The headers of x86's instructions are long, and those of GCC are not for clang.
OPTIONS = ("-std=c++20", "-w", "-ferror-limit=0", "-D_IMMINTRIN_H_INCLUDED", "-D_X86INTRIN_H_INCLUDED")
KEEP_GOING = 0x200  # after a header that is not there
MEMBER_OF = ("::", "->", ".")
# Statements that hold others, besides a block.
CONTROL = {
    CursorKind.IF_STMT, CursorKind.FOR_STMT, CursorKind.WHILE_STMT, CursorKind.DO_STMT,
    CursorKind.CXX_FOR_RANGE_STMT, CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT,
}  # fmt: skip


@dataclasses.dataclass(eq=False)
class Node:
    kind: CursorKind
    source: str  # all of the file
    start: int
    end: int
    parent: "Node" = dataclasses.field(init=False)  # of a file itself
    children: list["Node"] = dataclasses.field(default_factory=list)

    @property
    def text(self) -> str:
        return self.source[self.start : self.end]

    @functools.cached_property
    def all(self) -> list["Node"]:
        """Itself and its parts, in the order of the source."""
        return [self, *(node for child in self.children for node in child.all)]

    @functools.cached_property
    def callee(self) -> tuple[str, str]:
        """Of a call with parentheses, as written: the object (without an index), class or namespace,
        which may be empty, and the name. Both are empty for all else."""
        callee = self.children[0] if self.kind == CursorKind.CALL_EXPR and self.children else self
        if callee.start != self.start or callee.behind != "(" or callee is self:
            return "", ""
        while callee.kind == CursorKind.UNEXPOSED_EXPR and len(callee.children) == 1:
            callee = callee.children[0]
        for part in reversed(callee.children):
            before, name = callee.source[callee.start : part.end], callee.source[part.end : callee.end]
            if name.startswith(MEMBER_OF) or before.endswith(MEMBER_OF):
                return before.rstrip(".:->").partition("[")[0], name.lstrip(".:->")
        return "", callee.text

    @property
    def receiver(self) -> str:
        return self.callee[0]

    @property
    def name(self) -> str:
        return self.callee[1]

    @functools.cached_property
    def operator(self) -> str:
        """Of an expression with two operands: the text between these."""
        if self.kind not in (CursorKind.BINARY_OPERATOR, CursorKind.CALL_EXPR) or len(self.children) < 2:
            return ""
        return self.source[self.children[0].end : self.children[-1].start].strip()

    @property
    def behind(self) -> str:
        """The first character behind it that is no space."""
        return self.source[self.end : self.end + 200].lstrip()[:1]

    @property
    def end_of_statement(self) -> int:
        return self.source.index(";", self.end) + 1 if self.behind == ";" else self.end

    @property
    def is_statement(self) -> bool:
        node = self
        while node.parent.kind == CursorKind.UNEXPOSED_EXPR:
            node = node.parent
        if node.behind != ";":
            return False
        if node.parent.kind == CursorKind.FOR_STMT:
            return node is node.parent.children[-1]
        return node.parent.kind == CursorKind.COMPOUND_STMT or node.parent.kind in CONTROL

    def blocks(self) -> Iterator[list["Node"]]:
        """The statements of each block in it."""
        return (node.children for node in self.all if node.kind == CursorKind.COMPOUND_STMT)


def trees(sources: dict[str, str]) -> dict[str, Node]:
    """`sources`: texts by their paths below the root."""
    for path, text in sources.items():
        assert text.isascii(), f"{path} is not ASCII: its offsets would not be those of characters"
    unit = parsed(sources)
    files = {path: file_of(text) for path, text in sources.items()}
    named = {str(ROOT / path): node for path, node in files.items()}
    for cursor in unit.cursor.get_children():
        if cursor.location.file and cursor.location.file.name in named:
            add(named[cursor.location.file.name], cursor)
    return files


def file_of(text: str) -> Node:
    node = Node(CursorKind.TRANSLATION_UNIT, text, 0, len(text))
    node.parent = node
    return node


def parsed(sources: dict[str, str]) -> cindex.TranslationUnit:
    main = str(ROOT / "all_sources.cpp")  # on no disk, as the headers of options
    includes = "".join(f'#include "{path}"\n' for path in sources)
    headers = {path: (ROOT / path).read_text() + as_function(macro) for path, macro in AS_FUNCTIONS.items()}
    texts = {main: includes, **headers, **option_table.headers(option_table.load()), **sources}
    return cindex.Index.create().parse(
        main,
        args=[*OPTIONS, f"-I{ROOT}", "-isystem", headers_of_compiler()],
        unsaved_files=[(str(ROOT / path), text) for path, text in texts.items()],
        options=KEEP_GOING,
    )


def as_function(macro: str) -> str:
    return f"#undef {macro}\ntemplate <class... T> void {macro}(T&&...);\n"


def add(parent: Node, cursor: cindex.Cursor) -> None:
    extent = cursor.extent
    node = Node(cursor.kind, parent.source, extent.start.offset, extent.end.offset)
    node.parent = parent
    parent.children.append(node)
    for child in cursor.get_children():
        add(node, child)


@functools.cache
def headers_of_compiler() -> str:
    """Those of <cstddef> and the like, which the package of libclang has not."""
    command = ["g++", "-print-file-name=include"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
