"""The bytes that signatures cover, written by hand: [MS-MQMQ] 2.5."""

from __future__ import annotations

import struct
from typing import Any

import pytest

import msmqwire
from msmqwire.crypto.readings import Readings
from msmqwire.crypto.signed_fields import SignatureVersion, signed_fields
from msmqwire.errors import InvalidName, InvalidValue
from msmqwire.schema import Record
from tests.support import handmade
from tests.support.codec_checks import requirement
from tests.support.handmade import wide

V1, V2, V3 = SignatureVersion
GUIDS = [bytes([0xA0 + number]) * 16 for number in range(4)]
SOURCE, HOST, LIST, QUEUE = GUIDS
CORRELATION = bytes(range(20))
DESTINATION = "TCP:10.0.0.9\\private$\\letters"

USER: dict[str, Any] = {
    "source": SOURCE,
    "address": HOST,
    "flags": handmade.MP | 0x20 | 0x200,  # DM 1, JP
    "destination": (7, handmade.direct_name(DESTINATION, fill=b"\xee")),
    "admin": (5, QUEUE),
    "response": (6, handmade.private_name(HOST, 0xABC)),
}
PROPERTIES: dict[str, Any] = {
    "flags": 0x0D,
    "label": "order",
    "message_class": 0x0102,
    "correlation_id": CORRELATION,
    "body_type": 0x1F,
    "application_tag": 0x01020304,
    "body": b"the body",
    "extension": b"extension",
}
MULTI = handmade.multi_queue_format_header(
    [handmade.mqf_direct("OS:a\\q"), handmade.mqf_public(QUEUE), handmade.mqf_private(HOST, 7)],
    [handmade.mqf_list(LIST)],
    [handmade.mqf_direct("OS:b\\q")],
    fill=b"\xdd",
)


def packet(
    user: dict[str, Any] | None = None, properties: dict[str, Any] | None = None, **parts: Any
) -> Record:
    """A message with all that is signed, in which `user`, `properties` and `parts` are set."""
    return msmqwire.parse(
        handmade.user_message(
            user=handmade.user_header(**{**USER, **(user or {})}),
            properties=handmade.properties_header(**{**PROPERTIES, **(properties or {})}),
            **{"flags": 5, "multi_queue": MULTI, **parts},
        )
    )


FIRST = [  # the six items of all versions
    CORRELATION,
    struct.pack("<L", 0x01020304),
    b"the body",
    wide("order"),
    HOST + struct.pack("<L", 0xABC),
    QUEUE,
]
SENDING = [
    SOURCE,
    b"\1",
    b"\5",
    b"\2",
    b"\x0d",
    struct.pack("<H", 0x0102),
    struct.pack("<L", 0x1F),
    bytes(16),
]
DIRECT = struct.pack("<H", len(wide(DESTINATION))) + wide(DESTINATION)
NAMES = b"\3\0" + wide("OS:a\\q") + b"\1\0" + QUEUE + b"\2\0" + HOST + b"\7\0\0\0"


@requirement("MQMQ-2.5-01", "MQMQ-2.5-02", "MQMQ-2.2.20.6-25")
@requirement(*(f"MQMQ-2.5.1-{row:02}" for row in range(1, 8)))
def test_fields_of_msmq_1() -> None:
    assert signed_fields(packet(), V1) == b"".join(FIRST)


@requirement("MQMQ-2.5-01", "MQMQ-2.5-02", "MQMQ-2.2.20.6-26")
@requirement(*(f"MQMQ-2.5.2-{row:02}" for row in range(1, 11)))
def test_fields_of_msmq_2() -> None:
    assert signed_fields(packet(), V2) == b"".join([*FIRST, *SENDING, DIRECT])


@requirement("MQMQ-2.5-01", "MQMQ-2.5-02", "MQMQ-2.2.20.6-27")
@requirement(*(f"MQMQ-2.5.3-{row:02}" for row in range(1, 12)))
def test_fields_of_msmq_3() -> None:
    """Of the three lists the destinations alone."""
    assert signed_fields(packet(), V3) == b"".join([*FIRST, b"extension", NAMES, *SENDING])


# What is changed, the versions whose bytes change, and the rows that say so.
CHANGES: list[tuple[str, dict[str, Any], set[SignatureVersion], tuple[str, ...]]] = [
    ("CorrelationID", {"properties": {"correlation_id": b"c" * 20}}, {V1, V2, V3}, ("MQMQ-2.5.1-02",)),
    ("ApplicationTag", {"properties": {"application_tag": 5}}, {V1, V2, V3}, ("MQMQ-2.5.1-03",)),
    ("MessageBody", {"properties": {"body": b"The body"}}, {V1, V2, V3}, ("MQMQ-2.5.1-04",)),
    ("Label", {"properties": {"label": "Order"}}, {V1, V2, V3}, ("MQMQ-2.5.1-05",)),
    ("ResponseQueue", {"user": {"response": (5, LIST)}}, {V1, V2, V3}, ("MQMQ-2.5.1-06",)),
    ("AdminQueue", {"user": {"admin": (5, LIST)}}, {V1, V2, V3}, ("MQMQ-2.5.1-07",)),
    ("SourceQueueManager", {"user": {"source": LIST}}, {V2, V3}, ("MQMQ-2.5.2-02", "MQMQ-2.5.3-04")),
    ("DM", {"user": {"flags": handmade.MP | 0x200}}, {V2, V3}, ("MQMQ-2.5.2-03", "MQMQ-2.5.3-05")),
    ("PR", {"flags": 4}, {V2, V3}, ("MQMQ-2.5.2-04", "MQMQ-2.5.3-06")),
    ("JN", {"user": {"flags": handmade.MP | 0x320}}, {V2, V3}, ("MQMQ-2.5.2-05", "MQMQ-2.5.3-07")),
    ("JP", {"user": {"flags": handmade.MP | 0x20}}, {V2, V3}, ("MQMQ-2.5.2-05", "MQMQ-2.5.3-07")),
    ("Flags", {"properties": {"flags": 0x05}}, {V2, V3}, ("MQMQ-2.5.2-06", "MQMQ-2.5.3-08")),
    ("MessageClass", {"properties": {"message_class": 2}}, {V2, V3}, ("MQMQ-2.5.2-07", "MQMQ-2.5.3-09")),
    ("BodyType", {"properties": {"body_type": 8}}, {V2, V3}, ("MQMQ-2.5.2-08", "MQMQ-2.5.3-10")),
    ("ConnectorType", {"user": {"connector_type": LIST}}, {V2, V3}, ("MQMQ-2.5.2-09", "MQMQ-2.5.3-11")),
    ("DestinationQueue", {"user": {"destination": (5, LIST)}}, {V2}, ("MQMQ-2.5.2-10", "MQMQ-2.5.3-12")),
    ("ExtensionData", {"properties": {"extension": b"x"}}, {V3}, ("MQMQ-2.5.2-11", "MQMQ-2.5.3-02")),
    (
        "FormatNameList",
        {"multi_queue": handmade.multi_queue_format_header([handmade.mqf_public(LIST)])},
        {V3},
        ("MQMQ-2.5.3-03",),
    ),
    ("X4", {"properties": {"flags": 0xFD}}, set(), ("MQMQ-2.5.2-06", "MQMQ-2.5.3-08")),
    ("RC", {"user": {"flags": handmade.MP | 0x23F}}, set(), ()),
    ("MessageID", {"user": {"message_id": 77, "sent_time": 5, "time_to_be_received": 4}}, set(), ()),
    ("TimeToReachQueue", {"time_to_reach_queue": 9, "reserved": 9}, set(), ()),
    ("PrivacyLevel", {"properties": {"privacy_level": 5, "hash_algorithm": 0x8004}}, set(), ()),
    ("padding", {"user": {"destination": (7, handmade.direct_name(DESTINATION))}}, set(), ()),
    ("SecurityHeader", {"security": handmade.security_header(signature=b"signature")}, set(), ()),
    ("TransactionHeader", {"transaction": handmade.transaction_header()}, set(), ()),
]


@pytest.mark.parametrize(
    "change, versions",
    [pytest.param(change, versions, marks=requirement(*ids), id=name) if ids
     else pytest.param(change, versions, id=name) for name, change, versions, ids in CHANGES],
)  # fmt: skip
def test_what_changes_the_bytes(change: dict[str, Any], versions: set[SignatureVersion]) -> None:
    before, after = packet(), packet(**change)
    assert before != after
    assert {v for v in SignatureVersion if signed_fields(before, v) != signed_fields(after, v)} == versions


@requirement("MQMQ-2.5.2-05", "MQMQ-2.5.3-07")
@pytest.mark.parametrize("word, expected", [(0, 0), (0x100, 1), (0x200, 2), (0x300, 3)])
def test_journaling(word: int, expected: int) -> None:
    record = packet({"flags": handmade.MP | word})
    assert signed_fields(record, V2) == b"".join(
        [*FIRST, SOURCE, b"\0", b"\5", bytes([expected]), *SENDING[4:], DIRECT]
    )


def text_of(byte: str) -> str:
    """A GUID of which all bytes are this one."""
    return "-".join(byte * count for count in (4, 2, 2, 2, 6))


FORMS = [  # a queue of the UserHeader as bytes, and as text
    ((0, b""), b"", ""),
    ((2, handmade.private_id(5)), handmade.private_id(5), f"PRIVATE={text_of('a0')}\\00000005"),
    ((3, handmade.private_id(5)), handmade.private_id(5), f"PRIVATE={text_of('a1')}\\00000005"),
    ((5, LIST), LIST, f"PUBLIC={text_of('a2')}"),
    (
        (6, handmade.private_name(LIST, 0xAB)),
        LIST + b"\xab\0\0\0",
        f"PRIVATE={text_of('a2')}\\000000ab",
    ),
    (
        (7, handmade.direct_name("Tcp:10.0.0.9\\q", fill=b"\xee")),
        struct.pack("<H", 30) + wide("Tcp:10.0.0.9\\q"),
        "DIRECT=Tcp:10.0.0.9\\q",
    ),
]


@requirement("MQMQ-2.5-03")
@pytest.mark.parametrize("queue, header, text", FORMS, ids=[str(form[0][0]) for form in FORMS])
def test_readings_of_queues(queue: tuple[int, bytes], header: bytes, text: str) -> None:
    record = packet({"admin": queue, "response": (0, b"")})
    head = b"".join(FIRST[:4])
    plain = text.encode("utf-16-le")
    assert signed_fields(record, V1) == head + header
    assert signed_fields(record, V1, Readings(queue_names="text")) == head + plain
    with_null = plain + b"\0\0" if text else b""
    assert signed_fields(record, V1, Readings(queue_names="text-with-null")) == head + with_null
    # One of both is absent, or both.
    nulls = Readings(absent_queues_as_null=True)
    assert signed_fields(record, V1, nulls) == head + b"\0\0" + (header or b"\0\0")
    nulls = Readings(queue_names="text-with-null", absent_queues_as_null=True)
    assert signed_fields(record, V1, nulls) == head + b"\0\0" + (with_null or b"\0\0")


@requirement("MQMQ-2.5-03")
def test_readings_of_a_response_queue_by_the_admin_queue() -> None:
    """The response queue refers to the administration queue, or to its host."""
    head = b"".join(FIRST[:4])
    for kind, name, header, text in (
        (1, b"", b"", f"PRIVATE={text_of('a1')}\\00000009"),
        (4, handmade.private_id(6), handmade.private_id(6), f"PRIVATE={text_of('a1')}\\00000006"),
    ):  # fmt: skip
        record = packet({"admin": (6, handmade.private_name(HOST, 9)), "response": (kind, name)})
        admin = HOST + handmade.private_id(9)
        assert signed_fields(record, V1) == head + header + admin
        admin = f"PRIVATE={text_of('a1')}\\00000009".encode("utf-16-le")
        assert (
            signed_fields(record, V1, Readings(queue_names="text")) == head + text.encode("utf-16-le") + admin
        )


@requirement("MQMQ-2.5-03", "MQMQ-2.5.1-05")
@pytest.mark.parametrize(
    "label, with_null, without", [(None, b"", b""), ("a", b"a\0\0\0", b"a\0"), ("", b"\0\0", b"")]
)
def test_readings_of_the_label(label: str | None, with_null: bytes, without: bytes) -> None:
    record = packet({"admin": (0, b""), "response": (0, b"")}, {"label": label})
    head = b"".join(FIRST[:3])
    assert signed_fields(record, V1) == head + with_null
    assert signed_fields(record, V1, Readings(label_null=False)) == head + without


@requirement("MQMQ-2.5-03")
def test_a_label_without_null_goes_in_as_it_is() -> None:
    raw = handmade.properties_header(**{**PROPERTIES, "label": "ab", "label_length": 2})
    record = msmqwire.parse(handmade.user_message(properties=raw[:60] + raw[62:] + bytes(2)))
    assert record.MessagePropertiesHeader.Label == b"a\0b\0"
    assert signed_fields(record, V1)[24:] == signed_fields(record, V1, Readings(label_null=False))[24:]


@requirement("MQMQ-2.5.2-09", "MQMQ-2.5.3-11")
def test_readings_of_an_absent_connector_type() -> None:
    nothing = Readings(absent_connector_type_as_null=False)
    assert signed_fields(packet(), V2, nothing) == b"".join([*FIRST, *SENDING[:-1], DIRECT])
    assert signed_fields(packet(), V3, nothing) == b"".join([*FIRST, b"extension", NAMES, *SENDING[:-1]])
    there = packet({"connector_type": LIST})
    for readings in (Readings(), nothing):
        assert signed_fields(there, V2, readings) == b"".join([*FIRST, *SENDING[:-1], LIST, DIRECT])


@requirement("MQMQ-2.5.3-03")
def test_readings_of_the_lists() -> None:
    everything = NAMES + b"\6\0" + LIST + b"\3\0" + wide("OS:b\\q")
    readings = Readings(format_name_lists="all")
    assert signed_fields(packet(), V3, readings) == b"".join([*FIRST, b"extension", everything, *SENDING])
    a1, a2, a3 = (text_of(name) for name in ("a1", "a2", "a3"))
    texts = [f"DIRECT=OS:a\\q,PUBLIC={a3},PRIVATE={a1}\\00000007", f"DL={a2}", "DIRECT=OS:b\\q"]
    for queue_names, null in (("text", b""), ("text-with-null", b"\0\0")):
        readings = Readings(queue_names=queue_names, format_name_lists="all")  # type: ignore[arg-type]
        expected = b"extension" + b"".join(text.encode("utf-16-le") + null for text in texts)
        assert expected + SOURCE in signed_fields(packet(), V3, readings)
        readings = Readings(queue_names=queue_names)  # type: ignore[arg-type]
        expected = b"extension" + texts[0].encode("utf-16-le") + null
        assert expected + SOURCE in signed_fields(packet(), V3, readings)


def test_a_built_message_is_covered_like_a_parsed_one() -> None:
    record = packet()
    made = record.schema.make(record.to_json()["fields"])
    for version in SignatureVersion:
        assert signed_fields(made, version) == signed_fields(record, version)


def test_fields_that_are_not_there() -> None:
    with pytest.raises(InvalidValue, match="not there"):
        signed_fields(packet(multi_queue=b""), V3)
    record = packet()
    del record.MessagePropertiesHeader.ApplicationTag
    with pytest.raises(InvalidValue, match="ApplicationTag"):
        signed_fields(record, V1)
    record.MessagePropertiesHeader.ApplicationTag = 1 << 32
    with pytest.raises(InvalidValue, match="does not fit"):
        signed_fields(record, V1)


def test_a_queue_without_a_name_has_no_text() -> None:
    record = packet({"destination": (7, handmade.direct_name("nonsense"))})
    assert signed_fields(record, V1, Readings(queue_names="text"))
    with pytest.raises(InvalidName, match=r"^UserHeader\.DestinationQueue"):
        signed_fields(record, V2, Readings(queue_names="text"))
    assert signed_fields(record, V2).endswith(wide("nonsense"))
