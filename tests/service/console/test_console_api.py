"""What the console tells of a queue manager, and what it changes."""

from __future__ import annotations

import json
import logging
import socket
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msmqwire.constants import MessageClass
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.server import Server
from tests.support.qm.console_client import Browser, WithConsole, with_console
from tests.support.running import (
    LEDGER,
    ORDERS,
    PATIENCE_S,
    bodies,
    listed,
    message,
    options,
    peeked,
    put,
    recoverable,
    served,
    until,
)

POISON = rf"{ORDERS};poison"
DEAD = "system$;deadletter"


@pytest.fixture
def console(tmp_path: Path) -> Iterator[WithConsole]:
    with with_console(tmp_path / "data", write=True) as running:
        yield running


def fill(console: WithConsole, queue: str, *messages: dict[str, Any]) -> list[str]:
    """Put messages into a queue; return their identifiers."""
    with attach(console.data) as local:
        return put(local, queue, *messages)


def identifiers(browser: Browser, queue: str) -> list[str]:
    """The lookup identifiers of the messages of a queue, in order."""
    told = browser.told("messages", queue=queue, count=100)
    return [one["lookup_identifier"] for one in told["messages"]]


# -- queues ---------------------------------------------------------------------------------------------


def test_the_status_of_the_queue_manager(console: WithConsole) -> None:
    fill(console, ORDERS, *recoverable(b"1", b"2"))
    told = console.browser.told("status")
    assert (told["name"], told["messages"], told["queues"], told["sessions"]) == ("alpha", 2, 5, 0)
    assert told["groups"]["application"]["queues"] == 2
    assert told["groups"]["application"]["messages"] == 2
    assert told["groups"]["application"]["bytes"] == told["used"] > 0
    assert told["disk"]["accepts"] is True


def test_queues_are_found_sorted_and_listed_by_page(console: WithConsole) -> None:
    with attach(console.data) as local:
        for number in range(7):
            local.call("create", queue=rf"private$\branch{number}", label=f"Branch {number % 2}")
        put(local, r"private$\branch3", *recoverable(b"x"))
        put(local, r"private$\branch5", *recoverable(b"x", b"y"))
    browser = console.browser

    def names(**query: Any) -> tuple[list[str], int]:
        told = browser.told("queues", group="application", **query)
        return [queue["queue"].removeprefix("private$\\") for queue in told["queues"]], told["total"]

    everything = [*(f"branch{number}" for number in range(7)), "ledger", "orders"]
    assert names() == (everything, 9)
    assert names(offset=3, count=2) == (everything[3:5], 9)
    assert names(find="BRANCH 1") == (["branch1", "branch3", "branch5"], 3)
    assert names(find="dg") == (["ledger"], 1)
    assert names(sort="messages", descending="true", count=3) == (["branch5", "branch3", "branch0"], 9)
    assert names(sort="queue", descending="true", count=2) == (["orders", "ledger"], 9)
    assert names(offset=9) == ([], 9)


def test_groups_of_queues(console: WithConsole) -> None:
    fill(console, ORDERS, *recoverable(b"1"))
    told = {
        group: [queue["queue"] for queue in console.browser.told("queues", group=group)["queues"]]
        for group in ("system", "journals", "outgoing")
    }
    assert told == {
        "system": [DEAD, "system$;deadxact", "system$;journal"],
        "journals": [f"{LEDGER};journal", f"{ORDERS};journal"],
        "outgoing": [],
    }


def test_what_is_put_into_a_queue_and_taken_out_is_counted(console: WithConsole) -> None:
    fill(console, ORDERS, *recoverable(b"1", b"2", b"3"))
    with attach(console.data) as local:
        (taken,) = local.call("receive", queue=ORDERS)["messages"]
        local.call("end", done=[taken["receipt"]])
    queues = {queue["queue"]: queue for queue in console.browser.told("queues")["queues"]}
    assert [queues[ORDERS][name] for name in ("put", "taken", "messages")] == [3, 1, 2]
    assert [queues[LEDGER][name] for name in ("put", "taken", "messages")] == [0, 0, 0]
    counters = console.browser.told("activity")["counters"]
    assert (counters["put"], counters["taken"]) == (3, 1)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"count": "0"}, "count"),
        ({"count": "201"}, "count"),
        ({"count": "x"}, "count"),
        ({"offset": "-1"}, "offset"),
        ({"offset": "9" * 30}, "offset"),
        ({"sort": "nothing"}, "sort"),
        ({"group": "nothing"}, "group"),
        ({"find": "x" * 257}, "find"),
    ],
)
def test_a_wrong_question_about_queues(console: WithConsole, query: dict[str, str], path: str) -> None:
    answer = console.browser.get("queues", **query)
    assert (answer.status, answer.told["path"]) == (400, path)


def test_a_queue_with_its_properties(console: WithConsole) -> None:
    with attach(console.data) as local:
        shown = local.call("show", queue=ORDERS)
    assert console.browser.told("queue", queue=ORDERS) == shown
    missing = console.browser.get("queue", queue=r"private$\none")
    assert (missing.status, missing.told["hresult"]) == (404, "0xC00E0003")


@pytest.mark.parametrize("name", ["queue", "messages", "message", "body"])
def test_looking_makes_no_queue(console: WithConsole, name: str) -> None:
    before = set(listed(console.data))
    for queue in (POISON, r"DIRECT=OS:beta\private$\x", r"DIRECT=TCP:192.0.2.1\x", "DIRECT=HTTP://x/msmq/y"):
        assert console.browser.get(name, queue=queue, lookup_identifier=1).status == 404
    for queue in ("", "a\\b\\c\\d", "DIRECT="):
        assert console.browser.get(name, queue=queue, lookup_identifier=1).status == 400
    assert set(listed(console.data)) == before


# -- messages -------------------------------------------------------------------------------------------


def test_messages_page_by_page(console: WithConsole) -> None:
    fill(console, ORDERS, *(message(b"x", label=f"{number}", priority=number % 3) for number in range(25)))
    labels, after = [], ""
    for _ in range(3):
        told = console.browser.told("messages", queue=ORDERS, count=10, after=after)
        labels.append([one["label"] for one in told["messages"]])
        after = told["messages"][-1]["lookup_identifier"]
        assert told["total"] == 25
        assert told["more"] is (len(labels) < 3)
        assert {one["body"] for one in told["messages"]} == {""}
        assert {one["body_size"] for one in told["messages"]} == {1}
    expected = [f"{number}" for priority in (2, 1, 0) for number in range(25) if number % 3 == priority]
    assert labels == [expected[:10], expected[10:20], expected[20:]]


def test_a_lookup_identifier_is_text_beyond_javascript_integers(console: WithConsole) -> None:
    """It can be over 2**53, where the numbers of JavaScript are no longer exact."""
    fill(console, ORDERS, message(b"low", priority=0), message(b"high", priority=7))
    first, second = identifiers(console.browser, ORDERS)
    assert int(second) > 1 << 53
    shown = console.browser.told("message", queue=ORDERS, lookup_identifier=second)
    assert (shown["lookup_identifier"], shown["preview"]["text"]) == (second, "low")
    assert first != second


def test_large_bodies_make_a_page_shorter_and_lose_no_message(console: WithConsole) -> None:
    for number in range(4):
        fill(console, ORDERS, message(bytes(3 << 20), label=f"{number}", delivery="recoverable"))
    first = console.browser.told("messages", queue=ORDERS, count=10)
    assert [one["label"] for one in first["messages"]] == ["0", "1", "2"]
    assert first["more"] is True
    last = first["messages"][-1]["lookup_identifier"]
    second = console.browser.told("messages", queue=ORDERS, count=10, after=last)
    assert [one["label"] for one in second["messages"]] == ["3"]
    assert second["more"] is False


@pytest.mark.parametrize(
    ("body", "body_type", "kind", "text"),
    [
        (b"plain", 0, "text", "plain"),
        ("äöü".encode("utf-16-le"), 8, "activex", "äöü"),
        (b"\x07\x00\x00\x00", 3, "activex", "7"),
        (b"<?xml version='1.0'?><string>x</string>", 0, "xml", "x"),
        (b"\x00\xff\x01", 0, "bytes", None),
        (b"", 0, "bytes", ""),
    ],
)
def test_a_body_by_its_type(
    console: WithConsole, body: bytes, body_type: int, kind: str, text: str | None
) -> None:
    fill(console, ORDERS, message(body, body_type=body_type))
    (identifier,) = identifiers(console.browser, ORDERS)
    shown = console.browser.told("message", queue=ORDERS, lookup_identifier=identifier)
    preview = shown["preview"]
    assert (preview["format"], preview["text"], preview["note"]) == (kind, text, None)
    assert bytes.fromhex(preview["hex"]) == body
    assert "body" not in shown
    answer = console.browser.get("body", queue=ORDERS, lookup_identifier=identifier)
    assert answer.body == body
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="body.bin"'


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_of_a_large_body_the_beginning_is_decoded(console: WithConsole, before: int) -> None:
    text = "a" * before + "€" * 100_000
    body = text.encode()
    fill(console, ORDERS, message(body))
    (identifier,) = identifiers(console.browser, ORDERS)
    preview = console.browser.told("message", queue=ORDERS, lookup_identifier=identifier)["preview"]
    assert preview["format"] == "text"
    assert preview["note"] == f"the first 65,536 of {len(body):,} bytes"
    assert preview["text"] == body[:65536].decode(errors="ignore")
    assert bytes.fromhex(preview["hex"]) == body[:4096]
    assert console.browser.get("body", queue=ORDERS, lookup_identifier=identifier).body == body


def test_a_message_that_somebody_receives_can_t_be_looked_at(console: WithConsole) -> None:
    fill(console, ORDERS, message(b"x"))
    (identifier,) = identifiers(console.browser, ORDERS)
    with attach(console.data) as local:
        local.call("receive", queue=ORDERS)
        answer = console.browser.get("message", queue=ORDERS, lookup_identifier=identifier)
        assert answer.status == 404
    asked = {"queue": ORDERS, "lookup_identifier": identifier}
    until(lambda: console.browser.get("message", **asked).status == 200, "the message that was returned")


@pytest.mark.parametrize("identifier", ["", "x", "-1", "1.5", "9" * 21, str(1 << 64)])
def test_a_wrong_lookup_identifier(console: WithConsole, identifier: str) -> None:
    answer = console.browser.get("message", queue=ORDERS, lookup_identifier=identifier)
    assert (answer.status, answer.told["path"]) == (400, "lookup_identifier")


# -- changes --------------------------------------------------------------------------------------------


def test_purging_a_queue(console: WithConsole) -> None:
    fill(console, ORDERS, *recoverable(b"1", b"2"))
    assert console.browser.post("purge", queue=ORDERS).told == {"queue": ORDERS, "purged": 2}
    assert peeked(console.data, ORDERS) == []


def test_deleting_one_message_tells_its_sender(console: WithConsole) -> None:
    admin = rf"DIRECT=OS:alpha\{ORDERS}"
    with attach(console.data) as local:
        local.call("create", queue=r"private$\work")
        asking = {"acknowledge": "full_receive", "admin_queue": admin}
        put(local, r"private$\work", *recoverable(b"1", b"2", b"3", **asking))
    second = identifiers(console.browser, r"private$\work")[1]
    answer = console.browser.post("delete", queue=r"private$\work", lookup_identifier=second)
    assert answer.told == {"queue": r"private$\work", "purged": 1}
    assert peeked(console.data, r"private$\work") == [b"1", b"3"]
    told = console.browser.told("messages", queue=ORDERS)["messages"]
    assert [one["class"] for one in told] == [MessageClass.MQMSG_CLASS_NACK_Q_PURGED]
    again = console.browser.post("delete", queue=r"private$\work", lookup_identifier=second)
    assert (again.status, again.told["hresult"]) == (404, "0xC00E0088")


def test_moving_a_message_to_a_subqueue_and_back(console: WithConsole) -> None:
    fill(console, ORDERS, *recoverable(b"1", b"2"))
    first, _ = identifiers(console.browser, ORDERS)
    with attach(console.data) as local:
        (before, _) = local.call("peek", queue=ORDERS, count=2)["messages"]
    assert console.browser.post("move", queue=ORDERS, lookup_identifier=first, to=POISON).told == {
        "moved": [before["identifier"]]
    }
    assert (peeked(console.data, ORDERS), peeked(console.data, POISON)) == ([b"2"], [b"1"])
    (moved,) = identifiers(console.browser, POISON)
    assert console.browser.post("move", queue=POISON, lookup_identifier=moved, to=ORDERS).status == 200
    assert sorted(peeked(console.data, ORDERS)) == [b"1", b"2"]
    elsewhere = console.browser.post(
        "move", queue=ORDERS, lookup_identifier=identifiers(console.browser, ORDERS)[0], to=LEDGER
    )
    assert (elsewhere.status, "a queue and its subqueues only" in elsewhere.told["error"]) == (409, True)


def test_a_message_is_sent_to_another_queue_with_its_properties(console: WithConsole) -> None:
    sent = {
        "label": "order 7", "body_type": 8, "application": 77, "correlation": "ab" * 20, "priority": 6,
        "response_queue": r"DIRECT=OS:alpha\private$\answers", "extension": b64encode(b"more").decode(),
        "journal": True, "time_to_be_received": 1000,
    }  # fmt: skip
    fill(console, ORDERS, message("ä".encode("utf-16-le"), **sent), message(b"other"))
    with attach(console.data) as local:
        local.call("create", queue=r"private$\again")
        (before, _) = local.call("peek", queue=ORDERS, count=2)["messages"]
    answer = console.browser.post(
        "resend", queue=ORDERS, lookup_identifier=str(before["lookup_identifier"]), to=r"private$\again"
    )
    assert answer.status == 200, answer
    assert peeked(console.data, ORDERS) == [b"other"]
    with attach(console.data) as local:
        (after,) = local.call("peek", queue=r"private$\again")["messages"]
    changed = {"identifier", "lookup_identifier", "destination", "arrived", "sent"}
    assert {name: after[name] for name in after if name not in changed} == {
        name: before[name] for name in before if name not in changed
    }
    assert answer.told == {"sent": [after["identifier"]]} != {"sent": [before["identifier"]]}


def test_the_delivery_is_that_of_the_queue_it_is_sent_to(console: WithConsole) -> None:
    fill(console, ORDERS, message(b"express"))
    (first,) = identifiers(console.browser, ORDERS)
    assert console.browser.post("resend", queue=ORDERS, lookup_identifier=first, to=LEDGER).status == 200
    (shown,) = console.browser.told("messages", queue=LEDGER)["messages"]
    assert shown["delivery"] == "transactional"
    back = console.browser.post(
        "resend", queue=LEDGER, lookup_identifier=shown["lookup_identifier"], to=ORDERS
    )
    assert back.status == 200
    (shown,) = console.browser.told("messages", queue=ORDERS)["messages"]
    assert (shown["delivery"], listed(console.data)[LEDGER]["messages"]) == ("recoverable", 0)


def test_a_message_that_can_t_be_sent_elsewhere_stays(console: WithConsole) -> None:
    fill(console, ORDERS, *recoverable(b"1"))
    (first,) = identifiers(console.browser, ORDERS)
    for to, status in (
        (r"private$\none", 404),
        (ORDERS, 409),
        ("a\\b\\c\\d", 400),
        ("", 400),
        (f"{ORDERS};journal", 409),
    ):
        answer = console.browser.post("resend", queue=ORDERS, lookup_identifier=first, to=to)
        assert answer.status == status, (to, answer)
        assert peeked(console.data, ORDERS) == [b"1"]


def test_a_dead_letter_is_sent_again_as_a_normal_message(console: WithConsole) -> None:
    to = r"DIRECT=OS:nowhere.invalid\private$\x"
    with attach(console.data) as local:
        expiring = recoverable(b"late", label="late", dead_letter=True, time_to_reach_queue=1)
        local.call("send", to=to, messages=expiring)
    until(lambda: listed(console.data)[DEAD]["messages"] == 1, "a dead letter")
    (dead,) = console.browser.told("messages", queue=DEAD)["messages"]
    answer = console.browser.post(
        "resend", queue=DEAD, lookup_identifier=dead["lookup_identifier"], to=ORDERS
    )
    assert answer.status == 200, answer
    assert listed(console.data)[DEAD]["messages"] == 0
    (shown,) = console.browser.told("messages", queue=ORDERS)["messages"]
    assert (shown["label"], shown["class_name"], shown["body_size"]) == ("late", "NORMAL", 4)


def test_what_was_sent_elsewhere_survives_the_server(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with with_console(data, ORDERS, r"private$\again", write=True) as console:
        fill(console, ORDERS, *recoverable(b"1"))
        (first,) = identifiers(console.browser, ORDERS)
        console.browser.post("resend", queue=ORDERS, lookup_identifier=first, to=r"private$\again")
    assert (peeked(data, ORDERS), peeked(data, r"private$\again")) == ([], [b"1"])


def test_an_outgoing_queue_is_paused_and_resumed(console: WithConsole) -> None:
    to = r"DIRECT=OS:nowhere.invalid\PRIVATE$\x"
    with attach(console.data) as local:
        local.call("send", to=to, messages=recoverable(b"1"))
    assert console.browser.post("pause", queue=to, paused=True).told["state"] == "OnHold"
    assert console.browser.told("queue", queue=to)["state"] == "OnHold"
    (queue,) = console.browser.told("queues", group="outgoing")["queues"]
    assert (queue["queue"], queue["state"], queue["messages"]) == (to, "OnHold", 1)
    assert console.browser.post("pause", queue=to, paused=False).told["state"] != "OnHold"
    refused = console.browser.post("pause", queue=ORDERS, paused=True)
    assert (refused.status, refused.told["path"]) == (400, "paused")


def test_an_outgoing_message_can_be_viewed_but_not_resent(console: WithConsole) -> None:
    to = r"DIRECT=OS:nowhere.invalid\PRIVATE$\x"
    with attach(console.data) as local:
        local.call("send", to=to, messages=recoverable(b"1"))
    (identifier,) = identifiers(console.browser, to)
    shown = console.browser.told("message", queue=to, lookup_identifier=identifier)
    assert shown["preview"]["text"] == "1"
    answer = console.browser.post("resend", queue=to, lookup_identifier=identifier, to=ORDERS)
    assert (answer.status, answer.told["error"]) == (409, f"{to}: it is under way already")
    assert console.browser.post("purge", queue=to).told["purged"] == 1


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("purge", {}),
        ("purge", {"queue": 7}),
        ("purge", {"queue": ORDERS, "lookup_identifier": "1"}),
        ("purge", {"queue": ORDERS, "op": "delete"}),
        ("delete", {"queue": ORDERS}),
        ("delete", {"queue": ORDERS, "lookup_identifier": None}),
        ("delete", {"queue": ORDERS, "lookup_identifier": 1}),
        ("move", {"queue": ORDERS, "lookup_identifier": None, "to": POISON}),
        ("move", {"queue": ORDERS, "to": POISON}),
        ("resend", {"queue": ORDERS, "lookup_identifier": "1", "to": None}),
        ("pause", {"queue": ORDERS, "paused": True, "label": "x"}),
    ],
)
def test_a_wrong_request_changes_nothing(console: WithConsole, name: str, told: dict[str, Any]) -> None:
    fill(console, ORDERS, *recoverable(b"1", b"2"))
    answer = console.browser.post(name, **told)
    assert answer.status in (400, 404), answer
    assert peeked(console.data, ORDERS) == [b"1", b"2"]
    assert POISON not in listed(console.data)


def test_nothing_stays_open_behind_a_request(console: WithConsole) -> None:
    fill(console, ORDERS, *recoverable(b"1"))
    (identifier,) = identifiers(console.browser, ORDERS)
    console.browser.get("message", queue=ORDERS, lookup_identifier=identifier)
    console.browser.post("delete", queue=ORDERS, lookup_identifier=identifier)
    assert listed(console.data)[ORDERS]["open"] == 0


# -- sessions, transactions, samples, log ---------------------------------------------------------------


def test_sessions_of_two_servers(console: WithConsole, tmp_path: Path) -> None:
    with served(options(tmp_path / "beta", ORDERS, name="beta", address="127.0.0.32")) as beta:
        to = rf"DIRECT=TCP:{beta.address}\{ORDERS}"

        def redirect(server: Server) -> None:
            assert server.network is not None
            server.network._overrides.hosts[beta.address] = (beta.address, beta.port)  # type: ignore[index]

        console.server.do(redirect)
        with attach(console.data) as local:
            local.call("send", to=to, messages=recoverable(*(b"x" for _ in range(5))))
        until(lambda: len(peeked(beta.data, ORDERS)) == 5, "five messages")
        (session,) = console.browser.told("activity")["sessions"]
        assert (session["state"], session["role"], session["address"]) == ("OPEN", "initiator", beta.address)
        until(
            lambda: console.browser.told("activity")["sessions"][0]["sent_unacknowledged"] == 0,
            "acknowledgements",
        )
        (queue,) = console.browser.told("queues", group="outgoing")["queues"]
        assert (queue["state"], queue["put"], queue["taken"]) == ("Connected", 5, 5)
        history = console.browser.told("queue", queue=queue["queue"])["connection_history"]
        assert history[0]["status"] == "Established"
        assert console.browser.told("activity")["counters"]["bytes_sent"] > 500


def test_transactions_that_have_not_ended(console: WithConsole) -> None:
    assert console.browser.told("activity")["transactions"] == []
    with attach(console.data) as local:
        named = local.call("begin")["transaction"]
        messages = [message(b"1", delivery="transactional"), message(b"2", delivery="transactional")]
        local.call("send", to=rf"DIRECT=OS:.\{LEDGER}", messages=messages, transaction=named)
        told = console.browser.told("activity")
        assert told["transactions"] == [
            {
                "transaction": named,
                "operations": 2,
                "kinds": {"enqueue": 2},
                "coordinator": False,
                "prepared": False,
            }
        ]
        assert told["transactions_total"] == 1
        assert console.browser.told("activity", offset=1)["transactions"] == []
        local.call("commit", transaction=named)
    assert console.browser.told("activity")["transactions_total"] == 0


def test_samples_grow_and_are_streamed(console: WithConsole) -> None:
    fill(console, ORDERS, *recoverable(b"1", b"2", b"3"))
    stream = socket.create_connection((console.browser.address, console.browser.port), PATIENCE_S)
    host = f"{console.browser.address}:{console.browser.port}"
    request = f"GET /api/events HTTP/1.1\r\nHost: {host}\r\nCookie: {console.browser.cookie}\r\n\r\n"
    stream.sendall(request.encode())
    received = b""
    while received.count(b"event: sample") < 4:
        received += stream.recv(65536)
    stream.close()
    assert b"Content-Type: text/event-stream" in received
    lines = [line for line in received.split(b"\n") if line.startswith(b"data: ") and line.endswith(b"}")]
    events = [json.loads(line.removeprefix(b"data: ")) for line in lines]
    assert [event["time"] for event in events] == sorted({event["time"] for event in events})
    assert (events[-1]["messages"], events[-1]["put"]) == (3, 3)
    columns = console.browser.told("samples")
    assert {len(column) for column in columns.values()} == {len(columns["time"])}
    assert columns["messages"][0] == 0
    assert columns["messages"][-1] == 3
    assert events[-1]["time"] in columns["time"]


def test_the_log_by_level_and_what_the_console_has_changed(console: WithConsole) -> None:
    logger = logging.getLogger("msmqwire.qm")
    before = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        console.browser.post("purge", queue=ORDERS)
        console.browser.post("purge", queue=r"private$\none")
        told = console.browser.told("log", level="info")
        last = told["lines"][-2:]
        assert [(line["level"], line["event"], line["queue"]) for line in last] == [
            ("info", "console: purge", ORDERS),
            ("warning", "console: purge refused", r"private$\none"),
        ]
        assert told["last"] == last[-1]["number"]
        assert [line["level"] for line in console.browser.told("log", level="warning")["lines"]] == [
            "warning"
        ]
        assert console.browser.told("log", after=told["last"])["lines"] == []
    finally:
        logger.setLevel(before)
    assert console.browser.get("log", level="loud").status == 400


def test_control_channel_bodies_are_whole_unless_limited(console: WithConsole) -> None:
    fill(console, ORDERS, message(b"12345"))
    with attach(console.data) as local:
        (whole,) = local.call("peek", queue=ORDERS)["messages"]
        (part,) = local.call("peek", queue=ORDERS, body_max=2)["messages"]
    assert bodies([whole, part]) == [b"12345", b"12"]
    assert "body_size" not in whole
    assert part["body_size"] == 5
