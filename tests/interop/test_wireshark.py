"""The generated dissector in tshark: every field is what `dissect --json` says, of generated and hostile captures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz import strategies
from msmqwire.dissection import Item, dissect
from msmqwire.errors import MalformedPacket
from msmqwire.framing import begins_packet
from msmqwire.headers.base import BASE_HEADER_SIZE, PREFIX_SIZE
from msmqwire.lint import lint
from msmqwire.packets import Protocol, packet_length
from msmqwire.ping import PING
from msmqwire.wireshark.findings import Findings
from msmqwire.wireshark.kept import Kept
from tests.support import attacks
from tests.support import captures as c
from tests.support import wireshark as w
from tests.support.paths import ROOT

T = TypeVar("T")
UNTRANSLATED = set(Findings(Kept()).untranslated)


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return w.written(tmp_path_factory.mktemp("wireshark"))


def drawn(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """The first examples of a strategy, the same ones every time."""
    examples: list[T] = []

    @settings(max_examples=count, derandomize=True, database=None)
    @given(strategy)
    def collect(example: T) -> None:
        examples.append(example)

    collect()
    return examples


def capture(path: Path, streams: Sequence[bytes], pings: Sequence[bytes] = ()) -> Path:
    """A capture with one connection for each stream, and datagrams."""
    frames = []
    for number, data in enumerate(streams):
        talk = c.TcpConversation((c.CLIENT, 20_000 + number), start_ns=c.START_NS + number * 10**9)
        frames += talk.handshake().send(data).close().frames
    frames += [c.Frame(c.START_NS, c.ethernet(c.udp_packet(data))) for data in pings]
    path.write_bytes(c.pcap_bytes(frames))
    return path


def by_frame(path: Path) -> dict[int, list[Item]]:
    frames: dict[int, list[Item]] = defaultdict(list)
    for item in dissect(path):
        frames[item.frames[-1]].append(item)
    return frames


def protocol(item: Item) -> Protocol:
    return "ping" if item.kind == "Ping" else "session"


def differences(item: Item, shown: w.Shown) -> str:
    if item.kind != shown.packet:
        return f"{item.kind}, shown: {shown.packet} {shown.path}"
    if item.error is not None:
        if (item.error.path, item.error.offset) != (shown.path, shown.offset):
            return f"{item.error}, shown: {shown.path} {shown.offset}"
        surplus = shown.findings - {(one.id, one.path) for one in item.findings}
        return f"findings {surplus}" if surplus else ""
    if item.packet is None:
        return ""
    wanted = {(one.id, one.path) for one in lint(item.raw, protocol=protocol(item))}
    if wrong := {one for one in wanted ^ shown.findings if one[0] not in UNTRANSLATED}:
        return f"findings {wrong}"
    return w.difference(w.expected(item.kind, item.to_json()["fields"]), shown.fields)


def agreement(path: Path, shown: dict[int, list[w.Shown]]) -> None:
    """Assert that both find the same packets, equal in every field, and that both mark the same bytes.

    Connections with holes are left out: tshark waits for what is lost. It does not show what is cut off by the
    end of a connection either, unless that is malformed whatever might follow.
    """
    items = list(dissect(path))
    lossy = {item.stream for item in items if item.reason.startswith("not in the capture")}
    packets: dict[int, list[str]] = defaultdict(list)
    bad: dict[int, set[str]] = defaultdict(set)
    for item in items:
        frame = item.frames[-1]
        if item.packet is not None:
            packets[frame].append(item.kind)
        for number in item.frames if item.packet is None else ():
            bad[number].add(item.kind)
        if item.stream in lossy:
            continue
        results = [differences(item, one) for one in shown[frame]]
        if item.packet is not None:
            assert "" in results, (frame, results)
        elif item.error is not None and whole(item):
            assert "" in results, (frame, item.error, shown[frame])
        elif item.error is not None and item.size < PREFIX_SIZE:
            stub = [one.packet for one in shown[frame]][-1:]
            assert stub == ([] if begins_packet(item.raw) else ["Skipped"]), (item, stub)
        elif item.error is not None and item.error.offset != item.size:
            early = [(one.path, one.offset) for number in item.frames for one in shown[number]]
            assert (item.error.path, item.error.offset) in early, (item.frames, item.error, early)
        elif item.kind == "Skipped":
            assert any(one.packet == "Skipped" for number in item.frames for one in shown[number]), item
    for frame, found in shown.items():
        names = [one.packet for one in found if one.packet not in ("Malformed", "Skipped")]
        assert sorted(names) == sorted(name for name in packets[frame]) or bad[frame], frame
        assert len(names) == len(found) or bad[frame], frame


def whole(item: Item) -> bool:
    """Whether all the bytes that a malformed packet announces are there."""
    if len(item.raw) < BASE_HEADER_SIZE:
        return False
    try:
        return packet_length(item.raw) == len(item.raw)
    except MalformedPacket:
        return True


@pytest.mark.parametrize("name", [schema.name for schema in strategies.SESSION_PACKETS])
def test_every_field_of_packets(tmp_path, script, name):
    schema = next(schema for schema in strategies.SESSION_PACKETS if schema.name == name)
    packets = drawn(strategies.packet(schema).map(lambda packet: packet.to_bytes()), 60)
    path = capture(tmp_path / "a.pcap", packets)
    shown, items = w.shown(script, path), by_frame(path)
    assert sum(map(len, items.values())) == len(packets)
    for frame, found in items.items():
        assert [differences(*pair) for pair in zip(found, shown[frame], strict=True)] == [""], frame


def test_every_field_of_pings(tmp_path, script):
    pings = drawn(strategies.pings().map(lambda packet: packet.to_bytes()), 60)
    path = capture(tmp_path / "a.pcap", [], pings)
    shown = w.shown(script, path)
    for frame, found in by_frame(path).items():
        assert [differences(*pair) for pair in zip(found, shown[frame], strict=True)] == [""], frame
    assert len(shown) == len(pings)


@pytest.mark.parametrize("name", [schema.name for schema in strategies.SESSION_PACKETS])
def test_broken_packets_are_malformed_at_the_same_field(tmp_path, script, name):
    schema = next(schema for schema in strategies.SESSION_PACKETS if schema.name == name)
    good = strategies.packet(schema).map(lambda packet: packet.to_bytes())
    broken = [data for data in drawn(strategies.mutated(good, schema), 100) if data]
    path = capture(tmp_path / "a.pcap", broken)
    shown = w.shown(script, path)
    agreement(path, shown)
    assert sum(one.packet == "Malformed" for found in shown.values() for one in found) >= 3


def test_broken_pings(tmp_path, script):
    pings = strategies.pings().map(lambda packet: packet.to_bytes())
    broken = [data for data in drawn(strategies.mutated(pings, PING), 60) if data]
    path = capture(tmp_path / "a.pcap", [], broken)
    shown = w.shown(script, path)
    for frame, found in by_frame(path).items():
        assert [differences(*pair) for pair in zip(found, shown[frame], strict=True)] == [""], frame


def test_the_hostile_example(script):
    path = ROOT / "examples" / "hostile.pcapng"
    shown = w.shown(script, path, "-o", "tcp.reassemble_out_of_order:TRUE")
    agreement(path, shown)
    assert {one.packet for found in shown.values() for one in found} >= {"Malformed", "Skipped", "UserMessage"}


@pytest.mark.parametrize("name", attacks.STREAMS)
def test_streams_of_an_attacker(tmp_path, script, name):
    """Each ends in bounded time, with no complaint, and with the packets that `dissect` finds."""
    path = tmp_path / "a.pcap"
    path.write_bytes(attacks.pcap(attacks.one_stream(attacks.STREAMS[name](200_000))))
    w.shown(script, path)
