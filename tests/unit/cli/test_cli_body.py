"""The command ``body``: what is inside of a body, bodies of values, and what a mistake is answered with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msmqwire.cli.body_values import FORMATS
from msmqwire.constants import variant_of
from msmqwire.json_text import dumps
from tests.support.running import called, in_process
from tests.support.terminal import on_a_terminal

NSERVICEBUS = (
    b'<?xml version="1.0"?><ArrayOfHeaderInfo><HeaderInfo><Key>NServiceBus.MessageId</Key>'
    b"<Value>7\x1b[31m</Value></HeaderInfo></ArrayOfHeaderInfo>"
)


def told(*arguments: str | Path, data: bytes = b"") -> dict[str, Any]:
    """What ``body`` prints."""
    one: dict[str, Any] = called("body", *arguments, data=data).one
    assert list(one) == ["format", "headers_format", "value", "headers", "text", "problems"]
    return one


# -- decode -----------------------------------------------------------------------------------------------


def test_a_file_and_standard_input(tmp_path: Path) -> None:
    (tmp_path / "body.bin").write_bytes(b'{"Number": 7}')
    of_file = told(tmp_path / "body.bin")
    assert (of_file["format"], of_file["value"], of_file["headers"]) == ("json", {"Number": 7}, {})
    assert of_file["headers_format"] is None
    assert of_file == told("-", data=b'{"Number": 7}') == told("decode", tmp_path / "body.bin")
    assert (
        told(
            "-",
            "--hex",
            data=b"68 00 69 00 # hi",
        )["text"]
        == "hi"
    )


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("8", 8), ("0x300", 0x300), ("0X8", 8), ("VT_BSTR", 8), ("vt_bstr", 8), ("BSTR", 8), ("0", 0),
        ("VT_UI1|VT_VECTOR", 0x1011), ("VT_I4 | VT_ARRAY", 0x2003), ("17|0x1000", 0x1011),
        ("4294967295", 0xFFFFFFFF),
    ],
)  # fmt: skip
def test_types_are_numbers_and_names(name: str, number: int) -> None:
    assert variant_of(name) == number


@pytest.mark.parametrize(
    "name", ["", "VT_", "VT_VECTOR|", "-1", "08", "1.5", "0x", "VT_BSTR8", "0x123456789"]
)
def test_no_types(name: str) -> None:
    with pytest.raises(ValueError, match="is not a type of a body"):
        variant_of(name)


def test_the_type_decides() -> None:
    wide = "hi".encode("utf-16-le")
    assert told("-", "--body-type", "VT_BSTR", data=wide)["format"] == "activex"
    assert told("-", "--body-type", "0x3", data=b"\7\0\0\0")["value"] == 7


def test_the_headers_are_in_the_extension(tmp_path: Path) -> None:
    (tmp_path / "extension").write_bytes(NSERVICEBUS)
    found = told("-", "--extension", tmp_path / "extension", data=b"{}")
    assert found["headers_format"] == "nservicebus"
    assert found["headers"]["NServiceBus.MessageId"].startswith("7")


def test_a_terminal_is_shown_text_that_does_nothing_to_it(tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(b'{"Number": [1, 2], "Name": "\\u001b[31mred"}')
    (tmp_path / "extension").write_bytes(NSERVICEBUS)
    shown = on_a_terminal("body", tmp_path / "body", "--extension", tmp_path / "extension")
    assert shown.startswith("format   json\nheaders  nservicebus\n  NServiceBus.MessageId  7")
    assert '\n  {\n    "Number": [\n      1,\n      2\n    ],' in shown
    assert "\x1b" not in shown
    as_json = on_a_terminal("body", tmp_path / "body", "--json")
    assert json.loads(as_json)["value"]["Number"] == [1, 2]
    assert as_json.startswith('{\n  "format": "json",')


def test_a_long_value_is_cut_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "body").write_text(json.dumps(list(range(1000))))
    shown = on_a_terminal("body", tmp_path / "body")
    assert shown.splitlines()[-1].endswith("802 lines more: --json prints all")
    assert len(shown.splitlines()) < 210


@pytest.mark.parametrize(
    ("arguments", "status", "path", "why"),
    [
        (("missing.bin",), 66, "", "missing.bin: No such file or directory"),
        (("encod",), 66, "", "encod: No such file or directory; the command is msmqwire body encode"),
        (("-", "--extension", "missing.bin"), 66, "", "missing.bin: No such file or directory"),
        (("-", "--extension", "-"), 2, "--extension", "standard input has the body already: a file"),
        (("-", "--body-type", "VT_BSTX"), 2, "--body-type",
         "'VT_BSTX' is not a type of a body; did you mean VT_BSTR? It is a number as 768 or 0x300, or a "
         "name as VT_BSTR or VT_UI1|VT_VECTOR"),
        (("-", "--body-tpye", "8"), 2, "--body-tpye", "there is no such option; did you mean --body-type?"),
        (("decode",), 2, "FILE",
         "it is missing, as in msmqwire body decode order.bin --body-type 0x300"),
        (("-", "other"), 2, "", "'other' is one argument too many"),
        (("-", "--hex"), 65, "", "'x' is not a hex digit"),
    ],
)  # fmt: skip
def test_mistakes(arguments: tuple[str, ...], status: int, path: str, why: str) -> None:
    error = called("body", *arguments, data=b"x").error(status)
    assert (error["error"], error["path"]) == (why, path)


def test_bytes_that_can_t_be_of_their_type(tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(b"abc")
    shown = on_a_terminal("body", tmp_path / "body", "--body-type", "3", status=65)
    assert shown.splitlines() == [
        "error: VT_I4, byte 3: VT_I4 takes 4 bytes, the body has 3",
        "without --body-type the content decides its format",
    ]
    error = called("body", "-", "--body-type", "VT_I4", data=b"\1\2\3").error(65)
    assert set(error) == {"error", "path", "offset"}
    assert "4 bytes" in error["error"]


def test_without_arguments_it_says_what_there_is() -> None:
    shown = in_process("body").stderr.decode() + in_process("body").stdout.decode()
    assert "Usage: msmqwire body" in shown
    assert "encode" in shown


def test_json_of_any_depth_is_printed() -> None:
    deep: Any = "ö\x7f"
    for _ in range(100_000):
        deep = [deep]
    text = dumps({"value": deep})
    assert text == '{"value": ' + "[" * 100_000 + '"\\u00f6\\u007f"' + "]" * 100_000 + "}"
    assert dumps({"value": "\U0001f600"}) == '{"value": "\\ud83d\\ude00"}'


# -- encode -----------------------------------------------------------------------------------------------


def encoded(*arguments: str | Path, data: bytes) -> dict[str, Any]:
    """What ``body encode --json`` prints."""
    one: dict[str, Any] = called("body", "encode", "--json", *arguments, data=data).one
    assert list(one) == ["body", "body_type", "extension"]
    return one


@pytest.mark.parametrize(
    ("name", "type_name", "value"),
    [
        ("activex", "VT_I4", 7), ("activex", "VT_BSTR", "hé"), ("xml", "int", 7), ("xml", "string", "a<b"),
        ("nrbf", None, "text"), ("binary", None, "text"), ("nrbf", "System.Int32[]", [1, 2]),
        ("json", None, {"a": [1, None, "ö"]}),
        ("text", None, "two\nlines"), ("nservicebus", None, {"a": 1}), ("rebus", None, {"a": 1}),
    ],
)  # fmt: skip
def test_what_is_encoded_is_decoded(name: str, type_name: str | None, value: Any, tmp_path: Path) -> None:
    (tmp_path / "headers").write_text('{"rbs2-msg-type": "Order, Orders", "id": "1"}')
    more: list[str | Path] = [] if type_name is None else ["--type", type_name]
    more += ["--headers", tmp_path / "headers"] if name in ("nservicebus", "rebus") else []
    one = encoded("--format", name, *more, data=json.dumps(value).encode())
    (tmp_path / "extension").write_bytes(bytes.fromhex(one["extension"]))
    again = told(
        "-", "--hex", "--body-type", str(one["body_type"]), "--extension", tmp_path / "extension",
        data=one["body"].encode(),
    )  # fmt: skip
    assert again["value"] == value
    assert again["problems"] == []
    assert again["format"] == {"binary": "nrbf", "nservicebus": "json", "rebus": "json"}.get(name, name)
    if name in ("nservicebus", "rebus"):
        assert again["headers_format"] == name
        assert again["headers"]["id"] == "1"


def test_headers_beside_a_body_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "headers").write_text('{"NServiceBus.ContentType": "text/xml"}')
    headers = ("--headers", tmp_path / "headers", "--headers-format", "nservicebus")
    one = encoded("--format", "xml", "--type", "Order", *headers, data=b'{"Number": "7"}')
    (tmp_path / "extension").write_bytes(bytes.fromhex(one["extension"]))
    again = told("-", "--hex", "--extension", tmp_path / "extension", data=one["body"].encode())
    assert (again["format"], again["value"]) == ("xml", {"$type": "Order", "Number": "7"})
    assert (again["headers_format"], again["headers"]) == (
        "nservicebus", {"NServiceBus.ContentType": "text/xml"},
    )  # fmt: skip


def test_where_body_type_and_extension_go(tmp_path: Path) -> None:
    (tmp_path / "headers").write_text('{"id": "1"}')
    command = ("body", "encode", "--format", "nservicebus", "--headers", tmp_path / "headers")
    run = in_process(*command, data=b'{"a": 1}')
    assert (run.returncode, run.stdout) == (0, b'{"a":1}')
    assert run.stderr.decode().startswith("7 bytes, body type 0 (VT_EMPTY); an extension of ")
    assert run.stderr.decode().endswith(" bytes: --extension-output FILE writes it\n")
    files = ("--output", tmp_path / "body", "--extension-output", tmp_path / "extension")
    run = in_process(*command, *files, data=b'{"a": 1}')
    assert (run.returncode, run.stdout) == (0, b"")
    assert run.stderr.decode().endswith(f" bytes: in {tmp_path / 'extension'}\n")
    found = told(tmp_path / "body", "--extension", tmp_path / "extension")
    assert (found["value"], found["headers"]["id"]) == ({"a": 1}, "1")


def test_a_terminal_gets_no_bytes(tmp_path: Path) -> None:
    (tmp_path / "value").write_text('"text"')
    command = ("body", "encode", tmp_path / "value", "--format")
    assert on_a_terminal(*command, "activex", status=2).startswith(
        "error: --output: a file: a terminal can't show bytes; or --json for hex\n"
    )
    assert on_a_terminal(*command, "text").startswith("text")


@pytest.mark.parametrize(
    ("arguments", "value", "status", "path", "why"),
    [
        ((), "1", 2, "--format", "it is missing, as --format FORMAT"),
        (("--format", "nrbff"), "1", 2, "--format", "'nrbff' is not a format of a value; did you mean nrbf?"),
        (("--format", "json"), "{", 65, "", "not JSON from line 1, column 2 on; "),
        (("--format", "text"), "hello", 65, "", "not JSON from line 1, column 1 on; "),
        (("--format", "json"), "[NaN]", 65, "", 'NaN is not JSON; this number is {"$float": "NaN"}'),
        (("--format", "json"), "-Infinity", 65, "", "-Infinity is not JSON; "),
        (("--format", "json"), "[" * 100_000, 65, "", "not JSON that can be read: "),
        (("--format", "json", "missing.json"), "", 66, "", "missing.json: No such file or directory"),
        (("--format", "json", "--headers", "h"), "1", 2, "--headers",
         "json has none; --headers-format "),
        (("--format", "json", "--extension-output", "x"), "1", 2, "--extension-output", "json has none; "),
        (("--format", "rebus", "--headers", "-"), "1", 2, "--headers", "standard input has the value"),
        (("--format", "json", "--headers-format", "rebs", "--headers", "h"), "1", 2, "--headers-format",
         "'rebs' is not a format of headers; did you mean rebus? "),
        (("--format", "json", "--headers-format", "rebus"), "1", 2, "--headers-format",
         "it goes with --headers"),
        (("--format", "rebus", "--headers-format", "rebus", "--headers", "h"), "1", 2, "--headers-format",
         "--format rebus decides it already"),
        (("--format", "json", "--json", "-o", "x"), "1", 2, "--json", "it prints all in one object: "),
    ],
)  # fmt: skip
def test_mistakes_of_encode(arguments: tuple[str, ...], value: str, status: int, path: str, why: str) -> None:
    error = called("body", "encode", *arguments, data=value.encode()).error(status)
    assert error["path"] == path
    assert error["error"].startswith(why)


@pytest.mark.parametrize("headers", ["[]", '{"a": 1}', "1"])
def test_headers_are_texts(headers: str, tmp_path: Path) -> None:
    (tmp_path / "headers").write_text(headers)
    error = called("body", "encode", "--format", "rebus", "--headers", tmp_path / "headers", data=b"1").error(
        65
    )
    assert error["path"] == "headers"
    assert error["error"].startswith("headers are an object of texts, as ")


def test_a_value_that_can_t_be_of_its_type() -> None:
    error = called("body", "encode", "--format", "activex", "--type", "VT_I4", data=b'"x"').error(65)
    assert error["error"]
    error = called("body", "encode", "--format", "activex", "--type", "VT_I5", data=b"1").error(2)
    assert error["path"] == "--type"
    assert "VT_I4" in error["error"]


def test_the_formats_are_those_of_the_library() -> None:
    from msmqwire import bodies

    assert set(FORMATS) - {*bodies.HEADERS_FORMATS} <= set(bodies.FORMATS)
    assert set(bodies.HEADERS_FORMATS) <= set(FORMATS)
