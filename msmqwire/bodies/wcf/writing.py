"""Messages of WCF, from XML: the records of the framing, and the envelope in one of its encodings.

Records are chosen as WCF itself chooses them for text: names and namespaces of the static dictionary by their
number, all other names as they are or, in a session, by number; a text as its characters, ``0`` and ``1`` as
their own records; the end of an element in the record of its text.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any, Final

from msmqwire.bodies.body import Plain
from msmqwire.bodies.limits import DEFAULT
from msmqwire.bodies.wcf.fault import build_size
from msmqwire.bodies.wcf.framing import (
    CONTENT_TYPE_MAX,
    ENCODINGS,
    MODES,
    SINGLETON_SIZED,
    SINGLETON_UNSIZED,
    VIA_MAX,
    Kind,
    build_record,
)
from msmqwire.bodies.wcf.framing import Record as Frame
from msmqwire.bodies.wcf.infoset import Comment, End, IllFormed, Start, Text, events
from msmqwire.bodies.wcf.names import LETTERS, XMLNS
from msmqwire.bodies.wcf.nbfx import COMMENT, END_ELEMENT
from msmqwire.bodies.wcf.records import Record, build
from msmqwire.bodies.wcf.words import NUMBERS
from msmqwire.errors import InvalidValue
from msmqwire.names.printable import counted

DEFAULT_ENCODING: Final = 7
"""The encoding of NetMsmqBinding for a message alone; in a session it has 8."""
_BINARY, _BINARY_SESSION = 7, 8
_TEXTS: Final = {0: "utf-8", 1: "utf-16-le", 2: "utf-16-le", 3: "utf-8", 4: "utf-16-le", 5: "utf-16-le"}
_TYPES: Final = {"application/soap+msbin1": _BINARY, "application/soap+msbinsession1": _BINARY_SESSION}
_SESSIONS: Final = frozenset(MODES) - {SINGLETON_SIZED, SINGLETON_UNSIZED}
_MEMBERS: Final = frozenset({"via", "encoding", "xml", "mode", "more"})


def write_body(value: Plain, type_: str | None) -> bytes:
    """Return the body with a message. Raises InvalidValue."""
    if type_ is not None:
        raise InvalidValue("a message of WCF has no type", path="type")
    if not isinstance(value, dict):
        raise InvalidValue("a message of WCF is an object with via, encoding and xml")
    for name in value:
        if name not in _MEMBERS:
            raise InvalidValue("a message of WCF has no such member", path=name)
    encoding, number = _encoding(value.get("encoding", DEFAULT_ENCODING))
    mode = _mode(value.get("mode", MODES[SINGLETON_SIZED]))
    session = SessionWriter() if number == _BINARY_SESSION else None
    more = value.get("more", [])
    if not isinstance(more, list):
        raise InvalidValue("these are the envelopes after the first one, a list", path="more")
    via, first = value.get("via"), value.get("xml")
    named = [("xml", first), *((f"more[{index}]", xml) for index, xml in enumerate(more))]
    if first is None and "xml" in value and via is not None and mode in _SESSIONS and not more:
        named = []  # a session may end without any
    envelopes = [_envelope(xml, path, number, session) for path, xml in named]
    if via is None:
        if number not in (_BINARY, _BINARY_SESSION) or mode != SINGLETON_SIZED or more:
            raise InvalidValue("only one envelope of records can stand without framing", path="via")
        return envelopes[0]
    frames = [
        Frame(Kind.VERSION, (1, 0)),  # NMF-2.2.3.1-03
        Frame(Kind.MODE, mode),
        Frame(Kind.VIA, _text(via, "via", VIA_MAX)),
        encoding,
    ]
    preamble = b"".join(build_record(frame) for frame in frames)
    if mode == SINGLETON_SIZED:
        if more:
            raise InvalidValue("a message alone has nothing after it: mode is Simplex for more", path="more")
        return preamble + envelopes[0]
    if mode == SINGLETON_UNSIZED:
        if more:
            raise InvalidValue("a session of this mode has one envelope", path="more")
        stream = [Frame(Kind.UNSIZED_ENVELOPE, (envelopes[0],))]
    else:
        stream = [Frame(Kind.SIZED_ENVELOPE, envelope) for envelope in envelopes]
    stream = [Frame(Kind.PREAMBLE_END), *stream, Frame(Kind.END)]  # NMF-3.2.4.2-01 and NMF-3.2.4.3-01
    return preamble + b"".join(build_record(frame) for frame in stream)


def _encoding(named: Plain) -> tuple[Frame, int]:
    """Return the record of an encoding, and the number that it has or is like."""
    if isinstance(named, str):
        text = _text(named, "encoding", CONTENT_TYPE_MAX)
        number = _TYPES.get(named.partition(";")[0].strip().lower())
        if number is None:
            raise InvalidValue("messages of this content type are not written", path="encoding")
        return Frame(Kind.EXTENSIBLE_ENCODING, text), number
    if isinstance(named, bool) or not isinstance(named, int) or named not in ENCODINGS:
        raise InvalidValue("this is not an encoding: 7 and 8 are records, 0 to 5 text", path="encoding")
    if named not in _TEXTS and named not in (_BINARY, _BINARY_SESSION):
        raise InvalidValue("MTOM is read and not written", path="encoding")
    return Frame(Kind.KNOWN_ENCODING, named), named


def _mode(named: Plain) -> int:
    for number, name in MODES.items():
        if name == named:
            return number
    raise InvalidValue(f"this is not a mode: {', '.join(MODES.values())}", path="mode")


def _text(value: Plain, path: str, most: int) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidValue("this is a text", path=path)
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError:
        raise InvalidValue("this text has half of a pair of surrogates", path=path) from None
    if size > most:
        raise InvalidValue(f"this text has {counted(size, 'byte')}, above {most}", path=path)
    return value


class SessionWriter:
    """Strings that a session defines as they come."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._new: list[str] = []

    def number(self, word: str) -> int:
        """Return the number of a string, a new one if need be."""
        number = self._numbers.get(word)
        if number is None:
            number = self._numbers[word] = 2 * len(self._numbers) + 1
            self._new.append(word)
        return number

    def table(self) -> bytes:
        """Return the table of the strings that are new since the last one."""
        raws = [word.encode("utf-8") for word in self._new]
        self._new.clear()
        strings = b"".join(build_size(len(raw)) + raw for raw in raws)
        return build_size(len(strings)) + strings


def _envelope(xml: Plain, path: str, number: int, session: SessionWriter | None) -> bytes:
    if not isinstance(xml, str):
        raise InvalidValue("this is the envelope, a text of XML", path=path)
    try:
        if number in _TEXTS:
            for _ in events(xml, DEFAULT.depth):
                pass
            mark = codecs.BOM_UTF16_LE if _TEXTS[number] == "utf-16-le" else b""
            return mark + xml.encode(_TEXTS[number])
        return write_document(xml, session)
    except IllFormed as exc:
        raise InvalidValue(f"{exc.why} (character {exc.offset})", path=path) from None


def write_document(xml: str, session: SessionWriter | None = None, *, depth: int = DEFAULT.depth) -> bytes:
    """Return XML as records, with the table of new strings before them in a session. Raises IllFormed."""
    document = build(_records(xml, session, depth))
    return document if session is None else session.table() + document


def _records(xml: str, session: SessionWriter | None, depth: int) -> Iterator[Record]:
    pending = ""  # text, until it is known whether the element ends after it
    for event in events(xml, depth):
        match event:
            case Text(text):
                pending += text
                continue
            case End():
                if pending:
                    record = text_record(pending)
                    yield Record(record.kind + 1, record.fields)
                    pending = ""
                else:
                    yield Record(END_ELEMENT)
                continue
        if pending:
            yield text_record(pending)
            pending = ""
        match event:
            case Start():
                yield _named(event.prefix, event.name, 0x40, session)
                for attribute in event.attributes:
                    yield from _attribute(*attribute, session)
            case Comment(text):
                yield Record(COMMENT, (text,))


def _number(word: str, session: SessionWriter | None) -> int | None:
    number = NUMBERS.get(word)
    return session.number(word) if number is None and session is not None else number


def _named(prefix: str, name: str, first: int, session: SessionWriter | None) -> Record:
    """Return the record of an element (the first type is 0x40) or attribute (0x04)."""
    number = _number(name, session)
    field: Any = name if number is None else number
    numbered = number is not None
    if not prefix:
        return Record(first + 2 * numbered, (field,))
    if len(prefix) > 1 or prefix not in LETTERS:
        return Record(first + 1 + 2 * numbered, (prefix, field))
    letters = {(0x40, True): 0x44, (0x40, False): 0x5E, (0x04, True): 0x0C, (0x04, False): 0x26}
    return Record(letters[first, numbered] + LETTERS.index(prefix), (field,))


def _attribute(prefix: str, name: str, value: str, session: SessionWriter | None) -> Iterator[Record]:
    if prefix == XMLNS or (not prefix and name == XMLNS):
        number = _number(value, session)
        field: Any = value if number is None else number
        kind = 0x08 if number is None else 0x0A
        yield Record(kind + 1, (name, field)) if prefix else Record(kind, (field,))
    else:
        yield _named(prefix, name, 0x04, session)
        yield text_record(value)


def text_record(text: str) -> Record:
    """Return the record of a text."""
    if not text:
        return Record(0xA8)
    if text == "0":
        return Record(0x80)
    if text == "1":
        return Record(0x82)
    units = text.encode("utf-16-le", "surrogatepass")
    try:
        raw = text.encode("utf-8")
        # As WCF decides it: a text whose characters take more than two bytes each is UTF-16.
        wide = len(raw) // 2 > len(units) // 2
    except UnicodeEncodeError:  # half of a pair of surrogates, which UTF-8 has not
        raw, wide = units, True
    raw, first = (units, 0xB6) if wide else (raw, 0x98)
    kind = 0 if len(raw) < 0x100 else 2 if len(raw) < 0x1_0000 else 4
    return Record(first + kind, (raw,))
