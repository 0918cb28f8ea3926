"""A client and a server association that talk without a network."""

from __future__ import annotations

from collections.abc import Callable

from msmqwire.rpc.client_association import ClientAssociation
from msmqwire.rpc.constants import AuthLevel, AuthType, PduType
from msmqwire.rpc.events import ClientEvent, ServerEvent
from msmqwire.rpc.groups import AssociationGroups
from msmqwire.rpc.pdu import PduFramer, build_pdu, make_pdu, parse_pdu
from msmqwire.rpc.pdus import BIG_ENDIAN
from msmqwire.rpc.security import SecurityContext
from msmqwire.rpc.server_association import ServerAssociation
from tests.support.installed import library
from tests.support.rpc.rpc_server import METHODS, REMOTE_READ

USER, PASSWORD = "LAB\\alice", "secret 7"
PORT = 2103


def login(auth_type: AuthType, level: AuthLevel, **account: str) -> SecurityContext:
    """The client's side of a login, if its library is installed."""
    library("spnego")
    from msmqwire.qm.runtime.rpc.security import initiator

    return initiator(auth_type, level, **account)


def accept(auth_type: int, level: AuthLevel) -> SecurityContext | None:
    """The server's side of it, for the user of these tests."""
    library("spnego")
    from msmqwire.qm.runtime.rpc.security import acceptors
    from tests.support.rpc.rpc_users import USERS

    return acceptors(USERS)(auth_type, level)


class Pair:
    """Both ends, their events, and every PDU between them: (by the client, bytes)."""

    def __init__(
        self,
        level: AuthLevel = AuthLevel.NONE,
        auth_type: AuthType = AuthType.WINNT,
        *,
        user: str = USER,
        password: str = PASSWORD,
        security: SecurityContext | None = None,
        groups: AssociationGroups | None = None,
        group: int = 0,
        origin: str = "",
        bind: bool = True,
        acceptor: Callable[[int, AuthLevel], SecurityContext | None] | None = None,
        **server: object,
    ) -> None:
        if level > AuthLevel.NONE and security is None:
            security = login(auth_type, level, user=user, password=password)
        self.groups = AssociationGroups() if groups is None else groups
        self.client = ClientAssociation(
            REMOTE_READ, security=security, auth_type=auth_type, level=level, group=group
        )
        self.server = ServerAssociation(
            {REMOTE_READ: METHODS},
            groups=self.groups,
            origin=origin,
            port=PORT,
            security=acceptor or accept,
            **server,  # type: ignore[arg-type]
        )
        self.told: list[ClientEvent] = []
        self.called: list[ServerEvent] = []
        self.pdus: list[tuple[bool, bytes]] = []
        if bind:
            self.client.bind()
            self.exchange()

    def exchange(self, step: int = 1 << 20, change: Callable[[bytes], bytes] = lambda data: data) -> None:
        """Carry bytes until both are silent, `step` at a time; `change` stands between them."""
        while True:
            to_server, to_client = self.client.data_to_send(), self.server.data_to_send()
            if not to_server and not to_client:
                return
            self._record(True, to_server)
            self._record(False, to_client)
            self.called += in_pieces(self.server, change(to_server) if to_server else b"", step)
            self.told += in_pieces(self.client, to_client, step)

    def _record(self, by_client: bool, data: bytes) -> None:
        self.pdus += [(by_client, frame.data) for frame in PduFramer().feed(data)]

    def to_server(self, data: bytes) -> list[ServerEvent]:
        """The server's reaction to bytes; its answer is discarded."""
        return self.server.received(data)


def in_pieces(association: ClientAssociation | ServerAssociation, data: bytes, step: int) -> list:
    """The events of bytes that come `step` at a time."""
    return [event for at in range(0, len(data), step) for event in association.received(data[at : at + step])]


def pdu(
    kind: PduType, fields: dict | None = None, *, sec_trailer: dict | None = None, **header: int
) -> bytes:
    """The bytes of a PDU."""
    return build_pdu(make_pdu(kind, fields or {}, header=header, sec_trailer=sec_trailer))


def as_big_endian(data: bytes) -> bytes:
    """PDUs as a big-endian sender writes them, their stubs aside."""
    pdus = [parse_pdu(frame.data) for frame in PduFramer().feed(data)]
    for each in pdus:
        each.record.header.packed_drep = BIG_ENDIAN
    return b"".join(build_pdu(each) for each in pdus)
