"""Routing: the next hops of messages: [MS-MQQB] 3.1.7.4, 3.1.7.5, [MS-MQBR] and [MS-MQMQ] 2.3.12.12."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.names import ConnectorName, FormatName, PrivateName, PublicName, parse_format_name
from msmqwire.qm.directory import ReadResult
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model.address import Address, address_text, parse_address
from msmqwire.qm.model.directory_objects import RoutingLink, Site
from msmqwire.qm.model.elements import Queue, QueueManager
from msmqwire.qm.model.enumerations import DirectoryOperationResult as Result
from msmqwire.qm.model.enumerations import QueueType
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.timers import Timers
from msmqwire.qm.rules.directory_events import DirectoryEvents
from msmqwire.qm.rules.routing import Destination, Routing, next_sites


def guid(number: int) -> UUID:
    return UUID(int=number)


A, B, C, D = (guid(number) for number in (0xA, 0xB, 0xC, 0xD))
HERE, THERE = guid(1), guid(2)


class Enterprise:
    """An enterprise seen by queue manager 1."""

    def __init__(self, *, workgroup: bool = False, **here: Any) -> None:
        self.directory, self.timers = EmbeddedDirectory(), Timers()
        self.manager = QueueManager(HERE, computer_name="m1", **here)
        self.add(self.manager)
        self.events = DirectoryEvents(self.manager, None if workgroup else self.directory, self.timers)
        self.routing = Routing(self.manager, self.events, self.timers)

    def add(self, *objects: Any) -> None:
        for obj in objects:
            assert self.directory.create_directory_object(obj).status is Result.SUCCESS

    def manager_of(self, number: int, *sites: UUID, **attributes: Any) -> UUID:
        name = f"m{number}"
        self.add(
            QueueManager(
                guid(number),
                computer_name=name,
                qualified_computer_name=f"{name}.example",
                site_identifier_list=list(sites),
                **attributes,
            )
        )
        return guid(number)

    def link(self, site1: UUID, site2: UUID, cost: int, *gates: UUID) -> None:
        self.add(
            RoutingLink(
                NULL_GUID,
                actual_cost=cost,
                site1_identifier=site1,
                site2_identifier=site2,
                site_gate_identifier_list=list(gates),
            )
        )

    def sites(self, *sites: UUID) -> None:
        self.add(*(Site(site, name=f"s{site.int}") for site in sites))

    def hops(self, destination: UUID = THERE) -> list[UUID]:
        return [manager.identifier for manager in self.routing.get_next_hops(destination)]


# -- Get Destination Info -------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.7.4-01", "MQQB-3.1.7.4-02")
@pytest.mark.parametrize(
    "name, host",
    [
        ("DIRECT=OS:there.example\\private$\\q", "there.example"),
        ("DIRECT=TCP:10.0.0.5\\q", "10.0.0.5"),
        ("DIRECT=TCP:[fd00::5]\\q", "fd00::5"),
    ],
)
def test_the_host_of_a_direct_name(name: str, host: str) -> None:
    info = Enterprise().routing.get_destination_info(parse_format_name(name))
    assert info == Destination(host, NULL_GUID)


@pytest.mark.requirement("MQQB-3.1.7.4-03", "MQQB-3.1.7.4-04")
@pytest.mark.parametrize("name", [PublicName(guid(100)), ConnectorName(guid(100))])
def test_the_host_of_a_public_name(name: FormatName) -> None:
    enterprise = Enterprise()
    enterprise.manager_of(2)
    queue = Queue(guid(100), pathname="m2\\orders")
    queue.queue_type = QueueType.PUBLIC
    enterprise.add(queue)
    assert enterprise.routing.get_destination_info(name) == Destination("m2.example", THERE)


@pytest.mark.requirement("MQQB-3.1.7.4-03", "MQQB-3.1.7.4-04")
@pytest.mark.parametrize("name", [PublicName(guid(100)), ConnectorName(guid(100))])
def test_a_queue_that_the_directory_does_not_have(name: FormatName) -> None:
    asked = []

    class Empty:
        def read_directory(self, *args: Any) -> ReadResult:
            asked.append(args)
            return ReadResult(Result.OBJECT_NOT_FOUND)

    manager, timers = QueueManager(HERE), Timers()
    events = DirectoryEvents(manager, Empty(), timers)  # type: ignore[arg-type]
    assert Routing(manager, events, timers).get_destination_info(name) is None
    assert asked == [("Queue", [("Identifier", "EQUALS", guid(100))], None)]


@pytest.mark.requirement("MQQB-3.1.7.4-05")
def test_the_queue_manager_of_a_private_name() -> None:
    assert Enterprise().routing.get_destination_info(PrivateName(THERE, 15)) == Destination("", THERE)


@pytest.mark.parametrize("text", ["MULTICAST=234.1.1.1:8001", "DIRECT=OS:a\\q,DIRECT=OS:b\\q", f"DL={A}"])
def test_names_without_one_host(text: str) -> None:
    assert Enterprise().routing.get_destination_info(parse_format_name(text)) is None


# -- Get Next Hops ----------------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.7.5-01", "MQQB-3.1.7.5-02", "MQQB-3.1.7.5-03")
def test_directly_within_a_site() -> None:
    enterprise = Enterprise(site_identifier_list=[A])
    enterprise.manager_of(2, B, A)
    next_hops = enterprise.routing.get_next_hops(THERE)
    assert [manager.qualified_computer_name for manager in next_hops] == ["m2.example"]
    assert [manager.identifier for manager in next_hops] == [THERE]


@pytest.mark.requirement("MQQB-3.1.7.5-03", "MQQB-3.1.7.5-04")
def test_hops_that_the_directory_does_not_have_are_left_out() -> None:
    enterprise = Enterprise(out_routing_server_identifier_list=[guid(8), guid(3), guid(9), guid(4)])
    enterprise.manager_of(2)
    assert enterprise.hops() == []
    enterprise.manager_of(4)
    enterprise.manager_of(3)
    assert enterprise.hops() == [guid(3), guid(4)]


@pytest.mark.requirement("MQQB-3.1.7.5-04")
def test_no_way() -> None:
    enterprise = Enterprise(site_identifier_list=[A])
    assert enterprise.hops() == []  # unknown
    enterprise.manager_of(2, B)
    assert enterprise.hops() == []  # in another site, without a routing server
    enterprise.directory.connected = False
    assert enterprise.hops() == []


@pytest.mark.requirement("MQQB-3.1.7.5-02")
def test_in_routing_servers() -> None:
    enterprise = Enterprise(site_identifier_list=[A])
    enterprise.manager_of(2, A, in_routing_server_identifier_list=[guid(4), guid(3)])
    enterprise.manager_of(3, A, routing_server=True)
    enterprise.manager_of(4, A, routing_server=True)
    assert enterprise.hops() == [guid(4), guid(3)]


@pytest.mark.requirement("MQQB-3.1.7.5-02")
def test_out_routing_servers_come_first() -> None:
    enterprise = Enterprise(site_identifier_list=[A], out_routing_server_identifier_list=[guid(3)])
    enterprise.manager_of(2, A, in_routing_server_identifier_list=[guid(4)])
    enterprise.manager_of(3, A)
    enterprise.manager_of(4, A)
    assert enterprise.hops() == [guid(3)]


@pytest.mark.requirement("MQQB-3.1.7.5-02", "MQBR-3.1.5.5-01")
def test_out_of_the_site_by_a_routing_server() -> None:
    enterprise = Enterprise(site_identifier_list=[A])
    enterprise.manager_of(2, B)
    enterprise.manager_of(3, B, routing_server=True)
    enterprise.manager_of(4, A)
    enterprise.manager_of(5, A, routing_server=True)
    assert enterprise.hops() == [guid(5)]


@pytest.mark.requirement("MQQB-3.1.7.5-02", "MQBR-3.1.5.1-03")
def test_a_routing_server_sends_to_the_gate_of_its_site() -> None:
    enterprise = Enterprise(
        site_identifier_list=[A], routing_server=True, out_routing_server_identifier_list=[guid(5)]
    )
    enterprise.sites(A, B)
    enterprise.manager_of(2, B)
    for number, site in ((3, B), (4, A), (5, A)):
        enterprise.manager_of(number, site, routing_server=True)
    enterprise.link(A, B, 1, guid(3), guid(4))
    assert enterprise.hops() == [guid(4)]


@pytest.mark.requirement("MQQB-3.1.7.5-02")
def test_a_routing_server_within_its_site() -> None:
    enterprise = Enterprise(site_identifier_list=[A], routing_server=True)
    enterprise.manager_of(2, A, in_routing_server_identifier_list=[guid(3)])
    enterprise.manager_of(3, A)
    assert enterprise.hops() == [guid(3)]
    enterprise.manager_of(4, A)
    assert enterprise.hops(guid(4)) == [guid(4)]


@pytest.mark.requirement("MQQB-3.1.7.5-02", "MQBR-3.1.5.2-02")
def test_an_in_routing_server_delivers() -> None:
    enterprise = Enterprise(site_identifier_list=[A], routing_server=True)
    enterprise.manager_of(2, B, in_routing_server_identifier_list=[guid(3), HERE])
    enterprise.manager_of(3, B)
    assert enterprise.hops() == [THERE]


# [MS-MQBR] 4: sites A, B, C and D with gates 1, 3, 4 and 5; the destination is in C.
EXAMPLES = [({"AB": 3, "BC": 1, "BD": 1, "CD": 1}, "BC"), ({"AB": 3, "BC": 3, "BD": 1, "CD": 1}, "BDC")]


def example(costs: dict[str, int], here: UUID = A) -> Enterprise:
    enterprise = Enterprise(site_identifier_list=[here], routing_server=True)
    site = {"A": A, "B": B, "C": C, "D": D}
    gate = {"A": guid(11), "B": guid(12), "C": guid(13), "D": guid(14)}
    gate[next(name for name, identifier in site.items() if identifier == here)] = HERE
    enterprise.sites(*site.values())
    for name, number in gate.items():
        if number != HERE:
            enterprise.manager_of(number.int, site[name], routing_server=True)
    for (site1, site2), cost in costs.items():
        enterprise.link(site[site1], site[site2], cost, gate[site1], gate[site2])
    enterprise.manager_of(2, C)
    enterprise.routing.initialize()
    return enterprise


@pytest.mark.requirement("MQQB-3.1.7.5-02")
@pytest.mark.parametrize("costs, way", EXAMPLES)
def test_the_ways_of_the_example(costs: dict[str, int], way: str) -> None:
    assert example(costs).hops() == [guid(12)]
    after_b = {"C": guid(13), "D": guid(14)}[way[1]]
    assert example(costs, B).hops() == [after_b]
    assert example(costs, D).hops() == [guid(13)]
    assert example(costs, C).hops() == [THERE]


@pytest.mark.requirement("MQQB-3.1.7.5-02", "MQBR-3.1.3.1-10")
def test_a_site_that_no_link_leads_to() -> None:
    enterprise = example({"AB": 1, "CD": 1})
    assert enterprise.hops() == []
    assert enterprise.routing.routing_table == {A: A, B: B}


@pytest.mark.requirement("MQBR-3.1.2.1-01", "MQBR-3.1.6.1-02")
def test_the_routing_table_is_made_anew_every_hour() -> None:
    enterprise = example({"AB": 3, "BC": 1})
    assert enterprise.routing.routing_table[C] == B
    enterprise.link(A, C, 1, HERE, guid(13))
    enterprise.timers.advance(3_599_999)
    assert enterprise.routing.routing_table[C] == B
    enterprise.timers.advance(3_600_000)
    assert enterprise.routing.routing_table[C] == C
    enterprise.timers.advance(7_200_000)
    assert enterprise.hops() == [guid(13)]


@pytest.mark.requirement("MQBR-3.1.3.1-01")
def test_only_a_site_gate_has_a_routing_table() -> None:
    enterprise = Enterprise(site_identifier_list=[A], routing_server=True)
    enterprise.sites(A, B)
    enterprise.link(A, B, 1)
    enterprise.routing.initialize()
    assert enterprise.routing.routing_table == {}


def test_one_site_gate_of_several() -> None:
    enterprise = example({"AB": 1})
    enterprise.manager_of(15, B, routing_server=True)
    enterprise.link(B, D, 1, guid(15))
    enterprise.manager_of(16, B)
    assert enterprise.hops(guid(16)) == [guid(12)]


def test_without_sites_all_is_one_site() -> None:
    enterprise = Enterprise()
    enterprise.manager_of(2)
    assert enterprise.hops() == [THERE]


# -- the table --------------------------------------------------------------------------------------------


def links(costs: Iterable[tuple[UUID, UUID, int]]) -> list[RoutingLink]:
    return [
        RoutingLink(NULL_GUID, site1_identifier=site1, site2_identifier=site2, actual_cost=cost)
        for site1, site2, cost in costs
    ]


@pytest.mark.requirement("MQBR-3.1.3.1-05")
def test_links_go_both_ways_and_unknown_sites_do_not_count() -> None:
    first_hops = next_sites([A], [A, B, C], links([(B, A, 5), (C, B, 1), (A, D, 1), (D, C, 1)]))
    assert first_hops == {A: A, B: B, C: B}


def test_the_cheapest_of_own_sites_is_the_start() -> None:
    assert next_sites([A, B], [A, B, C, D], links([(A, C, 9), (B, C, 2), (C, D, 1)])) == {
        A: A, B: B, C: C, D: C
    }  # fmt: skip


# -- fixed routes -----------------------------------------------------------------------------------------


def test_fixed_routes_are_enough_in_a_workgroup() -> None:
    enterprise = Enterprise(workgroup=True)
    enterprise.routing.routes = {THERE: ["gate.example", "10.0.0.9"], None: ["default.example"]}
    hops = enterprise.routing.get_next_hops(THERE)
    assert [(hop.qualified_computer_name, hop.identifier) for hop in hops] == [
        ("gate.example", NULL_GUID),
        ("10.0.0.9", NULL_GUID),
    ]
    assert [hop.computer_name for hop in enterprise.routing.get_next_hops(guid(3))] == ["default.example"]


def test_fixed_routes_come_first_and_the_default_comes_last() -> None:
    enterprise = Enterprise(site_identifier_list=[A])
    for number in (2, 3, 4):
        enterprise.manager_of(number, A)
    enterprise.routing.routes = {THERE: [guid(99), guid(4)], None: [guid(3)]}
    assert enterprise.hops() == [guid(4)]
    enterprise.routing.routes = {None: [guid(3)]}
    assert enterprise.hops() == [THERE]
    assert enterprise.hops(guid(77)) == [guid(3)]


# -- addresses --------------------------------------------------------------------------------------------

ADDRESSES: list[tuple[Address, str]] = [
    (IPv4Address("10.0.0.5"), "IP=10.0.0.5"),
    (IPv6Address("fd00::5"), "IPv6=fd00::5"),
    (UUID("0123abcd-0000-0000-0000-00000000000f"), "FOREIGN=0123ABCD-0000-0000-0000-00000000000F"),
]


@pytest.mark.requirement("MQMQ-2.3.12.12-02")
@pytest.mark.parametrize("address, text", ADDRESSES)
def test_addresses_as_text_and_back(address: Address, text: str) -> None:
    assert address_text(address) == text
    assert parse_address(text) == parse_address(text.lower()) == address
    if not isinstance(address, UUID):
        assert address_text(str(address)) == text


@pytest.mark.requirement("MQMQ-2.3.12.12-02")
@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.5",
        "IP=fd00::5",
        "IPv6=10.0.0.5",
        "IP=10.0.0.05",
        "IP=",
        "IPv6=fe80::1%eth0",
        "FOREIGN=x",
        "OS=a",
        "FOREIGN={0123ABCD-0000-0000-0000-00000000000F}",
        "FOREIGN=0123ABCD00000000000000000000000F",
    ],
)
def test_not_an_address(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_address(text)


def test_a_zone_is_left_out_and_a_name_is_refused() -> None:
    assert address_text("fe80::1%eth0") == "IPv6=fe80::1"
    with pytest.raises(InvalidValue):
        address_text("there.example")
