"""Captures of sessions with messages by hand, and the results of `msmqwire.analysis.fate`."""

from __future__ import annotations

import io
import struct
from typing import Any
from uuid import UUID

from msmqwire.analysis.fate import MessageFate, fates
from tests.support import captures as c
from tests.support import handmade as h

SENDER, RECEIVER, THIRD = "10.0.0.1", "10.0.0.2", "10.0.0.9"
SENDER_QM, RECEIVER_QM = (str(UUID(bytes_le=data)) for data in (h.CLIENT, h.SERVER))
ADMIN = (7, h.direct_name("TCP:10.0.0.1\\private$\\admin"))
RECOVERABLE = 0x20
POSITIVE_ARRIVAL, POSITIVE_RECEIVE, NEGATIVE_ARRIVAL, NEGATIVE_RECEIVE = 1, 2, 4, 8
JOURNAL_NEGATIVE = 0x100


def identity(number: int) -> str:
    """The identity of a message of the sender."""
    return f"{SENDER_QM}\\{number}"


def message(
    number: int,
    *,
    acks: int = 0,
    recoverable: bool = False,
    transaction: int | None = None,
    source: bytes = h.CLIENT,
    user: dict[str, Any] | None = None,
    session: bytes = b"",
    time_to_reach_queue: int = h.INFINITE,
    **properties: Any,
) -> bytes:
    """A message, by default of the sender to queue 9 of the receiver."""
    fields = {"address": h.SERVER, **(user or {})}
    if acks:
        fields.setdefault("admin", ADMIN)
    properties.setdefault("label", f"order {number}")
    return h.user_message(
        user=h.user_header(source=source, message_id=number, **fields),
        properties=h.properties_header(flags=acks, **properties),
        transaction=b"" if transaction is None else h.transaction_header(number=transaction),
        user_flags=h.MP | (RECOVERABLE if recoverable or transaction is not None else 0),
        session=session,
        time_to_reach_queue=time_to_reach_queue,
    )


def acknowledgement(number: int, message_class: int, *, by: int = 500, **more: Any) -> bytes:
    """An acknowledgement of a message of the sender, of the receiver by default."""
    more.setdefault("source", h.SERVER)
    user = {"address": h.CLIENT, "destination": ADMIN, **more.pop("user", {})}
    correlation = h.CLIENT + struct.pack("<L", number)
    return message(by, message_class=message_class, correlation_id=correlation, user=user, **more)


def session_ack(**fields: int) -> bytes:
    return h.session_ack(h.session_header(**fields))


def order_ack(number: int, **more: Any) -> bytes:
    """An OrderAck of the receiver, for the sequence of `message`."""
    more.setdefault("source", h.SERVER)
    return _to_order_queue(0x00FF, h.order_ack_body(number=number, previous=max(0, number - 1)), **more)


def final_ack(number: int, transaction: int, message_class: int, **more: Any) -> bytes:
    """A FinalAck of the receiver."""
    more.setdefault("source", h.SERVER)
    body = h.final_ack_body(number=transaction, previous=transaction - 1, message_id=number)
    return _to_order_queue(message_class, body, **more)


def _to_order_queue(message_class: int, body: bytes, *, by: int = 700, source: bytes) -> bytes:
    user = h.user_header(source=source, address=h.CLIENT, message_id=by, destination=(3, h.private_id(4)))
    properties = h.properties_header(label="QM Ordering Ack", message_class=message_class, body=body)
    return h.user_message(user=user, properties=properties, flags=0, user_flags=RECOVERABLE | h.MP)


class Link(c.TcpConversation):
    """A session of two queue managers, the client's messages first."""

    def __init__(
        self,
        client: str = SENDER,
        server: str = RECEIVER,
        *,
        port: int = 50_000,
        client_qm: bytes = h.CLIENT,
        server_qm: bytes = h.SERVER,
        window: int = 64,
        established: bool = True,
        **more: Any,
    ) -> None:
        super().__init__((client, port), (server, 1801), **more)
        self.handshake()
        if established:
            establish = h.establish_connection(
                h.establish_connection_header(client=client_qm, server=server_qm)
            )
            parameters = h.connection_parameters(h.connection_parameters_header(window=window))
            for packet in (establish, parameters):
                self.send(packet).send(packet, by_client=False)

    def answer(self, data: bytes) -> Link:
        """Send from the server to the client."""
        self.send(data, by_client=False)
        return self


def capture(*links: c.TcpConversation) -> io.BytesIO:
    return io.BytesIO(c.pcap_bytes(c.merged(*(link.frames for link in links)), nanoseconds=True))


def fates_in(*links: c.TcpConversation, **more: Any) -> list[MessageFate]:
    return list(fates([capture(*links)], **more))


def fate_in(*links: c.TcpConversation) -> MessageFate:
    """The fate of the only message."""
    (fate,) = fates_in(*links)
    return fate


def told(fate: MessageFate) -> list[str]:
    """The traces of a message in the capture."""
    return [event.what.value for event in fate.events]
