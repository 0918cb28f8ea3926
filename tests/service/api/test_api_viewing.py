"""What people look at by the API: samples of a queue, messages as a file, a message as text."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from msmqwire.qm.runtime.api.message_search import BODY_BYTES
from msmqwire.qm.runtime.local import attach
from tests.support.qm.api_client import WithApi, with_api
from tests.support.running import LEDGER, ORDERS, message, peeked, put

QUEUE = f"/queues/{quote(ORDERS, safe='')}"


@pytest.fixture
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithApi]:
    with with_api(tmp_path_factory.mktemp("viewing") / "data") as running:
        yield running


def fill(api: WithApi, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Put messages into the queue of orders; return them as they are read."""
    with attach(api.server.data) as local:
        put(local, ORDERS, *messages)
        return list(local.call("peek", queue=ORDERS, count=len(messages))["messages"])


def exported(api: WithApi, **query: Any) -> list[dict[str, Any]]:
    answer = api.own.ask("GET", f"{QUEUE}/export?{urlencode(query)}")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/x-ndjson")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="messages.jsonl"'
    return [json.loads(line) for line in answer.body.splitlines()]


def test_a_queue_has_samples_from_when_it_is_looked_at(api: WithApi) -> None:
    fill(api, message(b"1"), message(b"2"))
    told = api.own.told("GET", f"{QUEUE}/samples")
    assert (told["messages"], told["put"], told["taken"]) == ([2], [2], [0])
    assert (told["seconds"], told["queues_max"], len(told["time"])) == (10.0, 256, 1)
    assert api.own.ask("GET", "/queues/private%24%5Cnone/samples").status == 404


def test_a_message_as_text_and_its_body(api: WithApi) -> None:
    body = "ä".encode("utf-16-le")
    (shown,) = fill(api, message(body, body_type=8))
    identifier = str(shown["lookup_identifier"])
    told = api.own.told("GET", f"{QUEUE}/messages/{identifier}/preview")
    assert (told["preview"]["text"], told["lookup_identifier"]) == ("ä", identifier)
    answer = api.own.ask("GET", f"{QUEUE}/messages/{identifier}/body")
    assert (answer.body, answer.headers["Content-Type"]) == (body, "application/octet-stream")


@pytest.mark.parametrize("identifier", ["x", "-1", "1.5", "9" * 21, str(1 << 64)])
def test_what_is_no_lookup_identifier(api: WithApi, identifier: str) -> None:
    for last in ("preview", "body"):
        answer = api.own.ask("GET", f"{QUEUE}/messages/{identifier}/{last}")
        assert (answer.status, answer.told["path"]) == (400, "lookup_identifier")


def test_a_message_that_is_not_there(api: WithApi) -> None:
    assert api.own.ask("GET", f"{QUEUE}/messages/7/preview").status == 404
    assert api.own.ask("GET", f"{QUEUE}%3Bpoison/messages/7/body").status == 404


def test_an_export_has_each_message_whole(api: WithApi) -> None:
    kept = fill(api, *(message(b"x" * number, label=f"{number}") for number in range(120)))
    lines = exported(api)
    assert lines == [{**one, "lookup_identifier": str(one["lookup_identifier"])} for one in kept]
    after = lines[99]["lookup_identifier"]
    assert [line["label"] for line in exported(api, after=after, limit=3)] == ["100", "101", "102"]
    assert [line["label"] for line in exported(api, find="11")] == ["11", *map(str, range(110, 120))]
    assert len(peeked(api.server.data, ORDERS)) == 120


def test_an_export_of_large_bodies_goes_on(api: WithApi) -> None:
    """Each piece has 16 MiB of bodies at most."""
    body = bytes(3 << 20)
    fill(api, *(message(body, label=f"{number}") for number in range(2)))
    for _ in range(3):
        fill(api, *(message(body) for _ in range(2)))
    lines = exported(api)
    assert len(lines) == 8
    assert {line["body"] for line in lines} == {b64encode(body).decode()}


FOUND = {
    "label": message(b"", label="An Order"),
    "bytes": message(b"<a>the oRDer</a>"),
    "utf-16": message("one order".encode("utf-16-le"), body_type=8),
    "umlaut": message("ÄRGER".encode()),
    "umlaut 16": message("ärger".encode("utf-16-le")),
    "other": message(b"nothing", correlation="ab" * 20),
    "far": message(b"-" * BODY_BYTES + b"order"),
    "like": message("䅏䉄䕆".encode("utf-16-le")),
}


@pytest.mark.parametrize(
    ("find", "names"),
    [
        ("order", ["label", "bytes", "utf-16"]),
        ("ORDER", ["label", "bytes", "utf-16"]),
        ("ärger", ["umlaut", "umlaut 16"]),
        ("AB" * 20, ["other"]),
        ("abababab-abab-abab-abab-abababababab\\2880154539", ["other"]),
        ("慯扤敦", []),
        ("no such text", []),
    ],
)
def test_messages_are_found_by_what_they_have(api: WithApi, find: str, names: list[str]) -> None:
    """A message is found by its label, its correlation, or text of its body in UTF-8 or UTF-16."""
    kept = fill(api, *FOUND.values())
    by_identifier = {one["identifier"]: name for one, name in zip(kept, FOUND, strict=True)}
    assert [by_identifier[line["identifier"]] for line in exported(api, find=find)] == names


def test_a_message_is_found_by_its_identifier(api: WithApi) -> None:
    (first, _) = fill(api, message(b"1"), message(b"2"))
    assert [line["identifier"] for line in exported(api, find=first["identifier"])] == [first["identifier"]]


def test_an_export_of_a_transactional_queue_and_of_none(api: WithApi) -> None:
    assert api.own.ask("GET", f"/queues/{quote(LEDGER, safe='')}/export").body == b""
    assert api.own.ask("GET", "/queues/private%24%5Cnone/export").status == 404
