"""The segments that compiled code finds in a partition are those of the generic reader, row by row."""

from __future__ import annotations

import gzip
import random
import struct
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from msmqwire.capture import IpDecoder
from msmqwire.capture.record_index import records_with_offsets
from msmqwire.capture.window import Window
from msmqwire.errors import CaptureError
from msmqwire.tables import CaptureWarning, datagrams
from msmqwire.tables.columns import TUNNEL
from msmqwire.tables.datagrams import DatagramReader
from msmqwire.tables.flow_number import flow_number
from msmqwire.tables.parts import Part, plan_parts, plan_windows
from spark_udfs.source.options import Options
from spark_udfs.source.packet_reader import MalformedCapture
from spark_udfs.source.schema import arrow_fields, spark_schema
from spark_udfs.source.segment_reader import PUSHED, SEGMENT_SCHEMA, SegmentReader, segment_batches
from tests.property.tables.test_columnar import captures, file_of
from tests.support import captures as c
from tests.support.capture import tunnelled_frames as t

NAMES = SEGMENT_SCHEMA.names
ALL = 1 << 40
INT64_MAX = (1 << 63) - 1

# -- captures -----------------------------------------------------------------------------------------------

ETHERNET_FORMS = {name: make for name, (link, make) in t.FORMS.items() if link == 1}


def nested(packet: bytes) -> bytes:
    """In eight tunnels of UDP."""
    for number in range(8):
        packet = t.vxlan(t.frame(packet), number)
    return t.frame(packet)


addresses_4 = st.sampled_from([c.CLIENT, c.SERVER, "255.255.255.255", "0.0.0.0"])
addresses_6 = st.sampled_from([c.CLIENT_6, c.SERVER_6, "::", "ffff::8000:0:0:1", "::10.0.0.1"])
ports = st.sampled_from([0, 53, 1801, 3527, 65_535])


@st.composite
def packets(draw: st.DrawFn) -> list[bytes]:
    """An IP packet with any content, at times in fragments, with options or extension headers."""
    six = draw(st.booleans())
    src, dst = (draw(addresses_6 if six else addresses_4) for _ in range(2))
    ends = src, draw(ports), dst, draw(ports)
    data = draw(st.binary(max_size=60))
    if draw(st.booleans()):
        number, flags = draw(st.integers(0, 2**32 - 1)), draw(st.integers(0, 255))
        options = draw(st.sampled_from([b"", b"\1" * 4, b"\1" * 40]))
        payload = c.tcp(data, *ends, seq=number, ack=number ^ 0x80000000, flags=flags, options=options)
        protocol = 6
    else:
        payload, protocol = c.udp(data, *ends), 17
    protocol = draw(st.sampled_from([protocol] * 9 + [1]))
    form = draw(st.sampled_from(["plain", "plain", "plain", "fragments", "more", "total"]))
    if six:
        packet = c.ipv6(payload, src, dst, protocol=protocol)
        if form == "more":
            kind = draw(st.sampled_from([0, 43, 44, 51, 60]))
            packet = c.ipv6(payload, src, dst, protocol=protocol, extensions=[(kind, bytes(6))])
        elif form == "total":
            packet = c.ipv6(payload, src, dst, protocol=protocol, total=draw(st.integers(0, 70)))
        return c.fragments_6(packet, 16) if form == "fragments" else [packet]
    packet = c.ipv4(payload, src, dst, protocol=protocol, ident=draw(st.integers(0, 3)))
    if form == "more":
        packet = c.ipv4(payload, src, dst, protocol=protocol, options=bytes(draw(st.sampled_from([4, 40]))))
    elif form == "total":
        packet = c.ipv4(payload, src, dst, protocol=protocol, total=draw(st.integers(0, 90)))
    return c.fragments_4(packet, 16) if form == "fragments" else [packet]


@st.composite
def linked(draw: st.DrawFn, link: int) -> list[bytes]:
    """The frames of such a packet, perhaps with tags or padding, truncated or changed."""
    tags = draw(st.sampled_from([()] * 5 + [(7,), (0x88A8, 7, 7), tuple(range(1, 11))]))
    frames = []
    for packet in draw(packets()):
        if link == 1:
            vlan = [(0x88A8, tag) if tag == 7 else tag for tag in tags]
            frame = c.ethernet(packet, vlan, padded=draw(st.booleans()))
        else:
            frame = c.LINKS.get(link, c.raw)(packet)
        if link == 1 and draw(st.integers(0, 3)) == 0:
            frame = draw(st.sampled_from([*ETHERNET_FORMS.values(), nested]))(packet)
        harm = draw(st.integers(0, 15))
        if harm == 0:
            frame = frame[: draw(st.integers(0, len(frame)))]
        elif harm == 1 and frame:
            at = draw(st.integers(0, len(frame) - 1))
            frame = frame[:at] + bytes([draw(st.integers(0, 255))]) + frame[at + 1 :]
        elif harm == 2:
            frame = draw(st.binary(max_size=80))
        frames.append(frame)
    return frames


links = st.sampled_from([1, 1, 1, 1, *sorted(c.LINKS), 9999])
times = st.one_of(st.just(c.START_NS), st.integers(0, 4_294_967_295_999_999_999))


@st.composite
def pcap_files(draw: st.DrawFn) -> bytes:
    """A pcap file of any link type, with frames of `linked`."""
    link = draw(links)
    frames = [
        c.Frame(draw(times), frame)
        for packet_frames in draw(st.lists(linked(link), max_size=8))
        for frame in draw(st.permutations(packet_frames))
    ]
    return c.pcap_bytes(
        frames, linktype=link, byteorder=draw(st.sampled_from("<>")), nanoseconds=draw(st.booleans()),
        modified=draw(st.booleans()), snaplen=draw(st.sampled_from([0x40000, 0x40000, 70, 60, 50, 30])),
    )  # fmt: skip


high_ticks = st.sampled_from([0, 395_000, 1 << 30, 0x7CA0_0000, 1 << 31])


def with_ticks(
    order: str, kind: str, interface: int, ticks: tuple[int, int], frame: bytes
) -> tuple[int, bytes]:
    """An Enhanced Packet Block, or an obsolete Packet Block, with any time."""
    form, of_interface = (6, (interface,)) if kind == "enhanced" else (2, (interface, 0))
    head = struct.pack(order + ("I" if form == 6 else "HH"), *of_interface)
    return form, head + struct.pack(order + "IIII", *ticks, len(frame), len(frame)) + frame


@st.composite
def pcapng_files(draw: st.DrawFn) -> bytes:
    """A pcapng file with blocks of all kinds, in sections of either byte order."""
    data = b""
    for _ in range(draw(st.integers(1, 2))):
        file = c.PcapNg(draw(st.sampled_from("<>"))).section()
        linktypes = draw(st.lists(links, min_size=1, max_size=3))
        for number in range(draw(st.integers(1, 12))):
            if number < len(linktypes):
                file.interface(
                    linktypes[number], tsresol=draw(st.sampled_from([6, 9, 0, 0x80, 0x8A, 0x3F, 0xFF])),
                    tsoffset=draw(st.sampled_from([0, 0, 1_600_000_000, -5, 2_300_000_000, 1 << 40])),
                    snaplen=draw(st.sampled_from([0, 0, 0, 60])),
                )  # fmt: skip
            interface = draw(st.integers(0, min(number, len(linktypes) - 1)))
            for frame in draw(linked(linktypes[interface])):
                kind = draw(st.sampled_from(["enhanced"] * 5 + ["simple", "old", "other", "strange"]))
                if kind in ("enhanced", "old"):
                    ticks = draw(high_ticks), draw(st.integers(0, 2**32 - 1))
                    file.block(*with_ticks(file.byteorder, kind, interface, ticks, frame))
                elif kind == "simple":
                    file.simple_packet(c.Frame(0, frame))
                else:
                    file.block(5 if kind == "other" else 0xBAD, draw(st.binary(max_size=400)))
        data += file.data
    return data


@st.composite
def files(draw: st.DrawFn) -> list[bytes]:
    """The files of a capture, some of them compressed, truncated or damaged."""
    contents = []
    for _ in range(draw(st.integers(1, 3))):
        form = draw(st.integers(0, 2))
        if form == 0:
            data = file_of(draw(st.data()), draw(captures()))
        else:
            data = draw(pcap_files() if form == 1 else pcapng_files())
            harm = draw(st.integers(0, 9))
            if harm == 0:
                data = data[: draw(st.integers(0, len(data)))]
            elif harm == 1:
                at = draw(st.integers(0, len(data) - 1))
                data = data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
        if draw(st.integers(0, 9)) == 0:
            data = gzip.compress(data, mtime=0)
            data = data[: draw(st.sampled_from([len(data), len(data) - 9]))]
        contents.append(data)
    return contents


SIZES = st.fixed_dictionaries(
    {
        "CHUNK": st.sampled_from([1, 64, 300, 5000, 1 << 20]),
        "ROWS": st.sampled_from([1, 3, 8192]),
        "PAYLOADS": st.sampled_from([0, 1, 100, 3000, 16 << 20]),
        "PAIRS": st.sampled_from([1, 2, 4, 1 << 15]),
    }
)

# -- both readers -------------------------------------------------------------------------------------------


def written(folder: str, contents: Sequence[bytes]) -> list[str]:
    paths = []
    for number, data in enumerate(contents):
        path = Path(folder, f"{number}.cap")
        path.write_bytes(data)
        paths.append(str(path))
    return paths


def generic(partition: Part) -> Iterator[dict[str, Any]]:
    """The rows of a partition by the readers of `msmqwire.capture`."""
    decoder = IpDecoder()
    for window in partition.warm_up_windows():
        for _, _ in of_window(window, decoder):
            pass
    for index, window in enumerate(partition.windows, partition.file_index):
        for offset, datagram in of_window(window, decoder):
            row = {"file": window.path, "file_index": index, "offset": offset}
            if isinstance(datagram, CaptureError):
                yield dict.fromkeys(NAMES) | row | {
                    "transport": "damaged", "flow": 0, "seq": 0, "ack": 0, "flags": 0,
                    "payload": datagram.why.encode(), "missing": 0, "size": 0, "error": datagram.why,
                }  # fmt: skip
                continue
            fields = datagram._asdict() | dict(zip(TUNNEL, datagram.encapsulation, strict=True))
            time = datagram.time_ns if abs(datagram.time_ns) <= INT64_MAX else None
            flow = flow_number(*datagram.key)
            row |= {"time": time, "time_ns": time, "flow": flow, "error": None}
            row["size"] = len(datagram.payload) + datagram.missing
            yield row | {name: fields[name] for name in NAMES if name not in row}


def of_window(window: Window, decoder: IpDecoder) -> Iterator[tuple[int, Any]]:
    with window.open() as stream:
        try:
            for offset, record in records_with_offsets(stream):
                for datagram in decoder.feed(record):
                    yield offset, datagram
        except CaptureError as error:
            yield error.offset, error


def shown(batches: Any) -> list[dict[str, Any]]:
    """The rows of batches, with unchanged times."""
    rows = []
    for batch in batches:
        batch.validate(full=True)
        if "time" in batch.schema.names:
            at = batch.schema.names.index("time")
            rows += batch.set_column(at, "time", batch.column(at).cast(pa.int64())).to_pylist()
        else:
            rows += batch.to_pylist()
    return rows


def micros(time_ns: int | None) -> int | None:
    """A time as Spark has it."""
    return None if time_ns is None else -(-time_ns // 1000) if time_ns < 0 else time_ns // 1000


def shrunk(stack: ExitStack, sizes: dict[str, int]) -> None:
    for name, size in sizes.items():
        stack.enter_context(mock.patch.object(datagrams, name, size))


def planned(paths: Sequence[str], split_size: int, overlap: int) -> list[Part]:
    windows = plan_windows(paths, split_size, search=False, overlap=overlap)
    return plan_parts(windows, split_size, overlap)


@pytest.mark.filterwarnings("ignore::msmqwire.tables.CaptureWarning")
@given(files(), st.sampled_from([0, 0, 500, 6000]), st.sampled_from([0, 300, ALL]), SIZES)
def test_any_captures_give_the_rows_of_the_generic_reader(
    contents: list[bytes], split_size: int, overlap: int, sizes: dict[str, int]
) -> None:
    with TemporaryDirectory() as folder, ExitStack() as stack:
        shrunk(stack, sizes)
        for partition in planned(written(folder, contents), split_size, overlap):
            batches = list(segment_batches(partition))
            assert shown(batches) == list(generic(partition))
            assert all(0 < batch.num_rows <= sizes["ROWS"] for batch in batches)


@pytest.mark.filterwarnings("ignore::msmqwire.tables.CaptureWarning")
@given(
    files(), st.lists(st.sampled_from(NAMES), min_size=1, unique=True),
    st.lists(
        st.sampled_from(
            [
                ("transport", "==", "udp"), ("src", "==", c.CLIENT), ("dst", "in", [c.SERVER, c.SERVER_6]),
                ("src_port", "<=", 1801), ("dst_port", ">", 53), ("file", ">", "file"),
            ]
        ),
        max_size=2,
    ),
    st.sampled_from(["PERMISSIVE", "DROPMALFORMED"]), SIZES,
)  # fmt: skip
def test_columns_and_filters_leave_the_same_rows(
    contents: list[bytes], names: list[str], where: list[Any], mode: str, sizes: dict[str, int]
) -> None:
    assert all(name in PUSHED for name, _, _ in where)
    schema = arrow_fields(spark_schema(pa.schema([SEGMENT_SCHEMA.field(name) for name in names])))
    tests = {
        "==": lambda cell, value: cell == value, "in": lambda cell, value: cell in value,
        "<=": lambda cell, value: cell <= value, ">": lambda cell, value: cell > value,
    }  # fmt: skip
    with TemporaryDirectory() as folder, ExitStack() as stack:
        shrunk(stack, sizes)
        (partition,) = planned(written(folder, contents), ALL, ALL)
        reader = SegmentReader(Options((folder,), mode=mode), tuple(names), schema, tuple(where))  # type: ignore[arg-type]
        expected = [
            {name: micros(row[name]) if name == "time" else row[name] for name in names}
            for row in generic(partition)
            if (mode == "PERMISSIVE" or row["transport"] != "damaged")
            and all(row[name] is not None and tests[op](row[name], value) for name, op, value in where)
        ]
        assert shown(reader.read(partition)) == expected


@given(files())
def test_a_damaged_file_is_an_error_where_that_is_asked_for(contents: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        (partition,) = planned(written(folder, contents), ALL, ALL)
        damaged = [row for row in generic(partition) if row["transport"] == "damaged"]
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            assert sum(batch.num_rows for batch in segment_batches(partition)) == len(
                list(generic(partition))
            )
        assert len([warning for warning in raised if warning.category is CaptureWarning]) == len(damaged)
        if damaged:
            with pytest.raises(MalformedCapture, match=damaged[0]["payload"].decode()[:20]):
                list(segment_batches(partition, strict=True))
        else:
            list(segment_batches(partition, strict=True))


# -- particular cases ------------------------------------------------------------------------


def test_a_large_datagram_has_a_batch_of_its_own() -> None:
    """Segmentation offload sends frames of any size with a total length of 0."""
    sizes = [10, 900, 40_000, 10, 70_000, 20]
    frames = [
        c.Frame(c.START_NS, c.ethernet(c.ipv4(c.tcp(bytes([n]) * size), total=0), padded=False))
        for n, size in enumerate(sizes, 1)
    ]
    with TemporaryDirectory() as folder, mock.patch.object(datagrams, "PAYLOADS", 1000):
        (partition,) = planned(written(folder, [c.pcap_bytes(frames)]), ALL, ALL)
        batches = list(segment_batches(partition))
        assert shown(batches) == list(generic(partition))
        assert [batch.num_rows for batch in batches] == [2, 1, 1, 1, 1]


@pytest.mark.parametrize("link", sorted(c.LINKS))
def test_plain_frames_are_not_handed_to_the_generic_reader(link: int) -> None:
    six = link == 229
    ends = ((c.CLIENT_6, 50_000), (c.SERVER_6, 1801)) if six else ((c.CLIENT, 50_000), (c.SERVER, 1801))
    talk = c.TcpConversation(*ends, link=c.LINKS[link]).handshake().send(bytes(9000)).close()
    with (
        TemporaryDirectory() as folder,
        mock.patch.object(DatagramReader, "_take_record", side_effect=AssertionError),
    ):
        for data in (c.pcap_bytes(talk.frames, linktype=link), c.pcapng_bytes(talk.frames, linktype=link)):
            (partition,) = planned(written(folder, [data]), ALL, ALL)
            assert sum(batch.num_rows for batch in segment_batches(partition)) == len(talk.frames)


@pytest.mark.parametrize("snaplen", range(0, 120, 3))
def test_frames_that_are_cut_off_anywhere(snaplen: int) -> None:
    frames = [
        c.ethernet(packet, vlan)
        for vlan in ((), (7, 8))
        for packet in (
            c.udp_packet(bytes(50)), c.udp_packet(bytes(50), c.CLIENT_6, 1, c.SERVER_6, 2),
            c.ipv4(c.tcp(bytes(50), options=b"\1" * 12)), c.ipv4(c.tcp(bytes(50)), total=0),
            c.ipv4(b"", protocol=1),
        )
    ] * 20  # fmt: skip
    with TemporaryDirectory() as folder:
        (partition,) = planned(written(folder, [c.pcap_bytes(frames, snaplen=snaplen)]), ALL, ALL)
        with mock.patch.object(
            DatagramReader, "_take_record", autospec=True, side_effect=DatagramReader._take_record
        ) as hand:
            assert shown(segment_batches(partition)) == list(generic(partition))
        assert snaplen < 110 or hand.call_count < 10


@pytest.mark.parametrize("tsoffset", [0, 2_300_000_000, -2_300_000_000])
@pytest.mark.parametrize("high", [1 << 30, 0x7CA0_0000, 1 << 31])
def test_times_near_the_end_of_64_bits(tsoffset: int, high: int) -> None:
    file = c.PcapNg().section().interface(tsresol=9, tsoffset=tsoffset)
    file.block(*with_ticks("<", "enhanced", 0, (high, 0), c.ethernet(c.udp_packet(b"late"))))
    with TemporaryDirectory() as folder:
        (partition,) = planned(written(folder, [file.data]), ALL, ALL)
        assert shown(segment_batches(partition)) == list(generic(partition))


def test_batches_that_are_held_do_not_change() -> None:
    rng = random.Random(1)
    frames = [c.ethernet(c.udp_packet(rng.randbytes(50))) for _ in range(40)]
    with TemporaryDirectory() as folder, mock.patch.object(datagrams, "ROWS", 3):
        (partition,) = planned(written(folder, [c.pcap_bytes(frames)]), ALL, ALL)
        assert shown(list(segment_batches(partition))) == list(generic(partition))


def test_a_damaged_warm_up_is_not_reported() -> None:
    packets = c.fragments_4(c.udp_packet(bytes(100)), 16)
    before = c.pcap_bytes([c.ethernet(packet) for packet in packets[:4]]) + b"cut"
    after = c.pcap_bytes([c.ethernet(packet) for packet in packets[4:]])
    with TemporaryDirectory() as folder:
        first, second = planned(written(folder, [before, after]), 0, ALL)
        with pytest.warns(CaptureWarning):
            assert [row["transport"] for row in shown(segment_batches(first))] == ["damaged"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert [row["payload"] for row in shown(segment_batches(second))] == [bytes(100)]
