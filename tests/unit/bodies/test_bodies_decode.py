"""`decode` and `encode`: which reader reads a body, and what comes back."""

from __future__ import annotations

import gzip
import json

import pytest

from msmqwire.bodies import Body, Limits, decode, encode
from msmqwire.errors import InvalidArgument, InvalidValue, MalformedBody


@pytest.mark.parametrize(
    "body, body_type, format, value",
    [
        (b"\x05\0\0\0", 3, "activex", 5),
        ("Grüße".encode("utf-16-le"), 8, "activex", "Grüße"),
        (b"", 1, "activex", None),
        (b"\x80\x01", 0x1011, "activex", {"$bytes": "8001"}),
        (b"\x80\x01", 0x2011, "activex", {"$bytes": "8001"}),
        (b"<int>5</int>", 0x1011, "xml", 5),
        (b"<int>5</int>", 0, "xml", 5),
        (b'{"a": 1}', 0, "json", {"a": 1}),
        (b"hello", 0, "text", "hello"),
        (b"hello", 0x1234, "text", "hello"),
        (b"", 0, "bytes", {"$bytes": ""}),
        (b"\x80\x81", 0, "bytes", {"$bytes": "8081"}),
        (gzip.compress(b'{"a": 1}', mtime=0), 0, "gzip", {"a": 1}),
    ],
)
def test_the_type_or_the_content_decides(body, body_type, format, value):
    read = decode(body, body_type=body_type)
    assert (read.format, read.value, read.problems) == (format, value, ())


@pytest.mark.parametrize(
    "body, body_type, why",
    [
        (b"\x01\x02\x03", 3, "VT_I4 takes 4 bytes, the body has 3"),
        (b"a", 8, "VT_BSTR is UTF-16, the body has 1 byte"),
        (b"hello", 0x300, "the header of a serialized object is missing"),
    ],
)
def test_bytes_that_can_not_be_of_their_type_are_refused(body, body_type, why):
    with pytest.raises(MalformedBody) as caught:
        decode(body, body_type=body_type)
    assert caught.value.why == why


def test_an_unknown_format_has_the_nearest_name():
    with pytest.raises(InvalidArgument, match="did you mean activex"):
        encode(5, "activx")
    with pytest.raises(InvalidArgument, match="did you mean rebus"):
        encode(5, "json", headers_format="rebuss")
    with pytest.raises(InvalidValue, match="write headers_format nservicebus or rebus"):
        encode(5, "json", headers={"a": "b"})


@pytest.mark.parametrize("format", ["nservicebus", "rebus"])
def test_a_message_of_a_framework_is_json_with_headers(format):
    body, body_type, extension = encode({"Id": 5}, format, type="Shop.PlaceOrder, Shop")
    read = decode(body, body_type=body_type, extension=extension)
    assert isinstance(read, Body)
    assert (read.format, read.value, read.headers_format) == ("json", {"Id": 5}, format)
    assert read.problems == ()
    named = read.named
    assert named.message_types == ("Shop.PlaceOrder, Shop",)
    assert named.message_id
    assert named.content_type.startswith("application/json")
    assert named.time_sent[10] == "T"
    assert len(named.time_sent.partition(".")[2].rstrip("Z")) >= 9
    assert json.loads(body) == {"Id": 5}


def test_headers_alone_go_with_any_body():
    body, body_type, extension = encode(5, "xml", headers={"a": "<\x01>"}, headers_format="nservicebus")
    read = decode(body, body_type=body_type, extension=extension)
    assert (read.format, read.value, read.headers) == ("xml", 5, {"a": "<\x01>"})


def test_small_limits_are_kept():
    read = decode(b'{"a": [1, 2, 3, 4]}', limits=Limits(items=2))
    assert read.value == {"a": [1, 2]}
    assert [problem.error for problem in read.problems] == ["there are more than 2 items of arrays"]


@pytest.mark.parametrize("limits", [Limits(text=1), Limits(memory=0)])
@pytest.mark.parametrize(("body_type", "body"), [(8, "ab".encode("utf-16-le")), (30, b"ab")])
def test_a_body_above_a_limit_keeps_its_bytes(body_type: int, body: bytes, limits: Limits) -> None:
    found = decode(body, body_type=body_type, limits=limits)
    assert (found.format, found.value) == ("bytes", {"$bytes": body.hex()})
    assert len(found.problems) == 1


def test_limits_agree_with_their_nouns() -> None:
    (problem,) = decode(b"[1, 2, 3]", limits=Limits(items=1)).problems
    assert problem.error == "there are more than 1 item of arrays"
