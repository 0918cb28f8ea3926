"""The names of calls by DCE/RPC in tshark: those of `dissect`, frame by frame, also of hostile captures."""

from __future__ import annotations

import random
import struct
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from msmqwire.analysis.dissection import dissect
from msmqwire.management.interface import MANAGEMENT
from msmqwire.management.objects import machine_object
from msmqwire.remote_read.interface import REMOTE_READ
from msmqwire.rpc.constants import AuthLevel, PduType
from msmqwire.rpc.ndr import NDR20, NDR64
from tests.support import captures as c
from tests.support.capture import management_captures as m
from tests.support.capture import rpc_captures as r
from tests.support.capture import wireshark as w
from tests.support.paths import EXAMPLES

Names = dict[int, list[str]]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return w.written(tmp_path_factory.mktemp("wireshark"))


def shown(script: Path, capture: Path, field: str = "procedure", *arguments: str) -> Names:
    """The values of a field of calls, by frame."""
    columns = ("-T", "fields", "-e", "frame.number", "-e", f"msmq.rpc.{field}")
    lines = w.run(script, capture, *columns, *arguments).splitlines()
    rows = (line.partition("\t") for line in lines)
    return {int(frame): names.split(",") for frame, _, names in rows if names}


def agreement(found: Names, capture: Path) -> set[str]:
    """Assert that each call and answer of `dissect` has its name where it ends, and nothing else has one.

    Earlier fragments have the name as well, and faults that of their call. Returns the names.
    """
    ends: Names = defaultdict(list)
    fragments: set[tuple[int, str]] = set()
    asked: dict[tuple[int, int | None], str] = {}
    for item in dissect(capture):
        name, _, what = item.kind.partition(" ")
        if what == "request":
            asked[item.stream, item.exchange] = name
        elif item.kind == "fault":
            name, what = asked[item.stream, item.exchange], "response"
        if name.startswith("R_") and what in ("request", "response"):
            ends[item.frames[-1]].append(name)
            fragments |= {(frame, name) for frame in item.frames}
    assert {frame: names for frame, names in found.items() if frame in ends} == ends
    assert {(frame, name) for frame, names in found.items() for name in names} <= fragments
    return {name for names in ends.values() for name in names}


def written(path: Path, frames: Sequence[c.Frame]) -> Path:
    path.write_bytes(c.pcap_bytes(frames))
    return path


@pytest.mark.parametrize("passes", [(), ("-2",)], ids=["one pass", "two passes"])
@pytest.mark.parametrize("example", ["management.pcap", "remote_read.pcap"])
def test_calls_of_examples_have_their_names(script, example, passes):
    """Those with privacy too, and answers that name no procedure."""
    found = shown(script, EXAMPLES / example, "procedure", *passes)
    assert agreement(found, EXAMPLES / example)
    assert len(found) >= 16


@pytest.mark.parametrize(
    "changed", [{}, {"big_endian": True}, {"mss": 200}, {"level": AuthLevel.PKT_PRIVACY}], ids=str
)
@pytest.mark.parametrize("syntax", [NDR20, NDR64], ids=["NDR", "NDR64"])
def test_calls_of_both_interfaces(tmp_path, script, syntax, changed):
    """In both byte orders, in segments of 200 bytes, and sealed."""
    if changed.get("big_endian") and syntax is NDR64:
        changed = {}
    management = m.session(syntax, client_port=50_000, **changed).frames
    reading = r.session(syntax, client_port=50_001, **changed).frames
    path = written(tmp_path / "calls.pcap", [*management, *reading])
    assert {"R_QMMgmtAction", "R_StartReceive"} <= agreement(shown(script, path), path)
    interfaces = {name for found in shown(script, path, "interface").values() for name in found}
    assert interfaces == {"qmmgmt", "RemoteRead"}


def stub(opnum: int = 1) -> bytes:
    arguments = {"pObjectFormat": machine_object(), "lpwszAction": "TIDY"}
    return MANAGEMENT.build_request(opnum, arguments, NDR20)


def test_each_context_has_its_own_interface(tmp_path, script):
    """Several PDUs in a segment; an interface that is not known takes the number of one that is."""
    talk = c.TcpConversation((c.CLIENT, 50_000), (c.SERVER, 2103)).handshake()
    other = REMOTE_READ.identifier._replace(major=7)
    alter = PduType.ALTER_CONTEXT
    talk.send(m.offer(0, MANAGEMENT.identifier, NDR20))
    talk.send(m.offer(1, REMOTE_READ.identifier, NDR20, ptype=alter))
    talk.send(m.request(0, 1, stub(), 2) + m.request(1, 1, stub(), 3) + m.request(0, 77, stub(), 4))
    talk.send(b"".join(m.response(0, bytes(4), call) for call in (3, 2, 4)), by_client=False)
    talk.send(m.offer(1, other, NDR20, ptype=alter))
    talk.send(m.request(1, 1, stub(), 2))
    talk.send(m.response(1, bytes(4), 2), by_client=False)
    path = written(tmp_path / "contexts.pcap", talk.close().frames)
    asked, answered = ["R_QMMgmtAction", "Opnum1NotUsedOnWire"], ["Opnum1NotUsedOnWire", "R_QMMgmtAction"]
    assert list(shown(script, path).values()) == [asked, answered]
    interfaces = list(shown(script, path, "interface").values())
    assert interfaces == [["qmmgmt", "RemoteRead", "qmmgmt"], ["RemoteRead", "qmmgmt", "qmmgmt"]]


def test_filters_and_the_column_have_the_name(script):
    path, only = EXAMPLES / "management.pcap", 'msmq.rpc.procedure == "R_QMMgmtAction"'
    lines = w.run(script, path, "-Y", only).splitlines()
    assert len(lines) == 4
    assert all(line.endswith(" R_QMMgmtAction") for line in lines)


def test_hostile_calls_are_no_errors_of_the_script(tmp_path, script):
    """PDUs with changed bytes and cut ones, counts of contexts that are not there; frames that are cut."""
    rng = random.Random(7)
    frames: list[c.Frame] = []
    said = [pdu for talk in (m.session(), r.session()) for pdu in talk.pdus]
    for number in range(40):
        talk = c.TcpConversation((c.CLIENT, 20_000 + number), (c.SERVER, 2103)).handshake()
        for by_client, pdu in said:
            data = bytearray(pdu)
            for _ in range(rng.choice((0, 0, 1, 3))):
                data[rng.randrange(min(len(data), 60))] = rng.choice((0, 1, 2, 5, 0x7F, 0x80, 0xFF))
            if rng.random() < 0.1:
                data = data[: rng.randrange(len(data))]
                data[8:10] = struct.pack("<H", len(data))[: len(data[8:10])]
            if data:
                talk.send(bytes(data), by_client=by_client)
        frames += talk.frames
    path = written(tmp_path / "hostile.pcap", frames)
    names = shown(script, path)
    assert len(names) > 100
    w.run(script, path, "-2", "-V")
    cut = [c.Frame(one.time_ns, one.data[: rng.randrange(54, 200)]) for one in frames]
    w.run(script, written(tmp_path / "cut.pcap", cut), "-V")
