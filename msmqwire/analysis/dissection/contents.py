"""The content of messages in packets: their bodies decoded, with the headers in their extension."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from msmqwire.analysis.protocols import protocol_of
from msmqwire.analysis.protocols.protocol import JoinedPacket
from msmqwire.bodies import Body, Problem, inspect_body
from msmqwire.names.printable import counted
from msmqwire.schema import Record

if TYPE_CHECKING:
    from msmqwire.analysis.dissection.message_security import Examiner


class MessageBody(NamedTuple):
    """The body of a message, as a packet has it.

    Attributes:
        body: its bytes, decrypted.
        size: bytes of the whole: a call of remote read may have less.
        body_type: BodyType; 0 if unknown.
        extension: ExtensionData.
    """

    body: bytes
    size: int
    body_type: int
    extension: bytes

    def limited(self, limit: int | None) -> MessageBody:
        """Return the message with at most `limit` bytes of its body."""
        return self if limit is None else self._replace(body=self.body[:limit])


def decoded(message: MessageBody) -> Body:
    """Return the decoded content of a message."""
    found = inspect_body(message.body, body_type=message.body_type, extension=message.extension)
    if len(message.body) >= message.size:
        return found
    return replace(found, problems=(cut_short(len(message.body), message.size), *found.problems))


def cut_short(length: int, size: int) -> Problem:
    """Return the problem of a body that is not all there."""
    return Problem(f"only the first {length:,} of {counted(size, 'byte', 'are')} there", offset=length)


def message_body(packet: Record | JoinedPacket | None, examiner: Examiner) -> MessageBody | None:
    """Return the body of the message in a packet.

    None if there is none, if it is that of an acknowledgement of [MS-MQQB], or encrypted for another queue
    manager.
    """
    message, size, may_be_clear = packet, None, False
    if (protocol := protocol_of(packet)) is not None:
        if (enclosed := protocol.packets.message_in(packet)) is None:
            found = None if protocol.packets.body is None else protocol.packets.body(packet)
            return None if found is None else MessageBody(found.body, len(found.body), *found[1:])
        # The queue manager that returned it has decrypted the bodies encrypted for it.
        message, size, may_be_clear = enclosed.whole, enclosed.body_size, True
    if not isinstance(message, Record) or message.get("OrderAckBody") or message.get("FinalAckBody"):
        return None
    properties, security = message.get("MessagePropertiesHeader"), message.get("SecurityHeader")
    if properties is None:
        return None
    body = properties.MessageBody or b""
    if security is not None and security.Flags.EB:
        examined = examiner.examine(packet)
        if examined is not None and examined.body is not None:
            body = examined.body
        elif not may_be_clear:
            return None
    whole = len(body) if size is None else size
    return MessageBody(body, whole, properties.BodyType, properties.ExtensionData or b"")
