"""Connections that a peer opens to the fuzzer, which may be hostile as well."""

from __future__ import annotations

import select
import socket
import struct

from fuzz.peer import channel
from fuzz.peer.channel import accepted
from fuzz.peer.recording import Recording
from tests.support.patience import limit


def listening() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    return listener


def comes(listener: socket.socket) -> None:
    """Wait for a connection that can be accepted."""
    assert select.select([listener], [], [], limit(30))[0], "no connection comes"


def test_a_peer_opens_so_many_connections_and_no_more(monkeypatch):
    monkeypatch.setattr(channel, "ACCEPTED_MAX", 2)
    with listening() as listener, socket.create_connection(listener.getsockname()) as peer:
        peer.settimeout(limit(5))
        comes(listener)
        assert accepted(listener, Recording(), 2) is None
        assert peer.recv(1) == b""


def test_a_connection_that_is_reset_at_once_is_none():
    with listening() as listener:
        assert accepted(listener, Recording(), 0) is None
        peer = socket.create_connection(listener.getsockname())
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        comes(listener)
        assert accepted(listener, Recording(), 0) is None
        with socket.create_connection(listener.getsockname()):
            comes(listener)
            ours = accepted(listener, Recording(), 0)
            assert ours is not None
            ours.close()
