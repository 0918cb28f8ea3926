"""The server of [MS-MQMR]: actions, 3.1.4.2."""

from __future__ import annotations

from typing import Any

import pytest

from msmqwire.constants import HResult
from msmqwire.management.constants import ObjectType
from msmqwire.management.objects import MGMT_OBJECT
from msmqwire.qm.model.effects import Connect, Disconnect, MulticastGroups, TidyStore
from msmqwire.qm.model.enumerations import OutgoingQueueState
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.qm.model.tables import Table
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from tests.support.engine_harness import (
    PEER_QUEUE,
    RECOVERABLE,
    START_UTC,
    EngineHarness,
    harness_with_peer,
)
from tests.support.qm.queue_contents import bodies
from tests.support.rpc.managing import MACHINE, Manager
from tests.support.srmp.srmp_harness import THERE, SrmpHarness
from tests.support.srmp.srmp_requests import SrmpPeer

OK = 0
INVALID = HResult.MQ_ERROR_INVALID_PARAMETER
NOT_FOUND = HResult.MQ_ERROR_QUEUE_NOT_FOUND
DENIED = HResult.MQ_ERROR_ACCESS_DENIED
UNKNOWN_ID = HResult.MQ_ERROR_ILLEGAL_PROPID
ORDERS = r"DIRECT=OS:here\private$\orders"
GROUP = "MULTICAST=234.1.1.1:8001"
LIST = "DL=00000000-0000-0000-0000-111111111111"
SESSION = MGMT_OBJECT.value(type=int(ObjectType.MGMT_SESSION), arm=7)
NO_QUEUE = MGMT_OBJECT.value(type=int(ObjectType.MGMT_QUEUE), arm=None)
FIRST = TxSequenceId(START_UTC, 1)
STATE = 11


@pytest.fixture
def harness() -> EngineHarness:
    """A queue manager that is named ``here``."""
    return EngineHarness()


@pytest.fixture
def manager(harness: EngineHarness) -> Manager:
    """Its administrator."""
    return Manager(harness)


# -- pausing ---------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQMR-3.1.4.2-20", "MQMR-3.1.4.2-22", "MQMR-3.1.4.2-24", "MQMR-3.1.4.2-06", "MQMR-3.1.4.2-12",
    "MQMR-3.1.1.1-01", "MQMR-4.1-02",
)  # fmt: skip
def test_a_paused_queue_keeps_its_messages_until_it_is_resumed() -> None:
    harness = harness_with_peer()
    manager = Manager(harness)
    harness.send(b"1", recoverable=True)
    peer = harness.called[0]
    assert manager.act(PEER_QUEUE, "PAUSE") == OK
    assert manager.value(PEER_QUEUE, STATE) == "ONHOLD"
    assert peer.bodies() == [b"1"]
    peer.acknowledge()  # what is in flight is still acknowledged
    assert bodies(harness.outgoing()) == []
    harness.send(b"2")
    assert manager.act(PEER_QUEUE, "PAUSE") == OK
    assert (peer.bodies(), bodies(harness.outgoing())) == ([], [b"2"])
    assert manager.values(PEER_QUEUE, STATE, 7) == ["ONHOLD", 1]
    assert manager.act(PEER_QUEUE, "RESUME") == OK
    assert manager.value(PEER_QUEUE, STATE) == "CONNECTED"
    assert peer.bodies() == [b"2"]


@pytest.mark.requirement("MQMR-3.1.4.2-20", "MQMR-3.1.4.2-22")
def test_a_paused_queue_stays_so_after_a_restart(harness: EngineHarness, manager: Manager) -> None:
    harness.send(b"m", recoverable=True)
    assert manager.act(PEER_QUEUE, "PAUSE") == OK
    restarted = harness.restarted()
    again = Manager(restarted)
    assert again.values(PEER_QUEUE, STATE, 7) == ["ONHOLD", 1]
    assert again.act(PEER_QUEUE, "RESUME") == OK
    assert again.value(PEER_QUEUE, STATE) == "INACTIVE"


@pytest.mark.requirement("MQMR-3.1.4.2-23")
@pytest.mark.parametrize("state", [state for state in OutgoingQueueState if state.value != "OnHold"])
def test_resuming_a_queue_that_is_not_paused_does_nothing(
    harness: EngineHarness, manager: Manager, state: OutgoingQueueState
) -> None:
    queue = harness.outgoing()
    queue.state = state
    harness.run()
    rows, events = harness.rows(Table.QUEUE), harness.record_events()
    assert manager.act(PEER_QUEUE, "RESUME") == OK
    assert (queue.state, events.log, harness.rows(Table.QUEUE)) == (state, [], rows)


@pytest.mark.requirement("MQMR-3.1.4.2-23")
def test_a_hardened_queue_is_locked_again(harness: EngineHarness, manager: Manager) -> None:
    queue = harness.outgoing()
    harness.core.queue_manager.hardened_security = True
    queue.state = OutgoingQueueState.LOCKED
    assert manager.act(PEER_QUEUE, "PAUSE") == OK
    assert manager.act(PEER_QUEUE, "RESUME") == OK
    assert manager.value(PEER_QUEUE, STATE) == "LOCKED"


@pytest.mark.requirement("MQMR-3.1.4.2-20", "MQMR-3.1.4.2-22")
def test_queues_by_http_and_multicast_are_paused() -> None:
    for name in (THERE, GROUP):
        harness = SrmpHarness(answers=lambda _: 200)
        manager = Manager(harness)
        harness.outgoing(name)
        assert manager.act(name, "pause") == OK
        harness.send(b"m", to=name)
        assert (harness.take(), manager.value(name, STATE)) == ([], "ONHOLD")
        assert bodies(harness.outgoing(name)) == [b"m"]
        assert manager.act(name, "resume") == OK
        assert manager.value(name, STATE) in ("WAITING", "CONNECTED")


# -- sending again ---------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMR-3.1.4.2-25", "MQMR-3.1.4.2-26")
def test_what_has_no_order_acknowledgement_goes_again_at_once() -> None:
    harness = harness_with_peer()
    manager = Manager(harness)
    for body in (b"1", b"2", b"3"):
        harness.send(body, transactional=True)
    harness.send(b"plain", recoverable=True)
    peer = harness.called[0]
    peer.acknowledge()
    peer.send_order_ack(FIRST, 1)
    peer.take()
    harness.advance(3_000)
    assert manager.act(PEER_QUEUE, "EOD_RESEND") == OK
    assert peer.sequenced_bodies() == [(b"2", 1, 2, 1), (b"3", 1, 3, 2)]
    # It counts as a time-out: the next one comes after its interval.
    assert manager.values(PEER_QUEUE, 21, 22, 23) == [START_UTC + 33, 30, 2]
    peer.acknowledge()
    harness.advance(30_000)
    assert [number for _, _, number, _ in peer.sequenced_bodies()] == [2, 3]


@pytest.mark.requirement("MQMR-3.1.4.2-25")
@pytest.mark.parametrize("recoverable", [False, True])
def test_nothing_to_send_again_is_no_error(recoverable: bool) -> None:
    harness = harness_with_peer()
    harness.send(b"m", recoverable=recoverable)
    peer = harness.called[0]
    peer.take()
    assert Manager(harness).act(PEER_QUEUE, "EOD_RESEND") == OK
    assert peer.take() == []


@pytest.mark.requirement("MQMR-3.1.4.2-25")
def test_without_a_session_one_is_tried_now() -> None:
    harness = harness_with_peer()
    harness.send(b"1", transactional=True)
    first = harness.called[0]
    first.acknowledge()
    first.disconnect()
    harness.run()
    assert len(harness.called) == 1  # it would connect again in 5 s
    assert Manager(harness).act(PEER_QUEUE, "EOD_RESEND") == OK
    assert len(harness.called) == 2
    assert harness.called[1].sequenced_bodies() == [(b"1", 1, 1, 0)]


@pytest.mark.requirement("MQMR-3.1.4.2-25", "MQMR-3.1.4.2-20")
def test_a_paused_queue_sends_again_once_it_is_resumed() -> None:
    harness = harness_with_peer()
    manager = Manager(harness)
    harness.send(b"1", transactional=True)
    peer = harness.called[0]
    peer.acknowledge()
    peer.take()
    assert manager.act(PEER_QUEUE, "PAUSE") == OK
    peer.take()
    assert manager.act(PEER_QUEUE, "EOD_RESEND") == OK
    assert peer.sequenced_bodies() == []
    assert manager.act(PEER_QUEUE, "RESUME") == OK
    assert peer.sequenced_bodies() == [(b"1", 1, 1, 0)]


@pytest.mark.requirement("MQMR-3.1.4.2-25")
@pytest.mark.parametrize("paused", [False, True])
def test_a_stream_by_http_goes_again_with_its_numbers(paused: bool) -> None:
    harness = SrmpHarness(answers=lambda _: 200)
    manager = Manager(harness)
    harness.send(b"1", transactional=True)
    harness.send(b"2", transactional=True)
    first = [request.stream for request in harness.take()]
    if paused:
        assert manager.act(THERE, "PAUSE") == OK
    assert manager.act(THERE, "EOD_RESEND") == OK
    if paused:
        assert harness.take() == []
        assert manager.act(THERE, "RESUME") == OK
    assert [request.stream for request in harness.take()] == first


# -- the machine -----------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMR-3.1.4.2-14", "MQMR-3.1.4.2-15", "MQMR-3.1.4.2-16", "MQMR-3.1.4.2-12")
def test_disconnected_it_neither_sends_nor_takes() -> None:
    harness = harness_with_peer()
    manager = Manager(harness)
    queue = harness.queue()
    harness.send(b"1", transactional=True)
    out, peer = harness.called[0], harness.accept_session()
    assert manager.act(MACHINE, "DISCONNECT") == OK
    assert (out.closed, peer.closed) == (True, True)
    assert manager.value(MACHINE, 4) == "DISCONNECTED"  # it still answers
    harness.send(b"2", transactional=True)
    harness.forget_effects()
    harness.advance(60_000)
    assert harness.effects_of(Connect) == []
    refused = harness.accept_connection()
    assert harness.effects_of(Disconnect) == [Disconnect(refused.connection)]
    assert manager.values(PEER_QUEUE, 7, STATE) == [2, "DISCONNECTED"]
    assert manager.act(MACHINE, "CONNECT") == OK
    assert manager.value(MACHINE, 4) == "CONNECTED"
    assert harness.called[1].sequenced_bodies() == [(b"1", 1, 1, 0), (b"2", 1, 2, 1)]  # at once
    harness.called[1].acknowledge()
    harness.called[1].send_order_ack(FIRST, 2)
    assert bodies(harness.outgoing()) == []
    assert bodies(queue) == []


@pytest.mark.requirement("MQMR-3.1.4.2-14", "MQMR-3.1.4.2-15")
def test_disconnected_nothing_goes_and_comes_by_http() -> None:
    harness = SrmpHarness(answers=lambda _: 200)
    manager, peer = Manager(harness), SrmpPeer(harness)
    queue = harness.queue()
    assert peer.send(b"before") == 200
    assert manager.act(MACHINE, "DISCONNECT") == OK
    harness.send(b"m")
    harness.advance(60_000)
    assert harness.take() == []
    assert peer.send(b"meanwhile") == 503  # its sender tries again
    assert bodies(queue) == [b"before"]
    assert manager.act(MACHINE, "CONNECT") == OK
    assert [request.body for request in harness.take()] == [b"m"]
    assert peer.send(b"after") == 200
    assert bodies(queue) == [b"before", b"after"]


@pytest.mark.requirement("MQMR-3.1.4.2-15", "MQMR-3.1.4.2-14")
def test_disconnected_no_multicast_group_is_listened_to() -> None:
    harness = SrmpHarness()
    manager = Manager(harness)
    harness.queue(multicast_address="234.1.1.1:8001")
    harness.run()
    groups = frozenset({("234.1.1.1", 8001)})
    assert harness.effects_of(MulticastGroups)[-1] == MulticastGroups(groups)
    assert manager.act(MACHINE, "DISCONNECT") == OK
    assert harness.effects_of(MulticastGroups)[-1] == MulticastGroups(frozenset())
    data = SrmpPeer(harness).message(b"m", to="msmq-multicast://234.1.1.1:8001")
    srmp_of(harness.core).multicast_received(data, "10.0.0.9", "234.1.1.1", 8001)
    harness.run()
    assert bodies(harness.find_queue()) == []
    assert manager.act(MACHINE, "CONNECT") == OK
    assert harness.effects_of(MulticastGroups)[-1] == MulticastGroups(groups)


@pytest.mark.requirement("MQMR-3.1.4.2-14", "MQMR-3.1.4.2-15")
def test_connecting_and_disconnecting_twice(harness: EngineHarness, manager: Manager) -> None:
    harness.send(b"m")
    events = harness.record_events()
    for action, log in (
        ("CONNECT", []),
        ("DISCONNECT", [("offline",)]),
        ("DISCONNECT", [("offline",)]),
        ("CONNECT", [("offline",), ("online",)]),
    ):
        assert manager.act(MACHINE, action) == OK
        assert events.log == log


@pytest.mark.requirement("MQMR-3.1.4.2-15")
def test_it_is_connected_after_a_restart(harness: EngineHarness, manager: Manager) -> None:
    assert manager.act(MACHINE, "DISCONNECT") == OK
    assert Manager(harness.restarted()).value(MACHINE, 4) == "CONNECTED"


@pytest.mark.requirement("MQMR-3.1.4.2-17", "MQMR-3.1.4.2-18", "MQMR-1.3-02")
def test_tidying_deletes_no_message(harness: EngineHarness, manager: Manager) -> None:
    queue = harness.queue(journaling=True)
    for one in (queue, queue.journal, harness.core.queue_manager.system_deadletter_queue):
        harness.enqueue(one, b"kept", delivery_guarantee=RECOVERABLE)
    harness.send(b"sent", recoverable=True)
    before = {number: bodies(one) for number, one in harness.core.queue_manager.queues.items()}
    assert sum(map(len, before.values())) == 4
    harness.forget_effects()
    assert manager.act(MACHINE, "TIDY") == OK
    assert harness.effects_of(TidyStore) == [TidyStore()]
    after = {number: bodies(one) for number, one in harness.core.queue_manager.queues.items()}
    assert after == before
    assert {number: bodies(one) for number, one in harness.restarted().core.queue_manager.queues.items()} == {
        **before
    }


@pytest.mark.requirement("MQMR-3.1.4.2-17")
def test_tidying_forgets_outgoing_queues_without_use(harness: EngineHarness, manager: Manager) -> None:
    for name in (PEER_QUEUE, r"DIRECT=TCP:10.0.0.2\private$\held", r"DIRECT=TCP:10.0.0.2\private$\open"):
        harness.transfer(name)
    assert manager.act(r"DIRECT=TCP:10.0.0.2\private$\held", "PAUSE") == OK
    for name in (PEER_QUEUE, r"DIRECT=TCP:10.0.0.2\private$\held"):
        harness.core.queues.close(harness.open_to_send(name))
    assert manager.act(MACHINE, "TIDY") == OK
    assert manager.status(PEER_QUEUE, 7) == NOT_FOUND
    assert manager.value(r"DIRECT=TCP:10.0.0.2\private$\held", STATE) == "ONHOLD"
    assert manager.value(r"DIRECT=TCP:10.0.0.2\private$\open", 7) == 0


def test_tidying_forgets_queues_by_http_without_use() -> None:
    harness = SrmpHarness(answers=lambda _: 200)
    manager = Manager(harness)
    harness.send(b"m")
    harness.take()
    assert manager.act(MACHINE, "TIDY") == OK
    assert manager.value(THERE, 7) == 0  # it is open
    harness.core.queues.close(harness.open_to_send(THERE))
    assert manager.act(MACHINE, "TIDY") == OK
    assert manager.status(THERE, 7) == NOT_FOUND
    harness.send(b"again")
    assert [request.body for request in harness.take()] == [b"again"]


# -- the names of actions, and their objects -------------------------------------------------------------


@pytest.mark.requirement("MQMR-3.1.4.2-03", "MQMR-3.1.4.2-04")
@pytest.mark.parametrize("text", ["PAUSE", "pause", "Pause", "pAuSe"])
def test_the_case_of_an_action_does_not_matter(harness: EngineHarness, manager: Manager, text: str) -> None:
    harness.outgoing()
    assert manager.act(PEER_QUEUE, text) == OK
    assert manager.value(PEER_QUEUE, STATE) == "ONHOLD"


@pytest.mark.requirement("MQMR-3.1.4.2-09", "MQMR-3.1.4.2-10", "MQMR-3.1.4.2-07", "MQMR-3.1.4.2-26")
@pytest.mark.parametrize(
    "text",
    ["RESEND", "PURGE", "", "PAUSE ", " PAUSE", "PAUSE\t", "PAUSED", "\uff30AUSE", "pau\u017fe", "x" * 9999],
)
@pytest.mark.parametrize("name", [MACHINE, PEER_QUEUE], ids=["machine", "queue"])
def test_another_action_fails_and_changes_nothing(
    harness: EngineHarness, manager: Manager, name: Any, text: str
) -> None:
    queue = harness.outgoing()
    events = harness.record_events()
    assert manager.act(name, text) == INVALID
    assert (queue.state, events.log) == (OutgoingQueueState.INACTIVE, [])
    assert harness.core.queue_manager.connection_active


@pytest.mark.requirement("MQMR-3.1.4.2-13", "MQMR-3.1.4.2-21", "MQMR-3.1.4.2-08", "MQMR-2.2.1.2-06")
@pytest.mark.parametrize(
    ("managed", "actions"),
    [
        (MACHINE, ("PAUSE", "RESUME", "EOD_RESEND")),
        (PEER_QUEUE, ("CONNECT", "DISCONNECT", "TIDY")),
        (ORDERS, ("PAUSE", "RESUME", "EOD_RESEND", "CONNECT", "DISCONNECT", "TIDY")),
        (ORDERS + ";JOURNAL", ("PAUSE", "RESUME", "EOD_RESEND")),
        (SESSION, ("PAUSE", "RESUME", "EOD_RESEND", "CONNECT", "DISCONNECT", "TIDY")),
        (NO_QUEUE, ("PAUSE", "RESUME", "EOD_RESEND", "CONNECT")),
    ],
    ids=["machine", "outgoing", "local", "journal", "session", "null"],
)
def test_an_action_of_the_wrong_kind_has_no_effect(
    harness: EngineHarness, manager: Manager, managed: Any, actions: tuple[str, ...]
) -> None:
    harness.queue()
    harness.outgoing()
    harness.run()
    harness.forget_effects()
    events = harness.record_events()
    for action in actions:
        assert manager.act(managed, action) == INVALID, action
    assert events.log == []
    assert harness.effects == []
    assert harness.core.queue_manager.connection_active


@pytest.mark.requirement("MQMR-3.1.4.2-27")
@pytest.mark.parametrize("action", ["PAUSE", "RESUME", "EOD_RESEND"])
@pytest.mark.parametrize("name", [PEER_QUEUE, ORDERS, THERE, GROUP, LIST])
def test_an_action_on_a_missing_queue_makes_none(
    harness: EngineHarness, manager: Manager, name: str, action: str
) -> None:
    before = set(harness.core.queue_manager.queues)
    assert manager.act(name, action) == NOT_FOUND
    assert set(harness.core.queue_manager.queues) == before
