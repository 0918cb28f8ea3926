"""A message that a server refuses, drops or lets expire leaves a trace: metric, log, top, console."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from msmqwire.qm.model import refusals
from msmqwire.qm.model.enumerations import Relay
from msmqwire.qm.runtime.http.options import HttpOptions
from msmqwire.qm.runtime.local import attach
from tests.support.patience import limit
from tests.support.peers.raw_peer import PEER, TX_QUEUE, Message, Session, direct, new_id
from tests.support.qm.console_client import Browser, token_of
from tests.support.qm.peer_server import LEDGER, ORDERS, alpha, at, in_queue
from tests.support.running import (
    ADDRESS,
    InThread,
    Process,
    called,
    message,
    options,
    peeked,
    process,
    put,
    recoverable,
    served,
    until,
)

pytestmark = pytest.mark.usefixtures("computers")
ANONYMOUS_MAY_NOTHING = ("--deny", "everyone:send", "--deny", "anonymous:send")
NOSUCH = r"DIRECT=OS:alpha\private$\nosuch"
FOREIGN = r"DIRECT=TCP:127.0.0.76\private$\x"
FAR = bytes(15) + b"\xfa"
KEYS = {"peer", "queue", "label", "identifier", "reason", "count", "last"}
HTTP_QUEUE = "/msmq/private$/"


def refused(data: Path) -> list[dict[str, Any]]:
    """The refusals as ``status`` has them."""
    with attach(data) as local:
        listed: list[dict[str, Any]] = local.call("status")["refused"]
    assert all(set(one) == KEYS for one in listed)
    return listed


def brief(listed: list[dict[str, Any]]) -> list[tuple[str, str, str, int]]:
    return [(one["peer"], one["queue"], one["reason"], one["count"]) for one in listed]


def push(server: InThread | Process, *messages: Message) -> None:
    """Send messages as another queue manager; each is acknowledged, as the session has it."""
    with Session.opened((server.address, server.port)) as peer:
        peer.push(*messages)
        peer.until_acknowledged()


def push_until_ended(server: InThread, message: Message) -> None:
    """Send a message for which the server ends the session."""
    with Session.opened(at(server)) as peer:
        peer.push(message)
        peer.ended()


def free_port() -> int:
    with socket.create_server((ADDRESS, 0)) as reserved:
        port: int = reserved.getsockname()[1]
        return port


def metric(port: int) -> dict[str, float]:
    """The samples of ``msmqwire_messages_refused_total`` by their labels."""
    with urllib.request.urlopen(f"http://{ADDRESS}:{port}/metrics", timeout=limit(60)) as answer:
        lines = answer.read().decode().splitlines()
    name = "msmqwire_messages_refused_total{"
    return {
        line.removeprefix(name).partition("} ")[0]: float(line.rpartition(" ")[2])
        for line in lines
        if line.startswith(name)
    }


def lines(server: Process) -> list[dict[str, Any]]:
    """The lines of the log about refusals."""
    return [line for line in server.logs() if "reason" in line and "count" in line]


# -- what a user sees who mistypes a name -----------------------------------------------------------------


def test_a_queue_that_is_not_there_is_seen_everywhere(tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    port = free_port()
    extras = "--metrics", f"{ADDRESS}:{port}", "--console", f"{ADDRESS}:0"
    with process(tmp_path / "data", "--queue", ORDERS, *extras) as server:
        push(server, Message(b"1", queue=direct(NOSUCH.removeprefix("DIRECT=")), label="order 7"))
        told = called("top", "--data", server.data, "--json").one
        (one,) = told["refused"]
        assert set(one) == KEYS
        assert brief([one]) == [(PEER, NOSUCH, "BAD_DST_Q", 1)]
        assert (one["label"], one["identifier"].partition("\\")[2].isdigit()) == ("order 7", True)
        assert abs(time.time() - _seconds(one["last"])) < 60
        shown = called("top", "--data", server.data, "--once").out
        assert "Refused" in shown
        assert "BAD_DST_Q" in shown
        browser = Browser(ADDRESS, server.console_port)
        assert browser.log_in(token_of(server.data)).status == 200
        assert browser.told("status")["refused"] == [one]
        (line,) = until(lambda: lines(server), "a line of the log")
        assert (line["level"], line["count"], line["label"]) == ("warning", 1, "order 7")
        assert line["event"] == rf"1 message of {PEER} for {NOSUCH} refused: BAD_DST_Q"
        assert metric(port) == {'queue="other",reason="BAD_DST_Q"': 1}


def _seconds(text: str) -> float:
    assert text.endswith("Z")
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone


def test_further_refusals_in_a_minute_are_logged_as_one_count(tmp_path: Path) -> None:
    with process(tmp_path / "data", "--queue", ORDERS) as server:
        for _ in range(5):
            push(server, Message(b"1", queue=direct(NOSUCH.removeprefix("DIRECT="))))
        assert brief(refused(server.data)) == [(PEER, NOSUCH, "BAD_DST_Q", 5)]
        assert [line["count"] for line in lines(server)] == [1]
        server.stop()
        assert [line["count"] for line in lines(server)] == [1, 4], "the rest is reported at the end"


def test_a_line_a_minute(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with alpha(tmp_path / "alpha") as server:
        server.do(lambda running: setattr(running.driver.core.context.refusals, "report_ms", 1_000))
        for _ in range(3):
            push(server, Message(b"1", queue=direct(NOSUCH.removeprefix("DIRECT="))))
        begun = time.monotonic()
        counts = until(lambda: [r.count for r in caplog.records if hasattr(r, "reason")][1:], "a second line")
        assert counts == [2]
        assert time.monotonic() - begun < limit(15), "it comes by itself, not with something else"


# -- every way to end without being delivered ---------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    with alpha(tmp_path_factory.mktemp("alpha"), relay=Relay.NONE) as server:
        yield server


def since(server: InThread, action: Callable[[], object]) -> list[tuple[str, str, str, int]]:
    """The refusals that an action adds."""
    before = {(one["peer"], one["queue"], one["reason"]): one["count"] for one in refused(server.data)}
    action()
    return [
        (peer, queue, reason, count - before.get((peer, queue, reason), 0))
        for peer, queue, reason, count in brief(refused(server.data))
        if count != before.get((peer, queue, reason), 0)
    ]


@pytest.mark.parametrize(
    ("refusal", "queue", "reason"),
    [
        (Message(b"1", queue=direct(r"OS:alpha\private$\nosuch")), NOSUCH, "BAD_DST_Q"),
        (Message(b"1", queue=direct(TX_QUEUE)), LEDGER, "NOT_TRANSACTIONAL_MSG"),
        (Message(b"1", tx=(1, 2, 1, 0)), ORDERS, "NOT_TRANSACTIONAL_Q"),
        (Message(b"1", age=9, time_to_reach_queue=1), ORDERS, "REACH_QUEUE_TIMEOUT"),
        (
            Message(b"1", address=FAR, queue=direct(FOREIGN.removeprefix("DIRECT=")), hops=0x1D),
            FOREIGN,
            "HOP_COUNT_EXCEEDED",
        ),
        (
            Message(b"1", address=FAR, queue=direct(FOREIGN.removeprefix("DIRECT="))),
            FOREIGN,
            "BAD_DST_Q",
        ),
        (Message(b"1", queue=direct(r"OS:alpha\private$\order_queue$")), None, "ACCESS_DENIED"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
@pytest.mark.parametrize("saved", [True, False])
def test_refused_on_arrival(
    server: InThread, refusal: Message, queue: str | None, reason: str, saved: bool
) -> None:
    number = new_id()
    tx = refusal.tx and (number, *refusal.tx[1:])
    refusal = replace(refusal, recoverable=saved, message_id=number, tx=tx)
    found = since(server, lambda: push(server, refusal))
    assert [(peer, why, count) for peer, _, why, count in found] == [(PEER, reason, 1)]
    if queue is not None:
        assert found[0][1] == queue


def test_access_denied(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha") as server:
        called("queue", "set", ORDERS, "--data", server.data, *ANONYMOUS_MAY_NOTHING)
        push(server, Message(b"1"))
        assert brief(refused(server.data)) == [(PEER, ORDERS, "ACCESS_DENIED", 1)]
        assert in_queue(server) == []


def test_the_quota_of_a_queue(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha") as server:
        called("queue", "set", ORDERS, "--data", server.data, "--quota", "1")
        push(server, Message(bytes(2_000), recoverable=True))
        assert brief(refused(server.data)) == [(PEER, ORDERS, "quota", 1)]


def test_the_quota_of_the_queue_manager_and_the_disk(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha") as server:

        def set_quota(running: Any, quota: int) -> int:
            manager = running.driver.core.queue_manager
            before, manager.queue_manager_quota = manager.queue_manager_quota, quota
            return int(before)

        before = server.do(set_quota, 1_000)
        push_until_ended(server, Message(bytes(2_000), recoverable=True))
        server.do(set_quota, before)
        server.do(lambda running: running.driver.core.queues.begin_flow_control())
        push_until_ended(server, Message(b"1", recoverable=True))
        server.do(lambda running: running.driver.core.queues.end_flow_control())
        reasons = {(one["queue"], one["reason"]) for one in refused(server.data)}
        assert reasons == {(ORDERS, "quota"), (ORDERS, "disk")}


def test_the_memory(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha", memory=1 << 20) as server:
        push_until_ended(server, Message(bytes(200_000)))
        assert brief(refused(server.data)) == [(PEER, ORDERS, "memory", 1)]


def test_what_expires_in_its_queue(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha") as server:
        with attach(server.data) as local:
            put(local, ORDERS, *recoverable(b"1", b"2", time_to_be_received=1, label="late"))
        until(lambda: not in_queue(server), "the end of the messages")
        (one,) = refused(server.data)
        assert brief([one]) == [(None, ORDERS, "RECEIVE_TIMEOUT", 2)]
        assert one["label"] == "late"


def test_what_expires_on_its_way_to_another_computer(tmp_path: Path) -> None:
    to = r"DIRECT=TCP:127.0.0.76\private$\x"
    with alpha(tmp_path / "alpha") as server:
        with attach(server.data) as local:
            local.call("send", to=to, messages=recoverable(b"1", time_to_reach_queue=1))
        (one,) = until(lambda: refused(server.data), "the end of the message")
        assert (one["peer"], one["reason"], one["count"]) == (None, "REACH_QUEUE_TIMEOUT", 1)
        assert one["queue"].lower() == to.lower()


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha") as server:
        with Session.opened(at(server)) as peer:
            peer.send(b"X" * 64)
            peer.ended()
        assert [(one["peer"], one["reason"]) for one in refused(server.data)] == [(PEER, "malformed")]


def test_purges_deletions_and_duplicates_are_no_refusals(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha") as server:
        twice = Message(b"1", recoverable=True)
        push(server, twice)
        push(server, twice)
        assert in_queue(server) == [b"1"]
        with attach(server.data) as local:
            local.call("purge", queue=ORDERS)
            put(local, ORDERS, *recoverable(b"2"))
            local.call("delete", queue=ORDERS)
        assert refused(server.data) == []


def test_an_acknowledgement_whose_queue_is_not_there(tmp_path: Path) -> None:
    admin = direct(r"OS:alpha\private$\noadmin")
    with alpha(tmp_path / "alpha") as server:
        push(server, Message(b"1", wants=1, admin=admin))
        assert [(one["peer"], one["reason"]) for one in refused(server.data)] == [(PEER, "BAD_DST_Q")]
        assert "noadmin" in refused(server.data)[0]["queue"]


# -- HTTP -------------------------------------------------------------------------------------------------


def test_the_same_trace_by_http(tmp_path: Path) -> None:
    queues = "--queue", ORDERS, "--queue", f"{LEDGER};transactional"
    with process(tmp_path / "alpha", *queues, "--http", f"{ADDRESS}:0") as server:
        base = f"http://{ADDRESS}:{server.http_port}{HTTP_QUEUE}"
        for name in ("nosuch", "ledger"):
            called("send", f"DIRECT={base.upper()}{name}", "--body", "x", "--label", "by http")
        found = {(one["peer"], one["queue"], one["reason"]): one for one in refused(server.data)}
        assert {(peer, reason) for peer, _, reason in found} == {
            ("127.0.0.1", "BAD_DST_Q"),
            ("127.0.0.1", "NOT_TRANSACTIONAL_MSG"),
        }
        assert {one["label"] for one in found.values()} == {"by http"}
        assert {one["queue"] for one in found.values() if "nosuch" not in one["queue"]} == {LEDGER}
        request = urllib.request.Request(base + "orders", data=b"no SRMP", method="POST")
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=limit(60))
        assert "malformed" in {one["reason"] for one in refused(server.data)}
        assert {line["reason"] for line in lines(server)} == {
            "BAD_DST_Q", "NOT_TRANSACTIONAL_MSG", "malformed",
        }  # fmt: skip


def test_another_queue_manager_at_another_loopback_address(tmp_path: Path) -> None:
    """What is for it is sent there, and does not land in the sender's own queue of that name."""
    with (
        process(tmp_path / "alpha", "--queue", ORDERS, "--http", "127.0.0.42:0", address="127.0.0.42") as one,
        process(
            tmp_path / "beta", "--queue", ORDERS, "--http", f"127.0.0.43:{one.http_port}",
            address="127.0.0.43", name="beta",
        ) as two,
    ):  # fmt: skip
        own = f"DIRECT=HTTP://127.0.0.42:{one.http_port}{HTTP_QUEUE}orders"
        foreign = f"DIRECT=HTTP://127.0.0.43:{one.http_port}{HTTP_QUEUE}orders"
        called("send", own, "--body", "own", "--data", one.data, "--recoverable")
        called("send", foreign, "--body", "foreign", "--data", one.data, "--recoverable")
        until(lambda: peeked(two.data, ORDERS), "the message")
        assert (peeked(one.data, ORDERS), peeked(two.data, ORDERS)) == ([b"own"], [b"foreign"])
        one.stop()
        called("send", foreign, "--body", "later", "--data", one.data, "--recoverable")
        assert peeked(one.data, ORDERS) == [b"own"], "without a server too"


@pytest.mark.parametrize("protocol, host", [("OS", "localhost"), ("TCP", "127.0.0.1")])
def test_another_queue_manager_at_the_usual_loopback_address(
    tmp_path: Path, protocol: str, host: str
) -> None:
    with process(tmp_path / "beta", "--queue", ORDERS, address="127.0.0.1", name="beta") as two:
        foreign = rf"DIRECT={protocol}:{host}\{ORDERS}"
        there = ("--host", f"{host}=127.0.0.1:{two.port}")
        with process(tmp_path / "alpha", "--queue", ORDERS, *there, address="127.0.0.44") as one:
            called("send", foreign, "--body", "foreign", "--data", one.data, "--recoverable")
            called("send", rf"DIRECT=TCP:127.0.0.44\{ORDERS}", "--body", "own", "--data", one.data)
            until(lambda: peeked(two.data, ORDERS), "the message")
            assert (peeked(one.data, ORDERS), peeked(two.data, ORDERS)) == ([b"own"], [b"foreign"])
            one.stop()
        called("send", foreign, "--body", "later", "--data", one.data, "--recoverable")
        called("send", rf"DIRECT=OS:.\{ORDERS}", "--body", "here", "--data", one.data, "--recoverable")
        assert peeked(one.data, ORDERS) == [b"here"], "without a server too"


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1"])
@pytest.mark.parametrize("to", ["OS:localhost", "TCP:127.0.0.1", "OS:.", "OS:ALPHA"])
def test_sessions_lead_to_the_own_queue(tmp_path: Path, address: str, to: str) -> None:
    data = tmp_path / "alpha"
    with served(options(data, ORDERS, address=address)) as server:
        called("send", rf"DIRECT={to}\{ORDERS}", "--body", "served", "--data", data, "--recoverable")
        assert in_queue(server) == [b"served"]
    called("send", rf"DIRECT={to}\{ORDERS}", "--body", "later", "--data", data, "--recoverable")
    assert peeked(data, ORDERS) == [b"served", b"later"]


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "alpha"])
def test_names_of_this_computer_are_its_own(tmp_path: Path, address: str, host: str) -> None:
    with served(options(tmp_path / "alpha", ORDERS, protocols={"srmp": HttpOptions((address, 0))})) as server:
        port = server.do(lambda running: running.joined["srmp"].endpoints["http"][1])
        with attach(server.data) as local:
            to = f"DIRECT=HTTP://{host}:{port}{HTTP_QUEUE}orders"
            local.call("send", to=to, messages=[message(b"1", delivery="recoverable")])
        assert in_queue(server) == [b"1"]


# -- other names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accepted", [True, False])
def test_names_of_other_computers(tmp_path: Path, accepted: bool) -> None:
    other = r"OS:elsewhere\private$\orders"
    setting = () if accepted else ("--set", "accept_other_names=false")
    with process(tmp_path / "alpha", "--queue", ORDERS, *setting) as server:
        push(server, Message(b"other", queue=direct(other), recoverable=True))
        push(server, Message(b"own", queue=direct(r"OS:ALPHA\private$\orders"), recoverable=True))
        in_a_domain = direct(r"OS:alpha.example.org\private$\orders")
        push(server, Message(b"long", queue=in_a_domain, recoverable=True))
        push(server, Message(b"gateway", queue=direct(r"TCP:10.0.0.9\private$\orders"), recoverable=True))
        own = [b"own", b"long", b"gateway"]
        assert peeked(server.data, ORDERS) == ([b"other", *own] if accepted else own)
        expected = [] if accepted else [(PEER, ORDERS, "BAD_DST_Q", 1)]
        assert brief(refused(server.data)) == expected
        if not accepted:
            (line,) = until(lambda: lines(server), "a line of the log")
            assert "accept_other_names" in line["why"]


# -- attacks ----------------------------------------------------------------------------------------------


def test_thousands_of_invented_names_with_hostile_labels(tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    label, port = "\x1b]0;owned\x07\x1b[2J\u202e" * 12, free_port()
    with process(tmp_path / "alpha", "--queue", ORDERS, "--metrics", f"{ADDRESS}:{port}") as server:
        with Session.opened((server.address, server.port)) as peer:
            for number in range(3_000):
                name = rf"OS:alpha\private$\n{number}"
                peer.push(Message(queue=direct(name), label=label, recoverable=True))
                if number % 20 == 19:
                    peer.until_acknowledged()
                    peer.acknowledge()
        listed = refused(server.data)
        assert len(listed) == 1_000
        assert listed[0]["queue"].endswith("n2999"), "the latest first"
        assert all(one["label"].isprintable() and len(one["label"]) <= 200 for one in listed)
        assert len(lines(server)) <= refusals.PEER_REPORTS_MAX + 1
        assert metric(port) == {'queue="other",reason="BAD_DST_Q"': 3_000}
        text = called("top", "--data", server.data, "--once").out
        assert "\x07" not in text
        server.stop()
        assert sum(line["count"] for line in lines(server)) == 3_000, "no count is lost"
        assert "\\u001b" not in json.dumps(lines(server))
