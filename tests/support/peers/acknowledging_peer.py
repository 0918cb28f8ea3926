"""A hand-written peer that takes the messages of a sender and acknowledges them as a test wants, on a
thread.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

from msmqwire.constants import MessageClass
from tests.support import handmade as h
from tests.support.peers.raw_peer import GUID, Listener, ReceivedPacket, Session, new_id

ARRIVED = MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE
NOT_THERE = MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q
Script = Callable[[Session], None]
"""The work of the peer on an open session; the session ends when it returns."""


def acknowledgement(
    message: ReceivedPacket, message_class: int, *, of: tuple[bytes, int] | None = None
) -> bytes:
    """The acknowledgement of a message, or of another one, for the administration queue of the message."""
    source, number = of or (message.SourceQueueManager, message.MessageID)
    return h.user_message(
        user=h.user_header(
            source=GUID,
            address=message.SourceQueueManager,
            message_id=new_id(),
            destination=(3, message.AdminQueue),
        ),
        properties=h.properties_header(
            message_class=message_class, correlation_id=source + struct.pack("<L", number)
        ),
        flags=3,
    )


def tell(session: Session, *packets: bytes) -> None:
    """Send messages of the peer that are express."""
    for packet in packets:
        session.send(packet)
        session.count_sent(recoverable=False)


def message_of(session: Session) -> ReceivedPacket:
    """Take the next message, skipping session acknowledgements."""
    while (packet := session.take()).kind != "UserMessage":
        assert packet.kind == "SessionAck", packet
    return packet


def says(*classes: int, after: Callable[[ReceivedPacket], list[bytes]] | None = None) -> Script:
    """Acknowledge the packet of each message, and send acknowledgements of these classes for it."""

    def script(session: Session) -> None:
        while True:
            message = message_of(session)
            tell(
                session,
                *[acknowledgement(message, one) for one in classes],
                *(after(message) if after else ()),
            )
            session.acknowledge()

    return script


def takes_all(session: Session) -> None:
    """Take every packet and acknowledge none."""
    session.ended()


def ends_at_a_message(session: Session) -> None:
    """End the session when a message comes."""
    message_of(session)


def another(message: ReceivedPacket) -> tuple[bytes, int]:
    """The identifier of a message that its sender has not sent."""
    return UUID(int=message.MessageID).bytes_le, message.MessageID


@contextmanager
def peer(
    script: Script,
    *,
    sessions: int | None = None,
    accept: Callable[[Listener], Session] = Listener.accept,
) -> Iterator[tuple[str, int]]:
    """Run a peer, by default for any number of sessions one after the other; gives where it listens."""
    failures: list[BaseException] = []
    with Listener() as listener:

        def run() -> None:
            left = sessions
            while left != 0:
                try:
                    with accept(listener) as session:
                        script(session)
                except (EOFError, ConnectionError):
                    pass
                except OSError:
                    return  # nothing is accepted any more
                except BaseException as exc:
                    failures.append(exc)
                    return
                left = left - 1 if left is not None else None
            listener.stop()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield listener.at
        finally:
            listener.stop()
            thread.join()
    assert failures == []
