"""Commands on the queues of a folder: the same results through a server as on the store alone."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from msmqwire.qm.runtime.local import attach
from tests.support.running import (
    LEDGER,
    ORDERS,
    Run,
    begun,
    bodies,
    called,
    ended,
    listed,
    message,
    peeked,
    process,
    put,
    recoverable,
    until,
)

TO_ORDERS = rf"DIRECT=OS:.\{ORDERS}"
TO_LEDGER = rf"DIRECT=OS:.\{LEDGER}"
AWAY = r"DIRECT=OS:away.invalid\private$\orders"
QUEUE_KEYS = {
    "delivery_limit", "poison", "policies", "time_to_live", "when_full",
    "queue", "kind", "messages", "bytes", "format_name", "identifier", "label", "transactional", "journal",
    "journal_messages", "quota", "journal_quota", "authenticated", "privacy", "base_priority", "type",
    "multicast", "subqueues", "open", "owner", "allow", "deny",
}  # fmt: skip


@pytest.fixture(params=["served", "store"])
def folder(request: pytest.FixtureRequest, data: Path) -> Iterator[Path]:
    """A folder with two queues, with and without a server."""
    with ExitStack() as stack:
        with process(data, "--queue", ORDERS, "--queue", f"{LEDGER};transactional") as server:
            if request.param == "store":
                server.stop()
        if request.param == "served":
            stack.enter_context(process(data))
        yield data


def run(folder: Path, *arguments: str | Path, data: bytes = b"") -> Run:
    return called(*arguments, "--data", folder, data=data)


def sent(folder: Path, *arguments: str, to: str = TO_ORDERS) -> list[str]:
    """Send messages with the command; return their identifiers."""
    messages = run(folder, "send", to, *arguments).lines
    assert all(message["acknowledgements"] == [] for message in messages)
    return [message["identifier"] for message in messages]


# -- queues ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMQ-2.3.1.2-01", "MQMQ-2.3.1.6-02", "MQMQ-2.3.1.6-03")
def test_a_queue_is_made_shown_changed_and_deleted(folder: Path) -> None:
    created = run(
        folder, "queue", "create", r"private$\New-One", "--label", "caf\xe9 \N{SNOWMAN}", "--quota", "100",
        "--journal", "--journal-quota", "50", "--privacy", "body", "--base-priority", "-7",
        "--type", "12345678-1234-1234-1234-123456789abc", "--json",
    ).one  # fmt: skip
    assert set(created) == QUEUE_KEYS
    expected = {
        "queue": r"private$\New-One", "kind": "private", "messages": 0, "bytes": 0, "transactional": False,
        "label": "caf\xe9 \N{SNOWMAN}", "quota": 100, "journal": True, "journal_quota": 50, "privacy": "body",
        "base_priority": 0, "type": "12345678-1234-1234-1234-123456789abc", "authenticated": False,
    }  # fmt: skip
    assert {name: created[name] for name in expected} == expected
    assert run(folder, "queue", "show", r"PRIVATE$\new-one").one == created
    unchanged = run(folder, "queue", "set", r"private$\new-one", "--base-priority", "5").one
    assert unchanged == created, "it is for public queues"
    changed = run(
        folder, "queue", "set", r"private$\new-one", "--label", "", "--quota", "none", "--no-journal",
        "--authenticated", "--privacy", "none", "--type", "12345678-1234-1234-1234-123456789abd",
    ).one  # fmt: skip
    assert changed == {
        **created, "label": "", "quota": None, "journal": False, "authenticated": True, "privacy": "none",
        "type": "12345678-1234-1234-1234-123456789abd",
    }  # fmt: skip
    assert run(folder, "queue", "show", created["format_name"]).one == changed
    assert run(folder, "queue", "delete", r"private$\New-One").one == {
        "queue": r"private$\New-One", "deleted": 0,
    }  # fmt: skip
    error = run(folder, "queue", "show", r"private$\New-One").error(66)
    assert error["name"] == "MQ_ERROR_QUEUE_NOT_FOUND"


def test_a_list_has_every_queue_by_name(folder: Path) -> None:
    queues = run(folder, "queue", "list", "--json").lines
    assert [(queue["queue"], queue["kind"], queue["transactional"]) for queue in queues] == [
        (LEDGER, "private", True),
        (ORDERS, "private", False),
        ("system$;deadletter", "system", False),
        ("system$;deadxact", "system", True),
        ("system$;journal", "system", False),
    ]
    assert all(set(queue) == QUEUE_KEYS for queue in queues)


def test_a_purged_queue_is_empty(folder: Path) -> None:
    sent(folder, "--recoverable", "--count", "5", "--body", "x")
    assert run(folder, "queue", "purge", ORDERS, "--yes").one == {"queue": ORDERS, "purged": 5}
    assert run(folder, "queue", "purge", ORDERS).one == {"queue": ORDERS, "purged": 0}
    assert run(folder, "peek", ORDERS).lines == []


def test_a_queue_with_messages_is_deleted_with_them(folder: Path) -> None:
    sent(folder, "--recoverable", "--count", "3")
    assert run(folder, "queue", "delete", ORDERS, "-y").one == {"queue": ORDERS, "deleted": 3}
    run(folder, "queue", "create", ORDERS)
    assert run(folder, "peek", ORDERS).lines == []


# -- messages -------------------------------------------------------------------------------------------


def test_messages_are_read_in_order_and_up_to_the_count(folder: Path) -> None:
    identifiers = [sent(folder, "--recoverable", "--body", str(number))[0] for number in range(4)]
    peeked = run(folder, "peek", ORDERS, "--count", "3", "--json").lines
    assert [message["identifier"] for message in peeked] == identifiers[:3]
    assert run(folder, "receive", ORDERS, "--count", "3").lines == peeked
    assert bodies(run(folder, "receive", ORDERS, "--count", "3").lines) == [b"3"]
    assert run(folder, "receive", ORDERS).lines == []
    assert run(folder, "receive", ORDERS, "--timeout", "0.1").lines == []


def test_more_messages_than_a_request_has(folder: Path) -> None:
    identifiers = sent(folder, "--recoverable", "--count", "250")
    assert [
        message["identifier"] for message in run(folder, "peek", ORDERS, "--count", "9999").lines
    ] == identifiers
    assert [
        message["identifier"] for message in run(folder, "receive", ORDERS, "--count", "240").lines
    ] == identifiers[:240]
    assert len(peeked(folder, ORDERS)) == 10


def test_the_higher_priority_comes_first(folder: Path) -> None:
    for priority in ("0", "7", "3"):
        sent(folder, "--recoverable", "--priority", priority, "--body", priority)
    assert bodies(run(folder, "receive", ORDERS, "--count", "3").lines) == [b"7", b"3", b"0"]


def test_messages_move_between_a_queue_and_its_subqueues(folder: Path) -> None:
    identifiers = sent(folder, "--transactional", "--count", "4", to=TO_LEDGER)
    poison = f"{LEDGER};poison"
    moved = run(folder, "move", LEDGER, poison, "--count", "2").lines
    assert moved == [{"identifier": identifier, "to": poison} for identifier in identifiers[:2]]
    moved = run(folder, "move", LEDGER, poison, "--identifier", identifiers[3], "--json").lines
    assert moved == [{"identifier": identifiers[3], "to": poison}]
    assert run(folder, "queue", "show", LEDGER).one["subqueues"] == {"poison": 3}
    peeked = [message["identifier"] for message in run(folder, "peek", poison, "--count", "9").lines]
    assert peeked == [identifiers[0], identifiers[1], identifiers[3]]
    run(folder, "move", poison, LEDGER, "--count", "9")
    assert len(run(folder, "peek", LEDGER, "--count", "9").lines) == 4
    assert run(folder, "move", poison, LEDGER).lines == []


def test_journals_and_dead_letter_queues_can_be_read(folder: Path) -> None:
    run(folder, "queue", "set", ORDERS, "--journal")
    sent(folder, "--recoverable", "--body", "received")
    run(folder, "receive", ORDERS)
    assert bodies(run(folder, "receive", f"{ORDERS};journal").lines) == [b"received"]
    sent(folder, "--recoverable", "--dead-letter", "--reach-within", "0", "--body", "late", to=AWAY)
    sent(folder, "--transactional", "--dead-letter", "--reach-within", "0", "--body", "late too", to=AWAY)
    for queue, body in (("system$;deadletter", b"late"), ("system$;deadxact", b"late too")):
        until(lambda queue=queue: peeked(folder, queue), f"{queue} has it")
        (received,) = run(folder, "receive", queue).lines
        assert b64decode(received["body"]) == body
    assert peeked(folder, "system$;journal") == []


def test_a_waiting_receive_gets_what_comes_later(alpha) -> None:
    waiting = begun("receive", ORDERS, "--data", alpha.data, "--count", "2", "--timeout", "3600")
    until(lambda: listed(alpha.data)[ORDERS]["open"] == 1, "the command waits")
    peeking = begun("peek", LEDGER, "--data", alpha.data, "--timeout", "3600")
    until(lambda: listed(alpha.data)[LEDGER]["open"] == 1, "the command waits")
    with attach(alpha.data) as local:
        put(local, ORDERS, *recoverable(b"1"))
        assert waiting.stdout is not None
        assert bodies([json.loads(waiting.stdout.readline())]) == [b"1"]
        put(local, ORDERS, message(b"2"))
        put(local, LEDGER, message(b"3", delivery="transactional"))
    assert bodies(ended(waiting).lines) == [b"2"]
    assert bodies(ended(peeking).lines) == [b"3"]
    assert (peeked(alpha.data, ORDERS), peeked(alpha.data, LEDGER)) == ([], [b"3"])


# -- sending --------------------------------------------------------------------------------------------


def test_the_body_is_a_text_a_file_or_standard_input(folder: Path, tmp_path: Path) -> None:
    content = bytes(range(256)) * 10
    (tmp_path / "body").write_bytes(content)
    sent(folder, "--recoverable", "--body", "caf\xe9")
    sent(folder, "--recoverable", "--file", str(tmp_path / "body"))
    run(folder, "send", TO_ORDERS, "--recoverable", "--count", "2", "--file", "-", data=content)
    sent(folder, "--recoverable")
    sent(folder, "--recoverable", "--bstr", "--body", "\N{SNOWMAN}")
    received = run(folder, "receive", ORDERS, "--count", "9").lines
    assert bodies(received) == [
        "caf\xe9".encode(),
        content,
        content,
        content,
        b"",
        "\N{SNOWMAN}".encode("utf-16-le"),
    ]
    assert [message["body_type"] for message in received] == [0, 0, 0, 0, 0, 8]


def test_large_messages_are_sent_many_at_once(folder: Path) -> None:
    body = b"x" * 3_500_000
    messages = run(folder, "send", TO_ORDERS, "--recoverable", "--count", "6", "--file", "-", data=body).lines
    assert len(messages) == 6
    assert peeked(folder, ORDERS)[0] == body
    assert len(run(folder, "receive", ORDERS, "--count", "9").lines) == 6


def test_what_a_full_queue_does_not_take_is_said(folder: Path) -> None:
    run(folder, "queue", "set", ORDERS, "--quota", "2")
    result = run(folder, "send", TO_ORDERS, "--recoverable", "--count", "9", "--body", "x" * 500)
    assert result.status == 69
    error = json.loads(result.err)
    assert error["error"] == "the quota of the queue is used up"
    assert error["name"] == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    assert 0 < len(result.out.splitlines()) == len(peeked(folder, ORDERS)) < 9


def test_an_unserved_folder_refuses_an_express_message(data: Path) -> None:
    run(data, "queue", "create", ORDERS)
    error = run(data, "send", TO_ORDERS, "--body", "x").error(65)
    assert error["path"] == "delivery"
    assert "no server runs for this folder" in error["error"]
    with process(data, name=listed_name(data)):
        sent(data, "--body", "x")
        assert peeked(data, ORDERS) == [b"x"]


def listed_name(data: Path) -> str:
    with attach(data) as local:
        name: str = local.call("status")["name"]
        return name


def test_the_extension_is_bytes_too(folder: Path) -> None:
    with attach(folder) as local:
        put(local, ORDERS, *recoverable(b"", extension=b64encode(b"\x00\xff").decode()), computer=".")
    assert run(folder, "receive", ORDERS).one["extension"] == "AP8="
