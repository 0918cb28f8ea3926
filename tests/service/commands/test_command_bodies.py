"""Bodies through a queue: sent from JSON values, received with what is inside of them."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from msmqwire.errors import MalformedBody
from msmqwire.qm.client.received_message import ReceivedMessage
from tests.support.running import ORDERS, Run, called
from tests.support.terminal import on_a_terminal

TO_ORDERS = rf"DIRECT=OS:.\{ORDERS}"


@pytest.fixture
def folder(data: Path) -> Path:
    """A folder with a queue, without a server."""
    called("queue", "create", ORDERS, "--data", data)
    return data


def send(folder: Path, *arguments: str | Path, data: bytes = b"") -> Run:
    return called("send", TO_ORDERS, "--recoverable", "--data", folder, *arguments, data=data)


def received(folder: Path, *arguments: str) -> dict[str, Any]:
    one: dict[str, Any] = called("receive", ORDERS, "--data", folder, *arguments).one
    return one


@pytest.mark.parametrize(
    ("name", "type_name", "value", "body_type", "text"),
    [
        ("activex", "VT_I4", 7, 3, "7"), ("activex", None, "hé", 8, "hé"),
        ("xml", "int", 7, 0, "7"), ("json", None, {"a": [1]}, 0, '{"a":[1]}'),
        ("text", None, "a\nb", 0, "a\nb"), ("nrbf", None, "order 7", 0x300, "order 7"),
        ("binary", None, "order 7", 0x300, "order 7"),
    ],
)  # fmt: skip
def test_a_value_is_sent_in_a_format(
    folder: Path, name: str, type_name: str | None, value: Any, body_type: int, text: str
) -> None:
    more = () if type_name is None else ("--type", type_name)
    assert send(folder, "--format", name, *more, "--file", "-", data=json.dumps(value).encode()).status == 0
    message = received(folder, "--decode", "--json")
    assert (message["body_type"], message["text"]) == (body_type, text)
    assert message["body_decoded"]["value"] == value
    assert message["body_decoded"]["format"] == {"binary": "nrbf"}.get(name, name)
    assert message["body_decoded"]["problems"] == []


@pytest.mark.parametrize(
    ("name", "body", "value"),
    [
        ("text", "order 7", "order 7"), ("text", "7", "7"), ("text", '"7"', "7"),
        ("activex", "order 7", "order 7"), ("nrbf", "order 7", "order 7"), ("xml", "order 7", "order 7"),
        ("activex", "7", 7),
    ],
)  # fmt: skip
def test_a_text_needs_no_quotes(folder: Path, name: str, body: str, value: Any) -> None:
    assert send(folder, "--format", name, "--body", body).status == 0
    assert received(folder, "--decode", "--json")["body_decoded"]["value"] == value


def test_json_that_breaks_off_is_no_text(folder: Path) -> None:
    for name in ("text", "xml"):
        assert send(folder, "--format", name, "--body", '{"a": ').status == 65
    assert send(folder, "--format", "json", "--body", "order 7").status == 65


@pytest.mark.parametrize("name", ["nservicebus", "rebus"])
def test_headers_go_into_the_extension(folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "headers").write_text('{"mine": "1"}')
    arguments = ("--format", name, "--type", "Shop.Order, Shop", "--headers", tmp_path / "headers")
    assert send(folder, *arguments, "--body", '{"Number": 7}').status == 0
    message = received(folder, "--decode")
    decoded = message["body_decoded"]
    assert (decoded["format"], decoded["headers_format"], decoded["value"]) == ("json", name, {"Number": 7})
    assert decoded["headers"]["mine"] == "1"
    assert b64decode(message["extension"])
    read = ReceivedMessage.from_json(message)
    assert read.decoded().to_json() == decoded
    assert read.decoded().named.message_types == ("Shop.Order, Shop",)
    assert read.text == '{"Number":7}'


def test_an_extension_as_it_is(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "extension").write_bytes(b"\0\1")
    assert send(folder, "--extension", tmp_path / "extension", "--body", "x").status == 0
    message = received(folder)
    assert b64decode(message["extension"]) == b"\0\1"
    assert "body_decoded" not in message


def test_types_by_name(folder: Path) -> None:
    assert send(folder, "--body-type", "VT_LPSTR", "--body", "x").status == 0
    assert received(folder)["body_type"] == 30


def test_people_see_the_inside(folder: Path) -> None:
    send(folder, "--format", "json", "--label", "one", "--body", '{"a": "\\u202e"}')
    shown = on_a_terminal("peek", ORDERS, "--data", folder, "--decode")
    assert " bytes\n  format   json\n" in shown.partition("  one: ")[2]
    assert "\u202e" not in shown
    assert "\\u202e" in shown
    assert "format" not in on_a_terminal("peek", ORDERS, "--data", folder)


def test_a_body_that_is_not_of_its_type_is_received(folder: Path) -> None:
    send(folder, "--body-type", "VT_I4", "--body", "abc")
    message = received(folder, "--decode")
    assert message["body_decoded"]["problems"][0]["error"] == "VT_I4 takes 4 bytes, the body has 3"
    assert message["text"] == "abc"
    with pytest.raises(MalformedBody):
        ReceivedMessage.from_json(message).decoded()


@pytest.mark.parametrize(
    ("arguments", "status", "path", "why"),
    [
        (("--format", "jsn", "--body", "1"), 2, "--format", "'jsn' is not a format of a value; did "),
        (("--format", "json"), 2, "--format", "its value is missing: a JSON text in --body or --file"),
        (("--format", "json", "--bstr", "--body", "1"), 2, "--format", "it sets the body type"),
        (("--format", "json", "--body-type", "8", "--body", "1"), 2, "--format", "it sets the body type"),
        (("--format", "rebus", "--extension", "x", "--body", "1"), 2, "--extension", "rebus makes the"),
        (("--type", "int", "--body", "1"), 2, "--type", "it goes with --format"),
        (("--headers", "x", "--body", "1"), 2, "--headers", "it goes with --format"),
        (("--format", "json", "--body", "{"), 65, "", "not JSON from line 1, column 2 on"),
        (("--format", "json", "--body", "hello"), 65, "", "not JSON from line 1, column 1 on"),
        (("--format", "text", "--body", "[1]"), 65, "", "[1] is not text; write it as json"),
        (("--format", "json", "--file", "missing"), 66, "", "missing: No such file or directory"),
        (("--body-type", "VT_BST", "--body", "1"), 2, "--body-type", "'VT_BST' is not a type of a body"),
    ],
)  # fmt: skip
def test_mistakes(folder: Path, arguments: tuple[str, ...], status: int, path: str, why: str) -> None:
    error = send(folder, *arguments).error(status)
    assert error["path"] == path
    assert error["error"].startswith(why)
