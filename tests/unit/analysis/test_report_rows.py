"""Rows of sessions in a report: column by column, with items only for what is shown of single packets."""

from __future__ import annotations

import json
from array import array
from typing import Any

import pytest

from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.report.collecting import Collector
from msmqwire.analysis.report.limits import Limits
from msmqwire.analysis.report.table_json import table_json
from msmqwire.analysis.report.texts import LEFT_OUT, Texts
from msmqwire.packets import build
from msmqwire.tables.session_rows import SessionRows
from tests.property.analysis.test_row_groups import reader_of
from tests.support import captures as c

MESSAGES = 200


def message(number: int, size: int = 10) -> bytes:
    fields = {
        "UserHeader": {"MessageID": number, "DestinationQueue": {"DirectFormatName": "OS:a\\private$\\b"}},
        "MessagePropertiesHeader": {"Label": f"order {number}", "MessageBody": "00" * size},
    }
    return build({"packet": "UserMessage", "fields": fields})


def parts_of(*talks: c.TcpConversation) -> list[Any]:
    """The parts of captures; their rows are valid as nothing follows."""
    files = [c.pcap_bytes(talk.frames) for talk in talks]
    return list(reader_of(files, {}, lint=False)[1].parts())


def test_items_are_made_for_details_and_for_a_new_queue_alone():
    talk = c.TcpConversation().handshake()
    for number in range(1, MESSAGES + 1):
        talk.send(message(number))
    made: list[int] = []
    collector = Collector(Limits(details=3))
    for part in parts_of(talk.close()):
        assert isinstance(part, SessionRows)

        def item(r: int, of: SessionRows = part) -> Item:
            made.append(r)
            return of.item(r)

        collector.take(part._replace(item=item))
    assert sorted(made) == [0, 0, 1, 2]
    assert (collector.table.count, collector.details.rows) == (MESSAGES, [0, 1, 2])


@pytest.mark.parametrize("in_next_file", [0, 40, 41, 42])
def test_places_of_rows_are_those_of_their_items(in_next_file: int):
    talk = c.TcpConversation(mss=400).handshake()
    for number in range(1, 40):
        talk.send(message(number, size=number * 30))
    frames = talk.close().frames
    parts = [frames[:-in_next_file], frames[-in_next_file:]] if in_next_file else [frames]
    several = 0
    _, reader = reader_of([c.pcap_bytes(part) for part in parts], {}, lint=False)
    for part in reader.parts():
        assert isinstance(part, SessionRows)
        names, file, first, last = part.places(part.within)
        items = list(map(part.item, part.within))
        assert [names[number] for number in file] == [item.file for item in items]
        assert first.tolist() == [item.frames[0] for item in items]
        assert last.tolist() == [item.frames[-1] for item in items]
        several += sum(len(item.frames) > 1 for item in items)
    assert several > 20


def test_a_table_is_json_as_its_lists_are():
    columns = {"a": [1, -1, 1 << 62, -(1 << 63)], "none": [], '"<é': [0]}
    table = {"count": 4, "columns": columns, "texts": ["", "é\\<", "\ud800"]}
    arrays = table | {"columns": {name: array("q", column) for name, column in columns.items()}}
    assert table_json(arrays) == json.dumps(table, separators=(",", ":"), ensure_ascii=False)


def test_numbers_by_text_are_of_safe_and_cut_texts():
    texts = Texts(5, 60)
    numbers = texts.numbers
    assert [numbers[text] for text in ("", "ab", "a\nb", "ab", "a\nb", "abcdefgh")] == [0, 1, 2, 1, 2, 3]
    assert texts.texts == ["", "ab", "a\\nb", "abcd…"]
    texts = Texts(5, 1)
    assert [texts.numbers[text] for text in ("c", "ab", "a\nb")] == [1, 2, 2]
    assert texts.texts == ["", "c", LEFT_OUT]
