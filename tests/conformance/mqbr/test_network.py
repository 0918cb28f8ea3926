"""Messages on their ways through an enterprise: [MS-MQBR] 1.3, 1.4, 1.6, 2.1, 3.1 and 4."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.effects import Connect, Resolve, Send, SendDatagram
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import ConnectionStatus, QueueType
from msmqwire.qm.model.tables import Table
from tests.support.qm.enterprises import A, B, C, D, guid
from tests.support.qm.routed_networks import RoutedNetwork

requirement = pytest.mark.requirement
HOUR = 3_600_000


def four_sites(direct: int) -> RoutedNetwork:
    """The enterprise of [MS-MQBR] 4: sites A to D with a gate each, a sender in A, receivers in A and C."""
    enterprise = RoutedNetwork()
    enterprise.sites(A, B, C, D)
    gates = {A: "gate-a", B: "gate-b", C: "gate-c", D: "gate-d"}
    for site, name in gates.items():
        enterprise.describe(name, site, router=True)
    for first, second, cost in ((A, B, 3), (B, C, direct), (B, D, 1), (C, D, 1)):
        enterprise.link(cost, (first, gates[first]), (second, gates[second]))
    enterprise.describe("sender", A)
    enterprise.describe("near", A)
    enterprise.describe("far", C)
    enterprise.start()
    return enterprise


def one_site(**sender: tuple[str, ...]) -> RoutedNetwork:
    """A site with two routing servers, a sender, and receivers with and without an in-routing server."""
    enterprise = RoutedNetwork()
    enterprise.describe("inward", A, router=True)
    enterprise.describe("outward", A, router=True)
    enterprise.describe("sender", A, **sender)
    enterprise.describe("served", A, **{"in": ("inward",)})
    enterprise.describe("open", A)
    enterprise.start()
    return enterprise


@requirement("MQBR-4-01", "MQBR-1.3.3-01", "MQBR-1.3.3-03", "MQBR-3.1-02", "MQBR-1.3-02")
def test_by_the_cheap_direct_link() -> None:
    enterprise = four_sites(direct=1)
    enterprise.send("sender", "far", b"m")
    assert enterprise.way(b"m") == ["sender", "gate-a", "gate-b", "gate-c", "far"]
    assert enterprise.received("far") == [b"m"]


@requirement("MQBR-4-02", "MQBR-1.3.3-01", "MQBR-1.3.3-02", "MQBR-1.3.3-03", "MQBR-3.1-02")
def test_around_the_dear_direct_link_and_back() -> None:
    enterprise = four_sites(direct=3)
    enterprise.send("sender", "far", b"there")
    assert enterprise.way(b"there") == ["sender", "gate-a", "gate-b", "gate-d", "gate-c", "far"]
    enterprise.send("far", "near", b"back")
    assert enterprise.way(b"back") == ["far", "gate-c", "gate-d", "gate-b", "gate-a", "near"]
    enterprise.send("sender", "near", b"at home")
    assert enterprise.way(b"at home") == ["sender", "near"]


@requirement("MQBR-1.3.3-04", "MQBR-3.1.2-01")
def test_running_gates_notice_a_new_link() -> None:
    enterprise = four_sites(direct=3)
    enterprise.send("sender", "far", b"before")
    enterprise.link(1, (A, "gate-a"), (C, "gate-c"))
    enterprise.send("sender", "far", b"meanwhile")
    enterprise.network.advance(HOUR)
    enterprise.send("sender", "far", b"after")
    long = ["sender", "gate-a", "gate-b", "gate-d", "gate-c", "far"]
    assert [enterprise.way(body) for body in (b"before", b"meanwhile")] == [long, long]
    assert enterprise.way(b"after") == ["sender", "gate-a", "gate-c", "far"]


@requirement("MQBR-1.3.2-01", "MQBR-1.3.2-02", "MQBR-1.3-01", "MQBR-1.3.1-01")
def test_by_the_servers_of_both_ends() -> None:
    enterprise = one_site(out=("outward",))
    for receiver in ("served", "open"):
        enterprise.send("sender", receiver, receiver.encode())
    enterprise.send("open", "served", b"in")
    enterprise.send("open", "sender", b"direct")
    assert enterprise.way(b"served") == ["sender", "outward", "inward", "served"]
    assert enterprise.way(b"open") == ["sender", "outward", "open"]
    assert enterprise.way(b"in") == ["open", "inward", "served"]
    assert enterprise.way(b"direct") == ["open", "sender"]
    assert enterprise.received("served") == [b"served", b"in"]


@requirement("MQBR-1.3-01")
def test_a_routing_server_stores_messages() -> None:
    enterprise = one_site(out=("outward",))
    enterprise.network.loses = lambda sender, receiver, _: (sender, receiver) == ("outward", "open")
    enterprise.send("sender", "open", b"m", recoverable=True)
    assert enterprise.way(b"m")[:2] == ["sender", "outward"]
    assert enterprise.received("open") == []
    for connection in enterprise.network.connections("sender"):
        enterprise.network.disconnect("sender", connection)
    for connection in enterprise.network.connections("outward"):
        enterprise.network.disconnect("outward", connection)
    enterprise["sender"].stop()
    enterprise.network.loses = lambda *_: False
    enterprise["outward"].restart()
    enterprise.network.advance(60_000)
    assert enterprise.received("open") == [b"m"]


@requirement("MQBR-3.1-01")
def test_all_priorities_go_one_way() -> None:
    enterprise = four_sites(direct=1)
    for priority in range(8):
        enterprise.send("sender", "far", b"%d" % priority, priority=priority)
    ways = [enterprise.way(b"%d" % priority) for priority in range(8)]
    assert ways == [["sender", "gate-a", "gate-b", "gate-c", "far"]] * 8


@requirement("MQBR-3.1-01")
@pytest.mark.parametrize("base_priority", [-32768, 0, 32767])
def test_the_priority_of_the_queue_changes_no_way(base_priority: int) -> None:
    enterprise = four_sites(direct=1)
    orders = Queue(guid(0x900), pathname="far\\orders", base_priority=base_priority)
    orders.queue_type = QueueType.PUBLIC
    enterprise.publish(orders)
    enterprise["sender"].send(b"m", to=f"PUBLIC={guid(0x900)}")
    enterprise.network.run()
    assert enterprise["sender"].outgoing(f"PUBLIC={guid(0x900)}").base_priority == base_priority
    assert enterprise.way(b"m") == ["sender", "gate-a", "gate-b", "gate-c", "far"]


@requirement("MQBR-1.4-01", "MQBR-1.6-01")
def test_public_and_private_names_are_routed_alone() -> None:
    enterprise = four_sites(direct=1)
    orders = Queue(guid(0x900), pathname="far\\orders")
    orders.queue_type = QueueType.PUBLIC
    enterprise.publish(orders)
    enterprise.send("sender", "far", b"private")
    for body, name in (
        (b"public", f"PUBLIC={guid(0x900)}"),
        (b"os", r"DIRECT=OS:far\private$\orders"),
        (b"tcp", r"DIRECT=TCP:10.0.0.7\private$\orders"),
    ):
        enterprise["sender"].send(body, to=name)
        enterprise.network.run()
    routed = ["sender", "gate-a", "gate-b", "gate-c", "far"]
    assert [enterprise.way(body) for body in (b"private", b"public")] == [routed, routed]
    assert [enterprise.way(body) for body in (b"os", b"tcp")] == [["sender", "far"]] * 2
    assert enterprise.received("far") == [b"private", b"os", b"tcp"]


@requirement("DMPR-3.1.1.3-15")
@requirement("MQBR-3.1.5.1-08", "MQBR-1.6-01")
@pytest.mark.parametrize("site", [None, B], ids=["unknown", "without a router"])
def test_without_a_hop_the_attempt_fails(site: object) -> None:
    enterprise = RoutedNetwork()
    enterprise.describe("sender", A)
    enterprise.start()
    if site is not None:
        enterprise.describe("far", B)
    sender = enterprise["sender"]
    name = f"PRIVATE={guid(0xA01)}\\9"
    sender.send(b"m", to=name)
    history = [entry.status for entry in sender.outgoing(name).connection_history]
    assert history == [ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE]
    assert sender.effects_of(Resolve) + sender.effects_of(Connect) == []
    if site is not None:
        enterprise.describe("router", A, router=True)
        enterprise.network.advance(10_000)
        assert [asked.host for asked in sender.effects_of(Resolve)][:1] == ["router"]


@requirement("MQBR-2.1-01")
def test_routing_itself_sends_nothing() -> None:
    enterprise = four_sites(direct=1)
    for _ in range(3):
        enterprise.network.advance(HOUR)
    for name in enterprise.identifiers:
        for kind in (Connect, Send, SendDatagram, Resolve):
            assert enterprise[name].effects_of(kind) == []
    assert enterprise.network.log == []
    enterprise.send("sender", "near", b"direct")
    direct = [entry for entry in enterprise.network.exchanged() if entry[0] == "sender"]
    enterprise.network.log.clear()
    enterprise.send("sender", "far", b"routed")
    routed = [entry for entry in enterprise.network.exchanged() if entry[0] == "sender"]
    assert [enterprise.received(name) for name in ("near", "far")] == [[b"direct"], [b"routed"]]
    assert routed == direct  # the same packets, sent elsewhere


@requirement("MQBR-3.1.1.2-02")
def test_the_table_is_built_anew_at_each_start() -> None:
    enterprise = four_sites(direct=1)
    first, second = enterprise["gate-a"], enterprise["gate-b"]
    assert first.core.routing.routing_table == {A: A, B: B, C: B, D: B}
    assert second.core.routing.routing_table == {A: A, B: B, C: C, D: D}
    enterprise.link(1, (A, "gate-a"), (C, "gate-c"))
    stored = [bytes(row) for table in Table for row in first.rows(table).values()]
    first.restart()
    assert first.core.routing.routing_table == {A: A, B: C, C: C, D: C}
    assert second.core.routing.routing_table == {A: A, B: B, C: C, D: D}
    assert not any(site.bytes in row for row in stored for site in (B, C, D))


# -- servers between managers that don't reach each other ----------------------------------------------------


@requirement("MQBR-1.3.2-03")
@pytest.mark.parametrize("direct_first", [False, True], ids=["no network", "connection fails"])
def test_a_fixed_route_over_a_routing_server(direct_first: bool) -> None:
    """No step of the text does either: the administrator names the server."""
    open_, router = guid(0xA04), guid(0xA01)
    enterprise = one_site()
    enterprise.network.harnesses.pop("sender")
    enterprise.start("sender", routes={open_: [open_, router] if direct_first else [router]})
    enterprise.network.refuses = lambda caller, called: (caller, called) == ("sender", "open")
    enterprise.send("sender", "open", b"m")
    enterprise.network.advance(60_000)
    asked = [connect.address for connect in enterprise["sender"].effects_of(Connect)]
    assert asked == ["10.0.0.5", "10.0.0.2"][not direct_first :]
    assert enterprise.way(b"m") == ["sender", "outward", "open"]
    assert enterprise.received("open") == [b"m"]


def test_a_failed_direct_connection_is_tried_again() -> None:
    enterprise = one_site()
    enterprise.network.refuses = lambda caller, called: (caller, called) == ("sender", "open")
    enterprise.send("sender", "open", b"m")
    enterprise.network.advance(4_000)
    assert [connect.address for connect in enterprise["sender"].effects_of(Connect)] == ["10.0.0.5"]
    enterprise.network.refuses = lambda *_: False
    enterprise.network.advance(10_000)
    assert enterprise.way(b"m") == ["sender", "open"]
