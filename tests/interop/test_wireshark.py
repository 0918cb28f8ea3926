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
from msmqwire.ping import PING
from tests.support import captures as c
from tests.support import wireshark as w

T = TypeVar("T")


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


def differences(item: Item, shown: w.Shown) -> str:
    if item.kind != shown.packet:
        return f"{item.kind}, shown: {shown.packet} {shown.path}"
    if item.error is not None:
        return (
            ""
            if (item.error.path, item.error.offset) == (shown.path, shown.offset)
            else f"{item.error}, shown: {shown.path} {shown.offset}"
        )
    if item.packet is None:
        return ""
    return w.difference(w.expected(item.kind, item.to_json()["fields"]), shown.fields)


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
    assert PING.size == 24
