"""The messages of examples/protected.pcap with the known facts, and captures of such messages."""

from __future__ import annotations

import io
from functools import cache
from typing import Any, Final

from msmqwire.analysis.dissection.message_security import FileContent
from msmqwire.schema import Record
from tests.support import captures as c
from tests.support.paths import EXAMPLES
from tools.generate.protected_example import messages, private_keys

PROTECTED: Final = EXAMPLES / "protected.pcap"
KEYS: Final = EXAMPLES / "keys"
QM_KEY, ALICE, BOB_KEY = KEYS / "queue-manager.pem", KEYS / "alice.crt", KEYS / "bob.pem"

# label: status with the key and the certificate, without them; whether encrypted; body where it is known
OUTCOMES: Final[dict[str, tuple[str, str, bool, str | None]]] = {
    "neither signed nor encrypted": ("none", "none", False, "one barrel"),
    "signed by alice": ("valid", "unknown_sender", False, "ten barrels"),
    "changed on its way": ("invalid", "invalid", False, "ten barrels"),
    "MSMQ 1.0 with SHA-1": ("valid", "unknown_sender", False, "two barrels"),
    "MSMQ 3.0 for two queues": ("valid", "unknown_sender", False, "three barrels"),
    "signed by bob": ("unknown_sender", "unknown_sender", False, "four barrels"),
    "SHA-384": ("unsupported", "unsupported", False, "ten barrels"),
    "AES-256": ("none", "none", True, "five barrels"),
    "RC2 with 40 bits": ("none", "none", True, "six barrels"),
    "RC4 with 128 bits": ("none", "none", True, "seven barrels"),
    "signed, AES-128": ("valid", "unsupported", True, "eight barrels"),
    "for another queue manager": ("unsupported", "unsupported", True, None),
}


def given(*, keys: bool = True, certificates: bool = True) -> dict[str, list[FileContent]]:
    """Arguments for readers of captures."""
    return {"keys": [QM_KEY] if keys else [], "certificates": [ALICE] if certificates else []}


@cache
def packets() -> dict[str, Record]:
    """The messages by their labels."""
    return {message.MessagePropertiesHeader.Label: message for message in messages(private_keys(KEYS))}


def secured(packet: Record, **items: bytes) -> Record:
    """A message with other items in its SecurityHeader."""
    security = packet.SecurityHeader
    data = security.SecurityData.replace(**items)
    return packet.replace(SecurityHeader=security.replace(SecurityData=data)).recomputed()


def capture_of(*data: bytes, **more: Any) -> io.BytesIO:
    """A capture of a connection with these packets."""
    talk = c.TcpConversation(**more).handshake()
    for packet in data:
        talk.send(packet)
    return io.BytesIO(c.pcap_bytes(talk.close().frames))
