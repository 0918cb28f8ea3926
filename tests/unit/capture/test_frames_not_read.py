"""Frames that were not read are said, by every command and function, with the reason and the number."""

from __future__ import annotations

import io
import json
import re
import warnings
from collections import Counter
from pathlib import Path

import pytest

import msmqwire
from msmqwire.analysis.dissection import dissect
from msmqwire.analysis.fate import fates
from msmqwire.capture.not_read import NotRead, listed, sentence
from msmqwire.tables import CaptureWarning
from msmqwire.tables.datagrams import DatagramReader
from tests.support import captures as c
from tests.support.capture import unread_frames as u
from tests.support.capture.both_readers import assert_same, columnar
from tests.support.capture_files import PcapNg
from tests.support.nightly import nightly
from tests.support.running import in_process as command

LINE = "5 frames were not read: 3 of link type 127, 1 encrypted (ESP), 1 tunnelled (GTP)\n"
JSON = [
    {"reason": "link type 127", "frames": 3},
    {"reason": "encrypted (ESP)", "frames": 1},
    {"reason": "tunnelled (GTP)", "frames": 1},
]


def datagram_counts(data: bytes) -> Counter[str]:
    reader = DatagramReader()
    for _ in reader.read(io.BytesIO(data), 0):
        pass
    return reader.frames_not_read(at_end=True)


def check(data: bytes, expected: list[NotRead]) -> None:
    """Check that all readers count the same."""
    assert_same([data])
    assert list(columnar([data])[0].frames_not_read) == expected
    assert list(listed(datagram_counts(data))) == expected


@pytest.mark.parametrize("name", u.UNREAD)
def test_each_reason(name: str) -> None:
    linktype, frame, reason = u.UNREAD[name]
    check(u.capture_of([(linktype, frame), (1, c.ethernet(u.INNER))]), [NotRead(reason, 1)])


@pytest.mark.parametrize("name", u.OTHERS)
def test_frames_of_other_programs_do_not_count(name: str) -> None:
    check(u.capture_of([u.OTHERS[name], (1, c.ethernet(u.INNER))]), [])


def test_a_cut_frame_gets_no_reason_from_the_bytes_after_it() -> None:
    """Where frames are cut off, the datagram reader looks at what follows in memory."""
    vxlan = u.in_udp(u.VXLAN + c.ethernet(u.INNER), 4789)
    frames = [u.in_ip(47, bytes(60)), u.typed(0x8847, bytes(60)), vxlan]
    for snaplen in range(1, 70):
        assert_same([c.pcap_bytes(frames, snaplen=snaplen)])
        data = c.pcap_bytes(frames, snaplen=snaplen)
        assert listed(datagram_counts(data)) == columnar([data])[0].frames_not_read, snaplen


def test_fragments_of_a_tunnel_and_of_nothing() -> None:
    """All frames of a datagram that is not read count, and those of one that is never complete."""
    other = u.KEYED_GRE[:2] + b"\x88\x3e" + u.INNER
    whole = [c.ethernet(packet) for packet in c.fragments_4(c.ipv4(other, protocol=47), 24)]
    gtp = c.udp_packet(u.GTP + u.INNER, src_port=5, dst_port=2152, ident=9)
    tunnel = [c.ethernet(packet) for packet in c.fragments_4(gtp, 32)]
    lone = [c.ethernet(packet) for packet in c.fragments_4(c.udp_packet(u.INNER * 9, ident=3), 80)[1:]]
    assert min(len(whole), len(tunnel), len(lone)) > 1
    check(
        c.pcap_bytes([*whole, *tunnel, *lone]),
        sorted(
            [
                NotRead("tunnelled (GRE)", len(whole)),
                NotRead("tunnelled (GTP)", len(tunnel)),
                NotRead("incomplete datagrams", len(lone)),
            ],
            key=lambda one: (-one.frames, one.reason),
        ),
    )


@pytest.mark.parametrize("usb", [189, 220, 249])
@pytest.mark.parametrize("first", [True, False])
def test_a_usb_interface_beside_ethernet(usb: int, first: bool, tmp_path: Path) -> None:
    """Frames of one are read, those of the other counted; and blocks that hold no packet are not frames."""
    file = PcapNg().section()
    for linktype in (usb, 1) if first else (1, usb):
        file.interface(linktype, tsresol=9)
    for number in range(20):
        file.packet(c.Frame(c.START_NS + number, c.ethernet(u.INNER)), int(first))
        file.packet(c.Frame(c.START_NS + number, bytes(64 * (number % 3))), int(not first))
        for kind in (4, 5, 9, 10, 0x0BAD, 0x204):  # names, statistics, a journal, secrets, others
            file.block(kind, bytes(20))
    expected = [NotRead(f"link type {usb}", 20)]
    check(file.data, expected)
    dissection, table = columnar([file.data])
    assert (dissection.records, table["frame"].to_pylist()) == (40, list(range(1, 41, 2)))
    path = tmp_path / "usb.pcapng"
    path.write_bytes(file.data)
    stats = json.loads(command("dissect", "--stats", "--json", path).stdout)
    assert (stats["frames"], stats["packets"]) == (40, 20)
    assert stats["frames_not_read"] == [{"reason": f"link type {usb}", "frames": 20}]


@nightly
def test_65536_link_types_make_a_short_list() -> None:
    frames = [(number, bytes(20)) for number in range(1 << 16)] + [(40_000, bytes(20))] * 2
    dissection = dissect(io.BytesIO(u.capture_of(frames)))
    with pytest.warns(CaptureWarning, match="^65,[0-9]{3} frames were not read: 3 of link type 40000, "):
        assert list(dissection) == []
    not_read = dissection.frames_not_read
    assert not_read[0] == ("link type 40000", 3)
    links = [one for one in not_read if "link type" in one.reason]
    assert len(links) == 9
    of_others = 3  # link types 51, 104, 105: bytes of zero are not a session of PPPoE, no EtherType, no data
    assert links[-1] == ("other link types", (1 << 16) + 2 - 3 - 7 - len(c.LINKS) - of_others)
    assert len(sentence(not_read)) < 400


def test_one_frame() -> None:
    assert sentence([NotRead("link type 127", 1)]) == "1 frame was not read: 1 of link type 127"
    assert sentence([]) == ""
    many = [NotRead("link type 127", 11_900), NotRead("tunnelled (GTP)", 104)]
    assert sentence(many) == "12,004 frames were not read: 11,900 of link type 127, 104 tunnelled (GTP)"


# -- surfaces ------------------------------------------------------------------------------------------------


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A ping that is read, and five frames that are not."""
    frames = [u.UNREAD[name][:2] for name in ("radiotap", "ESP", "radiotap", "GTP", "radiotap")]
    path = tmp_path / "capture.pcapng"
    path.write_bytes(u.capture_of([(1, c.ethernet(u.INNER)), u.OTHERS["ARP"], *frames]))
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["dissect"], ["dissect", "--json"], ["dissect", "--hexdump"], ["dissect", "--csv"],
        ["dissect", "--parquet", "OUT"], ["dissect", "--arrow", "OUT.arrow"], ["dissect", "--stats"],
        ["dissect", "--stats", "--json"], ["dissect", "--csv", "--workers", "2"],
        ["dissect", "--csv", "--columns", "kind", "--kind", "Ping"], ["lint"], ["lint", "--check"],
        ["fate"], ["fate", "--json"], ["fate", "--summary"], ["report", "-o", "OUT.html"],
        ["pcap", "-o", "OUT.pcapng"], ["lake", "--out", "OUT"], ["lake", "--out", "OUT", "--json"],
        ["lake", "--out", "OUT", "--splits", "exact"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_the_last_line_of_each_command(words: list[str], capture: Path, tmp_path: Path) -> None:
    name, *options = words
    options = [str(tmp_path / word) if word.startswith("OUT") else word for word in options]
    done = command(name, capture, *options)
    assert done.returncode == 0, done.stderr
    assert done.stderr.decode().splitlines(keepends=True)[-1] == LINE
    assert done.stderr.decode().count("not read") == 1
    again = tmp_path / "read.pcap"
    again.write_bytes(c.pcap_bytes([c.ethernet(u.INNER)]))
    done = command(name, again, *options) if name != "lake" else command(name, again, "--out", tmp_path / "2")
    assert b"not read" not in done.stderr


def test_numbers_for_programs(capture: Path, tmp_path: Path) -> None:
    stats = json.loads(command("dissect", "--stats", "--json", capture).stdout)
    assert stats["frames_not_read"] == JSON
    text = command("dissect", "--stats", capture).stdout.decode()
    assert "Frames not read\n" in text
    assert re.search(r"link type 127 +3\n", text)
    lake = json.loads(command("lake", capture, "--out", tmp_path / "lake", "--json").stdout)
    assert lake["frames_not_read"] == JSON
    page = tmp_path / "report.html"
    command("report", capture, "-o", page)
    data = json.loads(re.search(r'id="report">(.*?)</script>', page.read_text())[1])  # type: ignore[index]
    assert data["frames_not_read"] == JSON


def test_python_warns_once(capture: Path, tmp_path: Path) -> None:
    def warned(call: object) -> list[CaptureWarning]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()  # type: ignore[operator]
        return [one.message for one in caught if isinstance(one.message, CaptureWarning)]

    calls = [
        lambda: msmqwire.read_capture(capture),
        lambda: msmqwire.read_capture(capture, workers=2),
        lambda: list(msmqwire.dissect(capture)),
        lambda: list(fates(capture)),
        lambda: msmqwire.write_lake(capture, tmp_path / "lake"),
    ]
    for call in calls:
        (warning,) = warned(call)
        assert (str(warning) + "\n", warning.error) == (LINE, None)
        assert [NotRead(*one)._asdict() for one in warning.frames_not_read] == JSON
    assert warned(lambda: next(msmqwire.dissect(capture))) == []
    assert warned(calls[-1]) == []  # the lake has it


def test_a_warm_up_is_not_counted(capture: Path) -> None:
    dissection = dissect([capture, capture], warm_up=1)
    with pytest.warns(CaptureWarning, match="^5 frames"):
        list(dissection)
    with pytest.warns(CaptureWarning, match="^5 frames"):
        msmqwire.read_capture([capture, capture], warm_up=1)
