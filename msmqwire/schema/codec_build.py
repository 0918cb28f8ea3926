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


class BuilderSource:
    """The source of ``write_NAME(value) -> bytes``; it adds the constants it uses."""

    verb: Final = "write"

    def __init__(self, header: Header, constants: Constants) -> None:
        self.lines: list[str] = []
        self.constants = constants
        self.header = header
        self.depth = 1
        self.count = 0
        self.run: list[tuple[str, str]] = []
        self.run_order = "<"
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
        if self.run:
            codes = self.run_order + "".join(code for code, _ in self.run)
            values = ", ".join(value for _, value in self.run)
            self.put(f"{self.constants.packing('pack', codes)}({values})")
            self.run = []

    def integer(self, part: UInt | Flags, code: str, value: str) -> None:
        """Add an integer to the fixed run, all of whose integers have one byte order."""
        order = byte_order(part)
        if order and order != self.run_order:
            if any(earlier in INTEGER_CODES for earlier, _ in self.run):
                self.flush()
            self.run_order = order
        self.run.append((code, value))

    def structure(self, header: Header, var: str) -> None:
        outer, self.header = self.header, header
        for part in header.parts:
            self.part(part, f"{var}.{part.name}")
        self.flush()
        self.header = outer

    def part(self, part: Part, value: str) -> None:
        match part:
            case UInt():
                code = CODES[part.bits]
                self.integer(part, code.lower() if part.signed else code, value)
            case Flags():
                self.integer(part, CODES[part.bits], value)
            case Guid():
                self.run.append(("16s", f"guid_bytes({value})"))
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
