# SPDX-License-Identifier: Apache-2.0
"""The instructions of an ELF file: where they begin, and which of them are atomic.

The symbols and the table for unwinding tell where functions lie, in stripped files too. A stretch that they
do not tell of may be code without a name or a table of constants: it counts as code if all of it can be
decoded. A function without a size ends where no jump of its own leads further. Symbols of data tell which
bytes are no code.

Its two libraries take long to load: import this module where a file has to be looked at.
"""

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import lief
from iced_x86 import Code, Decoder, FlowControl, Instruction, Mnemonic, OpKind, Register

# A lock prefix, and the two opcodes of xchg: most functions have none of these bytes.
MAY_BE_ATOMIC = re.compile(rb"[\xf0\x86\x87]")
# ELF's numbers of the two machines.
BITS = {"X86_64": 64, "I386": 32}
JUMPS = (FlowControl.CONDITIONAL_BRANCH, FlowControl.UNCONDITIONAL_BRANCH)
# The code behind such an instruction runs only if a jump leads there.
ENDS = (
    FlowControl.UNCONDITIONAL_BRANCH, FlowControl.INDIRECT_BRANCH, FlowControl.RETURN, FlowControl.EXCEPTION,
)  # fmt: skip


@dataclass(frozen=True)
class Stretch:
    """Bytes that are decoded from the first one on."""

    address: int
    code: bytes
    function: str  # demangled; empty if it has no name in the file
    is_code: bool  # else code or data: the file does not tell
    has_end: bool = True  # else a function that may end earlier


@dataclass
class _Layout:
    """The file's own account of the bytes in its sections of code."""

    functions: dict[int, int] = field(default_factory=dict)  # from the address to the size, if known
    names: dict[int, str] = field(default_factory=dict)
    labels: set[int] = field(default_factory=set)
    data: dict[int, int] = field(default_factory=dict)


class Binary:
    """An ELF file of x86."""

    def __init__(self, file: Path):
        """A ValueError for any other file."""
        lief.logging.disable()  # it would warn of odd files on standard output
        parsed = lief.ELF.parse(str(file)) if lief.is_elf(str(file)) else None
        bits = BITS.get(parsed.header.machine_type.name) if parsed else None
        if parsed is None or bits is None:
            raise ValueError(f"{file} is no ELF file of x86")
        self._elf: lief.ELF.Binary = parsed
        self._bits = bits

    def has_section(self, name: str) -> bool:
        return self._elf.has_section(name)

    def atomic_instructions(self) -> Iterator[tuple[str, int]]:
        """The function and the address of each, without fences."""
        for stretch in self._stretches():
            if MAY_BE_ATOMIC.search(stretch.code):
                for address in _atomic(stretch, self._bits):
                    yield stretch.function, address

    def _stretches(self) -> Iterator[Stretch]:
        sections = [s for s in self._elf.sections if s.has(lief.ELF.Section.FLAGS.EXECINSTR)]
        # A file that has lost its table of sections still has segments.
        segments = [s for s in self._elf.segments if s.has(lief.ELF.Segment.FLAGS.X)]
        layout = self._layout()
        for part in sections or segments:
            yield from _split(part.virtual_address, bytes(part.content), layout)

    def _layout(self) -> _Layout:
        types = lief.ELF.Symbol.TYPE
        made = _Layout()
        for symbol in self._elf.symbols:
            if symbol.shndx == 0:  # another file defines it
                continue
            if symbol.type in (types.FUNC, types.GNU_IFUNC):
                made.names.setdefault(symbol.value, _name_of(symbol))
                made.functions[symbol.value] = max(symbol.size, made.functions.get(symbol.value, 0))
            elif symbol.type == types.OBJECT:
                made.data[symbol.value] = symbol.size
            elif symbol.type == types.NOTYPE:
                made.labels.add(symbol.value)
        # The table for unwinding adds starts.
        for function in self._elf.functions:
            made.functions[function.address] = max(function.size, made.functions.get(function.address, 0))
        return made


def _name_of(symbol: lief.ELF.Symbol) -> str:
    """As in the source. A file may hold any bytes: those that are no text are shown by their numbers."""
    name = symbol.name
    return name.decode(errors="backslashreplace") if isinstance(name, bytes) else symbol.demangled_name or name


def _split(start: int, code: bytes, layout: _Layout) -> Iterator[Stretch]:
    """The stretches of one section, from one border to the next."""
    end = start + len(code)
    functions = sorted(address for address in layout.functions if start <= address < end)
    data = {address: size for address, size in layout.data.items() if start <= address < end}
    borders = {start, end, *functions, *data, *(label for label in layout.labels if start < label < end)}
    for known in (data, {address: layout.functions[address] for address in functions}):
        borders.update(min(address + size, end) for address, size in known.items())
    ordered = sorted(borders)
    data_until = 0
    for address, until in pairwise(ordered):
        data_until = max(data_until, address + data.get(address, 0))
        if address < data_until:
            continue
        part = code[address - start : until - start]
        function = _function_at(address, functions, layout)
        if function is not None:
            name = layout.names.get(function, "")
            yield Stretch(address, part, name, is_code=True, has_end=layout.functions[function] > 0)
        else:
            # Where nothing is known of a whole section, all of it counts as code.
            yield Stretch(address, part, "", is_code=not functions)


def _function_at(address: int, functions: list[int], layout: _Layout) -> int | None:
    """The start of the function that this address lies in."""
    before = bisect.bisect_right(functions, address)
    start = functions[before - 1] if before else None
    if start is None or address == start or address < start + layout.functions[start]:
        return start
    return None


def _atomic(stretch: Stretch, bits: int) -> list[int]:
    found = []
    invalid, exchange, memory = Code.INVALID, Mnemonic.XCHG, OpKind.MEMORY
    end = stretch.address + len(stretch.code)
    furthest = stretch.address  # that a jump leads to
    for instruction in Decoder(bits, stretch.code, ip=stretch.address):
        if instruction.code == invalid and not stretch.is_code:
            return []
        # The processor locks an exchange with memory without being told.
        if (
            instruction.has_lock_prefix or (instruction.mnemonic == exchange and instruction.op0_kind == memory)
        ) and not _is_fence(instruction):
            found.append(instruction.ip)
        if stretch.has_end:
            continue
        if instruction.flow_control in JUMPS and instruction.near_branch_target < end:
            furthest = max(furthest, instruction.near_branch_target)
        if instruction.flow_control in ENDS and instruction.next_ip > furthest:
            rest = stretch.code[instruction.next_ip - stretch.address :]
            return found + _atomic(Stretch(instruction.next_ip, rest, "", is_code=False), bits)
    return found


def _is_fence(instruction: Instruction) -> bool:
    """Whether it is `lock or $0, (%rsp)` or `lock add`, as compilers make a fence: it changes nothing."""
    return (
        instruction.mnemonic in (Mnemonic.OR, Mnemonic.ADD)
        and instruction.memory_base in (Register.RSP, Register.ESP)
        and instruction.memory_index == Register.NONE
        and instruction.op1_kind not in (OpKind.REGISTER, OpKind.MEMORY)
        and instruction.immediate(1) == 0
    )
