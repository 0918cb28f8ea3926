"""The server of [MS-MQMR]: calls that fail, and who may call."""

from __future__ import annotations

from typing import Any

import pytest

from msmqwire.constants import HResult
from msmqwire.management.constants import ObjectType
from msmqwire.management.objects import MGMT_OBJECT
from msmqwire.management.variants import NULL, variant
from msmqwire.qm.model.enumerations import ManageAccess
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.qm.protocols.management.answer_size import ANSWER_MAX
from msmqwire.qm.protocols.srmp.effects import HttpResponse
from msmqwire.rpc.queue_format import MULTICAST_ID, QUEUE_FORMAT
from tests.support.engine_harness import (
    PEER_QUEUE,
    START_UTC,
    EngineHarness,
)
from tests.support.peers.administrator import queue_named
from tests.support.rpc.managing import CALLER, MACHINE, STRANGER, USER, Manager
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


def queue_format(kind: int, suffix: int, arm: Any) -> Any:
    """A MGMT_OBJECT of a queue with any suffix."""
    form = QUEUE_FORMAT.value(m_qft=kind, m_SuffixAndFlags=suffix, m_reserved=0x5A5A, arm=arm)
    return MGMT_OBJECT.value(type=int(ObjectType.MGMT_QUEUE), arm=form)


@pytest.fixture
def harness() -> EngineHarness:
    """A queue manager that is named ``here``."""
    return EngineHarness()


@pytest.fixture
def manager(harness: EngineHarness) -> Manager:
    """Its administrator."""
    return Manager(harness)


# -- questions that fail ---------------------------------------------------------------------------------


@pytest.mark.requirement("MQMR-3.1.4.1-14", "MQMR-3.1.4.1-15", "MQMR-2.2.1.2-06", "MQMR-2.2.1.2-07")
@pytest.mark.parametrize(
    ("managed", "status"),
    [
        (SESSION, INVALID),
        (NO_QUEUE, INVALID),
        (PEER_QUEUE, NOT_FOUND),
        (r"DIRECT=OS:here\private$\none", NOT_FOUND),
        (MGMT_OBJECT.value(type=1, arm=0xFFFFFFFF), OK),
        (MGMT_OBJECT.value(type=3, arm=0xFFFFFFFF), INVALID),
    ],
    ids=["session", "null", "no-outgoing", "no-local", "reserved", "reserved-2"],
)
def test_objects_that_can_not_be_asked(
    harness: EngineHarness, manager: Manager, managed: Any, status: int
) -> None:
    assert manager.status(managed, 5) == status


@pytest.mark.requirement("MQMR-2.2.1.5-03", "MQMR-2.2.1.5-04", "MQMR-2.2.1.5-01", "MQMR-3.1.4.1-30")
@pytest.mark.parametrize(
    ("kind", "suffix", "status"),
    [
        ("machine", 0, INVALID),
        ("public", 0x83, INVALID),
        ("public", 0x82, INVALID),
        ("direct", 0x05, INVALID),
        ("direct", 0x06, INVALID),
        ("direct", 0x01, INVALID),
        ("direct", 0x00, OK),
        ("direct", 0x81, OK),
        ("null", 0x00, INVALID),
        ("broken", 0x00, INVALID),
        ("unknown", 0, INVALID),
        ("connector", 0x04, NOT_FOUND),
        ("multicast", 0, NOT_FOUND),
    ],
)
def test_a_suffix_that_does_not_fit(
    harness: EngineHarness, manager: Manager, kind: str, suffix: int, status: int
) -> None:
    queue = harness.queue()
    kinds: dict[str, tuple[int, Any]] = {
        "machine": (4, harness.core.queue_manager.identifier),
        "public": (1, queue.identifier),
        "direct": (3, r"OS:here\private$\orders"),
        "null": (3, None),
        "broken": (3, "OS:here"),
        "unknown": (0, None),
        "connector": (5, queue.identifier),
        "multicast": (7, MULTICAST_ID.value(m_address=0x010101EA, m_port=8001)),
    }
    number, arm = kinds[kind]
    assert manager.status(queue_format(number, suffix, arm), 2) == status


@pytest.mark.requirement("MQMR-3.1.4.1-16", "MQMR-3.1.4.1-17", "MQMR-3.1.4.1-09")
@pytest.mark.parametrize("identifier", [0, 7, 28, 100, 0x7FFFFFFF, 0xFFFFFFFF])
def test_one_unknown_id_fails_all(harness: EngineHarness, manager: Manager, identifier: int) -> None:
    harness.queue()
    managed = MACHINE if identifier != 28 else queue_named(ORDERS)
    given = (NULL, variant(0x13, 7), variant(0x100C, (variant(0x1F, "as it came"),)))
    results = manager.info(managed, 4, identifier, 1, given=given)
    assert results.status == UNKNOWN_ID
    assert list(results.apVar) == list(given)
    assert manager.status(MACHINE, 4, 1) == OK


@pytest.mark.requirement("MQMR-3.1.4.1-09", "MQMR-3.1.4.1-02", "MQMR-3.1.4-05")
@pytest.mark.parametrize(
    "managed", [SESSION, NO_QUEUE, queue_named(PEER_QUEUE)], ids=["session", "null", "none"]
)
def test_a_failed_call_has_the_values_as_they_came(manager: Manager, managed: Any) -> None:
    given = (NULL, variant(0x1015, (1, 2)), NULL)
    results = manager.info(managed, 1, 2, 3, given=given)
    assert results.status != OK
    assert list(results.apVar) == list(given)


def test_an_answer_that_is_too_long_fails(harness: EngineHarness, manager: Manager) -> None:
    """The same id 128 times over would make it so, whatever one costs."""
    queue = harness.queue()
    queue.subqueues = {str(number): queue for number in range(30_000)}
    one = manager.value(ORDERS, 27)
    assert len(one) == 30_000
    assert ANSWER_MAX < 128 * 30_000 * 10
    assert manager.status(ORDERS, *[27] * 128) == HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    assert manager.status(ORDERS, *[7] * 128) == OK


# -- who may ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMR-3-02", "MQMR-5.1-01", "MQMR-5.1-02")
@pytest.mark.parametrize(
    ("access", "admitted"),
    [
        (ManageAccess.NONE, []),
        (ManageAccess.CALLERS, [USER, CALLER]),
        (ManageAccess.USERS, [USER]),
    ],
)
def test_who_may_ask_and_act(harness: EngineHarness, access: ManageAccess, admitted: list[Any]) -> None:
    harness.queue()
    harness.outgoing()
    for standing in (USER, CALLER, STRANGER):
        manager = Manager(harness, access, standing)
        expected = OK if standing in admitted else DENIED
        assert manager.status(MACHINE, 1) == manager.status(ORDERS, 7) == expected
        assert manager.act(PEER_QUEUE, "PAUSE") == manager.act(MACHINE, "TIDY") == expected


@pytest.mark.requirement("MQMR-3-04", "MQMR-3.1.4.2-28", "MQMR-3.1.4.1-09", "MQMR-5.1-01")
def test_who_may_not_sees_no_difference(harness: EngineHarness) -> None:
    """Neither queues that are there, nor kinds, properties and actions that are not."""
    harness.queue()
    harness.outgoing()
    manager = Manager(harness, ManageAccess.NONE, USER)
    wrong_suffix = queue_format(4, 0, harness.core.queue_manager.identifier)
    events = harness.record_events()
    harness.forget_effects()
    managed = [MACHINE, queue_named(ORDERS), queue_named(PEER_QUEUE), queue_named(THERE), SESSION, NO_QUEUE]
    given = (variant(0x13, 5), NULL)
    for one in (*managed, wrong_suffix):
        for identifiers in ((1, 7), (99, 1)):
            results = manager.info(one, *identifiers, given=given)
            assert (results.status, list(results.apVar)) == (DENIED, list(given))
        for action in ("PAUSE", "RESUME", "DISCONNECT", "TIDY", "EOD_RESEND", "nonsense", ""):
            assert manager.act(one, action) == DENIED
    assert events.log == []
    assert harness.effects == []


def test_a_queue_manager_lets_nobody_in_by_default(harness: EngineHarness) -> None:
    assert harness.core.management.access is ManageAccess.NONE


def test_http_requests_are_turned_away_by_their_number() -> None:
    """Each gets its own answer."""
    harness = SrmpHarness()
    harness.core.queues.take_offline()
    assert SrmpPeer(harness).send(b"m") == 503
    assert [effect.status for effect in harness.effects_of(HttpResponse)] == [503]
