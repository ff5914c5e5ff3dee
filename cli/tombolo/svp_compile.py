# SPDX-License-Identifier: Apache-2.0
"""`tombolo-svpc`: compiles programs in the language of families (002 section 3.1).

    tombolo-svpc [OPTIONS] FILE.c... [-o PROGRAM]

It takes the options of a C compiler, and these:

    --emit-cpp   write the C and the C++ of each FILE to FILE.svp.i and FILE.svp.cpp, and compile nothing
    --show       print the commands before they run
    --help       show this text

$CC and $CXX name other compilers than cc and c++. To see the C compiler's options: cc --help
"""

import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tombolo import ending, files, hints, libraries, svp
from tombolo.errors import UserError

if TYPE_CHECKING:  # the parser may be missing
    from tombolo.svp_language.translate import Translation

HEADER = "tombolo/svp_program.h"
SOURCES = (".c", ".svp")
LINKED = (".o", ".a", ".so")
# Options whose value may be the next argument, by their step.
PREPROCESSING = ("-D", "-U", "-I", "-include", "-imacros", "-isystem", "-iquote", "-idirafter")
LINKING = ("-l", "-L", "-Xlinker", "-T", "-u", "-z")
# Joined to their value: those of further steps than the compilation of C.
OF_BOTH_LANGUAGES = ("-O", "-g", "-m", "-fsanitize", "-fno-omit-frame-pointer", "-pthread", "-fPI", "-fpi")
OF_PREPROCESSING = ("-std=", "-m", "-pthread", "-f", "-ansi", "-nostdinc")
OF_LINKING = ("-Wl,", "-static", "-rdynamic", "-s", "-shared", "-pie", "-no-pie")
# Needed by a translated program: a thread that is ended is left by an exception of C++.
FOR_C = ["-fexceptions", "-Wno-unused-value", "-Wno-error=implicit-function-declaration"]


@dataclass
class Request:
    """The arguments of one call."""

    sources: list[Path] = field(default_factory=list)
    objects: list[str] = field(default_factory=list)  # and libraries, in their order
    output: Path | None = None
    preprocessing: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    linking: list[str] = field(default_factory=list)
    only_objects: bool = False
    emit: bool = False
    show: bool = False


def svpc() -> None:
    """The entry point of `tombolo-svpc`."""
    main("tombolo-svpc", sys.argv[1:])


def main(name: str, arguments: Sequence[str]) -> None:
    """Compiles, and ends the process."""
    files.end_in_order()
    with ending.in_order(name):
        sys.exit(compile_all(name, arguments))


def compile_all(name: str, arguments: Sequence[str]) -> int:
    """The exit status; mistakes of a program were printed."""
    if not arguments or arguments[0] == "-h" or "--help" in arguments:
        print(__doc__.replace("tombolo-svpc", name).strip())
        return 0 if arguments else 2
    request = parsed(list(arguments))
    check(request)
    try:
        if request.emit:
            return emitted(request)
        with tempfile.TemporaryDirectory(prefix="tombolo-svpc-") as folder:
            return built(request, Path(folder))
    except CompilerFailed as failed:
        return failed.status


class CompilerFailed(Exception):
    """A compiler that has printed why."""

    def __init__(self, status: int):
        super().__init__(status)
        self.status = status


# --- Arguments ----------------------------------------------------------------------------------


def parsed(arguments: list[str]) -> Request:
    request = Request()
    while arguments:
        word = arguments.pop(0)
        if word in ("--emit-cpp", "--show", "-c"):
            request.emit |= word == "--emit-cpp"
            request.show |= word == "--show"
            request.only_objects |= word == "-c"
        elif word == "-o":
            request.output = Path(_value(word, arguments))
        elif word.startswith("-o") and len(word) > 2:
            request.output = Path(word[2:])
        elif word.startswith("-"):
            _option(request, word, arguments)
        else:
            _input(request, word)
    return request


def _value(word: str, arguments: list[str]) -> str:
    if not arguments:
        raise UserError(f"{word} needs a value")
    return arguments.pop(0)


def _option(request: Request, word: str, arguments: list[str]) -> None:
    for names, into in ((PREPROCESSING, request.preprocessing), (LINKING, request.linking)):
        for name in names:
            if word == name:
                into += [word, _value(word, arguments)]
                return
            if len(name) == 2 and word.startswith(name):
                into.append(word)
                return
    if word.startswith(OF_LINKING):
        request.linking.append(word)
    elif word in ("-E", "-S", "-x") or word.startswith(("--", "-x")):
        raise UserError(f"{word} is no option of this compiler; --emit-cpp writes what it makes")
    else:
        request.options.append(word)


def _input(request: Request, word: str) -> None:
    path = Path(word)
    if path.suffix in SOURCES:
        request.sources.append(path)
    elif path.suffix in LINKED or ".so." in path.name:
        request.objects.append(word)
    else:
        raise UserError(f"{word}: a source ends in .c or .svp, other inputs in .o, .a or .so")


def check(request: Request) -> None:
    if not request.sources and not request.objects:
        raise UserError("there is no source")
    for source in request.sources:
        if not source.is_file():
            raise UserError(f"{source}: there is no such file")
    if request.only_objects and request.output and len(request.sources) > 1:
        raise UserError("-c with -o takes one source")
    if request.output and request.output.suffix in SOURCES:
        raise UserError(f"-o {request.output} would replace a source")
    for word in (*map(str, request.sources), *request.objects):
        if request.output and os.path.realpath(request.output) == os.path.realpath(word):
            raise UserError(f"-o {request.output} would replace {word}, from which it is made")


# --- Steps --------------------------------------------------------------------------------------


def emitted(request: Request) -> int:
    for source in request.sources:
        translation = translated(request, source)
        folder = request.output or source.parent
        if request.output:
            files.folder(folder)
        for text, suffix in ((translation.c, ".svp.i"), (translation.cpp, ".svp.cpp")):
            path = folder / f"{source.stem}{suffix}"
            files.write(path, text, encoding="latin-1")
            print(path)
    return 0


def built(request: Request, folder: Path) -> int:
    jobs = [_Source(request, source, folder, n) for n, source in enumerate(request.sources)]
    for job in jobs:
        job.start()
    failed = [status for job in jobs if (status := job.finish())]
    if failed:
        return failed[0]
    if request.only_objects:
        for job in jobs:
            job.join(request.output or Path(f"{job.source.stem}.o"))
        return 0
    objects = [str(path) for job in jobs for path in job.objects]
    output = request.output or Path("a.out")
    both = [o for o in request.options if o.startswith(OF_BOTH_LANGUAGES)]
    inputs = [*objects, *request.objects, *request.linking, *_flags(compiling=False)]
    run(request, [*compiler("CXX"), *both, *inputs], output)
    return 0


class _Source:
    """One source on its way to two objects: the program's C, and the C++ of its families."""

    def __init__(self, request: Request, source: Path, folder: Path, number: int):
        self.request = request
        self.source = source
        self.base = folder / f"{number}-{source.stem}"
        self.objects = [Path(f"{self.base}.c.o"), Path(f"{self.base}.cpp.o")]
        self.running: list[subprocess.Popen] = []

    def start(self) -> None:
        request = self.request
        translation = translated(request, self.source)
        c, cpp = Path(f"{self.base}.i"), Path(f"{self.base}.cpp")
        files.write(c, translation.c, encoding="latin-1")
        files.write(cpp, translation.cpp, encoding="latin-1")
        both = [o for o in request.options if o.startswith(OF_BOTH_LANGUAGES)]
        for_c = [*standard(request), *FOR_C, *request.options, "-x", "cpp-output", "-c", str(c)]
        for command in (
            [*compiler("CC"), *for_c, "-o", str(self.objects[0])],
            # The run-time is optimized whatever the program is.
            [*compiler("CXX"), *both, "-O2", *_flags(compiling=True), "-c", str(cpp), "-o", str(self.objects[1])],
        ):
            shown(request, command)
            self.running.append(subprocess.Popen(command))

    def finish(self) -> int:
        return next((status for status in [p.wait() for p in self.running] if status), 0)

    def join(self, output: Path) -> None:
        run(self.request, [*compiler("CC"), "-r", "-nostdlib", *self.objects], output)


def translated(request: Request, source: Path) -> "Translation":
    """The translation; mistakes of the program are printed."""
    try:
        from tombolo.svp_language.messages import Wrong
        from tombolo.svp_language.translate import translated as translate
    except ImportError as error:
        raise UserError(
            f"the parser is missing ({error}): {hints.here(hints.PARSER, hints.PARSER_OF_PACKAGE)}"
        ) from error
    prefix = hashlib.sha256(str(source.resolve()).encode()).hexdigest()[:8]
    try:
        return translate(preprocessed(request, source), str(source), prefix)
    except Wrong as wrong:
        for message in wrong.messages:
            print(message, file=sys.stderr)
        raise CompilerFailed(1) from wrong


def preprocessed(request: Request, source: Path) -> str:
    """A character for each byte."""
    chosen = [o for o in request.options if o.startswith(OF_PREPROCESSING)]
    command = [*compiler("CC"), "-E", "-x", "c", *standard(request), *chosen, *request.preprocessing]
    command += ["-isystem", str(libraries.include(HEADER)), "-include", HEADER, str(source)]
    shown(request, command)
    done = subprocess.run(command, stdout=subprocess.PIPE)
    if done.returncode:
        raise CompilerFailed(done.returncode)
    return done.stdout.decode("latin-1")


def _flags(compiling: bool) -> list[str]:
    """Those of a program of families, for the one or the other step."""
    return [flag for flag in svp.flags() if flag.startswith(("-std", "-I", "-D")) == compiling]


def standard(request: Request) -> list[str]:
    given = any(option.startswith(("-std=", "-ansi")) for option in request.options)
    return [] if given else ["-std=gnu99"]


def compiler(variable: str) -> list[str]:
    return shlex.split(os.environ.get(variable, "")) or [{"CC": "cc", "CXX": "c++"}[variable]]


def run(request: Request, command: Sequence, output: Path) -> None:
    """Replaces the output when the command has ended well."""
    shown(request, [*command, "-o", output])
    with files.replaced(output) as fresh:
        status = subprocess.run([*command, "-o", fresh]).returncode
        if status:
            raise CompilerFailed(status)


def shown(request: Request, command: Sequence) -> None:
    if request.show:
        print(shlex.join(map(str, command)), file=sys.stderr)
