"""Fuzzing the ping port of a peer: wrong peers are accused of what they do, right ones of nothing."""

from __future__ import annotations

import math
import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from uuid import UUID, uuid4

import pytest

from fuzz.peer.failure import PeerFailure
from fuzz.peer.performing import Outcome, Stage
from fuzz.peer.registry import FUZZED
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Ports, Target
from fuzz.peer.walks import walk
from msmqwire.packets import ESTABLISH_CONNECTION
from msmqwire.ping import PING, PING_SIZE, is_ping

HOST = "127.0.0.72"
PEER = UUID("0a5d1c8e-7a51-4ee4-8b0b-0f3a3c1f6a01")
Answers = Callable[[bytes], list[bytes]]
NOBODY = 9
"""A port without a listener."""


def response(data: bytes, guid: UUID = PEER) -> bytes:
    """The Ping Response of a right peer."""
    asked = PING.parse(data[:PING_SIZE])
    return bytes(PING.build({"Flags": {"RC": asked.Flags.RC}, "Cookie": asked.Cookie, "QMGuid": guid}))


def right(data: bytes) -> list[bytes]:
    return [response(data)] if is_ping(data) else []


def lenient(data: bytes) -> list[bytes]:
    """A right peer that overlooks what is behind a Ping Packet, and sets unused bits."""
    if not is_ping(data[:PING_SIZE]):
        return []
    answer = bytearray(response(data))
    answer[1] ^= 0xB2
    return [bytes(answer)]


def padded(data: bytes) -> bytes:
    return data[:2].ljust(2, b"\0") + b"\x48\x55" + data[4:].ljust(PING_SIZE - 4, b"\0")


@contextmanager
def ping_peer(answers: Answers) -> Iterator[int]:
    """Run a peer that answers datagrams so; it dies of an error. Gives its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((HOST, 0))
        port = sock.getsockname()[1]

        def serve() -> None:
            with suppress(OSError):
                while True:
                    data, origin = sock.recvfrom(1 << 16)
                    if data == b"end" and origin[0] == HOST:
                        return
                    try:
                        found = answers(data)
                    except ValueError:
                        sock.close()
                        return
                    for answer in found:
                        sock.sendto(answer, origin)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield port
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
                last.bind((HOST, 0))
                last.sendto(b"end", (HOST, port))
            thread.join()


def stage_of(port: int, bound: float = 0.4) -> Stage:
    target = Target(HOST, Ports(NOBODY, ping=port), bound=bound)
    return Stage(target, {"ping": FUZZED["ping"]}, seed=1)


def failures(stage: Stage, every: int = 1) -> Iterator[PeerFailure]:
    """Perform the directed cases, or each so-manieth; give what is wrong."""
    cases = FUZZED["ping"].checks(stage.target, random.Random(1))
    for case in islice(cases, 0, None, every):
        failure = stage.perform(case).failure
        if failure is not None:
            yield failure


@pytest.mark.parametrize("answers", [right, lenient])
def test_a_right_peer_is_accused_of_nothing(answers: Answers) -> None:
    with ping_peer(answers) as port:
        stage = stage_of(port, bound=5)
        assert list(failures(stage)) == []
        outcomes: list[Outcome] = []

        def judge(outcome: Outcome) -> bool:
            outcomes.append(outcome)
            return False

        walk(stage, "ping", 1, 3, math.inf, judge)
        assert [outcome.failure for outcome in outcomes] == [None] * 3
    assert stage.packets > 250


def wrong_cookie(data: bytes) -> list[bytes]:
    answer = right(data)
    return [part[:4] + bytes([part[4] ^ 1]) + part[5:] for part in answer]


def without_rc(data: bytes) -> list[bytes]:
    return [b"\0\0" + part[2:] for part in right(data)]


def all_signatures(data: bytes) -> list[bytes]:
    return [response(padded(data))] if len(data) == PING_SIZE else []


def echo_of_guid(data: bytes) -> list[bytes]:
    return [response(data, PING.parse(data).QMGuid)] if is_ping(data) else []


def changing_guid(data: bytes) -> list[bytes]:
    return [response(data, uuid4())] if is_ping(data) else []


def no_guid(data: bytes) -> list[bytes]:
    return [response(data, UUID(int=0))] if is_ping(data) else []


def twice(data: bytes) -> list[bytes]:
    return right(data) * 2


def short_ones(data: bytes) -> list[bytes]:
    return [response(padded(data))] if 8 <= len(data) < PING_SIZE else right(data)


def empty_ones(data: bytes) -> list[bytes]:
    return right(data) if data else [response(padded(data))]


def cut(data: bytes) -> list[bytes]:
    return [part[:20] for part in right(data)]


def wrong_signature(data: bytes) -> list[bytes]:
    return [part[:2] + b"\x55\x48" + part[4:] for part in right(data)]


def signed_cookies(data: bytes) -> list[bytes]:
    return right(data) if len(data) < 8 or data[7] < 0x80 else []


def no_unused_bits(data: bytes) -> list[bytes]:
    return right(data) if data[:2] in (b"\0\0", b"\1\0") else []


def dies_of_long_ones(data: bytes) -> list[bytes]:
    if len(data) > 4096:
        raise ValueError
    return right(data)


@pytest.mark.parametrize(
    ("answers", "requirement", "text"),
    [
        (wrong_cookie, "MQQB-2.2.7-11", "Cookie"),
        (without_rc, "MQQB-2.2.7-04", "RC is 0"),
        (all_signatures, "MQQB-3.1.7.7-01", "the peer answers a Ping Packet with the signature 0x"),
        (echo_of_guid, "MQQB-2.2.7-13", "that of the request"),
        (changing_guid, "MQQB-2.2.7-13", "not the same"),
        (no_guid, "MQQB-2.2.7-13", "zero"),
        (twice, "MQQB-2.1.2-02", "answered by 2"),
        (short_ones, "MQQB-3.1.5.1.1-07", "cut to 8 of 24 bytes"),
        (empty_ones, "MQQB-3.1.5.1.1-07", "cut to 0 of 24 bytes"),
        (cut, "MQQB-2.2.7-01", "not a Ping Response"),
        (wrong_signature, "MQQB-2.2.7-08", "not a Ping Response"),
        (signed_cookies, "MQQB-2.2.7-10", "does not answer a Ping Request with Cookie 0x80000000"),
        (no_unused_bits, "MQQB-2.2.7-07", "does not answer"),
        (dies_of_long_ones, "MQQB-2.1.2-02", "nobody listens"),
    ],
)
def test_a_wrong_peer_is_accused(answers: Answers, requirement: str, text: str) -> None:
    with ping_peer(answers) as port:
        failure = next(failures(stage_of(port)))
    assert failure.requirements == (requirement,)
    assert text in failure.text


def test_responses_that_all_go_to_one_port() -> None:
    known: list[bytes] = []

    def first_only(data: bytes) -> list[bytes]:
        known.append(data[4:8])
        return right(data) if known.count(data[4:8]) == 1 else []

    with ping_peer(first_only) as port:
        failure = next(failures(stage_of(port)))
    assert failure.requirements == ("MQQB-2.1.2-07",)


def test_lost_datagrams_are_no_failure() -> None:
    source, lost = random.Random(3), 0

    def losing(data: bytes) -> list[bytes]:
        nonlocal lost
        if source.random() < 0.3:
            lost += 1
            return []
        return right(data)

    with ping_peer(losing) as port:
        assert list(failures(stage_of(port, bound=5), every=4)) == []
    assert lost > 10


def test_steps_in_any_order_are_taken() -> None:
    steps = (Step("await"), Step("session"), Step("wait", 5), Step("send", 700, b""), Step("session"))
    with ping_peer(right) as port:
        assert stage_of(port).perform(Case("ping", steps)).failure is None


@contextmanager
def session_peer(server: UUID, *, refuses: bool) -> Iterator[int]:
    """Run a peer that answers EstablishConnection only. Gives its port."""
    with socket.create_server((HOST, 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    sock, _ = listener.accept()
                    with sock:
                        data = sock.recv(1 << 16)
                        if not data:
                            return
                        asked = ESTABLISH_CONNECTION.parse(data)
                        header = {**asked.EstablishConnectionHeader, "ServerGuid": server}
                        flags = {"CS": int(refuses)}
                        answer = {"InternalHeader": {"Flags": flags}, "EstablishConnectionHeader": header}
                        sock.sendall(ESTABLISH_CONNECTION.build(answer))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            socket.create_connection(listener.getsockname()).close()
            thread.join()


def refusing(data: bytes) -> list[bytes]:
    return [bytes([part[0] | 2]) + part[1:] for part in right(data)]


@pytest.mark.parametrize(
    ("answers", "server", "refuses", "requirement"),
    [
        (right, PEER, False, None),
        (refusing, PEER, True, None),
        (right, uuid4(), False, "MQQB-2.2.7-13"),
        (refusing, PEER, False, "MQQB-2.2.7-06"),
        (right, PEER, True, "MQQB-2.2.7-06"),
    ],
)
def test_responses_are_compared_with_a_session(
    answers: Answers, server: UUID, refuses: bool, requirement: str | None
) -> None:
    with ping_peer(answers) as port, session_peer(server, refuses=refuses) as binary:
        stage = Stage(Target(HOST, Ports(binary, ping=port)), {"ping": FUZZED["ping"]}, seed=1)
        failure = stage.perform(Case("ping", (Step("session"),))).failure
    assert (failure and failure.requirements) == (requirement and (requirement,))
