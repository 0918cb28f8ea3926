"""Sessions with hostile packets, for `hostile_captures`: malformed, or after which the next is hard to find.

A seed determines each.
"""

from __future__ import annotations

import random
import re
import struct
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import msmqwire
from benchmarks.support.captures import Sessions
from benchmarks.support.messages import KIB, Template, template
from msmqwire.analysis.dissection.message_security import SENDERS_MAX
from msmqwire.crypto.certificates import ders_of_pem
from msmqwire.errors import MalformedPacket

SEED: Final = 1801
_CERTIFICATE: Final = Path(__file__).resolve().parents[2] / "examples" / "keys" / "alice.crt"
UNDISTURBED: Final = 1e-12
"""An impairment at which nothing of a capture is disturbed by `captures` itself."""


class AlteredSessions(Sessions):
    """Sessions with a share of the messages replaced by other ones in turn."""

    def __init__(self, others: list[bytes], share: float) -> None:
        super().__init__(SEED, UNDISTURBED)
        self._others, self._share = others, share
        self._chance, self._next = random.Random(SEED), 0

    def altered(self, packet: bytes) -> bytes:
        if self._chance.random() >= self._share:
            return packet
        self._next += 1
        return self._others[self._next % len(self._others)]


class ChangedSessions(Sessions):
    """Sessions in which a share of the messages is changed."""

    def __init__(self, change: Callable[[bytes], bytes], share: float) -> None:
        super().__init__(SEED, UNDISTURBED)
        self._change, self._share, self._chance = change, share, random.Random(SEED)

    def altered(self, packet: bytes) -> bytes:
        return packet if self._chance.random() >= self._share else self._change(packet)


class NamedSessions(Sessions):
    """Sessions in which no two messages have a destination or a label in common."""

    def __init__(self) -> None:
        super().__init__(SEED, UNDISTURBED)
        self._named, self._sent = message(KIB, label="label 00000000", destination="queue00000000"), 0

    def altered(self, packet: bytes) -> bytes:
        self._sent += 1
        number = f"{self._sent:08}".encode("utf-16-le")
        return self._named.data.replace("00000000".encode("utf-16-le"), number)


def message(
    body: int | bytes, *, label: str = "order", destination: str = "orders", **headers: Any
) -> Template:
    """Return a message with a body, or one of this many random bytes, and with fields of further headers."""
    data = random.Random(body).randbytes(body) if isinstance(body, int) else body
    user = {"DestinationQueue": {"DirectFormatName": f"TCP:10.2.0.1\\private$\\{destination}"}}
    fields = {
        "UserHeader": user | headers.pop("UserHeader", {}),
        "MessagePropertiesHeader": {"Label": label, "MessageBody": data} | headers.pop("Properties", {}),
        **headers,
    }
    return template({"packet": "UserMessage", "fields": fields})


def signed_messages(certificates: str) -> list[bytes]:
    """Return messages with signatures whose certificate is missing ("none"), is random bytes that are others
    each time ("junk"), or has a key with which they are wrong ("key").
    """
    chance, found = random.Random(SEED), []
    key = ders_of_pem(_CERTIFICATE.read_bytes())[0]
    for _ in range(1 if certificates == "none" else 4 * SENDERS_MAX):
        certificate = {"none": b"", "junk": chance.randbytes(600), "key": key}[certificates]
        data = {"SecurityID": "01" * 28, "Signature": chance.randbytes(128), "SenderCert": certificate}
        found.append(message(KIB, SecurityHeader={"Flags": {"ST": 1, "AI": True}, "SecurityData": data}).data)
    return found


def _full_messages() -> list[bytes]:
    """Return messages that together have every header and every form of a queue."""
    guid = "{00000000-0000-4000-8000-00000000000%d}"
    security = {"Flags": {"ST": 1}, "SecurityData": {"SecurityID": "01" * 28, "Signature": bytes(128)}}
    transaction = {"Flags": {"FM": True, "LM": True}, "TxSequenceID": {"TimeStamp": 1_772_366_400}}
    there = {"SourceQueueManager": guid[1:-1] % 1, "PrivateQueueIdentifier": 7}
    direct = {"DirectFormatName": "OS:server\\private$\\answers"}
    public = {"PublicQueueIdentifier": guid[1:-1] % 2}
    return [
        message(64, UserHeader={"AdminQueue": direct, "ResponseQueue": public}).data,
        message(64, UserHeader={"AdminQueue": there, "ResponseQueue": direct}, SecurityHeader=security).data,
        message(64, TransactionHeader=transaction, SecurityHeader=security).data,
        message(64, SessionHeader={"AckSequenceNumber": 5}, Properties={"ExtensionData": bytes(20)}).data,
        msmqwire.build({"packet": "OrderAck", "fields": {}}),
        msmqwire.build({"packet": "FinalAck", "fields": {}}),
    ]


@cache
def refusals() -> dict[tuple[str, str], bytes]:
    """Return a malformed packet for each path and reason that a change of four bytes can bring about.

    Changes that end the synchronisation are left out: signature, version and PacketSize stay.
    """
    found: dict[tuple[str, str], bytes] = {}
    for packet in _full_messages():
        for at in range(12, min(len(packet) - 4, 640), 2):
            for value in (0, 1, 0x7FFF_FFFF, 0xFFFF_FFFF, 0x0010_0000, 0xD800_D800):
                changed = packet[:at] + struct.pack("<I", value) + packet[at + 4 :]
                try:
                    msmqwire.parse(changed)
                except MalformedPacket as exc:
                    found.setdefault((exc.path, re.sub(r"\d+", "#", exc.why)), changed)
    return found


def of_path(path: str) -> bytes:
    """Return a packet that is malformed in a field."""
    return next(packet for (where, _), packet in refusals().items() if where == path)


def _sized(packet: bytes, size: int) -> bytes:
    return packet[:8] + struct.pack("<I", size) + packet[12:]


def _size(packet: bytes) -> int:
    return int.from_bytes(packet[8:12], "little")


LOST: Final[dict[str, tuple[str, Callable[[bytes], bytes]]]] = {
    "Signature": ("a wrong Signature", lambda packet: packet[:4] + b"LORI" + packet[8:]),
    "VersionNumber": ("a wrong VersionNumber", lambda packet: b"\x11" + packet[1:]),
    "PacketSize": ("an impossible PacketSize", lambda packet: _sized(packet, 0xFFFF_FFFF)),
    "early": ("ends early", lambda packet: _sized(packet, max(16, _size(packet) - 100))),
    "cover": ("covers later packets", lambda packet: _sized(packet, _size(packet) + 700)),
}
"""Changes of a packet that displace the next one, by name: in words, and as a function."""
