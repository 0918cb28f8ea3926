"""Counts and tables by groups of rows are those by items, for any capture and any limits."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any
from unittest import mock

import hypothesis.strategies as st
import pytest
from hypothesis import given

from msmqwire.analysis.dissection import Dissection, dissect
from msmqwire.analysis.report import collecting
from msmqwire.analysis.report.collecting import Collector
from msmqwire.analysis.report.limits import Limits
from msmqwire.analysis.report.table_json import table_json
from msmqwire.packets import build
from msmqwire.tables import item_reader
from msmqwire.tables.item_reader import ItemReader
from msmqwire.tables.scanning import row_buffer
from tests.property.tables.test_columnar import SIZES, captures, file_of
from tests.property.tables.test_items import FILES, SMALL, guid, sessions
from tests.support import captures as c
from tests.support.capture.both_readers import streams

COUNTS: dict[str, int] = {"packets": 0, "details": 0, "examples": 0}
NARROW: dict[str, int] = {
    "sessions": 1, "managers": 2, "addresses": 1, "endpoints": 3, "queues": 1, "requirements": 2,
    "identities": 2, "timeline": 3, "text": 12,
}  # fmt: skip
LIMITS = st.builds(
    lambda shown, narrow, names: Limits(**shown, **{name: narrow[name] for name in names}),
    st.sampled_from(
        [
            COUNTS,
            {},
            {"details": 3, "examples": 1, "texts": 60},
            {"packets": 2, "details": 1, "examples": 1},
            {"packets": 3, "detail_bytes": 1},
        ]
    ),
    st.sampled_from([NARROW, {name: size + 2 for name, size in NARROW.items()}]),
    st.sets(st.sampled_from(sorted(NARROW))),
)


def reader_of(files: list[bytes], sizes: dict[str, int], *, lint: bool) -> tuple[Dissection, ItemReader]:
    dissection = dissect(streams(files), lint=lint)
    with ExitStack() as stack:
        for name, size in sizes.items():
            stack.enter_context(mock.patch.object(row_buffer, name, size))
        stack.enter_context(mock.patch.object(item_reader, "_FRAMES", 1))
        return dissection, ItemReader(dissection)


def collected(dissection: Dissection, collector: Collector) -> Any:
    """All that a collector has, with the order of its objects."""
    data = collector.to_json(dissection)
    left_out = {
        "sessions": collector.sessions.left_out, "requirements": collector.requirements.left_out,
        "bodies": collector.body_types.left_out, "details": collector.details_left_out,
        **collector.tallies.left_out,
    }  # fmt: skip
    table = table_json(collector.table.data())
    return json.dumps([data, left_out, collector.identities, table, collector.details.pieces])


def assert_same(files: list[bytes], limits: Limits, sizes: dict[str, int], *, lint: bool = True) -> Collector:
    """Check that groups have the counts of items; return the collector of groups."""
    by_items, by_groups = Collector(limits), Collector(limits)
    dissection, reader = reader_of(files, sizes, lint=lint)
    for item in reader.items():
        by_items.add(item)
    expected = collected(dissection, by_items)
    dissection, reader = reader_of(files, sizes, lint=lint)
    with mock.patch.object(collecting, "FEW_ROWS", 1):
        for part in reader.parts():
            by_groups.take(part)
    assert collected(dissection, by_groups) == expected
    return by_groups


@given(
    talks=st.lists(sessions(), min_size=1, max_size=4), sizes=st.sampled_from([{}, SMALL]),
    limits=LIMITS, lint=st.booleans(),
)  # fmt: skip
def test_any_session_has_the_same_counts(
    talks: list[list[c.Frame]], sizes: dict[str, int], limits: Limits, lint: bool
) -> None:
    assert_same([c.pcapng_bytes(c.merged(*talks))], limits, sizes, lint=lint)


@given(frames=captures(), more=sessions(), sizes=SIZES, limits=LIMITS, data=st.data())
def test_any_capture_has_the_same_counts(
    frames: list[c.Frame], more: list[c.Frame], sizes: dict[str, int], limits: Limits, data: Any
) -> None:
    assert_same([file_of(data, frames), c.pcap_bytes(more)], limits, sizes)


@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}/{path.name}" for path in FILES])
def test_captures_of_the_project_have_the_same_counts(path: Any) -> None:
    for limits in (Limits(**COUNTS), Limits(packets=3, details=2, examples=2), Limits(details=5)):
        assert_same([path.read_bytes()], limits, {})


def message(number: int) -> bytes:
    user = {
        "SourceQueueManager": guid(1), "QueueManagerAddress": guid(2), "MessageID": number,
        "DestinationQueue": {"PrivateQueueIdentifier": 4},
    }  # fmt: skip
    return build({"packet": "UserMessage", "fields": {"UserHeader": user}})


def test_handshakes_and_messages_name_managers_in_their_order():
    header = {"ClientGuid": guid(3), "ServerGuid": guid(2)}
    opening = build({"packet": "EstablishConnection", "fields": {"EstablishConnectionHeader": header}})
    talk = c.TcpConversation().handshake().send(message(1)).send(opening).send(message(2)).close()
    by_groups = assert_same([c.pcap_bytes(talk.frames)], Limits(**COUNTS, managers=1), {})
    ((name, source),) = by_groups.tallies.managers.items()
    assert (name, source.sent, by_groups.tallies.left_out["managers"]) == (guid(1), 2, 3)


def test_messages_beyond_the_limit_are_not_remembered():
    talk = c.TcpConversation().handshake()
    for number in (1, 2, 2, 1):
        talk.send(message(number))
    by_groups = assert_same([c.pcap_bytes(talk.close().frames)], Limits(**COUNTS, identities=1), {})
    assert (by_groups.again, by_groups.identities) == (1, 1)
