"""The packets of the traffic that `captures` generates: built once, and numbered when they are sent."""

from __future__ import annotations

import random
import struct
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import msmqwire

COMMON: Final = 320
"""Messages with up to 1 KiB of body."""
LARGE: Final = 24
"""Messages with 16 to 64 KiB of body."""
KIB: Final = 1024

_SID: Final = "010500000000000515000000ad4a9ebd36d9fa3d63a656da"
_WORDS: Final = (
    "order", "invoice", "Überweisung", "stock", "price", "shipment", "customer", "注文", "audit", "nightly",
)  # fmt: skip
_U16, _U32 = struct.Struct("<H"), struct.Struct("<I")


class Template(NamedTuple):
    """A packet, and the offsets of the numbers that differ from one sending to the next."""

    data: bytes
    message_id: int
    sequence: int = 0
    """Offset of TxSequenceID; 0 when the message is not transactional."""
    number: int = 0
    """Offset of TxSequenceNumber, which the previous number follows."""

    def sent(self, message_id: int, sequence: int, number: int) -> bytes:
        """Return the packet with these numbers."""
        packet = bytearray(self.data)
        _U32.pack_into(packet, self.message_id, message_id)
        if self.sequence:
            _U32.pack_into(packet, self.sequence, sequence)
            _U32.pack_into(packet, self.number, number)
            _U32.pack_into(packet, self.number + 4, number - 1)
        return bytes(packet)


class Packets:
    """All packets of a capture, from one seed.

    Attributes:
        common, large: messages, by the size of their bodies.
        order_ack, final_ack: acknowledgements of transactional messages.
        broken: packets that are malformed in several ways.
        greeting: the packets that open a session.
    """

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.common = [template(_message(rng, KIB if rng.random() < 0.88 else None)) for _ in range(COMMON)]
        self.large = [template(_message(rng, rng.randrange(16, 65) * KIB)) for _ in range(LARGE)]
        self.order_ack = _acknowledgement(rng, "OrderAck")
        self.final_ack = _acknowledgement(rng, "FinalAck")
        self.broken = _broken(rng)
        self.greeting = [
            msmqwire.build({"packet": kind}) for kind in ("EstablishConnection", "ConnectionParameters")
        ]
        ack: dict[str, Any] = {"packet": "SessionAck", "fields": {"SessionHeader": {}}}
        self._ack = msmqwire.build(ack)
        self._ack_offset = _offset(ack, "SessionHeader.AckSequenceNumber", 0xFFFF)
        self._ping = msmqwire.build({"packet": "Ping", "fields": {"QMGuid": _guid(rng)}})
        self._cookie_offset = _offset({"packet": "Ping", "fields": {}}, "Cookie")

    def session_ack(self, count: int) -> bytes:
        """Return a SessionAck of the messages up to this number."""
        packet = bytearray(self._ack)
        _U16.pack_into(packet, self._ack_offset, count & 0xFFFF)
        return bytes(packet)

    def ping(self, cookie: int) -> bytes:
        """Return a Ping, request or response."""
        packet = bytearray(self._ping)
        _U32.pack_into(packet, self._cookie_offset, cookie & 0xFFFF_FFFF)
        return bytes(packet)


def message_of(size: int) -> Template:
    """Return an express message with a body of this size."""
    fields = {
        "UserHeader": {"DestinationQueue": {"DirectFormatName": "TCP:10.9.0.2\\private$\\bulk"}},
        "MessagePropertiesHeader": {
            "Label": "one of a long flow",
            "MessageBody": random.Random(size).randbytes(size),
        },
    }
    return template({"packet": "UserMessage", "fields": fields})


def _guid(rng: random.Random) -> str:
    return str(UUID(bytes=rng.randbytes(16), version=4))


def _offset(packet: dict[str, Any], path: str, maximum: int = 0xFFFF_FFFF) -> int:
    """Return the offset of a number: the first byte that differs between packets with 0 and the maximum."""
    *parents, name = path.split(".")
    built = []
    for value in (0, maximum):
        changed = deepcopy(packet)
        node = changed["fields"]
        for part in parents:
            node = node.setdefault(part, {})
        node[name] = value
        built.append(msmqwire.build(changed))
    return next(offset for offset, (low, high) in enumerate(zip(*built, strict=True)) if low != high)


def template(packet: dict[str, Any]) -> Template:
    """Return a message as a template."""
    built = Template(msmqwire.build(packet), _offset(packet, "UserHeader.MessageID"))
    if "TransactionHeader" not in packet["fields"]:
        return built
    return built._replace(
        sequence=_offset(packet, "TransactionHeader.TxSequenceID.Ordinal"),
        number=_offset(packet, "TransactionHeader.TxSequenceNumber"),
    )


def _acknowledgement(rng: random.Random, kind: str) -> Template:
    body = f"{kind}Body"
    user = {
        "SourceQueueManager": _guid(rng),
        "QueueManagerAddress": _guid(rng),
        "DestinationQueue": {"PrivateQueueIdentifier": 4},
    }
    packet = {"packet": kind, "fields": {"UserHeader": user, body: {}}}
    return template(packet)._replace(
        sequence=_offset(packet, f"{body}.TxSequenceID.Ordinal"),
        number=_offset(packet, f"{body}.TxSequenceNumber"),
    )


def _queue(rng: random.Random, *, at_destination: bool) -> dict[str, Any]:
    """Return a queue in a random form; only queues other than the destination name a host by its GUID."""
    name = f"{rng.choice(_WORDS)}{rng.randrange(4)}"
    return rng.choice(
        [
            {"DirectFormatName": f"TCP:10.2.0.{rng.randrange(1, 9)}\\private$\\{name}"},
            {"DirectFormatName": f"OS:server{rng.randrange(1, 9)}.example.com\\private$\\{name}"},
            {"DirectFormatName": f"OS:server{rng.randrange(1, 9)}\\{name}"},
            {"PublicQueueIdentifier": str(UUID(int=rng.randrange(1, 9), version=4))},
            {"PrivateQueueIdentifier": rng.randrange(5, 20)}
            if at_destination
            else {"SourceQueueManager": _guid(rng), "PrivateQueueIdentifier": rng.randrange(5, 20)},
        ]
    )


def _body(rng: random.Random, size: int) -> tuple[bytes, int]:
    """Return a body, and its type."""
    text = " ".join(rng.choices(_WORDS, k=1 + size // 5))
    kind = rng.choice(("bytes", "xml", "text"))
    if kind == "bytes":
        return rng.randbytes(size), 0x1011
    if kind == "text":
        return (text * 2).encode("utf-16-le")[: size & ~1], 8
    return f'<?xml version="1.0"?>\n<order>{text}</order>'.encode()[:size], 0


def _security(rng: random.Random) -> dict[str, Any]:
    data: dict[str, Any] = {"SecurityID": _SID + rng.randbytes(4).hex()}
    if rng.random() < 0.4:
        data |= {
            "Signature": rng.randbytes(128),
            "SenderCert": rng.randbytes(rng.randrange(500, 900)),
            "ProviderInfo": {
                "ProviderType": 1,
                "ProviderName": "Microsoft Base Cryptographic Provider v1.0",
            },
        }
    return {"Flags": {"ST": 1}, "SecurityData": data}


def _message(rng: random.Random, size: int | None) -> dict[str, Any]:
    """Return a message of an application; its body has up to 200 bytes for a size of None."""
    body, body_type = _body(rng, rng.randrange(200) if size is None else size)
    delivery = rng.choices(("express", "recoverable", "transactional"), (4, 3, 3))[0]
    user: dict[str, Any] = {
        "SourceQueueManager": _guid(rng),
        "SentTime": 1_772_366_400 + rng.randrange(86_400),
        "Flags": {"DM": int(delivery != "express")},
        "DestinationQueue": _queue(rng, at_destination=True),
    }
    if "DirectFormatName" not in user["DestinationQueue"]:
        user["QueueManagerAddress"] = _guid(rng)
    properties: dict[str, Any] = {
        "Label": " ".join(rng.choices(_WORDS, k=rng.choice((0, 1, 1, 2, 3, 5, 24))))[:249],
        "MessageBody": body,
        "BodyType": body_type,
        "ApplicationTag": rng.randrange(1000),
    }
    if rng.random() < 0.3:
        user["AdminQueue"] = _queue(rng, at_destination=False)
        properties["Flags"] = {"PA": 1, "NA": 1}
    if rng.random() < 0.3:
        user["ResponseQueue"] = _queue(rng, at_destination=False)
        properties["CorrelationID"] = rng.randbytes(20)
    fields: dict[str, Any] = {"UserHeader": user, "MessagePropertiesHeader": properties}
    if delivery == "transactional":
        edge = {"FM": rng.random() < 0.5, "LM": rng.random() < 0.5, "FA": rng.random() < 0.3}
        fields["TransactionHeader"] = {"Flags": edge, "TxSequenceID": {"TimeStamp": 1_772_366_400}}
    else:
        fields["BaseHeader"] = {"Flags": {"PR": rng.randrange(8)}}
    if rng.random() < 0.3:
        fields["SecurityHeader"] = _security(rng)
    if rng.random() < 0.1:
        fields["SessionHeader"] = {"AckSequenceNumber": rng.randrange(1, 1000)}
    return {"packet": "UserMessage", "fields": fields}


def _broken(rng: random.Random) -> list[bytes]:
    """Return packets with one invalid field: sizes, the signature, an inner length, a form of queue."""
    invalid: list[tuple[str, dict[str, Any]]] = [
        ("BaseHeader", {"PacketSize": 3}),
        ("BaseHeader", {"PacketSize": 0x7FFF_FFFF}),
        ("BaseHeader", {"Signature": 0x524F494B}),
        ("MessagePropertiesHeader", {"MessageSize": 0x0010_0000}),
        ("MessagePropertiesHeader", {"ExtensionSize": 0xFFFF_FFFF}),
        ("UserHeader", {"Flags": {"DQ": 6}}),
    ]
    packets = []
    for header, fields in invalid:
        packet = _message(rng, KIB)
        values = packet["fields"].setdefault(header, {})
        values |= {**fields, "Flags": {**values.get("Flags", {}), **fields.get("Flags", {})}}
        if header == "UserHeader":
            values["DestinationQueue"] = None
        elif not values["Flags"]:
            del values["Flags"]
        packets.append(msmqwire.build(packet))
    return packets
