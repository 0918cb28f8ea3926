"""Acknowledgements that a peer makes up: of messages that were never sent to it, or beyond what was sent."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from tests.support import handmade as h
from tests.support.peers.raw_peer import Listener
from tests.support.qm.peer_server import (
    TO_PEER,
    alpha,
    message,
    outgoing,
    recoverable,
    send,
    sending_session,
    serves,
)
from tests.support.running import InThread, until

WINDOW = 2
SENT = 5
ALL = 0xFFFFFFFF


def is_well(server: InThread) -> None:
    """Check that the server has ended by nothing and serves honest peers."""
    assert not server.do(lambda running: running.driver is None or running.driver.broken.done())
    serves(server)


@pytest.mark.parametrize(
    "ack, base, flags",
    [(3, 0, 0), (SENT, 1, ALL), (0x7FFF, 0x8000, ALL), (0x8000, 0, ALL), (0xFFFF, 0xFFFF, ALL), (0, 9, 0)],
)
def test_no_forged_acknowledgement_removes_what_was_not_sent(
    tmp_path: Path, ack: int, base: int, flags: int
) -> None:
    """A window of two messages is sent: whatever is said of them, the other three stay."""
    with Listener() as listener, alpha(tmp_path / "alpha", listener) as server:
        send(server, *recoverable(*(b"%d" % number for number in range(SENT))))
        with listener.accept(window=WINDOW) as peer:
            for _ in range(WINDOW):
                peer.take()
            forged = peer.header(ack=ack, recoverable_ack=base, recoverable_flags=flags, window=1)
            peer.send(h.session_ack(forged))
            peer.finish()
        assert outgoing(server) >= SENT - WINDOW
        is_well(server)


def test_what_is_acknowledged_too_often_is_removed_once(tmp_path: Path) -> None:
    with Listener() as listener, alpha(tmp_path / "alpha", listener) as server:
        session = sending_session(listener, server, *recoverable(*(b"%d" % number for number in range(SENT))))
        with session as peer:
            for _ in range(SENT):
                peer.take()
            forged = peer.header(ack=SENT, recoverable_ack=1, recoverable_flags=ALL)
            peer.send(*[h.session_ack(forged)] * 50)
            until(lambda: outgoing(server) == 0, "all are acknowledged")
            send(server, *recoverable(b"later"))
            assert peer.take().body == b"later"
            assert outgoing(server) == 1
        is_well(server)


@pytest.mark.parametrize("window", [1, 0x7FFF, 0xFFFF])
def test_a_window_of_any_size_is_no_more_than_that_of_the_server(tmp_path: Path, window: int) -> None:
    with Listener() as listener, alpha(tmp_path / "alpha", listener) as server:
        send(server, *recoverable(*[b"x"] * 100))
        with listener.accept(window=1) as peer:
            peer.take()
            peer.send(h.session_ack(peer.header(window=window)))
            if window > 1:
                for _ in range(63):  # its own window is 64
                    peer.take()
            peer.socket.settimeout(0.3)
            with pytest.raises(TimeoutError):
                peer.packet()
        is_well(server)


@pytest.mark.parametrize("seed", range(2))
def test_headers_of_any_numbers(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)

    def any_number(bits: int) -> int:
        return rng.choice((0, 1, (1 << bits) - 1, 1 << (bits - 1), rng.getrandbits(bits)))

    with Listener() as listener, alpha(tmp_path / "alpha", listener) as server:
        send(server, *recoverable(b"1", b"2"), *[message(b"3") for _ in range(3)])
        for _ in range(15):
            with listener.accept() as peer:
                peer.take()
                peer.send(
                    h.session_ack(
                        h.session_header(
                            ack=any_number(16), recoverable_ack=any_number(16),
                            recoverable_flags=any_number(32), sent=any_number(16),
                            recoverable_sent=any_number(16), window=any_number(16),
                        )
                    )
                )  # fmt: skip
            if not outgoing(server):
                break
        is_well(server)


def test_order_acknowledgements_beyond_what_was_sent_are_nothing(tmp_path: Path) -> None:
    with Listener() as listener, alpha(tmp_path / "alpha", listener) as server:
        transactional = [message(b"%d" % number, delivery="transactional") for number in range(3)]
        with sending_session(listener, server, *transactional) as peer:
            first, *_ = (peer.take() for _ in range(3))
            stamp, ordinal, *_ = first.tx
            sequences = itertools.product((stamp, stamp - 1, ALL, 0), (ordinal, ordinal + 1, 0, ALL))
            for time_stamp, number_of in sequences:
                for number in (
                    (4, 0x7FFFFFFF, ALL) if (time_stamp, number_of) == (stamp, ordinal) else (1, ALL)
                ):
                    body = h.order_ack_body(
                        ordinal=number_of, time_stamp=time_stamp, number=number, previous=number - 1
                    )
                    peer.send(h.order_ack(body))
                    peer.count_sent(recoverable=False)
            peer.acknowledge()
            peer.until_acknowledged()
            assert outgoing(server, TO_PEER) == 3
        is_well(server)
