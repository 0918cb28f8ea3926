"""Headers of NServiceBus and Rebus in the extension."""

from __future__ import annotations

import pytest

from msmqwire.bodies import Limits, decode, encode
from msmqwire.errors import InvalidValue

BEGIN = (
    '<?xml version="1.0" encoding="utf-8"?><ArrayOfHeaderInfo'
    ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema">'
)
END = "</ArrayOfHeaderInfo>"


def header(key, value):
    return f"<HeaderInfo><Key>{key}</Key><Value>{value}</Value></HeaderInfo>"


def read(text):
    return decode(b"x", extension=text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize("mark", ["", "\ufeff", " \r\n", "\ufeff\r\n"])
@pytest.mark.parametrize("after", ["", "\0", "\0" * 200, "anything <else> at all", "\r\n"])
def test_a_mark_before_and_anything_after_are_taken(mark, after):
    body = read(mark + BEGIN + header("a", "1") + header("b", "2") + END + after)
    assert (body.headers_format, dict(body.headers), body.problems) == (
        "nservicebus",
        {"a": "1", "b": "2"},
        (),
    )


@pytest.mark.parametrize(
    ("inner", "headers"),
    [
        ("", {}),
        ("<HeaderInfo><Key>a</Key><Value /></HeaderInfo>", {"a": ""}),
        ("<HeaderInfo><Key>a</Key></HeaderInfo>", {"a": ""}),
        ('<HeaderInfo><Key>a</Key><Value xsi:nil="true" /></HeaderInfo>', {"a": ""}),
        ("<HeaderInfo><Value>1</Value></HeaderInfo>", {}),  # NServiceBus leaves out what has no key
        ("<HeaderInfo />", {}),
        ("<HeaderInfo><Value>1</Value><Key>a</Key></HeaderInfo>", {"a": "1"}),
        (header("a", "&lt;b&gt; &amp; &quot;&apos;&#65;&#x42;"), {"a": "<b> & \"'AB"}),
        (header("a", "\x01\x0b\x1f"), {"a": "\x01\x0b\x1f"}),
        (header("a", "&#x1;&#0;&#xFFFF;&#xD800;"), {"a": "\x01\0\uffff\ufffd"}),
        (header("a", "<![CDATA[<x>&amp;]]>"), {"a": "<x>&amp;"}),
        (header("a", "line\r\ntwo\rthree&#xD;"), {"a": "line\ntwo\nthree\r"}),
        (header("a", "<![CDATA[line\r\ntwo]]>"), {"a": "line\ntwo"}),
        ("\r\n  <HeaderInfo>\r\n    <Key>a</Key>\r\n    <Value>1</Value>\r\n  </HeaderInfo>\r\n", {"a": "1"}),
        ("<!-- c --><HeaderInfo><!-- d --><Key>a</Key><Value>1<!-- e -->2</Value></HeaderInfo>", {"a": "12"}),
        (header("", "1"), {"": "1"}),
        (header("b", "1") + header("a", "2"), {"b": "1", "a": "2"}),
    ],
)
def test_headers_are_read_as_nservicebus_reads_them(inner, headers):
    body = read(BEGIN + inner + END)
    assert (body.headers_format, body.headers, body.problems) == ("nservicebus", headers, ())
    assert list(body.headers) == list(headers)


@pytest.mark.parametrize(
    ("text", "headers", "error", "path"),
    [
        (BEGIN + header("a", "1") + header("a", "2") + END, {"a": "1"},
         "is there twice, which NServiceBus refuses; the first one is kept", "extension.a"),
        (BEGIN + header("a", "1") + "<HeaderInfo><Key>b", {"a": "1"},
         "the headers are not ended", "extension"),
        (BEGIN + header("a", "1") + "< " + header("b", "2") + END, {"a": "1", "b": "2"},
         "has a < that begins no element", "extension"),
        ("<ArrayOfHeaderInfo ", {}, "the start tag of the headers is not ended", "extension"),
        ((BEGIN + header("a", "1")).encode() + b"<HeaderInfo><Key>b</Key><Value>\xff</Value></HeaderInfo>"
         + END.encode(), {"a": "1", "b": "\ufffd"}, "is not well-formed UTF-8", "extension"),
        (b'{"a": "b"', {"a": "b"}, "not well-formed JSON: expected a comma or }, got 'the end'", "extension"),
        (b'{"a": 5}', {"a": "5"}, "is not text", "extension.a"),
        (b'{"a": "1", "a": "2"}', {"a": "2"}, "'a' is there twice; the last one is kept", "extension.a"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_headers_is_a_problem(text, headers, error, path):
    body = read(text)
    assert body.headers == headers
    assert [(problem.error, problem.path) for problem in body.problems] == [(error, path)]


@pytest.mark.parametrize(
    ("extension", "headers"),
    [
        (b'{"rbs2-msg-id": "1", "a": "\xc3\xbc"}', {"rbs2-msg-id": "1", "a": "ü"}),
        (b'\xef\xbb\xbf{"a":"b"}', {"a": "b"}),
        (b'{"a": null}', {"a": ""}),
        (b'{"$a": "1"}', {"$a": "1"}),
        (b"{}", {}),
        (b'{"a":"b"}\0\0', {"a": "b"}),
        ('{"a":"b"}'.encode("utf-7").replace(b"{", b"+AHs").replace(b"}", b"+AH0-"), {"a": "b"}),
    ],
)
def test_headers_of_rebus(extension, headers):
    body = read(extension)
    assert (body.headers_format, body.headers, body.problems) == ("rebus", headers, ())


@pytest.mark.parametrize("extension", [b"", b"\0\0", b"other", b"<a/>", b"\x80\x81", b"{other}"])
def test_other_extensions_have_no_headers(extension):
    body = read(extension)
    assert (body.headers_format, body.headers, body.problems) == (None, {}, ())


@pytest.mark.parametrize("format", ["nservicebus", "rebus"])
def test_headers_are_written_and_read_back(format):
    headers = {"b": "<&>\"'", "a": "\x01 \r\n\t ü€\U0001f600", "": "", "$c": "1", "d": "]]>"}
    _, _, extension = encode("x", "text", headers=headers, headers_format=format)
    body = decode(b"x", extension=extension)
    assert (body.headers_format, list(body.headers.items()), body.problems) == (
        format,
        list(headers.items()),
        (),
    )


def test_a_header_that_is_no_text_is_refused():
    with pytest.raises(InvalidValue, match="the value of a header is a text"):
        encode("x", "text", headers={"a": 5}, headers_format="rebus")
    with pytest.raises(InvalidValue, match="half a surrogate pair"):
        encode("x", "text", headers={"a": "\ud800"}, headers_format="nservicebus")


def test_what_nservicebus_says_of_a_message_has_names():
    headers = {
        "NServiceBus.MessageId": "m1", "NServiceBus.CorrelationId": "c1",
        "NServiceBus.ContentType": "text/xml",
        "NServiceBus.EnclosedMessageTypes": "Shop.A, Shop;Shop.IA, Shop", "NServiceBus.SagaId": "s1",
        "NServiceBus.TimeSent": "2026-11-28 08:00:00:123456 Z", "NServiceBus.ReplyToAddress": "shop@web",
        "NServiceBus.OriginatingSagaId": "s2",
    }  # fmt: skip
    _, _, extension = encode(1, "json", headers=headers, headers_format="nservicebus")
    named = decode(b"<x/>", extension=extension).named
    assert named.content_type == "text/xml"
    assert named.message_types == ("Shop.A, Shop", "Shop.IA, Shop")
    assert (named.message_id, named.correlation_id, named.reply_to) == ("m1", "c1", "shop@web")
    assert named.time_sent == "2026-11-28T08:00:00.123456000Z"
    assert named.sagas == {"NServiceBus.SagaId": "s1", "NServiceBus.OriginatingSagaId": "s2"}


def test_what_rebus_says_of_a_message_has_names():
    extension = (
        b'{"rbs2-msg-id": "m1", "rbs2-corr-id": "c1", "rbs2-content-type": "application/json;charset=utf-8",'
        b'"rbs2-msg-type": "Shop.A, Shop", "rbs2-return-address": "shop@web",'
        b'"rbs2-senttime": "2026-11-28T08:00:00.1234567+01:00"}'
    )
    named = decode(b"{}", extension=extension).named
    assert (named.message_id, named.correlation_id, named.reply_to) == ("m1", "c1", "shop@web")
    assert named.message_types == ("Shop.A, Shop",)
    assert named.time_sent == "2026-11-28T08:00:00.123456700+01:00"


def test_the_content_type_of_headers_decides():
    extension = b'{"rbs2-content-type": "application/json;charset=utf-8"}'
    assert decode(b"5", extension=extension).value == 5
    assert decode(b'"a"', extension=extension).value == "a"
    body = decode(b"hello", extension=extension)
    assert (body.format, body.value) == ("text", "hello")
    assert body.problems[0].error.startswith("not well-formed JSON")


@pytest.mark.parametrize(
    ("kind", "data", "format", "value", "error"),
    [
        ("text/xml", b'{"a": 1}', "json", {"a": 1}, "not well-formed XML"),
        ("application/json", b"<int>5</int>", "xml", 5, "not well-formed JSON"),
        ("text/xml", b"hello", "text", "hello", "not well-formed XML"),
    ],
)
def test_a_content_type_that_is_wrong_is_a_problem(kind, data, format, value, error):
    text = BEGIN + header("NServiceBus.ContentType", kind) + END
    body = decode(data, extension=text.encode())
    assert (body.format, body.value) == (format, value)
    assert [problem.error[: len(error)] for problem in body.problems] == [error]


def test_bytes_after_the_headers_need_not_be_text():
    extension = (BEGIN + header("a", "1") + END).encode() + b"\0\xff\xfe"
    assert decode(b"x", extension=extension).problems == ()


def test_what_is_made_for_nservicebus_can_be_given():
    given = {"NServiceBus.MessageId": "m1", "NServiceBus.MessageIntent": "Publish"}
    _, _, extension = encode({}, "nservicebus", headers=given)
    headers = decode(b"{}", extension=extension).headers
    assert list(headers)[:2] == list(given)
    assert (headers["NServiceBus.MessageId"], headers["NServiceBus.MessageIntent"]) == ("m1", "Publish")
    assert headers["NServiceBus.CorrelationId"] == "m1"
    assert "NServiceBus.EnclosedMessageTypes" not in headers


def test_headers_are_limited():
    text = BEGIN + "".join(header(str(n), "x") for n in range(50)) + END
    body = decode(b"x", extension=text.encode(), limits=Limits(records=10))
    assert len(body.headers) == 10
    assert body.problems[0].error == "there are more than 10 records"
