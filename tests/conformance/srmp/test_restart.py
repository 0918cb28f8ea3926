"""What survives a restart in each state: [MC-MQSRM] 3.1.1.1.1, 3.1.1.1.5, 3.1.1.1.6 and 3.1.3."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.enumerations import DeliveryGuarantee, OutgoingQueueState
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.tables import Table
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.qm.protocols.srmp.states import SrmpMessageState
from msmqwire.qm.protocols.srmp.timers import SrmpTimer
from tests.support.engine_harness import OWN_ID, PEER_ID, START_UTC
from tests.support.qm.queue_contents import bodies, messages
from tests.support.srmp.srmp_harness import THERE, SrmpHarness
from tests.support.srmp.srmp_requests import ADMIN, RECEIPTS, SrmpPeer

S = SrmpMessageState
OK = 200
MULTICAST = "MULTICAST=234.1.1.1:8001"
LARGE = bytes(range(256)) * 10_000
"""More than a packet of the binary protocol can hold twice."""


def stream_id(ordinal: int) -> str:
    return f"uid:{OWN_ID}\\{START_UTC << 32 | ordinal}"


# -- messages that are sent


@pytest.mark.requirement("SRMP-3.1.1.1.3-03", "SRMP-3.1.4-01", "SRMP-3.1.4.1-01", "SRMP-3.1.3.1-06")
@pytest.mark.parametrize("guarantee", DeliveryGuarantee)
@pytest.mark.parametrize("state", ["prepared", "under way", "failed"])
@pytest.mark.requirement("SRMP-2.2.5.2.1-03")
@pytest.mark.requirement("SRMP-3.1.3.1-05")
def test_a_restart_resends_durable_messages_and_no_express_ones(guarantee, state):
    harness, stored = SrmpHarness(), []
    if state == "prepared":
        harness.core.queues.take_offline()
    harness.answers = lambda _: stored.append(len(harness.rows(Table.MESSAGE)))
    harness.send(b"m", delivery_guarantee=guarantee)
    first = [sent.data for sent in harness.take()]
    if state == "failed":
        harness.answer(500)
    harness.restart()
    again = harness.take()
    if guarantee is DeliveryGuarantee.EXPRESS:
        assert (again, harness.where()) == ([], {})
        return
    assert [sent.data for sent in again] == first or state == "prepared"
    assert [sent.body for sent in again] == [b"m"]
    assert set(stored) == {1}, "it is stored before it is sent"
    assert harness.message_states() == [S.WAIT_FOR_RESPONSE]
    assert harness.time_left(SrmpTimer.RETRANSMISSION, harness.outgoing().number) == 20_000
    harness.answer()
    assert harness.where() == {}
    assert harness.rows(Table.MESSAGE) == {}


@pytest.mark.requirement(
    "SRMP-3.1.1.1.1-01", "SRMP-3.1.3.2-01", "SRMP-3.1.7.7-03", "SRMP-3.1.1.1.6-03",
    "SRMP-3.1.1.1.6-04", "SRMP-3.1.3.1-03",
)  # fmt: skip
@pytest.mark.parametrize("stop", [False, True])
@pytest.mark.parametrize("state", list(S)[:5])
def test_a_stream_goes_on_after_a_restart_in_each_state(state, stop):
    harness = SrmpHarness()
    if state is S.PREPARE_TO_SEND:
        harness.core.queues.take_offline()
    wanted = state is S.WAIT_FOR_FINAL_RECEIPT
    harness.send(b"1", transactional=True, negative_journaling_requested=wanted)
    if state is S.WAIT_FOR_RETRANSMISSION:
        harness.answer(500)
    elif state in (S.WAIT_FOR_STREAM_RECEIPT, S.WAIT_FOR_FINAL_RECEIPT):
        harness.answer()
    if wanted:
        SrmpPeer(harness).stream_receipt(stream_id(1), 1)
    assert harness.message_states() == [state]
    first = [sent.data for sent in harness.sent if sent.body]
    if stop:
        harness.stop()
    harness.restart()
    again = [sent for sent in harness.take() if sent.body]
    if wanted:
        assert (again, harness.message_states()) == ([], [S.WAIT_FOR_FINAL_RECEIPT])
        harness.send(b"2", transactional=True)
        assert harness.take_one().stream == (stream_id(1), 2, 1, None)
        harness.answer()
        SrmpPeer(harness).final_receipt(stream_id(1), 1, 0x8001, "negative")
        assert harness.where() == {"outgoing": [b"2"], "dead transactional": [b"1"]}
        SrmpPeer(harness).stream_receipt(stream_id(1), 2)
    else:
        assert [sent.data for sent in again] == first or state is S.PREPARE_TO_SEND
        assert again[0].stream == (stream_id(1), 1, None, "http://here/MSMQ/PRIVATE$/order_queue$")
        harness.answer()
        harness.send(b"2", transactional=True)
        harness.answer()
        assert harness.take_one().stream == (stream_id(1), 2, 1, None)
        assert SrmpPeer(harness).stream_receipt(stream_id(1), 2) == OK
    assert {name: found for name, found in harness.where().items() if name == "outgoing"} == {}
    assert harness.rows_of_streams() == {}


@pytest.mark.requirement("SRMP-3.1.1.1.6-03", "SRMP-3.1.3.2-01", "SRMP-3.1.7.2.3-09")
def test_what_is_left_of_a_stream_follows_what_is_gone():
    harness = SrmpHarness(answers=lambda _: OK)
    for number in range(1, 7):
        limit = 20 if number == 4 else 1_000
        harness.send(b"%d" % number, transactional=True, time_to_reach_queue=limit)
    SrmpPeer(harness).stream_receipt(stream_id(1), 2)
    harness.advance(21_000)
    harness.restart()
    # The receiver has accepted message 1 at least, and it accepts what follows whatever it has.
    assert [sent.stream[1:3] for sent in harness.take()] == [(3, 1), (5, 3), (6, 5)]
    harness.send(b"7", transactional=True)
    assert harness.take_one().stream[1:3] == (7, 6)
    SrmpPeer(harness).stream_receipt(stream_id(1), 7)
    assert harness.where() == {}


def test_the_receipt_port_of_the_last_run_is_used_at_startup():
    """Waiting messages are sent before the listener starts, and say where receipts of their stream go."""
    harness = SrmpHarness(http=8080)
    harness.send(transactional=True)
    harness.fail()
    harness.restart()
    assert {sent.stream[3] for sent in harness.take()} == {"http://here:8080/MSMQ/PRIVATE$/order_queue$"}


def test_a_renumbered_stream_is_restored_with_its_new_numbers():
    harness = SrmpHarness(answers=lambda _: OK)
    for number in range(1, 4):
        limit = 10 if number == 1 else 1_000
        harness.send(b"%d" % number, transactional=True, time_to_reach_queue=limit)
    harness.advance(11_000)
    harness.restart()
    assert [sent.stream[:3] for sent in harness.take()] == [(stream_id(2), 1, None), (stream_id(2), 2, 1)]
    SrmpPeer(harness).stream_receipt(stream_id(2), 2)
    assert (harness.where(), harness.rows_of_streams()) == ({}, {})


@pytest.mark.requirement(
    "SRMP-3.1.3.1-02", "SRMP-3.1.3.1-03", "SRMP-3.1.1.1.5-02", "SRMP-3.1.1.1.5-03", "SRMP-3.1.1.1.3-01"
)
@pytest.mark.requirement("SRMP-3.1.1.1.1-01")
def test_message_and_stream_identifiers_are_never_reused():
    harness = SrmpHarness(answers=lambda _: OK)
    used: list[tuple[int, str]] = []
    for number in range(4):
        harness.send(transactional=True)
        sent = harness.take()[-1]
        used.append((int(sent["path/id"][5:].partition("@")[0]), sent.stream[0]))
        SrmpPeer(harness).stream_receipt(sent.stream[0], 1, number=number + 1)
        assert harness.where() == {}
        if number % 2:
            harness.stop()
        harness.restart()
    assert used == sorted(set(used))
    assert harness.core.queue_manager.identifier == OWN_ID
    assert [identifier for _, identifier in used] == [stream_id(number) for number in range(1, 5)]


def test_a_message_expires_after_a_restart_in_each_state():
    harness = SrmpHarness(answers=lambda _: OK)
    attributes = {"transactional": True, "negative_journaling_requested": True, "time_to_reach_queue": 60}
    harness.send(b"1", **attributes)
    SrmpPeer(harness).stream_receipt(stream_id(1), 1)
    harness.send(b"2", **attributes)
    harness.answers = None
    harness.send(b"3", **attributes)
    harness.restart()
    harness.advance(59_999)
    assert harness.where() == {"outgoing": [b"1", b"2", b"3"]}
    harness.advance(1_001)
    harness.fail()
    assert sorted(harness.where()["dead transactional"]) == [b"1", b"2", b"3"]
    assert "outgoing" not in harness.where()
    assert harness.rows_of_streams() == {}


def test_a_multicast_message_is_sent_after_a_restart():
    harness = SrmpHarness()
    harness.core.queues.take_offline()
    harness.send(b"m", to=MULTICAST, recoverable=True)
    harness.restart()
    sent = harness.take_one()
    assert (sent.url, sent.body, sent["path/to"]) == ("234.1.1.1:8001", b"m", f"MSMQ:{MULTICAST}")
    harness.answer()
    assert harness.where(MULTICAST) == {}


def test_a_purged_message_is_not_sent_after_a_restart():
    harness = SrmpHarness()
    harness.send(b"m", transactional=True)
    harness.purge(harness.outgoing())
    harness.restart()
    assert (harness.take(), harness.where(), harness.rows_of_streams()) == ([], {}, {})


# -- messages that are received


@pytest.mark.requirement("SRMP-3.1.3.1-01", "SRMP-3.1.1.1.5-05")
@pytest.mark.requirement("SRMP-3.1.1.1.1-01")
def test_durable_duplicates_are_detected_after_a_restart():
    harness = SrmpHarness()
    harness.queue("orders")
    SrmpPeer(harness).send(b"m", number=5, services="<durable/>")
    harness.restart()
    assert SrmpPeer(harness).send(b"again", number=5, services="<durable/>") == OK
    assert bodies(harness.find_queue()) == [b"m"]
    harness.advance(1_799_000)
    assert SrmpPeer(harness).send(b"half an hour later", number=5) == OK
    assert bodies(harness.find_queue()) == [b"m"]
    harness.advance(3_601_000)
    assert SrmpPeer(harness).send(b"an hour later", number=5) == OK
    assert len(harness.find_queue().positions) == 2


@pytest.mark.requirement("SRMP-3.1.1.1.5-05")
def test_the_history_has_a_limit():
    defaults = Settings()
    assert (defaults.remove_duplicate_size, defaults.message_id_history_cleanup_ms) == (10_000, 1_800_000)
    harness = SrmpHarness(remove_duplicate_size=3)
    harness.queue("orders")
    peer = SrmpPeer(harness)
    for number in (1, 2, 3, 4, 1, 4):
        assert peer.send(b"%d" % number, number=number) == OK
    assert bodies(harness.find_queue()) == [b"1", b"2", b"3", b"4", b"1"]
    assert len(harness.core.history) == 3


@pytest.mark.requirement(
    "SRMP-3.1.1.1.6-06", "SRMP-3.1.1.1.6-07", "SRMP-3.1.1.1.6-08", "SRMP-3.1.1.1.6-09", "SRMP-3.1.3.2-03",
    "SRMP-3.1.1.1.1-01", "SRMP-3.1.1.1.6-10",
)  # fmt: skip
@pytest.mark.parametrize("acknowledged", [False, True])
def test_an_incoming_stream_goes_on_and_is_acked_after_a_restart(acknowledged):
    harness = SrmpHarness(answers=lambda _: OK)
    harness.queue("orders", transactional=True)
    peer = SrmpPeer(harness)
    for number in (1, 2):
        peer.send_in_stream(number, number=number)
    if acknowledged:
        harness.advance(500)
        assert len(harness.take()) == 1
    harness.restart()
    (info,) = harness.find_queue().incoming.values()
    assert (info.sequence_identifier, info.sequence_number) == (TxSequenceId(START_UTC, 1), 2)
    assert (info.send_receipts_to, info.acknowledged, info.stream_owner) == (
        RECEIPTS, 2 if acknowledged else 0, PEER_ID,
    )  # fmt: skip
    harness.advance(500)
    assert [sent["streamReceipt/lastOrdinal"] for sent in harness.take()] == ([] if acknowledged else ["2"])
    peer = SrmpPeer(harness)
    for number in (1, 2, 3):
        assert peer.send_in_stream(number, number=number) == OK
    assert bodies(harness.find_queue()) == [b"s1", b"s2", b"s3"]
    harness.advance(500)
    assert harness.take_one()["streamReceipt/lastOrdinal"] == "3"


def test_received_messages_are_acked_before_an_orderly_stop():
    harness = SrmpHarness(answers=lambda _: OK)
    harness.queue("orders", transactional=True)
    SrmpPeer(harness).send_in_stream(1)
    harness.core.acknowledge_received()
    assert harness.take_one()["streamReceipt/lastOrdinal"] == "1"
    harness.stop()
    harness.restart()
    harness.advance(10_000)
    assert harness.take() == []


@pytest.mark.parametrize("kind", ["delivery", "commitment", "final"])
@pytest.mark.parametrize("durable", [True, False])
def test_receipts_for_stored_messages_are_sent_after_a_restart(kind, durable):
    harness = SrmpHarness(answers=lambda sent: None if "streamReceipt" in sent and kind != "final" else 503)
    stream = kind == "final"
    queue, peer = harness.queue("orders", transactional=stream), SrmpPeer(harness)
    services = "<durable/>" if durable else ""
    services += f"<deliveryReceiptRequest><sendTo>{ADMIN}</sendTo></deliveryReceiptRequest>" * (
        kind == "delivery"
    )
    services += (
        f"<commitmentReceiptRequest><sendTo>{ADMIN}</sendTo><positiveOnly/></commitmentReceiptRequest>"
        * (kind == "commitment")
    )
    extra = [peer.stream(1)] if stream else []
    peer.send(b"m", *extra, services=services, msmq="<DeadLetter/>")
    if kind != "delivery":
        harness.receive(queue)
    (first,) = harness.take()
    assert "services/durable" not in first
    harness.restart()
    harness.advance(20_000)
    again = [sent.data for sent in harness.take() if sent.data == first.data]
    assert bool(again) == (durable or stream)


@pytest.mark.requirement("DMPR-3.1.1.12-74")
@pytest.mark.parametrize("stream", [False, True])
def test_a_large_message_is_whole_after_a_restart(stream):
    """Its body, its envelope and all of the request, SoapCompoundMessage."""
    harness = SrmpHarness(answers=lambda _: OK)
    harness.queue("orders", transactional=stream)
    peer = SrmpPeer(harness)
    commitment = (
        f"<commitmentReceiptRequest><sendTo>{ADMIN}</sendTo><positiveOnly/></commitmentReceiptRequest>"
    )
    extra = [peer.stream(1)] if stream else []
    data = peer.message(LARGE, *extra, number=3, services=f"<durable/>{commitment}", label="großes")
    assert harness.post(data) == OK
    before = messages(harness.find_queue())[0]
    harness.restart()
    harness.advance(1_000)
    harness.take()
    (after,) = messages(harness.find_queue())
    assert (after.body, after.label) == (LARGE, "großes")
    assert after.soap_compound_message == before.soap_compound_message == data
    assert after.soap_envelope == before.soap_envelope
    assert after.soap_envelope.startswith("<se:Envelope")
    assert after.soap_envelope.endswith("</se:Envelope>")
    assert (after.soap_header, after.soap_body) == (before.soap_header, before.soap_body)
    assert harness.receive(harness.find_queue()) == LARGE
    assert harness.take_one()["commitmentReceipt/id"] == f"uuid:3@{PEER_ID}"


@pytest.mark.parametrize("repeated", [b"", b"aa", b"POST"])
def test_a_body_repeated_elsewhere_in_the_request_is_read_back(repeated):
    harness = SrmpHarness()
    harness.queue("orders")
    assert SrmpPeer(harness).send(repeated, services="<durable/>") == OK
    harness.restart()
    assert bodies(harness.find_queue()) == [repeated]


def test_a_multicast_message_is_complete_after_a_restart():
    harness = SrmpHarness()
    harness.queue("orders", multicast_address="234.1.1.1:8001")
    data = SrmpPeer(harness).message(b"m", to=f"MSMQ:{MULTICAST}", services="<durable/>")
    srmp_of(harness.core).multicast_received(data, "10.0.0.2", "234.1.1.1", 8001)
    harness.run()
    harness.restart()
    (message,) = messages(harness.find_queue())
    assert (message.body, message.destination.text) == (b"m", MULTICAST)
    assert message.soap_compound_message == data
    assert harness.receive(harness.find_queue()) == b"m"


def test_a_message_to_be_forwarded_is_whole_after_a_restart():
    harness = SrmpHarness(transparent_store_and_forward=True)
    data = SrmpPeer(harness).message(LARGE, to="http://there/msmq/private$/orders", services="<durable/>")
    assert harness.post(data) == OK
    first = harness.take_one()
    harness.fail()
    harness.restart()
    again = harness.take_one()
    assert (again.url, again.data) == (first.url, first.data)
    assert again.body == LARGE
    harness.answer()
    assert harness.where(THERE) == {}


@pytest.mark.requirement("SRMP-3.1.1.1.7-01", "SRMP-3.1.1.1.10-01", "SRMP-3.1.1.1.8-01")
@pytest.mark.requirement("SRMP-3.1.1.1.1-01")
def test_what_the_administrator_sets_is_given_at_each_start():
    """TransparentStoreAndForward and the redirections are the owner's to keep."""
    assert SrmpHarness().core.context.settings.transparent_store_and_forward is False
    redirections = {"DefaultStreamReceiptURLReplacement": "http://a/msmq/q"}
    harness = SrmpHarness(transparent_store_and_forward=True, redirections=redirections)
    harness.restart()
    assert SrmpPeer(harness).send(to="http://there/msmq/q") == OK
    harness.send(to="DIRECT=HTTP://other/msmq/q", transactional=True)
    assert harness.take()[-1].stream[3] == "http://a/msmq/q"


@pytest.mark.parametrize("state", OutgoingQueueState)
def test_an_outgoing_queue_without_messages_is_restored(state):
    harness = SrmpHarness(answers=lambda _: OK)
    harness.outgoing().state = state
    harness.restart()
    harness.core.queues.resume(harness.outgoing())
    harness.send(b"m")
    assert harness.take_one().body == b"m"
