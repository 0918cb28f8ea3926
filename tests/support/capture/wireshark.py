"""The results of the generated dissector in tshark, compared with `dissect --json`."""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msmqwire.plugins.wireshark import dissector, filter_name
from msmqwire.schema import SCHEMAS, Flags, Guid, Header, Packet, Raw, Text, UInt
from msmqwire.schema.nodes import Align, Choice, Close, Fill, Maybe, Part, Repeat, Sub, View
from tests.support.capture.tshark import TSHARK
from tests.support.patience import limit

GENERATED = (
    "msmq.packet", "msmq.malformed", "msmq.skipped", "msmq.finding.", "msmq.link.", "msmq.srmp.",
    "msmq.body.", "msmq.headers.",
)  # fmt: skip
"""The prefixes of field names outside structures."""

Leaf = tuple[str, str, str]
"""A field: its filter, its value as PDML shows it, its bytes in hex."""


@dataclass
class Shown:
    """An item of the dissector in one frame."""

    packet: str = ""
    path: str = ""
    offset: int = 0
    fields: list[Leaf] = field(default_factory=list)
    generated: list[Leaf] = field(default_factory=list)

    @property
    def findings(self) -> set[tuple[str, str]]:
        """Id and path of each finding."""
        values = [show for name, show, _ in self.generated if name.startswith("msmq.finding.")]
        return set(zip(values[::2], values[1::2], strict=True))


def written(folder: Path) -> Path:
    """The script in a file."""
    path = folder / "msmq.lua"
    path.write_text(dissector(), encoding="utf-8")
    return path


def run(script: Path, capture: Path, *arguments: str) -> str:
    """The output of tshark with the script, which must have no complaint."""
    assert TSHARK is not None, "tshark is not installed"
    command = [TSHARK, "-n", "-X", f"lua_script:{script}", "-r", str(capture), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit(60), check=False)
    complaints = [line for line in done.stderr.splitlines() if not line.startswith("Running as user")]
    assert (done.returncode, complaints) == (0, [])
    assert "Lua Error" not in done.stdout
    return done.stdout


def shown(script: Path, capture: Path, *arguments: str) -> dict[int, list[Shown]]:
    """The items of the dissector, by frame."""
    frames: dict[int, list[Shown]] = defaultdict(list)
    pdml = run(script, capture, "-T", "pdml", *arguments)
    # tshark writes the noncharacters as they are, though XML has none of them.
    root = ET.fromstring(pdml.replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd"))
    for packet in root.iter("packet"):
        number = packet.find("proto[@name='geninfo']/field[@name='num']")
        assert number is not None
        frame = int(number.get("show", ""))
        for proto in packet.iterfind("proto[@name='msmq']"):
            frames[frame].append(_item(proto))
    return frames


def _item(proto: ET.Element) -> Shown:
    item = Shown()
    for element in proto.iter("field"):
        name, show = element.get("name", ""), element.get("show", "")
        leaf = name, show, element.get("value", "")
        if not name.startswith("msmq."):
            continue
        if name == "msmq.packet":
            item.packet = show
        elif name == "msmq.malformed.path":
            item.path = show
        elif name == "msmq.malformed.offset":
            item.offset = int(show)
        elif name.startswith(GENERATED):
            item.generated.append(leaf)
        elif show or leaf[2]:  # a structure has neither
            item.fields.append(leaf)
    return item


def expected(kind: str, fields: dict[str, Any]) -> list[tuple[str, Any, Part]]:
    """The fields of a packet in JSON as filters with values, in the order of the wire, by its schema."""
    schema = SCHEMAS[kind]
    return list(_structure(schema, fields, "Ping" if kind == "Ping" else ""))


def _structure(header: Header, fields: dict[str, Any], path: str) -> Iterator[tuple[str, Any, Part]]:
    views = []
    for part in header.parts:
        if isinstance(part, Close) or part.name not in fields:
            continue
        inner = f"{path}.{part.name}" if path else part.name
        if isinstance(part, View):
            views.append((part.header, fields[part.name]))
            continue
        yield from _part(part, fields[part.name], inner)
    for view, value in views:
        yield from _structure(view, value, view.name)


def _part(part: Part, value: Any, path: str) -> Iterator[tuple[str, Any, Part]]:
    match part:
        case Flags():
            yield filter_name(path), sum(int(value[p.name]) << p.shift for p in part.parts), part
            for bits in part.parts:
                yield filter_name(f"{path}.{bits.name}"), int(value[bits.name]), part
        case Maybe():
            if value is not None:
                yield from _part(part.node, value, path)
        case Sub():
            yield from _structure(part.header, value, path)
        case Choice():
            if value is not None:
                arms = [arm for arm in part.arms.values() if arm and _fits(arm, value)]
                yield from _structure(arms[0], value, path)
        case Repeat():
            for item in value:
                yield from _structure(part.item, item, path)
        case Text() if isinstance(value, dict):
            yield f"{filter_name(path)}.utf16le", value["utf16le"], part
        case Text() | Raw() | Align() | Fill() if not value and value != "":
            pass
        case Raw() | Align() | Fill() if value == "":
            pass
        case UInt() | Guid() | Text() | Raw() | Align() | Fill():
            yield filter_name(path), value, part
        case _:
            raise TypeError(part)


def _fits(header: Header, value: dict[str, Any]) -> bool:
    return set(value) <= set(header.fields) and {
        part.name for part in header.parts if not isinstance(part, Align)
    } <= set(value)


def difference(wanted: Sequence[tuple[str, Any, Part]], got: Sequence[Leaf]) -> str:
    """Where the fields shown differ from those wanted; empty if nowhere. Padding of zeros may be left out."""
    left = [leaf for leaf in got if not (leaf[0] in PADDING and not leaf[2].strip("0"))]
    want = [one for one in wanted if not (one[0] in PADDING and not one[1].strip("0"))]
    for (name, value, part), leaf in zip(want, left, strict=False):
        if name != leaf[0] or not _same(value, part, leaf):
            return f"{name} {value!r}, shown: {leaf}"
    if len(left) != len(want):
        return f"{len(want)} fields, shown: {len(left)}"
    return ""


def _same(value: Any, part: Part, leaf: Leaf) -> bool:
    name, show, hexed = leaf
    if isinstance(part, UInt) and name == "msmq.user.senttime":
        return _seconds(show) == value
    if isinstance(part, UInt | Flags):
        return {"True": 1, "False": 0}.get(show) == value if show[0] in "TF" else int(show, 0) == value
    if isinstance(part, Text) and not name.endswith(".utf16le"):
        if bytes.fromhex(hexed).decode("utf-16-le") != value + "\0":
            return False
        return not value.isprintable() or '"' in value or "\\" in value or show == value
    if isinstance(part, Guid):
        return show == value
    return show.replace(":", "") == value == hexed


def _seconds(show: str) -> int:
    text, _, zone = show.partition(".")
    assert zone == "000000000 UTC", show
    return int(datetime.strptime(text, "%b %d, %Y %H:%M:%S").replace(tzinfo=UTC).timestamp())


def _padding(header: Header, path: str) -> Iterator[str]:
    for part in header.parts:
        inner = f"{path}.{part.name}" if path else part.name
        match part:
            case Align() | Fill():
                yield filter_name(inner)
            case Sub() | Repeat():
                yield from _padding(part.header if isinstance(part, Sub) else part.item, inner)
            case Maybe(node=Sub() as node):
                yield from _padding(node.header, inner)
            case Choice():
                for arm in part.arms.values():
                    yield from _padding(arm, inner) if arm else ()


PADDING = frozenset(
    name for schema in SCHEMAS.values() if isinstance(schema, Packet) for name in _padding(schema, "")
)
