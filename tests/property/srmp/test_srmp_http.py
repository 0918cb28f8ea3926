"""SRMP over HTTP: what is built reads back, any bytes raise only our errors, chunking changes nothing."""

from __future__ import annotations

import contextlib
import http.client
import io
import tracemalloc
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from fuzz.readers import srmp
from msmqwire.errors import LocatedError, MalformedPacket
from msmqwire.srmp.fields import HEAD_SIZE_MAX, Field
from msmqwire.srmp.http_framer import CHUNK_LINE_MAX, HttpFramer, parse_http
from msmqwire.srmp.http_message import Chunking, HttpMessage, RequestLine, StatusLine
from msmqwire.srmp.message import parse_message
from msmqwire.srmp.message_json import from_json, to_json
from msmqwire.srmp.multipart import Multipart, Part, parse_multipart
from msmqwire.srmp.request import make_request
from tests.support.paths import ROOT

VECTORS = [path.read_bytes() for path in sorted((ROOT / "tests/vectors/srmp").glob("*.http"))]
ENVELOPE = parse_message(VECTORS[0]).envelope_bytes or b""
FRAMING = ("content-length", "transfer-encoding", "content-type", "content-id")
# Pieces that framing turns on, in wrong places too.
PIECES = [
    b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"--", b"0", b"1", b"5", b"g", b";",
    b"POST /q HTTP/1.1\r\n", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 204 x\r\n", b"A: b\r\n", b"Content-Length: ",
    b"Transfer-Encoding: chunked", b"Content-Type: ", b'multipart/related; boundary="b"; type=text/xml',
    b"text/xml", b"--b", b"--b\r\n", b"--b--\r\n", b"Content-Id: body@x", b"<", ENVELOPE,
]  # fmt: skip

LATIN = st.characters(codec="latin-1", exclude_characters="".join(map(chr, [*range(32), 127])))
TOKENS = st.text("!#$%&'*+-.^_`|~09AZaz", min_size=1, max_size=12)
VALUES = st.text(LATIN, max_size=30).map(lambda text: text.strip(" \t"))
FIELDS = st.builds(Field, TOKENS.filter(lambda name: name.lower() not in FRAMING), VALUES)
REQUESTS = st.builds(
    RequestLine,
    TOKENS,
    st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), min_size=1),
)
STATUSES = st.builds(
    StatusLine, st.sampled_from([200, 400, 500, 599]), st.none() | st.text(LATIN, max_size=20)
)
HOSTILE = st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=30).map(b"".join)


@st.composite
def messages(draw: st.DrawFn) -> HttpMessage:
    entity = draw(st.binary(max_size=60))
    fields = draw(st.lists(FIELDS, max_size=5))
    chunking = None
    if draw(st.booleans()):
        field = Field("Transfer-Encoding", "chunked")
        cuts = sorted({0, len(entity), *draw(st.sets(st.integers(0, len(entity))))})
        ends = draw(
            st.lists(st.sampled_from(["", ";x", ';y="\xfc"']), min_size=len(cuts), max_size=len(cuts))
        )
        sizes = [*(after - before for before, after in pairwise(cuts)), 0]
        lines = tuple(f"{size:x}{end}" for size, end in zip(sizes, ends, strict=True))
        chunking = Chunking(lines, tuple(draw(st.lists(FIELDS, max_size=2))))
    else:
        field = Field("content-length", str(len(entity)))
    fields.insert(draw(st.integers(0, len(fields))), field)
    return HttpMessage(draw(REQUESTS | STATUSES), tuple(fields), entity, chunking)


@st.composite
def near_messages(draw: st.DrawFn) -> bytes:
    """A published or drawn message with some bytes replaced, taken out or put in."""
    data = draw(st.sampled_from(VECTORS) | messages().map(HttpMessage.to_bytes))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 20)))
        data = data[:start] + draw(st.sampled_from(PIECES) | st.binary(max_size=3)) + data[end:]
    return data


@given(messages())
def test_http_messages_read_back(message: HttpMessage) -> None:
    assert parse_http(message.to_bytes()) == message


@given(HOSTILE | near_messages() | st.binary(max_size=100))
def test_any_bytes_come_back_whole_or_are_refused_at_a_byte(data: bytes) -> None:
    srmp.messages(data)


def outcome(data: bytes, cuts: list[int]) -> tuple[object, ...]:
    """All that a stream gives when it is cut there: messages, their size, and how it ended."""
    framer, found = HttpFramer(200), []
    ends = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    try:
        for start, end in pairwise(ends):
            found += framer.feed(data[start:end])
            assert framer.buffered <= 2 * HEAD_SIZE_MAX + 200 + CHUNK_LINE_MAX + 4
        found += framer.close()
    except MalformedPacket:
        assert framer.error is not None
    error = framer.error and (framer.error.why, framer.error.path, framer.error.offset)
    return found, framer.offset, error


@given(
    st.lists(HOSTILE | near_messages() | messages().map(HttpMessage.to_bytes), max_size=4).map(b"".join),
    st.lists(st.integers(0, 5000), max_size=20),
)
def test_cuts_change_nothing(data: bytes, cuts: list[int]) -> None:
    whole = outcome(data, [])
    assert outcome(data, cuts) == whole
    assert outcome(data, list(range(len(data)))) == whole


@given(st.lists(messages(), max_size=5))
def test_a_connection_gives_its_messages(sent: list[HttpMessage]) -> None:
    framer = HttpFramer()
    assert framer.feed(b"".join(message.to_bytes() for message in sent)) == sent
    assert (framer.error, framer.buffered) == (None, 0)


BOUNDARIES = st.text(LATIN, min_size=1, max_size=20)


def _part(fields: list[Field], content: bytes, line_break: bool) -> Part:
    return Part((*fields, Field("Content-Length", str(len(content)))), content, line_break)


PARTS = st.builds(_part, st.lists(FIELDS, max_size=3), st.binary(max_size=30), st.booleans())


@given(BOUNDARIES, st.lists(PARTS, max_size=4), st.booleans(), st.booleans())
def test_parts_read_back(boundary: str, parts: list[Part], leading: bool, final: bool) -> None:
    content = Multipart(boundary, tuple(parts), leading, final)
    assert parse_multipart(content.to_bytes(), boundary) == content
    for number, part in enumerate(parts):
        assert content.to_bytes().startswith(part.content, content.content_offset(number))


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=30).map(b"".join))
def test_any_parts_come_back_whole_or_are_refused(data: bytes) -> None:
    srmp.parts(b"--b\r\n" + data)
    srmp.parts(data)


@given(
    st.none() | st.binary(max_size=50), st.none() | st.binary(max_size=50), st.integers(0, 10**9), st.uuids()
)
def test_requests_that_are_made_read_back_and_do_not_depart(body, extension, boundary, guid) -> None:
    made = make_request(
        ENVELOPE, "/q", "m", boundary=boundary, queue_manager=guid, body=body, extension=extension
    )
    parsed = parse_message(made.to_bytes())
    assert (parsed, parsed.departures) == (made, [])
    assert (parsed.body, parsed.extension, parsed.envelope_bytes) == (body, extension, ENVELOPE)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["00", "POST", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def paths(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    items: object = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [path, *(inner for key, item in items for inner in paths(item, (*path, key)))]


@given(st.sampled_from(VECTORS), st.data(), JSON)
def test_any_json_is_built_or_refused(data: bytes, choice: st.DataObject, value: object) -> None:
    packet = to_json(parse_message(data))
    *above, last = choice.draw(st.sampled_from(paths(packet)[1:]))
    target = packet
    for key in above:
        target = target[key]
    target[last] = value
    with contextlib.suppress(LocatedError):
        assert isinstance(from_json(packet).to_bytes(), bytes)


@given(near_messages())
def test_the_standard_library_reads_the_same_head(data: bytes) -> None:
    """A head that is accepted has the same fields for http.client, whose reader is more lenient."""
    try:
        message = parse_http(data)
    except MalformedPacket:
        assume(False)
        return
    start, _, rest = data.partition(b"\r\n")
    assert start + b"\r\n" == message.start.to_bytes()
    theirs = http.client.parse_headers(io.BytesIO(rest))
    for (name, value), field in zip(theirs.items(), message.fields, strict=True):
        assert name == field.name
        assert " ".join(part.strip(" \t") for part in value.split("\r\n")).strip() == field.value.strip()


def test_memory_is_bounded_by_received_not_announced_bytes() -> None:
    framer = HttpFramer()
    tracemalloc.start()
    try:
        framer.feed(b"POST /q HTTP/1.1\r\nContent-Length: 5000000\r\n\r\n")
        framer.feed(b"x")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100_000


def test_work_grows_with_the_bytes() -> None:
    """Bytes fed one by one are each looked at a bounded number of times: 1 MB takes no quadratic time."""
    looked = 0

    class Counting(bytearray):
        def find(self, *arguments: object) -> int:  # type: ignore[override]
            nonlocal looked
            start, stop = arguments[1], arguments[2]
            looked += max(0, min(len(self), stop) - start)
            return super().find(*arguments)

    data = b"POST /q HTTP/1.1\r\nA: " + b"x" * 10_000 + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    data += b"1\r\na\r\n" * 1000 + b"0\r\n\r\n"
    framer = HttpFramer()
    framer._buffer = Counting()
    found = []
    for at in range(len(data)):
        found += framer.feed(data[at : at + 1])
    assert len(found) == 1
    assert looked < 4 * len(data)
