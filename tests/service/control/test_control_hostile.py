"""The control channel: invalid requests and values are answered with errors and harm no other client."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmqwire.qm.runtime import held_messages, session_reads, session_transactions
from msmqwire.qm.runtime.data_folder import DataFolder
from msmqwire.service.control import server as control
from tests.support.patience import limit
from tests.support.qm.control_lines import Lines
from tests.support.running import (
    LEDGER,
    ORDERS,
    InThread,
    bodies,
    listed,
    message,
    options,
    peeked,
    recoverable,
    served,
    until,
)

TO_ORDERS = rf"DIRECT=OS:alpha\{ORDERS}"
NOBODYS = "629d266e-11e0-40fb-b8c0-a27078dc2fb7"
OPERATIONS = [
    "status",
    "create",
    "delete",
    "set",
    "purge",
    "policy_set",
    "policy_delete",
    "policy_list",
    "policy_show",
    "list",
    "queues",
    "activity",
    "show",
    "report",
    "peek",
    "receive",
    "read",
    "cancel",
    "open_cursor",
    "close_cursor",
    "end",
    "subscribe",
    "unsubscribe",
    "done",
    "begin",
    "commit",
    "abort",
    "move",
    "put_back",
    "send",
    "resend",
    "token_create",
    "token_list",
    "token_revoke",
    "refresh_keys",
    "keep_peer_keys",
    "definitions_export",
    "definitions_import",
    "options_kept",
    "options_forget",
]


@pytest.fixture
def lines(server: InThread) -> Iterator[Lines]:
    with Lines(server.data) as lines:
        yield lines


def is_well(lines: Lines) -> None:
    """Check that the server stores and delivers messages."""
    lines.ask({"op": "create", "queue": r"private$\wellbeing", "missing": True})
    to = r"DIRECT=OS:alpha\private$\wellbeing"
    assert len(lines.ask({"op": "send", "to": to, "messages": [message(b"well")]})["answer"]["sent"]) == 1
    received = lines.ask({"op": "receive", "queue": r"private$\wellbeing"})["answer"]["messages"]
    assert bodies(received) == [b"well"]
    assert lines.ask({"op": "end", "done": [received[0]["receipt"]]})["answer"] == {"ended": 1}


# -- lines ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"GET / HTTP/1.1\r",
        b"{",
        b'{"op": "status"} {"op": "status"}',
        b"\x00\xff\xfe",
        b'{"op": "\xff"}',
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b"1" * 10_000,
        b'{"id": ' + b"9" * 5_000 + b"}",
    ],
    ids=["empty", "http", "open", "two", "bytes", "not utf-8", "arrays", "objects", "digits", "long id"],
)
def test_a_line_that_is_no_json_is_answered_so(lines: Lines, line: bytes) -> None:
    lines.raw(line + b"\n")
    answer = lines.read()
    assert answer["id"] is None
    error = answer["error"]["error"]
    assert error.startswith("not JSON")
    assert not any(word in error for word in ("Expecting", "Extra data", "codec", "recursion", "digits ("))
    is_well(lines)


@pytest.mark.parametrize("value", [[], [{"op": "status"}], "status", 7, None, True, 1.5])
def test_json_that_is_no_object_is_answered_so(lines: Lines, value: object) -> None:
    assert lines.error(value) == {"error": "not an object", "path": "", "offset": None, "kind": "value"}
    is_well(lines)


def test_a_line_beyond_the_limit_ends_its_connection_alone(server: InThread, lines: Lines) -> None:
    other = lines
    with Lines(server.data) as hostile:
        hostile.ask({"op": "send", "to": TO_ORDERS, "messages": recoverable(b"1")})
        hostile.ask({"op": "receive", "queue": ORDERS})
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            hostile.raw(b"x" * (3 * control.REQUEST_MAX))
        assert hostile.is_ended()
    is_well(other)
    assert peeked(server.data, ORDERS) == [b"1"]  # the message it received is given back


def test_a_line_just_within_the_limit_is_read(lines: Lines) -> None:
    line = json.dumps({"id": 1, "op": "status"}).encode()
    lines.raw(line + b" " * (control.REQUEST_MAX - len(line) - 1) + b"\n")
    assert lines.read()["answer"]["name"] == "alpha"


def test_connections_that_say_nothing_or_half_a_line_harm_nobody(server: InThread) -> None:
    silent = [Lines(server.data) for _ in range(50)]
    for client in silent[::2]:
        client.raw(b'{"op": "status"')
    with Lines(server.data) as other:
        is_well(other)
    for client in silent:
        client.close()


def test_a_reader_that_takes_no_answers_harms_nobody(server: InThread) -> None:
    with Lines(server.data) as other:
        other.ask({"op": "send", "to": TO_ORDERS, "messages": [message(b"x" * 1_000_000)]})
        with Lines(server.data) as hostile:
            hostile.write(*({"op": "peek", "queue": ORDERS} for _ in range(100)))
            is_well(other)
        is_well(other)


# -- requests -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "op", [None, "", "nothing", "Status", 1, 1.5, True, [], ["status"], {}, {"op": "status"}]
)
def test_an_unknown_operation_is_named(lines: Lines, op: object) -> None:
    error = lines.error({"op": op})
    assert error["path"] == "op"
    assert error["error"] == f"{op!r} is none of {', '.join(OPERATIONS)}"


@pytest.mark.parametrize(
    "op",
    [
        "create",
        "delete",
        "set",
        "purge",
        "show",
        "report",
        "peek",
        "receive",
        "read",
        "open_cursor",
        "move",
        "resend",
    ],
)
@pytest.mark.parametrize("queue", [None, "", 7, [], {}, True])
def test_a_queue_that_is_not_named_is_missed(lines: Lines, op: str, queue: object) -> None:
    assert lines.error({"op": op, "queue": queue, "to": ORDERS, "action": "peek"})["path"] == "queue"


@pytest.mark.parametrize(
    "op", ["delete", "purge", "show", "peek", "receive", "read", "open_cursor", "set", "move"]
)
def test_a_queue_that_is_not_there_is_reported(lines: Lines, op: str) -> None:
    more = (
        {"to": r"private$\nothing;sub"}
        if op == "move"
        else {"action": "peek"}
        if op == "read"
        else {"label": "x"}
    )
    error = lines.error({"op": op, "queue": r"private$\nothing", **more})
    assert error["name"] == "MQ_ERROR_QUEUE_NOT_FOUND"
    assert error["hresult"] == "0xC00E0003"
    assert error["error"] == r"private$\nothing: there is no such queue"


WRONG = [
    ("body", "not base64!"),
    ("body", "\N{SNOWMAN}"),
    ("body", "YQ"),
    ("body", 7),
    ("body", ["YQ=="]),
    ("extension", "*"),
    ("body_type", -1),
    ("body_type", 1 << 32),
    ("body_type", 1.0),
    ("body_type", True),
    ("label", 7),
    ("label", "x" * 250),
    ("label", "\N{GRINNING FACE}" * 125),
    ("priority", 8),
    ("priority", -1),
    ("priority", "3"),
    ("delivery", "fast"),
    ("delivery", ["express"]),
    ("delivery", {}),
    ("class", 0x1234),
    ("class", -1),
    ("class", "ack"),
    ("correlation", "zz" * 20),
    ("correlation", "00" * 19),
    ("correlation", "not-a-guid\\1"),
    ("correlation", "629d266e-11e0-40fb-b8c0-a27078dc2fb7\\4294967296"),
    ("correlation", 7),
    ("acknowledge", "everything"),
    ("acknowledge", ["full_receive", 7]),
    ("acknowledge", {"full_receive": True}),
    ("admin_queue", "private$\\x"),
    ("admin_queue", 7),
    ("response_queue", "DIRECT="),
    ("application", -1),
    ("journal", 1),
    ("dead_letter", "yes"),
    ("time_to_reach_queue", -1),
    ("time_to_be_received", 1 << 32),
    ("nothing", 1),
    ("identifier", "x"),
]


@pytest.mark.parametrize("name, value", WRONG)
def test_an_invalid_property_is_named_and_nothing_is_sent(
    lines: Lines, server: InThread, name: str, value: object
) -> None:
    wrong = {"op": "send", "to": TO_ORDERS, "messages": [message(b"right"), {name: value}]}
    assert lines.error(wrong)["path"].endswith(name)
    assert peeked(server.data, ORDERS) == []


@pytest.mark.parametrize(
    "name, value",
    [
        pytest.param("label", "x" * 125, marks=pytest.mark.requirement("MQMQ-2.3.1.8-01/b")),
        ("label", 7),
        ("quota", -1),
        ("quota", "1"),
        ("quota", 1.5),
        ("journal", 1),
        pytest.param("journal_quota", 1 << 32, marks=pytest.mark.requirement("MQMQ-2.3.1.7-01")),
        ("authenticated", None),
        ("privacy", "all"),
        ("privacy", ["none"]),
        pytest.param("base_priority", 1 << 15, marks=pytest.mark.requirement("MQMQ-2.3.1.6-01")),
        pytest.param("base_priority", -0x8001, marks=pytest.mark.requirement("MQMQ-2.3.1.6-01")),
        ("type", "x"),
        ("type", None),
        ("allow", r"HOME\anne:receive"),
        ("allow", [7]),
        ("allow", [r"HOME\anne"]),
        ("allow", [r"HOME\anne:"]),
        ("allow", [":receive"]),
        ("allow", ["anne:receive"]),
        ("allow", ["\\anne:receive"]),
        ("allow", [r"HOME\anne:receive,none"]),
        ("allow", [r"HOME\anne:everything"]),
        ("allow", [r"HOME\anne:receive"] * 101),
        ("deny", ["S-1-5-99999999999:receive"]),
        ("deny", ["HOME\\" + "n" * 256 + ":receive"]),
        ("multicast", "234.1.1.1"),
        ("multicast", 7),
        *(
            pytest.param("multicast", address, marks=pytest.mark.requirement("MQMQ-2.3.1.23-02"))
            for address in ("223.255.255.255:1", "240.0.0.0:1", "10.1.1.1:8001", "234.1.1.256:1")
        ),
        *(
            pytest.param(name, r"private$\other", marks=pytest.mark.requirement("MQMQ-2.3.1.3-02"))
            for name in ("pathname", "path", "name")
        ),
        ("multicast", "234.1.1.256:8001"),
        ("multicast", "234.1.1.1:65536"),
        ("transactional", True),
        ("identifier", "629d266e-11e0-40fb-b8c0-a27078dc2fb7"),
        ("nothing", 1),
    ],
)
def test_a_wrong_property_of_a_queue_is_named_and_nothing_is_set(
    lines: Lines, name: str, value: object
) -> None:
    before = lines.ask({"op": "show", "queue": ORDERS})["answer"]
    assert lines.error({"op": "set", "queue": ORDERS, "label": "new", name: value})["path"] == name
    assert lines.ask({"op": "show", "queue": ORDERS})["answer"] == before


@pytest.mark.requirement("MQMQ-2.3.1.8-01/b")
def test_a_label_has_up_to_124_characters(lines: Lines) -> None:
    for label in ("x" * 124, ""):
        assert lines.ask({"op": "set", "queue": ORDERS, "label": label})["answer"]["label"] == label


@pytest.mark.requirement("MQMQ-2.3.1.23-02")
@pytest.mark.parametrize("address", ["224.0.0.0:1", "239.255.255.255:65535", "234.1.1.1:0", "234.1.1.1:8001"])
def test_a_multicast_address_may_have_any_port(lines: Lines, address: str) -> None:
    assert lines.ask({"op": "set", "queue": ORDERS, "multicast": address})["answer"]["multicast"] == address
    lines.ask({"op": "set", "queue": ORDERS, "multicast": None})


@pytest.mark.parametrize(
    "request_, path",
    [
        ({"op": "receive", "queue": ORDERS, "count": 0}, "count"),
        ({"op": "receive", "queue": ORDERS, "count": 1001}, "count"),
        ({"op": "peek", "queue": ORDERS, "count": "1"}, "count"),
        ({"op": "peek", "queue": ORDERS, "wait_ms": -1}, "wait_ms"),
        ({"op": "peek", "queue": ORDERS, "after": "x"}, "after"),
        ({"op": "peek", "queue": ORDERS, "after": 1 << 64}, "after"),
        ({"op": "read", "queue": ORDERS}, "action"),
        ({"op": "read", "queue": ORDERS, "action": "take"}, "action"),
        ({"op": "read", "queue": ORDERS, "action": "peek_next"}, "action"),
        ({"op": "read", "queue": ORDERS, "action": "peek", "wait_ms": 1 << 32}, "wait_ms"),
        ({"op": "read", "queue": ORDERS, "action": "peek", "wait_ms": "1"}, "wait_ms"),
        ({"op": "read", "queue": ORDERS, "action": "peek", "tag": "x"}, "tag"),
        ({"op": "read", "queue": ORDERS, "action": "peek", "cursor": 0}, "cursor"),
        ({"op": "read", "queue": ORDERS, "action": "peek", "seek": "last", "lookup_identifier": 1}, "seek"),
        ({"op": "read", "queue": ORDERS, "action": "peek", "seek": "next"}, "lookup_identifier"),
        (
            {
                "op": "read",
                "queue": ORDERS,
                "action": "peek",
                "seek": "next",
                "lookup_identifier": 1,
                "wait_ms": 1,
            },
            "wait_ms",
        ),
        ({"op": "read", "queue": ORDERS, "action": "receive", "transaction": "x"}, "transaction"),
        ({"op": "cancel"}, "tag"),
        ({"op": "close_cursor"}, "cursor"),
        ({"op": "commit"}, "transaction"),
        ({"op": "abort", "transaction": 7}, "transaction"),
        ({"op": "move", "queue": ORDERS, "to": f"{ORDERS};a", "lookup_identifier": -1}, "lookup_identifier"),
        ({"op": "end", "done": 1}, "done"),
        ({"op": "end", "back": [0]}, "back"),
        ({"op": "end", "back": [None]}, "back"),
        ({"op": "end", "done": [[]]}, "done"),
        ({"op": "move", "queue": ORDERS}, "to"),
        ({"op": "move", "queue": ORDERS, "to": f"{ORDERS};a", "identifier": "x"}, "identifier"),
        ({"op": "move", "queue": ORDERS, "to": f"{ORDERS};a", "identifier": 7}, "identifier"),
        ({"op": "send", "to": TO_ORDERS}, "messages"),
        ({"op": "send", "to": TO_ORDERS, "messages": []}, "messages"),
        ({"op": "send", "to": TO_ORDERS, "messages": [{}] * 1001}, "messages"),
        ({"op": "send", "to": TO_ORDERS, "messages": {"0": {}}}, "messages"),
        ({"op": "send", "to": TO_ORDERS, "messages": [[]]}, "messages[0]"),
        ({"op": "send", "messages": [{}]}, "to"),
        ({"op": "send", "to": 7, "messages": [{}]}, "to"),
        ({"op": "send", "to": TO_ORDERS, "messages": [{}, {"delivery": "transactional"}]}, "messages"),
        ({"op": "create", "queue": r"private$\new", "transactional": "yes"}, "transactional"),
        ({"op": "set", "queue": ORDERS, "paused": True}, "paused"),
        ({"op": "set", "queue": ORDERS}, "queue"),
    ],
)
def test_a_wrong_argument_is_named(lines: Lines, request_: dict, path: str) -> None:
    assert lines.error(request_)["path"] == path
    is_well(lines)


def test_missing_cursors_and_transactions_are_reported(lines: Lines) -> None:
    for request, name in (
        ({"op": "close_cursor", "cursor": 9}, "MQ_ERROR_INVALID_HANDLE"),
        ({"op": "read", "queue": ORDERS, "action": "peek", "cursor": 9}, "MQ_ERROR_INVALID_HANDLE"),
        ({"op": "commit", "transaction": NOBODYS}, "MQ_ERROR_TRANSACTION_SEQUENCE"),
        (
            {"op": "send", "to": TO_ORDERS, "messages": [{}], "transaction": NOBODYS},
            "MQ_ERROR_TRANSACTION_SEQUENCE",
        ),
    ):
        assert lines.error(request)["name"] == name
    assert lines.ask({"op": "cancel", "tag": 9})["answer"] == {"cancelled": False}


def test_a_transaction_that_ends_leaves_no_read_behind(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_messages, "HELD_MAX", 1)
    read = {"op": "read", "queue": LEDGER, "action": "receive"}
    sent = [message(b"%d" % number, delivery="transactional") for number in range(2)]
    lines.ask({"op": "send", "to": rf"DIRECT=OS:alpha\{LEDGER}", "messages": sent})
    for _ in sent:  # the room of one is free again
        within = lines.ask({"op": "begin"})["answer"]
        assert "receipt" in lines.ask({**read, **within})["answer"]["message"]
        assert lines.error({**read, **within, "action": "peek"})["name"] == "MQ_ERROR_TRANSACTION_USAGE"
        lines.ask({"op": "commit", **within})
    within = lines.ask({"op": "begin"})["answer"]
    lines.write({"id": 1, **read, **within, "wait_ms": None}, {"id": 2, "op": "commit", **within})
    ended = {answer["id"]: answer for answer in (lines.read(), lines.read())}
    assert ended[1]["error"]["name"] == "MQ_ERROR_OPERATION_CANCELLED"
    assert ended[2]["answer"] == within


def test_cursors_transactions_and_reads_are_bounded(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_reads, "CURSORS_MAX", 1)
    monkeypatch.setattr(session_transactions, "TRANSACTIONS_MAX", 1)
    monkeypatch.setattr(held_messages, "HELD_MAX", 1)
    cursor = lines.ask({"op": "open_cursor", "queue": ORDERS})["answer"]["cursor"]
    transaction = lines.ask({"op": "begin"})["answer"]["transaction"]
    lines.write({"id": 1, "op": "read", "queue": ORDERS, "action": "receive", "wait_ms": None, "tag": 5})
    for request in (
        {"op": "open_cursor", "queue": ORDERS},
        {"op": "begin"},
        {"op": "read", "queue": ORDERS, "action": "receive"},
    ):
        assert lines.error(request)["name"] == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    assert lines.error({"op": "read", "queue": ORDERS, "action": "peek", "tag": 5})["path"] == "tag"
    lines.write({"id": 2, "op": "cancel", "tag": 5})
    ended = {answer["id"]: answer for answer in (lines.read(), lines.read())}
    assert ended[1]["error"]["name"] == "MQ_ERROR_OPERATION_CANCELLED"
    assert ended[2]["answer"] == {"cancelled": True}
    lines.ask({"op": "close_cursor", "cursor": cursor})
    lines.ask({"op": "abort", "transaction": transaction})
    lines.ask({"op": "begin"})
    lines.ask({"op": "open_cursor", "queue": ORDERS})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
QUEUES = st.sampled_from(
    [
        *(ORDERS, LEDGER, f"{ORDERS};sub", f"{LEDGER};journal", "system$;deadletter", "system$;journal"),
        *(r"private$\other", "public", r"elsewhere\private$\x", TO_ORDERS, r"DIRECT=OS:away\private$\x"),
        *("MACHINE=629d266e-11e0-40fb-b8c0-a27078dc2fb7;CONNECTOR", "MULTICAST=234.1.1.1:8001"),
        *(f"{TO_ORDERS},DIRECT=OS:away\\private$\\x", "private$\\\ud800", r"private$\orders;\n", ";", "\\"),
    ]
)
NAMES = (
    *("action", "cursor", "lookup_identifier", "seek", "tag", "transaction"),
    *("allow", "deny"),
    *("acknowledge", "admin_queue", "after", "application", "authenticated", "back", "base_priority", "body"),
    *("body_type", "class", "correlation", "count", "dead_letter", "delivery", "done", "extension"),
    *("identifier", "journal", "journal_quota", "label", "messages", "missing", "multicast", "paused"),
    *("priority", "privacy", "queue", "quota", "response_queue", "time_to_be_received"),
    *("time_to_reach_queue", "to", "transactional", "type"),
    *("awaited", "records", "subscription", "upto", "window"),
)
LIKELY = (
    JSON
    | QUEUES
    | st.integers(-1, 1001)
    | st.sampled_from(["express", "recoverable", "transactional", "full_receive", "YQ==", "none", "optional"])
    | st.sampled_from(["receive", "peek", "peek_next", "current", "next", "previous", NOBODYS])
)
VALUES = LIKELY | st.lists(st.dictionaries(st.sampled_from(NAMES), LIKELY, max_size=4), max_size=3)
REQUESTS = st.builds(
    lambda op, named, other: {**named, **other, "op": op},
    st.sampled_from(OPERATIONS),
    st.fixed_dictionaries({"queue": QUEUES, "to": QUEUES}),
    st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=8), VALUES, max_size=5),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    path = tmp_path_factory.mktemp("hostile") / "alpha"
    with served(options(path, ORDERS, f"{LEDGER};transactional")) as server:
        yield server
    listed(path)  # the store can be opened again


@given(st.lists(REQUESTS, min_size=1, max_size=6))
@settings(max_examples=300)
def test_any_values_are_answered(shared: InThread, requests: list[dict]) -> None:
    with Lines(shared.data) as lines:
        for number, request in enumerate(requests):
            answer = lines.ask({**request, "id": number})
            assert answer["id"] == number
            assert set(answer) in ({"id", "answer"}, {"id", "error"})
            if "error" in answer:
                assert "a fault of msmqwire itself" not in answer["error"]["error"], answer
        is_well(lines)


@given(st.binary(max_size=200))
@settings(max_examples=100)
def test_any_bytes_are_answered_line_by_line(shared: InThread, data: bytes) -> None:
    with Lines(shared.data) as lines:
        lines.raw(data + b"\n")
        for _ in range(data.count(b"\n") + 1):
            assert set(lines.read()) == {"id", "error"}
        is_well(lines)


# -- over TCP -------------------------------------------------------------------------------------------


@pytest.fixture
def over_tcp(data: Path) -> Iterator[InThread]:
    with served(options(data, ORDERS, control_tcp=True)) as server:
        yield server


def test_over_tcp_who_can_read_the_folder_is_let_in(over_tcp: InThread) -> None:
    assert (over_tcp.data / "control").stat().st_mode & 0o777 == 0o600
    assert not (over_tcp.data / "control.sock").exists()
    with Lines(over_tcp.data) as lines:
        assert len(lines.token) >= 40
        assert lines.ask({"op": "status", "token": lines.token})["answer"]["name"] == "alpha"
        assert lines.ask({"op": "status"})["answer"]["name"] == "alpha"  # authenticated once, that is enough
    assert peeked(over_tcp.data, ORDERS) == []


@pytest.mark.parametrize("token", ["", "wrong", None, 7, ["x"], "\N{SNOWMAN}", "\ud800"])
def test_over_tcp_a_wrong_token_ends_the_connection(over_tcp: InThread, token: object) -> None:
    with Lines(over_tcp.data) as lines:
        right = lines.token
        lines.write({"op": "status", "token": token}, {"op": "status", "token": right})
        assert lines.is_ended()
    with Lines(over_tcp.data) as lines:
        lines.write({"op": "status"})
        assert lines.is_ended()
    with Lines(over_tcp.data) as lines:
        assert "answer" in lines.ask({"op": "status", "token": lines.token})


def test_over_tcp_it_listens_at_the_loopback_alone(over_tcp: InThread) -> None:
    address = DataFolder(over_tcp.data).control()
    assert address is not None
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", address.port), limit(20))
    until(lambda: peeked(over_tcp.data, ORDERS) == [], "commands can be run")
