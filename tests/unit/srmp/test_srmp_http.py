"""HTTP messages of SRMP: heads byte for byte, the length of entities, streams. [MC-MQSRM] 2.1.1."""

from __future__ import annotations

import http.client
import io
import pickle
from dataclasses import replace

import pytest

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.srmp.fields import FIELD_COUNT_MAX, HEAD_SIZE_MAX, Field, parse_media_type, value_of
from msmqwire.srmp.http_framer import (
    CHUNK_COUNT_MAX,
    CHUNK_LINE_MAX,
    HttpFramer,
    parse_http,
)
from msmqwire.srmp.http_message import Chunking, HttpMessage, RequestLine, StatusLine
from msmqwire.srmp.limits import ENTITY_SIZE_MAX
from tests.support.paths import ROOT

VECTORS = {path.stem: path.read_bytes() for path in sorted((ROOT / "tests/vectors/srmp").glob("*.http"))}
POST = b"POST /q HTTP/1.1\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


def refused(data: bytes) -> MalformedPacket:
    """The error of a message, which the framer gives as well, at the same byte however it is fed."""
    with pytest.raises(MalformedPacket) as caught:
        parse_http(data)
    error = caught.value
    assert error.path
    assert error.offset is not None
    assert 0 <= error.offset <= len(data)
    return error


def head(*lines: bytes, start: bytes = POST) -> bytes:
    return start + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


# --- heads -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VECTORS)
def test_published_messages_come_back_whole(name):
    assert parse_http(VECTORS[name]).to_bytes() == VECTORS[name]


def test_there_are_vectors_of_every_message():
    assert len(VECTORS) == 15


@pytest.mark.requirement("SRMP-2.1.1-04")
def test_request_lines():
    assert parse_http(VECTORS["4.1"]).start == RequestLine("POST", "/msmq/private$/simpleq", "HTTP/1.1")
    assert parse_http(VECTORS["4.4-2"]).start.target == "/msmq/private$/receipts?senderstream=xrntv"
    assert parse_http(VECTORS["4.5"]).start.target == "234.1.1.1:8001"


@pytest.mark.requirement("SRMP-4.3-02")
@pytest.mark.parametrize(
    "name, date",
    [
        ("4.3-2", "Thu, 19 Jul 2007 03:24:51 GMT"),
        ("4.3-4", "Thu, 19 Jul 2007 03:24:57 GMT"),
        ("4.3-6", "Thu, 19 Jul 2007 03:27:21 GMT"),
    ],
)
def test_responses(name, date):
    fields = Field("Content-Length", "0"), Field("Server", "Microsoft-IIS/7.0"), Field("Date", date)
    assert parse_http(VECTORS[name]) == HttpMessage(StatusLine(200, "OK", "HTTP/1.1"), fields, b"")


@pytest.mark.parametrize("reason", [None, "", "Bad Request", "\u00fc"])
def test_the_reason_of_a_status_line_may_be_missing(reason):
    message = HttpMessage(StatusLine(400, reason), (Field("Content-Length", "0"),))
    assert parse_http(message.to_bytes()) == message


@pytest.mark.requirement("SRMP-2.1.1-05")
def test_fields_are_taken_in_any_order_and_case():
    message = parse_http(head(b"proxy-accept: x", b"CONTENT-LENGTH: 2", b"Host: m") + b"ab")
    assert [field.name for field in message.fields] == ["proxy-accept", "CONTENT-LENGTH", "Host"]
    assert (message.entity, value_of(message.fields, "host")) == (b"ab", "m")


@pytest.mark.parametrize(
    "line, value",
    [
        (b"A:b", "b"), (b"A:  b\t", "b"), (b"A:", ""), (b"A: ", ""), (b"A: b c", "b c"),
        (b"A: \xfc", "\u00fc"),
        (b"A: b\r\n c", "b c"), (b"A:\r\n\tb  \r\n  c ", "b c"), (b"A: b\r\n ", "b"),
    ],
)  # fmt: skip
def test_a_field_keeps_its_bytes_until_it_is_changed(line, value):
    data = head(line)
    message = parse_http(data)
    assert [(field.name, field.value) for field in message.fields] == [("A", value)]
    assert message.fields[0].folded is (b"\r\n" in line)
    assert message.to_bytes() == data
    changed = replace(message, fields=(replace(message.fields[0], value="new"),))
    assert changed.to_bytes() == head(b"A: new")
    renamed = replace(message, fields=(replace(message.fields[0], name="B"),))
    assert parse_http(renamed.to_bytes()).fields[0] == Field("B", value)


def test_the_printed_content_type_is_read_if_it_is_folded():
    line = b'Content-Type: multipart/related; boundary="MSMQ - SOAP boundary, 53287";'
    folded = parse_http(head(line, b"  type=text/xml"))
    one_line = 'multipart/related; boundary="MSMQ - SOAP boundary, 53287"; type=text/xml'
    assert folded.fields[0].value == one_line
    # as it is printed, without a blank, the second line is not a field
    assert refused(head(line, b"type=text/xml")).offset == len(POST + line) + 2


@pytest.mark.parametrize(
    "data, path, offset",
    [
        (b"POST  /q HTTP/1.1\r\n\r\n", "RequestLine", 0),
        (b"POST /q HTTP/2.0\r\n\r\n", "RequestLine", 0),
        (b"POST /q\r\n\r\n", "RequestLine", 0),
        (b"POST /q\x00 HTTP/1.1\r\n\r\n", "RequestLine", 0),
        (b"\r\nPOST /q HTTP/1.1\r\n\r\n", "RequestLine", 0),
        (b"HTTP/1.1 99 x\r\n\r\n", "StatusLine", 0),
        (b"HTTP/1.1 600 x\r\n\r\n", "StatusLine", 0),
        (b"HTTP/1.1 200x\r\n\r\n", "StatusLine", 0),
        (b"POST /q HTTP/1.1\n\n", "RequestLine", 16),
        (b"PO\rST /q HTTP/1.1\r\n\r\n", "RequestLine", 2),
        (head(b"A: b\nContent-Length: 5"), "HeaderFields", 22),
        (head(b"A: b\rContent-Length: 5"), "HeaderFields", 22),
        (POST + b"A: b\r\n\n", "HeaderFields", 24),
        (head(b" A: b"), "HeaderFields", 18),
        (head(b"A : b"), "HeaderFields", 18),
        (head(b": b"), "HeaderFields", 18),
        (head(b"A"), "HeaderFields", 18),
        (head(b"A: \0"), "HeaderFields", 18),
        (head(b"A: b", b" \x7f"), "HeaderFields", 24),
        (head(b"Content-Type: text/xml", b"content-type: text/xml"), "HeaderFields.Content-Type", 42),
    ],
)
def test_heads_that_are_refused(data, path, offset):
    error = refused(data)
    assert (error.path, error.offset) == (path, offset)


@pytest.mark.parametrize(
    "name, value",
    [("A B", "x"), ("", "x"), ("A:", "x"), ("A", "x\r\nB: y"), ("A", "x\n"), ("A", " x"), ("A", "x\0"),
     ("A", "\u20ac")],
)  # fmt: skip
def test_fields_that_would_not_read_back_are_not_built(name, value):
    with pytest.raises(InvalidValue) as caught:
        HttpMessage(RequestLine("POST", "/q"), (Field("H", "m"), Field(name, value))).to_bytes()
    assert caught.value.path == "HeaderFields[1]"


@pytest.mark.parametrize(
    "start",
    [RequestLine("PO ST", "/"), RequestLine("POST", "/a b"), RequestLine("POST", "/\r\n"),
     RequestLine("POST", "/", "x"), StatusLine(99, "x"), StatusLine(200, "a\r\nb")],
)  # fmt: skip
def test_start_lines_that_would_not_read_back_are_not_built(start):
    with pytest.raises(InvalidValue):
        HttpMessage(start).to_bytes()


def test_a_head_has_a_largest_size():
    room = HEAD_SIZE_MAX - len(head(b"A: "))
    assert parse_http(head(b"A: " + b"x" * room)).fields[0].value == "x" * room
    assert refused(head(b"A: " + b"x" * (room + 1))).offset == HEAD_SIZE_MAX
    assert refused(b"x" * (HEAD_SIZE_MAX + 1)).path == "RequestLine"


def test_a_head_has_a_largest_number_of_fields():
    assert len(parse_http(head(*[b"A: b"] * FIELD_COUNT_MAX)).fields) == FIELD_COUNT_MAX
    offset = len(POST) + FIELD_COUNT_MAX * len(b"A: b\r\n")
    assert refused(head(*[b"A: b"] * (FIELD_COUNT_MAX + 1))).offset == offset


@pytest.mark.parametrize("cut", range(0, len(VECTORS["4.3-3"]), 7))
def test_a_message_that_breaks_off_is_refused_at_its_end(cut):
    assert refused(VECTORS["4.3-3"][:cut]).offset == cut


# --- the length of an entity -------------------------------------------------------------------------------


@pytest.mark.requirement("SRMP-2.1.1-11")
@pytest.mark.parametrize(
    "name, length",
    [("4.1", 906), ("4.2", 1273), ("4.3-1", 1553), ("4.4-1", 1750), ("4.4-3", 1500), ("4.4-5", 1524),
     ("4.5", 1067)],
)  # fmt: skip
def test_content_length_counts_all_behind_the_head(name, length):
    entity = parse_http(VECTORS[name]).entity
    assert len(entity) == length
    assert entity.startswith(b"--MSMQ - SOAP boundary, ")
    assert entity.endswith(b"--\r\n")
    assert refused(VECTORS[name] + b"\r\n").offset == len(VECTORS[name])


@pytest.mark.parametrize(
    "value",
    [b"-1", b"+2", b"0x2", b"2 ", b"", b"2, 2", b"2,2", b"2.0", b"2_0", b"\xb2", b"9" * 20, b"9" * 10_000]
)  # fmt: skip
def test_content_lengths_that_are_refused(value):
    data = head(b"Host: m", b"Content-Length: " + value) + b"ab"
    if value == b"2 ":  # blanks do not belong to a value
        assert parse_http(data).entity == b"ab"
        return
    error = refused(data)
    assert (error.path, error.offset) == ("HeaderFields.Content-Length", len(POST + b"Host: m\r\n"))


def test_an_entity_has_a_largest_size():
    refused(head(b"Content-Length: %d" % (ENTITY_SIZE_MAX + 1)))
    data = head(b"Content-Length: 5") + b"abcde"
    assert parse_http(data, 5).entity == b"abcde"
    with pytest.raises(MalformedPacket, match="5 is more than 4"):
        parse_http(data, 4)


@pytest.mark.parametrize(
    "lines, name",
    [
        ([b"Content-Length: 2", b"Content-Length: 2"], "Content-Length"),
        ([b"Content-Length: 2", b"content-length: 3"], "Content-Length"),
        ([b"Content-Length:", b" 2"], "Content-Length"),
        ([b"Transfer-Encoding: chunked", b"Content-Length: 2"], "Transfer-Encoding"),
        ([b"Content-Length: 2", b"Transfer-Encoding: chunked"], "Transfer-Encoding"),
        ([b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"], "Transfer-Encoding"),
        ([b"Transfer-Encoding:", b" chunked"], "Transfer-Encoding"),
        ([b"Transfer-Encoding: gzip, chunked"], "Transfer-Encoding"),
        ([b"Transfer-Encoding: identity"], "Transfer-Encoding"),
        ([b"Transfer-Encoding: xchunked"], "Transfer-Encoding"),
        ([b"Transfer-Encoding:"], "Transfer-Encoding"),
    ],
)
def test_what_two_readers_could_cut_differently_is_refused(lines, name):
    assert refused(head(*lines) + b"0\r\n\r\n").path == f"HeaderFields.{name}"


def test_chunks_need_http_1_1():
    assert refused(CHUNKED.replace(b"1.1", b"1.0") + b"0\r\n\r\n").path == "HeaderFields.Transfer-Encoding"


def test_a_request_without_a_length_has_no_entity():
    assert parse_http(head(b"Host: m")).entity == b""
    assert refused(head(b"Host: m") + b"x").offset == len(head(b"Host: m"))


def test_a_response_without_a_length_goes_on_to_the_end():
    data = head(start=b"HTTP/1.0 500 no\r\n") + b"abc"
    assert (parse_http(data).entity, parse_http(data).to_bytes()) == (b"abc", data)
    with pytest.raises(MalformedPacket, match="more than 2 bytes") as caught:
        parse_http(data, 2)
    assert caught.value.offset == len(data) - 1


@pytest.mark.parametrize("status", [100, 101, 204, 304])
def test_some_responses_have_no_entity(status):
    data = head(b"Content-Length: 5", start=b"HTTP/1.1 %d x\r\n" % status)
    assert parse_http(data).entity == b""


# --- chunks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chunks, entity",
    [
        (b"0\r\n\r\n", b""),
        (b"3\r\nabc\r\n0\r\n\r\n", b"abc"),
        (b"3;x=\"y\"\r\na\r\n\r\n0A\r\n0123456789\r\n000\r\n\r\n", b"a\r\n0123456789"),
        (b"1\r\na\r\n0;last\r\nX:y\r\n  z\r\n\r\n", b"a"),
    ],
)  # fmt: skip
def test_chunks_come_back_whole(chunks, entity):
    message = parse_http(CHUNKED + chunks)
    assert message.entity == entity
    assert message.to_bytes() == CHUNKED + chunks


@pytest.mark.parametrize(
    "chunks, offset",
    [
        (b"-1\r\n", 0), (b"+1\r\na\r\n", 0), (b"0x1\r\na\r\n", 0), (b"1 \r\na\r\n", 0), (b" 1\r\na\r\n", 0),
        (b"\r\n", 0),
        (b"g\r\n", 0), (b"1 ;x\r\na\r\n", 0), (b"1;\0\r\na\r\n", 0), (b"123456789\r\n", 0),
        (b"FFFFFFFF\r\n", 0),
        (b"1\na\r\n", 1), (b"1\r\nab\r\n", 4), (b"1\r\na\n0\r\n\r\n", 4), (b"1\r\na\r\n1\nb\r\n", 7),
        (b"0\r\n a: b\r\n\r\n", 3), (b"0\r\nContent-Length: 3\r\n\r\n", 3),
        (b"0\r\na:b\r\nTransfer-encoding: x\r\n\r\n", 8),
        (b"1;" + b"x" * CHUNK_LINE_MAX + b"\r\na\r\n0\r\n\r\n", CHUNK_LINE_MAX),
        (b"0\r\na:" + b"x" * HEAD_SIZE_MAX + b"\r\n\r\n", 3 + HEAD_SIZE_MAX),
        (b"0\r\n\r\nx", 5), (b"", 0), (b"3\r\nab", 5), (b"3\r\nabc\r", 7), (b"0\r\n", 3),
    ],
)  # fmt: skip
def test_chunks_that_are_refused(chunks, offset):
    assert refused(CHUNKED + chunks).offset == len(CHUNKED) + offset


def test_chunks_count_toward_the_limit_with_their_lines():
    data = CHUNKED + b"1;" + b"x" * 100 + b"\r\na\r\n5\r\nbcdef\r\n0\r\n\r\n"
    size = len(data) - len(CHUNKED)
    assert parse_http(data, size).entity == b"abcdef"
    with pytest.raises(MalformedPacket, match="the chunks take more than 112 bytes"):
        parse_http(data, 112)


def test_chunks_have_a_largest_number():
    refused(CHUNKED + b"1\r\na\r\n" * CHUNK_COUNT_MAX + b"0\r\n\r\n")
    whole = parse_http(CHUNKED + b"1\r\na\r\n" * (CHUNK_COUNT_MAX - 1) + b"0\r\n\r\n")
    assert len(whole.entity) == CHUNK_COUNT_MAX - 1


@pytest.mark.parametrize(
    "lines", [(), ("0",), ("2", "0"), ("3",), ("3", "0", "0"), ("x", "0"), ("3", "x"), ("0", "3", "0")]
)
def test_chunks_that_do_not_fit_the_entity_are_cut_anew(lines):
    built = HttpMessage(
        RequestLine("POST", "/q"), (Field("Transfer-Encoding", "chunked"),), b"abc", Chunking(lines)
    )
    assert built.to_bytes() == CHUNKED + b"3\r\nabc\r\n0\r\n\r\n"
    assert replace(built, entity=b"").to_bytes() == CHUNKED + b"0\r\n\r\n"


def test_an_offset_in_the_entity_becomes_one_in_the_message():
    data = CHUNKED + b"3;x\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    message = parse_http(data)
    assert [data[message.offset_of(at)] for at in range(5)] == list(b"abcde")
    plain = parse_http(VECTORS["4.5"])
    assert VECTORS["4.5"][plain.offset_of(3)] == plain.entity[3]


# --- streams -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 100, 100_000])
def test_messages_of_a_connection_are_split_at_any_feed_size(size):
    chunked = CHUNKED + b"3\r\nabc\r\n0\r\n\r\n"
    datas = [*VECTORS.values(), chunked, head(b"Host: m"), VECTORS["4.1"]]
    stream, framer, messages = b"".join(datas), HttpFramer(), []
    for at in range(0, len(stream), size):
        messages += framer.feed(stream[at : at + size])
        assert framer.offset + framer.buffered == min(at + size, len(stream))
    assert [message.to_bytes() for message in messages] == datas
    assert framer.close() == []


def test_an_error_ends_a_stream_behind_the_messages_before_it():
    framer = HttpFramer()
    bad = head(b"Content-Length: x")
    assert [m.to_bytes() for m in framer.feed(VECTORS["4.1"] + bad)] == [VECTORS["4.1"]]
    assert framer.error is not None
    assert framer.error.offset == len(POST)
    assert (framer.offset, framer.buffered) == (len(VECTORS["4.1"]), 0)
    with pytest.raises(MalformedPacket):
        framer.feed(b"")
    assert framer.close() == []


def test_a_line_is_judged_as_soon_as_it_is_there():
    framer = HttpFramer()
    framer.feed(POST + b"Host m\r\n")
    assert framer.error is not None


def test_a_stream_can_be_put_aside_and_taken_up_again():
    data = VECTORS["4.1"] + CHUNKED + b"3\r\nabc\r\n0\r\n\r\n" + head(start=b"HTTP/1.1 500 x\r\n") + b"ab"
    framer, messages = HttpFramer(), []
    for at in range(0, len(data), 5):
        messages += framer.feed(data[at : at + 5])
        framer = pickle.loads(pickle.dumps(framer))
    messages += framer.close()
    assert b"".join(message.to_bytes() for message in messages) == data


def test_only_its_end_ends_a_response_without_a_length():
    framer = HttpFramer()
    start = head(start=b"HTTP/1.1 500 x\r\n")
    assert framer.feed(VECTORS["4.3-2"] + start + b"abc") == [parse_http(VECTORS["4.3-2"])]
    assert framer.feed(b"def") == []
    assert [message.entity for message in framer.close()] == [b"abcdef"]
    assert framer.offset == len(VECTORS["4.3-2"] + start) + 6


def test_a_stream_that_ends_inside_a_message():
    framer = HttpFramer()
    framer.feed(VECTORS["4.1"] + POST)
    with pytest.raises(MalformedPacket) as caught:
        framer.close()
    assert caught.value.offset == len(POST)


# --- a second opinion --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VECTORS)
def test_the_standard_library_reads_the_same_fields(name):
    message = parse_http(VECTORS[name])
    start, _, rest = VECTORS[name].partition(b"\r\n")
    theirs = http.client.parse_headers(io.BytesIO(rest))
    assert theirs.items() == [(field.name, field.value) for field in message.fields]
    assert int(theirs["Content-Length"]) == len(message.entity)
    assert start == message.start.to_bytes().rstrip()


def test_the_standard_library_reads_the_same_folded_value():
    lines = (
        b'Content-Type: multipart/related; boundary="MSMQ - SOAP boundary, 292";\r\n\ttype=text/xml\r\n\r\n'
    )
    theirs = http.client.parse_headers(io.BytesIO(lines))
    ours = parse_http(POST + lines).fields[0].value
    assert theirs["Content-Type"].replace("\r\n\t", " ") == ours
    assert (theirs.get_content_type(), theirs.get_boundary()) == (
        "multipart/related",
        "MSMQ - SOAP boundary, 292",
    )
    assert parse_media_type(ours) == (
        "multipart/related",
        {"boundary": "MSMQ - SOAP boundary, 292", "type": "text/xml"},
    )
