"""Multicast in the queue manager: the groups that its queues listen to, and what comes from them."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.effects import Multicast, MulticastGroups
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.protocols.srmp.effects import HttpResponse
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.srmp.message import parse_multicast
from tests.support.engine_harness import OWN_ADDRESS, EngineHarness
from tests.support.paths import VECTORS
from tests.support.qm.queue_contents import bodies

EXAMPLE = (VECTORS / "srmp" / "4.5.http").read_bytes()
SENT = 1_181_270_239  # 20070608T023719, as the example has it
GROUP = ("234.1.1.1", 8001)
BODY = "ardenwhite".encode("utf-16-le")
SENDER = "10.0.0.9"


def harness_with(*addresses: str | None) -> tuple[EngineHarness, list[Queue]]:
    """A queue manager at the time of the example with queues that listen to groups."""
    harness = EngineHarness(utc=SENT + 60)
    queues = [harness.queue(f"q{number}") for number, _ in enumerate(addresses)]
    for queue, address in zip(queues, addresses, strict=True):
        bind(harness, queue, address)
    return harness, queues


def bind(harness: EngineHarness, queue: Queue, address: str | None) -> None:
    queue.multicast_address = address
    harness.core.queues.changed(queue)
    harness.run()


def announced(harness: EngineHarness) -> list[set[tuple[str, int]]]:
    return [set(effect.groups) for _, effect in harness.effect_log if isinstance(effect, MulticastGroups)]


def receive(harness: EngineHarness, data: bytes, group: str = GROUP[0], port: int = GROUP[1]) -> None:
    srmp_of(harness.core).multicast_received(data, SENDER, group, port)
    harness.run()


@pytest.mark.requirement("DMPR-3.1.1.2-15")
def test_the_owner_learns_of_every_change_of_the_groups() -> None:
    harness, (first, second, _) = harness_with("234.1.1.1:8001", "234.1.1.1:8001", None)
    assert announced(harness) == [{GROUP}], "the second listens to what the first does"
    bind(harness, first, "234.1.1.1:8002")
    bind(harness, second, None)
    bind(harness, second, "garbage of a directory")
    assert announced(harness)[1:] == [{GROUP, ("234.1.1.1", 8002)}, {("234.1.1.1", 8002)}]
    again = harness.restarted()
    assert announced(again) == [{("234.1.1.1", 8002)}]
    again.core.queues.delete(again.core.queues.lookup.multicast_queues("234.1.1.1", 8002)[0])
    again.run()
    assert announced(again)[1:] == [set()]
    assert again.core.queues.lookup.multicast_queues("234.1.1.1", 8002) == []


def test_a_transactional_queue_listens_to_nothing() -> None:
    harness = EngineHarness()
    queue = harness.queue("q", transactional=True)
    bind(harness, queue, "234.1.1.1:8001")
    assert announced(harness) == []


@pytest.mark.requirement("SRMP-2.1.2-02", "SRMP-2.1.2-06", "SRMP-3.1.5.1.1-11", "SRMP-4.5-02")
def test_the_example_reaches_all_queues_of_its_group() -> None:
    harness, queues = harness_with("234.1.1.1:8001", "234.1.1.1:8002", "234.1.1.1:8001", None)
    receive(harness, EXAMPLE)
    assert [bodies(queue) for queue in queues] == [[BODY], [], [BODY], []]
    message = next(iter(queues[0].positions)).message
    assert (message.destination.text, message.label) == ("MULTICAST=234.1.1.1:8001", "mqsender label")
    assert (message.identifier.uniquifier, message.sent_time) == (4494, SENT)
    assert (message.time_to_reach_queue, message.body_type) == (345_600, 8)
    assert not [effect for _, effect in harness.effect_log if isinstance(effect, HttpResponse)]


@pytest.mark.requirement("SRMP-2.1.2-03", "SRMP-3.1.7.9-02", "SRMP-3.1.7.2.5-08")
def test_a_group_message_is_an_http_request_deleted_once_sent() -> None:
    harness = EngineHarness(utc=SENT)
    queue = harness.outgoing("MULTICAST=234.1.1.1:8001")
    harness.send(b"to all", to="MULTICAST=234.1.1.1:8001")
    effect = harness.last_effect(Multicast)
    assert (effect.address, effect.port) == GROUP
    assert effect.data.startswith(b"POST 234.1.1.1:8001 HTTP/1.1\r\nHost: 234.1.1.1:8001\r\nContent-Type: ")
    assert parse_multicast(effect.data).body == b"to all"
    assert bodies(queue) == [b"to all"]
    srmp_of(harness.core).answered(effect.request, 200)
    harness.run()
    assert bodies(queue) == []


@pytest.mark.requirement("SRMP-2.1.2-04")
def test_its_http_header_does_not_matter() -> None:
    harness, (queue,) = harness_with("234.1.1.1:8001")
    receive(harness, b"not even HTTP\r\n\r\n" + EXAMPLE.partition(b"\r\n\r\n")[2])
    assert bodies(queue) == [BODY]


@pytest.mark.requirement("SRMP-2.1.2-02", "SRMP-2.1.2-06", "SRMP-3.1.5.1.3-01", "SRMP-3.1.5.1.3-11")
@pytest.mark.parametrize(
    "data, group, port",
    [
        (EXAMPLE, "234.1.1.1", 8002),
        (EXAMPLE, "234.1.1.2", 8001),
        (EXAMPLE.replace(b"MULTICAST=234.1.1.1:8001", b"MULTICAST=234.1.1.1:8009"), "234.1.1.1", 8009),
        (EXAMPLE[:-40], *GROUP),
        (b"", *GROUP),
    ],
    ids=["other port", "other address", "no queue", "cut", "empty"],
)
def test_what_is_dropped(data: bytes, group: str, port: int) -> None:
    harness, queues = harness_with("234.1.1.1:8001", "234.1.1.1:8002")
    receive(harness, data, group, port)
    assert [bodies(queue) for queue in queues] == [[], []]
    assert not [effect for _, effect in harness.effect_log if isinstance(effect, HttpResponse)]


@pytest.mark.requirement("SRMP-2.1.2-02")
def test_no_other_queue_is_reached_by_multicast() -> None:
    """A queue that takes messages over HTTP is not there for whoever can send to a group."""
    harness, (queue, _) = harness_with(None, "234.1.1.1:8001")
    url = f"http://{OWN_ADDRESS}/msmq/private$/q0".encode()
    old = b"MSMQ:MULTICAST=234.1.1.1:8001"
    envelope = EXAMPLE.replace(old, url)
    envelope = envelope.replace(b"Content-Length: 779", b"Content-Length: %d" % (779 + len(url) - len(old)))
    assert url in envelope
    receive(harness, envelope)
    assert bodies(queue) == []
    assert harness.core.context.troubles["refused"] == 1, "it can be read, and is refused for where it goes"
