"""The structures of `msmqwire.schema.SCHEMAS` in words: sizes, lengths, conditions, kinds, defaults.

No layout is repeated here: everything is read off the declarations.
"""

from __future__ import annotations

import html
import importlib
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Final

from msmqwire.schema import (
    REST,
    SCHEMAS,
    TO_NULL,
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
    fixed_size,
    least_size,
)
from msmqwire.schema.nodes import inner_headers
from msmqwire.schema.references import references

DECLARING: Final = (
    "msmqwire.headers",
    "msmqwire.packets",
    "msmqwire.ping",
    "msmqwire.ncp.headers",
    "msmqwire.ncp.job_structures",
    "msmqwire.ncp.print_record",
    "msmqwire.ncp.queue_calls",
    "msmqwire.ncp.bindery_calls",
    "msmqwire.ncp.file_calls",
    "msmqwire.ncp.server_calls",
)
TIMES: Final = "\N{MULTIPLICATION SIGN}"
OVER: Final = "\N{DIVISION SIGN}"
MINUS: Final = "\N{MINUS SIGN}"


def structures() -> dict[str, Header]:
    """Return the public structures and their parts, by key, in the order of the sections.

    They are the structures in `SCHEMAS` of a fresh process; other modules, such as tests, may declare more.
    """
    collected: dict[str, Header] = {}

    def add(header: Header) -> None:
        if header.key not in collected:
            collected[header.key] = header
            for inner in nested(header):
                add(inner)

    for name in DECLARING:
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, Header) and SCHEMAS.get(value.key) is value:
                add(value)
    return {header.key: header for header in sorted(collected.values(), key=_order)}


def of_netware(header: Header) -> bool:
    """Whether a structure is one of NetWare, whose specification gives no encodings and has no numbers."""
    return not header.section.startswith("[")


def _order(header: Header) -> tuple[str, list[int], str]:
    if of_netware(header):
        return header.section, [], header.key
    specification, _, section = header.section.partition(" ")
    return specification, [int(number) for number in re.findall(r"\d+", section)], header.key


def nested(header: Header) -> list[Header]:
    """Return the structures that a structure consists of, each once."""
    return list(dict.fromkeys(inner for part in header.parts for inner in inner_headers(part)))


# -- copies ----------------------------------------------------------------------------------------


@cache
def copies() -> dict[str, list[Header]]:
    """Return groups of structures that differ only in their variant, by key of each member.

    Nested values are unrolled into such copies; the first of a group has the page of all.
    """
    alike: dict[tuple[object, ...], list[Header]] = defaultdict(list)
    for header in structures().values():
        alike[_look(header)].append(header)
    return {header.key: group for group in alike.values() for header in group}


def first_copy(header: Header) -> Header:
    return copies().get(header.key, [header])[0]


def _look(header: Header) -> tuple[object, ...]:
    """Return the content of a page about a structure and the structures directly inside it."""
    arms: list[object] = []
    for part in header.parts:
        for inner in inner_headers(part):
            arms.append((inner.name, [_shallow(deeper) for deeper in inner.parts]))
        if isinstance(part, Choice | Each):
            arms.append(sorted(part.arms))
    return type(header), header.name, header.section, repr([*map(_shallow, header.parts), arms])


def _shallow(part: Any) -> tuple[object, ...]:
    shown: list[object] = [type(part).__name__]
    for field in fields(part):
        value = getattr(part, field.name)
        if field.name == "node":
            shown.append(_shallow(value))
        elif isinstance(value, Header):
            shown.append(value.name)
        elif field.name != "arms":
            shown.append(value)
    return tuple(shown)


# -- fields that decide others ---------------------------------------------------------------------


def decided(headers: Mapping[str, Header]) -> set[tuple[str, str]]:
    """Return the fields and bits that building can compute, as (key of the structure, path in it)."""
    computed: set[tuple[str, str]] = set()

    def resolve(path: str, scopes: list[Header]) -> None:
        head, *rest = path.split(".")
        for scope in reversed(scopes):
            if head in scope.fields:
                owner, names = scope, [head, *rest]
                while len(names) > 1 and (inner := inner_headers(owner.part(names[0]))):
                    owner, names = inner[0], names[1:]
                computed.add((owner.key, ".".join(names)))
                return

    def visit(header: Header, scopes: list[Header]) -> None:
        scopes = [*scopes, header]
        for part in header.parts:
            if isinstance(part, UInt) and (part.size_of or part.same_as):
                computed.add((header.key, part.name))
            if isinstance(part, Raw) and part.marks:
                resolve(part.marks, scopes)
            over = part.length.over if isinstance(part, Raw) and isinstance(part.length, Ref) else None
            for path in references(part):
                if path != over:
                    resolve(path, scopes)
        for inner in nested(header):
            visit(inner, scopes)

    for header in headers.values():
        visit(header, [])
    return computed


# -- words -----------------------------------------------------------------------------------------


def number_of_bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count} bytes"


def length_words(length: Any) -> str:
    """A length in words."""
    if isinstance(length, int):
        return number_of_bytes(length)
    if length is REST:
        return "all that is left"
    if length is TO_NULL:
        return "up to and including the first null character"
    words: str = length.path
    if length.over is not None:
        return f"{words} {MINUS} {length.over} bytes, or none"
    if length.times != 1:
        words += f" {TIMES} {length.times}"
    if length.per != 1:
        words += f" {OVER} {length.per}, rounded up,"
    if length.plus:
        words += f" {'+' if length.plus > 0 else MINUS} {abs(length.plus)}"
    return f"{words} bytes"


def condition(part: Maybe) -> str:
    """Return the condition of an optional part."""
    if not isinstance(part.when, str):
        return "if bytes are left"
    return f"if {part.when} is not 0" if part.equals is None else f"if {part.when} is {part.equals}"


def size_words(part: Part, header: Header) -> str:
    """Return the size of a part, or the value that decides it."""
    match part:
        case UInt() | Flags() | Guid():
            return number_of_bytes(part.size)
        case Raw() | OemText():
            return length_words(part.length)
        case Text(otherwise=Ref() as other):
            return f"{length_words(part.length)}; {length_words(other)} if only these end on a null character"
        case Text():
            return length_words(part.length)
        case Align():
            start = {"": "this structure", "*": "the outermost structure"}.get(part.of)
            start = start or f"the {part.of} around it, else of this structure"
            return f"0 to {part.to - 1} bytes: up to a multiple of {part.to} from the start of {start}"
        case Fill(to=1):
            return f"what {_size_field(header)} counts beyond the fields"
        case Fill():
            return f"what is left of {_size_field(header)} bytes, rounded up to a multiple of {part.to}"
        case Sub(within=Ref() as within):
            return length_words(within)
        case Sub():
            return extent(part.header)
        case Maybe():
            return f"{size_words(part.node, header)}, {condition(part)}"
        case Choice(within=Ref() as within):
            return length_words(within)
        case Choice():
            return f"decided by {part.by}"
        case Repeat():
            return f"{part.count} elements"
        case Each():
            return f"decided by each element of {part.of}"
        case View():
            return f"none of its own: the bytes of {part.of}"
        case Close():
            return "none"


def size_in_bytes(part: Part) -> int | None:
    """Return the size of a part; None if a field decides it."""
    match part:
        case UInt() | Flags() | Guid():
            return part.size
        case Raw(length=int(size)) | Text(length=int(size)) | OemText(length=int(size)):
            return size
        case Sub(within=None):
            return fixed_size(part.header)
        case _:
            return None


def extent(header: Header) -> str:
    """Return the size of a structure, in short."""
    size = fixed_size(header)
    if size is not None:
        return number_of_bytes(size)
    least = least_size(header)
    return f"{least} bytes or more" if least else "any number of bytes"


def size_of_structure(header: Header) -> str:
    """Return the size of a structure, and the value that decides it unless it is fixed."""
    if fixed_size(header) is not None:
        return f"{extent(header)}, fixed"
    if isinstance(header, Packet):
        return f"{extent(header)}; {_packet_size(header)}"
    sized = _size_field(header)
    if sized:
        fill = next((part.to for part in header.parts if isinstance(part, Fill)), 1)
        rounded = f", rounded up to a multiple of {fill}" if fill > 1 else ""
        return f"{extent(header)}: {sized} bytes{rounded}"
    why = [path for part in header.parts for path in references(part)]
    for part in header.parts:
        match part:
            case Raw(length=length) | Text(length=length) | OemText(length=length) if length is REST:
                why.append("what is left")
            case Text(length=length) if length is TO_NULL:
                why.append(f"the null that ends {part.name}")
            case Align():
                why.append("alignment")
            case Each():
                why.append(f"each of {part.of}")
            case Sub(within=None) | Maybe(node=Sub(within=None)) | Repeat():
                why += [inner.name for inner in inner_headers(part) if fixed_size(inner) is None]
            case _:
                pass
    return f"{extent(header)}, decided by " + ", ".join(dict.fromkeys(why))


def _size_field(header: Header) -> str:
    return next((p.name for p in header.parts if isinstance(p, UInt) and p.size_of == "header"), "")


def counting(header: Header) -> str:
    """Return the field that counts the bytes of a structure; that of a packet is in one of its headers."""
    if not isinstance(header, Packet):
        return _size_field(header)
    for part in header.parts:
        for field in part.header.parts if isinstance(part, Sub) else ():
            if isinstance(field, UInt) and field.size_of == "packet":
                return f"{part.name}.{field.name}"
    return ""


def _packet_size(packet: Packet) -> str:
    behind: list[str] | None = None
    for part in packet.parts:
        if isinstance(part, Close):
            behind = []
        elif behind is not None and not isinstance(part, View):
            behind.append(part.name)
    return f"{counting(packet)} counts them" + (f", without {' and '.join(behind)}" if behind else "")


def kind(part: Part) -> str:
    """Return the kind of a part, with a link to its structure."""
    match part:
        case UInt():
            return f"{'int' if part.signed else 'uint'}{part.bits}{_byte_order(part)}"
        case Flags():
            return f"flags, {part.bits} bits{_byte_order(part)}"
        case Guid():
            return "GUID"
        case Raw():
            return "bytes"
        case Text():
            return "UTF-16 text" + (", filled up with nulls" if part.padded else "")
        case OemText():
            return "text, code page 437" + (", counted" if part.counted else "")
        case Align() | Fill():
            return "padding"
        case Sub():
            return link(part.header)
        case Maybe():
            return f"optional {kind(part.node)}"
        case Choice():
            return f"one of [these](#{anchor(part.name)})"
        case Repeat():
            return f"list of {link(part.item)}"
        case Each():
            return f"list of [these](#{anchor(part.name)})"
        case View():
            return f"view as {link(part.header)}"
        case Close():
            return "mark"


def _byte_order(part: UInt | Flags) -> str:
    return ", big-endian" if part.big_endian else ""


def meaning(part: Part, header: Header) -> str:
    """Return the meaning of a part, and how parsing and building treat it."""
    words = [part.meaning]
    match part:
        case UInt(same_as=same) if same:
            words.append(f"Malformed unless the same as {same}.")
        case UInt(must=range() as must):
            words.append(f"Malformed unless {must.start} to {must.stop - 1}.")
        case UInt(must=frozenset() as must):
            words.append(f"Malformed unless {' or '.join(f'{value:#x}' for value in sorted(must))}.")
        case Raw() if part.marks:
            words.append(f"Building sets {part.marks} when there are any.")
        case Text(strict=True):
            words.append("Malformed without its null.")
        case Align() if part.marker:
            marker = part.marker.hex(" ").upper()
            words.append(f"Only if {marker} stands behind it, and none if {marker} stands here.")
        case Close():
            words.append(f"What {counting(header)} counts ends here.")
        case _:
            pass
    return " ".join(word for word in words if word)


def default(part: Part, computed: bool) -> str:
    """Return the value that building gives an omitted field."""
    if computed:
        return "computed"
    match part:
        case UInt():
            return value_words(part.default, part.bits, part.unit)
        case Flags():
            return f"0x{part.default:0{part.bits // 4}X}"
        case Raw(default=data) if any(data):
            alike = len(data) > 4 and len(set(data)) == 1
            return f"{len(data)} {TIMES} 0x{data[0]:02X}" if alike else data.hex(" ").upper()
        case _:
            return ""


def value_words(value: int, bits: int, unit: str = "") -> str:
    if value < 10 or (unit and value != (1 << bits) - 1):
        return str(value)
    return f"{value} = 0x{value:X}" if value < 0x100 else f"0x{value:X}"


# -- Markdown --------------------------------------------------------------------------------------


def text(words: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#$~^])", r"\\\1", words)


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |\n"


def table(names: list[str], rows: list[list[str]], *, keep: int = 2) -> str:
    """Return a table; columns beyond the first `keep` that are empty in all rows are omitted."""
    used = [i for i in range(len(names)) if i < keep or any(cells[i] for cells in rows)]
    lines = [[names[i] for i in used], ["---"] * len(used), *([cells[i] for i in used] for cells in rows)]
    return "".join(row(*cells) for cells in lines)


def ids(req: tuple[str, ...]) -> str:
    return "<br>".join(f"<small style='white-space:nowrap'>{name}</small>" for name in req)


def code(name: str) -> str:
    """Return a name as code without line breaks."""
    return f"<code style='white-space:nowrap'>{html.escape(name)}</code>" if name else ""


def page_name(header: Header) -> str:
    """Return the name of its page and pictures, which its copies share."""
    return first_copy(header).key.replace(" ", "-")


def title(header: Header) -> str:
    return f"{header.name} ({header.variant.strip()})" if header.variant else header.name


def link(header: Header) -> str:
    return f"[{text(title(first_copy(header)))}]({page_name(header)}.md)"


def anchor(name: str) -> str:
    """Return the id that the toc extension gives a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", name).strip().lower())
