"""Connections that a peer opens to the fuzzer, which may be hostile as well."""

from __future__ import annotations

import select
import socket
import struct
import time
from contextlib import closing, contextmanager

import pytest

from fuzz.peer import channel
from fuzz.peer.channel import Channel, accepted
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


@contextmanager
def sent(recording: Recording, size: int):
    """Return a channel on which bytes of the peer wait."""
    with listening() as listener, socket.create_connection(listener.getsockname()) as peer:
        comes(listener)
        ours = accepted(listener, recording, 0)
        assert ours is not None
        with closing(ours):
            peer.sendall(bytes(size))
            assert select.select([ours.sock], [], [], limit(30))[0], "no bytes come"
            yield ours


def test_an_endless_answer_is_read_in_parts(monkeypatch):
    monkeypatch.setattr(channel, "READ_SIZE", 10)
    monkeypatch.setattr(channel, "READS_MAX", 3)
    with sent(Recording(), 100) as ours:
        assert list(map(len, ours.pieces())) == [10, 10, 10]
        assert not ours.closed


@pytest.mark.parametrize("seconds", [-1, 60])
def test_nothing_is_read_when_the_time_is_over(seconds):
    with sent(Recording(until=time.monotonic() + seconds), 1) as ours:
        assert ours.read() == (b"\0" if seconds > 0 else b"")


def test_the_connections_of_a_case_share_their_bytes(monkeypatch):
    monkeypatch.setattr(channel, "RECEIVED_MAX", 100)
    recording = Recording()
    with sent(recording, 60) as first, sent(recording, 60) as second:
        assert isinstance(first, Channel)
        assert len(first.read()) == 60
        assert not first.closed
        second.read()
        assert second.closed
