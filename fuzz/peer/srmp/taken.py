"""Messages that a peer has to take, and its behaviour then: receipts, duplicates."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from fuzz.peer.binary.messages import merged
from fuzz.peer.srmp.cases import accepted, case, changed, refused
from fuzz.peer.srmp.messages import (
    NEVER,
    OTHER,
    PAST,
    RECEIVED,
    SENT,
    authority,
    date,
    envelope,
    post,
    receipts,
    wants_receipt,
)
from fuzz.peer.steps import IDENTITY, Case, Step
from fuzz.peer.target import Target
from msmqwire.srmp.identifiers import MessageIdentifier

TAKEN = "SRMP-3.1.1.1.2.2-04"
RECEIPT = "SRMP-2.2.5.2.2-05"


def checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases, each with values that are drawn anew."""
    yield from _contents(target, source)
    yield from _elements(target, source)
    yield from _forms(target, source)
    yield from _duplicates(target, source)
    yield from _expired(target, source)
    yield from _kinds(target, source)


def number_of(source: random.Random) -> int:
    """Return a number for a message."""
    return source.randrange(1, 1 << 31)


def asking(target: Target, number: int, groups: dict[str, Any] | None = None) -> bytes:
    """Return the envelope of a message that asks for a delivery receipt."""
    return envelope(target, number, merged(wants_receipt(target, number), groups or {}))


def _taken(requirement: str, data: bytes, note: str) -> Case:
    """Return the case of one message, which asks for a receipt."""
    text = f"{note[0].upper()}{note[1:]} is taken with 200, and its delivery receipt comes."
    return case(requirement, text, accepted(requirement, data, note))


def _contents(target: Target, source: random.Random) -> Iterator[Case]:
    yield _taken(RECEIPT, post(target, asking(target, number_of(source))), "a message")
    for size in (0, 1, source.randrange(2, 4000), 65_536, 300_000):
        data = post(target, asking(target, number_of(source)), source.randbytes(size))
        yield _taken("SRMP-2.2.2-07", data, f"a message with a body of {size} bytes")
    delimiter = b"--MSMQ - SOAP boundary, 77077"
    for body in (delimiter + b"--\r\n", b"\r\n" + delimiter + b"\r\n", delimiter * 3, bytes(range(256))):
        step = accepted(
            "SRMP-2.2.2-16",
            post(target, asking(target, number_of(source)), body),
            "a message with a delimiter in its body",
        )
        yield case("SRMP-2.2.2-16", "A body is as long as its Content-Length says.", step)
    data = post(target, asking(target, number_of(source)), b"body", source.randbytes(100))
    yield _taken("SRMP-2.2.2-07", data, "a message with body and extension")
    for number in (1, 0xFFFF_FFFF, 0x8000_0000):
        yield _taken("SRMP-2.2.5.4-04", post(target, asking(target, number)), f"message {number}")


def _elements(target: Target, source: random.Random) -> Iterator[Case]:
    guid = UUID(int=source.getrandbits(128))
    correlation = source.randbytes(20)
    groups: list[tuple[str, str, dict[str, Any]]] = [
        ("SRMP-2.2.4.1-02", "an empty label", {"path": {"action": "MSMQ:"}}),
        (
            "SRMP-2.2.4.1-04",
            "a label with <, & and >",
            {"path": {"action": 'MSMQ:a<b>&amp; "c" \u00e9\u4e2d'}},
        ),
        ("SRMP-2.2.4.1-04", "a label of 124 characters", {"path": {"action": "MSMQ:" + "l" * 124}}),
        ("SRMP-2.2.4.4-02", "a response queue", {"path": {"rev": {"via": receipts(target, "answers")}}}),
        (
            "SRMP-2.2.5.1.2-01",
            "a limit that is none",
            {"properties": {"expiresAt": NEVER}, "Msmq": {"TTrq": NEVER}},
        ),
        ("SRMP-2.2.5.1.2-04", "no sentAt", {"properties": {"sentAt": None}}),
        ("SRMP-2.2.5.2.1-05", "durable", {"services": {"durable": True}}),
        ("SRMP-2.2.6.5-02", "a Correlation", {"Msmq": {"Correlation": correlation}}),
        ("SRMP-2.2.6.2-02", "the lowest Priority", {"Msmq": {"Priority": 0}}),
        ("SRMP-2.2.6.2-02", "the highest Priority", {"Msmq": {"Priority": 7}}),
        (
            "SRMP-2.2.6-04",
            "every flag of Msmq",
            {"Msmq": {"Journal": True, "DeadLetter": True, "Trace": True}},
        ),
        (
            "SRMP-2.2.6-04",
            "App, BodyType and HashAlgorithm",
            {
                "Msmq": {
                    "App": source.getrandbits(32),
                    "BodyType": source.getrandbits(32),
                    "HashAlgorithm": 32772,
                }
            },
        ),
        ("SRMP-2.2.6-04", "a connector type", {"Msmq": {"ConnectorType": guid}}),
        ("SRMP-2.2.6-03", "no Msmq", {"Msmq": None}),
    ]
    for requirement, note, changes in groups:
        data = post(target, asking(target, number_of(source), changes), source.randbytes(9))
        yield _taken(requirement, data, f"a message with {note}")
    text = "Both requests for receipts are read; the one for the delivery is answered now."
    number = number_of(source)
    to = receipts(target, f"d{number}")
    asks = {
        "deliveryReceiptRequest": {"sendTo": to},
        "commitmentReceiptRequest": {"sendTo": to, "positiveOnly": True},
    }
    data = post(target, envelope(target, number, {"services": asks}))
    yield case(RECEIPT, text, accepted(RECEIPT, data, "a message that asks for both receipts"))


def _forms(target: Target, source: random.Random) -> Iterator[Case]:
    """Envelopes that say the same in other words."""

    def form(requirement: str, note: str, *changes: tuple[str, str], msmq: bool = True) -> Case:
        text = asking(target, number_of(source), None if msmq else {"Msmq": None})
        for old, new in changes:
            text = changed(text, old, new)
        return _taken(requirement, post(target, text), f"a message with {note}")

    end = "</path>"
    for name in ("fwd", "from", "relatesTo", "fault"):
        yield form("SRMP-2.2.4.5-01", f"{name} in path", (end, f"<{name}>uuid:1@x</{name}>{end}"))
    yield form(
        "SRMP-2.2.5.1.3-01", "inReplyTo", ("</properties>", "<inReplyTo>uuid:1@x</inReplyTo></properties>")
    )
    yield form(
        "SRMP-2.2.2-05",
        "something in the SOAP Body",
        ("<se:Body></se:Body>", "<se:Body><a>text</a></se:Body>"),
    )
    yield form("SRMP-2.2.4.1-03", "an action without MSMQ:", ("MSMQ:msmqwire", "Generic label"))
    for identifier in ("anything", f"uuid:5@{IDENTITY}", "uuid:@", ""):
        text = asking(target, number_of(source), {"Msmq": None})
        before, _, rest = text.partition(b"<id>")
        text = before + b"<id>" + identifier.encode() + rest[rest.index(b"</id>") :]
        step = accepted(
            "SRMP-2.2.4.3-03", post(target, text), f"a message without Msmq whose id is {identifier!r}"
        )
        yield case("SRMP-2.2.4.3-03", "Without Msmq id is not used.", step)
    text = asking(target, number_of(source)).replace(b"se:", b"x:").replace(b"xmlns:se=", b"xmlns:x=")
    yield _taken("SRMP-2.2.3-06", post(target, text), "another prefix for SOAP")
    upper = asking(target, number_of(source)).replace(str(IDENTITY).encode(), str(IDENTITY).upper().encode())
    yield _taken("SRMP-2.2.1.1-01", post(target, upper), "a message with GUIDs in capital letters")
    start = f"http://{authority(target)}"
    yield form("SRMP-2.1.1-04", "to in capital letters", (f"<to>{start}/msmq/", f"<to>{start}/MSMQ/"))
    blank = asking(target, number_of(source)).replace(b"><", b">\r\n  <")
    yield _taken("SRMP-2.2-01", post(target, blank), "blanks between elements")
    yield form("SRMP-2.2-01", "a comment", ("<se:Header>", "<!-- comment --><se:Header>"))
    yield form("SRMP-2.2-01", "a character reference", ("MSMQ:msmqwire", "MSMQ&#58;msm&#x71;wire"))
    sent, lasts = (f"<{name}>{date(at)}</{name}>" for name, at in (("sentAt", SENT), ("expiresAt", RECEIVED)))
    yield form("SRMP-2.2.5-03", "sentAt first", (lasts + sent, sent + lasts))
    priority, body_type = "<Priority>3</Priority>", "<BodyType>0</BodyType>"
    yield form("SRMP-2.2.6-04", "BodyType before Priority", (priority + body_type, body_type + priority))


def _duplicates(target: Target, source: random.Random) -> Iterator[Case]:
    text = "A message that comes twice is answered with 200 twice, and taken once."
    once, number = "SRMP-3.1.5.1.11-02", number_of(source)
    first = accepted(once, post(target, asking(target, number), b"first"), "a message")
    again = accepted(once, first.data, "the same message again")
    other = accepted(RECEIPT, post(target, asking(target, number + 1)), "another message")
    yield case(once, text, first, Step("receipts"), again, other, Step("receipts"), again)
    yield case(once, text, first, again, again, other)
    text = "A message that was refused, and comes again in the right form, is taken."
    number = number_of(source)
    wrong = changed(asking(target, number), "<Priority>3</Priority>", "<Priority>8</Priority>")
    right = accepted(
        "SRMP-3.1.5.1.11-03", post(target, asking(target, number)), "the message, in the right form"
    )
    yield case(
        "SRMP-3.1.5.1.11-03", text, refused("SRMP-2.2.6.2-02", post(target, wrong), "Priority 8"), right
    )
    text = "The same number of another queue manager is another message."
    number = number_of(source)
    groups = {
        "path": {"id": MessageIdentifier(number, OTHER)},
        "Msmq": {"SourceQmGuid": OTHER},
        "services": {"deliveryReceiptRequest": {"sendTo": receipts(target, f"o{number}")}},
    }
    steps = [
        accepted("SRMP-3.1.5.1.11-04", post(target, asking(target, number)), "a message"),
        accepted("SRMP-3.1.5.1.11-04", post(target, envelope(target, number, groups)), "that of another"),
    ]
    yield case("SRMP-3.1.5.1.11-04", text, *steps)
    text = "Messages without Msmq are never duplicates."
    data = post(target, asking(target, number_of(source), {"Msmq": None}), b"no Msmq")
    step = accepted("SRMP-3.1.5.1.11-01", data, "a message without Msmq")
    yield case("SRMP-3.1.5.1.11-01", text, step, step, step)


def _expired(target: Target, source: random.Random) -> Iterator[Case]:
    """Whether a message that is over is kept, section 3.1.5.1.4 denies, and 2.2.6.17 and figure 4 demand."""
    text = "A message that is over is answered with 200."
    ids = "SRMP-3.1.1.1.2.2-02"
    for groups in ({"Msmq": {"TTrq": PAST}}, {"Msmq": None, "properties": {"expiresAt": PAST}}):
        data = post(target, envelope(target, number_of(source), groups))
        yield case(
            ids, text, Step("request", data=data, expects=f"status 200 {ids}", note="a message that is over")
        )
    text = "A malformed message is refused, also when it is over."
    wrong = changed(
        envelope(target, number_of(source), {"Msmq": {"TTrq": PAST}}),
        "<Priority>3</Priority>",
        "<Priority>9</Priority>",
    )
    yield case("SRMP-3.1.1.1.2.2-05", text, refused("SRMP-3.1.1.1.2.2-05", post(target, wrong), "Priority 9"))


def _kinds(target: Target, source: random.Random) -> Iterator[Case]:
    """Receipts of this side, and messages that are of no kind."""
    guid, number = UUID(int=source.getrandbits(128)), number_of(source)
    identifier = MessageIdentifier(number, guid)
    delivery = {"receivedAt": SENT, "id": identifier}
    commitment = {"decidedAt": SENT, "decision": "positive", "id": identifier}
    text = "A delivery receipt is put into the queue that it is for."
    groups: dict[str, Any] = {"deliveryReceipt": delivery, "Msmq": {"Class": 2}}
    data = post(target, envelope(target, number, groups))
    yield case("SRMP-3.1.5.1.7-01", text, accepted("SRMP-3.1.5.1.7-01", data, "a delivery receipt"))
    text = "A commitment receipt is put into the queue that it is for."
    groups = {"commitmentReceipt": commitment, "Msmq": {"Class": 0x4000}}
    data = post(target, envelope(target, number + 1, groups))
    yield case("SRMP-3.1.5.1.10-01", text, accepted("SRMP-3.1.5.1.10-01", data, "a commitment receipt"))
    text = "A message that is of no kind is ignored, and the next one taken."
    both = {"deliveryReceipt": delivery, "commitmentReceipt": commitment, "Msmq": {"Class": 2}}
    wrong_class = {"deliveryReceipt": delivery, "Msmq": {"Class": 0x4000}}
    for groups in (both, wrong_class):
        odd = Step(
            "request",
            data=post(target, envelope(target, number_of(source), groups)),
            expects="answered",
            note="a message of no kind",
        )
        following = accepted(RECEIPT, post(target, asking(target, number_of(source))), "a message")
        yield case("SRMP-3.1.5.1.5-01", text, odd, following)
