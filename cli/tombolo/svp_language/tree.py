# SPDX-License-Identifier: Apache-2.0
"""libclang's tree of a marked source: parsing, and functions that its Python names do not offer."""

import ctypes

from clang import cindex
from clang.cindex import Cursor, CursorKind, TypeKind

from tombolo.svp_language.messages import Message
from tombolo.svp_language.source import Source

# Declarations of the marks (keywords.py).
MARKS = """
typedef const long svp_index_type;
extern const struct svp__none_type { int none; } svp__none;
void svp__create(int, ...);
int svp__sync(int, ...);
void svp__kill(int, ...);
void svp__break(int, ...) __attribute__((noreturn));
"""
MARKS_FILE = "/tombolo/svp_marks.h"  # not on any disk
# Types of GCC's C library that clang has other names for. Atomic variables are plain ones here: the
# functions in GCC's headers are for both.
OPTIONS = [
    "-x", "c", "-std=gnu11", "-w", "-ferror-limit=0", "-D_Float128=long double",
    "-D_Float64x=long double", "-D_Float64=double", "-D_Float32x=double",
    "-D_Float32=float", "-D_Atomic=", "-include", MARKS_FILE,
]  # fmt: skip
NO_LOOP = "'break' statement not in loop or switch statement"
# malloc and the like, which GCC knows, and warns of.
UNDECLARED_OF_LIBRARY = "call to undeclared library function"

ASSIGN = 22
COMMA = 33
LOGICAL = (20, 21)
ADDRESS = 5
POST = (1, 2)
STEPS = {1: "+", 2: "-", 3: "+", 4: "-"}


def parsed(source: Source, file: str) -> cindex.TranslationUnit:
    return cindex.Index.create().parse(
        file,
        args=OPTIONS,
        unsaved_files=[(file, source.marked().encode("latin-1")), (MARKS_FILE, MARKS.encode())],
    )


def breaks_outside(unit: cindex.TranslationUnit, source: Source) -> list:
    """The pieces `break` that stand in no loop or switch."""
    found = [d.location.offset for d in unit.diagnostics if d.spelling == NO_LOOP]
    return [piece for offset in found if (piece := source.piece_at(offset))]


def errors(unit: cindex.TranslationUnit, source: Source) -> list[Message]:
    """Clang's, in the program; headers of GCC are for GCC to judge."""
    found = []
    for diagnostic in unit.diagnostics:
        if diagnostic.severity == cindex.Diagnostic.Fatal:
            raise RuntimeError(f"libclang: {diagnostic.spelling}")
        offset = diagnostic.location.offset
        known = diagnostic.spelling.startswith(UNDECLARED_OF_LIBRARY)
        if diagnostic.severity < cindex.Diagnostic.Error or known:
            continue
        if source.pieces and source.is_of_program(offset):
            text = diagnostic.spelling.partition("; ISO C99")[0]
            found.append(Message(source.position_at(offset), _in_the_language(text)))
    return found


def _in_the_language(text: str) -> str:
    return text.replace("'svp_index_type' (aka 'const long')", "'index'")


# ---- Cursors -----------------------------------------------------------------------------------


def children(cursor: Cursor) -> list[Cursor]:
    return list(cursor.get_children())


def start(cursor: Cursor) -> int:
    return cursor.extent.start.offset


def end(cursor: Cursor) -> int:
    return cursor.extent.end.offset


def key(cursor: Cursor) -> tuple[int, int, int]:
    """Tells expressions and declarations of one tree apart; conversions that are not written alike."""
    return start(cursor), end(cursor), cursor.kind.value


def binary(cursor: Cursor) -> int:
    """The operator of a binary expression: CXBinaryOperatorKind."""
    return cindex.conf.lib.clang_getCursorBinaryOperatorKind(cursor)


def unary(cursor: Cursor) -> int:
    return cindex.conf.lib.clang_getCursorUnaryOperatorKind(cursor)


def peeled(cursor: Cursor) -> Cursor:
    """Without brackets and conversions that are not written."""
    while cursor.kind in (CursorKind.PAREN_EXPR, CursorKind.UNEXPOSED_EXPR):
        inner = children(cursor)
        if len(inner) != 1:
            break
        cursor = inner[0]
    return cursor


def constant(cursor: Cursor) -> int | None:
    """The value of an integer constant expression."""
    lib = cindex.conf.lib
    lib.clang_Cursor_Evaluate.restype = ctypes.c_void_p
    lib.clang_EvalResult_getAsLongLong.restype = ctypes.c_longlong
    result = lib.clang_Cursor_Evaluate(cursor)
    if not result:
        return None
    result = ctypes.c_void_p(result)
    integer = lib.clang_EvalResult_getKind(result) == 1
    value = lib.clang_EvalResult_getAsLongLong(result) if integer else None
    lib.clang_EvalResult_dispose(result)
    return value


def annotated(cursor: Cursor, name: str) -> bool:
    return any(child.kind == CursorKind.ANNOTATE_ATTR and child.spelling == name for child in cursor.get_children())


# ---- Types -------------------------------------------------------------------------------------

INTEGERS = {
    TypeKind.BOOL, TypeKind.CHAR_U, TypeKind.UCHAR, TypeKind.USHORT, TypeKind.UINT, TypeKind.ULONG,
    TypeKind.ULONGLONG, TypeKind.CHAR_S, TypeKind.SCHAR, TypeKind.SHORT, TypeKind.INT, TypeKind.LONG,
    TypeKind.LONGLONG, TypeKind.ENUM,
}  # fmt: skip
FAMILY = "struct svp_family"
PLACE = "struct svp_place"


def plain(type_: cindex.Type) -> str:
    """The canonical type without qualifiers of its own; of an array, the pointer that it becomes."""
    if type_.get_canonical().kind in ARRAYS:
        return f"{type_.get_canonical().element_type.spelling} *"
    return unqualified(type_.get_canonical())


def unqualified(type_: cindex.Type) -> str:
    text = type_.spelling
    if type_.get_canonical().kind == TypeKind.POINTER:
        while text.endswith(("const", "volatile", "restrict")):
            text = text.removesuffix("const").removesuffix("volatile").removesuffix("restrict").rstrip()
        return text
    words = text.split(" ")
    while words[0] in ("const", "volatile"):
        words = words[1:]
    return " ".join(words)


def is_family(type_: cindex.Type) -> bool:
    return plain(type_) == FAMILY


def element(type_: cindex.Type) -> cindex.Type:
    """Of an array, however many dimensions it has."""
    while type_.get_canonical().kind in ARRAYS:
        type_ = type_.get_canonical().element_type
    return type_


ARRAYS = {TypeKind.CONSTANTARRAY, TypeKind.VARIABLEARRAY, TypeKind.INCOMPLETEARRAY}


def is_pointer(type_: cindex.Type) -> bool:
    """libclang gives a parameter the type that is written: an array."""
    return type_.get_canonical().kind == TypeKind.POINTER or type_.get_canonical().kind in ARRAYS


def spelled(type_: cindex.Type) -> str:
    """Of a parameter, for a declaration of another one."""
    if type_.get_canonical().kind in ARRAYS:
        return f"__typeof__({type_.get_canonical().element_type.spelling}) *"
    return unqualified(type_)


def is_integer(type_: cindex.Type) -> bool:
    return type_.get_canonical().kind in INTEGERS


def shown(type_: cindex.Type) -> str:
    """As the program names it."""
    names = {"svp_index_type": "index", "svp_family": "family", "svp_place": "place"}
    return names.get(unqualified(type_), type_.spelling)
