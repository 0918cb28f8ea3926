"""Captures of sessions in which everything is right, or a known share of the messages is not.

Messages of 100 bytes to 2 KiB, express, recoverable and transactional, with session headers, acknowledgements
and order acknowledgements, over several connections at once.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from msmqwire.headers.session import SESSION_HEADER_SIZE
from msmqwire.packets import build
from tests.support import captures

MESSAGES: Final = 400
"""Messages of a session."""
AT_ONCE: Final = 20
"""Sessions at a time."""
_SENDER: Final = "11111111-1111-1111-1111-111111111111"
_RECEIVER: Final = "22222222-2222-2222-2222-222222222222"
_COUNTS: Final = struct.Struct("<HHIHHHH")
_SOURCE, _MESSAGE_ID = 16, 56
_FLAGS: Final = 2
_RESERVED: Final = 0x40
"""A bit of BaseHeader.Flags that senders should leave clear: MQMQ-2.2.19.1-16."""
_NUMBERS: Final = 8
"""Bytes from the start of a TransactionHeader to its numbers."""


def _messages(rng: random.Random) -> list[tuple[bytes, bool, int]]:
    """Packets, each with whether it is recoverable and where its TransactionHeader is, 0 for none."""
    found = []
    for number in range(60):
        is_transactional, size = number % 5 == 0, rng.choice([100, 300, 900, 2000])
        fields: dict[str, Any] = {
            "UserHeader": {
                "SourceQueueManager": _SENDER, "Flags": {"DM": number % 2 or int(is_transactional)},
                "DestinationQueue": {"DirectFormatName": f"TCP:10.0.0.2\\private$\\orders{number % 7}"},
            },
            "MessagePropertiesHeader": {
                "Label": f"order {number}", "MessageBody": rng.randbytes(size).hex(), "BodyType": 0x1011,
            },
            "SessionHeader": {"WindowSize": 64},
        }  # fmt: skip
        if is_transactional:
            sequence = {"TimeStamp": 1, "Ordinal": 1}
            fields["TransactionHeader"] = {"TxSequenceID": sequence, "TxSequenceNumber": 1}
        data = build({"packet": "UserMessage", "fields": fields})
        at = data.index(struct.pack("<IIII", 1, 1, 1, 0)) - 4 if is_transactional else 0
        found.append((data, bool(number % 2) or is_transactional, at))
    return found


def _session(number: int, rng: random.Random, messages: list[Any], wrong: float) -> list[captures.Frame]:
    talk = captures.TcpConversation(
        (f"10.1.{number // 200}.{number % 200 + 1}", 49_152 + number % 10_000), ("10.0.0.2", 1801),
        start_ns=captures.START_NS + number // AT_ONCE * 3_000_000_000 + number % AT_ONCE * 71_000,
    ).handshake()  # fmt: skip
    sender = UUID(int=number + 1)
    header = {"ClientGuid": str(sender), "ServerGuid": _RECEIVER, "Padding": "5a" * 512}
    establish = build({"packet": "EstablishConnection", "fields": {"EstablishConnectionHeader": header}})
    for packet in (establish, build({"packet": "ConnectionParameters"})):
        talk.send(packet).send(packet, by_client=False)
    ack = bytearray(build({"packet": "SessionAck", "fields": {"SessionHeader": {"WindowSize": 64}}}))
    stored = ordered = 0
    for sent in range(1, MESSAGES + 1):
        packet, is_recoverable, transaction = rng.choice(messages)
        data = bytearray(packet)
        stored += is_recoverable
        data[_SOURCE : _SOURCE + 16] = sender.bytes_le
        struct.pack_into("<I", data, _MESSAGE_ID, number * MESSAGES + sent)
        _COUNTS.pack_into(data, len(data) - SESSION_HEADER_SIZE, 0, 0, 0, sent, stored & 0xFFFF, 64, 0)
        if transaction:
            ordered += 1
            struct.pack_into("<II", data, transaction + 4 + _NUMBERS, ordered, ordered - 1)
        if rng.random() < wrong:
            data[_FLAGS] |= _RESERVED
        talk.send(bytes(data))
        if sent % 16 == 0:
            at = len(ack) - SESSION_HEADER_SIZE
            _COUNTS.pack_into(ack, at, sent, stored & 0xFFFF, int(stored > 0), 0, 0, 64, 0)
            talk.send(bytes(ack), by_client=False)
    return talk.close().frames


def write(path: Path, sessions: int, *, wrong: float = 0.0, seed: int = 1801) -> int:
    """Write a capture of sessions in which a share of the messages breaks a rule; return its packets."""
    rng = random.Random(seed)
    messages = _messages(rng)
    with path.open("wb") as file:
        file.write(captures.pcap_bytes([]))
        for first in range(0, sessions, AT_ONCE):
            group = range(first, min(first + AT_ONCE, sessions))
            talks = [_session(number, rng, messages, wrong) for number in group]
            file.write(captures.pcap_bytes(captures.merged(*talks))[24:])
    return sessions * (4 + MESSAGES + MESSAGES // 16)
