"""The fields that the dissector registers: name, type, mask, names of values, unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from msmqwire.plugins.wireshark.names import filter_name
from msmqwire.plugins.wireshark.values import TIMES, value_names
from msmqwire.schema import Bits, Flags, Guid, Raw, Text, UInt
from msmqwire.schema.nodes import Align, Fill, Header

Shown: TypeAlias = "UInt | Flags | Bits | Guid | Raw | Text | Align | Fill | Header"
_HEX: Final = frozenset({"BaseHeader.Signature", "BaseHeader.VersionNumber", "Ping.Signature"})


def quoted(text: str) -> str:
    """Return a text as a string of Lua."""
    escaped = "".join(
        c if c.isprintable() and c.isascii() and c not in '"\\' else "".join(f"\\{b:03d}" for b in c.encode())
        for c in text
    )
    return f'"{escaped}"'


def table(names: Mapping[int, str]) -> str:
    """Return the names of values as a table of Lua."""
    return "{" + ", ".join(f"[{number}] = {quoted(name)}" for number, name in sorted(names.items())) + "}"


class Fields:
    """The registered fields, each known in Lua as an element of the table ``F``."""

    def __init__(self) -> None:
        self._declared: dict[str, tuple[int, str]] = {}  # by filter: the index, the declaration
        self._meanings: dict[str, str] = {}  # the first of each: the arms of a choice differ in wording
        self._names = value_names()

    def of(self, node: Shown, path: str, *, word: Flags | None = None) -> str:
        """Return the expression of the field of a node; `word` is the word of named bits.

        Raises ValueError if two fields of one name are not of one type.
        """
        name = filter_name(path)
        self._meanings.setdefault(name, node.meaning)
        return self._add(name, self._declaration(node, path, word))

    def ill_formed(self, path: str) -> str:
        """Return the expression of the field for the bytes of text that is not well-formed."""
        name = f"{filter_name(path)}.utf16le"
        title = f"{path.rpartition('.')[2]}, not well-formed"
        self._meanings[name] = "Bytes of text that is not UTF-16 with a null at its end and nowhere else."
        return self._add(name, f"ProtoField.bytes({quoted(name)}, {quoted(title)}, base.NONE")

    def _add(self, name: str, declaration: str) -> str:
        index, known = self._declared.setdefault(name, (len(self._declared) + 1, declaration))
        if known != declaration:
            raise ValueError(f"{name} is declared twice: {known}, {declaration}")
        return f"F[{index}]"

    def declarations(self) -> list[str]:
        """Return the statements that fill ``F``."""
        return [
            f"F[{index}] = {declaration}, {quoted(self._meanings[name])})"
            for name, (index, declaration) in self._declared.items()
        ]

    @property
    def filters(self) -> frozenset[str]:
        """The display filters."""
        return frozenset(self._declared)

    def _declaration(self, node: Shown, path: str, word: Flags | None) -> str:
        name, title = quoted(filter_name(path)), quoted(path.rpartition(".")[2])
        match node:
            case Header():
                return f"ProtoField.none({name}, {title}"
            case UInt() if path in TIMES:
                return f"ProtoField.absolute_time({name}, {title}, base.UTC"
            case UInt():
                return f"ProtoField.{_number(node)}({name}, {title}, {self._base(path, node)}, nil"
            case Flags():
                return f"ProtoField.uint{node.bits}({name}, {title}, base.HEX, nil, nil"
            case Bits(width=1):
                assert word is not None
                size = f"{word.bits}, nil, {node.mask:#x}"
                return f"ProtoField.bool({name}, {title}, {size}"
            case Bits():
                assert word is not None
                names = self._names.get(path)
                shown = f"base.DEC, {table(names) if names else 'nil'}, {node.mask:#x}"
                return f"ProtoField.uint{word.bits}({name}, {title}, {shown}"
            case Guid():
                return f"ProtoField.guid({name}, {title}"
            case Text():
                return f"ProtoField.string({name}, {title}, base.UNICODE"
            case Raw() | Align() | Fill():
                return f"ProtoField.bytes({name}, {title}, base.NONE"
        raise TypeError(node)

    def _base(self, path: str, node: UInt) -> str:
        names = self._names.get(path)
        if names:
            return f"base.DEC_HEX, {table(names)}"
        if path in _HEX:
            return "base.HEX, nil"
        if node.unit:
            return f"base.DEC + base.UNIT_STRING, {{{quoted(' ' + node.unit)}}}"
        return "base.DEC, nil"


def _number(node: UInt) -> str:
    return f"{'int' if node.signed else 'uint'}{node.bits}"
