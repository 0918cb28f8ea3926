"""Captures of remote read: a client and a server of RemoteRead, and their frames."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmqwire.names import parse_format_name
from msmqwire.remote_read.constants import Opnum, SectionType
from msmqwire.remote_read.interface import REMOTE_READ
from msmqwire.remote_read.message_packet import MessageState, message_packet
from msmqwire.remote_read.procedures import SECTION_BUFFER
from msmqwire.remote_read.sections import sections_of
from msmqwire.rpc.client_association import ClientAssociation
from msmqwire.rpc.constants import AuthLevel, AuthType, SyntaxId
from msmqwire.rpc.groups import AssociationGroups
from msmqwire.rpc.handles import NULL_HANDLE, ContextHandle
from msmqwire.rpc.ndr import NDR20, NDR64, Syntax
from msmqwire.rpc.pdu import PduFramer
from msmqwire.rpc.queue_format import queue_format_of
from msmqwire.rpc.server_association import ServerAssociation
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.rpc.rpc_pair import PASSWORD, USER, accept, as_big_endian, login

QUEUE = "DIRECT=OS:server\\private$\\orders"
HANDLE = ContextHandle(0, UUID("00000000-0000-0000-0000-000000000007"))
MESSAGE = h.user_message(properties=h.properties_header(label="order 7", body=b"seven" * 20))
OTHER_INTERFACE = SyntaxId(UUID("fdb3a030-065f-11d1-bb9b-00a024ea5525"), 1)
"""qmcomm of [MS-MQMP], which queue managers serve on the same ports."""


class Talk:
    """One connection: calls and answers as frames, and `pdus`, (by the client, bytes).

    Attributes:
        own: the interface whose calls it makes.
    """

    own = REMOTE_READ

    def __init__(
        self,
        syntax: Syntax = NDR20,
        *,
        level: AuthLevel = AuthLevel.NONE,
        auth_type: AuthType = AuthType.WINNT,
        port: int = 2103,
        client_port: int = 50_000,
        mss: int = 1460,
        interface: SyntaxId | None = None,
        big_endian: bool = False,
    ) -> None:
        """Bind; `big_endian` is the byte order of the client."""
        interface = interface or self.own.identifier
        security = None
        if level > AuthLevel.NONE:
            security = login(auth_type, level, user=USER, password=PASSWORD)
        self.client = ClientAssociation(
            interface,
            transfer_syntaxes=(syntax.identifier,),
            security=security,
            auth_type=auth_type,
            level=level,
        )
        self.server = ServerAssociation(
            {interface: 16}, groups=AssociationGroups(), port=port,
            security=accept,
        )  # fmt: skip
        self.syntax, self.big_endian = syntax, big_endian
        self.conversation = c.TcpConversation((c.CLIENT, client_port), (c.SERVER, port), mss=mss).handshake()
        self.pdus: list[tuple[bool, bytes]] = []
        self.client.bind()
        self.exchange()

    @property
    def frames(self) -> list[c.Frame]:
        return self.conversation.frames

    def exchange(self) -> None:
        """Carry the bytes of either side."""
        while True:
            to_server, to_client = self.client.data_to_send(), self.server.data_to_send()
            if not to_server and not to_client:
                return
            if self.big_endian:
                to_server = as_big_endian(to_server)
            for by_client, data in ((True, to_server), (False, to_client)):
                if data:
                    self.conversation.send(data, by_client=by_client)
                    self.pdus += [(by_client, frame.data) for frame in PduFramer().feed(data)]
            self.server.received(to_server)
            self.client.received(to_client)

    def ask(self, opnum: int, arguments: Any) -> int:
        """Call; nothing is answered."""
        syntax = self.syntax.ordered(big_endian=self.big_endian)
        call = self.client.call(opnum, self.own.build_request(opnum, arguments, syntax))
        self.exchange()
        return call

    def answer(self, call: int, opnum: int, results: Any) -> None:
        self.server.answer(call, self.own.build_response(opnum, results, self.syntax))
        self.exchange()

    def call(self, opnum: int, arguments: Any, results: Any) -> int:
        call = self.ask(opnum, arguments)
        self.answer(call, opnum, results)
        return call

    def open(self, queue: str = QUEUE, *, handle: ContextHandle = HANDLE, **changed: Any) -> int:
        return self.call(Opnum.R_OpenQueue, open_arguments(queue, **changed), {"pphContext": handle})

    def receive(self, data: bytes = MESSAGE, *, most: int = 1 << 22, **changed: Any) -> int:
        """R_StartReceive, answered with a message."""
        return self.call(Opnum.R_StartReceive, receive_arguments(**changed), received(data, most))

    def close_queue(self, handle: ContextHandle = HANDLE) -> int:
        return self.call(Opnum.R_CloseQueue, {"pphContext": handle}, {"pphContext": NULL_HANDLE})

    def close(self) -> Talk:
        self.conversation.close()
        return self


def open_arguments(queue: str = QUEUE, **changed: Any) -> dict[str, Any]:
    return {
        "pQueueFormat": queue_format_of(parse_format_name(queue)),
        "dwAccess": 1,
        "dwShareMode": 0,
        "pClientId": UUID(int=9),
        "fNonRoutingServer": 1,
        "Major": 6,
        "Minor": 1,
        "BuildNumber": 7601,
        "fWorkgroup": 1,
        **changed,
    }


def receive_arguments(**changed: Any) -> dict[str, Any]:
    return {
        "phContext": HANDLE,
        "LookupId": 0,
        "hCursor": 0,
        "ulAction": 0,
        "ulTimeout": 1000,
        "dwRequestId": 1,
        "dwMaxBodySize": 1 << 22,
        "dwMaxCompoundMessageSize": 1 << 22,
        **changed,
    }


def end_arguments(**changed: Any) -> dict[str, Any]:
    return {"phContext": HANDLE, "dwAck": 2, "dwRequestId": 1, **changed}


def received(data: bytes = MESSAGE, most: int = 1 << 22) -> dict[str, Any]:
    """The results of a receive."""
    sections = sections_of(message_packet(data, MessageState()), most, most)
    return {
        "pdwArriveTime": 1_700_000_000,
        "pSequenceId": 77,
        "pdwNumberOfSections": len(sections),
        "ppPacketSections": sections,
    }


def one_section(data: bytes) -> dict[str, Any]:
    """The results of a receive whose only section has these bytes."""
    section = SECTION_BUFFER.value(
        SectionBufferType=int(SectionType.stFullPacket),
        SectionSizeAlloc=len(data),
        SectionSize=len(data),
        pSectionBuffer=data,
    )
    return {**received(), "pdwNumberOfSections": 1, "ppPacketSections": (section,)}


def session(syntax: Syntax = NDR20, **more: Any) -> Talk:
    """A queue opened, read from and closed: whole and cut messages, a failure, a call that never ends."""
    talk = Talk(syntax, **more)
    talk.open()
    talk.receive()
    talk.call(Opnum.R_EndReceive, end_arguments(), {"status": 0})
    talk.receive(most=7, dwRequestId=2, ulAction=0x80000000)
    talk.receive(
        h.user_message(properties=h.properties_header(label="large", body=bytes(40_000))), dwRequestId=3
    )
    talk.call(Opnum.R_EndReceive, end_arguments(dwRequestId=3, dwAck=1), {"status": 0})
    failed = {"pdwNumberOfSections": 0, "status": 0xC00E001B}
    talk.call(Opnum.R_StartReceive, receive_arguments(dwRequestId=4), failed)
    talk.ask(Opnum.R_StartReceive, receive_arguments(dwRequestId=5))
    call = talk.ask(Opnum.R_OpenQueue, open_arguments("DIRECT=OS:server\\private$\\missing"))
    talk.server.fault(call, 0xC00E0003)
    talk.exchange()
    talk.close_queue()
    return talk


SYNTAXES = {"NDR": NDR20, "NDR64": NDR64}
