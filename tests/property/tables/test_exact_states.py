"""A reader that goes on from the state before a part ends with the state before the next one, in every field.

So nothing that a reader remembers is lost between parts, also where no row of these captures shows it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType, MethodType
from typing import Any
from unittest import mock

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from msmqwire.analysis.dissection import tracker
from msmqwire.capture.splits import whole_file
from msmqwire.tables.arrow.batch import BatchMaker
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.exact_parts import exact_parts
from msmqwire.tables.filters import Filter
from msmqwire.tables.resumable_decoder import ResumableDecoder
from msmqwire.tables.scanning import row_buffer
from tests.property.capture import test_evictions
from tests.property.capture.test_lost_synchronisation import ACK, CHANGED, GARBAGE, GOOD
from tests.property.spark import test_spark_reassembly
from tests.property.tables.test_exact_parts import few, fragmented
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.busy import busy_capture
from tests.support.nightly import nightly
from tests.support.paths import EXAMPLES

CHUNK = 1700
"""Bytes that are read at once, and so about those of a part: no record is larger, or all parts would not be
scanned in the same groups of records, on which the sizes of the arrays depend."""
OF_THE_INPUT = [entry.NEED, entry.RECORD, entry.MEMORY_AT]
"""What the state of a scan has of the records before, which nothing reads."""
PLAIN = (bool, int, float, str, bytes, Enum, type, type(None))


def leaves(value: Any, path: str, seen: dict[int, tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield what an object consists of, each with its path; objects met before by their first path.

    ``seen`` keeps those met alive, so that no other one gets the same identity.
    """
    if isinstance(value, PLAIN):
        yield path, value
    elif isinstance(value, FunctionType | MethodType):
        owner, _ = seen.get(id(getattr(value, "__self__", None)), (None, None))
        yield path, (value.__qualname__, owner)
    elif isinstance(value, np.ndarray):
        yield path, (value.shape, value.tobytes())
    elif id(value) in seen:
        yield path, seen[id(value)][0]
    else:
        seen[id(value)] = path, value
        yield path, type(value)
        for name, part in parts_of(value):
            yield from leaves(part, f"{path}{name}", seen)


def parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for number, (key, item) in enumerate(value.items()):
            yield f".key {number}", key
            yield f"[{number}]", item
    elif isinstance(value, list | tuple | deque):
        yield from ((f"[{number}]", item) for number, item in enumerate(value))
    elif isinstance(value, set | frozenset):
        yield from ((f"{{{number}}}", item) for number, item in enumerate(sorted(value, key=repr)))
    if "__getstate__" in vars(type(value)) and not hasattr(value, "__slots__"):
        yield ".state", value.__getstate__()
        return
    slots = [vars(kind).get("__slots__", ()) for kind in type(value).__mro__]
    names = [name for names in slots for name in ([names] if isinstance(names, str) else names)]
    for name in (*names, *getattr(value, "__dict__", {})):
        if hasattr(value, name):
            yield f".{name}", getattr(value, name)


def resumed(state: bytes) -> ResumableDecoder:
    return ResumableDecoder.resume(state, BatchMaker([], Filter(()), 100, None))


def remembered(decoder: ResumableDecoder) -> dict[str, Any]:
    """All that a decoder knows between two records, by path."""
    after = resumed(decoder.save())
    after._update_counters()  # as at the end of a window
    after._state[OF_THE_INPUT] = 0
    after._dissection.decoder.count_anew()  # each part counts the frames that it has not read itself
    names = ("_dissection", "_flows", "_state", "_interfaces", "_form", "_frames_before")
    whole = {name: getattr(after, name) for name in names}
    return dict(leaves(whole, "", {}))


def check_states(folder: Path, files: Sequence[bytes], chunk: int = CHUNK) -> int:
    """Check the states of a capture that is divided about every `chunk` bytes; return how many there were."""
    paths = [folder / f"{number}.pcap" for number in range(len(files))]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    with mock.patch.multiple(row_buffer, CHUNK=chunk, ARENA=3000):
        parts = list(exact_parts([whole_file(str(path)) for path in paths], 1))
        for part, following in list(pairwise(parts))[1:]:
            decoder = resumed(part.state)
            assert not list(decoder.read(part.windows))
            actual, expected = remembered(decoder), remembered(resumed(following.state))
            different = [path for path in expected if actual.get(path) != expected[path]]
            assert not different
            assert actual.keys() == expected.keys()
    return len(parts) - 1


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
@pytest.mark.parametrize("share", [0.1, pytest.param(0.3, marks=nightly)])
def test_connections_with_disorder(form: str, share: float, tmp_path: Path) -> None:
    frames = busy_capture(share)
    data = c.pcap_bytes(frames) if form == "pcap" else c.pcapng_bytes(frames, byteorder=">")
    assert check_states(tmp_path, [data, data]) > 50


def test_fragments_and_multicast(tmp_path: Path) -> None:
    assert check_states(tmp_path, [c.pcap_bytes(fragmented())], chunk=64) > 30


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.pcap*")), ids=lambda path: path.name)
def test_examples(path: Path, tmp_path: Path) -> None:
    assert check_states(tmp_path, [path.read_bytes()] * 2) > 3


def capture_of_lost_synchronisation() -> list[bytes]:
    """Connections that lose synchronisation, also with a long packet, and with segments out of order."""
    talks = []
    for number, bad in enumerate([*CHANGED.values(), *GARBAGE.values()]):
        talk = c.TcpConversation((c.CLIENT, 50_000 + number), (c.SERVER, 1801), mss=60 + number % 2 * 400)
        talk.handshake()
        for packet in (GOOD, bad, GOOD, bad, bad, ACK):
            talk.send(packet[:2000], acknowledged=bool(number % 3))
        talks.append(talk.frames)
    talk = c.TcpConversation((c.CLIENT, 49_999), (c.SERVER, 1801), mss=1000).handshake()
    talk.send(h.user_message(properties=h.properties_header(body=b"long" * 8000)), acknowledged=False)
    disordered = c.disorder(talk.send(ACK).frames, random.Random(3), reorder=0.2, duplicate=0.1, overlap=0.1)
    in_order = c.merged(*talks)
    return [
        c.pcap_bytes([*in_order, *disordered]),
        c.pcap_bytes(c.disorder(in_order, random.Random(4), drop=0.1)),
    ]


def capture_of_implausible_segments() -> list[bytes]:
    """Segments far from the others, two and three in a row; then times that the scan does not take."""
    talk = c.TcpConversation((c.CLIENT, 50_000), (c.SERVER, 1801), mss=600).handshake()
    for _ in range(12):
        talk.send(GOOD * 2)
    frames = []
    for number, frame in enumerate(talk.frames):
        frames.append(frame)
        far = c.tcp(b"far" * 400, src_port=50_000, seq=1 << 31 | 1200 * (number % 4))
        frames += [c.Frame(frame.time_ns, c.ethernet(c.ipv4(far)))] if number % 4 else []
    wild = [c.Frame((1 << 62) + frame.time_ns, frame.data) for frame in talk.frames[-20:]]
    return [c.pcapng_bytes(frames), c.pcapng_bytes([*frames, *wild, *frames])]


def test_lost_synchronisation(tmp_path: Path) -> None:
    assert check_states(tmp_path, capture_of_lost_synchronisation()) > 20


def test_implausible_segments(tmp_path: Path) -> None:
    assert check_states(tmp_path, capture_of_implausible_segments()) > 20


@given(files=test_spark_reassembly.captures())
@few
def test_connections_with_pauses_and_reused_ports(files: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        check_states(Path(folder), files)


@given(capture=test_evictions.connections(), limit=st.integers(1, 6))
@few
def test_connections_that_make_room_for_others(capture: bytes, limit: int) -> None:
    with TemporaryDirectory() as folder, mock.patch.object(tracker, "CONNECTIONS_MAX", limit):
        check_states(Path(folder), [capture])
