"""Bodies of WCF: the records of the framing, and in them the envelopes."""

from __future__ import annotations

from typing import Any

from msmqwire.bodies.body import Content
from msmqwire.bodies.limits import Budget, LimitExceeded
from msmqwire.bodies.wcf import FRAMED, bare_encoding
from msmqwire.bodies.wcf.envelopes import Encoding, encoding_of, read_envelope
from msmqwire.bodies.wcf.fault import Fault
from msmqwire.bodies.wcf.framing import (
    CONTENT_TYPE_MAX,
    MODES,
    SIMPLEX,
    SINGLETON_SIZED,
    SINGLETON_UNSIZED,
    UPGRADE_MAX,
    VIA_MAX,
    Kind,
    NmfMessage,
    chunks_of,
    read_preamble,
    read_record,
    sized,
)
from msmqwire.bodies.wcf.problems import Problems
from msmqwire.bodies.wcf.session import Session
from msmqwire.errors import MalformedBody
from msmqwire.names.printable import counted


def read_body(body: bytes, budget: Budget) -> Content:
    """Read a body. Raises MalformedBody."""
    problems = Problems()
    bare = None if FRAMED.match(body) else bare_encoding(body)
    if bare is not None:
        value: dict[str, Any] = {"via": None, "encoding": bare}
        value["xml"] = read_envelope(body, encoding_of(bare), Session(), budget, problems)
        return Content("wcf", value, problems=problems.all())
    try:
        message = read_preamble(body)
    except Fault as exc:
        raise MalformedBody(exc.why, path=exc.path, offset=exc.offset) from None
    value = {"via": message.via, "encoding": message.encoding}
    if message.encoding is None:
        value["encoding"] = message.content_type
    problems.base = len(body) - len(message.message)
    _judge(message, problems)
    encoding = encoding_of(value["encoding"])
    if encoding is None:
        # NMF-3.1.4.6-02
        problems.add(f"the encoding {value['encoding']!r} is not known", -1, "EncodingRecord")
    if message.mode == SINGLETON_SIZED:  # NMF-3.1.1.2-01 and NMF-3.3.4.4-01
        _put(value, message.message, encoding, Session(), budget, problems)
    else:
        value["mode"] = MODES[message.mode]
        _read_stream(message, value, encoding, budget, problems)
    value.setdefault("xml", None)
    return Content("wcf", value, problems=problems.all())


def _judge(message: NmfMessage, problems: Problems) -> None:
    """Report the faults for which a receiver of WCF refuses a preamble."""
    if len(message.via.encode()) > VIA_MAX:  # NMF-3.1.4.5-02
        problems.add(f"the via has more than {VIA_MAX} bytes", None, "ViaRecord.Via")
    if message.content_type is not None and len(message.content_type.encode()) > CONTENT_TYPE_MAX:
        why = f"the content type has more than {CONTENT_TYPE_MAX} bytes"
        problems.add(why, None, "ExtensibleEncodingRecord")


def _put(
    value: dict[str, Any],
    data: bytes,
    encoding: Encoding | None,
    session: Session,
    budget: Budget,
    problems: Problems,
) -> None:
    """Put an envelope into the value: the first one, or one more."""
    if encoding is None:
        # Nothing is known of it but its bytes.
        if "message" not in value:
            try:
                budget.text(2 * len(data))
            except LimitExceeded as exc:
                problems.add(exc.why, 0)
                data = b""
            value["message"] = {"$bytes": data.hex()}
        return
    xml = read_envelope(data, encoding, session, budget, problems)
    if "xml" in value:
        value.setdefault("more", []).append(xml)
    else:
        value["xml"] = xml


def _read_stream(
    message: NmfMessage, value: dict[str, Any], encoding: Encoding | None, budget: Budget, problems: Problems
) -> None:
    """Read the records after the preamble of a session."""
    data, session = message.message, Session()
    base = problems.base or 0
    at = 0
    ready = False
    try:
        while True:
            if at >= len(data):
                raise Fault("the session has no end record", at)
            problems.base = base
            budget.records()
            start, kind = at, data[at]
            if not ready and kind == Kind.UPGRADE_REQUEST and message.mode != SIMPLEX:  # NMF-3.1.1.2-04
                record, at = read_record(data, at)
                value["upgrade"] = record.value
                if len(str(record.value).encode()) > UPGRADE_MAX:
                    why = f"the upgrade has more than {UPGRADE_MAX} bytes"
                    problems.add(why, start, "UpgradeRequestRecord.UpgradeProtocol")
                raise Fault("the bytes after an upgrade are a protocol of their own, and not read", at)
            if not ready and kind == Kind.PREAMBLE_END:
                ready, at = True, at + 1  # NMF-3.3.4.2-01
            elif ready and kind == Kind.SIZED_ENVELOPE and message.mode != SINGLETON_UNSIZED:
                begin, at = sized(data, at + 1, Kind.SIZED_ENVELOPE)  # NMF-3.1.1.2-02
                problems.base = base + begin
                _put(value, data[begin:at], encoding, session, budget, problems)  # NMF-3.1.1.2-02
            elif ready and kind == Kind.UNSIZED_ENVELOPE and message.mode == SINGLETON_UNSIZED:
                if "xml" in value or "message" in value:
                    raise Fault("a second envelope in a session of one", at)
                whole = bytearray()
                pieces = chunks_of(data, at + 1)
                for begin, end in pieces:
                    whole += data[begin:end]  # NMF-3.1.1.2-03
                    at = end
                if not whole:
                    raise Fault("an envelope of no chunks", start, Kind.UNSIZED_ENVELOPE.record)
                at += 1
                budget.spend(len(whole))
                problems.base = None  # its bytes are not in one piece
                _put(value, bytes(whole), encoding, session, budget, problems)  # NMF-3.1.1.2-03
            elif ready and kind == Kind.END:
                if message.mode == SINGLETON_UNSIZED and not {"xml", "message"} & set(value):
                    raise Fault("a session of one envelope has none", at)  # NMF-3.1.1.2-03
                at += 1  # NMF-3.1.1.2-02, NMF-3.1.1.2-03
                break
            else:
                record, _ = read_record(data, at)
                raise Fault(f"{record.kind.record} can't stand here", at)  # NMF-3.1.4.2-01
        problems.base = base
        if at < len(data):
            raise Fault(f"{counted(len(data) - at, 'byte', 'are')} after the end record", at)
    except Fault as exc:
        problems.base = base
        problems.add(exc.why, exc.offset, exc.path)
    except LimitExceeded as exc:
        problems.base = base
        problems.add(exc.why, at)
