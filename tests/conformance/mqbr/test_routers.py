"""The next hops of routing servers and site gates: [MS-MQBR] 3.1.5.2, 3.1.5.3 and 3.1.5.6 to 3.1.5.8."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tests.support.qm.enterprises import HERE, THERE, A, B, C, D, Enterprise, gate_enterprise, guid

requirement = pytest.mark.requirement


def plain_router(*sites: UUID, **here: Any) -> Enterprise:
    """A routing server HERE that is no gate; gate 7 of site A, gate 8 of site B, links between them."""
    enterprise = Enterprise(*sites or (A,), routing_server=True, **here)
    enterprise.site(B, enterprise.router(8, B))
    enterprise.site(A, enterprise.router(7, A))
    enterprise.link(A, B)
    enterprise.routing.initialize()
    return enterprise


def gate(*costs: tuple[UUID, UUID, int]) -> Enterprise:
    """A gate HERE of site A, and gates 11, 12 and 13 of sites B, C and D; its table is built."""
    enterprise = gate_enterprise()
    for number, site in ((11, B), (12, C), (13, D)):
        enterprise.site(site, enterprise.router(number, site))
    for link in costs or ((A, B, 1), (B, C, 1), (C, D, 1)):
        enterprise.link(*link)
    enterprise.routing.initialize()
    return enterprise


# -- routing servers --------------------------------------------------------------------------------------


@requirement("MQBR-3.1.5.2-01", "MQBR-1.3.3-01")
def test_a_gate_goes_by_its_table() -> None:
    enterprise = plain_router()
    enterprise.manager(2, B)
    assert enterprise.hops() == [guid(7)]  # to the gate of its site
    enterprise = gate()
    enterprise.manager(2, D)
    assert enterprise.hops() == [guid(11)]  # to that of another


@requirement("MQBR-3.1.5.2-02")
@pytest.mark.parametrize("site", [A, B], ids=["own site", "other site"])
def test_an_in_routing_server_delivers(site: UUID) -> None:
    enterprise = plain_router()
    enterprise.manager(2, site, in_routing_server_identifier_list=[guid(7), HERE])
    assert enterprise.hops() == [THERE]


@requirement("MQBR-3.1.5.2-03")
def test_a_router_sends_to_in_routing_servers() -> None:
    enterprise = plain_router()
    enterprise.manager(2, A, in_routing_server_identifier_list=[guid(9), guid(7)])
    assert enterprise.hops() == [guid(9), guid(7)]


@requirement("MQBR-3.1.5.2-04")
def test_a_router_delivers_in_its_site() -> None:
    enterprise = plain_router()
    enterprise.manager(2, B, A)
    assert enterprise.hops() == [THERE]


@requirement("MQBR-3.1.5.2-05", "MQBR-3.1.5.6-01")
def test_a_router_sends_to_the_gate_of_its_site() -> None:
    enterprise = plain_router(C, A)
    enterprise.site_of(A).site_gates.append(enterprise.router(9, A))  # one of several
    enterprise.manager(2, B, in_routing_server_identifier_list=[guid(8)])
    assert enterprise.hops() == [guid(7)]


@requirement("MQBR-3.1.5.6-01")
def test_the_first_of_the_router_s_sites_in_the_directory() -> None:
    enterprise = plain_router(C, A)
    site = enterprise.site(C, enterprise.router(9, C))
    enterprise.manager(2, B)
    assert enterprise.hops() == [guid(7)]
    enterprise.remove(site)
    enterprise.directory.objects.insert(0, site)
    assert enterprise.hops() == [guid(9)]


@requirement("MQBR-3.1.5.2-06", "MQBR-3.1.5.6-02", "MQBR-3.1.5.1-08")
def test_a_router_without_a_gate_has_no_hop() -> None:
    enterprise = plain_router()
    enterprise.manager(2, B)
    site = enterprise.site_of(A)
    gates = list(site.site_gates)
    assert enterprise.hops() == [guid(7)]
    site.site_gates.clear()
    assert enterprise.hops() == []  # without gates
    enterprise.remove(site)
    assert enterprise.hops() == []  # the site is not in the directory
    enterprise.directory.objects.append(site)
    site.site_gates.extend(gates)
    assert enterprise.hops() == [guid(7)]
    enterprise.directory.unreadable.add("Site")
    assert enterprise.hops() == []  # no site can be read
    enterprise.directory.unreadable.clear()
    enterprise.remove(enterprise.here)
    assert enterprise.hops() == []  # the router is not in the directory


@requirement("MQBR-3.1.5.6-03")
def test_a_first_site_without_gates_ends_the_search() -> None:
    enterprise = Enterprise(C, A, routing_server=True)
    enterprise.site(B, enterprise.router(8, B))
    empty = enterprise.site(C)
    enterprise.site(A, enterprise.router(7, A))
    enterprise.manager(2, B)
    assert enterprise.hops() == []
    enterprise.remove(empty)
    enterprise.directory.objects.append(empty)
    assert enterprise.hops() == [guid(7)]


# -- site gates -------------------------------------------------------------------------------------------


@requirement("MQBR-3.1.5.3-01")
@pytest.mark.parametrize("site", [A, D], ids=["own site", "other site"])
def test_a_gate_that_is_the_in_routing_server_delivers(site: UUID) -> None:
    enterprise = gate()
    enterprise.manager(2, site, in_routing_server_identifier_list=[guid(12), HERE])
    assert enterprise.hops() == [THERE]


@requirement("MQBR-3.1.5.3-02")
def test_a_gate_sends_to_in_routing_servers() -> None:
    enterprise = gate()
    enterprise.manager(2, A, in_routing_server_identifier_list=[guid(5), guid(4)])
    assert enterprise.hops() == [guid(5), guid(4)]


@requirement("MQBR-3.1.5.3-03")
def test_a_gate_delivers_in_its_site() -> None:
    enterprise = gate()
    enterprise.manager(2, D, A)
    assert enterprise.hops() == [THERE]


@requirement("MQBR-3.1.5.3-04", "MQBR-3.1.5.7-01")
def test_a_gate_sends_to_a_gate_of_the_next_site() -> None:
    enterprise = gate((A, B, 9), (A, C, 2), (C, D, 2), (D, B, 2))
    enterprise.manager(2, B, in_routing_server_identifier_list=[guid(11)])
    enterprise.directory.log.clear()
    assert enterprise.hops() == [guid(12)]
    assert enterprise.directory.reads()[-1] == ("Site", [("Identifier", "EQUALS", C)])


@requirement("MQBR-3.1.5.3-05")
def test_the_last_row_of_several_sites_wins() -> None:
    enterprise = gate((A, B, 1), (A, C, 1), (A, D, 1))
    enterprise.manager(2, B, C, D)
    for first, second, last, hop in ((B, C, D, 13), (D, C, B, 11), (B, D, C, 12)):
        enterprise.routing.routing_table = {first: first, second: second, last: last, A: A}
        assert enterprise.hops() == [guid(hop)]


@requirement("MQBR-3.1.5.3-05")
@pytest.mark.parametrize("sites", [(B, D), (D, B)])
def test_of_several_sites_the_nearest(sites: tuple[UUID, ...]) -> None:
    enterprise = gate((A, B, 5), (A, C, 1), (C, D, 1))
    enterprise.manager(2, *sites)
    assert enterprise.hops() == [guid(12)]
    assert list(enterprise.table) == [B, D, C, A]


@requirement("MQBR-3.1.5.3-06", "MQBR-3.1.5.1-08")
def test_a_gate_without_a_row_has_no_hop() -> None:
    enterprise = gate((A, B, 1), (C, D, 1))
    enterprise.manager(2, D)
    assert enterprise.hops() == []
    enterprise.manager(3, D, B)
    assert enterprise.hops(guid(3)) == [guid(11)]


@requirement("MQBR-3.1.5.7-01")
def test_one_gate_of_several() -> None:
    enterprise = gate()
    enterprise.site_of(B).site_gates.append(enterprise.router(14, B))
    enterprise.manager(2, D)
    assert enterprise.hops() == [guid(11)]


@requirement("MQBR-3.1.5.7-02", "MQBR-3.1.5.1-08")
def test_a_next_site_without_gates() -> None:
    enterprise = gate()
    enterprise.manager(2, D)
    site = enterprise.site_of(B)
    assert enterprise.hops() == [guid(11)]
    site.site_gates.clear()
    assert enterprise.hops() == []
    enterprise.remove(site)
    assert enterprise.hops() == []


# -- who is a gate ----------------------------------------------------------------------------------------


def builds_table(enterprise: Enterprise) -> bool:
    """Whether the queue manager builds a routing table, as gates do."""
    enterprise.link(A, B)
    enterprise.routing.initialize()
    return bool(enterprise.table)


@requirement("MQBR-3.1.5.8-01")
def test_only_a_routing_server_is_a_gate() -> None:
    assert builds_table(gate_enterprise())
    enterprise = gate_enterprise()
    enterprise.here.routing_server = False
    assert not builds_table(enterprise)
    enterprise.router(7, A)
    enterprise.manager(2, B)
    assert enterprise.hops() == [guid(7)]  # as from any other sender
    enterprise = gate_enterprise()
    enterprise.remove(enterprise.here)
    assert not builds_table(enterprise)


@requirement("MQBR-3.1.5.8-02", "MQBR-1.5-02")
def test_a_gate_of_a_foreign_site_is_none() -> None:
    enterprise = Enterprise(A, C, routing_server=True)
    enterprise.site(A, enterprise.router(7, A))
    enterprise.site(B, enterprise.here)
    enterprise.manager(2, B)
    assert not builds_table(enterprise)
    assert enterprise.hops() == [guid(7)]
    enterprise.site(C, enterprise.here)  # the second of its sites
    assert builds_table(enterprise)


@requirement("MQBR-3.1.5.8-03")
def test_without_readable_sites_there_is_no_gate() -> None:
    for enterprise in (gate_enterprise(), gate_enterprise()):
        enterprise.site(B, enterprise.router(11, B))
        enterprise.manager(2, B)
    enterprise.directory.unreadable.add("Site")
    assert not builds_table(enterprise)
    enterprise.routing.routing_table = {B: B}
    assert enterprise.hops() == []  # by GetSiteGate, not by the table
    enterprise.directory.unreadable.clear()
    assert enterprise.hops() == [guid(11)]


@requirement("MQBR-3.1.5.8-04")
def test_gates_are_known_by_their_identifier() -> None:
    twin = Enterprise(D).manager(1, D)
    enterprise = Enterprise(A, routing_server=True)
    assert twin is not enterprise.here
    enterprise.site(A, twin)
    enterprise.site(B, Enterprise().manager(11, D))
    enterprise.manager(2, B)
    assert builds_table(enterprise)
    assert enterprise.hops() == [guid(11)]
    other = Enterprise(A, routing_server=True)
    other.site(A, other.manager(9, A, routing_server=True))
    assert not builds_table(other)
