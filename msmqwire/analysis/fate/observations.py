"""Observations of messages in packets: the rows between the stages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from uuid import UUID

from msmqwire.analysis.fate.model import EventKind

NULL_GUID: Final = str(UUID(int=0))
IDENTITY_MAX: Final = 256
"""Characters of an identity that is some text of an application."""
_IDENTITY: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\\\d{1,10}", re.ASCII)
_SRMP_IDENTIFIER: Final = re.compile(r"uuid:(\d{1,10})@([0-9a-f-]{36})", re.ASCII | re.IGNORECASE)


class Where(NamedTuple):
    """The place of a packet in a capture.

    Attributes:
        position: its place in the order of the capture.
        time_ns: when, or None.
        stream, file, frame, src, dst: as the columns.
    """

    position: int
    time_ns: int | None
    stream: int | None
    file: str | None
    frame: int | None
    src: str
    dst: str


class Attributes(NamedTuple):
    """The attributes of a message in its own packet. Times to live are seconds from `sent_time`, None for no
    limit.

    `beginning` is that of its body, None if it is encrypted.
    """

    label: str | None
    destination: str | None
    destination_qm: str | None
    admin_queue: str | None
    transport: str
    message_class: int
    class_name: str
    body_size: int | None
    recoverable: bool
    transactional: bool
    ack_flags: int
    journal_negative: bool
    sent_time: int | None
    time_to_reach_queue: int | None
    time_to_be_received: int | None
    hop_count: int
    beginning: bytes | None


class Observation(NamedTuple):
    """One thing that a packet says of a message.

    Attributes:
        key: the message's identity.
        where: the place of its packet.
        what: its kind.
        message_class: the class of an acknowledgement.
        sender_qm: the GUID of the queue manager that sent the packet, or made the acknowledgement; empty if
            unknown.
        receiver_qm: the GUID of the queue manager at the other end of the session; empty if unknown.
        acknowledged_by: the identity of the message that acknowledges it; empty for anything else. On its
            way through several queue managers it is seen several times.
        is_certain: of an unacknowledged message: whether an acknowledgement can't have been missed.
        detail: the rest, in words.
        message: the attributes of a message that was sent.
    """

    key: str
    where: Where
    what: EventKind
    message_class: int | None = None
    sender_qm: str = ""
    receiver_qm: str = ""
    acknowledged_by: str = ""
    is_certain: bool = True
    detail: str = ""
    message: Attributes | None = None


class Numbered(NamedTuple):
    """A message that other packets may name by a number: in a transactional sequence, or as a remote read.

    Attributes:
        group: the group of the number: `sequence_group` or `read_group`.
        number: its number there.
        owner: GUID of the queue manager whose sequence it is; empty for a read.
        where: the place of its packet.
        key: its identity.
        is_received: whether it is the number of a receive.
        receiver_qm: the queue manager that it is sent to here; empty if unknown.
        destination_qm: the queue manager that it goes to in the end; empty if unknown.
    """

    group: str
    number: int
    owner: str
    where: Where
    key: str
    is_received: bool = False
    receiver_qm: str = ""
    destination_qm: str = ""


class AboutNumber(NamedTuple):
    """Something that is said of messages by their number.

    Attributes:
        group: as in `Numbered`.
        number: the number of the message.
        owner: the owner of the sequence; empty if that is unknown.
        where: the place of its packet.
        what: the kind of the event. Acknowledgements of order are about all messages up to the number.
        sender_qm: the queue manager that has said it; empty if unknown.
    """

    group: str
    number: int
    owner: str
    where: Where
    what: EventKind
    sender_qm: str = ""


class Claim(NamedTuple):
    """A message that its own queue manager sends, whose GUID is so at the address that it comes from.

    Attributes:
        group: `queue_manager_group` of the GUID.
        where: the place of its packet.
        key: its identity.
    """

    group: str
    where: Where
    key: str


class Several(NamedTuple):
    """The same thing that a packet says of several messages.

    Attributes:
        keys: their identities, in order.
        observation: of each of them, without a key.
    """

    keys: list[str]
    observation: Observation


Sighting = Observation | Numbered | AboutNumber | Claim | Several


def one_by_one(sightings: Iterable[Sighting]) -> Iterator[Observation | Numbered | AboutNumber | Claim]:
    """Yield sightings with a row for each message."""
    for sighting in sightings:
        if isinstance(sighting, Several):
            for key in sighting.keys:
                yield sighting.observation._replace(key=key)
        else:
            yield sighting


def identity(source_qm: str, message_id: int) -> str:
    r"""Return the identity of a message, ``GUID\number``."""
    return f"{source_qm}\\{message_id}"


def split_identity(text: str) -> tuple[str, int | None]:
    """Return the halves of an identity; nothing for one that is some text of an application."""
    source_qm, _, number = text.rpartition("\\")
    return (source_qm, int(number)) if _IDENTITY.fullmatch(text) else ("", None)


def correlated(correlation_id: bytes | None) -> str | None:
    """Return the identity that a correlation identifier holds; None if it is all zero, or none at all."""
    if correlation_id is None or len(correlation_id) != 20 or not any(correlation_id):
        return None
    return identity(str(UUID(bytes_le=correlation_id[:16])), int.from_bytes(correlation_id[16:], "little"))


def identity_of_srmp(text: str) -> str:
    """Return the identity for an identifier of SRMP, ``uuid:number@GUID``; any other text is its own."""
    parts = _SRMP_IDENTIFIER.fullmatch(text)
    return identity(parts[2].lower(), int(parts[1])) if parts else text[:IDENTITY_MAX]


def sequence_group(timestamp: int, ordinal: int) -> str:
    """Return the group of a transactional sequence, or a stream."""
    return f"sequence {timestamp}.{ordinal}"


def read_group(server: str, handle: str) -> str:
    """Return the group of the receives by a handle of a server of remote read."""
    return f"read {server} {handle}"


def queue_manager_group(guid: str) -> str:
    """Return the group of observations of a queue manager."""
    return f"queue manager {guid}"
