"""Envelopes in the encodings of [MC-NMF] 2.2.3.4, read to XML."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from xml.parsers import expat

from msmqwire.bodies.limits import NAMES_BASE, Budget, LimitExceeded
from msmqwire.bodies.wcf.fault import Fault
from msmqwire.bodies.wcf.infoset import IllFormed, events
from msmqwire.bodies.wcf.nbfx import read_document
from msmqwire.bodies.wcf.problems import Problems
from msmqwire.bodies.wcf.session import Session

TEXT, MTOM, BINARY, BINARY_SESSION = "text", "mtom", "nbfs", "nbfse"
_GZIP_BITS, _DEFLATE_BITS = 31, -15


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoding of an envelope.

    Attributes:
        kind: text, MTOM, or records without or with the strings of a session.
        charset: that of a text, where there is neither a byte order mark nor a zero byte to tell it.
        window: the parameter of `zlib` for its compression; None if it is not compressed.
    """

    kind: str
    charset: str = "utf-8"
    window: int | None = None


_KNOWN: Final[Mapping[int, Encoding]] = MappingProxyType(
    {
        **{number: Encoding(TEXT, "utf-8") for number in (0, 3)},
        **{number: Encoding(TEXT, "utf-16-le") for number in (1, 2, 4, 5)},
        6: Encoding(MTOM),
        7: Encoding(BINARY),
        8: Encoding(BINARY_SESSION),  # NMF-2.2.3.4.1-01
    }
)

_TYPES: Final[Mapping[str, Encoding]] = MappingProxyType(
    {
        "application/soap+msbin1": Encoding(BINARY),
        "application/soap+msbinsession1": Encoding(BINARY_SESSION),
        "application/soap+msbin1+gzip": Encoding(BINARY, window=_GZIP_BITS),
        "application/soap+msbinsession1+gzip": Encoding(BINARY_SESSION, window=_GZIP_BITS),
        "application/soap+msbin1+deflate": Encoding(BINARY, window=_DEFLATE_BITS),
        "application/soap+msbinsession1+deflate": Encoding(BINARY_SESSION, window=_DEFLATE_BITS),
        "multipart/related": Encoding(MTOM),
        "text/xml": Encoding(TEXT),
        "application/xml": Encoding(TEXT),
        "application/soap+xml": Encoding(TEXT),
    }
)
_CHARSET: Final = re.compile(r"""charset\s*+=\s*+["']?([\w.:-]{1,40})""", re.IGNORECASE)


def encoding_of(named: int | str | None) -> Encoding | None:
    """Return the encoding with a number or a content type; None if it is not known."""
    if isinstance(named, int):
        return _KNOWN.get(named)
    kind, _, parameters = (named or "").partition(";")  # NMF-2.2.3.4.2-02
    encoding = _TYPES.get(kind.strip().lower())
    charset = _CHARSET.search(parameters)
    if encoding is None or encoding.kind != TEXT or charset is None:  # NMF-2.2.3.4.2-02
        return encoding
    return Encoding(TEXT, charset[1])


def read_envelope(
    data: bytes, encoding: Encoding | None, session: Session, budget: Budget, problems: Problems
) -> str | None:
    """Return an envelope as XML; an unreadable part is a problem."""
    assert encoding is not None
    try:
        if encoding.window is not None:
            data = _unpacked(data, encoding.window, budget)
            problems.base = None
        if encoding.kind == TEXT:
            return read_text(data, encoding.charset, budget, problems)
        if encoding.kind == MTOM:
            from msmqwire.bodies.wcf.mtom import read_mtom

            return read_mtom(data, budget, problems)
        if encoding.kind == BINARY:
            return read_document(data, None, budget, problems)
        start = session.read(data, budget, problems)
        if problems.base is not None:
            problems.base += start
        return read_document(data[start:], session, budget, problems)  # NBFX-NBFSE-2-01
    except Fault as exc:
        problems.add(exc.why, exc.offset, exc.path)
    except LimitExceeded as exc:
        problems.add(exc.why, 0)
    return None


def _unpacked(data: bytes, window: int, budget: Budget) -> bytes:
    most = max(budget.memory // 4, 0)
    unpacker = zlib.decompressobj(window)
    try:
        plain = unpacker.decompress(data, most + 1)
    except zlib.error:
        raise Fault("the message is not compressed as its encoding says", 0) from None
    if len(plain) > most:
        raise LimitExceeded("the message is more than the limit for a body of this size when it is unpacked")
    budget.spend(len(plain))
    if not unpacker.eof:
        raise Fault("the compressed message ends early", len(data))
    return plain


def read_text(data: bytes, charset: str, budget: Budget, problems: Problems) -> str | None:
    """Return XML that is there as text. It stays as it is, also if it is none: that is a problem.

    The text says UTF-16 and "Unicode little-endian", its grammar UnicodeFFFE: the bytes themselves tell.
    """
    for mark, marked in _MARKS:
        if data.startswith(mark):
            charset, data = marked, data[len(mark) :]
            break
    else:
        if data.startswith(b"<\0"):
            charset = "utf-16-le"
        elif data.startswith(b"\0<"):
            charset = "utf-16-be"
    try:
        codec = codecs.lookup(charset)
    except LookupError:
        codec = None
    if codec is None or codec.name not in _CODECS:
        raise Fault(f"the character set {charset[:40]!r} is not read", 0)
    # A character takes four bytes in memory if one of them does.
    budget.spend((3 if max(data, default=0) >= 0xF0 else 1) * len(data))
    try:
        text = data.decode(codec.name)
    except UnicodeDecodeError as exc:
        problems.add(f"the text is not {codec.name.upper()}", exc.start)
        text = data.decode(codec.name, "replace")
    budget.text(len(text))
    judge(text, budget, problems)
    return text


_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CODECS: Final = frozenset({"utf-8", "utf-16-le", "utf-16-be", "ascii", "iso8859-1", "cp1252"})


def judge(text: str, budget: Budget, problems: Problems) -> None:
    """Tell why a text is not XML of a message."""
    if _is_plain(text, budget.depth):
        return
    count = 0
    try:
        for _ in events(text, budget.depth):
            count += 1
            if count == _EVENTS:
                budget.records(count)
                count = 0
    except IllFormed as exc:
        problems.add(f"{exc.why} (character {exc.offset})", None)
    except LimitExceeded as exc:
        problems.add(exc.why, None)


def _is_plain(text: str, depth: int) -> bool:
    """Return whether a usual parser takes a short text: the quick way to know that it is well-formed.

    A text that it does not take may still be in order, and `events` takes its time to say.
    """
    if len(text) > _PLAIN_MAX or "<!" in text or text.find("<?", 1) >= 0:
        return False
    if text.startswith("<?") and not text.startswith("<?xml "):
        return False
    left, names = depth + 1, NAMES_BASE

    def start(name: str, attributes: list[str]) -> None:
        nonlocal left, names
        left -= 1
        names -= len(name) + sum(map(len, attributes))
        if not left or names < 0:
            raise IllFormed("", 0)

    def end(name: str) -> None:
        nonlocal left
        left += 1

    parser = expat.ParserCreate("utf-8", "\n", intern={})
    parser.ordered_attributes = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(text.encode("utf-8"), True)
    except (expat.ExpatError, IllFormed, UnicodeEncodeError):
        return False
    return True


_PLAIN_MAX: Final = 0x1_0000
_EVENTS: Final = 1024
