"""A queue manager that speaks SRMP, over an in-memory store, with a clock set by the test.

Its output is read here without the engine: lines are cut at CRLF, parts by their Content-Length, envelopes by
the XML parser of Python. Its input are bytes that `tests.support.srmp.srmp_requests` writes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any
from xml.etree import ElementTree as ET

from msmqwire.qm.model.effects import Effect, Multicast
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Queue
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.tables import Table
from msmqwire.qm.protocols.srmp.configuration import SrmpConfiguration
from msmqwire.qm.protocols.srmp.effects import HttpRequest, HttpResponse
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.qm.protocols.srmp.redirections import Redirections
from msmqwire.qm.protocols.srmp.states import SrmpMessageState
from msmqwire.qm.protocols.srmp.transfer import OutgoingMessage, SrmpTransfer
from msmqwire.srmp.http_framer import parse_http
from tests.support.engine_harness import PEER_ADDRESS, EngineHarness, format_name
from tests.support.qm.queue_contents import bodies

THERE = "DIRECT=HTTP://there/msmq/private$/orders"
"""The default destination of messages: a queue of another queue manager."""


class SentRequest:
    """A request that the queue manager has sent.

    Attributes:
        number: its number, for the answer.
        url: its destination; for a multicast message the address and port.
        data: its bytes.
        line: its first line.
        fields: its header fields, by name in lower case.
        envelope: the bytes of the envelope.
        body: the bytes of the body; None for none.
    """

    def __init__(self, number: int, url: str, data: bytes) -> None:
        self.number, self.url, self.data = number, url, data
        head, entity = data.split(b"\r\n\r\n", 1)
        self.line, self.fields = _head(head)
        assert int(self.fields["content-length"]) == len(entity)
        self.envelope, self.body = entity, None
        if self.fields["content-type"].startswith("multipart/"):
            self.envelope, *others = _parts(entity)
            self.body = others[0] if others else None
        self.header = ET.fromstring(self.envelope).find("{*}Header")

    def __getitem__(self, path: str) -> str:
        """The text of an element of the envelope's header, ``Msmq/Class``."""
        element = self._find(path)
        assert element is not None, path
        return element.text or ""

    def __contains__(self, path: str) -> bool:
        return self._find(path) is not None

    def _find(self, path: str) -> ET.Element | None:
        assert self.header is not None
        return self.header.find("/".join(f"{{*}}{name}" for name in path.split("/")))

    @property
    def stream(self) -> tuple[str, int, int | None, str | None]:
        """streamId, current, previous and the destination of receipts."""
        previous = int(self["stream/previous"]) if "stream/previous" in self else None
        start = self["stream/start/sendReceiptsTo"] if "stream/start" in self else None
        return self["stream/streamId"], int(self["stream/current"]), previous, start

    def __repr__(self) -> str:
        return f"<{self.number} to {self.url}: {self.body!r}>"


def _head(head: bytes) -> tuple[str, dict[str, str]]:
    line, *fields = head.decode("latin-1").split("\r\n")
    return line, {name.lower(): value for name, value in (field.split(": ", 1) for field in fields)}


def _parts(entity: bytes) -> list[bytes]:
    parts = []
    while True:
        delimiter, _, rest = entity.lstrip(b"\r\n").partition(b"\r\n")
        if delimiter.endswith(b"--"):
            return parts
        head, rest = rest.split(b"\r\n\r\n", 1)
        length = int(_head(head)[1]["content-length"])
        parts.append(rest[:length])
        entity = rest[length:]


class SrmpHarness(EngineHarness):
    """A queue manager named ``here`` at the usual ports of HTTP and HTTPS.

    Attributes:
        sent: its requests and multicast messages, in order.
        answers: gives the status that a request is answered with at once; None leaves that to the test.
        responses: the status codes of its own responses, in order.
    """

    def __init__(
        self,
        *args: Any,
        answers: Callable[[SentRequest], int | None] | None = None,
        redirections: object = None,
        http: int | None = 80,
        **options: Any,
    ) -> None:
        """Start a queue manager; it listens at a port, if given. `redirections` are an administrator's."""
        self.answers, self._http = answers, http
        if redirections is not None:
            configuration = SrmpConfiguration(Redirections.from_json(redirections))
            options["configurations"] = {"srmp": configuration}
        super().__init__(*args, **options)

    def _start(self, options: Mapping[str, Any]) -> None:
        self.sent: list[SentRequest] = []
        self.responses: dict[int, int] = {}
        self._incoming = itertools.count(1)
        self._taken = 0
        super()._start(options)
        if self._http is not None:
            srmp_of(self.core).urls.listens(http=self._http, https=443)
        self.run()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case HttpRequest(number, url, message):
                self._sent(SentRequest(number, url, message.to_bytes()))
            case Multicast(number, address, port, data):
                self._sent(SentRequest(number, f"{address}:{port}", data))
            case HttpResponse(number, status):
                self.responses[number] = status
            case _:
                super()._perform(effect)

    def _sent(self, sent: SentRequest) -> None:
        self.sent.append(sent)
        status = self.answers(sent) if self.answers is not None else None
        if status is not None:
            self.driver.notify(srmp_of(self.core).answered, sent.number, status, PEER_ADDRESS)

    def send(self, *bodies: bytes, to: OpenQueueDescriptor | str = THERE, **attributes: Any) -> list[Message]:
        """Send application messages, by default over HTTP."""
        return super().send(*bodies, to=to, **attributes)

    # -- as the transport

    def take(self) -> list[SentRequest]:
        """The requests since the last call."""
        self.run()
        taken, self._taken = self.sent[self._taken :], len(self.sent)
        return taken

    def take_one(self) -> SentRequest:
        """The one request since the last call."""
        (sent,) = self.take()
        return sent

    def answer(self, status: int = 200, sent: SentRequest | None = None) -> list[Effect]:
        """Answer a request, the last one by default."""
        srmp_of(self.core).answered((sent or self.sent[-1]).number, status, PEER_ADDRESS)
        return self.run()

    def fail(self, sent: SentRequest | None = None) -> list[Effect]:
        """Let a request, the last one by default, be without a response in time."""
        srmp_of(self.core).failed((sent or self.sent[-1]).number, "no response")
        return self.run()

    def post(self, data: bytes, address: str = PEER_ADDRESS) -> int:
        """Receive a request; return the status that it is answered with."""
        number = next(self._incoming)
        srmp_of(self.core).requested(number, parse_http(data), address)
        self.run()
        return self.responses[number]

    # -- its state

    def outgoing(self, name: str = THERE) -> OutgoingQueue:
        """Return the outgoing queue to a destination, opening it if necessary."""
        return super().outgoing(name)

    def outgoing_transfer(self, name: str = THERE) -> SrmpTransfer:
        """The transfer out of an outgoing queue."""
        return srmp_of(self.core).transfers[self.outgoing(name).number]

    def message_states(self, name: str = THERE) -> list[SrmpMessageState]:
        """The states of the messages of an outgoing queue, in the order in which they were sent to it."""
        return [outgoing.state for outgoing in self.outgoing_transfer(name).messages.values()]

    def only_message(self, name: str = THERE) -> OutgoingMessage:
        """The one message of an outgoing queue."""
        (outgoing,) = self.outgoing_transfer(name).messages.values()
        return outgoing

    def where(self, name: str = THERE) -> dict[str, list[bytes]]:
        """The bodies in each queue that a sent message can end up in; empty queues are omitted."""
        manager = self.core.queue_manager
        outgoing = self.core.queues.lookup.outgoing(format_name(name))
        queues: dict[str, Queue | None] = {
            "journal": manager.system_journal_queue,
            "dead": manager.system_deadletter_queue,
            "dead transactional": manager.system_transactional_deadletter_queue,
            "outgoing": outgoing,
        }
        return {where: bodies(queue) for where, queue in queues.items() if queue and bodies(queue)}

    def rows_of_streams(self) -> dict[Table, dict[Any, bytes]]:
        """The committed rows of streams that begin here; tables without rows are omitted."""
        tables = (Table.OUTGOING, Table.SEQUENCE, Table.FORMER_STREAM)
        return {table: rows for table in tables if (rows := self.rows(table))}

    def purge(self, queue: Queue) -> None:
        """Purge a queue."""
        self.core.messages.purge(queue)
        self.run()

    def delete_message(self, position: MessagePosition, reason: int) -> None:
        """Let a message leave its queue for a reason."""
        self.core.messages.position_deleted(position.queue, position, reason)
        self.run()
