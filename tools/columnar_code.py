"""Writes `docs/columns.md`, and where the fields of a packet stand as code that numba compiles:
`msmqwire/columnar/compiled/generated.py`.

python tools/columnar_code.py            writes them
python tools/columnar_code.py --check    fails if they are not what the schemas and columns say

For each kind of packet there is one function that checks whether bytes are such a packet and notes
where its parts of variable place begin and end. A column then reads its field at a constant distance
from one of these places, its *slot*.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from msmqwire.columnar.columns import COLUMNS  # noqa: E402
from msmqwire.packets import (  # noqa: E402
    CONNECTION_PARAMETERS,
    ESTABLISH_CONNECTION,
    SESSION_ACK,
    USER_MESSAGE,
)
from msmqwire.ping import PING  # noqa: E402
from msmqwire.schema.codec_parse import Position, Scope, referenced  # noqa: E402
from msmqwire.schema.nodes import (  # noqa: E402
    REST,
    Align,
    Choice,
    Close,
    Flags,
    Guid,
    Header,
    Maybe,
    Packet,
    Part,
    Raw,
    Ref,
    Repeat,
    Sub,
    Text,
    UInt,
    View,
)

TARGET: Final = ROOT / "msmqwire" / "columnar" / "compiled" / "generated.py"
PAGE: Final = ROOT / "docs" / "columns.md"
PACKETS: Final = (USER_MESSAGE, SESSION_ACK, ESTABLISH_CONNECTION, CONNECTION_PARAMETERS, PING)
ALSO: Final = {  # fields that packets are told by, and that columns are made from besides those they name
    "BaseHeader.VersionNumber",
    "BaseHeader.Signature",
    "BaseHeader.PacketSize",
    "Signature",
    "MessagePropertiesHeader.MessageSize",
    "BaseHeader.Flags",
    "InternalHeader.Flags",
    "UserHeader.Flags",
    "UserHeader.SourceQueueManager",
    "UserHeader.QueueManagerAddress",
    "UserHeader.DestinationQueue",
    "UserHeader.AdminQueue",
    "UserHeader.ResponseQueue",
    "SecurityHeader.Flags",
    "SecurityHeader.SecurityData.SecurityID",
}
TABLE: Final = "## All columns\n"
WANTED: Final = ALSO | {path for column in COLUMNS for path in column.paths}

HEAD: Final = '''"""Where the fields of packets stand. Made by tools/columnar_code.py: not to be edited.

Each function looks at the bytes from ``p0`` to ``e0`` and notes in row ``r`` of ``at``, relative to
``p0``, where the parts begin and end that have no constant place; -1 for what is not there. It returns
the end of the packet, MALFORMED, or UNSURE for what only the generic reader can judge. With ``trusted``
the bytes are known to be well-formed and nothing is left to it.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.columnar.compiled.jit import ends_on_null, jit, u8, u16, u32

MALFORMED: Final = -1
UNSURE: Final = -2
'''


class Source:
    """The function for one kind of packet, and the table of its slots."""

    def __init__(self, packet: Packet) -> None:
        self.packet = packet
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.here, self.end = Position("p0"), "e0"
        self.scopes: list[Scope] = []
        self.regions: list[tuple[str, Scope | None, str]] = []
        self.run: list[tuple[str, Part, Position]] = []
        self.path: list[str] = []
        self.slots: dict[str, int] = {"p0": 0}
        self.places: dict[str, tuple[int, ...]] = {}
        self.structure(packet)
        self.flush()
        self.emit(f"return {self.here}")

    @property
    def name(self) -> str:
        words = "".join(f"_{c.lower()}" if c.isupper() else c for c in self.packet.name)
        return words.removeprefix("_")

    def text(self) -> str:
        clear = [f"    at[r, {slot}] = {0 if slot == 0 else -1}" for slot in sorted(self.slots.values())]
        about = f'    """{self.packet.name}: {self.packet.section}."""'
        head = f"@jit\ndef {self.name}(buf: Any, p0: int, e0: int, at: Any, r: int, trusted: bool) -> int:"
        lines = self.lines
        text = "\n".join(lines)
        unused = re.compile(r"\s*(v\d+) = u\d+\(")
        kept = [
            line
            for line in lines
            if not (found := unused.match(line)) or len(re.findall(rf"\b{found[1]}\b", text)) > 1
        ]
        return "\n".join([head, about, *clear, *kept])

    # -- emitting ----------------------------------------------------------------------------

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def new(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def refuse_if(self, condition: str) -> None:
        self.emit(f"if {condition}:")
        self.emit("    return MALFORMED")

    def move(self, expression: str) -> None:
        var = self.new("p")
        self.emit(f"{var} = {expression}")
        self.here = Position(var)

    def slot(self, base: str) -> int:
        """The slot of a variable; notes it where that is done for the first time."""
        if base not in self.slots:
            self.slots[base] = len(self.slots)
            self.emit(f"at[r, {self.slots[base]}] = {base} - p0")
        return self.slots[base]

    def own(self) -> None:
        """What follows is there only sometimes: it gets a variable of its own."""
        self.move(str(self.here))

    def note(self, name: str, place: Position, size: int) -> None:
        """A field of fixed size: slot, distance, size."""
        wanted = ".".join([*self.path, name])
        if any(other == wanted or other.startswith(f"{wanted}.") for other in WANTED):
            self.places[wanted] = (self.slot(place.base), place.plus, size)

    # -- references --------------------------------------------------------------------------

    def lookup(self, path: str) -> str:
        raw, bits = referenced(self.scopes, path)
        return raw if bits is None else f"({raw} >> {bits.shift} & {(1 << bits.width) - 1:#x})"

    def length(self, ref: Ref) -> str:
        value = self.lookup(ref.path)
        if ref.over is not None:
            return f"max(0, {value} - {self.lookup(ref.over)})"
        assert ref.per == 1, "not needed so far"
        assert ref.plus >= 0, "not needed so far"
        expression = f"{value} * {ref.times}" if ref.times != 1 else value
        return f"{expression} + {ref.plus}" if ref.plus else expression

    # -- structures --------------------------------------------------------------------------

    def structure(self, header: Header, name: str = "") -> None:
        scope = Scope(header, self.here)
        if self.scopes:
            self.scopes[-1].inner[name] = scope
            self.path.append(name)
        self.scopes.append(scope)
        parts = list(header.parts)
        while parts:
            if isinstance(parts[0], Maybe) and not _judged(parts[0]):
                self.leave(parts)
            self.part(parts.pop(0), scope)
        self.flush()
        while self.regions and self.regions[-1][1] is scope:
            self.close()
        self.scopes.pop()
        if self.scopes:
            self.path.pop()

    def part(self, part: Part, scope: Scope) -> None:
        match part:
            case UInt() | Flags():
                scope.raws[part.name] = self.new("v")
                self.run.append((scope.raws[part.name], part, self.here))
                self.note_in_run(part.name, part.size)
                if isinstance(part, UInt) and part.size_of:
                    self.region(part, scope)
            case Guid():
                self.run.append(("", part, self.here))
                self.note_in_run(part.name, 16)
            case Raw(length=int(n)):
                self.run.append(("", part, self.here))
                self.note_in_run(part.name, n)
            case Close():
                self.flush()
                self.close()
            case _:
                self.flush()
                self.variable(part, scope)

    def note_in_run(self, name: str, size: int) -> None:
        self.note(name, self.here, size)
        self.here = self.here.advanced(size)

    def flush(self) -> None:
        """Emits the check of the fixed run, then its integers and their own checks."""
        if not self.run:
            return
        self.refuse_if(f"{self.here} > {self.end}")
        for var, part, place in self.run:
            if not isinstance(part, (UInt, Flags)):
                continue
            self.emit(f"{var} = u{part.bits}(buf, {place})")
            must = getattr(part, "must", None)
            if isinstance(must, range):
                self.refuse_if(f"not {must.start} <= {var} < {must.stop}")
            elif must is not None:
                self.refuse_if(" and ".join(f"{var} != {value:#x}" for value in sorted(must)))
        self.run = []

    def region(self, part: UInt, scope: Scope) -> None:
        assert part.size_of == "packet", "not needed so far"
        self.flush()
        end = self.new("e")
        owner = next(s for s in self.scopes if isinstance(s.header, Packet))
        self.emit(f"{end} = {owner.start} + {scope.raws[part.name]}")
        self.refuse_if(f"not {self.here} <= {end} <= {self.end}")
        self.regions.append((end, owner, self.end))
        self.end = end

    def close(self) -> None:
        if self.regions:
            end, _, outer = self.regions.pop()
            self.refuse_if(f"{self.here} != {end}")
            self.end = outer

    def leave(self, parts: list[Part]) -> None:
        """Leaves the parts up to the Close to the generic reader, where any of them is there."""
        self.flush()
        conditions = []
        while not isinstance(parts[0], Close):
            part = parts.pop(0)
            assert isinstance(part, Maybe)
            conditions.append(self.condition(part))
        after = self.new("q")
        self.emit(f"{after} = {self.here}")
        self.emit(f"if {' or '.join(dict.fromkeys(conditions))}:")
        self.emit("    if not trusted:")
        self.emit("        return UNSURE")
        self.emit(f"    {after} = {self.end}")
        self.here = Position(after)

    def condition(self, part: Maybe) -> str:
        assert isinstance(part.when, str)
        value = self.lookup(part.when)
        return f"{value} == {part.equals}" if part.equals is not None else f"{value} != 0"

    # -- parts of variable length ---------------------------------------------------------------

    def variable(self, part: Part, scope: Scope) -> None:
        match part:
            case Raw() | Text():
                self.bytes(part)
            case Align():
                self.align(part)
            case Sub():
                self.windowed(part.within, part.header, part.name)
            case Maybe():
                self.maybe(part, scope)
            case Choice():
                self.choice(part)
            case View():
                pass
            case _:
                raise TypeError(part)

    def bytes(self, part: Raw | Text) -> None:
        start = self.here
        if part.length is REST:
            self.refuse_if(f"{start} > {self.end}")
            self.move(self.end)
        else:
            assert isinstance(part.length, Ref)
            self.move(f"{start} + {self.length(part.length)}")
            self.refuse_if(f"{self.here} > {self.end}")
        if isinstance(part, Text) and part.strict:
            self.refuse_if(f"not ends_on_null(buf, {start}, {self.here})")
        path = ".".join([*self.path, part.name])
        if path in WANTED:
            self.places[path] = (self.slot(start.base), start.plus, self.slot(self.here.base), 0)

    def align(self, part: Align) -> None:
        assert not part.marker
        named = [s for s in self.scopes if part.of in (s.header.name, "*")] or self.scopes[-1:]
        start, here, to = named[0].start, self.here, part.to
        if start.base == here.base:
            count = -(here.plus - start.plus) % to
            if count:
                self.move(f"min({here.advanced(count)}, {self.end})")
            return
        self.move(f"min({here} + ({start} - ({here})) % {to}, {self.end})")

    def windowed(self, within: Ref | None, header: Header, name: str) -> None:
        if within is None:
            self.structure(header, name)
            return
        outer, end = self.end, self.new("e")
        self.emit(f"{end} = {self.here} + {self.length(within)}")
        self.refuse_if(f"{end} > {outer}")
        self.end = end
        self.regions.append((end, None, outer))
        self.structure(header, name)
        self.regions.pop()
        self.refuse_if(f"{self.here} != {end}")
        self.end = outer

    def maybe(self, part: Maybe, scope: Scope) -> None:
        condition = self.condition(part)
        after, before = self.new("q"), self.here
        self.emit(f"{after} = {before}")
        self.emit(f"if {condition}:")
        self.depth += 1
        self.own()
        self.part(part.node, scope)
        self.flush()
        self.emit(f"{after} = {self.here}")
        self.depth -= 1
        self.here = Position(after)

    def choice(self, part: Choice) -> None:
        by, after, before = self.lookup(part.by), self.new("q"), self.here
        path = ".".join([*self.path, part.name])
        if path in WANTED:
            self.places[path] = (self.slot(before.base), before.plus, 0)
        self.emit(f"{after} = {before}")
        word = "if"
        for arm in dict.fromkeys(part.arms.values()):
            numbers = [value for value, a in part.arms.items() if a is arm]
            self.emit(f"{word} {' or '.join(f'{by} == {n}' for n in numbers)}:")
            word = "elif"
            self.depth += 1
            self.here = before
            if arm is None:
                self.emit("pass")
            else:
                self.windowed(part.within, arm, part.name)
                self.emit(f"{after} = {self.here}")
            self.depth -= 1
        self.emit("else:")
        self.emit("    return MALFORMED")
        self.here = Position(after)


def _judged(part: Part) -> bool:
    """Whether the function can judge a part; lists and markers are left to the generic reader."""
    if isinstance(part, Align):
        return not part.marker
    if isinstance(part, Text):
        return part.otherwise is None
    if isinstance(part, Sub):
        return all(_judged(inner) for inner in part.header.parts)
    if isinstance(part, Maybe):
        return _judged(part.node)
    return not isinstance(part, Repeat)


def arms(path: str) -> dict[str, int]:
    """The distances of the fields in the structures that a choice may hold, from where it starts."""
    header_name, name = path.split(".")
    header = next(p.header for p in USER_MESSAGE.parts if isinstance(p, Sub) and p.name == header_name)
    choice = header.part(name)
    assert isinstance(choice, Choice)
    found: dict[str, int] = {}
    for arm in choice.arms.values():
        at = 0
        for part in arm.parts if arm else ():
            match part:
                case UInt() | Flags() | Guid():
                    if found.setdefault(f"{arm.name}.{part.name}", at) != at:
                        raise ValueError(path)
                    at += part.size
                case Text():
                    found[f"{arm.name}.{part.name}"] = at
                case Align():
                    assert at % part.to == 0 or isinstance(arm.parts[-1], Align)
    return found


def generated() -> str:
    """The text of the module."""
    sources = [Source(packet) for packet in PACKETS]
    blocks = [HEAD]
    blocks += [
        f"SLOTS: Final = {max(len(source.slots) for source in sources)}",
        '"""Slots of a packet, at most."""',
    ]
    blocks.append("PLACES: Final[dict[str, dict[str, tuple[int, ...]]]] = {")
    for source in sources:
        blocks.append(f"    {source.packet.name!r}: {{")
        blocks += [f"        {path!r}: {place!r}," for path, place in source.places.items()]
        blocks.append("    },")
    blocks.append("}")
    blocks.append(
        '"""Of each field: slot, distance, size; of one of variable size: slot and distance of both ends."""'
    )
    queues = {}
    for name in ("DestinationQueue", "AdminQueue", "ResponseQueue"):
        queues |= arms(f"UserHeader.{name}")
    blocks.append("QUEUE: Final = {")
    blocks += [f"    {name!r}: {at}," for name, at in queues.items()]
    blocks.append("}")
    blocks.append('"""Of each field of a queue in a UserHeader: its distance from where the queue starts."""')
    text = "\n".join(blocks) + "\n\n\n" + "\n\n\n".join(source.text() for source in sources) + "\n"
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"],
        input=text, capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return done.stdout


def page() -> str:
    """The text of the page: what it says of the decoder stays, the table of columns is made anew."""
    lines = [TABLE, "| column | type | from | meaning |", "| --- | --- | --- | --- |"]
    for column in COLUMNS:
        source = ", ".join(f"`{path}`" for path in column.paths) or "the capture"
        lines.append(f"| `{column.name}` | {column.type} | {source} | {column.meaning} |")
    return PAGE.read_text().partition(TABLE)[0] + "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes columnar/compiled/generated.py and docs/columns.md.")
    parser.add_argument("--check", action="store_true", help="fail if they are not up to date")
    check = parser.parse_args().check
    for path, text in ((TARGET, generated()), (PAGE, page())):
        if not check:
            path.write_text(text)
        elif path.read_text() != text:
            sys.exit(f"{path.relative_to(ROOT)} is not up to date: run python tools/columnar_code.py")


if __name__ == "__main__":
    main()
