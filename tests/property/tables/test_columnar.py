"""The columnar decoder and the generic reader agree on every column of every row of any capture."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

from fuzz.whole_packets import packet_bytes
from msmqwire.analysis.dissection import dissect
from msmqwire.tables import record_batches
from msmqwire.tables.arrow.rows import batches
from msmqwire.tables.columns import UNJUDGED
from msmqwire.tables.filters import Filter
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import tunnelled_frames as t
from tests.support.capture.both_readers import NAMES, assert_same, columnar, streams
from tests.support.paths import EXAMPLES

ACK = h.session_ack()
NAME = h.direct_name("TCP:10.0.0.2\\private$\\orders")
PACKETS = [
    ACK,
    ACK * 3,
    h.connection_parameters(),
    h.establish_connection(),
    h.user_message(properties=h.properties_header(label="label", body=b"body")),
    h.user_message(session=h.session_header(), properties=h.properties_header(body=b"x" * 500)),
    h.user_message(transaction=h.transaction_header(), flags=0),
    h.order_ack(),
    h.final_ack(),
    h.user_message(properties=h.properties_header(label="Straße 😀", body=b"")),
    h.user_message(properties=h.properties_header(body=ACK + h.connection_parameters() + ACK)),
    h.user_message(properties=h.properties_header(body=b"y" * 9000)),
    h.user_message(soap=h.soap_header(), properties=h.properties_header(body=b"soap")),
    h.user_message(session=h.session_header(), trailing=h.extension_header(0, 0)),
    h.user_message(soap=h.soap_header(), trailing=ACK),
    h.user_message(size=len(h.user_message()) + 36),
    h.user_message(size=len(h.user_message()) + 40),
]
JUNK = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x10",
    b"\x10\0LIOR",
    b"xxLIORyy" * 5,
    ACK[5:],
    h.base_header(3000),
    b"z" * 3000,
]

chunks = st.one_of(
    st.sampled_from(PACKETS),
    st.sampled_from(PACKETS),
    packet_bytes(),
    st.sampled_from(JUNK),
    st.binary(max_size=40),
)


@st.composite
def damaged(draw: st.DrawFn, data: st.SearchStrategy[bytes]) -> bytes:
    """Bytes with a few of them changed."""
    changed = bytearray(draw(data))
    for _ in range(draw(st.integers(0, 3)) if changed else 0):
        changed[draw(st.integers(0, len(changed) - 1))] = draw(st.sampled_from([0, 1, 0x10, 0x7F, 0xFF]))
    return bytes(changed)


@st.composite
def conversations(draw: st.DrawFn, number: int) -> list[c.Frame]:
    """A connection, good or bad, with times of its own."""
    six = draw(st.booleans())
    client, server = (c.CLIENT_6, c.SERVER_6) if six else (c.CLIENT, c.SERVER)
    port = draw(st.sampled_from([1801, 1801, 1801, 2000]))
    talk = c.TcpConversation(
        (client, 50_000 + number),
        (server, port),
        client_isn=draw(st.sampled_from([1000, 0xFFFF_FE00])),
        mss=draw(st.sampled_from([7, 100, 600, 1460, 9000])),
        start_ns=c.START_NS + number * 333,
    )
    if draw(st.booleans()) or draw(st.booleans()):
        talk.handshake()
    for _ in range(draw(st.integers(0, 6))):
        data = draw(st.one_of(chunks, damaged(chunks)))
        talk.send(data, by_client=draw(st.booleans()), acknowledged=draw(st.booleans()))
        if draw(st.integers(0, 9)) == 0:
            talk.keep_alive()
        if draw(st.integers(0, 9)) == 0:
            talk.wait(draw(st.sampled_from([300_000_000, 1_500_000_000, 31_000_000_000, 700_000_000_000])))
    end = draw(st.integers(0, 3))
    if end == 0:
        talk.reset()
    elif end == 1:
        talk.close()
    return talk.frames


PING = bytes.fromhex("0000485507000000") + bytes(range(16))


@st.composite
def datagrams(draw: st.DrawFn) -> list[c.Frame]:
    """Pings and other UDP datagrams."""
    frames = []
    for at in range(draw(st.integers(0, 3))):
        data = draw(st.one_of(st.just(PING), damaged(st.just(PING)), st.binary(max_size=30)))
        packet = c.udp_packet(data, src_port=draw(st.sampled_from([3527, 53])))
        frames.append(c.Frame(c.START_NS + 700 * at, c.ethernet(packet)))
    return frames


@st.composite
def captures(draw: st.DrawFn) -> list[c.Frame]:
    """Frames of several connections, in order or not, some truncated or lost, some in tunnels."""
    parts = [draw(conversations(number)) for number in range(draw(st.integers(1, 3)))]
    frames = c.merged(*parts, draw(datagrams()))
    rng = random.Random(draw(st.integers(0, 1 << 20)))
    if draw(st.booleans()):
        chances = st.sampled_from([0.0, 0.0, 0.05, 0.3])
        frames = c.disorder(
            frames, rng, reorder=draw(chances), reach=draw(st.sampled_from([1, 4, 40])),
            duplicate=draw(chances), resegment=draw(chances), overlap=draw(chances), drop=draw(chances),
            keep_control=draw(st.booleans()),
        )  # fmt: skip
    if draw(st.integers(0, 2)):
        return frames
    return t.within(frames, draw(st.lists(st.sampled_from(t.WITHIN), min_size=1, max_size=4)))


def file_of(draw: st.DataObject, frames: list[c.Frame]) -> bytes:
    """A capture file of any format, sometimes truncated or damaged."""
    if draw.draw(st.booleans()):
        order, nano = draw.draw(st.sampled_from("<>")), draw.draw(st.booleans())
        data = c.pcap_bytes(frames, byteorder=order, nanoseconds=nano)
    else:
        data = c.pcapng_bytes(frames, byteorder=draw.draw(st.sampled_from("<>")))
    harm = draw.draw(st.integers(0, 7))
    if harm == 0:
        data = data[: draw.draw(st.integers(4, len(data)))]
    elif harm == 1 and len(data) > 60:
        at = draw.draw(st.integers(24, len(data) - 1))
        data = data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]
    return data


SIZES = st.sampled_from(
    [{}, {"CHUNK": 256, "ARENA": 64, "ROWS": 3}, {"CHUNK": 5000, "ARENA": 3000, "ROWS": 1}, {"ROWS": 7}]
)


@given(frames=captures(), sizes=SIZES, data=st.data())
def test_any_capture_gives_the_same_columns(
    frames: list[c.Frame], sizes: dict[str, int], data: st.DataObject
) -> None:
    assert_same([file_of(data, frames)], **sizes)


@given(frames=captures(), cuts=st.lists(st.integers(0, 200), max_size=3), sizes=SIZES, data=st.data())
def test_captures_in_several_files_give_the_same_columns(
    frames: list[c.Frame], cuts: list[int], sizes: dict[str, int], data: st.DataObject
) -> None:
    bounds = [0, *sorted(min(cut, len(frames)) for cut in cuts), len(frames)]
    parts = [frames[a:b] for a, b in pairwise(bounds)]
    assert_same([file_of(data, part) for part in parts], **sizes)


def test_skipped_bytes_are_counted_while_a_direction_waits():
    """One direction waits for a whole header, in Python; the scan goes on with the other."""
    talk = c.TcpConversation((c.CLIENT, 50_000), (c.SERVER, 2000)).handshake()
    talk.send(b"J", by_client=False).send(b"\x10").send(b"J" * 48, by_client=False).send(b"\x10")
    talk.send(h.user_message()).send(h.user_message(), by_client=False)
    data = c.pcap_bytes(talk.frames)
    assert_same([data])
    _, table = columnar([data])
    rows = zip(
        table["src_port"].to_pylist(), table["kind"].to_pylist(), table["size"].to_pylist(), strict=True
    )
    assert (2000, "Skipped", 49) in list(rows)


@given(packets=st.lists(packet_bytes(), min_size=1, max_size=20))
@settings(max_examples=max(100, settings.default.max_examples))
def test_every_packet_gives_the_same_columns(packets: list[bytes]) -> None:
    talk = c.TcpConversation().handshake()
    for packet in packets:
        talk.send(packet)
    assert_same([c.pcap_bytes(talk.close().frames)])


@pytest.mark.parametrize("link", sorted(c.LINKS))
def test_every_link_gives_the_same_columns(link: int) -> None:
    six = link == 229
    ends = ((c.CLIENT_6, 50_000), (c.SERVER_6, 1801)) if six else ((c.CLIENT, 50_000), (c.SERVER, 1801))
    talk = c.TcpConversation(*ends, link=c.LINKS[link]).handshake()
    for packet in PACKETS:
        talk.send(packet)
    data = c.pcap_bytes(talk.close().frames, linktype=link)
    assert_same([data])
    assert columnar([data])[0].handed < len(talk.frames) // 2  # most frames are for the compiled scan


@pytest.mark.parametrize("name", ["session.pcap", "hostile.pcapng", "protected.pcap"])
def test_the_examples_give_the_same_columns(name: str) -> None:
    assert_same([(EXAMPLES / name).read_bytes()])


CONDITIONS = st.lists(
    st.sampled_from(
        [
            ("kind", "==", "SessionAck"),
            ("kind", "in", ["UserMessage", "Malformed", "Skipped"]),
            ("kind", "!=", "UserMessage"),
            ("time", ">=", c.START_NS + 3_000_000),
            ("time", "<", "2023-11-14T22:13:20.130+00:00"),
            ("src", "==", c.CLIENT),
            ("dst", ">", "f"),
            ("src_port", "<=", 1801),
            ("dst_port", "in", [1801, 3527]),
            ("transport", "==", "udp"),
            ("stream", "!=", 0),
            ("frame", ">", 4),
            ("file", "==", "file 0"),
            ("size", "<", 100),
            ("error_offset", ">=", 0),
            ("window_size", ">", 0),
            ("label", "==", "label"),
            ("recoverable", "==", False),
        ]
    ),
    min_size=1,
    max_size=3,
)


@given(frames=captures(), where=CONDITIONS, names=st.lists(st.sampled_from(NAMES), max_size=4, unique=True))
def test_conditions_leave_the_same_rows(
    frames: list[c.Frame], where: list[tuple[str, str, Any]], names: list[str]
) -> None:
    files = [c.pcap_bytes(frames, nanoseconds=True)]
    test = Filter(where)
    items = (item for item in dissect(streams(files), lint=False) if test.lets_through(item))
    expected = [row for batch in batches(items, UNJUDGED, batch_rows=50) for row in shown(test.rest(batch))]
    actual = record_batches(dissect(streams(files), lint=False), columns=names, where=where, batch_rows=50)
    rows = [row for batch in actual for row in shown(batch)]
    assert rows == [{name: row[name] for name in names} for row in expected]


def shown(batch: Any) -> list[dict[str, Any]]:
    """The rows of a batch, with times in nanoseconds."""
    if "time" in batch.schema.names:
        index = batch.schema.names.index("time")
        batch = batch.set_column(index, "time", batch.column(index).cast(pa.int64()))
    return [{}] * batch.num_rows if not batch.num_columns else batch.to_pylist()
