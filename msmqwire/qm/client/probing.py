"""Asking another queue manager whether it is there: a ping, and the beginning of a session.

Neither needs a queue manager here, nor leaves anything there but a closed connection.
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid4

from msmqwire.errors import HostNotFound, MalformedPacket, Unreachable
from msmqwire.framing import Framer
from msmqwire.headers.internal import PT_OFFSET
from msmqwire.packets import CONNECTION_PARAMETERS, ESTABLISH_CONNECTION, parse
from msmqwire.ping import PING, PING_PORT, PING_SIZE
from msmqwire.schema import Record

SESSION_PORT: Final = 1801
_COOKIES: Final = 1 << 32
_STAMPS: Final = 1 << 32
_ANSWER_MAX: Final = len(ESTABLISH_CONNECTION.build({}))
"""Bytes of the longest packet of a handshake."""


@dataclass(frozen=True, slots=True)
class PingAnswer:
    """The response to a ping, [MS-MQQB] 2.2.7.

    Attributes:
        address: its source.
        queue_manager: the GUID of the queue manager.
        is_refused: whether it would refuse a session, RF.
        seconds: from the request to the response.
    """

    address: str
    queue_manager: UUID
    is_refused: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Handshake:
    """The beginning of a session, [MS-MQQB] 3.1.5.2.3, or its refusal.

    Attributes:
        address: of the peer.
        version: VersionNumber of its packets.
        queue_manager: the GUID of the queue manager.
        is_server: whether it claims to be a server-class system.
        refused: the packet by which it refused the session; None if it did not.
        window_size: messages that may be unacknowledged; like the next two, None after a refusal.
        ack_timeout_ms: its AckTimeout.
        recoverable_ack_timeout_ms: its RecoverableAckTimeout.
        connect_s, establish_s, parameters_s: seconds from the beginning until the connection was there, and
            until each of its two packets had come.
    """

    address: str
    version: int
    queue_manager: UUID
    is_server: bool
    refused: str | None
    window_size: int | None
    ack_timeout_ms: int | None
    recoverable_ack_timeout_ms: int | None
    connect_s: float
    establish_s: float
    parameters_s: float | None


def ping(host: str, *, port: int = PING_PORT, timeout_s: float = 2.0) -> PingAnswer:
    """Ask by the ping protocol of [MS-MQQB] 2.1.2 whether a session would be accepted.

    Raises:
        HostNotFound: the name has no address.
        Unreachable: no server listens there, or no response with the cookie of the request in time.
    """
    cookie, own = secrets.randbelow(_COOKIES), uuid4()
    request = PING.build({"Cookie": cookie, "QMGuid": own})
    with _reaching(f"{host}, UDP {port}"), _socket(host, port, socket.SOCK_DGRAM, timeout_s) as peer:
        began = time.monotonic()
        peer.send(request)
        while True:
            data = _receive(peer, PING_SIZE + 1, began + timeout_s)
            answer = _ping_of(data)
            if answer is not None and answer.Cookie == cookie and answer.QMGuid != own:
                return PingAnswer(
                    peer.getpeername()[0], answer.QMGuid, bool(answer.Flags.RF), time.monotonic() - began
                )


def _ping_of(data: bytes) -> Record | None:
    try:
        answer = parse(data, protocol="ping")
    except MalformedPacket:
        return None  # any other packet at this port
    return answer


def handshake(host: str, *, port: int = SESSION_PORT, timeout_s: float = 5.0) -> Handshake:
    """Open a session as its initiator, and close the connection as soon as it is open.

    Raises:
        HostNotFound: the name has no address.
        Unreachable: no server listens there, or no answer in time.
        MalformedPacket: the answer is not the expected packet.
    """
    began = time.monotonic()
    with _reaching(f"{host}, TCP {port}"), _socket(host, port, socket.SOCK_STREAM, timeout_s) as peer:
        connect_s = time.monotonic() - began
        own = uuid4()
        stamp = int(time.monotonic() * 1000) % _STAMPS
        header = {"ClientGuid": own, "TimeStamp": stamp, "OperatingSystem": {"SE": 1}}
        peer.sendall(ESTABLISH_CONNECTION.build({"EstablishConnectionHeader": header}))
        answers = _packets(peer, began + timeout_s)
        established = _expected(next(answers), ESTABLISH_CONNECTION.name)
        establish_s = time.monotonic() - began
        about = established.EstablishConnectionHeader
        refused = ESTABLISH_CONNECTION.name if established.InternalHeader.Flags.CS else None
        parameters: Any = None
        if refused is None:
            peer.sendall(CONNECTION_PARAMETERS.build({"ConnectionParametersHeader": {}}))
            packet = _expected(next(answers), CONNECTION_PARAMETERS.name)
            if packet.InternalHeader.Flags.CS:
                refused = CONNECTION_PARAMETERS.name
            else:
                parameters = packet.ConnectionParametersHeader
        return Handshake(
            address=peer.getpeername()[0],
            version=established.BaseHeader.VersionNumber,
            queue_manager=about.ServerGuid,
            is_server=bool(about.OperatingSystem.OS),
            refused=refused,
            window_size=None if parameters is None else parameters.WindowSize,
            ack_timeout_ms=None if parameters is None else parameters.AckTimeout,
            recoverable_ack_timeout_ms=None if parameters is None else parameters.RecoverableAckTimeout,
            connect_s=connect_s,
            establish_s=establish_s,
            parameters_s=None if parameters is None else time.monotonic() - began,
        )


def _packets(peer: socket.socket, end: float) -> Iterator[bytes]:
    framer = Framer(_ANSWER_MAX)
    while True:
        yield from framer.feed(_receive(peer, 1 << 12, end))
        if framer.error is not None:
            raise framer.error


def _expected(data: bytes, name: str) -> Record:
    packet = parse(data)
    if packet.schema.name != name:
        why = f"{packet.schema.name} where {name} should be"
        raise MalformedPacket(why, path="InternalHeader.Flags.PT", offset=PT_OFFSET)
    return packet


@contextmanager
def _reaching(place: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise Unreachable(f"{place}: no answer in time") from None
    except socket.gaierror as exc:
        if exc.errno == socket.EAI_AGAIN:  # the name server does not answer now
            raise Unreachable(
                f"{place}: the name can't be looked up now; try again, or use an address"
            ) from None
        raise HostNotFound(
            f"{place}: no computer of this name is found; check it, or use an address"
        ) from None
    except OSError as exc:
        raise Unreachable(f"{place}: {exc.strerror or exc}") from None
    except UnicodeError:
        raise HostNotFound(f"{place}: no computer can have this name") from None


def _socket(host: str, port: int, kind: socket.SocketKind, timeout_s: float) -> socket.socket:
    """Return a socket connected to the first address that accepts it. Raises OSError."""
    failure: OSError = OSError("no address")
    for family, _, protocol, _, address in socket.getaddrinfo(host, port, type=kind):
        peer = socket.socket(family, kind, protocol)
        peer.settimeout(timeout_s)
        try:
            peer.connect(address)
        except OSError as exc:
            peer.close()
            failure = exc
        else:
            return peer
    raise failure


def _receive(peer: socket.socket, size: int, end: float) -> bytes:
    """Return the bytes received until a time of `time.monotonic`. Raises OSError, also TimeoutError."""
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    peer.settimeout(left)
    data = peer.recv(size)
    if not data and peer.type == socket.SOCK_STREAM:
        raise OSError("the connection was closed before the answer")
    return data
