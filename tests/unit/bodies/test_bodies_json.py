"""JSON and what has JSON inside: MassTransit, Shuttle, gzip; and plain text."""

from __future__ import annotations

import base64
import gzip
import json

import pytest

from msmqwire.bodies import decode, encode
from msmqwire.errors import InvalidValue


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        ("[]", []),
        ('{"a": [1, -2.5, true, false, null, "b"]}', {"a": [1, -2.5, True, False, None, "b"]}),
        ('{"a": 9007199254740992}', {"a": 9007199254740992}),
        ('{"a": 9007199254740993}', {"a": {"$decimal": "9007199254740993"}}),
        ('{"a": -123456789012345678901234567890}', {"a": {"$decimal": "-123456789012345678901234567890"}}),
        ('{"a": 0.1234567890123456789}', {"a": {"$decimal": "0.1234567890123456789"}}),
        ('{"a": 1e400}', {"a": {"$decimal": "1e400"}}),
        ('{"a": 1e-400}', {"a": {"$decimal": "1e-400"}}),
        ('{"a": 1e3}', {"a": 1000.0}),
        ('{"a": 1.50}', {"a": 1.5}),
        ('{"a": 22.990000000000002}', {"a": 22.990000000000002}),
        ('{"$type": "A, b", "$$": 1}', {"$$type": "A, b", "$$$": 1}),
        ('{"\\u0024id": 1}', {"$$id": 1}),
        ('{"a": "\\ud83d\\ude00 \\u00fc \\/"}', {"a": "\U0001f600 ü /"}),
        ('{"a": "9e1 12345678901234567890"}', {"a": "9e1 12345678901234567890"}),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_json_is_plain_data_without_loss(text, value, encoding):
    body = decode(f" {text}\r\n".encode(encoding))
    assert (body.format, body.value, body.problems) == ("json", value, ())


@pytest.mark.parametrize(
    ("text", "value", "error", "path", "offset"),
    [
        ('{"a": 1, "a": 2}', {"a": 2}, "'a' is there twice; the last one is kept", "a", 14),
        ('{"a": {"b": 1, "b": 2}}', {"a": {"b": 2}}, "'b' is there twice; the last one is kept", "a.b", 20),
        ('{"a": NaN}', {"a": {"$float": "NaN"}}, "NaN is not a value of JSON", "", 6),
        ("[-Infinity]", [{"$float": "-INF"}], "-Infinity is not a value of JSON", "", 1),
        ('{"a": "\\ud800"}', {"a": "\ufffd"}, "a half of a surrogate pair is not a character", "", 7),
        ('{"ü": [1, 2', {"ü": [1, 2]}, "not well-formed JSON: expected a comma or ], got 'the end'", "ü", 12),
        ('{"a": 1} x', {"a": 1}, "not well-formed JSON: there is more after the value", "", 9),
        ('{"a": x}', {}, "not well-formed JSON: expected a value, got 'x'", "", 6),
        (
            '{"a": 1, b: 2}',
            {"a": 1},
            "not well-formed JSON: expected a name in quotation marks, got 'b'",
            "",
            9,
        ),
        ('{"a": "b\\x"}', {}, "not well-formed JSON: '\\\\x' is not an escape", "", 8),
        ('{"a": [01]}', {"a": [0]}, "not well-formed JSON: expected a comma or ], got '1'", "a", 8),
    ],
)
def test_what_is_read_before_a_fault_is_kept(text, value, error, path, offset):
    body = decode(text.encode())
    if not value:
        body = decode(text.encode(), extension=b'{"rbs2-content-type": "application/json"}')
    assert (body.format, body.value) == ("json", value)
    assert [(problem.error, problem.path, problem.offset) for problem in body.problems] == [
        (error, path, offset)
    ]


@pytest.mark.parametrize(
    "text", ["[INFO] started", "[2026-11-28] x", "{braces}", "5", '"a" and "b"', '"a', "true", "null", "{"]
)
def test_what_only_begins_as_json_does_is_text(text):
    body = decode(text.encode())
    assert (body.format, body.value, body.problems) == ("text", text, ())


def test_depth_of_json_is_limited_however_it_is_written():
    for text in ("[" * 500, "[" * 500 + "]" * 500, '{"a":' * 500 + "1" + "}" * 500, '["[[[[[",' * 129 + "1"):
        body = decode(text.encode())
        assert body.format == "json"
        assert body.problems[0].error == "more than 128 objects and arrays deep"
    for text in ("[" * 128 + "]" * 128, '["}}}}",' * 128 + "1" + "]" * 128):
        assert decode(text.encode()).problems == ()
    flat = json.dumps([{"a": [n]} for n in range(5000)]).encode()
    assert decode(flat).problems == ()


def test_json_is_written():
    value = {
        "a": 1, "b": [True, None, 1.5, "ü\"\n"], "$$type": "A", "c": {"$decimal": "1.50"},
        "d": {"$date": "2026-11-28T08:00:00.123456700Z"}, "e": {"$bytes": "0102"}, "f": {"$timespan": "PT1H"},
        "g": {"$guid": "557358d1-9150-9595-4997-0c1a2b3c4d5e"}, "h": {}, "i": [],
    }  # fmt: skip
    assert encode(value, "json") == (
        (
            '{"a":1,"b":[true,null,1.5,"ü\\"\\n"],"$type":"A","c":1.50,"d":"2026-11-28T08:00:00.1234567Z",'
            '"e":"AQI=","f":"PT1H","g":"557358d1-9150-9595-4997-0c1a2b3c4d5e","h":{},"i":[]}'
        ).encode(),
        0,
        b"",
    )
    assert encode({"a": 1}, "json", type="A, b")[0] == b'{"$type":"A, b","a":1}'
    assert encode({"$id": 1, "$items": [1, 2]}, "json")[0] == b"[1,2]"


def test_a_deep_value_is_written_without_recursion():
    value = []
    for _ in range(100_000):
        value = [value]
    assert encode(value, "json")[0] == b"[" * 100_001 + b"]" * 100_001


@pytest.mark.parametrize(
    ("value", "path", "hint"),
    [
        ({"a": [1, float("nan")]}, "a[1]", "write it as a text, or as null"),
        ({"a": {"$float": "INF"}}, "a", "write it as a text, or as null"),
        ({"a": {"$decimal": "x"}}, "a", 'write {"$decimal"'),
        ({"a": {"$bytes": "x"}}, "a", "not bytes in hex"),
        ({"a": {"b": {1, 2}}}, "a.b", "set is not a value of JSON"),
        ("\ud800", "", "half a surrogate pair"),
    ],
)
def test_values_that_json_lacks_are_reported_with_their_path(value, path, hint):
    with pytest.raises(InvalidValue) as caught:
        encode(value, "json")
    assert (caught.value.path, hint in caught.value.why) == (path, True)


ENVELOPE = {
    "messageId": "m1", "correlationId": "c1", "responseAddress": "msmq://web/answers",
    "messageType": ["urn:message:Shop:PlaceOrder", "urn:message:Shop:IOrder"],
    "message": {"id": 5}, "sentTime": "2026-11-28T08:00:00Z",
}  # fmt: skip


def test_an_envelope_of_masstransit_is_reported():
    body = decode(json.dumps(ENVELOPE).encode())
    assert (body.format, body.value, body.problems) == ("masstransit", ENVELOPE, ())
    assert body.text == "Shop:PlaceOrder {id: 5}"
    named = body.named
    assert named.message_types == tuple(ENVELOPE["messageType"])
    assert (named.message_id, named.correlation_id, named.reply_to) == ("m1", "c1", "msmq://web/answers")
    assert named.time_sent == "2026-11-28T08:00:00.000000000Z"
    xml = b"<envelope><message><id>5</id></message><messageType>urn:message:Shop:A</messageType></envelope>"
    assert decode(xml).format == "masstransit"
    assert decode(b'{"message": 1, "messageType": "other"}').format == "json"


SHUTTLE = (
    '<TransportMessage xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><Message>{}</Message>'
    "<MessageId>557358d1-9150-9595-4997-0c1a2b3c4d5e</MessageId><MessageType>Shop.A</MessageType>"
    "<AssemblyQualifiedName>Shop.A, Shop</AssemblyQualifiedName>{}</TransportMessage>"
)


def test_a_transport_message_of_shuttle_is_read_with_its_message():
    inner = base64.b64encode(b'<?xml version="1.0"?><A><Id>5</Id></A>').decode()
    body = decode(SHUTTLE.format(inner, "").encode())
    assert (body.format, body.problems) == ("shuttle", ())
    assert body.value["Message"] == {"$type": "A", "Id": "5"}
    assert body.text == "Shop.A A{Id: 5}"
    assert body.named.message_types == ("Shop.A, Shop",)
    packed = base64.b64encode(gzip.compress(b'{"a": 1}')).decode()
    assert decode(SHUTTLE.format(packed, "").encode()).value["Message"] == {"a": 1}
    secret = SHUTTLE.format(inner, "<EncryptionAlgorithm>3des</EncryptionAlgorithm>")
    assert list(decode(secret.encode()).value["Message"]) == ["$bytes"]
    broken = decode(SHUTTLE.format("***", "").encode())
    assert (broken.value["Message"], broken.problems[0].error) == ("***", "is not base64")
    in_json = {"Message": inner, "MessageId": "m", "AssemblyQualifiedName": "Shop.A, Shop"}
    assert decode(json.dumps(in_json).encode()).format == "shuttle"


def test_gzip_is_decoded_once():
    packed = gzip.compress(b"<int>5</int>")
    body = decode(packed)
    assert (body.format, body.value, body.problems) == ("gzip", 5, ())
    twice = decode(gzip.compress(packed))
    assert (twice.format, twice.value) == ("gzip", {"$bytes": packed.hex()})
    assert twice.problems[0].error == "gzip within gzip is not decompressed again"
    assert decode(gzip.compress(b"hello ") + gzip.compress(b"you") + b"\0\0").value == "hello you"


@pytest.mark.parametrize(
    ("body", "value", "error"),
    [
        (gzip.compress(b"hello", mtime=0)[:-4], "hello", "the gzip breaks off"),
        (
            gzip.compress(b"hello", mtime=0)[:-8] + bytes(8),
            "hello",
            "not well-formed gzip: incorrect data check",
        ),
        (gzip.compress(b"hello", mtime=0) + b"more", "hello", "there is more after the gzip"),
    ],
)
def test_faults_of_gzip_are_problems(body, value, error):
    read = decode(body)
    assert (read.format, read.value, [problem.error for problem in read.problems]) == ("gzip", value, [error])


def test_gzip_is_limited():
    bomb = decode(gzip.compress(b"a" * (64 << 20)))
    assert bomb.format == "gzip"
    assert len(bomb.value) < 4 << 20
    assert bomb.problems[0].error.startswith("decompresses to more than")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_text_in_whatever_encoding(encoding):
    assert decode("Grüße €, \r\n".encode(encoding)).value == "Grüße €, \r\n"
    assert decode("Grüße €, \r\n".encode(encoding)).text == "Grüße €,"


def test_text_is_written_in_an_encoding():
    assert encode("ü", "text") == (b"\xc3\xbc", 0, b"")
    assert encode("ü", "text", type="utf-16-le") == (b"\xfc\0", 0, b"")
    with pytest.raises(InvalidValue, match="is not an encoding"):
        encode("ü", "text", type="utf-99")
    with pytest.raises(InvalidValue, match="can't be written in ascii"):
        encode("ü", "text", type="ascii")
    with pytest.raises(InvalidValue, match="write it as json"):
        encode({"a": 1}, "text")
    assert encode({"$bytes": "00ff"}, "bytes") == (b"\0\xff", 0, b"")


@pytest.mark.parametrize("item", ['"",', '"ab",', "0,", "257,", "1.5,"])
def test_long_lists_of_short_values_are_read_in_the_quick_way(item, monkeypatch):
    """The careful parser takes tens of times as long, so that time would not be linear in the size."""
    monkeypatch.setattr("msmqwire.bodies.json.reading.Careful", None)
    text = "[" + item * ((1 << 20) // len(item)) + "0]"
    assert len(decode(text.encode()).value) == text.count(",") + 1


@pytest.mark.parametrize("value", ["", "a", 'quotes " and \\', "\U0001f600", "line\nend"])
def test_a_text_in_quotation_marks_is_json(value):
    body = decode(encode(value, "json")[0])
    assert (body.format, body.value, body.problems) == ("json", value, ())


def test_names_of_members_are_texts():
    with pytest.raises(InvalidValue, match=r"a\[1\]: the name of a member is a text, not 1"):
        encode({"a": [0, {1: 2}]}, "json")
