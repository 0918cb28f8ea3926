"""The next hops of a queue manager that is no routing server: [MS-MQBR] 3.1.5.1, 3.1.5.5 and 1.3.1."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.support.qm.enterprises import THERE, A, B, C, Enterprise, guid

requirement = pytest.mark.requirement


@requirement("MQBR-3.1.5.1-01", "MQBR-3.1.5.1-06")
def test_one_site_needs_no_routing_server() -> None:
    enterprise = Enterprise()
    enterprise.router(3, A)
    enterprise.manager(4, A)
    enterprise.manager(2, A)
    assert enterprise.hops() == [THERE]
    assert enterprise.hops(guid(4)) == [guid(4)]


@requirement("MQBR-3.1.5.1-01", "MQBR-3.1.5.1-05", "MQBR-1.3.2-02")
def test_in_routing_servers_of_the_destination() -> None:
    enterprise = Enterprise()
    for number in (3, 4, 5):
        enterprise.router(number, A)
    enterprise.manager(2, A, in_routing_server_identifier_list=[guid(4), guid(3)])
    assert enterprise.hops() == [guid(4), guid(3)]


@requirement("MQBR-3.1.5.1-01", "MQBR-3.1.5.1-04", "MQBR-1.3.2-01")
@pytest.mark.parametrize("site", [A, B], ids=["own site", "other site"])
@pytest.mark.parametrize("inward", [[], [guid(5)]], ids=["", "in-routing"])
def test_out_routing_servers_come_before_all(site: UUID, inward: list[UUID]) -> None:
    enterprise = Enterprise(out_routing_server_identifier_list=[guid(4), guid(3)])
    for number in (5, 3, 4):
        enterprise.router(number, A)
    enterprise.manager(2, site, in_routing_server_identifier_list=inward)
    assert enterprise.hops() == [guid(4), guid(3)]


@requirement("MQBR-3.1.5.1-03")
@pytest.mark.parametrize("routing_server, hops", [(True, [THERE]), (False, [guid(3)])])
def test_a_routing_server_needs_none_outward(routing_server: bool, hops: list[UUID]) -> None:
    enterprise = Enterprise(routing_server=routing_server, out_routing_server_identifier_list=[guid(3)])
    enterprise.router(3, A)
    enterprise.manager(2, A)
    assert enterprise.hops() == hops


@requirement("MQBR-3.1.5.1-02", "MQBR-1.6-01")
def test_who_is_not_in_the_directory_is_not_routed() -> None:
    enterprise = Enterprise(out_routing_server_identifier_list=[guid(3)])
    enterprise.router(3, A)
    there = enterprise.manager(2, A)
    assert enterprise.hops() == [guid(3)]
    enterprise.remove(there)
    assert enterprise.hops() == []
    enterprise.directory.objects.append(there)
    enterprise.remove(enterprise.here)
    assert enterprise.hops() == []


@requirement("MQBR-3.1.5.1-07", "MQBR-3.1.5.5-01")
def test_another_site_by_the_first_router() -> None:
    enterprise = Enterprise(A, C)
    enterprise.manager(2, B, in_routing_server_identifier_list=[guid(3)])
    enterprise.router(3, B)
    enterprise.manager(4, A)
    enterprise.router(6, B, C)
    enterprise.router(5, A)
    assert enterprise.hops() == [guid(6)]


@requirement("MQBR-3.1.5.5-02", "MQBR-3.1.5.1-08")
def test_another_site_without_a_router() -> None:
    enterprise = Enterprise()
    enterprise.manager(2, B)
    enterprise.manager(4, A)
    enterprise.router(3, B)
    assert enterprise.hops() == []  # none fits
    enterprise.router(5, A)
    assert enterprise.hops() == [guid(5)]
    listed = enterprise.directory.objects
    listed.insert(1, listed.pop())  # the server is read before the list breaks off
    enterprise.directory.breaking["QueueManager"] = 2
    assert enterprise.hops() == []  # the two that are named can be read, the whole list can't
    assert enterprise.directory.reads()[-1] == ("QueueManager", [])
    enterprise.directory.breaking.clear()
    enterprise.remove(enterprise.here)
    assert enterprise.hops() == []  # unknown itself


@requirement("MQBR-3.1.5.1-09")
@pytest.mark.parametrize(
    "own, others, hops",
    [
        ([A, B], [B, C], [THERE]),
        ([A, B], [C, A], [THERE]),
        ([A, B], [C], [guid(3)]),
        ([A], [], [guid(3)]),
        ([A], [A, A, B], [THERE]),
    ],
)
def test_one_common_site_is_enough(own: list[UUID], others: list[UUID], hops: list[UUID]) -> None:
    enterprise = Enterprise(*own)
    enterprise.router(3, A, B)
    enterprise.manager(2, *others)
    assert enterprise.hops() == hops


@requirement("MQBR-3.1.5.1-09")
def test_two_without_sites_share_one() -> None:
    """Not so in the text, where nothing is routed without sites."""
    enterprise = Enterprise()
    enterprise.here.site_identifier_list.clear()
    enterprise.manager(2)
    assert enterprise.hops() == [THERE]
    enterprise.manager(3, A)
    assert enterprise.hops(guid(3)) == []


@requirement("MQBR-1.3.1-01")
def test_direct_connections_need_two_without_servers() -> None:
    networks = {"connected_network_identifier_list": [guid(0x71), guid(0x72)]}
    shared = {"connected_network_identifier_list": [guid(0x73), guid(0x72)]}
    found = []
    for outward in ([], [guid(3)]):
        for inward in ([], [guid(4)]):
            enterprise = Enterprise(out_routing_server_identifier_list=outward, **networks)
            enterprise.router(3, A)
            enterprise.router(4, A)
            enterprise.manager(2, A, in_routing_server_identifier_list=inward, **shared)
            found.append(enterprise.hops())
    assert found == [[THERE], [guid(4)], [guid(3)], [guid(3)]]


@requirement("MQBR-1.3-02")
@pytest.mark.parametrize(
    "site, outward, inward, hops",
    [
        (A, [], [], [THERE]),
        (B, [], [], [guid(3)]),
        (A, [guid(4)], [], [guid(4)]),
        (A, [], [guid(5)], [guid(5)]),
    ],
    ids=["none", "sites", "out-routing", "in-routing"],
)
def test_each_condition_of_routing(site: UUID, outward: list[UUID], inward: list[UUID], hops: object) -> None:
    enterprise = Enterprise(
        out_routing_server_identifier_list=outward, connected_network_identifier_list=[guid(0x71)]
    )
    for number in (3, 4, 5):
        enterprise.router(number, A)
    enterprise.manager(
        2, site, in_routing_server_identifier_list=inward, connected_network_identifier_list=[guid(0x72)]
    )  # fmt: skip
    assert enterprise.hops() == hops
