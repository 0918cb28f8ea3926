"""Values outside their range of which the text does not say that the session ends: it ends or goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fuzz.peer.binary import messages
from fuzz.peer.binary.cases import OPENED, Draw, case, send
from fuzz.peer.steps import IDENTITY, Case

_SECURITY: Final = {
    "UserHeader": {"Flags": {"SH": 1}},
    "SecurityHeader": {"Flags": {"ST": 2}, "SecurityData": {"SecurityID": IDENTITY.bytes_le}},
}
_TEXT: Final = "After a value outside its range the session ends or goes on."


def ranges(draw: Draw) -> Iterator[Case]:
    """Return the cases of this module."""
    source = draw.source
    fields: list[tuple[str, str, dict[str, Any]]] = [
        ("MQMQ-2.2.19.2-11", "DM 2", {"UserHeader": {"Flags": {"DM": 2}}}),
        ("MQMQ-2.2.19.2-11", "DM 3", {"UserHeader": {"Flags": {"DM": 3}}}),
        ("MQMQ-2.2.19.2-10", "RC 0x1F", {"UserHeader": {"Flags": {"RC": 0x1F}}}),
        ("MQMQ-2.2.19.2-05", "TimeToBeReceived 0", {"UserHeader": {"TimeToBeReceived": 0}}),
        (
            "MQMQ-2.2.18.1.6-22",
            "an unknown MessageClass",
            {"MessagePropertiesHeader": {"MessageClass": source.choice([0x1E00, 0x0003, 0x8008, 0xC003])}},
        ),
        (
            "MQMQ-2.2.19.3-12",
            "an unknown BodyType",
            {"MessagePropertiesHeader": {"BodyType": source.randrange(1 << 32)}},
        ),
        (
            "MQMQ-2.2.19.3-20",
            "an unknown PrivacyLevel",
            {"MessagePropertiesHeader": {"PrivacyLevel": source.randrange(6, 1 << 32)}},
        ),
        ("MQMQ-2.2.20.6-02", "a security identifier of no kind", _SECURITY),
    ]
    for requirement, note, values in fields:
        packet = draw.message(values)
        data = packet.to_bytes()
        if values is _SECURITY:
            data = messages.changed(packet, "SecurityHeader.Flags", source.randrange(3, 16))
        yield _either(requirement, note, data)
    yield from _changed(draw)


def _either(requirement: str, note: str, data: bytes) -> Case:
    ids = (requirement,)
    return case(ids, _TEXT, *OPENED, send(data, "either", f"a message with {note}", ids))


def _changed(draw: Draw) -> Iterator[Case]:
    """Numbers that the schemas do not write: put into the bytes."""
    source, packet = draw.source, draw.message(wants=messages.PA)
    count = 2 * len(messages.destination(draw.target)) + 2
    place = draw.sequence(), 1, 0
    queue = draw.target.transactional_queue or None
    for requirement, path, number in (
        ("MQMQ-2.2.19.3-17", "MessagePropertiesHeader.AllocationBodySize", 0xFFFFFFFF),
        ("MQMQ-2.2.19.3-17", "MessagePropertiesHeader.AllocationBodySize", source.randrange(1 << 8, 1 << 31)),
        ("MQMQ-2.2.18.1.5.2-05", "UserHeader.DestinationQueue.Count", 0),
        ("MQMQ-2.2.18.1.5.2-05", "UserHeader.DestinationQueue.Count", count - 1),
        ("MQMQ-2.2.18.1.5.2-05", "UserHeader.DestinationQueue.Count", count - 2),
        ("MQMQ-2.2.18.1.5.2-05", "UserHeader.AdminQueue.Count", 0),
        ("MQMQ-2.2.19.3-43", "MessagePropertiesHeader.LabelLength", 3),
    ):
        data = messages.changed(packet, path, number)
        yield _either(requirement, f"{path} {number}", data)
    first = draw.message(sequence=place, queue=queue)
    data = messages.changed(first, "TransactionHeader.TxSequenceNumber", 0)
    yield _either("MQMQ-2.2.20.5-13", "TxSequenceNumber 0", data)
    debugged = draw.message({"BaseHeader": {"Flags": {"DH": 1}}, "DebugHeader": {}})
    data = messages.changed(debugged, "DebugHeader.Flags", source.choice([2, 3]))
    yield _either("MQMQ-2.2.20.8-02", "QT 2 or 3", data)
    names = bytearray(packet.to_bytes())
    at = messages.place(packet, "UserHeader.DestinationQueue.DirectFormatName")
    names[at : at + count] = source.randbytes(count)
    yield _either("MQMQ-2.2.18.1.5.2-02", "a name of random bytes", bytes(names))
    whole = messages.changed(packet, "BaseHeader.PacketSize", len(packet.to_bytes()) + 12)
    yield _either("MQMQ-2.2.20-12", "12 bytes behind its last header", whole + b"\x0c" + bytes(11))
