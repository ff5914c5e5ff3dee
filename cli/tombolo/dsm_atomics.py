# SPDX-License-Identifier: Apache-2.0
"""Looks for atomic instructions in a program that was not rebuilt.

Where each process caches pages, such an instruction changes the process's own copy: two threads that
count by it lose counts. Programs that `tombolo-cc` has compiled call the runtime instead. Instructions
with a lock are seen, and exchanges with memory. A flag that is loaded and stored has neither.

Instructions are decoded, not read as text: names of the program, such as `lock`, do not matter.
"""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tombolo import compilers, files, hints, paths, shared_libraries
from tombolo.errors import UserError

# Their locks are called by Pthreads' names, and their own variables are private to each process.
SYSTEM = re.compile(
    r"(ld-linux.*|linux-vdso|libc|libm|libmvec|libpthread|libdl|librt|libresolv|libutil|libanl|libnss_.*"
    r"|libstdc\+\+|libgcc_s|libtombolo_.*)\.so.*"
)
# Of dsm/compiler/default_calls.c: its atomic operations are calls.
REBUILT = "tombolo_calls"
MOST = 100  # places of one module
VERSION = 2


@dataclass(frozen=True)
class Place:
    """An atomic instruction."""

    module: str
    function: str  # empty: it has no name in the file
    address: int

    def __str__(self) -> str:
        where = f"{Path(self.module).name}+{self.address:#x}"
        return f"{self.function} ({where})" if self.function else where


def check(program: Path) -> None:
    """A UserError that names the places, if the program or one of its libraries has any."""
    # The first part that has any: the others may be large.
    places = next(filter(None, map(places_in, modules(program))), [])
    if not places:
        return
    functions = list(dict.fromkeys(place.function or str(place) for place in places))
    first = {place.function or str(place): place for place in reversed(places)}
    named = ", ".join(str(first[function]) for function in functions[:3])
    more = " and more" if len(functions) > 3 else ""
    raise UserError(
        f"{program.name} has atomic instructions: {named}{more}. With transport window each process has its "
        "own copy of a page, and threads that count or wait by such instructions lose updates: a program that "
        f"is not rebuilt has to synchronize by Pthreads alone. Compile it with {compilers.called('cc')} or "
        f"{compilers.called('c++')}, run it with --transport map, or, if no two of its threads use them on the "
        "same variable, with --atomic-instructions ignore"
    )


def modules(program: Path) -> list[Path]:
    """The program and those of its libraries that are not the system's."""
    found = shared_libraries.of(program).values()
    return [program, *(file for file in found if file and not SYSTEM.fullmatch(file.name))]


def places_in(module: Path) -> list[Place]:
    """None for a module that was rebuilt. Kept from one run to the next: it may take a second."""
    known = paths.home() / "build" / "dsm-atomics" / f"{module.name}.json"
    made_from = _identity(module)
    try:
        kept = json.loads(known.read_text())
        if kept["of"] == made_from:
            places = [Place(**place) for place in kept["places"]]
            types = [(type(each.module), type(each.function), type(each.address)) for each in places]
            if all(each == (str, str, int) for each in types):
                return places
    except (OSError, ValueError, KeyError, TypeError):
        pass
    found = list(_look(module))
    _keep(known, {"of": made_from, "places": [vars(place) for place in found]})
    return found


def _identity(module: Path) -> list:
    path = module.resolve()
    made = path.stat()
    return [VERSION, str(path), made.st_size, made.st_mtime_ns]


def _keep(file: Path, content: dict) -> None:
    try:
        files.folder(file.parent)
        files.write(file, json.dumps(content))
    except UserError:
        pass  # then the next run looks again


def _look(module: Path) -> Iterator[Place]:
    try:
        with files.ending_later():  # an exception in the middle of its libraries aborts the process
            from tombolo.machine_code import Binary
    except ImportError as error:
        raise UserError(
            f"the decoder by which a program's atomic instructions are looked for is missing ({error}): "
            f"{hints.here(hints.DECODER, hints.DECODER_OF_PACKAGE)}; --atomic-instructions ignore does not look"
        ) from error
    try:
        binary = Binary(module)
    except ValueError:
        return  # as `ldd` of this host cannot start it either
    if binary.has_section(REBUILT):
        return
    for function, address in itertools.islice(binary.atomic_instructions(), MOST):
        yield Place(str(module), function, address)
