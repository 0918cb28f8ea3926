"""Names resolved by the directory: [MS-MQDMPR] 3.1.7.1.26 and 3.1.7.3.8."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.constants import HResult
from msmqwire.names import (
    ConnectorName,
    DirectName,
    DistributionListName,
    MulticastName,
    MultipleElementName,
    PrivateName,
    PublicName,
    parse_format_name,
)
from msmqwire.qm.directory import ResolveResult
from msmqwire.qm.model.elements import Queue, QueueManager
from msmqwire.qm.model.enumerations import DirectoryOperationResult as Result
from msmqwire.qm.model.enumerations import QueueType
from msmqwire.qm.rules.directory_events import DirectoryEvents
from tests.support.engine_harness import OWN_ID, PEER_ID
from tests.support.qm.directory_recorder import LISTED, RecordedDirectoryEvents, guid, public_queue

# -- Get Queue Path ---------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.26-01")
@pytest.mark.parametrize(
    "name, path, machine",
    [
        ("DIRECT=OS:there\\private$\\orders", "there\\private$\\orders", "there"),
        ("Direct=tcp:10.0.0.5\\Orders;sub", "10.0.0.5\\Orders;sub", "10.0.0.5"),
        ("DIRECT=OS:there\\SYSTEM$;JOURNAL", "there\\SYSTEM$;JOURNAL", "there"),
        ("DIRECT=HTTP://there:8080/msmq/private$/orders", "there/private$/orders", "there"),
        ("DIRECT=HTTPS://there/MSMQ\\orders", "there\\orders", "there"),
    ],
)
def test_the_path_of_a_direct_name(
    recorded: RecordedDirectoryEvents, name: str, path: str, machine: str
) -> None:
    assert recorded.events.get_queue_path(parse_format_name(name)) == (0, path, machine)
    assert recorded.log == []


@pytest.mark.requirement("DMPR-3.1.7.1.26-02")
def test_the_path_of_a_public_name(recorded: RecordedDirectoryEvents) -> None:
    recorded.directory.publish(
        QueueManager(PEER_ID, computer_name="THERE"), public_queue(100, "there\\orders")
    )
    assert recorded.events.get_queue_path(PublicName(guid(100))) == (0, "there\\orders", "THERE")
    assert recorded.log == [("read_directory", "Queue", [("Identifier", "EQUALS", guid(100))], None)]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(PublicName(guid(100)), marks=pytest.mark.requirement("DMPR-3.1.7.1.26-03")),
        pytest.param(PrivateName(PEER_ID, 15), marks=pytest.mark.requirement("DMPR-3.1.7.1.26-05")),
    ],
)
def test_a_name_that_nobody_knows(recorded: RecordedDirectoryEvents, name: PublicName | PrivateName) -> None:
    assert recorded.events.get_queue_path(name) == (HResult.MQ_ERROR_ILLEGAL_FORMATNAME, "", "")


@pytest.mark.requirement("DMPR-3.1.7.1.26-04")
def test_the_path_of_a_private_name(recorded: RecordedDirectoryEvents) -> None:
    recorded.directory.publish(QueueManager(PEER_ID, computer_name="there"), recorded.manager)
    for kind in (QueueType.SYSTEM, QueueType.PRIVATE):
        queue = Queue(guid(100), pathname=f"here\\{kind.value}", private_queue_number=15)
        queue.queue_type = kind
        recorded.add(queue)
    path = recorded.events.get_queue_path
    assert path(PrivateName(OWN_ID, 15)) == (0, "here\\Private", "here")
    assert path(PrivateName(OWN_ID, 16)) == (0, "", "here")
    assert path(PrivateName(PEER_ID, 15)) == (0, "", "there")
    assert all(entry[1] == "QueueManager" for entry in recorded.log)


@pytest.mark.requirement("DMPR-3.1.7.1.26-06")
@pytest.mark.parametrize(
    "name", [MulticastName("234.1.1.1", 8001), ConnectorName(guid(5)), DistributionListName(LISTED)]
)
def test_other_names_have_no_path(
    recorded: RecordedDirectoryEvents, name: MulticastName | ConnectorName
) -> None:
    assert recorded.events.get_queue_path(name) == (0, "", "")


# -- Expand Format Name -----------------------------------------------------------------------------------

A, B, C = (DirectName("OS", host, "q") for host in ("a", "b", "c"))


@pytest.mark.requirement("DMPR-3.1.7.3.8-01")
@pytest.mark.parametrize("name", [A, PublicName(guid(1)), MulticastName("234.1.1.1", 8001)])
def test_a_single_name_stays_as_it_is(recorded: RecordedDirectoryEvents, name: DirectName) -> None:
    assert recorded.events.expand_format_name(name) is name
    assert recorded.log == []


@pytest.mark.requirement("MQMQ-2.1.5-01")
@pytest.mark.requirement("DMPR-3.1.7.3.8-02", "DMPR-3.1.7.3.8-06")
def test_distribution_lists_are_resolved(recorded: RecordedDirectoryEvents) -> None:
    inner = DistributionListName(guid(0xD2))
    recorded.directory.directory.set_distribution_list(LISTED, [B, inner])
    recorded.directory.directory.set_distribution_list(inner.guid, [A, PublicName(guid(7))])
    name = MultipleElementName((C, DistributionListName(LISTED)))
    expanded = recorded.events.expand_format_name(name)
    assert str(expanded) == f"{A},{B},{C},PUBLIC={guid(7)}"


@pytest.mark.requirement("DMPR-3.1.7.3.8-02")
def test_lists_that_a_directory_gives_are_resolved_once(recorded: RecordedDirectoryEvents) -> None:
    lists = [DistributionListName(guid(number)) for number in (0xD1, 0xD2)]
    contents = {lists[0].guid: (lists[1], A), lists[1].guid: (B, lists[0], lists[1])}

    class Circular:
        asked: list[UUID] = []  # noqa: RUF012

        def resolve_distribution_list(self, name: DistributionListName) -> ResolveResult:
            self.asked.append(name.guid)
            return ResolveResult(Result.SUCCESS, contents[name.guid])

    circular = Circular()
    events = DirectoryEvents(recorded.manager, circular, recorded.timers)  # type: ignore[arg-type]
    assert events.expand_format_name(lists[0]) == MultipleElementName((A, B))
    assert circular.asked == [name.guid for name in lists]


@pytest.mark.requirement("DMPR-3.1.7.3.8-03")
@pytest.mark.parametrize("status", [result for result in Result if result is not Result.SUCCESS])
def test_a_list_that_is_not_resolved_fails_the_expansion(
    recorded: RecordedDirectoryEvents, status: Result
) -> None:
    recorded.directory.status = status
    assert recorded.events.expand_format_name(MultipleElementName((A, DistributionListName(LISTED)))) is None


@pytest.mark.requirement("DMPR-3.1.7.3.8-03")
def test_an_unknown_list_and_a_workgroup_fail_the_expansion(recorded: RecordedDirectoryEvents) -> None:
    assert recorded.events.expand_format_name(DistributionListName(LISTED)) is None
    assert (
        RecordedDirectoryEvents(workgroup=True).events.expand_format_name(DistributionListName(LISTED))
        is None
    )


@pytest.mark.requirement("DMPR-3.1.7.3.8-04", "DMPR-3.1.7.3.8-06")
def test_names_are_sorted_and_kept_once(recorded: RecordedDirectoryEvents) -> None:
    name = parse_format_name("DIRECT=OS:c\\q,DIRECT=OS:B\\q,DIRECT=OS:a\\Q,DIRECT=os:b\\Q,DIRECT=OS:A\\q")
    expanded = recorded.events.expand_format_name(name)
    assert str(expanded) == "DIRECT=OS:a\\Q,DIRECT=OS:B\\q,DIRECT=OS:c\\q"


@pytest.mark.requirement("DMPR-3.1.7.3.8-05")
def test_one_name_that_is_left_stands_alone(recorded: RecordedDirectoryEvents) -> None:
    recorded.directory.directory.set_distribution_list(LISTED, [A])
    assert recorded.events.expand_format_name(DistributionListName(LISTED)) == A
    assert recorded.events.expand_format_name(parse_format_name("DIRECT=OS:a\\q,DIRECT=OS:A\\Q")) == A
