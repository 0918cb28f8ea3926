"""The peer that takes SRMP messages over HTTP: it is correct, and each mistake has its effect."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from msmqwire.analysis.lint import lint_srmp
from msmqwire.srmp.message import parse_message
from tests.support.broken_peers.mistakes import MISTAKES
from tests.support.broken_peers.srmp import Srmp
from tests.support.broken_peers.web import Requests
from tests.support.peers.broken_peer_world import World
from tests.support.peers.srmp_peer import BOUNDARY, ENVELOPE, MSMQ_ELEMENT, NEVER, date, multipart
from tests.support.srmp.srmp_messages import MESSAGES, with_envelope

OWN = UUID("5f9a1f6e-31c5-4f0c-9d1d-0a7b8f2c6d01")
ORDERS, TX = "http://127.0.0.1/msmq/private$/orders", "http://127.0.0.1/MSMQ/Private$/TX"
RECEIPTS = "http://127.0.0.1:8/msmq/private$/receipts"
DAY_S = 86_400  # a whole run of the tests may lie between making an envelope and using it
WANTS_RECEIPT = (
    '<services se:mustUnderstand="1"><deliveryReceiptRequest>'
    f"<sendTo>{RECEIPTS}</sendTo></deliveryReceiptRequest></services>"
)


def envelope(to: str = ORDERS, number: int = 7, **changed: Any) -> bytes:
    """An envelope sent now."""
    now = time.time()
    values = {
        "action": "MSMQ:label", "to": to, "number": number, "guid": OWN, "expires": NEVER, "sent": date(now),
        "reach": date(now + DAY_S), "services": "", "more": "", "kind": 0, "priority": 3, "flags": "",
        **changed,
    }  # fmt: skip
    return ENVELOPE.format(msmq=MSMQ_ELEMENT.format(**values), **values).encode()


def stream(current: int, previous: int | None = None, *, starts: bool = False) -> bytes:
    """A message of a stream."""
    before = "" if previous is None else f"<previous>{previous}</previous>"
    start = f"<start><sendReceiptsTo>{RECEIPTS}</sendReceiptsTo></start>" if starts else ""
    more = (
        f'<stream se:mustUnderstand="1"><streamId>uid:{OWN}\\99</streamId>'
        f"<current>{current}</current>{before}{start}</stream>"
    )
    return envelope(TX, number=current, more=more)


def request(data: bytes, body: bytes | None = b"payload", *, kind: str = "", length: str = "") -> bytes:
    """A request with an envelope."""
    content_type, entity = multipart(data, body, OWN)
    head = (
        f"POST /msmq/private$/orders HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind or content_type}\r\n"
    )
    return f"{head}Content-Length: {length or len(entity)}\r\n\r\n".encode() + entity


def posted(*requests: bytes) -> Callable[[World], Any]:
    """The statuses of the responses on one connection, or how the peer ends."""

    def look(world: World) -> Any:
        requests_ = Requests(Srmp(world.manager).take, world.makes)
        answers = b"".join(world.guarded(requests_.receive, data) or b"" for data in requests)
        return world.ended or re.findall(rb"HTTP/1.1 (\d+)", answers)

    return look


def queued(*requests: bytes, queue: str = "private$\\orders") -> Callable[[World], Any]:
    """The payloads in a queue."""

    def look(world: World) -> Any:
        posted(*requests)(world)
        return list(world.manager.queues[queue].bodies)

    return look


def receipts(*envelopes: bytes) -> Callable[[World], list[tuple[str, bytes]]]:
    """URL and envelope of each receipt."""

    def look(world: World) -> list[tuple[str, bytes]]:
        srmp, sent = Srmp(world.manager), []
        srmp.post = lambda url, envelope: sent.append((url, envelope))
        for data in envelopes:
            assert srmp.take("text/xml", data) == 200
        world.clock.advance(1)
        return sent

    return look


def told(world: World) -> Any:
    """The identifier in a delivery receipt."""
    return re.findall(rb"<id>uuid:(\d+)@", receipts(envelope(services=WANTS_RECEIPT))(world)[0][1])[1]


def nested(depth: int) -> bytes:
    return envelope(more="<a>" * depth + "</a>" * depth)


def overlong_part() -> bytes:
    """A request whose last part says that it is longer than the entity."""
    entity = multipart(envelope(), b"payload", OWN)[1].replace(b"Length: 7\r\n", b"Length: 9999\r\n")
    head = f'POST /q HTTP/1.1\r\nHost: h\r\nContent-Type: multipart/related; boundary="{BOUNDARY}"\r\n'
    return f"{head}Content-Length: {len(entity)}\r\n\r\n".encode() + entity


LAUGHS = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {name} "{f"&{last};" * 10}">' for last, name in zip("abcdefg", "bcdefgh", strict=True)
)
EXPANDING = (LAUGHS + "]>").encode() + envelope(action="&h;")
ONE, GAP = request(stream(1, starts=True)), request(stream(3))
CHUNKED = request(envelope()).partition(b"Content-Length")[0] + b"Transfer-Encoding: chunked\r\n\r\n"

EFFECTS: dict[str, tuple[Callable[[World], Any], Any, Any]] = {
    "http_trusts_content_length": (posted(request(envelope(), length="2147483648")), [b"400"], "Crash"),
    "http_answers_a_byte_early": (posted(request(envelope())[:-1]), [], [b"200"]),
    "http_loses_second_request": (posted(request(envelope()) * 3), [b"200"] * 3, [b"200"] * 2),
    "http_crashes_without_boundary": (
        posted(request(envelope(), kind="multipart/related; type=text/xml")), [b"400"], "Crash",
    ),
    "http_trusts_part_length": (posted(overlong_part()), [b"400"], [b"200"]),
    "http_ok_for_malformed": (posted(request(b"<a/>")), [b"400"], [b"200"]),
    "http_500_for_malformed": (posted(request(b"<a/>")), [b"400"], [b"500"]),
    "http_expands_entities": (posted(request(EXPANDING)), [b"400"], "Hang"),
    "http_nesting_crashes": (posted(request(nested(1_000))), [b"400"], "Crash"),
    "http_crashes_on_a_date": (posted(request(envelope(expires="20070230T000000"))), [b"400"], "Crash"),
    "http_ok_for_unknown_queue": (posted(request(envelope(f"{ORDERS}x"))), [b"400"], [b"200"]),
    "http_takes_duplicates": (queued(request(envelope()) * 2), [b"payload"], [b"payload"] * 2),
    "http_takes_gaps": (queued(ONE, GAP, queue="private$\\tx"), [b"payload"], [b"payload"] * 2),
    "http_no_delivery_receipt": (
        lambda world: len(receipts(envelope(services=WANTS_RECEIPT))(world)), 1, 0,
    ),
    "http_receipt_of_the_next": (told, b"7", b"8"),
}  # fmt: skip


@pytest.mark.parametrize("name", EFFECTS)
def test_a_mistake_has_its_effect(name: str) -> None:
    look, correct, mistaken = EFFECTS[name]
    assert correct != mistaken
    assert look(World()) == correct
    assert look(World(name)) == mistaken


def test_each_mistake_has_a_test() -> None:
    assert set(EFFECTS) == {name for name in MISTAKES if name.startswith("http_")}


def test_messages_are_taken_however_they_are_cut() -> None:
    whole = request(envelope(number=1)) + request(envelope(number=2), None)
    chunked = CHUNKED + b"5\r\n" + b"wrong" + b"\r\n0\r\nTrailer: t\r\n\r\n"
    for size in (1, 7, 10_000):
        pieces = [(whole + chunked)[at : at + size] for at in range(0, len(whole + chunked), size)]
        world = World()
        assert queued(*pieces)(world) == [b"payload", b""]
        assert posted(*pieces)(World()) == [b"200", b"200", b"400"]


@pytest.mark.parametrize("name", ["4.1", "4.2", "4.3-1", "4.4-1"])
def test_published_messages_are_foreign_or_expired(
    name: str,
) -> None:
    """They are refused as those of another host, and discarded as expired when they are for this one."""
    data = parse_message(MESSAGES[name]).envelope_bytes or b""
    here = re.sub(rb"(to>)\s*http://machine2/msmq/private\$/\w+", rb"\1" + ORDERS.encode(), data, flags=re.I)
    assert queued(MESSAGES[name])(World()) == queued(with_envelope(name, here))(World()) == []
    assert posted(MESSAGES[name])(World()) == [b"400"]
    assert posted(with_envelope(name, here))(World()) == [b"200"]


@pytest.mark.parametrize(
    "wrong",
    [
        envelope("ftp://127.0.0.1/msmq/private$/orders"),
        envelope("http://192.0.2.1/msmq/private$/orders"),
        envelope(TX),
        envelope(more='<x se:mustUnderstand="1"/>'),
        envelope(priority=8),
        envelope(guid="5f9a1f6e"),
        envelope().replace(b"<se:Body></se:Body>", b""),
        stream(1, starts=True).replace(b"/TX<", b"/orders<"),
        b"",
        EXPANDING,
        nested(70),
    ],
    ids=itertools.count(),  # the envelopes have times in them
)
def test_what_is_wrong_is_refused(wrong: bytes) -> None:
    world = World()
    assert posted(request(wrong))(world) == [b"400"]
    assert not any(queue.bodies for queue in world.manager.queues.values())


@pytest.mark.parametrize(
    "head",
    [b"GET / HTTP/2\r\n", b"POST / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n",
     b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n", b"x" * 70_000],
)  # fmt: skip
def test_a_request_without_an_end_ends_the_connection(head: bytes) -> None:
    requests = Requests(lambda *_: 200, World().makes)
    assert requests.receive(head + b"\r\n").startswith(b"HTTP/1.1 400 ")
    assert requests.closed


def test_lint_finds_nothing_in_its_receipts() -> None:
    data = [envelope(services=WANTS_RECEIPT), stream(1, starts=True), stream(4, 1)]
    sent = receipts(*data)(World())
    assert [url for url, _ in sent] == [RECEIPTS] * 2
    for _, receipt in sent:
        head = "POST /msmq/private$/receipts HTTP/1.1\r\nHost: 127.0.0.1:8\r\nContent-Type: text/xml\r\n"
        head += f'Content-Length: {len(receipt)}\r\nSOAPAction: "MSMQMessage"\r\n'
        head += "Proxy-Accept: NonInteractiveClient\r\n\r\n"
        assert lint_srmp(parse_message(head.encode() + receipt)) == []
    assert b"<lastOrdinal>4</lastOrdinal>" in sent[1][1]
