"""Generates the JSON half of a codec: one flat function for each schema, from a record to its JSON text.

The text is that of `jsonform.to_json`, byte by byte. The code takes values as the reader makes them; it
refuses any other, such as a number of another type or a field that is not set, and the caller goes by way of
`to_json` then. What stands between the values is fixed, so that most of a packet is one f-string.
"""

from __future__ import annotations

import json
from typing import Final

from msmqwire.schema.codec_parts import Constants, identifier
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
    Packet,
    Part,
    Raw,
    Ref,
    Repeat,
    Sub,
    Text,
    UInt,
    View,
    inner_headers,
)
from msmqwire.schema.texts import OEM_CODE_PAGE


class JsonSource:
    """The source of ``json_NAME(record) -> str``; it adds the constants it uses.

    The methods that return text return the inside of an f-string, and emit the statements before it.
    """

    verb: Final = "json"

    def __init__(self, header: Header, constants: Constants) -> None:
        self.lines: list[str] = []
        self.constants = constants
        self.depth = 1
        self.count = 0
        self.unchecked: list[str] = []
        """Conditions under which values that were taken are refused."""
        text = self.record(header, "r0")
        self.check()
        self.emit(f"return f'{text}'")
        signature = f"def {self.verb}_{identifier(header.key)}(r0: Any) -> str:"
        self.source = "\n".join([signature, *self.lines]) + "\n"

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def check(self) -> None:
        """Emit the checks of the values taken since the last ones."""
        if self.unchecked:
            self.emit(f"if {' or '.join(self.unchecked)}: raise Refused")
            self.unchecked.clear()

    def open(self, line: str) -> None:
        """Emit the first line of a block."""
        self.check()
        self.emit(line)
        self.depth += 1

    def close(self, line: str = "") -> None:
        """Emit the last line of a block."""
        self.check()
        if line:
            self.emit(line)
        self.depth -= 1

    # -- structures ----------------------------------------------------------------------------------

    def record(self, header: Header, var: str) -> str:
        """Return the text of a record, which must be of the structure's own class."""
        self.unchecked.append(f"type({var}) is not {self.constants.record(header)}")
        self.check()
        return self.fields(header, var)

    def fields(self, header: Header, var: str) -> str:
        """Return the text of a record of the structure's own class."""
        parts = [part for part in header.parts if not isinstance(part, Close)]
        if not parts:
            return "{{}}"
        has_first = not may_be_left_out(header, parts[0])
        text = ""
        for part in parts:
            value = self.name("v")
            self.emit(f"{value} = {var}.{part.name}")
            key = literal(f"{json.dumps(part.name)}: ")
            comma = "" if has_first and part is parts[0] else ", "
            if may_be_left_out(header, part):
                text += self.optional(header, part, value, comma + key)
            else:
                text += comma + key + self.value(header, part, value)
        if has_first:
            return f"{{{{{text}}}}}"
        self.check()
        whole = self.name("t")
        self.emit(f"{whole} = f'{text}'")
        return f"{{{{{{{whole}[2:]}}}}}}"  # without the comma before the first of those that are there

    def optional(self, header: Header, part: Part, value: str, key: str) -> str:
        """Return the text of a part with its key, or nothing."""
        text = self.name("t")
        self.emit(f"{text} = ''")
        match part:
            case Align() | Fill():
                self.open(f"if {value} or type({value}) is not bytes:")
                self.emit(f"if type({value}) is OddPadding or (type({value}) is bytes and any({value})):")
                self.emit(f"    {text} = f'{key}\"{{{value}.hex()}}\"'")
                self.close(f"elif type({value}) is not bytes: raise Refused")
            case Raw():
                self.unchecked.append(f"type({value}) is not bytes")
                self.open(f"if {value}:")
                self.close(f"{text} = f'{key}\"{{{value}.hex()}}\"'")
            case _:
                assert isinstance(part, Maybe)
                self.open(f"if {value} is not None:")
                inner = self.value(header, part.node, value)
                self.close(f"{text} = f'{key}{inner}'")
        return f"{{{text}}}"

    # -- values --------------------------------------------------------------------------------------

    def value(self, header: Header, part: Part, value: str) -> str:
        """Return the text of a value that has a key."""
        match part:
            case UInt():
                self.unchecked.append(f"type({value}) is not int")
                return f"{{{value}}}"
            case Flags():
                words = self.constants.flag_texts(header, part)
                self.unchecked.append(f"type({value}) is not {words}.kind")
                return f"{{{words}[{value}]}}"
            case Guid():
                self.unchecked.append(f"type({value}) is not UUID")
                return f'"{{guid_text({value}.int)}}"'
            case Raw() | Align() | Fill():
                self.unchecked.append(f"type({value}) is not bytes")
                return f'"{{{value}.hex()}}"'
            case Text() | OemText():
                return self.text(OEM_CODE_PAGE if isinstance(part, OemText) else "utf16le", value)
            case Sub():
                return self.record(part.header, value)
            case Repeat() | Each():
                return self.items(part, value)
            case Maybe(node=Guid() | Raw() as node):
                text = self.name("t")
                self.emit(f"{text} = 'null'")
                self.open(f"if {value} is not None:")
                inner = self.value(header, node, value)
                self.close(f"{text} = f'{inner}'")
                return f"{{{text}}}"
        assert isinstance(part, (Maybe, Choice, View))
        return self.one_of(inner_headers(part), value)

    def text(self, name: str, value: str) -> str:
        """Return the text of a text, or of the bytes of one that is not well-formed."""
        text = self.name("t")
        self.check()
        self.emit(f"if type({value}) is str: {text} = quoted({value})")
        self.emit(f"elif {value} is None: {text} = 'null'")
        as_bytes = literal(f"{{{json.dumps(name)}: ") + f'"{{{value}.hex()}}"}}}}'
        self.emit(f"elif type({value}) is bytes: {text} = f'{as_bytes}'")
        self.emit("else: raise Refused")
        return f"{{{text}}}"

    def items(self, part: Repeat | Each, value: str) -> str:
        """Return the text of a list."""
        texts, item, whole = self.name("t"), self.name("r"), self.name("t")
        self.unchecked.append(f"type({value}) is not list")
        self.check()
        self.emit(f"{texts} = []")
        self.open(f"for {item} in {value}:")
        if isinstance(part, Repeat):
            text = f"f'{self.record(part.item, item)}'"
        else:
            text = self.one_of(inner_headers(part), item)[1:-1]
        self.close(f"{texts}.append({text})")
        self.emit(f"{whole} = ', '.join({texts})")
        return f"[{{{whole}}}]"

    def one_of(self, headers: list[Header], value: str) -> str:
        """Return the text of a record of one of several structures, or of None."""
        text = self.name("t")
        self.open(f"if {value} is None:")
        self.close(f"{text} = 'null'")
        for header in dict.fromkeys(headers):
            self.open(f"elif type({value}) is {self.constants.record(header)}:")
            inner = self.fields(header, value)
            self.close(f"{text} = f'{inner}'")
        self.emit("else: raise Refused")
        return f"{{{text}}}"


def may_be_left_out(header: Header, part: Part) -> bool:
    """Return whether `to_json` leaves out a part for some of its values."""
    if isinstance(part, (Align, Fill)) or (isinstance(part, Raw) and _is_excess(part)):
        return True
    return isinstance(header, Packet) and isinstance(part, (Raw, Maybe))


def _is_excess(part: Raw) -> bool:
    return isinstance(part.length, Ref) and bool(part.length.over)


def literal(text: str) -> str:
    """Return text as it stands inside an f-string in single quotation marks."""
    return text.replace("\\", "\\\\").replace("'", "\\'").replace("{", "{{").replace("}", "}}")
