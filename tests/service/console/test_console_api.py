"""What pages see of messages and change in them, by the API."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msmqwire.constants import MessageClass
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.server import Server
from tests.support.qm.console_client import Answer, Browser, WithConsole, place, with_console
from tests.support.running import (
    LEDGER,
    ORDERS,
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


def messages(browser: Browser, queue: str) -> list[dict[str, Any]]:
    """The messages of a queue, in order, without their bodies."""
    return list(browser.told(place(queue, "messages"), limit=200, body_max=0)["items"])


def requeue(browser: Browser, queue: str, identifier: str, to: str) -> Answer:
    """Put a message into another queue."""
    return browser.post(place(queue, "messages", identifier, "requeue"), to=to)


def identifiers(browser: Browser, queue: str) -> list[str]:
    """The lookup identifiers of the messages of a queue, in order."""
    return [one["lookup_identifier"] for one in messages(browser, queue)]


# -- queues ---------------------------------------------------------------------------------------------


def test_what_is_put_into_a_queue_and_taken_out_is_counted(console: WithConsole) -> None:
    fill(console, ORDERS, *recoverable(b"1", b"2", b"3"))
    with attach(console.data) as local:
        (taken,) = local.call("receive", queue=ORDERS)["messages"]
        local.call("end", done=[taken["receipt"]])
    queues = {queue["queue"]: queue for queue in console.browser.told("queues")["items"]}
    assert [queues[ORDERS][name] for name in ("put", "taken", "messages")] == [3, 1, 2]
    assert [queues[LEDGER][name] for name in ("put", "taken", "messages")] == [0, 0, 0]
    latest = ("put", "taken")
    until(
        lambda: [console.browser.told("status")["latest"][name] for name in latest] == [3, 1],
        "the sample after it",
    )


# -- messages -------------------------------------------------------------------------------------------


def test_a_lookup_identifier_is_text_beyond_javascript_integers(console: WithConsole) -> None:
    """It can be over 2**53, where the numbers of JavaScript are no longer exact."""
    fill(console, ORDERS, message(b"low", priority=0), message(b"high", priority=7))
    first, second = identifiers(console.browser, ORDERS)
    assert int(second) > 1 << 53
    shown = console.browser.told(place(ORDERS, "messages", second, "preview"))
    assert (shown["lookup_identifier"], shown["preview"]["text"]) == (second, "low")
    assert first != second


def test_large_bodies_make_no_page_large(console: WithConsole) -> None:
    for number in range(4):
        fill(console, ORDERS, message(bytes(3 << 20), label=f"{number}", delivery="recoverable"))
    labels, cursor = [], ""
    while cursor is not None:
        answer = console.browser.get(
            place(ORDERS, "messages"), limit=10, body_max=0, **({"cursor": cursor} if cursor else {})
        )
        assert len(answer.body) < 10_000
        labels += [one["label"] for one in answer.told["items"]]
        cursor = answer.told["next"]
    assert labels == ["0", "1", "2", "3"]


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
    shown = console.browser.told(place(ORDERS, "messages", identifier, "preview"))
    preview = shown["preview"]
    assert (preview["format"], preview["text"], preview["note"]) == (kind, text, None)
    assert bytes.fromhex(preview["hex"]) == body
    assert "body" not in shown
    answer = console.browser.get(place(ORDERS, "messages", identifier, "body"))
    assert answer.body == body
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="body.bin"'


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_of_a_large_body_the_beginning_is_decoded(console: WithConsole, before: int) -> None:
    text = "a" * before + "€" * 100_000
    body = text.encode()
    fill(console, ORDERS, message(body))
    (identifier,) = identifiers(console.browser, ORDERS)
    preview = console.browser.told(place(ORDERS, "messages", identifier, "preview"))["preview"]
    assert preview["format"] == "text"
    assert preview["note"] == f"the first 65,536 of {len(body):,} bytes"
    assert preview["text"] == body[:65536].decode(errors="ignore")
    assert bytes.fromhex(preview["hex"]) == body[:4096]
    assert console.browser.get(place(ORDERS, "messages", identifier, "body")).body == body


def test_a_message_that_somebody_receives_can_t_be_looked_at(console: WithConsole) -> None:
    fill(console, ORDERS, message(b"x"))
    (identifier,) = identifiers(console.browser, ORDERS)
    with attach(console.data) as local:
        local.call("receive", queue=ORDERS)
        answer = console.browser.get(place(ORDERS, "messages", identifier, "preview"))
        assert answer.status == 404
    where = place(ORDERS, "messages", identifier, "preview")
    until(lambda: console.browser.get(where).status == 200, "the message that was returned")


# -- changes --------------------------------------------------------------------------------------------


def test_deleting_one_message_tells_its_sender(console: WithConsole) -> None:
    admin = rf"DIRECT=OS:alpha\{ORDERS}"
    with attach(console.data) as local:
        local.call("create", queue=r"private$\work")
        asking = {"acknowledge": "full_receive", "admin_queue": admin}
        put(local, r"private$\work", *recoverable(b"1", b"2", b"3", **asking))
    second = identifiers(console.browser, r"private$\work")[1]
    answer = console.browser.delete(place(r"private$\work", "messages", second))
    assert (answer.status, answer.body) == (204, b"")
    assert peeked(console.data, r"private$\work") == [b"1", b"3"]
    told = messages(console.browser, ORDERS)
    assert [one["class"] for one in told] == [MessageClass.MQMSG_CLASS_NACK_Q_PURGED]
    again = console.browser.delete(place(r"private$\work", "messages", second))
    assert (again.status, again.told["name"]) == (404, "MQ_ERROR_MESSAGE_NOT_FOUND")


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
    answer = requeue(console.browser, ORDERS, str(before["lookup_identifier"]), r"private$\again")
    assert answer.status == 200, answer
    assert peeked(console.data, ORDERS) == [b"other"]
    with attach(console.data) as local:
        (after,) = local.call("peek", queue=r"private$\again")["messages"]
    changed = {"lookup_identifier", "destination", "arrived", "sent"}
    assert {name: after[name] for name in after if name not in changed} == {
        name: before[name] for name in before if name not in changed
    }
    assert answer.told["requeued"] == [after["identifier"]] == [before["identifier"]]


def test_the_delivery_is_that_of_the_queue_it_is_sent_to(console: WithConsole) -> None:
    fill(console, ORDERS, message(b"express"))
    (first,) = identifiers(console.browser, ORDERS)
    assert requeue(console.browser, ORDERS, first, LEDGER).status == 200
    (shown,) = messages(console.browser, LEDGER)
    assert shown["delivery"] == "transactional"
    back = requeue(console.browser, LEDGER, shown["lookup_identifier"], ORDERS)
    assert back.status == 200
    (shown,) = messages(console.browser, ORDERS)
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
        answer = requeue(console.browser, ORDERS, first, to)
        assert answer.status == status, (to, answer)
        assert peeked(console.data, ORDERS) == [b"1"]


def test_a_dead_letter_is_sent_again_as_a_normal_message(console: WithConsole) -> None:
    to = r"DIRECT=OS:nowhere.invalid\private$\x"
    with attach(console.data) as local:
        expiring = recoverable(b"late", label="late", dead_letter=True, time_to_reach_queue=1)
        local.call("send", to=to, messages=expiring)
    until(lambda: listed(console.data)[DEAD]["messages"] == 1, "a dead letter")
    (dead,) = messages(console.browser, DEAD)
    answer = requeue(console.browser, DEAD, dead["lookup_identifier"], ORDERS)
    assert answer.status == 200, answer
    assert listed(console.data)[DEAD]["messages"] == 0
    (shown,) = messages(console.browser, ORDERS)
    assert (shown["label"], shown["class_name"], shown["body_size"]) == ("late", "NORMAL", 4)


def test_what_was_sent_elsewhere_survives_the_server(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with with_console(data, ORDERS, r"private$\again", write=True) as console:
        fill(console, ORDERS, *recoverable(b"1"))
        (first,) = identifiers(console.browser, ORDERS)
        requeue(console.browser, ORDERS, first, r"private$\again")
    assert (peeked(data, ORDERS), peeked(data, r"private$\again")) == ([], [b"1"])


def test_an_outgoing_queue_is_paused_and_resumed(console: WithConsole) -> None:
    to = r"DIRECT=OS:nowhere.invalid\PRIVATE$\x"
    with attach(console.data) as local:
        local.call("send", to=to, messages=recoverable(b"1"))
    assert console.browser.patch(place(to), paused=True).told["state"] == "OnHold"
    assert console.browser.told(place(to))["state"] == "OnHold"
    (queue,) = console.browser.told("outgoing")["items"]
    assert (queue["queue"], queue["state"], queue["messages"]) == (to, "OnHold", 1)
    assert console.browser.patch(place(to), paused=False).told["state"] != "OnHold"
    refused = console.browser.patch(place(ORDERS), paused=True)
    assert (refused.status, refused.told["path"]) == (400, "paused")


def test_an_outgoing_message_can_be_viewed_but_not_resent(console: WithConsole) -> None:
    to = r"DIRECT=OS:nowhere.invalid\PRIVATE$\x"
    with attach(console.data) as local:
        local.call("send", to=to, messages=recoverable(b"1"))
    (identifier,) = identifiers(console.browser, to)
    shown = console.browser.told(place(to, "messages", identifier, "preview"))
    assert shown["preview"]["text"] == "1"
    answer = requeue(console.browser, to, identifier, ORDERS)
    assert (answer.status, answer.told["detail"]) == (409, f"{to}: it is under way already")
    assert console.browser.post(place(to, "purge")).told["purged"] == 1


def test_nothing_stays_open_behind_a_request(console: WithConsole) -> None:
    fill(console, ORDERS, *recoverable(b"1"))
    (identifier,) = identifiers(console.browser, ORDERS)
    console.browser.get(place(ORDERS, "messages", identifier, "preview"))
    console.browser.delete(place(ORDERS, "messages", identifier))
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
        (session,) = console.browser.told("sessions")["items"]
        assert (session["state"], session["role"], session["address"]) == ("OPEN", "initiator", beta.address)
        until(
            lambda: console.browser.told("sessions")["items"][0]["sent_unacknowledged"] == 0,
            "acknowledgements",
        )
        (queue,) = console.browser.told("outgoing")["items"]
        assert (queue["state"], queue["put"], queue["taken"]) == ("Connected", 5, 5)
        history = console.browser.told(place(queue["queue"]))["connection_history"]
        assert history[0]["status"] == "Established"
        until(lambda: console.browser.told("status")["latest"]["bytes_sent"] > 500, "the sample after it")


def test_the_log_by_level_and_what_the_console_has_changed(console: WithConsole) -> None:
    logger = logging.getLogger("msmqwire.qm")
    before = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        console.browser.post(place(ORDERS, "purge"))
        console.browser.post(place(r"private$\none", "purge"))
        told = console.browser.told("log", level="info")
        last = told["lines"][-2:]
        assert [(line["level"], line["event"], line["queue"]) for line in last] == [
            ("info", "API: purge", ORDERS),
            ("warning", "API: purge refused", r"private$\none"),
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
