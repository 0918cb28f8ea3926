"""Each mistake of the server of remote read has the effect that it names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from msmqwire.rpc.constants import PduType
from msmqwire.rpc.pdu import PduFramer
from tests.support import broken_remote_read
from tests.support.broken_remote_read import MISTAKES, making
from tests.support.rpc.remote_read_harness import (
    BAD_HANDLE,
    INVALID,
    NO_MESSAGE,
    NOT_FOUND,
    OK,
    RR_ACK,
    RR_NACK,
    Client,
    Fault,
    RemoteReadHarness,
)
from tests.support.rpc.rpc_pair import Pair, pdu
from tools.pages.conformance import read_tables


class Died(Exception):
    """What the process would end by."""


def reader(*bodies: bytes) -> tuple[Client, Any]:
    """A client, and its handle of a queue with messages."""
    harness = RemoteReadHarness()
    queue = harness.queue()
    for body in bodies:
        harness.enqueue(queue, body)
    client = harness.client()
    return client, client.open()


def ended(ack: int) -> Callable[[], Any]:
    """What others read, and what is in the queue, once a receive has ended."""

    def look() -> Any:
        client, handle = reader(b"m")
        assert client.read(handle, request=1) == b"m"
        assert client.end(handle, 1, ack) == OK
        return client.read(handle), len(client.harness.find_queue().positions)

    return look


def by_two() -> Any:
    client, handle = reader(b"m")
    return [client.read(handle), client.harness.client(2).read(client.harness.client(2).open())]


def unknown_ends() -> Any:
    client, handle = reader(b"m")
    nothing = client.end(handle, 5)
    client.read(handle, request=1)
    return [nothing, client.end(handle, 2)]


def unknown_action() -> Any:
    client, handle = reader(b"m")
    return client.read(handle, 0x1234)


def empty() -> Any:
    client, handle = reader()
    return client.read(handle)


def cancelled() -> Any:
    client, handle = reader()
    call = client.start(handle, request=3, timeout=1_000)
    assert client.cancel(handle, 3) == OK
    return client.answer(call) is None


def cut() -> Any:
    client, handle = reader(b"0123456789")
    answer = client.answer(client.start(handle, body=4))
    return answer.ppPacketSections[0].SectionSizeAlloc - answer.ppPacketSections[0].SectionSize


def another_client() -> Any:
    client, handle = reader(b"m")
    try:
        return client.harness.client(2).read(handle)
    except Fault:
        return "Fault"


def rundown() -> Any:
    client, handle = reader(b"m")
    client.read(handle)
    client.harness.lose()
    return client.harness.nothing_is_left()


def over_a_connection(data: bytes) -> Callable[[], Any]:
    """What a server does about bytes of a client."""

    def look() -> Any:
        pair = Pair()
        try:
            events = pair.to_server(data)
        except Died:
            return "Died"
        answer = PduFramer().feed(pair.server.data_to_send())
        return [type(event).__name__ for event in events] + [frame.header["PTYPE"] for frame in answer]

    return look


UNKNOWN = pdu(PduType.REQUEST, {"opnum": 99, "p_cont_id": 0, "stub_data": b""}, call_id=7, pfc_flags=3)
WITH_A_STUB = pdu(PduType.REQUEST, {"opnum": 99, "p_cont_id": 0, "stub_data": b"\0"}, call_id=7, pfc_flags=3)
EFFECTS: dict[str, tuple[Callable[[], Any], Any, Any]] = {
    "keeps_accepted": (ended(RR_ACK), (NO_MESSAGE, 0), (NO_MESSAGE, 1)),
    "deletes_rejected": (ended(RR_NACK), (b"m", 1), (NO_MESSAGE, 0)),
    "not_locked": (by_two, [b"m", NO_MESSAGE], [b"m", b"m"]),
    "ends_anything": (unknown_ends, [BAD_HANDLE, INVALID], [OK, OK]),
    "any_action": (unknown_action, INVALID, b"m"),
    "not_found_for_timeout": (empty, NO_MESSAGE, NOT_FOUND),
    "cancels_nothing": (cancelled, False, True),
    "ignores_body_limit": (cut, 6, 0),
    "any_client": (another_client, "Fault", b"m"),
    "forgets_rundown": (rundown, True, False),
    "dies_of_opnums": (over_a_connection(UNKNOWN), ["Denied", PduType.FAULT], "Died"),
    "answers_a_byte_early": (over_a_connection(WITH_A_STUB[:-1]), [], ["Denied", PduType.FAULT]),
    "dies_of_malformed": (over_a_connection(bytes(16)), ["Closed", PduType.FAULT], "Died"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_has_its_effect(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def die() -> None:
        raise Died

    monkeypatch.setattr(broken_remote_read, "die", die)
    look, correct, mistaken = EFFECTS[name]
    assert correct != mistaken
    for context, expected in ((nullcontext(), correct), (making(name), mistaken)):
        with context:
            assert look() == expected


def test_each_mistake_breaks_requirements_that_there_are() -> None:
    known = set(read_tables()["MQRR"])
    assert {id_ for mistake in MISTAKES.values() for id_ in mistake.requirements} <= known
