"""A server against a hand-written peer that speaks SRMP, honest and not."""

from __future__ import annotations

import time

import pytest

from tests.support.patience import limit
from tests.support.peers.srmp_peer import MSMQ, PATH, SRMP, SrmpPeer, date, srmp_peer
from tests.support.running import attach, bodies, listed, message, peeked, process, recoverable, until

ADDRESS, PEER = "127.0.0.34", "127.0.0.35"
Q, LEDGER = r"private$\q", r"private$\ledger"
FAST = [
    option
    for value in ("retransmission_timeout_ms=300", "resend_timer_table=1,1,1,1,1,1,1,1,1,1",
                  "stream_receipt_delay_ms=200")
    for option in ("--set", value)
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    options = ("--http", f"{ADDRESS}:0", "--queue", Q, "--queue", f"{LEDGER};transactional", *FAST)
    with process(tmp_path_factory.mktemp("srmp") / "data", *options, address=ADDRESS) as running:
        yield running


@pytest.fixture
def peer(server):
    with srmp_peer(PEER, (ADDRESS, server.http_port)) as running:
        yield running
    with attach(server.data) as local:
        for queue in (Q, LEDGER):
            local.call("purge", queue=queue)


@pytest.fixture
def q(server):
    return f"http://{ADDRESS}:{server.http_port}/msmq/private$/q"


@pytest.fixture
def ledger(server):
    return f"http://{ADDRESS}:{server.http_port}/msmq/private$/ledger"


def receipts_of(peer: SrmpPeer, *requests: tuple[str, str]) -> str:
    """A services element that asks for receipts."""
    inner = "".join(f"<{name}><sendTo>{peer.url}/adm</sendTo>{more}</{name}>" for name, more in requests)
    namespace = 'xmlns="http://schemas.xmlsoap.org/srmp/" se:mustUnderstand="1"'
    return f"<services {namespace}><durable/>{inner}</services>"


@pytest.mark.requirement("SRMP-3.1.1.4.1-01", "SRMP-3.1.1.3.1-01", "SRMP-3.1.1.3.4-02")
def test_a_durable_message_and_its_receipts(server, peer, q):
    services = receipts_of(
        peer, ("deliveryReceiptRequest", ""), ("commitmentReceiptRequest", "<positiveOnly/>")
    )
    assert peer.post(peer.envelope(q, services=services, action="MSMQ:order"), b"\0body\xff") == 200
    (delivery,) = peer.wait(1, until)
    assert delivery.path == "/msmq/private$/adm"
    assert delivery.fields["Content-Type"] == "text/xml"
    assert delivery.text(f"{SRMP}deliveryReceipt", f"{SRMP}id") == f"uuid:1@{peer.guid}"
    assert delivery.text(f"{PATH}path", f"{PATH}action") == "MSMQ:order"
    assert delivery.text(f"{MSMQ}Msmq", f"{MSMQ}Class") == "2"
    assert delivery.text(f"{MSMQ}Msmq", f"{MSMQ}Correlation") == peer.correlation(1)
    with attach(server.data) as local:
        (received,) = local.call("receive", queue=Q)["messages"]
        local.call("end", done=[received["receipt"]])
    assert bodies([received]) == [b"\0body\xff"]
    commitment = peer.wait(2, until)[1]
    assert commitment.text(f"{SRMP}commitmentReceipt", f"{SRMP}decision") == "positive"
    assert commitment.text(f"{MSMQ}Msmq", f"{MSMQ}Class") == "16384"


@pytest.mark.requirement("SRMP-3.1.1.4.2-01", "SRMP-3.1.5.1.6.3-01", "SRMP-3.1.5.1.6.3-02")
def test_a_stream_in_order_whatever_order_it_comes_in(server, peer, ledger):
    def send(current: int, start: bool = False) -> int:
        stream = peer.stream(7 << 32 | 1, current, start=f"{peer.url}/order_queue$" if start else "")
        return peer.post(peer.envelope(ledger, more=stream), b"%d" % current)

    assert [send(2), send(1, start=True), send(3), send(2), send(2), send(3)] == [200] * 6

    def last_ordinals():
        return [receipt.text(f"{SRMP}streamReceipt", f"{SRMP}lastOrdinal") for receipt in receipts()]

    def receipts():
        return peer.of(f"{SRMP}streamReceipt")

    # On a busy machine receipts for the beginning of the stream come before.
    until(lambda: "3" in last_ordinals(), "the receipt for the whole stream")
    assert last_ordinals() == sorted(last_ordinals())
    receipt = receipts()[-1]
    assert receipt.path == "/msmq/private$/order_queue$"
    assert receipt.text(f"{SRMP}streamReceipt", f"{SRMP}streamId") == f"uid:{peer.guid}\\{7 << 32 | 1}"
    assert receipt.text(f"{SRMP}streamReceipt", f"{SRMP}lastOrdinal") == "3"
    assert receipt.text(f"{PATH}path", f"{PATH}action") == "MSMQ:QM Ordering Ack"
    assert peeked(server.data, LEDGER) == [b"1", b"2", b"3"]


@pytest.mark.requirement("SRMP-3.1.7.2.5-06", "SRMP-3.1.2.1-01", "SRMP-3.1.7.2.2-02")
def test_what_the_peer_can_not_take_is_sent_again_unchanged(server, peer):
    peer.statuses[:] = [503, 500]
    with attach(server.data) as local:
        local.call("send", to=f"DIRECT={peer.url}/far", messages=recoverable(b"m", label="again"))
    first, second, third = peer.wait(3, until)
    assert first.entity == second.entity == third.entity
    assert (third.body, third.text(f"{PATH}path", f"{PATH}to")) == (b"m", f"{peer.url}/far")
    queue = next(name for name in listed(server.data) if name.endswith("far"))
    until(lambda: not listed(server.data)[queue]["messages"], "the message to leave")


@pytest.mark.requirement("SRMP-3.1.6.2-01", "SRMP-3.1.5.1.8.3-01", "SRMP-3.1.7.2.3-08")
def test_a_stream_is_sent_until_the_peer_acknowledges_it(server, peer):
    with attach(server.data) as local:
        sent = [message(b"%d" % number, delivery="transactional") for number in (1, 2)]
        local.call("send", to=f"DIRECT={peer.url}/stream", messages=sent)
    requests = peer.wait(4, until)[:4]
    assert [request.body for request in requests] == [b"1", b"2", b"1", b"2"]
    assert requests[0].entity == requests[2].entity
    (number,) = {request.text(f"{SRMP}stream", f"{SRMP}streamId") for request in requests}
    assert requests[0].text(f"{SRMP}stream", f"{SRMP}start", f"{SRMP}sendReceiptsTo") == (
        f"http://alpha:{server.http_port}/MSMQ/PRIVATE$/order_queue$"
    )
    receipt = (
        f'<streamReceipt xmlns="http://schemas.xmlsoap.org/srmp/"><streamId>{number}</streamId>'
        "<lastOrdinal>2</lastOrdinal></streamReceipt>"
    )
    order_queue = f"http://{ADDRESS}:{server.http_port}/msmq/private$/order_queue$"
    envelope = peer.envelope(order_queue, action="MSMQ:QM Ordering Ack", more=receipt, kind=255)
    assert peer.post(envelope, path="/msmq/private$/order_queue$") == 200
    queue = next(name for name in listed(server.data) if name.endswith("stream"))
    until(lambda: not listed(server.data)[queue]["messages"], "the stream to end")
    seen = len(peer.received)
    time.sleep(1.5)  # in which nothing is sent again
    assert len(peer.received) == seen


@pytest.mark.requirement("SRMP-3.1.7.2.5-05")
def test_what_the_peer_refuses_is_dead_lettered(server, peer):
    peer.statuses[:] = [400]
    with attach(server.data) as local:
        refused = recoverable(b"refused", dead_letter=True)
        local.call("send", to=f"DIRECT={peer.url}/no", messages=[*refused, *recoverable(b"taken")])
    assert [request.body for request in peer.wait(2, until)] == [b"refused", b"taken"]
    until(lambda: peeked(server.data, r"system$;deadletter") == [b"refused"], "the dead letter")


HOSTILE = {
    "billion laughs": b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]><x>&b;</x>',
    "external entity": b'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><x>&f;</x>',
    "deep nesting": b"<a>" * 100_000,
    "attributes": b"<a " + b" ".join(b'x%d="1"' % number for number in range(100_000)) + b"/>",
    "another encoding": "<?xml version='1.0' encoding='UTF-16'?><a/>".encode("utf-16"),
    "not closed": b"<se:Envelope",
    "prefix not declared": b"<q:Envelope/>",
    "nothing": b"",
}


@pytest.mark.requirement("SRMP-3.1.5.1.2-01", "SRMP-3.1.5.1.2-02")
@pytest.mark.parametrize("envelope", HOSTILE.values(), ids=HOSTILE)
def test_hostile_xml_is_refused_and_the_next_message_taken(server, peer, q, envelope):
    begin = time.monotonic()
    assert peer.post(envelope) == 400
    assert peer.post(peer.envelope(q), b"good") == 200
    assert time.monotonic() - begin < limit(10)
    assert peeked(server.data, Q) == [b"good"]


def test_quadratic_text_costs_no_more_than_its_size(server, peer, q):
    label = "&amp;" * 200_000
    begin = time.monotonic()
    assert peer.post(peer.envelope(q, action=f"MSMQ:{label}"), b"x") in (200, 400)
    assert time.monotonic() - begin < limit(10)


def test_forged_receipts_change_nothing(server, peer):
    peer.statuses[:] = [503] * 2
    with attach(server.data) as local:
        local.call("send", to=f"DIRECT={peer.url}/forged", messages=[message(b"m", delivery="transactional")])
    (request,) = peer.wait(1, until)[:1]
    stream = request.text(f"{SRMP}stream", f"{SRMP}streamId") or ""
    order_queue = f"http://{ADDRESS}:{server.http_port}/msmq/private$/order_queue$"
    for forged, last in ((stream + "9", 1), (stream, 2), (stream, 4_294_967_295)):
        receipt = (
            f'<streamReceipt xmlns="http://schemas.xmlsoap.org/srmp/"><streamId>{forged}</streamId>'
            f"<lastOrdinal>{last}</lastOrdinal></streamReceipt>"
        )
        envelope = peer.envelope(order_queue, action="MSMQ:QM Ordering Ack", more=receipt, kind=255)
        assert peer.post(envelope, path="/msmq/private$/order_queue$") in (200, 400)
    queue = next(name for name in listed(server.data) if name.endswith("forged"))
    assert listed(server.data)[queue]["messages"] == 1
    with attach(server.data) as local:
        local.call("purge", queue=queue)


def test_a_receipt_for_what_is_no_queue_is_refused(server, peer, q):
    """The URL of the order queue names an administration queue, or any text of a hostile sender."""
    order_queue = f"http://{ADDRESS}:{server.http_port}/msmq/private$/order_queue$?admin=%3Bdeadletter"
    receipt = (
        '<deliveryReceipt xmlns="http://schemas.xmlsoap.org/srmp/"><receivedAt>20300101T000000</receivedAt>'
        "<id>uuid:1@6fb8f0a1-0000-4000-8000-000000000001</id></deliveryReceipt>"
    )
    envelope = peer.envelope(order_queue, more=receipt, kind=2)
    assert peer.post(envelope, path="/msmq/private$/order_queue$?admin=%3Bdeadletter") == 400
    assert peer.post(peer.envelope(q), b"good") == 200
    assert peeked(server.data, Q) == [b"good"]


def test_expired_messages_and_messages_without_msmq(server, peer, q):
    past = date(time.time() - 1000)
    assert peer.post(peer.envelope(q, reach=past, sent=date(time.time() - 2000)), b"expired") == 200
    assert peer.post(peer.envelope(q, msmq="", expires=date(time.time() + 1000)), b"bare") == 200
    assert peer.post(peer.envelope(q, msmq="", expires=date(time.time() + 1000)), b"bare") == 200
    with attach(server.data) as local:
        found = local.call("peek", queue=Q, count=9)["messages"]
    assert bodies(found) == [b"bare", b"bare"]
    assert found[0]["source"] is None
    assert found[0]["identifier"] == "00000000-0000-0000-0000-000000000000\\1"


@pytest.mark.requirement("SRMP-3.1.5.1.11-02")
def test_a_duplicate_is_answered_and_dropped(server, peer, q):
    envelope = peer.envelope(q)
    assert [peer.post(envelope, b"once"), peer.post(envelope, b"once")] == [200, 200]
    assert peeked(server.data, Q) == [b"once"]
