"""The server of [MS-MQMR]: the values of properties, 3.1.4.1."""

from __future__ import annotations

from typing import Any

import pytest

from msmqwire.constants import ManagementMachineProperty as M
from msmqwire.constants import ManagementQueueProperty as Q
from msmqwire.constants import VarEnum
from msmqwire.management.variants import variant
from msmqwire.names import DirectName, parse_format_name
from msmqwire.qm.model.elements import (
    Queue,
)
from msmqwire.qm.model.enumerations import (
    QueueAccessType,
    QueueShareMode,
    QueueType,
)
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.qm.protocols.management.queue_values import queue_values
from tests.support.engine_harness import (
    OWN_ID,
    PEER_ID,
    PEER_QUEUE,
    START_UTC,
    EngineHarness,
)
from tests.support.peers.administrator import queue_named
from tests.support.rpc.managing import MACHINE, Manager
from tests.support.srmp.srmp_harness import THERE

ORDERS = r"DIRECT=OS:here\private$\orders"
JOURNAL = ORDERS + ";JOURNAL"
GROUP = "MULTICAST=234.1.1.1:8001"
ALL_OF_MACHINE, ALL_OF_QUEUE = range(1, 7), range(1, 28)
OUTGOING_ONLY = [*range(12, 24), 25]
NEVER = 0
FIRST = TxSequenceId(START_UTC, 1)


@pytest.fixture
def harness() -> EngineHarness:
    """A queue manager that is named ``here``."""
    return EngineHarness()


@pytest.fixture
def manager(harness: EngineHarness) -> Manager:
    """Its administrator."""
    return Manager(harness)


def public_queue(harness: EngineHarness) -> Queue:
    """A public queue, whatever the directory is."""
    template = harness.queue_template("shop", public=True)
    _, queue = harness.core.queues.create(template, skip_directory=True)
    assert queue is not None
    return queue


def types(manager: Manager, managed: Any, *identifiers: int) -> list[int]:
    """The types of values."""
    return [value.vt for value in manager.variants(managed, *identifiers)]


# -- machines --------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQMR-3.1.4.1-12", "MQMR-3.1.4.1-20", "MQMR-3.1.4.1-08", "MQMR-2.2.3.1-01", "MQMR-2.2.3.1-02",
    "MQMR-2.2.3.1-03", "MQMR-2.2.3.1-04", "MQMR-2.2.3.1-05", "MQMR-2.2.3.1-06", "MQMR-3.1.4.1-19",
)  # fmt: skip
def test_a_machine_has_six_properties(harness: EngineHarness, manager: Manager) -> None:
    queue = harness.queue()
    harness.enqueue(queue, b"m")
    assert manager.values(MACHINE, *ALL_OF_MACHINE) == [
        (ORDERS,),
        (r"here\private$\orders",),
        None,
        "CONNECTED",
        "msmqwire",
        queue.total_bytes,
    ]
    assert types(manager, MACHINE, *ALL_OF_MACHINE) == [0x101F, 0x101F, 0x0001, 0x001F, 0x001F, 0x0014]


@pytest.mark.requirement("MQMR-3.1.4.1-21")
@pytest.mark.requirement("MQMQ-2.3.11.1-01")
def test_active_are_queues_with_messages_and_open_ones(harness: EngineHarness, manager: Manager) -> None:
    harness.queue("idle")
    full, opened, journaled = harness.queue("full"), harness.queue("opened"), harness.queue("journaled")
    harness.enqueue(full)
    descriptor = harness.open(opened)
    harness.core.messages.journal(harness.enqueue(full).message, journaled.journal)
    dead = harness.core.queue_manager.system_deadletter_queue
    harness.enqueue(dead)
    harness.send(to=PEER_QUEUE)
    harness.core.queues.close(harness.open_to_send(PEER_QUEUE))
    names = manager.value(MACHINE, M.PROPID_MGMT_MSMQ_ACTIVEQUEUES)
    assert sorted(names) == sorted(
        [
            r"DIRECT=OS:here\private$\full",
            r"DIRECT=OS:here\private$\opened",
            r"DIRECT=OS:here\private$\journaled;JOURNAL",
            r"DIRECT=OS:here\system$;DEADLETTER",
            parse_format_name(PEER_QUEUE).canonical,
        ]
    )
    for name in names:  # each of them can be asked about
        assert manager.value(name, Q.PROPID_MGMT_QUEUE_FORMATNAME) == name
    harness.core.queues.close(descriptor)
    assert r"DIRECT=OS:here\private$\opened" not in manager.value(MACHINE, 1)


@pytest.mark.requirement("MQMR-3.1.4.1-22")
def test_private_queues_are_there_without_their_parts(harness: EngineHarness, manager: Manager) -> None:
    harness.queue("b")
    harness.queue("a")
    public_queue(harness)
    harness.core.queues.create_subqueue(DirectName("OS", "here", "a", private=True, subqueue="later"))
    harness.send(to=PEER_QUEUE)
    assert manager.value(MACHINE, M.PROPID_MGMT_MSMQ_PRIVATEQ) == (r"here\private$\b", r"here\private$\a")


@pytest.mark.requirement("MQMR-3.1.4.1-23", "MQMR-3.1.4.1-24", "MQMQ-2.3.11.3-01")
@pytest.mark.parametrize(
    ("integrated", "servers", "shown"),
    [
        (True, ["dc1", "dc2"], "\\\\dc1"),
        (True, ["\\\\dc1"], "\\\\dc1"),
        (True, [], None),
        (False, ["dc1"], None),
    ],
)
def test_the_first_directory_server(
    harness: EngineHarness, manager: Manager, integrated: bool, servers: list[str], shown: str | None
) -> None:
    core = harness.core.queue_manager
    core.directory_integrated, core.directory_server_list = integrated, servers
    assert manager.value(MACHINE, M.PROPID_MGMT_MSMQ_DSSERVER) == shown


@pytest.mark.requirement("MQMR-3.1.4.1-25", "MQMR-3.1.4.1-26", "MQMR-3.1.1.1-01")
def test_whether_it_is_connected(harness: EngineHarness, manager: Manager) -> None:
    for active, shown in ((False, "DISCONNECTED"), (True, "CONNECTED")):
        harness.core.queue_manager.connection_active = active
        assert manager.values(MACHINE, 4, 5) == [shown, "msmqwire"]


@pytest.mark.requirement("MQMR-3.1.4.1-27")
def test_bytes_of_all_queues(harness: EngineHarness, manager: Manager) -> None:
    queues = [harness.queue("a"), harness.queue("b")]
    for queue in queues:
        harness.enqueue(queue, b"m" * 1000)
    harness.send(b"n" * 500, to=PEER_QUEUE)
    sizes = [queue.total_bytes for queue in harness.core.queue_manager.queues.values()]
    assert sum(map(bool, sizes)) == 3
    assert manager.value(MACHINE, 6) == sum(sizes)
    harness.core.queue_manager.total_bytes = 5 << 32  # more than 32 bits
    assert manager.value(MACHINE, 6) == 5 << 32


# -- local queues ----------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQMR-3.1.4.1-13", "MQMR-3.1.4.1-28", "MQMR-3.1.4.1-32", "MQMR-3.1.4.1-33", "MQMR-3.1.4.1-35",
    "MQMR-3.1.4.1-43", "MQMR-3.1.4.1-47", "MQMR-2.2.3.2-01", "MQMR-2.2.3.2-02", "MQMR-2.2.3.2-03",
    "MQMR-2.2.3.2-04", "MQMR-2.2.3.2-05", "MQMR-2.2.3.2-06", "MQMR-2.2.3.2-07", "MQMR-2.2.3.2-08",
    "MQMR-2.2.3.2-09", "MQMR-2.2.3.2-10", "MQMR-2.2.3.2-11", "MQMR-2.2.3.2-24", "MQMR-2.2.3.2-27",
    "MQMR-2.2.3.2-28",
)  # fmt: skip
def test_a_local_queue_has_no_outgoing_properties(harness: EngineHarness, manager: Manager) -> None:
    queue = harness.queue()
    harness.enqueue(queue, b"m")
    values = dict(zip(ALL_OF_QUEUE, manager.values(ORDERS, *ALL_OF_QUEUE), strict=True))
    assert [values[identifier] for identifier in range(1, 12)] == [
        r"here\private$\orders", ORDERS, "PRIVATE", "LOCAL", "NO", "NO", 1, queue.total_bytes, 0, 0,
        "LOCAL CONNECTION",
    ]  # fmt: skip
    assert [values[identifier] for identifier in OUTGOING_ONLY] == [None] * len(OUTGOING_ONLY)
    assert (values[24], values[26], values[27]) == (((),) * 6, 0, ())
    assert set(types(manager, ORDERS, *OUTGOING_ONLY)) == {VarEnum.VT_NULL}
    assert types(manager, ORDERS, *range(1, 12), 24, 26, 27) == (
        [0x1F] * 6 + [0x13] * 4 + [0x1F, 0x100C, 0x13, 0x101F]
    )


@pytest.mark.requirement("MQMR-2.2.1.5-02", "MQMR-3.1.4.1-34", "MQMR-3.1.4.1-33", "MQMR-2.2.1.5-01")
def test_journals_and_dead_letters_by_their_suffixes(harness: EngineHarness, manager: Manager) -> None:
    queue = harness.queue()
    core = harness.core.queue_manager
    kept = [
        queue,
        queue.journal,
        core.system_journal_queue,
        core.system_deadletter_queue,
        core.system_transactional_deadletter_queue,
    ]
    for number, one in enumerate(kept, 1):
        for _ in range(number):
            harness.enqueue(one)
    private = rf"PRIVATE={OWN_ID}\{queue.private_queue_number:08x}"
    asked = {
        ORDERS: 1,
        JOURNAL: 2,
        private: 1,
        f"{private};JOURNAL": 2,
        f"PUBLIC={queue.identifier}": 1,
        f"PUBLIC={queue.identifier};JOURNAL": 2,
        f"MACHINE={OWN_ID};JOURNAL": 3,
        f"MACHINE={OWN_ID};DEADLETTER": 4,
        f"MACHINE={OWN_ID};DEADXACT": 5,
        r"DIRECT=OS:here\SYSTEM$;JOURNAL": 3,
        r"DIRECT=OS:here\SYSTEM$;DEADLETTER": 4,
        r"DIRECT=TCP:10.0.0.1\SYSTEM$;DEADXACT": 5,
    }
    assert {name: manager.value(name, Q.PROPID_MGMT_QUEUE_MESSAGE_COUNT) for name in asked} == asked
    shown = {2: JOURNAL, 3: r"DIRECT=OS:here\system$;JOURNAL", 5: r"DIRECT=OS:here\system$;DEADXACT"}
    for name, count in asked.items():
        if count in shown:
            assert manager.values(name, 2, 3, 4) == [shown[count], "MACHINE", "LOCAL"]
    assert manager.value(f"MACHINE={OWN_ID};DEADXACT", Q.PROPID_MGMT_QUEUE_XACT) == "YES"


@pytest.mark.requirement("MQMR-3.1.4.1-33")
def test_the_format_name_has_the_present_name_of_the_computer() -> None:
    harness = EngineHarness(domain="lab.example")
    harness.queue()
    name = Manager(harness).value(ORDERS, Q.PROPID_MGMT_QUEUE_FORMATNAME)
    assert name == r"DIRECT=OS:here.lab.example\private$\orders"
    restarted = Manager(harness.restarted(domain="other.example"))
    name = restarted.value(ORDERS, Q.PROPID_MGMT_QUEUE_FORMATNAME)
    assert name == r"DIRECT=OS:here.other.example\private$\orders"
    assert restarted.value(name, 2) == name


@pytest.mark.requirement("MQMR-3.1.4.1-34")
@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (QueueType.PUBLIC, "PUBLIC"),
        (QueueType.PRIVATE, "PRIVATE"),
        (QueueType.SYSTEM, "MACHINE"),
        (QueueType.CONNECTOR, "CONNECTOR"),
    ],
)
def test_types_of_local_queues(harness: EngineHarness, manager: Manager, kind: QueueType, shown: str) -> None:
    harness.queue().queue_type = kind
    assert manager.value(ORDERS, Q.PROPID_MGMT_QUEUE_TYPE) == shown


@pytest.mark.requirement("MQMR-3.1.4.1-32", "MQMR-3.1.4.1-34", "MQMR-2.2.1.3-01")
@pytest.mark.parametrize(
    ("name", "path", "shown"),
    [
        (PEER_QUEUE, PEER_QUEUE.removeprefix("DIRECT=TCP:"), "PRIVATE"),
        (r"DIRECT=TCP:10.0.0.2\shop", r"10.0.0.2\shop", "PUBLIC"),
        (r"DIRECT=OS:there\PRIVATE$\shop;late", r"there\private$\shop;late", "PRIVATE"),
        (rf"PRIVATE={PEER_ID}\0000000f", None, "PRIVATE"),
        (GROUP, None, "MULTICAST"),
        (THERE, None, "PRIVATE"),
    ],
)
def test_types_of_outgoing_queues(
    harness: EngineHarness, manager: Manager, name: str, path: str | None, shown: str
) -> None:
    """The path name is that of the destination, where the format name tells it."""
    harness.outgoing(name)
    assert manager.values(name, 1, 2, 3, 4) == [
        path,
        str(harness.outgoing(name).destination),
        shown,
        "REMOTE",
    ]


@pytest.mark.requirement("MQMR-3.1.4.1-36")
def test_transactional_is_yes_or_no(harness: EngineHarness, manager: Manager) -> None:
    harness.queue()
    harness.queue("ledger", transactional=True)
    assert manager.value(ORDERS, 5) == "NO"
    assert manager.value(r"DIRECT=OS:here\private$\ledger", 5) == "YES"


@pytest.mark.requirement("MQMR-3.1.4.1-37", "MQMR-3.1.4.1-38")
@pytest.mark.parametrize(
    ("offline", "foreign", "private", "public"),
    [
        (True, True, "NO", "UNKNOWN"),
        (True, False, "NO", "UNKNOWN"),
        (False, True, "YES", "YES"),
        (False, False, "NO", "NO"),
    ],
)
def test_foreign_is_that_of_the_queue_manager(
    harness: EngineHarness, manager: Manager, offline: bool, foreign: bool, private: str, public: str
) -> None:
    harness.queue()
    public_queue(harness)
    core = harness.core.queue_manager
    core.directory_offline, core.foreign_system = offline, foreign
    assert manager.value(ORDERS, 6) == private
    assert manager.value(r"DIRECT=OS:here\shop", 6) == public
    harness.outgoing()
    assert manager.value(PEER_QUEUE, 6) == private


@pytest.mark.requirement("MQMR-3.1.4.1-39", "MQMR-3.1.4.1-40")
def test_messages_that_a_reader_holds_count_and_deleted_do_not(
    harness: EngineHarness, manager: Manager
) -> None:
    queue = harness.queue()
    first, *_ = [harness.enqueue(queue, body) for body in (b"1", b"22", b"333")]
    descriptor = harness.open(queue)
    cursor = harness.core.queues.open_cursor(descriptor)
    assert cursor is not None
    harness.core.messages.peek(descriptor, cursor=cursor, timeout=0)  # it pins the first message
    harness.enqueue(queue, b"4444", harness.begin())  # of a transaction that is not committed
    harness.core.messages.dequeue_begin(descriptor, timeout=0)
    assert manager.value(ORDERS, 7) == 4
    assert manager.value(ORDERS, 8) == queue.total_bytes
    before = queue.total_bytes
    harness.core.messages.discard(first)  # it stays linked for the cursor
    assert manager.values(ORDERS, 7, 8) == [3, queue.total_bytes]
    assert queue.total_bytes < before


@pytest.mark.requirement("MQMR-3.1.4.1-41", "MQMR-3.1.4.1-42")
def test_the_journal_of_a_queue(harness: EngineHarness, manager: Manager) -> None:
    queue = harness.queue(journaling=True)
    harness.enqueue(queue, b"m" * 100)
    assert harness.receive(queue) == b"m" * 100
    journal = queue.journal
    assert journal is not None
    assert manager.values(ORDERS, 7, 9, 10) == [0, 1, journal.total_bytes]
    assert journal.total_bytes > 100
    queue.journaling = False  # by the letter the bytes are 0 then
    assert manager.values(ORDERS, 9, 10) == [1, 0]
    assert manager.values(JOURNAL, 7, 8, 9, 10) == [1, journal.total_bytes, 0, 0]  # it has no journal


@pytest.mark.requirement("MQMR-3.1.4.1-40", "MQMR-3.1.4.1-42")
def test_counts_beyond_32_bits_are_the_greatest(harness: EngineHarness, manager: Manager) -> None:
    queue = harness.queue(journaling=True)
    assert queue.journal is not None
    for size, shown in ((0xFFFFFFFF, 0xFFFFFFFF), (0x1_0000_0000, 0xFFFFFFFF), (0x1_0000_0007, 0xFFFFFFFF)):
        queue.total_bytes = queue.journal.total_bytes = size
        assert manager.values(ORDERS, 8, 10) == [shown, shown]


@pytest.mark.requirement("MQMR-3.1.4.1-62", "MQMR-3.1.4.1-63", "MQMR-2.2.1.5-01")
def test_subqueues(harness: EngineHarness, manager: Manager) -> None:
    queue = harness.queue()
    for name in ("Later", "poison"):
        harness.core.queues.create_subqueue(DirectName("OS", "here", "orders", private=True, subqueue=name))
    assert manager.values(ORDERS, 26, 27) == [2, ("Later", "poison")]
    assert types(manager, ORDERS, 26, 27) == [0x13, 0x101F]
    harness.enqueue(queue.subqueues["later"])
    assert manager.values(ORDERS + ";later", 2, 7) == [ORDERS + ";Later", 1]


# -- asking leaves nothing behind ------------------------------------------------------------------------


@pytest.mark.requirement("MQMR-3.1.4.1-29", "MQMR-3.1.4.1-31", "MQMR-1.3-01")
def test_asking_leaves_no_trace(harness: EngineHarness, manager: Manager) -> None:
    queue = harness.queue()
    reader = harness.open(queue, QueueAccessType.RECEIVE_ACCESS, QueueShareMode.DENY_RECEIVE)
    assert manager.value(ORDERS, 7) == 0  # Open Queue would be a violation of sharing
    harness.core.queues.close(reader)
    numbers = set(harness.core.queue_manager.queues)
    harness.run()
    harness.forget_effects()
    for _ in range(2):
        assert manager.value(ORDERS, 7) == 0
        assert manager.status(PEER_QUEUE, 7) == 0xC00E0003
        assert manager.status(ORDERS + ";none", 7) == 0xC00E0003
        assert manager.value(MACHINE, 1) == ()
    assert not queue.active
    assert not queue.descriptors
    assert set(harness.core.queue_manager.queues) == numbers
    assert not harness.core.context.changes
    assert harness.run() == []


@pytest.mark.requirement("MQMR-3.1.4.1-64", "MQMR-3.1.4.1-02")
def test_repeated_ids_are_all_answered(harness: EngineHarness, manager: Manager) -> None:
    harness.enqueue(harness.queue())
    assert manager.values(ORDERS, 7, 1, 7, 7) == [1, r"here\private$\orders", 1, 1]
    assert manager.values(MACHINE, *[4] * 128) == ["CONNECTED"] * 128


@pytest.mark.requirement("MQMR-3.1.4.1-07")
def test_values_that_are_given_are_overwritten(harness: EngineHarness, manager: Manager) -> None:
    harness.enqueue(harness.queue())
    nested = variant(0x100C, (variant(0x100C, (variant(VarEnum.VT_LPWSTR, "x"),)),))
    given = (nested, variant(VarEnum.VT_UI4, 99), variant(VarEnum.VT_EMPTY))
    results = manager.info(queue_named(ORDERS), 7, 1, 12, given=given)
    assert results.status == 0
    assert [value.vt for value in results.apVar] == [0x13, 0x1F, 0x01]


def test_other_parts_of_the_program_get_the_same_values(harness: EngineHarness, manager: Manager) -> None:
    queue = harness.queue()
    assert [value.vt for value in queue_values(harness.core.context, queue, [1, 7, 12])] == [0x1F, 0x13, 0x01]
    with pytest.raises(KeyError):
        queue_values(harness.core.context, queue, [28])
