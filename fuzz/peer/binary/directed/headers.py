"""The headers of messages: breaches of [MS-MQMQ] 2.2.19 and 2.2.20 that end a session, and breaches that are
ignored.

A breach counts only where the text says that the session ends, or where the structure can't be read at all:
a size or count beyond its container, a constant that identifies a structure. Correct peers may differ about a
number that is merely outside its range; walks send it, and accept either reaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fuzz.peer.binary import messages
from fuzz.peer.binary.cases import MALFORMED, OPENED, Draw, case, send
from fuzz.peer.steps import IDENTITY, Case
from msmqwire.headers import COMPOUND_MESSAGE_HEADER, SRMP_ENVELOPE_HEADER
from msmqwire.names.header_names import AT_DESTINATION
from msmqwire.schema import Record

_SECURITY: Final = {
    "UserHeader": {"Flags": {"SH": 1}},
    "SecurityHeader": {"Flags": {"ST": 2}, "SecurityData": {"SecurityID": IDENTITY.bytes_le}},
}
_DEBUG: Final = {"BaseHeader": {"Flags": {"DH": 1}}, "DebugHeader": {}}
_SOAP: Final = {
    "UserHeader": {"Flags": {"HH": 1}},
    "SoapHeader": {"Header": "<a/>", "Body": "<b/>"},
}
_HTTP: Final = {
    "UserHeader": {"Flags": {"AH": 1}},
    SRMP_ENVELOPE_HEADER.name: {},
    COMPOUND_MESSAGE_HEADER.name: {},
}


def headers(draw: Draw) -> Iterator[Case]:
    """Return the cases of this module."""
    yield from _names(draw)
    yield from _lengths(draw)
    yield from _optional(draw)
    yield from _absent(draw)
    yield from _ignored(draw)


def _broken(ids: tuple[str, ...], text: str, data: bytes, note: str) -> Case:
    return case(ids, text, *OPENED, send(data, "closed", note, ids))


def _with_bits(packet: Record, path: str, mask: int, value: int) -> bytes:
    """Return a packet with other bits in a flag word."""
    data = bytearray(packet.to_bytes())
    at = messages.place(packet, path)
    word = int.from_bytes(data[at : at + 4], "little") & ~mask | value
    data[at : at + 4] = word.to_bytes(4, "little")
    return bytes(data)


# -- UserHeader -----------------------------------------------------------------------------------------


def _names(draw: Draw) -> Iterator[Case]:
    """DQ and AQ that do not exist, and names that go beyond the packet."""
    text = "A type of queue name that does not exist ends the session."
    packet = draw.message(wants=messages.PA)
    for requirement, name, shift, numbers in (
        ("MQMQ-2.2.19.2-22", "DQ", 10, (1, 2, 4, 6)),
        ("MQMQ-2.2.19.2-24", "AQ", 13, (1, 4)),
    ):
        for number in numbers:
            data = _with_bits(packet, "UserHeader.Flags", 7 << shift, number << shift)
            yield _broken((requirement,), text, data, f"{name} {number}")
    yield from _forms(draw)
    text = "A direct name that goes beyond its packet ends the session."
    ids = ("MQMQ-2.2.18.1.5.2-05", MALFORMED)
    for field in ("DestinationQueue", "AdminQueue"):
        for count in (0xFFFE, 0xFFFF, 0x7FFE, len(packet.to_bytes())):
            data = messages.changed(packet, f"UserHeader.{field}.Count", count)
            yield _broken(ids, text, data, f"{field}.Count of {count}")


def _forms(draw: Draw) -> Iterator[Case]:
    """DQ and AQ that do not exist, with as many bytes for the name as a reader may look for."""
    text = "A type of queue name that does not exist ends the session."
    name = {"PrivateQueueIdentifier": draw.source.randrange(1, 1 << 31)}
    for requirement, field, bits, shift, numbers in (
        ("MQMQ-2.2.19.2-22", "DestinationQueue", "DQ", 10, (1, 2, 4, 6)),
        ("MQMQ-2.2.19.2-24", "AdminQueue", "AQ", 13, (1, 4)),
    ):
        packet = draw.message({"UserHeader": {"Flags": {bits: AT_DESTINATION}, field: name}})
        at = messages.place(packet, f"UserHeader.{field}.PrivateQueueIdentifier")
        for number in numbers:
            for size in (0, 4, 16, 20):
                data = bytearray(_with_bits(packet, "UserHeader.Flags", 7 << shift, number << shift))
                data[at : at + 4] = draw.source.randbytes(size)
                data[8:12] = len(data).to_bytes(4, "little")
                note = f"{bits} {number} and a name of {size} bytes"
                yield _broken((requirement,), text, bytes(data), note)


# -- MessagePropertiesHeader -----------------------------------------------------------------------------


def _lengths(draw: Draw) -> Iterator[Case]:
    source = draw.source
    body = source.randbytes(source.randrange(30, 60))
    extension = source.randbytes(source.randrange(5, 20))
    properties = {"MessageBody": body, "ExtensionData": extension, "Label": "msmqwire label"}
    packet = draw.message({"MessagePropertiesHeader": properties})
    whole = len(packet.to_bytes())
    text = "A length that goes beyond the packet ends the session."
    for requirement, name in (
        ("MQMQ-2.2.19.3-15", "MessageSize"),
        ("MQMQ-2.2.19.3-41", "ExtensionSize"),
    ):
        path = f"MessagePropertiesHeader.{name}"
        for number in (
            whole,
            0x7FFFFFFF,
            0x80000000,
            0xFFFFFFFF,
            0xFFFFFFF0,
            source.randrange(whole, 1 << 20),
        ):
            data = messages.changed(packet, path, number)
            yield _broken((requirement, MALFORMED), text, data, f"{name} of {number}")
    text = "A label of more than 500 bytes ends the session."
    ids = ("MQMQ-2.2.19.3-07", "MQMQ-2.2.19.3-42", MALFORMED)
    long = draw.message({"MessagePropertiesHeader": {"MessageBody": bytes(700), "Label": ""}})
    for number in (251, 255):
        data = messages.changed(long, "MessagePropertiesHeader.LabelLength", number)
        yield _broken(ids, text, data, f"LabelLength of {number}")
    text = "A label that goes beyond the packet ends the session."
    short = draw.message({"MessagePropertiesHeader": {"MessageBody": b"", "Label": "a"}})
    data = messages.changed(short, "MessagePropertiesHeader.LabelLength", source.randrange(100, 251))
    yield _broken(ids[1:], text, data, "a label that goes beyond the packet")


# -- headers that may be there -----------------------------------------------------------------------------


def _optional(draw: Draw) -> Iterator[Case]:
    """Lengths, counts and constants of the headers that not every message has."""
    yield from _security(draw)
    yield from _multi_queue(draw)
    yield from _soap(draw)
    yield from _from_http(draw)
    text = "A message with a header is taken like one without it."
    for requirement, name, fields in (
        ("MQMQ-2.2.20-07", "a DebugHeader", _DEBUG),
        ("MQMQ-2.2.20-08", "a SoapHeader", _SOAP),
        ("MQMQ-2.2.20-09", "a MultiQueueFormatHeader", _multi_queue_fields(draw)),
    ):
        packet = draw.message(fields, wants=messages.PA)
        step = send(packet, "taken", f"a message with {name}", (requirement,))
        yield case((requirement,), text, *OPENED, step)


def _security(draw: Draw) -> Iterator[Case]:
    packet, source = draw.message(_SECURITY), draw.source
    text = "A size of the SecurityHeader that goes beyond the packet ends the session."
    for requirement, name, numbers in (
        ("MQMQ-2.2.20.6-15", "SenderIdSize", (0xFFFF, source.randrange(1 << 12, 1 << 16))),
        ("MQMQ-2.2.20.6-16", "EncryptionKeySize", (0xFFFF, source.randrange(1 << 12, 1 << 16))),
        ("MQMQ-2.2.20.6-17", "SignatureSize", (0xFFFF, source.randrange(1 << 12, 1 << 16))),
        ("MQMQ-2.2.20.6-18", "SenderCertSize", (0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)),
        ("MQMQ-2.2.20.6-19", "ProviderInfoSize", (0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)),
    ):
        for number in numbers:
            data = messages.changed(packet, f"SecurityHeader.{name}", number)
            yield _broken((requirement, "MQMQ-2.2.20.6-39", MALFORMED), text, data, f"{name} of {number}")


def _multi_queue_fields(draw: Draw) -> Mapping[str, Any]:
    name = f"{messages.destination(draw.target)}"
    element = {"FormatType": 3, "FormatName": {"DirectFormatName": name}}
    return {
        "UserHeader": {"Flags": {"MQ": 1}},
        "MultiQueueFormatHeader": {"Destination": {"FormatNameList": [element]}},
    }


def _multi_queue(draw: Draw) -> Iterator[Case]:
    packet, source = draw.message(_multi_queue_fields(draw)), draw.source
    header = "MultiQueueFormatHeader"
    text = "A size of the MultiQueueFormatHeader that does not fit ends the session."
    for part in ("Destination", "Administration", "Response"):
        for number in (0, 11, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF):
            data = messages.changed(packet, f"{header}.{part}.HeaderSize", number)
            ids = ("MQMQ-2.2.20.2-01", MALFORMED)
            yield _broken(ids, text, data, f"{part}.HeaderSize of {number}")
    text = "More elements than there are in the list end the session."
    for number in (source.randrange(1000, 1 << 16), 0x7FFFFFFF, 0xFFFFFFFF):
        data = messages.changed(packet, f"{header}.Destination.ElementCount", number)
        ids = ("MQMQ-2.2.20.2-05", MALFORMED)
        yield _broken(ids, text, data, f"ElementCount of {number}")
    text = "A signature that goes beyond the packet ends the session."
    for number in (0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF):
        data = messages.changed(packet, f"{header}.Signature.Size", number)
        ids = ("MQMQ-2.2.20.3-03", MALFORMED)
        yield _broken(ids, text, data, f"MQFSignatureHeader.Size of {number}")
    text = "Another number in place of the identifier of a part ends the session."
    for part, name in (("Destination", "HeaderID"), ("Signature", "ID")):
        data = messages.changed(packet, f"{header}.{part}.{name}", source.randrange(0x400, 1 << 16))
        ids = ("MQMQ-2.2.20.2-02" if name == "HeaderID" else "MQMQ-2.2.20.3-01", MALFORMED)
        yield _broken(ids, text, data, f"another {part}.{name}")


def _soap(draw: Draw) -> Iterator[Case]:
    packet = draw.message(_SOAP)
    text = "A length of the SoapHeader that goes beyond the packet ends the session."
    for requirement, name in (
        ("MQMQ-2.2.20.7-03", "HeaderDataLength"),
        ("MQMQ-2.2.20.7-07", "BodyDataLength"),
    ):
        for number in (0xFFFF, 0x7FFFFFFF, 0x80000001, 0xFFFFFFFF):
            data = messages.changed(packet, f"SoapHeader.{name}", number)
            yield _broken((requirement, MALFORMED), text, data, f"{name} of {number}")


def _from_http(draw: Draw) -> Iterator[Case]:
    packet = draw.message(_HTTP)
    text = "A length of the headers of a message from HTTP that goes beyond the packet ends the session."
    for requirement, path in (
        ("MQRR-2.2.5.1.2.1-04", f"{SRMP_ENVELOPE_HEADER.name}.DataLength"),
        ("MQRR-2.2.5.1.2.2-04", f"{COMPOUND_MESSAGE_HEADER.name}.HTTPBodySize"),
    ):
        for number in (0xFFFF, 0x7FFFFFFF, 0x80000001, 0xFFFFFFFF):
            data = messages.changed(packet, path, number)
            yield _broken((requirement, MALFORMED), text, data, f"{path} of {number}")


def _absent(draw: Draw) -> Iterator[Case]:
    """A flag that says that a header is there, at the end of a packet that has no room for it."""
    text = "A flag of a header that is not there ends the session."
    packet = draw.message({"MessagePropertiesHeader": {"MessageBody": b"", "Label": ""}})
    for requirement, name, bit in (
        ("MQMQ-2.2.20-05", "TH", 20),
        ("MQMQ-2.2.20-06", "SH", 19),
        ("MQMQ-2.2.20-08", "HH", 28),
        ("MQMQ-2.2.20-09", "MQ", 23),
    ):
        data = _with_bits(packet, "UserHeader.Flags", 1 << bit, 1 << bit)
        ids = (requirement, MALFORMED)
        yield _broken(ids, text, data, f"UserHeader.Flags.{name} without its header")
    whole = bytearray(packet.to_bytes())
    whole[messages.place(packet, "BaseHeader.Flags")] |= 1 << 5
    ids = ("MQMQ-2.2.20-07", MALFORMED)
    yield _broken(ids, text, bytes(whole), "BaseHeader.Flags.DH without its header")


# -- ignored values ---------------------------------------------------------------------------------------


def _ignored(draw: Draw) -> Iterator[Case]:
    """Reserved fields, padding and values that are the application's."""
    source = draw.source
    text = "What is to be ignored is ignored."
    base = {"Reserved": source.randrange(1, 256), "Flags": {f"X{number}": 1 for number in (0, 3, 6, 8, 9)}}
    user = {"X1": 1, "X2": 1, "X3": 3, "X4": 7}
    properties: dict[str, Any] = {
        "CorrelationID": source.randbytes(20),
        "ApplicationTag": source.randrange(1 << 32),
    }
    for requirement, what, fields in (
        ("MQMQ-2.2.19.1-17", "reserved bits of BaseHeader", {"BaseHeader": base}),
        ("MQMQ-2.2.19.2-43", "reserved bits of UserHeader.Flags", {"UserHeader": {"Flags": user}}),
        (
            "MQMQ-2.2.19.3-06",
            "unused bits of MessagePropertiesHeader.Flags",
            {"MessagePropertiesHeader": {"Flags": {f"X{number}": 1 for number in range(4, 8)}}},
        ),
        ("MQMQ-2.2.19.3-10", "a CorrelationID of its own", {"MessagePropertiesHeader": properties}),
        (
            "MQMQ-2.2.19.2-45",
            "a ConnectorType",
            {"UserHeader": {"Flags": {"CQ": 1}, "ConnectorType": messages.PEER}},
        ),
    ):
        packet = draw.message(fields, wants=messages.PA)
        ids = (requirement,)
        yield case(ids, text, *OPENED, send(packet, "taken", f"a message with {what}", ids))
    text = "A message of any size and label is taken."
    for size in (0, 1, 2, 3, source.randrange(4, 5000)):
        odd: dict[str, Any] = {
            "MessageBody": source.randbytes(size),
            "Label": "l" * source.choice([0, 1, 2, 249]),
            "ExtensionData": source.randbytes(source.randrange(8)),
        }
        packet = draw.message({"MessagePropertiesHeader": odd}, wants=messages.PA)
        ids = ("MQMQ-2.2.19.3-46",)
        yield case(ids, text, *OPENED, send(packet, "taken", f"a body of {size} bytes", ids))
    text = "A response queue of any form is taken."
    for number, name in (
        (1, None),
        (2, {"PrivateQueueIdentifier": source.randrange(1, 1 << 31)}),
        (3, {"PrivateQueueIdentifier": source.randrange(1, 1 << 31)}),
        (7, {"DirectFormatName": "OS:msmqwire\\private$\\answers"}),
    ):
        fields = {"UserHeader": {"Flags": {"RQ": number}, **({"ResponseQueue": name} if name else {})}}
        packet = draw.message(fields, wants=messages.PA)
        ids = ("MQMQ-2.2.19.2-27",)
        yield case(ids, text, *OPENED, send(packet, "taken", f"RQ {number}", ids))
