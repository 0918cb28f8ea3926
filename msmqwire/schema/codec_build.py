"""Generates the writing half of a codec: one flat function for each schema, for complete values."""

from __future__ import annotations

from typing import Final

from msmqwire.schema.codec_parts import CODES, INTEGER_CODES, Constants, byte_order, identifier
from msmqwire.schema.nodes import (
    Align,
    Choice,
    Close,
    Each,
    Fill,
    Flags,
    Guid,
    Header,
    Maybe,
    OemText,
    Part,
    Raw,
    Repeat,
    Sub,
    Text,
    UInt,
    View,
)


class FixedRun:
    """Values of fixed size one after the other, for one call of `struct`."""

    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self.codes: list[str] = []
        self.values: list[str] = []
        self.order = "<"

    def add(self, code: str, value: str) -> None:
        self.codes.append(code)
        self.values.append(value)

    def skip(self, count: int) -> None:
        """Add nulls."""
        self.codes.append(f"{count}x")

    def add_integer(self, part: UInt | Flags, value: str) -> str:
        """Add an integer; return the call for the integers before it, where they have another byte order."""
        order, before = byte_order(part), ""
        if order and order != self.order:
            if INTEGER_CODES.intersection(self.codes):
                before = self.taken()
            self.order = order
        code = CODES[part.bits]
        self.add(code.lower() if isinstance(part, UInt) and part.signed else code, value)
        return before

    def taken(self) -> str:
        """Return the call for all values, which are gone then; nothing if there are none."""
        if not self.codes:
            return ""
        call = f"{self.constants.packing('pack', self.order + ''.join(self.codes))}({', '.join(self.values)})"
        self.codes, self.values = [], []
        return call


class BuilderSource:
    """The source of ``write_NAME(value) -> bytes``; it adds the constants it uses."""

    verb: Final = "write"

    def __init__(self, header: Header, constants: Constants) -> None:
        self.lines: list[str] = []
        self.constants = constants
        self.header = header
        self.depth = 1
        self.count = 0
        self.run = FixedRun(constants)
        self.emit("out: list[Any] = []")
        self.structure(header, "r0")
        self.emit("return b''.join(out)")
        signature = f"def {self.verb}_{identifier(header.key)}(r0: Any) -> bytes:"
        self.source = "\n".join([signature, *self.lines]) + "\n"

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def put(self, expression: str) -> None:
        self.emit(f"out.append({expression})")

    def flush(self) -> None:
        if packed := self.run.taken():
            self.put(packed)

    def structure(self, header: Header, var: str) -> None:
        outer, self.header = self.header, header
        for part in header.parts:
            self.part(part, f"{var}.{part.name}")
        self.flush()
        self.header = outer

    def part(self, part: Part, value: str) -> None:
        match part:
            case UInt() | Flags():
                if packed := self.run.add_integer(part, value):
                    self.put(packed)
            case Guid():
                self.run.add("16s", f"guid_bytes({value})")
            case Close():
                pass
            case _:
                self.flush()
                self.variable(part, value)

    def variable(self, part: Part, value: str) -> None:
        match part:
            case Raw(length=int(n)):
                self.emit(f"if len({value}) != {n}: raise Refused")
                self.put(value)
            case Raw() | Align() | Fill():
                self.put(value)
            case OemText():
                self.put(f"encode_oem({self.constants.part(self.header, part)}, {value})")
            case Text(padded=True, length=length):
                self.put(f"encode_padded({value}, {length})")
            case Text():
                self.put(f"encode_text({value})")
            case Sub():
                var = self.name("r")
                self.emit(f"{var} = {value}")
                self.structure(part.header, var)
            case Maybe():
                var = self.name("m")
                self.emit(f"{var} = {value}")
                self.emit(f"if {var} is not None:")
                self.depth += 1
                self.part(part.node, var)
                self.flush()
                self.depth -= 1
            case Choice():
                var = self.name("c")
                self.emit(f"{var} = {value}")
                self.one_of([arm for arm in part.arms.values() if arm], var)
            case Each():
                var = self.name("c")
                self.emit(f"for {var} in {value}:")
                self.depth += 1
                self.one_of([arm for _, arm, _ in part.arms.values()], var)
                self.depth -= 1
            case View():
                key = part.header.key
                write = self.constants.name(f"write_of_{key}", f"writer_of({key!r})")
                self.emit(f"if {write}({value}) != {value.rpartition('.')[0]}.{part.of}: raise Refused")
            case Repeat():
                var = self.name("r")
                self.emit(f"for {var} in {value}:")
                self.depth += 1
                self.structure(part.item, var)
                self.depth -= 1
            case _:
                raise TypeError(part)

    def one_of(self, arms: list[Header], var: str) -> None:
        """Emit one of several structures, by the class of the record; nothing for None."""
        word = "if"
        for arm in dict.fromkeys(arms):
            self.emit(f"{word} type({var}) is {self.constants.record(arm)}:")
            word = "elif"
            self.depth += 1
            self.emit("pass")
            self.structure(arm, var)
            self.depth -= 1
        self.emit(f"elif {var} is not None: raise Refused")
