"""The wire-format pages of the documentation: every structure of `msmqwire.schema.SCHEMAS`, with diagrams.

`tools/pages/mkdocs_hooks.py` adds them to the site while it is built; they are never written to disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from msmqwire.ncp.bindery_calls import BINDERY_CALLS
from msmqwire.ncp.calls import Call
from msmqwire.ncp.file_calls import FILE_CALLS
from msmqwire.ncp.queue_calls import QUEUE_CALLS
from msmqwire.ncp.server_calls import SERVER_CALLS
from msmqwire.schema import (
    Align,
    Bits,
    Choice,
    Close,
    Each,
    Fill,
    Flags,
    Header,
    Maybe,
    Packet,
    Part,
    Repeat,
    UInt,
    View,
)
from tools.pages.schema_diagrams import Cell, Mark, diagram
from tools.pages.schema_words import (
    TIMES,
    anchor,
    code,
    condition,
    copies,
    counting,
    decided,
    default,
    extent,
    first_copy,
    ids,
    kind,
    link,
    meaning,
    nested,
    of_netware,
    page_name,
    size_in_bytes,
    size_of_structure,
    size_words,
    structures,
    table,
    text,
    title,
    value_words,
)

WIDE: Final = "---\nhide:\n  - toc\n---\n\n"  # no table of contents: the tables need its space
NARROW: Final = "<style>.md-typeset table:not([class]) th { min-width: 0 }</style>\n\n"
FIELDS: Final = ["offset", "size", "kind", "name", "meaning", "unit", "default", "requirements"]
BITS: Final = ["bits", "mask", "name", "default", "meaning", "requirements"]
INTRODUCTION: Final = """\
Every structure that msmqwire reads and writes, as its one declaration in `msmqwire/headers`,
`msmqwire/packets.py` and `msmqwire/ncp` has it. Names, sections and requirement ids are the
specifications' own; requirement ids are those of the [conformance pages](../conformance/index.md). NetWare's
queue services have no encodings in their specification: [where theirs come from](../netware-wire.md).

- Integers are little-endian unless their kind says *big-endian*. Bit 0 is the lowest bit of a field, and
  the left one in a diagram.
- Offsets and sizes are in bytes, counted from the start of the structure.
- A default is what building takes for a field that is left out; *computed* is one that building finds from
  what is there (sizes, counts, presence bits). What is given is respected, even when wrong.
- *Malformed*: parsing refuses the packet. Any other value is kept as it is.
"""
LEGEND: Final[list[Cell | Mark]] = [
    Cell("Fixed", "", 16),
    Cell("Reserved", "", 16, faint=True),
    Cell("Variable", "another field decides its size"),
    Cell("Optional", "", 32, optional=True),
    Cell("OptionalAndVariable", "may be missing, and something decides its size", optional=True),
    Cell("Long", "512 bytes: drawn shorter than it is", 4096),
]


def pages() -> dict[str, str]:
    """Return every page (`.md`) and picture (`.svg`) as text, by file name."""
    headers = structures()
    return Pages(headers, decided(headers)).render()


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages and pictures as text, by file name."""

    headers: Mapping[str, Header]
    computed: set[tuple[str, str]]

    def render(self) -> dict[str, str]:
        files = {"index.md": self.index(), "legend.svg": _legend()(file=True)}
        for header in self.shown():
            files[f"{page_name(header)}.md"] = self.structure(header)
            files[f"{page_name(header)}.svg"] = _layout(header)(file=True)
            for part in header.parts:
                if isinstance(part, Flags):
                    files[f"{page_name(header)}-{part.name}.svg"] = _bits(header, part)(file=True)
        return files

    def shown(self) -> list[Header]:
        """Return one of each group of copies."""
        return [header for header in self.headers.values() if first_copy(header) is header]

    def in_packets(self) -> set[Header]:
        """Return the structures that packets consist of."""
        members: set[Header] = set()
        waiting: list[Header] = [header for header in self.shown() if isinstance(header, Packet)]
        while waiting:
            for inner in nested(waiting.pop()):
                if inner not in members:
                    members.add(inner)
                    waiting.append(inner)
        return members

    # -- the index -------------------------------------------------------------------------------

    def index(self) -> str:
        packets = [header for header in self.shown() if isinstance(header, Packet)]
        others = [h for h in self.shown() if not isinstance(h, Packet) and not of_netware(h)]
        parts = [
            f"# Wire format\n\n{INTRODUCTION}\n",
            "## How to read the diagrams\n\n",
            _figure(_legend()),
            "## Packets\n\n",
            self.overview(packets),
            "\n## Headers of each packet\n",
        ]
        for packet in packets:
            if nested(packet):
                parts += [f"\n### {text(packet.name)}\n\n", _headers(packet)]
        in_packets = self.in_packets()
        inside = [header for header in others if header in in_packets]
        outside = [header for header in others if header not in inside]
        for heading, group in (("Structures in packets", inside), ("Other structures", outside)):
            parts += [f"\n## {heading}\n"]
            for specification in dict.fromkeys(header.section.split()[0] for header in group):
                its = [header for header in group if header.section.split()[0] == specification]
                parts += [f"\n### {text(specification)}\n\n", self.overview(its)]
        return "".join([*parts, *self.netware()])

    def netware(self) -> Iterator[str]:
        """Yield the calls of NCP with the structures of their requests and replies, then all structures."""
        yield "\n## NetWare\n"
        for heading, calls in (
            ("Queue calls", QUEUE_CALLS),
            ("Bindery calls", BINDERY_CALLS),
            ("File calls", FILE_CALLS),
            ("Server calls", SERVER_CALLS),
        ):
            rows = [
                [_number_of(call), code(call.name), _links(call.requests), _links(call.replies)]
                for call in calls
            ]
            yield f"\n### {heading}\n\n"
            yield table(["call", "name", "request", "reply"], rows)
        its = [header for header in self.shown() if of_netware(header)]
        for section in dict.fromkeys(header.section for header in its):
            rows = [[link(h), extent(h), text(h.meaning)] for h in its if h.section == section]
            yield f"\n### {text(section)}\n\n"
            yield table(["name", "size", "meaning"], rows)

    def overview(self, headers: Sequence[Header]) -> str:
        rows = [[link(h), text(h.section.split()[-1]), extent(h), text(h.meaning)] for h in headers]
        if len({h.section.split()[0] for h in headers}) > 1:
            rows = [[cells[0], text(h.section), *cells[2:]] for cells, h in zip(rows, headers, strict=True)]
        return table(["name", "section", "size", "meaning"], rows)

    # -- one structure ---------------------------------------------------------------------------

    def structure(self, header: Header) -> str:
        facts = [f"- Section: {text(header.section)}\n", f"- Size: {text(size_of_structure(header))}\n"]
        group = copies()[header.key]
        users = [link(user) for user in self.headers.values() if not {*group}.isdisjoint(nested(user))]
        if users:
            facts.append(f"- Part of: {', '.join(dict.fromkeys(users))}\n")
        if header.req:
            facts.append(f"- Requirements: {', '.join(header.req)}\n")
        parts = [
            WIDE,
            NARROW,
            f"# {text(title(header))}\n\n",
            f"{text(header.meaning)}\n\n",
            *facts,
            "\n## Layout\n\n",
            _figure(_layout(header)),
            f"[The diagram as a file]({page_name(header)}.svg)\n\n",
            "## Fields\n\n",
            self.fields(header),
        ]
        for part in header.parts:
            match part:
                case Flags():
                    parts += [
                        f"\n## {text(part.name)}\n\n",
                        text(part.meaning),
                        "\n\n" if part.meaning else "",
                    ]
                    parts += [_figure(_bits(header, part)), self.bits(header, part)]
                case Choice():
                    parts += [f"\n## {text(part.name)}\n\n", f"{text(part.meaning)}\n\n", _arms(part)]
                case Each():
                    parts += [f"\n## {text(part.name)}\n\n", f"{text(part.meaning)}\n\n", _each(part)]
                case Repeat():
                    parts += [f"\n## {text(part.name)}\n\n", f"{text(part.meaning)}\n\n"]
                    parts += [f"{text(part.count)} times {link(part.item)}, one after the other: "]
                    parts += [f"{text(size_of_structure(part.item))} each.\n"]
                case _:
                    pass
        if isinstance(header, Packet) and (header.defaults or header.defaults_with):
            parts += [
                "\n## Defaults\n\n",
                "Where they differ from those of the headers.\n\n",
                _defaults(header),
            ]
        return "".join(parts)

    def fields(self, header: Header) -> str:
        rows: list[list[str]] = []
        offset: int | None = 0
        before = ""
        for part in header.parts:
            size = size_in_bytes(part)
            shown = str(offset) if offset is not None else f"after {text(before)}"
            if isinstance(part, View):
                shown = ""
            rows.append(
                [
                    shown,
                    text(size_words(part, header)),
                    kind(part),
                    code(part.name),
                    _meaning(part, header),
                    text(part.unit) if isinstance(part, UInt) else "",
                    text(default(part, (header.key, part.name) in self.computed)),
                    ids(part.req),
                ]
            )
            if isinstance(part, View | Close):
                continue
            offset = None if offset is None or size is None else offset + size
            before = part.name
        return table(FIELDS, rows)

    def bits(self, header: Header, word: Flags) -> str:
        rows = []
        for part in word.parts:
            last = part.shift + part.width - 1
            computed = (header.key, f"{word.name}.{part.name}") in self.computed
            rows.append(
                [
                    str(part.shift) if part.width == 1 else f"{part.shift} to {last}",
                    f"`0x{part.mask:0{word.bits // 4}X}`",
                    code(part.name),
                    "computed" if computed else value_words(part.default, part.width),
                    text(part.meaning),
                    ids(part.req),
                ]
            )
        return table(BITS, rows)


def _number_of(call: Call) -> str:
    return f"{call.function}/{call.number}" if call.has_subfunction else str(call.function)


def _links(layouts: Sequence[Header]) -> str:
    return " or ".join(link(layout) if layout.parts else "nothing" for layout in layouts)


def _meaning(part: Part, header: Header) -> str:
    if isinstance(part, Flags):
        return f"{text(meaning(part, header))} [Its bits](#{anchor(part.name)}).".strip()
    return text(meaning(part, header))


def _headers(packet: Packet) -> str:
    """Return a table of the headers of a packet and their conditions."""
    rows = []
    for part in packet.parts:
        match part:
            case Close():
                rows.append([f"*{text(counting(packet))} counts no further*", "", ""])
            case View():
                rows.append([link(part.header), f"always, as {text(part.of)}", extent(part.header)])
            case Maybe():
                rows.append([kind(part.node), text(condition(part)), text(size_words(part.node, packet))])
            case _:
                rows.append([kind(part), "always", text(size_words(part, packet))])
    return table(["header", "when", "size"], rows, keep=3)


def _arms(part: Choice) -> str:
    rows = [
        [_number(value), link(arm) if arm else "nothing", extent(arm) if arm else "0 bytes"]
        for value, arm in sorted(part.arms.items())
    ]
    return table([text(part.by), "structure", "size"], rows) + "\nAny other value is malformed.\n"


def _number(value: int) -> str:
    return str(value) if value < 0x100 else f"0x{value:X}"


def _each(part: Each) -> str:
    rows = [
        [
            _number(value) if part.by else "any",
            f"{text(pointer)} is not 0",
            link(arm),
            extent(arm),
            text(count),
        ]
        for value, (pointer, arm, count) in sorted(part.arms.items())
    ]
    names = [text(part.by) or "element", "when", "structure", "size", "counted by"]
    return table(names, rows) + f"\nOne for each element of {text(part.of)} that asks for one.\n"


def _defaults(packet: Packet) -> str:
    rows = [[f"`{path}`", f"`{_value(value)}`", ""] for path, value in packet.defaults.items()]
    for header, values in packet.defaults_with.items():
        rows += [[f"`{path}`", f"`{value}`", f"with a {text(header)}"] for path, value in values.items()]
    return table(["field", "default", "when"], rows)


def _value(value: object) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} {TIMES} 0x00" if not any(value) else value.hex(" ").upper()
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {_value(inner)}" for name, inner in value.items())
    return value_words(value, 32) if isinstance(value, int) else str(value)


# -- pictures --------------------------------------------------------------------------------------

Picture = Callable[..., str]
"""Called with `file`, whether the SVG is a file of its own."""


def _figure(picture: Picture) -> str:
    svg = picture(file=False)
    return f'<figure data-search-exclude style="overflow-x:auto">\n{svg}</figure>\n\n'


def _layout(header: Header) -> Picture:
    cells = [cell for part in header.parts if (cell := _cell(part, header))]
    names = ", ".join(_described(cell) for cell in cells if isinstance(cell, Cell))
    return partial(
        diagram,
        cells,
        name=f"{page_name(header)}-layout",
        title=f"Layout of {title(header)}",
        description=f"In this order, 32 bits a row: {names}.",
    )


def _bits(header: Header, word: Flags) -> Picture:
    names = ", ".join(f"{_bit_range(part)} {part.name}" for part in word.parts)
    return partial(
        diagram,
        [Cell(part.name, "", part.width, faint=part.reserved) for part in word.parts],
        name=f"{page_name(header)}-{word.name}",
        title=f"Bits of {title(header)}.{word.name}",
        description=f"From the lowest bit, on the left: {names}.",
        columns=word.bits,
        offsets=False,
    )


def _bit_range(part: Bits) -> str:
    return f"bit {part.shift}" if part.width == 1 else f"bits {part.shift} to {part.shift + part.width - 1}"


def _legend() -> Picture:
    return partial(
        diagram,
        LEGEND,
        name="legend",
        title="How to read the diagrams",
        description="Solid sides: fixed size. Shaded: reserved or padding. Wavy sides: something decides the "
        "size. Dashed: may be missing. Dotted sides: drawn with fewer rows than it has.",
    )


def _cell(part: Part, header: Header) -> Cell | Mark | None:
    """Return the drawing of a part; None for a view, which takes no bytes."""
    if isinstance(part, View):
        return None
    if isinstance(part, Close):
        return Mark(f"{counting(header)} counts no further")
    size = size_in_bytes(part.node if isinstance(part, Maybe) else part)
    note = size_words(part, header).partition(":")[0].partition(";")[0]
    if isinstance(part, Repeat):
        note = f"{part.count} {TIMES} {part.item.name}"
    return Cell(
        part.name,
        note,
        None if size is None else size * 8,
        optional=isinstance(part, Maybe) or (isinstance(part, Choice) and None in part.arms.values()),
        faint=isinstance(part, Align | Fill) or "reserved" in part.name.lower(),
    )


def _described(cell: Cell) -> str:
    return f"{cell.name} ({cell.note})"
