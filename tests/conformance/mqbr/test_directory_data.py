"""How routing reads the directory: [MS-MQBR] 3.1.1.1, 3.1.5.4 and 3.1.5.9."""

from __future__ import annotations

import pytest

from tests.support.qm.enterprises import HERE, THERE, A, B, C, Enterprise, gate_enterprise, guid

requirement = pytest.mark.requirement


def gate() -> Enterprise:
    """The gate of site A, with a destination in site C, over B."""
    enterprise = gate_enterprise()
    enterprise.site(B, enterprise.router(11, B))
    enterprise.site(C, enterprise.router(12, C))
    enterprise.link(A, B)
    enterprise.link(B, C)
    enterprise.manager(2, C)
    return enterprise


@requirement("MQBR-3.1.1.1-01")
def test_three_types_of_objects_are_read() -> None:
    enterprise = gate()
    enterprise.routing.initialize()
    assert {kind for kind, _ in enterprise.directory.reads()} == {"QueueManager", "Site", "RoutingLink"}
    enterprise.directory.log.clear()
    assert enterprise.hops() == [guid(11)]
    assert {kind for kind, _ in enterprise.directory.reads()} == {"QueueManager", "Site"}


@requirement("MQBR-3.1.5.4-01")
def test_one_manager_is_read_by_its_identifier() -> None:
    enterprise = Enterprise()
    enterprise.manager(4, A)
    enterprise.manager(2, A)
    enterprise.manager(2, B)  # the first one counts
    assert enterprise.hops() == [THERE]
    assert enterprise.directory.reads() == [
        ("QueueManager", [("Identifier", "EQUALS", HERE)]),
        ("QueueManager", [("Identifier", "EQUALS", THERE)]),
    ]
    assert enterprise.hops(guid(5)) == []


@requirement("MQBR-3.1.5.9-01", "MQBR-3.1.5.9-05")
def test_a_read_is_begun_continued_and_ended() -> None:
    enterprise = Enterprise()
    enterprise.router(3, B)
    enterprise.router(4, A)
    enterprise.manager(2, B)
    assert enterprise.hops() == [guid(4)]
    log = enterprise.directory.log
    last = max(place for place, entry in enumerate(log) if entry[0] == "begin")
    handle = log[-1][1]
    assert log[last:] == [("begin", "QueueManager", []), *[("next", handle)] * 5, ("end", handle)]
    assert [entry[0] for entry in log[:last]] == ["begin", "next", "next", "end"] * 2
    assert len({entry[1] for entry in log if entry[0] == "end"}) == 3


@requirement("MQBR-3.1.5.9-02")
def test_only_objects_that_satisfy_the_filter_count() -> None:
    enterprise = gate()
    enterprise.routing.initialize()
    enterprise.directory.objects.reverse()  # the objects asked for are not the first ones of their types
    enterprise.directory.log.clear()
    assert enterprise.hops() == [guid(11)]
    assert enterprise.directory.reads() == [
        ("QueueManager", [("Identifier", "EQUALS", HERE)]),
        ("QueueManager", [("Identifier", "EQUALS", THERE)]),
        ("Site", []),
        ("Site", [("Identifier", "EQUALS", B)]),
    ]


@requirement("MQBR-3.1.5.9-03")
def test_a_read_that_does_not_begin_is_not_ended() -> None:
    enterprise = Enterprise()
    enterprise.manager(2, A)
    assert enterprise.hops() == [THERE]
    enterprise.directory.log.clear()
    enterprise.directory.unreadable.add("QueueManager")
    assert enterprise.hops() == []
    assert {entry[0] for entry in enterprise.directory.log} == {"begin"}


@requirement("MQBR-3.1.5.9-04", "MQBR-3.1.5.9-05")
def test_a_read_that_breaks_off_gives_nothing_and_is_ended() -> None:
    enterprise = Enterprise()
    enterprise.router(3, A)
    enterprise.manager(2, B)
    assert enterprise.hops() == [guid(3)]
    enterprise.directory.log.clear()
    enterprise.directory.breaking["QueueManager"] = 2  # after the router that is asked for
    assert enterprise.hops() == []
    handle = enterprise.directory.log[-1][1]
    assert enterprise.directory.log[-5:] == [
        ("begin", "QueueManager", []),
        *[("next", handle)] * 3,
        ("end", handle),
    ]
    assert enterprise.directory.open_queries == 0
