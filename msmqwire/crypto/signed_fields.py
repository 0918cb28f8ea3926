"""The bytes that a signature covers: [MS-MQMQ] 2.5."""

from __future__ import annotations

from enum import IntEnum

from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.schema import Record


class SignatureVersion(IntEnum):
    """The kind of a signature; the value is that of SecurityHeader.Flags.AS: [MS-MQQB] 3.1.5.8.3."""

    MSMQ_1_0 = 1
    MSMQ_2_0 = 3
    MSMQ_3_0 = 5

    @property
    def text(self) -> str:
        """The version as text: 1.0, 2.0 or 3.0."""
        return f"{(self.value + 1) // 2}.0"


def signed_fields(packet: Record, version: SignatureVersion, readings: Readings = DEFAULT) -> bytes:
    """Return the fields of a UserMessage that a signature of this version covers, one after the other.

    The body goes in as it is in `packet`, which is to be in clear: one signs before encrypting and verifies after
    decrypting (MQMQ-2.5-04). Raises InvalidValue for a packet without a field of the list, InvalidName for a queue
    that has no name, if names go in as text.
    """
    raise NotImplementedError
