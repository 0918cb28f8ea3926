"""Values outside their range for which the text does not demand the end of the session: it ends or
continues.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fuzz.peer.binary import messages
from fuzz.peer.binary.cases import MALFORMED, OPENED, Draw, case, send
from fuzz.peer.steps import IDENTITY, Case
from msmqwire.schema import Record

_SECURITY: Final = {
    "UserHeader": {"Flags": {"SH": 1}},
    "SecurityHeader": {"Flags": {"ST": 2}, "SecurityData": {"SecurityID": IDENTITY.bytes_le}},
}
_NAMES: Final = ("DestinationQueue", "AdminQueue", "ResponseQueue")
_LONGEST: Final = 0x7FFE
"""Characters of the longest name: with its null it has 0xFFFE bytes."""
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
    queue = draw.target.transactional_queue
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
    first = draw.message(sequence=place, queue=queue or None)
    data = messages.changed(first, "TransactionHeader.TxSequenceNumber", 0)
    yield _either("MQMQ-2.2.20.5-13", "TxSequenceNumber 0", data)
    if queue:  # another one refuses it as well, with a FinalAck
        yield from _number_zero(draw, queue)
    yield from _long_names(draw)
    yield from _without_null(draw)
    debugged = draw.message({"BaseHeader": {"Flags": {"DH": 1}}, "DebugHeader": {}})
    data = messages.changed(debugged, "DebugHeader.Flags", source.choice([2, 3]))
    yield _either("MQMQ-2.2.20.8-02", "QT 2 or 3", data)
    names = bytearray(packet.to_bytes())
    at = messages.place(packet, "UserHeader.DestinationQueue.DirectFormatName")
    names[at : at + count] = source.randbytes(count)
    yield _either("MQMQ-2.2.18.1.5.2-02", "a name of random bytes", bytes(names))
    whole = messages.changed(packet, "BaseHeader.PacketSize", len(packet.to_bytes()) + 12)
    yield _either("MQMQ-2.2.20-12", "12 bytes after its last header", whole + b"\x0c" + bytes(11))


def _number_zero(draw: Draw, queue: str) -> Iterator[Case]:
    """A message with TxSequenceNumber 0 does not conform: whether the session ends, it is not delivered."""
    first = draw.message(sequence=(draw.sequence(), 1, 0), queue=queue, wants=messages.PA)
    data = messages.changed(first, "TransactionHeader.TxSequenceNumber", 0)
    ids = ("MQMQ-2.2.20.5-13", MALFORMED)
    text = "A message with TxSequenceNumber 0 is not put into its queue."
    yield case(ids, text, *OPENED, send(data, "either, maybe 8000", "a message with TxSequenceNumber 0", ids))


def _named(draw: Draw, field: str, name: str) -> Record:
    values: dict[str, Any] = {"UserHeader": {field: {"DirectFormatName": name}}}
    if field == "AdminQueue":
        values["MessagePropertiesHeader"] = {"Flags": {"PA": 1, "NA": 1}}
    return draw.message(values)


def _long_names(draw: Draw) -> Iterator[Case]:
    """Direct names about as long as buffers that they may be copied to."""
    head = f"TCP:{draw.target.host}\\private$\\"
    for field in _NAMES:
        for size in (127, 128, 255, 256, 257, 1023, 1024, draw.source.randrange(300, 5000), _LONGEST):
            packet = _named(draw, field, head + "q" * (size - len(head)))
            yield _either(
                "MQMQ-2.2.18.1.5.2-01", f"a name of {size} characters as {field}", packet.to_bytes()
            )


def _without_null(draw: Draw) -> Iterator[Case]:
    """Direct names whose last character is not null, of each length modulo 4, and with none but nulls."""
    for field in _NAMES:
        for more in range(2):
            name = f"TCP:{draw.target.host}\\private$\\none{'e' * more}"
            packet = _named(draw, field, name)
            at = messages.place(packet, f"UserHeader.{field}.DirectFormatName")
            for what, last in (("without its null", "e"), ("of nulls", "\0" * (len(name) + 1))):
                data = bytearray(packet.to_bytes())
                end = at + 2 * len(name) + 2
                data[end - 2 * len(last) : end] = last.encode("utf-16-le")
                note = f"a name {what} as {field}"
                yield _either("MQMQ-2.2.18.1.5.2-05", note, bytes(data))
