"""The limits on the resources that peers may use, and the counters of their traffic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from msmqwire.qm.protocols.remote_read.configuration import Limit, RemoteReadConfiguration
from msmqwire.rpc.limits import CALLS_MAX, STUB_MAX
from msmqwire.service.page_connections import PageLimits
from msmqwire.service.places import ListenerLimits

REMOTE_READ: Final = RemoteReadConfiguration()
"""The defaults of remote read."""
PAGES: Final = PageLimits()
"""The defaults of the console and the metrics."""
_LONG_ANSWERS: Final = 5
"""The metrics accept a fifth of the connections of the console: an answer may be a megabyte."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the resources that peers may use.

    Attributes:
        connections: TCP connections opened by peers.
        connections_per_peer: the same, from one IPv4 address or one IPv6 network of 64 bits.
        reserved_percent: percent of the places of each listener, for any protocol, that connections of
            unknown origins can't have before their peers have used the protocol; half of it is for known
            origins alone.
        connect_s: seconds after which an attempt to connect is given up.
        close_s: seconds that a peer has to read its data before its connection is closed.
        unwanted_bytes: bytes that a peer may send in that time before its connection is closed at once.
        unsent_bytes: bytes that may wait for a peer to read them before its connection is closed.
        partial_bytes: bytes of incomplete packets, of all connections together.
        pings: ping requests answered in a second.
        pings_per_network: the same, of one IPv4 network of 24 bits or one IPv6 network of 64 bits.
        resolutions: host names resolved at once; half of them are kept for names that local applications
            send to.
        resolve_s: seconds after which a name counts as one without address.
        http_connections: connections opened by peers for HTTP and HTTPS together.
        http_connections_per_peer: the same, from one IPv4 address or one IPv6 network of 64 bits.
        http_requests: complete requests that wait for their answer at once.
        http_request_bytes: bytes of a request after its header fields, with the lines of its chunks.
        http_held_bytes: bytes of incomplete and of waiting requests, of all connections together.
        http_read_s: seconds from the first byte of a request to the last one.
        http_idle_s: seconds that a connection may have no request.
        tls_handshake_s: seconds of a TLS handshake.
        tls_handshakes_per_peer: TLS handshakes at once with one IPv4 address or one IPv6 network of 64 bits;
            beyond it the oldest of them ends.
        http_out_connections: connections to other computers for HTTP and HTTPS together.
        http_out_per_host: the same, to one host and port.
        http_send_s: seconds from sending a request to its answer.
        http_response_bytes: bytes of an answer, interim answers included.
        page_connections: connections to the console that have no login, and connections to the metrics. A
            further one takes the place of the oldest.
        page_connections_per_peer: the same, from one IPv4 address or one IPv6 network of 64 bits.
        page_accepts: connections accepted in a second by the console; a fifth of them by the metrics, whose
            answers are long.
        page_accepts_per_peer: the same, from one IPv4 address or one IPv6 network of 64 bits.
        page_read_s: seconds of such a connection: for its request, and for reading the answer.
        page_request_bytes: bytes that it may send.
        page_bytes_per_s: bytes that all such connections may send in a second, to the console and to the
            metrics.
        page_bytes_per_s_per_peer: the same, from one IPv4 address or one IPv6 network of 64 bits.
        api_connections: connections to the console and its API with a login or a token. A further one takes
            the place of that used least recently.
        api_connections_per_login: the same, with one login or token.
        rpc_connections: connections opened by peers for remote read; the endpoint mapper has the same limit.
        rpc_connections_per_peer: the same, from one IPv4 address or one IPv6 network of 64 bits.
        rpc_calls: calls of one connection that wait for their answer at once.
        rpc_request_bytes: bytes of the arguments of a call.
        rpc_held_bytes: bytes of incomplete requests, and of answers that peers have not read, of all
            connections together.
        rpc_read_s: seconds from the first byte of a request to the last one, from a connection to its bind,
            and without any byte read of the answers that wait for a peer.
        rpc_idle_s: seconds that a connection may have neither a call nor an open queue.
        rpc_logins_per_user: wrong passwords for one user from one IPv4 address, or IPv6 network of 64 bits,
            beyond which all passwords for that user from there are refused.
        rpc_logins_per_peer: the same, for all users together, unknown ones included.
        rpc_logins_s: seconds after which that number of wrong passwords is forgiven, one after the other.
        rpc_handles, rpc_handles_per_caller: queues that all remote readers have open, or one of them: a user,
            or an address from which anonymous ones call.
        rpc_cursors, rpc_cursors_per_caller: cursors that all remote readers have, or one of them.
        rpc_waiting, rpc_waiting_per_caller: receives and peeks of all remote readers, or of one of them, that
            wait for a message.
        rpc_pending, rpc_pending_per_caller: receives of all remote readers, or of one of them, that are not
            ended, waiting ones included.
        rpc_subqueues: subqueues of a queue, beyond which remote readers create no more of them.
    """

    connections: int = 1000
    connections_per_peer: int = 250
    reserved_percent: int = 25
    connect_s: float = 20.0
    close_s: float = 5.0
    unwanted_bytes: int = 64 << 20
    unsent_bytes: int = 64 << 20
    partial_bytes: int = 256 << 20
    pings: int = 1000
    pings_per_network: int = 100
    resolutions: int = 16
    resolve_s: float = 10.0
    http_connections: int = 1000
    http_connections_per_peer: int = 250
    http_requests: int = 256
    http_request_bytes: int = 5 << 20
    http_held_bytes: int = 256 << 20
    http_read_s: float = 30.0
    http_idle_s: float = 60.0
    tls_handshake_s: float = 10.0
    tls_handshakes_per_peer: int = 32
    http_out_connections: int = 100
    http_out_per_host: int = 8
    http_send_s: float = 60.0
    http_response_bytes: int = 256 << 10
    page_connections: int = PAGES.connections
    page_connections_per_peer: int = PAGES.per_origin
    page_accepts: int = PAGES.accepts
    page_accepts_per_peer: int = PAGES.accepts_per_origin
    page_read_s: float = PAGES.seconds
    page_request_bytes: int = PAGES.request_bytes
    page_bytes_per_s: int = PAGES.bytes_per_s
    page_bytes_per_s_per_peer: int = PAGES.bytes_per_s_per_origin
    api_connections: int = PAGES.with_login
    api_connections_per_login: int = PAGES.per_login
    rpc_connections: int = 1000
    rpc_connections_per_peer: int = 250
    rpc_calls: int = CALLS_MAX
    rpc_request_bytes: int = STUB_MAX
    rpc_held_bytes: int = 256 << 20
    rpc_read_s: float = 30.0
    rpc_idle_s: float = 300.0
    rpc_logins_per_user: int = 10
    rpc_logins_per_peer: int = 100
    rpc_logins_s: float = 600.0
    rpc_handles: int = REMOTE_READ.handles.total
    rpc_handles_per_caller: int = REMOTE_READ.handles.per_caller
    rpc_cursors: int = REMOTE_READ.cursors.total
    rpc_cursors_per_caller: int = REMOTE_READ.cursors.per_caller
    rpc_waiting: int = REMOTE_READ.waiting.total
    rpc_waiting_per_caller: int = REMOTE_READ.waiting.per_caller
    rpc_pending: int = REMOTE_READ.pending.total
    rpc_pending_per_caller: int = REMOTE_READ.pending.per_caller
    rpc_subqueues: int = REMOTE_READ.subqueues_max

    def listener(self, connections: int, per_origin: int, held_bytes: int) -> ListenerLimits:
        """Return the limits of a listener with these numbers of connections and bytes."""
        reserved = connections * self.reserved_percent // 100
        many = per_origin // 2
        return ListenerLimits(connections, per_origin, held_bytes, self.close_s, reserved, many)

    def remote_read(self, *, anonymous: bool, pending_s: int) -> RemoteReadConfiguration:
        """Return the configuration of the server of remote read with these limits."""
        return RemoteReadConfiguration(
            anonymous=anonymous,
            pending_s=pending_s,
            handles=Limit(self.rpc_handles_per_caller, self.rpc_handles),
            cursors=Limit(self.rpc_cursors_per_caller, self.rpc_cursors),
            waiting=Limit(self.rpc_waiting_per_caller, self.rpc_waiting),
            pending=Limit(self.rpc_pending_per_caller, self.rpc_pending),
            subqueues_max=self.rpc_subqueues,
        )

    def console_pages(self) -> PageLimits:
        """Return the limits on connections to the console."""
        return PageLimits(
            self.page_connections,
            self.page_connections_per_peer,
            self.page_accepts,
            self.page_accepts_per_peer,
            self.page_read_s,
            self.page_request_bytes,
            self.page_bytes_per_s,
            self.page_bytes_per_s_per_peer,
            self.api_connections,
            self.api_connections_per_login,
        )

    def metrics_pages(self) -> PageLimits:
        """Return the limits on connections to the metrics."""
        limits = self.console_pages()
        accepts, per_origin = limits.accepts // _LONG_ANSWERS, limits.accepts_per_origin // _LONG_ANSWERS
        return replace(limits, accepts=max(1, accepts), accepts_per_origin=max(1, per_origin))


LIMITS: Final = Limits()
"""The defaults."""


@dataclass(slots=True)
class Traffic:
    """Counters of network traffic."""

    bytes_received: int = 0
    bytes_sent: int = 0
    accepted: int = 0
    refused: int = 0
    evicted: int = 0
    connected: int = 0
    connect_failed: int = 0
    datagrams_received: int = 0
    pings_answered: int = 0
    partial_closed: int = 0


@dataclass(slots=True)
class RpcTraffic:
    """Counters of remote calls."""

    accepted: int = 0
    refused: int = 0
    evicted: int = 0
    ended: int = 0
    calls: int = 0
    faults: int = 0
    logins_failed: int = 0
    logins_refused: int = 0
