"""What is shown of bodies: never a failure, whole texts, and values of any depth."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pytest

from msmqwire.bodies import Body, Problem, decode, inspect_body, inspecting, plain, whole_text
from msmqwire.errors import MalformedBody

HEADERS = (
    b'<?xml version="1.0"?><ArrayOfHeaderInfo><HeaderInfo><Key>a</Key><Value>b</Value></HeaderInfo>'
    b"</ArrayOfHeaderInfo>"
)


@pytest.mark.parametrize(
    ("body", "body_type", "format_"),
    [(b"abc", 3, "text"), (b"\1\2\3", 3, "bytes"), (b"{}", 0x300, "json"), (b"", 0x300, "bytes")],
)
def test_what_is_not_of_its_type_is_read_by_its_content(body: bytes, body_type: int, format_: str) -> None:
    with pytest.raises(MalformedBody) as caught:
        decode(body, body_type=body_type, extension=HEADERS)
    found = inspect_body(body, body_type=body_type, extension=HEADERS)
    assert found.problems[0] == Problem(caught.value.why, caught.value.path, caught.value.offset)
    assert (found.format, dict(found.headers)) == (format_, {"a": "b"})


def test_an_undecodable_body_keeps_its_bytes_and_headers() -> None:
    def refuses(body: bytes, **more: Any) -> Body:
        if body:
            raise MalformedBody("no", path="Path", offset=1)
        return decode(body, **more)

    with mock.patch.object(inspecting, "decode", refuses):
        for body_type in (0, 3):
            found = inspect_body(b"\1\2", body_type=body_type, extension=HEADERS)
            assert (found.format, found.value, found.text) == ("bytes", {"$bytes": "0102"}, "")
            assert (dict(found.headers), found.problems) == ({"a": "b"}, (Problem("no", "Path", 1),))


def test_what_can_be_decoded_is_the_same() -> None:
    assert inspect_body(b"{}", extension=HEADERS) == decode(b"{}", extension=HEADERS)


@pytest.mark.parametrize(
    ("body", "body_type", "text"),
    [
        (b"two\nlines", 0, "two\nlines"), ("wide\n".encode("utf-16-le"), 8, "wide\n"),
        (b"<a>\n  <b/>\n</a>", 0, "<a>\n  <b/>\n</a>"), (b'{"a":\n1}', 0, '{"a":\n1}'),
        (b"<int>5</int>", 0, "5"), (b"\7\0\0\0", 3, "7"), (b"", 0, ""), (b"\0\1", 0, None),
        ("\ufeff[1,\n2]".encode("utf-16-le"), 0, "[1,\n2]"),
        (b"x" * 10_000, 0, "x" * 10_000),
    ],
)  # fmt: skip
def test_whole_texts(body: bytes, body_type: int, text: str | None) -> None:
    assert whole_text(body, inspect_body(body, body_type=body_type)) == text


def test_indented_json_of_any_depth_grows_with_the_depth_only() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    text = plain.dumps(value, indent=2)
    assert len(text) < 2 * 100_000 * 132
    assert "".join(text.split()) == "[" * 100_000 + "1" + "]" * 100_000
    assert plain.beginning(value, 100) == text[:99] + "…"
    shallow = {"a": [1, {"b": "c"}], "d": {}}
    assert plain.dumps(shallow, indent=2) == json.dumps(shallow, indent=2)
    assert plain.beginning(shallow, 1000) == json.dumps(shallow, indent=2)


def test_problems_as_text() -> None:
    assert str(Problem("why")) == "why"
    assert str(Problem("why", "Path", 3)) == "Path, byte 3: why"
    assert str(Problem("why", offset=0)) == "byte 0: why"


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("odd", [b"", b"\xff\xfe"])
def test_places_in_the_extension_are_bytes(start: bytes, odd: bytes) -> None:
    extension = start + HEADERS.replace(b"</ArrayOf", b"<Key>" + odd + b"</Key>< </ArrayOf")
    problems = decode(b"{}", extension=extension).problems
    (place,) = (one.offset for one in problems if one.error == "has a < that begins no element")
    assert place == extension.index(b"< ")
    assert ("is not well-formed UTF-8" in [one.error for one in problems]) == bool(odd)
