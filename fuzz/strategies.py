"""Hypothesis strategies for every declared structure, derived by a walk over the schemas.

No layout is typed here a second time: the parts of a schema are drawn in the order of the wire, and what
decides a part (a size, a count, bits that tell its presence or form) is set by the part that was drawn. So
`values` gives what a parser can produce: complete records whose sizes agree, with reserved bits, padding and
texts that hold anything. `partial` leaves parts of them out, `misfits` and `mutated` make them wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeAlias
from uuid import UUID

from hypothesis import assume
from hypothesis import strategies as st

from msmqwire.headers.acknowledgements import ACK_LABEL, ORDER_QUEUE_IDENTIFIER, ORDER_QUEUE_NAME
from msmqwire.headers.base import SIGNATURE, VERSION
from msmqwire.packets import (
    CONNECTION_PARAMETERS,
    ESTABLISH_CONNECTION,
    FINAL_ACK,
    ORDER_ACK,
    REMOTE_READ_MESSAGE,
    SESSION_ACK,
    USER_MESSAGE,
    Protocol,
)
from msmqwire.ping import PING
from msmqwire.schema import (
    MORE,
    REST,
    SCHEMAS,
    TO_NULL,
    Align,
    Bits,
    Choice,
    Close,
    Each,
    Fill,
    Flags,
    Guid,
    Header,
    Maybe,
    OddPadding,
    Packet,
    Part,
    Raw,
    Record,
    Ref,
    Repeat,
    Sub,
    Text,
    UInt,
    View,
)
from msmqwire.schema.layout import Field, layout
from msmqwire.schema.nodes import references
from msmqwire.schema.values import FlagsValue, chosen_length, encode_text, flags_class

ITEMS_MAX: Final = 3
BYTES_MAX: Final = 40
CHARACTERS_MAX: Final = 12

Fixed: TypeAlias = Mapping[str, Any]
"""By path: the value, or the strategy, of a field, of a flag word or of bits of one."""

# -- leaves -----------------------------------------------------------------------------------------

_CHARACTERS: Final = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
_TEXT: Final = st.text(_CHARACTERS, max_size=CHARACTERS_MAX)
_LONE: Final = st.integers(0xD800, 0xDFFF).map(lambda unit: unit.to_bytes(2, "little"))
_BYTES: Final = st.one_of(st.binary(max_size=BYTES_MAX), st.binary(max_size=4).map(lambda seed: seed * 75))
_GUIDS: Final = st.one_of(st.uuids(), st.just(UUID(int=0)))
_NULL: Final = b"\0\0"


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le")


@cache
def _integers(bits: int, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.one_of(st.integers(low, high), st.sampled_from([0, 1, high, low, high >> 1, high - 1]))


@cache
def _exactly(count: int) -> st.SearchStrategy[bytes]:
    if count > 64:  # long fields repeat, or a single one would use up what Hypothesis grants an example
        return st.binary(min_size=1, max_size=16).map(lambda seed: (seed * count)[:count])
    return st.binary(min_size=count, max_size=count)


@cache
def _not_well_formed() -> st.SearchStrategy[bytes]:
    """UTF-16 with a lone surrogate, without nulls."""
    return st.builds(lambda a, lone, b: _utf16(a) + lone + _utf16("A" + b), _TEXT, _LONE, _TEXT)


@cache
def texts(node: Text) -> st.SearchStrategy[str | bytes | None]:
    """The values that a parser can give for a text: text, what is kept as its bytes, None for length 0."""
    if node.padded:
        assert isinstance(node.length, int)
        return _padded_texts(node.length)
    inner_nulls = st.builds(lambda a, b: _utf16(a) + _NULL + _utf16(b) + _NULL, _TEXT, _TEXT)
    forms: list[st.SearchStrategy[Any]] = [_TEXT, _not_well_formed().map(lambda data: data + _NULL)]
    if node.length is not TO_NULL:
        forms.append(inner_nulls)
        if not node.strict:
            forms += [st.none(), _TEXT.filter(bool).map(_utf16), _not_well_formed()]
    if node.length is REST:
        forms.append(st.binary(max_size=9).filter(lambda data: len(data) % 2 == 1))
    return st.one_of(forms)


def _padded_texts(length: int) -> st.SearchStrategy[str | bytes | None]:
    units = length // 2

    def with_tail(text: bytes, rest: bytes) -> bytes:
        return (text + _NULL + b"\x01" + rest).ljust(length, b"\0")[:length]

    return st.one_of(
        _TEXT,
        st.just("x" * (units - 1)),
        st.just(_utf16("x" * units)),
        st.builds(with_tail, _TEXT.map(_utf16), st.binary(max_size=9)),
        _not_well_formed().map(lambda data: data[: length - 2].ljust(length, b"\0")).filter(_is_not_utf16),
    )


def _is_not_utf16(data: bytes) -> bool:
    try:
        data.decode("utf-16-le")
    except UnicodeDecodeError:
        return True
    return False


# -- complete values --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """A structure that is being drawn; flag words are integers until it is finished."""

    header: Header
    path: str
    start: int
    held: dict[str, Any] = field(default_factory=dict)
    inner: dict[str, _Open] = field(default_factory=dict)

    def finish(self) -> Record:
        done: dict[str, Any] = {}
        for part in self.header.parts:
            if part.name in self.inner:
                done[part.name] = self.inner[part.name].finish()
            elif isinstance(part, Flags):
                done[part.name] = flags_class(self.header.name, part)(self.held[part.name])
            elif isinstance(part, Repeat | Each):
                done[part.name] = [item and item.finish() for item in self.held[part.name]]
            elif not isinstance(part, Close):
                done[part.name] = self.held[part.name]
        return self.header.record(**done)

    def follow(self, path: str) -> tuple[dict[str, Any], str]:
        """Where a field within is held, and its name there."""
        found, names = self, path.split(".")
        while len(names) > 1 and names[0] in found.inner:
            found, names = found.inner[names[0]], names[1:]
        return found.held, names[0]

    def number(self, path: str) -> int:
        """The integer at a path within, 0 when it is not there."""
        held, name = self.follow(path)
        return int(held.get(name, 0))


@dataclass(slots=True)
class _Tail:
    """Padding with nothing behind it so far: it may be cut where the bytes end."""

    owner: _Open
    name: str
    start: int
    to: int
    least: int  # where it may end at the earliest
    stop: int | None = None  # where a Fill ends at the latest, whatever stands there


class _Drawing:
    def __init__(self, draw: st.DrawFn, schema: Header, fixed: Fixed) -> None:
        self.draw, self.fixed = draw, dict(fixed)
        self.at = 0
        self.scopes: list[_Open] = []
        self.settled: set[tuple[int, str]] = set()
        self.tails: list[_Tail] = []
        self.counted: int | None = None
        self.sizes: list[tuple[_Open, str, str]] = []
        self.copies: list[tuple[dict[str, Any], str, list[_Open], str]] = []
        self.ends: dict[int, int] = {}
        self.marker = b""
        self.checks: list[tuple[str, Callable[[bytes, Field, int], bool]]] = []
        self.views = self.draw_views(schema)
        root = self.structure(schema, "" if isinstance(schema, Packet) else schema.name)
        self.cut_tail()
        for owner, name, kind in self.sizes:
            owner.held[name] = self.size(owner, kind)
        for held, name, scopes, path in self.copies:
            self.scopes = scopes
            held[name] = self.look(path) or 0
        self.value = root.finish()
        self.check()

    def draw_views(self, schema: Header) -> dict[str, Record]:
        views: dict[str, Record] = {}
        for part in schema.parts:
            if isinstance(part, View):
                views[part.name] = self.draw(values(part.header))
                self.fixed[part.of] = views[part.name].to_bytes()
        return views

    def check(self) -> None:
        """Rejects the few values of which a parser would read another form."""
        if self.checks:
            data, fields = self.value.to_bytes(), {found.path: found for found in layout(self.value)}
            end = len(data) if self.counted is None else self.counted
            for path, holds in self.checks:
                assume(holds(data, fields[path], end))

    def size(self, owner: _Open, kind: str) -> int:
        if kind == "packet":
            return self.at if self.counted is None else self.counted
        if kind == "header":
            return self.ends[id(owner)] - owner.start
        return self.at - self.ends[id(owner)]  # "after"

    # -- structures and what they refer to ---------------------------------------------------------

    def structure(self, header: Header, path: str, name: str = "") -> _Open:
        opened = _Open(header, path, self.at)
        if name:
            self.scopes[-1].inner[name] = opened
        self.scopes.append(opened)
        for part in header.parts:
            self.part(part, opened)
        self.scopes.pop()
        self.ends.setdefault(id(opened), self.at)
        return opened

    def path(self, name: str) -> str:
        prefix = self.scopes[-1].path
        return f"{prefix}.{name}" if prefix else name

    def find(self, path: str) -> tuple[_Open, str, Bits | None] | None:
        """Who has the field of a reference, its name and the bits meant; None for an absent header."""
        head, *rest = path.split(".")
        for scope in reversed(self.scopes):
            found, names = scope, [head, *rest]
            while len(names) > 1 and names[0] in found.inner:
                found, names = found.inner[names[0]], names[1:]
            if names[0] in found.held and found.held[names[0]] is not None:
                part = found.header.part(names[0])
                bits = next(b for b in part.parts if b.name == names[1]) if isinstance(part, Flags) else None
                return found, names[0], bits
        return None

    def look(self, path: str) -> int | None:
        found = self.find(path)
        if found is None:
            return None
        owner, name, bits = found
        value: int = owner.held[name]
        return value if bits is None else (value & bits.mask) >> bits.shift

    def settle(self, path: str, value: int) -> None:
        found = self.find(path)
        assert found is not None, path
        owner, name, bits = found
        if bits is not None:
            value = (owner.held[name] & ~bits.mask) | value << bits.shift
        owner.held[name] = value
        self.settled.add((id(owner), path.rpartition(".")[2]))

    def is_settled(self, path: str) -> bool:
        found = self.find(path)
        return found is None or (id(found[0]), path.rpartition(".")[2]) in self.settled

    def widest(self, path: str) -> int:
        """The greatest value that a reference can have."""
        found = self.find(path)
        assert found is not None
        owner, name, bits = found
        if bits is not None:
            return (1 << bits.width) - 1
        part = owner.header.part(name)
        assert isinstance(part, UInt)
        return max(part.must) if part.must else (1 << part.bits) - 1

    def refer(self, length: Any, count: int) -> None:
        """A part took `count` bytes: sets the field that decides its length."""
        if not isinstance(length, Ref) or length.over:
            return
        scaled = (count - length.plus) * length.per
        if length.per > 1 and scaled:
            scaled -= self.draw(st.integers(0, length.per - 1))
        self.settle(length.path, scaled // length.times)

    def fix(self, name: str, otherwise: st.SearchStrategy[Any]) -> Any:
        given = self.fixed.get(self.path(name), otherwise)
        return self.draw(given) if isinstance(given, st.SearchStrategy) else given

    # -- parts -------------------------------------------------------------------------------------

    def part(self, part: Part, owner: _Open) -> None:
        match part:
            case UInt():
                owner.held[part.name] = self.integer(part, owner)
                self.move(part.size)
            case Flags():
                owner.held[part.name] = self.word(part, owner)
                self.move(part.size)
            case Guid():
                owner.held[part.name] = self.fix(part.name, _GUIDS)
                self.move(16)
            case Raw():
                owner.held[part.name] = self.raw(part)
            case Text():
                owner.held[part.name] = self.text(part)
            case Align():
                self.align(part, owner)
            case Fill():
                self.fill(part, owner)
            case Sub():
                self.sub(part.header, part.name, part.within)
            case Maybe():
                self.maybe(part, owner)
            case Choice():
                self.choice(part, owner)
            case Repeat():
                self.repeat(part, owner)
            case Each():
                self.each(part, owner)
            case View():
                owner.held[part.name] = self.views[part.name]
            case Close():
                self.cut_tail()
                self.counted = self.at

    def move(self, count: int) -> None:
        self.at += count
        if count:
            self.tails = []

    def integer(self, part: UInt, owner: _Open) -> int:
        if part.size_of:
            self.sizes.append((owner, part.name, part.size_of))
        if self.marker:
            marker, self.marker = self.marker, b""
            return int.from_bytes(marker, "little")
        if part.same_as:
            self.copies.append((owner.held, part.name, list(self.scopes), part.same_as))
        if part.size_of or part.same_as or part.name in _deciding(owner.header):
            return 0
        drawn = _integers(part.bits, part.signed) if part.must is None else st.sampled_from(sorted(part.must))
        return int(self.fix(part.name, drawn))

    def word(self, part: Flags, owner: _Open) -> int:
        path = self.path(part.name)
        word = int(self.fix(part.name, _integers(part.bits, False)))
        for bits in part.parts:
            if f"{path}.{bits.name}" in self.fixed:
                chosen = int(self.fix(f"{part.name}.{bits.name}", st.nothing()))
                word = word & ~bits.mask | chosen << bits.shift
            elif path not in self.fixed:
                continue
            self.settled.add((id(owner), bits.name))
        return word

    def raw(self, part: Raw) -> bytes:
        if isinstance(part.length, int):
            drawn = _exactly(part.length)
            if part.default != bytes(part.length):
                drawn = st.one_of(st.just(part.default), drawn)
            data: bytes = self.fix(part.name, drawn)
        else:
            data = self.fix(part.name, _BYTES)
        if isinstance(part.length, Ref) and part.length.over:
            data = self.slack(part.length, data)
        self.refer(part.length, len(data))
        self.move(len(data))
        return data

    def slack(self, length: Ref, data: bytes) -> bytes:
        assert length.over is not None
        over = self.look(length.over) or 0
        if self.draw(st.booleans()):
            data = b""
        least = over if data else self.draw(st.sampled_from([over, over // 2, 0]))
        self.settle(length.path, least + len(data))
        return data

    def text(self, part: Text) -> Any:
        value = self.fix(part.name, texts(part))
        data = encode_text(value)
        if isinstance(part.length, Ref):
            most = self.widest(part.length.path) * part.length.times
            free = most < 1024 and self.path(part.name) not in self.fixed
            if free and self.draw(st.integers(0, 19)) == 19:  # as long as it can be
                value = "x" * (most // 2 - 1)
                data = encode_text(value)
            self.refer_to_text(part, part.length, data)
        size = part.length if isinstance(part.length, int) else len(data)
        self.move(size)
        return value

    def refer_to_text(self, part: Text, length: Ref, data: bytes) -> None:
        if part.otherwise is None:
            self.refer(length, len(data))
            return
        # In the one unit or the other; not where the bytes around would have it read in the other one.
        self.refer(self.draw(st.sampled_from([length, part.otherwise])), len(data))
        units = self.look(length.path) or 0
        lengths = units * length.times, units * part.otherwise.times
        self.checks.append(
            (self.path(part.name), lambda d, f, end: chosen_length(d, f.offset, lengths, end) == f.size)
        )

    def align(self, part: Align, owner: _Open) -> None:
        start = next((s.start for s in self.scopes if part.of in (s.header.name, "*")), owner.start)
        count = (start - self.at) % part.to
        if part.marker:
            self.marker = part.marker
            if count and self.draw(st.booleans()):
                owner.held[part.name] = OddPadding()
                self.checks.append(
                    (self.path(part.name), lambda d, f, end: not d.startswith(part.marker, f.offset + count))
                )
                return
        else:
            self.tails.append(_Tail(owner, part.name, start, part.to, self.at))
        owner.held[part.name] = self.padding(count)
        self.at += count

    def padding(self, count: int) -> bytes:
        return self.draw(st.one_of(st.just(bytes(count)), _exactly(count))) if count else b""

    def fill(self, part: Fill, owner: _Open) -> None:
        here = self.at
        size_field = next(p.name for p in owner.header.parts if isinstance(p, UInt) and p.size_of == "header")
        end = here + self.draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4, 9]))
        if self.draw(st.booleans()):
            end += (owner.start - end) % part.to
        stop = end + (owner.start - end) % part.to
        self.sizes.remove((owner, size_field, "header"))
        owner.held[size_field] = end - owner.start
        data = self.padding(stop - here)
        natural = (owner.start - here) % part.to
        owner.held[part.name] = data if len(data) == natural else OddPadding(data)
        self.at = stop
        if end > here:
            self.tails = []
        self.tails.append(_Tail(owner, part.name, owner.start, part.to, end, stop))

    def cut_tail(self) -> None:
        """Bytes may end within their last padding: cuts some of it."""
        if self.tails and self.draw(st.integers(0, 3)) == 3:
            begin = self.at - sum(len(tail.owner.held[tail.name]) for tail in self.tails)
            least = max(begin, *(tail.least for tail in self.tails if tail.stop), 0)
            at, end = begin, self.draw(st.integers(least, self.at))
            for tail in self.tails:
                natural = (tail.start - at) % tail.to
                count = (at + natural if tail.stop is None else tail.stop) - at
                data = (tail.owner.held[tail.name] + bytes(tail.to))[: min(count, end - at)]
                tail.owner.held[tail.name] = data if len(data) == natural else OddPadding(data)
                at += len(data)
            for tail in self.tails:
                if self.ends.get(id(tail.owner), 0) > at:
                    self.ends[id(tail.owner)] = at
            self.at = at
        self.tails = []

    def sub(self, header: Header, name: str, within: Ref | None) -> None:
        before = self.at
        self.structure(header, self.path(name), name)
        if within:
            self.cut_tail()
            self.refer(within, self.at - before)

    def maybe(self, part: Maybe, owner: _Open) -> None:
        node = part.node
        if part.when is MORE:
            there = self.draw(st.booleans())
        else:
            assert isinstance(part.when, str)
            there = self.is_there(part.when, part.equals)
        if there:
            self.part(node, owner)
        else:
            owner.held[part.name] = None

    def is_there(self, when: str, equals: int | None) -> bool:
        if self.is_settled(when):
            value = self.look(when) or 0
            return value != 0 if equals is None else value == equals
        there = self.draw(st.booleans())
        if equals is None:
            self.settle(when, self.draw(st.integers(1, self.widest(when))) if there else 0)
        elif there:
            self.settle(when, equals)
        else:
            self.settle(when, self.draw(st.integers(0, self.widest(when)).filter(lambda n: n != equals)))
        return there

    def choice(self, part: Choice, owner: _Open) -> None:
        if not self.is_settled(part.by):
            self.settle(part.by, self.draw(st.sampled_from(sorted(part.arms))))
        arm = part.arms[self.look(part.by) or 0]
        if arm is None:
            owner.held[part.name] = None
        else:
            self.sub(arm, part.name, part.within)

    def repeat(self, part: Repeat, owner: _Open) -> None:
        count = self.draw(st.integers(0, ITEMS_MAX))
        self.settle(part.count, count)
        owner.held[part.name] = [
            self.structure(part.item, self.path(f"{part.name}[{i}]")) for i in range(count)
        ]

    def each(self, part: Each, owner: _Open) -> None:
        items: list[_Open | None] = []
        for i, element in enumerate(owner.held[part.of]):
            pointer, arm, count = part.arms.get(element.number(part.by) if part.by else 0, ("", None, ""))
            if arm is None or not element.number(pointer):
                items.append(None)
                continue
            item = self.structure(arm, self.path(f"{part.name}[{i}]"))
            items.append(item)
            if count:
                self.copies.append((*element.follow(count), [item], "MaximumCount"))
        owner.held[part.name] = items


def _within(part: Part) -> Iterator[Header]:
    match part:
        case Sub():
            yield part.header
        case Maybe(node=Sub() as node):
            yield node.header
        case Choice():
            yield from (arm for arm in part.arms.values() if arm)
        case Repeat():
            yield part.item
        case Each():
            yield from (arm for _, arm, _ in part.arms.values())
        case _:
            pass


@cache
def _deciding(header: Header) -> frozenset[str]:
    """What the parts of a structure refer to, and those inside it that refer beyond themselves."""
    paths: set[str] = set()
    for part in header.parts:
        paths.update(references(part))
        for inner in _within(part):
            paths |= _beyond(inner)
    return frozenset(paths)


@cache
def _beyond(header: Header) -> frozenset[str]:
    """What a structure refers to in those around it."""
    return frozenset(path for path in _deciding(header) if path.partition(".")[0] not in header.fields)


@cache
def has_integers(schema: Header) -> bool:
    """Whether every value of it has an integer or a flag word."""
    return any(
        isinstance(part, UInt | Flags) or (isinstance(part, Sub) and has_integers(part.header))
        for part in schema.parts
    )


def stands_alone(schema: Header) -> bool:
    """Whether nothing in it refers to a structure around it."""
    return not _beyond(schema)


@st.composite
def _values(draw: st.DrawFn, key: str, fixed: Fixed) -> Record:
    return _Drawing(draw, SCHEMAS[key], fixed).value


def values(schema: Header, fixed: Fixed | None = None) -> st.SearchStrategy[Record]:
    """Complete records of `schema`, as a parser can give them: what is built from one parses to it.

    Every optional part is there or not, every form of a Choice comes, reserved bits and padding hold
    anything; sizes, counts and presence bits agree with the rest. `fixed` narrows fields, by path.
    """
    return _values(schema.key, fixed or {})  # by key: Hypothesis shows what a strategy was made of


SELF_CONTAINED: Final[Mapping[str, Header]] = {
    key: schema for key, schema in SCHEMAS.items() if stands_alone(schema)
}
"""The schemas that can be read by themselves, by key."""

# -- packets ----------------------------------------------------------------------------------------

_BASE: Final = {"BaseHeader.VersionNumber": VERSION, "BaseHeader.Signature": SIGNATURE}
_MESSAGE: Final = {**_BASE, "BaseHeader.Flags.IN": 0}
_CASES: Final = st.sampled_from([str.lower, str.upper, str.title])
_ACKNOWLEDGEMENT: Final = {
    **_BASE,
    "BaseHeader.Flags": 0,
    "UserHeader.Flags.DQ": st.sampled_from([3, 7]),
    "UserHeader.DestinationQueue.PrivateQueueIdentifier": ORDER_QUEUE_IDENTIFIER,
    "UserHeader.DestinationQueue.DirectFormatName": st.builds(
        lambda host, case: host + case(f"\\private$\\{ORDER_QUEUE_NAME}"), _TEXT, _CASES
    ),
    "MessagePropertiesHeader.Label": ACK_LABEL,
}
_RECOGNISED: Final[Mapping[Packet, Fixed]] = {
    **{
        schema: {**_BASE, **{path: bits for path, bits in schema.defaults.items() if path.count(".") == 2}}
        for schema in (ESTABLISH_CONNECTION, CONNECTION_PARAMETERS, SESSION_ACK)
    },
    USER_MESSAGE: _MESSAGE,
    REMOTE_READ_MESSAGE: _BASE,
    ORDER_ACK: {**_ACKNOWLEDGEMENT, "MessagePropertiesHeader.MessageClass": 0x00FF},
    FINAL_ACK: {
        **_ACKNOWLEDGEMENT,
        "MessagePropertiesHeader.MessageClass": st.integers(0x4000, 0xFFFF),
    },
    PING: {},
}
SESSION_PACKETS: Final = (
    USER_MESSAGE,
    ORDER_ACK,
    FINAL_ACK,
    SESSION_ACK,
    ESTABLISH_CONNECTION,
    CONNECTION_PARAMETERS,
)


def packet(schema: Packet) -> st.SearchStrategy[Record]:
    """Packets of one kind that `msmqwire.parse` recognises as such."""
    return values(schema, _RECOGNISED[schema])


def packets() -> st.SearchStrategy[Record]:
    """Session packets of any kind."""
    return st.one_of(*(packet(schema) for schema in SESSION_PACKETS))


def pings() -> st.SearchStrategy[Record]:
    """Ping packets."""
    return packet(PING)


def remote_read_messages() -> st.SearchStrategy[Record]:
    """Messages as a remote reader gets them."""
    return packet(REMOTE_READ_MESSAGE)


def packets_of(protocol: Protocol) -> st.SearchStrategy[Record]:
    """The packets of one protocol of `msmqwire.parse`."""
    return {"session": packets, "ping": pings, "remote_read": remote_read_messages}[protocol]()


def packet_bytes(protocol: Protocol = "session") -> st.SearchStrategy[bytes]:
    """The bytes of well-formed packets."""
    return packets_of(protocol).map(Record.to_bytes)


# -- values that are not whole ----------------------------------------------------------------------


def partial(schema: Header, fixed: Fixed | None = None) -> st.SearchStrategy[Any]:
    """Records, mappings and JSON data from which something was left out, and that can be completed.

    Either only what can be computed is left out, any part of it; or all of that and any of the rest.
    """
    return _partial(values(schema, fixed))


@st.composite
def _partial(draw: st.DrawFn, whole: st.SearchStrategy[Record]) -> Any:
    record = draw(whole)
    return _Leaving(draw, draw(st.booleans()), draw(st.booleans())).structure(record, frozenset())


class _Leaving:
    """Makes partial values of complete ones."""

    def __init__(self, draw: st.DrawFn, all_computed: bool, json: bool) -> None:
        self.draw, self.all_computed, self.json = draw, all_computed, json

    def gone(self, computed: bool, optional: bool) -> bool:
        """Whether to leave out something that is computed, or may be missing."""
        if computed:
            return self.all_computed or self.draw(st.booleans())
        return optional and self.all_computed and self.draw(st.integers(0, 3)) == 0

    def structure(self, record: Record, referred: frozenset[str]) -> Any:
        schema = record.schema
        referred |= _deciding(schema)
        kept: dict[str, Any] = {}
        stay, unknown = _unambiguous(schema), set(_of_unknown_unit(record))
        for part in schema.parts:
            if isinstance(part, Close) or (part.name in unknown and self.all_computed):
                continue
            if part.name not in stay | unknown and self.leaves(part, schema, referred, kept):
                continue
            kept[part.name] = self.value(part, record[part.name], referred)
            if isinstance(part, View) and self.all_computed:  # what it lacks is not looked for there
                kept = _without(kept, part.of)
        if self.json or self.draw(st.booleans()):
            return kept
        whole = {p.name for p in schema.parts if isinstance(p, Flags) and isinstance(kept.get(p.name), dict)}
        return kept if whole else schema.record(**kept)

    def leaves(self, part: Part, schema: Header, referred: frozenset[str], kept: dict[str, Any]) -> bool:
        match part:
            case UInt(same_as=copied) if copied in schema.fields and copied not in kept:
                return True
            case UInt():
                computed = part.size_of or part.same_as or part.name in referred | _counting()
                return self.gone(bool(computed), True)
            case Align() | Fill():
                return self.all_computed
            case Text(strict=True) | Choice() if _has_no_empty_form(part):
                return False
            case Maybe(when=str(when)) if when.partition(".")[0] in schema.fields:
                decided_by = schema.part(when.partition(".")[0])
                if isinstance(decided_by, Maybe) and kept.get(decided_by.name) is None:
                    return True
                twin = next(p for p in schema.parts if isinstance(p, Maybe) and p.when == when)
                return twin.name not in kept if twin is not part else self.gone(False, True)
            case _:
                return self.gone(False, True)

    def value(self, part: Part, value: Any, referred: frozenset[str]) -> Any:
        match value:
            case FlagsValue():
                assert isinstance(part, Flags)
                return self.word(part, value, referred)
            case Record():
                return self.structure(value, referred)
            case list():
                return [item and self.structure(item, referred) for item in value]
            case UUID() if self.json:
                return str(value)
            case bytes() if self.json:
                return {"utf16le": value.hex()} if isinstance(part, Text) else value.hex()
        return value

    def word(self, part: Flags, value: FlagsValue, referred: frozenset[str]) -> Any:
        names = {path.rpartition(".")[2] for path in referred if f"{part.name}." in path}
        bits = {name: held for name, held in value.bits().items() if not self.gone(name in names, True)}
        whole = len(bits) == len(part.parts) and not self.json and self.draw(st.booleans())
        return value if whole else bits


def misfits(schema: Header) -> st.SearchStrategy[tuple[Record, Field, int]]:
    """A complete record, one of its integers or flag words, and another value for that one.

    The field is one that other parts depend on, more often than not. For schemas that `has_integers`.
    """
    return _misfits(values(schema))


def _without(kept: dict[str, Any], path: str) -> dict[str, Any]:
    name, _, inner = path.partition(".")
    if name not in kept:
        return kept
    if not inner:
        return {key: value for key, value in kept.items() if key != name}
    return {**kept, name: _without(dict(kept[name]), inner)}


def _of_unknown_unit(record: Record) -> Iterator[str]:
    """Texts that are kept as bytes, with their lengths: other bytes around have them read in another unit."""
    for part in record.schema.parts:
        if isinstance(part, Text) and part.otherwise and isinstance(record[part.name], bytes):
            yield from (part.name, part.otherwise.path)


@cache
def _counting() -> frozenset[str]:
    """The names of fields of elements that count what is deferred for them."""
    return frozenset(
        count.rpartition(".")[2]
        for schema in SCHEMAS.values()
        for part in schema.parts
        if isinstance(part, Each)
        for _, _, count in part.arms.values()
    )


@cache
def _unambiguous(schema: Header) -> frozenset[str]:
    """The fields that must stay, lest two forms look alike or two lists do not match."""
    names: set[str] = set()
    for part in schema.parts:
        if isinstance(part, Each):
            names |= {part.name, part.of}
        elif isinstance(part, Choice):
            arms = {arm for arm in part.arms.values() if arm}
            if len({frozenset(arm.fields) for arm in arms}) < len(arms):
                names |= {part.by, part.name}
    return frozenset(names)


def _has_no_empty_form(part: Text | Choice) -> bool:
    return isinstance(part, Text) or None not in part.arms.values()


@st.composite
def _misfits(draw: st.DrawFn, whole: st.SearchStrategy[Record]) -> tuple[Record, Field, int]:
    record: Record = draw(whole)
    integers = [
        found
        for found in layout(record)
        if isinstance(found.node, UInt | Flags)
        and (found.header, found.node.name) not in _refused_when_wrong()
    ]
    assume(integers)
    deciding = [found for found in integers if _decides(found)]
    prefer = draw(st.booleans())
    chosen = draw(st.sampled_from(deciding if deciding and prefer else integers))
    assert isinstance(chosen.node, UInt | Flags)
    signed = isinstance(chosen.node, UInt) and chosen.node.signed
    return record, chosen, draw(_integers(chosen.node.bits, signed))


@cache
def _refused_when_wrong() -> frozenset[tuple[Header, str]]:
    """What tells what is deferred for an element: wrong, it may ask for nothing where there is something."""
    return frozenset(
        (repeated.item, part.by)
        for schema in SCHEMAS.values()
        for part in schema.parts
        if isinstance(part, Each) and isinstance(repeated := schema.part(part.of), Repeat)
    )


def _decides(found: Field) -> bool:
    return bool(isinstance(found.node, UInt) and found.node.size_of) or any(
        path.partition(".")[0] == found.node.name for path in _deciding(found.header)
    )


# -- bytes that are wrong ---------------------------------------------------------------------------

_EXTREMES: Final = (
    0,
    1,
    2,
    3,
    127,
    128,
    255,
    2**15 - 1,
    2**15,
    2**16 - 1,
    2**22,
    2**31 - 1,
    2**31,
    2**32 - 1,
)
_EDITS: Final = ("flip", "set", "cut", "insert", "remove", "repeat", "number", "field", "field", "splice")


def mutated(
    bases: st.SearchStrategy[bytes], schema: Header | None = None, edits_max: int = 3
) -> st.SearchStrategy[bytes]:
    """Bytes that were well-formed, after a few edits.

    The edits: bits turned, bytes set, put in, taken out or repeated, cut ends, numbers replaced by extremes
    (with `schema`, those that stand where it has integers) and the splice of two.
    """
    return _mutated(bases, schema.key if schema else None, edits_max)


@st.composite
def _mutated(draw: st.DrawFn, bases: st.SearchStrategy[bytes], key: str | None, edits_max: int) -> bytes:
    data, schema = draw(bases), SCHEMAS[key] if key else None
    for _ in range(draw(st.integers(1, edits_max))):
        data = _edit(draw, data, bases, schema)
    return data


def _edit(draw: st.DrawFn, data: bytes, bases: st.SearchStrategy[bytes], schema: Header | None) -> bytes:
    kind = draw(st.sampled_from(_EDITS))
    at = draw(st.integers(0, len(data)))
    if kind == "cut":
        return data[:at]
    if kind == "insert":
        return data[:at] + draw(st.binary(min_size=1, max_size=8)) + data[at:]
    if kind == "splice":
        other = draw(bases)
        return data[:at] + other[draw(st.integers(0, len(other))) :]
    if kind in ("remove", "repeat"):
        stop = min(len(data), at + draw(st.integers(1, 8)))
        return data[:at] + (data[at:stop] * 2 if kind == "repeat" else b"") + data[stop:]
    if not data:
        return data
    at = min(at, len(data) - 1)
    if kind == "flip":
        return data[:at] + bytes([data[at] ^ 1 << draw(st.integers(0, 7))]) + data[at + 1 :]
    if kind == "set":
        return data[:at] + draw(st.sampled_from([b"\0", b"\x01", b"\x7f", b"\x80", b"\xff"])) + data[at + 1 :]
    width = draw(st.sampled_from([1, 2, 4]))
    at -= at % width
    places = _places(schema, data) if kind == "field" and schema else []
    if places:
        at, width = draw(st.sampled_from(places))
    old = int.from_bytes(data[at : at + width], "little")
    near = (old - 1, old + 1, old * 2, old + 4, old - 4, len(data), len(data) - at, len(data) + 1)
    number: int = draw(st.sampled_from(near + _EXTREMES)) % (1 << 8 * width)
    return (data[:at] + number.to_bytes(width, "little") + data[at + width :])[: len(data)]


def _places(schema: Header, data: bytes) -> list[tuple[int, int]]:
    from msmqwire.errors import MalformedPacket

    try:
        value, _ = schema.read(data)
    except MalformedPacket:
        return []
    return [(found.offset, found.size) for found in layout(value) if isinstance(found.node, UInt | Flags)]


# -- JSON -------------------------------------------------------------------------------------------

_JSON_INTEGERS: Final = st.one_of(
    st.integers(-3, 300), st.sampled_from([-(2**63), 2**15, 2**16, 2**31, 2**32 - 1, 2**32, 2**64, 10**30])
)
_JSON_LEAVES: Final = st.one_of(
    st.none(),
    st.booleans(),
    _JSON_INTEGERS,
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.binary(max_size=8).map(bytes.hex),
    st.uuids().map(str),
    st.fixed_dictionaries({"utf16le": st.one_of(st.binary(max_size=8).map(bytes.hex), st.text(max_size=3))}),
)


@cache
def json_values() -> st.SearchStrategy[Any]:
    """Anything that JSON can say, with the names of fields as keys now and then."""
    names = sorted({name for schema in SCHEMAS.values() for name in schema.fields})
    keys = st.one_of(st.sampled_from(names), st.text(max_size=5))
    return st.recursive(
        _JSON_LEAVES,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=4)),
        max_leaves=8,
    )


@st.composite
def json_objects(draw: st.DrawFn) -> Any:
    """What somebody may hand to `msmqwire.from_json`: anything, or a packet with some of it replaced."""
    if draw(st.integers(0, 3)) == 0:
        kinds = [key for key, schema in SCHEMAS.items() if isinstance(schema, Packet)]
        named = st.fixed_dictionaries(
            {"packet": st.one_of(st.sampled_from(kinds), json_values()), "fields": json_values()}
        )
        return draw(st.one_of(named, json_values()))
    made = draw(st.one_of(packets(), pings(), remote_read_messages())).to_json()
    for _ in range(draw(st.integers(1, 3))):
        _spoil(draw, made)
    return made


def _spoil(draw: st.DrawFn, tree: dict[str, Any]) -> None:
    holder: Any = tree
    while True:
        keys = sorted(holder) if isinstance(holder, dict) else range(len(holder))
        if not keys:
            return
        key = draw(st.sampled_from(keys))
        if isinstance(holder[key], dict | list) and draw(st.integers(0, 5)):
            holder = holder[key]
            continue
        match draw(st.sampled_from(["replace", "replace", "remove", "add"])):
            case "replace":
                holder[key] = draw(json_values())
            case "remove":
                del holder[key]
            case "add" if isinstance(holder, dict):
                holder[draw(st.text(max_size=5))] = draw(json_values())
            case "add":
                holder.append(draw(json_values()))
        return
