"""EstablishConnection and ConnectionParameters: [MS-MQQB] 3.1.5.3 and 3.1.5.4."""

from __future__ import annotations

import struct
from enum import Enum, auto
from typing import TYPE_CHECKING

from tests.support.broken_peers.wire import NULL_GUID, Crash, Malformed, internal

if TYPE_CHECKING:
    from tests.support.broken_peers.session import Session

_ESTABLISH = struct.Struct("<16s16sLHH512s")
_PARAMETERS = struct.Struct("<LLHH")
_SE, _OS, _RE = 0x0100, 0x0200, 0x0010
_FIVE_A = b"\x5a" * 512
_RECOVERABLE_ACK = range(500, 120_001)
_ACK = range(20_000, 120_001)


class State(Enum):
    """SessionState: [MS-MQQB] 3.1.1.3.1. CLOSING is not in the specification: a peer that is late to close
    has it.
    """

    WAITING_EC_MSG = auto()
    WAITING_CP_MSG = auto()
    WAITING_ECR_MSG = auto()
    WAITING_CPR_MSG = auto()
    OPEN = auto()
    CLOSING = auto()
    CLOSED = auto()


class Handshake:
    """Opens a session, from either side."""

    def __init__(self, session: Session) -> None:
        self._session, self._makes = session, session.makes
        self._guid = session.manager.guid

    def _is(self, *states: State) -> bool:
        return self._session.state in states

    def establish_connection(self, packet: bytes) -> None:
        """Take a request or a response."""
        if len(packet) != 572:
            raise Malformed("size of EstablishConnection")
        fields = _ESTABLISH.unpack_from(packet, 20)
        again = self._is(State.OPEN, State.WAITING_CP_MSG) and self._makes("establishes_again")
        if self._is(State.WAITING_EC_MSG) or again:
            self._respond(*fields[:4])
        elif self._is(State.WAITING_ECR_MSG):
            self._established(packet, *fields[:2])
        else:
            raise Malformed(f"EstablishConnection in {self._session.state.name}")

    def _respond(self, client: bytes, server: bytes, time_stamp: int, system: int) -> None:
        session, makes = self._session, self._makes
        session.remote_guid = client
        refused = server not in (NULL_GUID, self._guid) and not makes("any_server_guid")
        refused = refused or (server == NULL_GUID and makes("refuses_null_guid"))
        content = _ESTABLISH.pack(
            NULL_GUID if makes("client_guid_lost") else client,
            server if makes("echoes_server_guid") else self._guid,
            int(session.manager.loop.time() * 1000) & 0xFFFFFFFF if makes("own_time_stamp") else time_stamp,
            _RE | _OS | (0 if makes("se_lost") else system & _SE),
            0,
            bytes(512) if makes("padding_of_zeros") else _FIVE_A,
        )
        response = internal(2, content, refused=refused)
        if makes("size_without_internal_header"):
            response = response[:8] + struct.pack("<L", 568) + response[12:]
        session.send(response)
        if refused:
            session.close("ServerGuid of another queue manager")
        elif not self._is(State.OPEN):
            session.state = State.WAITING_CP_MSG

    def request(self) -> None:
        """Sending an EstablishConnection Request Packet: [MS-MQQB] 3.1.5.2.3; without a ping before."""
        time_stamp = int(self._session.manager.loop.time() * 1000) & 0xFFFFFFFF
        content = _ESTABLISH.pack(self._guid, NULL_GUID, time_stamp, _RE | _OS | _SE, 0, bytes(512))
        self._session.send(internal(2, content))

    def _established(self, packet: bytes, client: bytes, server: bytes) -> None:
        if client != self._guid or packet[18] & 0x10:
            raise Malformed("refused")
        self._session.remote_guid = server
        self._session.state = State.WAITING_CPR_MSG
        self._session.send(internal(3, _PARAMETERS.pack(500, 20_000, 0, self._session.window)))

    def connection_parameters(self, packet: bytes) -> None:
        """Take a request or a response."""
        session, makes = self._session, self._makes
        if not self._is(State.WAITING_CP_MSG, State.WAITING_CPR_MSG):
            raise Malformed(f"ConnectionParameters in {session.state.name}")
        if len(packet) != 32 or packet[18] & 0x10:
            raise Malformed("size or CS of ConnectionParameters")
        recoverable_ack, ack, _, window = _PARAMETERS.unpack_from(packet, 20)
        if recoverable_ack not in _RECOVERABLE_ACK or ack not in _ACK:
            if not ack and makes("ack_timeout_zero_crashes"):
                raise Crash("division of the round trip by AckTimeout 0")
            if not makes("any_timeouts"):
                raise Malformed(f"timeouts {recoverable_ack} and {ack}")
        session.received_window = window
        if self._is(State.WAITING_CP_MSG):
            session.recoverable_ack_s, session.ack_timeout_s = recoverable_ack / 1000, ack / 1000
            if makes("own_timeouts"):
                recoverable_ack, ack = 1_000, 60_000
            if makes("echoes_window"):
                session.window = window
            session.send(internal(3, _PARAMETERS.pack(recoverable_ack, ack, 0, session.window)))
        session.opened()
