"""The multicast of one server: [MC-MQSRM] 2.1.2, 2.1.3. Nothing is opened before it is needed."""

from __future__ import annotations

import asyncio
import random
import secrets
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Address
from typing import Final

from msmqwire.pgm.constants import APDU_MAX
from msmqwire.pgm.layouts import COMMON_HEADER_SIZE, GSI_SIZE, PgmType
from msmqwire.pgm.memory import Memory
from msmqwire.pgm.receiver import SOURCES_MAX, ReceiverSettings
from msmqwire.pgm.source import SourceSettings
from msmqwire.qm.runtime.multicast.options import PgmMode, PgmOptions
from msmqwire.qm.runtime.multicast.sessions import Listening, MulticastSending
from msmqwire.qm.runtime.multicast.sockets import Datagram, Sender, Sockets, close
from msmqwire.service.logs import log

LISTENING_MAX: Final = 256
"""Limit of groups to listen to, as pairs of address and port."""
SENDING_MAX: Final = 64
"""Limit of groups to send to at the same time."""
SOURCES_TOTAL: Final = 512
"""Limit of sources followed in all groups together; each group has a share that no other group can use."""
_SOURCES_MIN: Final = 2
_READ_AT_ONCE: Final = 64  # packets of one socket before the next one has its turn
_AGAIN_S: Final = 10.0
"""Seconds after which joining a group is tried again."""
CLOSE_S: Final = 3.0
"""Seconds at the end in which waiting messages are still sent."""
LINGER_S: Final = 2.0
"""Seconds in which the last messages are repaired after that."""
_UPSTREAM: Final = (PgmType.NAK, PgmType.NNAK)

GroupPort = tuple[str, int]


@dataclass(eq=False, slots=True)
class _Group:
    """A joined multicast address."""

    address: IPv4Address
    sender: Sender
    sockets: list[socket.socket]
    listening: dict[int, Listening] = field(default_factory=dict)
    sending: dict[int, MulticastSending] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class _Interface:
    """The sockets of one local address: for outgoing packets, and for the answers."""

    sender: Sender
    sockets: list[socket.socket]


class MulticastNetwork:
    """Sends and receives messages by PGM.

    Refusals of the system are logged once and reported to the caller concerned; no method raises for them.
    """

    def __init__(
        self,
        options: PgmOptions,
        received: Callable[[bytes, str, str, int], None],
        sent: Callable[[int], None],
        failed: Callable[[int, str], None],
        refused: Callable[[int], None],
    ) -> None:
        """Prepare.

        Args:
            options: the administrator's options.
            received: called with each message, the address of its source, and its group and port.
            sent: called with the number of a request that has been sent.
            failed: called with the number of a request that has not been sent, and the reason.
            refused: called with the number of a request that is too long ever to be sent: SRMP-2.1.3.1-15.
        """
        self._options = options
        self._received, self._sent, self._failed, self._refused = received, sent, failed, refused
        self._gsi = secrets.token_bytes(GSI_SIZE)
        self._memory = Memory()
        self._wanted: frozenset[GroupPort] = frozenset()
        self._sockets: Sockets | None = None
        self._interfaces: dict[IPv4Address, _Interface] = {}
        self._groups: dict[IPv4Address, _Group] = {}
        self._sessions: dict[int, MulticastSending] = {}  # by data-source port, ending ones included
        self._troubles: set[str] = set()
        self._again: asyncio.TimerHandle | None = None
        self._is_open = False

    def begin(self) -> None:
        """Begin in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._is_open = True

    # -- listening ----------------------------------------------------------------------------------------

    def set_groups(self, groups: frozenset[GroupPort]) -> None:
        """Listen to exactly these groups. Failed joins are retried."""
        if not self._is_open:
            return
        if len(groups) > LISTENING_MAX:
            log.error("too many multicast groups", extra={"groups": len(groups), "limit": LISTENING_MAX})
        self._wanted = frozenset(sorted(groups)[:LISTENING_MAX])
        for group in list(self._groups.values()):
            for port in [one for one in group.listening if (str(group.address), one) not in self._wanted]:
                group.listening.pop(port).close()
            self._leave_unused(group)
        self._join_wanted()

    def _join_wanted(self) -> None:
        """Join the requested groups that are not joined yet."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        complete = True
        for address, port in sorted(self._wanted):
            group = self._group(IPv4Address(address))
            if isinstance(group, str):
                complete = False
            elif port not in group.listening:
                group.listening[port] = self._listening(group, port)
                log.info("listens to a multicast group", extra={"group": address, "port": port})
        each = max(_SOURCES_MIN, min(SOURCES_MAX, SOURCES_TOTAL // max(1, len(self._wanted))))
        for group in self._groups.values():
            for listening in group.listening.values():
                listening.receiver.sources_max = each
        if not complete and self._options.mode is not PgmMode.OFF:
            self._again = self._loop.call_later(_AGAIN_S, self._join_wanted)

    def _listening(self, group: _Group, port: int) -> Listening:
        return Listening(
            ReceiverSettings(group=group.address, group_port=port, headers=self._opened().headers),
            self._memory,
            partial(self._send_nak, group),
            partial(self._multicast, group),
            partial(self._deliver, str(group.address), port),
        )

    def _deliver(self, group: str, port: int, apdu: bytes, source: IPv4Address) -> None:
        self._received(apdu, str(source), group, port)

    # -- sending ------------------------------------------------------------------------------------------

    def send(self, request: int, address: str, port: int, data: bytes) -> None:
        """Send a message to a group.

        `sent`, `failed` or `refused` is called with the number of the request, later.
        """
        if len(data) > APDU_MAX:
            asyncio.get_running_loop().call_soon(self._refused, request)
            return
        why = self._send(request, address, port, data)
        if why is not None:
            self._fail(request, why)

    def _fail(self, request: int, why: str) -> None:
        asyncio.get_running_loop().call_soon(self._failed, request, why)

    def _report_sent(self, request: int) -> None:
        self._loop.call_soon(self._sent, request)

    def _send(self, request: int, address: str, port: int, data: bytes) -> str | None:
        """Send, or return why that is impossible."""
        if not self._is_open:
            return "multicast has ended"
        group = self._group(IPv4Address(address))
        if isinstance(group, str):
            return group
        sending = group.sending.get(port)
        if sending is None or sending.closing:
            if len(self._sessions) >= SENDING_MAX:
                self._leave_unused(group)
                return "too many multicast groups are sent to"
            sending = self._begin_sending(group, port)
        if not sending.has_room(len(data)):
            return "too much waits to be sent to the group"
        sending.send(request, data)
        return None

    def _begin_sending(self, group: _Group, port: int) -> MulticastSending:
        own = self._unused_port()
        settings = SourceSettings(
            gsi=self._gsi,
            port=own,
            group_port=port,
            address=IPv4Address(group.sender.socket.getsockname()[0]),
            group=group.address,
            txw_max_rte=self._options.rate,
        )
        sending = MulticastSending(
            settings, partial(self._multicast, group), self._report_sent, self._sending_ended
        )
        self._sessions[own] = group.sending[port] = sending
        return sending

    def _unused_port(self) -> int:
        while (port := random.randint(1024, 0xFFFF)) in self._sessions:
            pass
        return port

    def _sending_ended(self, sending: MulticastSending, why: str | None) -> None:
        """A session has ended; all waiting messages fail with it."""
        settings = sending.settings
        self._sessions.pop(settings.port, None)
        while sending.requests:
            self._fail(sending.requests.popleft(), why or "the session has ended")
        group = self._groups.get(settings.group) if isinstance(settings.group, IPv4Address) else None
        if group is not None:
            if group.sending.get(settings.group_port) is sending:
                del group.sending[settings.group_port]
            self._leave_unused(group)

    # -- packets ------------------------------------------------------------------------------------------

    def _multicast(self, group: _Group, data: bytes, ttl: int | None = None) -> str | None:
        """Send to a group; return why that is impossible, or None."""
        where = f"group {group.address}"
        try:
            group.sender.multicast(data, group.address, ttl or self._options.ttl)
        except OSError as exc:
            return self._trouble(where, exc)
        self._well(where)
        return None

    def _send_nak(self, group: _Group, data: bytes, address: IPv4Address, port: int) -> None:
        """Send a NAK to the ports of all kinds of sources, and to the port that the source sends from."""
        where = f"source {address}"
        try:
            for to in self._nak_ports(port):
                group.sender.unicast(data, address, to)
        except OSError as exc:
            log.debug("can't send a NAK", extra={"error": _text(exc), "where": where})

    def _nak_ports(self, port: int) -> set[int]:
        assert self._sockets is not None, "something has been received"
        return {self._sockets.unicast_port, port or self._sockets.unicast_port}

    def _read_group(self, group: _Group, source: socket.socket) -> None:
        for datagram in self._read(source):
            upstream, group_port, session = _addresses(datagram.data)
            listening = group.listening.get(group_port)
            if listening is not None:
                listening.received(datagram, len(self._nak_ports(datagram.port)))
            if upstream:
                self._nak_arrived(session, datagram)

    def _read_interface(self, source: socket.socket) -> None:
        for datagram in self._read(source):
            upstream, _, session = _addresses(datagram.data)
            if upstream:
                self._nak_arrived(session, datagram)

    def _nak_arrived(self, session: int, datagram: Datagram) -> None:
        sending = self._sessions.get(session)
        if sending is not None:
            sending.received(datagram)

    def _read(self, source: socket.socket) -> Iterator[Datagram]:
        """Yield packets that may be PGM; all other packets are dropped."""
        assert self._sockets is not None, "something has been opened"
        for _ in range(_READ_AT_ONCE):
            try:
                datagram = self._sockets.read(source) if source.fileno() >= 0 else None
            except OSError as exc:  # about a packet sent before, or an interface that is gone
                log.debug("can't receive multicast", extra={"error": _text(exc)})
                return
            if datagram is None:
                return
            if len(datagram.data) >= COMMON_HEADER_SIZE:
                yield datagram

    # -- sockets ------------------------------------------------------------------------------------------

    def _group(self, address: IPv4Address) -> _Group | str:
        """Return a group, joined if it was not, or the reason why that is impossible."""
        if self._options.mode is PgmMode.OFF:
            return "multicast is off"
        group = self._groups.get(address)
        if group is not None:
            return group
        where = f"group {address}"
        try:
            sockets = self._opened()
            local = sockets.local_address(address)
            interface = self._interface(sockets, local)
            joined = sockets.of_group(address, local)
        except (OSError, NotImplementedError) as exc:
            self._close_unused()
            return self._trouble(where, exc)
        self._well(where)
        group = self._groups[address] = _Group(address, interface.sender, joined)
        for one in joined:
            self._loop.add_reader(one.fileno(), self._read_group, group, one)
        return group

    def _opened(self) -> Sockets:
        if self._sockets is None:
            self._sockets = Sockets(self._options)
            kind = "raw IP" if self._sockets.raw else f"UDP, port {self._sockets.multicast_port}"
            log.info("multicast begins", extra={"pgm": kind})
        return self._sockets

    def _interface(self, sockets: Sockets, local: IPv4Address) -> _Interface:
        interface = self._interfaces.get(local)
        if interface is None:
            sender, made = sockets.of_source(local)
            try:
                for one in made:
                    self._loop.add_reader(one.fileno(), self._read_interface, one)
            except NotImplementedError:
                close(made)
                raise
            interface = self._interfaces[local] = _Interface(sender, made)
        return interface

    def _leave_unused(self, group: _Group) -> None:
        ending = any(sending.settings.group == group.address for sending in self._sessions.values())
        if not (group.listening or ending) and group.address in self._groups:
            self._close(group.sockets)
            del self._groups[group.address]
            self._close_unused()

    def _close_unused(self) -> None:
        """Close the sockets of interfaces that no group uses."""
        used = {id(group.sender) for group in self._groups.values()}
        for local, interface in list(self._interfaces.items()):
            if id(interface.sender) not in used:
                self._close(interface.sockets)
                del self._interfaces[local]

    def _close(self, sockets: list[socket.socket]) -> None:
        for one in sockets:
            self._loop.remove_reader(one.fileno())
        close(sockets)

    def _trouble(self, where: str, exc: Exception) -> str:
        """Log a refusal of the system, once, and return it as a text."""
        why = _text(exc)
        if where not in self._troubles:
            self._troubles.add(where)
            log.error("multicast does not work", extra={"where": where, "error": why})
        return f"{where}: {why}"

    def _well(self, where: str) -> None:
        if where in self._troubles:
            self._troubles.discard(where)
            log.info("multicast works again", extra={"where": where})

    # -- the end ------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Send waiting messages, notify receivers of the end, repair for a moment, and close all sockets."""
        if not self._is_open:
            return
        self._is_open = False
        if self._again is not None:
            self._again.cancel()
        for sending in list(self._sessions.values()):
            sending.close()
        until = self._loop.time() + CLOSE_S
        while self._loop.time() < until and any(sending.requests for sending in self._sessions.values()):
            await asyncio.sleep(0.02)
        if self._sessions:
            await asyncio.sleep(LINGER_S)
        for sending in list(self._sessions.values()):
            sending.cancel()
            self._sending_ended(sending, "the server stops")
        for group in list(self._groups.values()):
            for listening in group.listening.values():
                listening.close()
            group.listening.clear()
            self._leave_unused(group)
        await asyncio.sleep(0)  # the last report


def _addresses(data: bytes) -> tuple[bool, int, int]:
    """Return whether a packet goes to a source, the port of the group, and the port of the source."""
    upstream = data[4] in _UPSTREAM
    first, second = int.from_bytes(data[0:2], "big"), int.from_bytes(data[2:4], "big")
    return (True, first, second) if upstream else (False, second, first)


def _text(exc: Exception) -> str:
    return getattr(exc, "strerror", None) or str(exc) or type(exc).__name__
