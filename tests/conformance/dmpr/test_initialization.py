"""Starting, stopping and going offline: [MS-MQDMPR] 3.1.3, 3.1.4.1, 3.1.4.2, 3.1.4.12 to 15."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from msmqwire.errors import StoreDamaged
from msmqwire.qm.core import Core
from msmqwire.qm.directory.attributes import ATTRIBUTES
from msmqwire.qm.model.directory_objects import Enterprise, Site
from msmqwire.qm.model.effects import Connect, Disconnect, Resolve
from msmqwire.qm.model.elements import QueueManager
from msmqwire.qm.model.enumerations import (
    DirectoryOperationResult,
    OutgoingQueueState,
    QueueManagerState,
    QueueType,
)
from msmqwire.qm.model.tables import Table
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.store import LAYOUT
from msmqwire.service.store.changes import Key
from msmqwire.service.store.memory import MemoryStore
from tests.support.engine_harness import OWN_ID, SEND, START_UTC, EngineHarness
from tests.support.qm.directory_recorder import DirectoryRecorder
from tests.support.qm.queue_contents import bodies

ONE, TWO, UNKNOWN = UUID(int=0x51), UUID(int=0x52), UUID(int=0x53)
ENTERPRISE = UUID(int=0x60)
SITES, GATES = (Timer.DIRECTORY_SITES_UPDATE, None), (Timer.DIRECTORY_SITE_GATES_UPDATE, None)
LOCKED, WAITING = OutgoingQueueState.LOCKED, OutgoingQueueState.WAITING
HTTP = "DIRECT=HTTP://there/msmq/q"
BY_NAME = "DIRECT=OS:there\\private$\\orders"


def started(recorder: DirectoryRecorder | None = None, **made_with: Any) -> EngineHarness:
    if recorder is not None:
        recorder.log.clear()
    return EngineHarness(directory=recorder, **made_with)


# -- names ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.1.1-07")
@pytest.mark.requirement("DMPR-3.1.3-06")
def test_the_qualified_name_is_the_computer_in_its_domain() -> None:
    harness = started(domain="example.com")
    manager = harness.core.queue_manager
    assert (manager.computer_name, manager.qualified_computer_name) == ("here", "here.example.com")
    queue = harness.queue()
    assert queue.qualified_pathname == "here.example.com\\private$\\orders"
    for host in ("here.example.com", "here.example.org"):
        harness.send(host.encode(), to=f"DIRECT=OS:{host}\\private$\\orders")
    assert bodies(queue) == [b"here.example.com"], "the other host is not this computer"
    later = harness.restarted(stop=True, domain="")
    assert later.core.queue_manager.qualified_computer_name == "here.example.com"
    moved = later.restarted(stop=True, domain="example.org")
    assert moved.core.queue_manager.qualified_computer_name == "here.example.org"
    assert started(domain="").core.queue_manager.qualified_computer_name == "here"


# -- the directory --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("identifiers", "servers"),
    [
        pytest.param(
            "out_routing_server_identifier_list", "out_routing_servers",
            marks=pytest.mark.requirement("DMPR-3.1.1.1-45"),
        ),
        pytest.param(
            "in_routing_server_identifier_list", "in_routing_servers",
            marks=pytest.mark.requirement("DMPR-3.1.1.1-46"),
        ),
    ],
)  # fmt: skip
def test_routing_servers_are_those_of_the_list(
    recorder: DirectoryRecorder, identifiers: str, servers: str
) -> None:
    here = QueueManager(OWN_ID, computer_name="here", **{identifiers: [TWO, UNKNOWN, ONE]})
    recorder.publish(here, *(QueueManager(one, computer_name=f"m{one.int}") for one in (ONE, TWO)))
    harness = started(recorder)
    manager = harness.core.queue_manager
    both = {"out_routing_servers", "in_routing_servers"}
    found = getattr(manager, servers)
    assert [(server.identifier, server.computer_name) for server in found] == [(TWO, "m82"), (ONE, "m81")]
    assert getattr(manager, *(both - {servers})) == []
    setattr(here, identifiers, [ONE])
    assert recorder.directory.write_directory(here, None) is DirectoryOperationResult.SUCCESS
    manager.directory_offline = True
    harness.core.directory.check_directory_online()
    assert [server.identifier for server in getattr(manager, servers)] == [ONE]
    assert "Servers" not in "".join(ATTRIBUTES["QueueManager"]), "they are not published"
    harness.restart()
    assert [server.identifier for server in getattr(harness.core.queue_manager, servers)] == [ONE]


@pytest.mark.requirement("DMPR-3.1.3-15", "DMPR-3.1.1-03")
def test_the_queue_manager_takes_over_what_the_directory_has(recorder: DirectoryRecorder) -> None:
    recorder.publish(
        QueueManager(OWN_ID, computer_name="here", routing_server=True, queue_manager_quota=5_000_000),
    )
    harness = started(recorder)
    first = recorder.log[0]
    assert first == ("read_directory", "QueueManager", [("Identifier", "EQUALS", OWN_ID)], None)
    for _ in range(2):
        manager = harness.core.queue_manager
        assert (manager.routing_server, manager.queue_manager_quota) == (True, 5_000_000)
        assert manager.identifier == OWN_ID
        harness.restart()  # on every start


@pytest.mark.requirement("DMPR-3.1.3-16", "DMPR-3.1.1.1-42", "DMPR-3.1.1.1-14")
def test_the_sites_of_the_queue_manager_are_looked_up(recorder: DirectoryRecorder) -> None:
    recorder.publish(
        Site(ONE, "one"),
        Site(TWO, "two"),
        Site(UUID(int=0x54), "another"),
        QueueManager(OWN_ID, computer_name="here", site_identifier_list=[ONE, UNKNOWN, TWO]),
    )
    manager = started(recorder).core.queue_manager
    assert [(site.identifier, site.name) for site in manager.site_collection] == [(ONE, "one"), (TWO, "two")]
    filters = [entry[2] for entry in recorder.log if entry[:2] == ("read_directory", "Site")]
    assert filters[:3] == [[("Identifier", "EQUALS", identifier)] for identifier in (ONE, UNKNOWN, TWO)]


@pytest.mark.requirement("DMPR-3.1.3-17")
def test_a_queue_manager_that_the_directory_does_not_know_starts(recorder: DirectoryRecorder) -> None:
    recorder.publish(Enterprise(ENTERPRISE, "all", non_ldap_capable_queue_manager_notification=True))
    harness = started(recorder)
    manager = harness.core.queue_manager
    assert manager.state is QueueManagerState.READY
    assert manager.site_collection == []
    assert manager.enterprise is not None
    assert harness.core.context.timers.active(*SITES)


@pytest.mark.requirement("DMPR-3.1.3-18", "DMPR-3.1.1.1-47")
@pytest.mark.parametrize("notified", [True, False])
def test_the_enterprise_is_read(recorder: DirectoryRecorder, notified: bool) -> None:
    recorder.publish(Enterprise(ENTERPRISE, "all", non_ldap_capable_queue_manager_notification=notified))
    manager = started(recorder).core.queue_manager
    assert ("read_directory", "Enterprise", None, ["NonLDAPCapableQueueManagerNotification"]) in recorder.log
    assert manager.enterprise is not None
    assert manager.enterprise.identifier == ENTERPRISE
    assert manager.enterprise.non_ldap_capable_queue_manager_notification is notified


@pytest.mark.requirement("DMPR-3.1.3-19", "DMPR-3.1.1.6-03")
def test_an_enterprise_that_does_not_say_whom_to_notify(recorder: DirectoryRecorder) -> None:
    recorder.directory.create_directory_object(Enterprise(ENTERPRISE, "all"), ["Name"])
    manager = started(recorder).core.queue_manager
    assert manager.enterprise is not None
    assert manager.enterprise.non_ldap_capable_queue_manager_notification is True


@pytest.mark.requirement("DMPR-3.1.3-18")
def test_a_directory_without_an_enterprise(recorder: DirectoryRecorder) -> None:
    assert started(recorder).core.queue_manager.enterprise is None


@pytest.mark.requirement("DMPR-3.1.3-20")
def test_the_timers_of_the_directory_run(recorder: DirectoryRecorder) -> None:
    timers = started(recorder).core.context.timers
    assert timers.active(*SITES)
    assert timers.active(*GATES)
    timers = started().core.context.timers
    assert not timers.active(*SITES)
    assert not timers.active(*GATES)


@pytest.mark.requirement("DMPR-3.1.1.1-33/a")
def test_startup_succeeds_without_a_directory(
    recorder: DirectoryRecorder,
) -> None:
    recorder.status = DirectoryOperationResult.DIRECTORY_NOT_CONNECTED
    manager = started(recorder).core.queue_manager
    assert manager.state is QueueManagerState.READY
    assert manager.directory_offline is True


@pytest.mark.requirement("DMPR-3.1.3-07")
def test_the_first_start_has_the_duration_of_the_text(recorder: DirectoryRecorder) -> None:
    assert started(recorder).core.queue_manager.initialization_retry_timer_duration == 120


# -- queues ---------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "DMPR-3.1.3-21",
    "DMPR-3.1.3-22",
    "DMPR-3.1.1.1-38",
    "DMPR-3.1.1.1-39",
    "DMPR-3.1.1.1-40",
    "DMPR-3.1.1.2-24",
)
def test_the_queues_of_the_system() -> None:
    harness = started()
    for _ in range(2):
        manager = harness.core.queue_manager
        system = [
            manager.system_deadletter_queue,
            manager.system_transactional_deadletter_queue,
            manager.system_journal_queue,
            harness.find_queue("order_queue$"),
            harness.find_queue("notify_queue$"),
        ]
        assert set(manager.queues.values()) == set(system)  # none is created twice
        assert len(set(system)) == 5
        assert [queue is not None and queue.queue_type for queue in system] == [QueueType.SYSTEM] * 5
        assert [queue is not None and queue.transactional for queue in system][:3] == [False, True, False]
        for suffix, queue in zip(("DEADLETTER", "DEADXACT", "JOURNAL"), system, strict=False):
            assert harness.open(f"MACHINE={OWN_ID};{suffix}").queue is queue
        harness.restart()


@pytest.mark.requirement("DMPR-3.1.1.1-11")
def test_the_journal_has_the_quota_of_the_queue_manager() -> None:
    harness = started()
    harness.core.queue_manager.journal_quota = 5
    harness.core.changed()
    harness.run()
    harness.restart()
    journal = harness.core.queue_manager.system_journal_queue
    assert journal is not None
    assert journal.quota == 5


@pytest.mark.requirement("DMPR-3.1.3-23", "DMPR-3.1.1.3-11/a")
def test_a_locked_queue_waits_once_security_is_not_hardened() -> None:
    harness = started()
    harness.core.queue_manager.hardened_security = True
    queue = harness.outgoing(BY_NAME)
    assert queue.state is LOCKED
    harness.core.queue_manager.hardened_security = False
    harness.core.changed()
    harness.run()
    harness.restart()
    restored = harness.core.queue_manager.queues[queue.number]
    assert getattr(restored, "state", None) is WAITING


@pytest.mark.requirement("DMPR-3.1.3-24", "DMPR-3.1.1.3-09")
def test_outgoing_queues_are_locked_when_security_is_hardened() -> None:
    harness = started()
    queue, http = harness.outgoing(BY_NAME), harness.outgoing(HTTP)
    harness.core.queue_manager.hardened_security = True
    harness.core.changed()
    harness.run()
    harness.restart()
    queues = harness.core.queue_manager.queues
    assert getattr(queues[queue.number], "state", None) is LOCKED
    assert getattr(queues[http.number], "state", None) is OutgoingQueueState.INACTIVE


# -- start and stop -------------------------------------------------------------------------------------


class Watched(MemoryStore):
    """A store that records its queue manager's state when read, or that cannot be read."""

    def __init__(self) -> None:
        super().__init__(LAYOUT)
        self.core: Core | None = None
        self.seen: list[QueueManagerState] = []
        self.broken: Table | None = None

    def rows(self, table: Table) -> Iterator[tuple[Key, bytes]]:
        if self.core is not None:
            self.seen.append(self.core.queue_manager.state)
        if table is self.broken:
            raise StoreDamaged("the file is cut off", file="here.db")
        return super().rows(table)


def core_over(store: Watched) -> Core:
    numbers = iter(range(1, 1_000))
    store.core = core = Core(store, new_guid=lambda: UUID(int=next(numbers)), computer_name="here")
    core.at(0, START_UTC)
    return core


@pytest.mark.requirement("DMPR-3.1.1.1-37", "DMPR-3.1.4.1-01", "DMPR-3.1.4.2-01")
def test_the_states_of_a_queue_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Watched()
    core = core_over(store)
    assert core.queue_manager.state is QueueManagerState.STOPPED
    assert core.queue_manager.queues == {}
    core.start()
    assert set(store.seen) == {QueueManagerState.INITIALIZING}
    assert core.queue_manager.state is QueueManagerState.READY
    assert core.queue_manager.queues != {}
    states = []
    monkeypatch.setattr(core.binary, "stop", lambda: states.append(core.queue_manager.state))
    core.stop()
    assert states == [QueueManagerState.STOPPING]  # the protocols finish their work
    assert core.queue_manager.state is QueueManagerState.STOPPED


@pytest.mark.requirement("DMPR-3.1.3-27")
@pytest.mark.parametrize("table", [Table.QUEUE, Table.MESSAGE, Table.TRANSACTION])
def test_what_goes_wrong_at_the_start_is_raised(table: Table) -> None:
    store = Watched()
    core = core_over(store)
    store.broken = table
    with pytest.raises(StoreDamaged):
        core.start()
    assert core.queue_manager.state is not QueueManagerState.READY


# -- offline and online ---------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.4.12-01", "DMPR-3.1.4.13-01", "DMPR-3.1.1.1-35")
def test_offline_and_online() -> None:
    harness = started()
    manager, engine = harness.core.queue_manager, harness.core.binary
    assert manager.connection_active is True
    harness.core.queues.take_offline()
    assert manager.connection_active is False
    number = engine.next_connection()
    engine.accepted(number, "10.0.0.9")
    assert Disconnect(number) in harness.run()  # nothing more is received
    harness.core.queues.bring_online()
    assert manager.connection_active is True
    number = engine.next_connection()
    engine.accepted(number, "10.0.0.9")
    assert Disconnect(number) not in harness.run()


def test_a_paused_queue_keeps_its_messages_until_it_is_resumed() -> None:
    harness = started()
    queue = harness.outgoing(BY_NAME)
    harness.core.queues.pause(queue)
    harness.enqueue(queue, b"1")
    assert not [effect for effect in harness.advance(100_000) if isinstance(effect, Resolve | Connect)]
    harness.core.queues.resume(queue)
    assert [effect.host for effect in harness.run() if isinstance(effect, Resolve)] == ["there"]
    assert len(queue.positions) == 1


def test_a_queue_on_hold_stays_so_over_a_restart() -> None:
    harness = started()
    queue = harness.outgoing(BY_NAME)
    harness.core.queues.pause(queue)
    harness.run()
    harness.restart()
    descriptor = harness.open(BY_NAME, SEND)
    assert getattr(descriptor.queue, "state", None) is OutgoingQueueState.ON_HOLD
