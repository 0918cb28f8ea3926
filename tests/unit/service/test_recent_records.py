"""The latest lines of the log that a server keeps."""

from __future__ import annotations

import logging

import pytest

from msmqwire.service.logs import RECENT_MAX, RecentRecords


@pytest.fixture
def logger() -> logging.Logger:
    found = logging.getLogger("test of recent records")
    found.propagate = False
    found.setLevel(logging.DEBUG)
    return found


@pytest.fixture
def records(logger: logging.Logger) -> RecentRecords:
    kept = RecentRecords()
    logger.handlers = [kept]
    return kept


def test_lines_by_level_behind_a_number(logger: logging.Logger, records: RecentRecords) -> None:
    for number, level in enumerate((logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)):
        logger.log(level, f"event {number}", extra={"peer": "192.0.2.1"})
    found = records.after(0, logging.INFO, 10)
    assert [(line["number"], line["level"], line["event"], line["peer"]) for line in found] == [
        (2, "info", "event 1", "192.0.2.1"),
        (3, "warning", "event 2", "192.0.2.1"),
        (4, "error", "event 3", "192.0.2.1"),
    ]
    assert [line["number"] for line in records.after(3, logging.DEBUG, 10)] == [4]
    assert [line["number"] for line in records.after(0, logging.DEBUG, 2)] == [3, 4], "the latest ones"
    assert records.last == 4


def test_only_so_many_lines_and_so_much_text_are_kept(logger: logging.Logger, records: RecentRecords) -> None:
    for number in range(RECENT_MAX + 5):
        logger.debug("event", extra={"at": number})
    found = records.after(0, logging.DEBUG, RECENT_MAX + 5)
    assert [line["at"] for line in found] == list(range(5, RECENT_MAX + 5))
    more = {"long": "y" * 100_000, "deep": ["z" * 100_000], "none": None, "yes": True}
    logger.debug("x" * 5000, extra=more)
    (line,) = records.after(records.last - 1, logging.DEBUG, 1)
    assert line["event"] == "x" * 4000 + "…"
    assert line["long"] == "y" * 4000 + "…"
    assert line["deep"] == '["' + "z" * 3998 + "…"
    assert (line["none"], line["yes"]) == (None, True)


def test_one_kind_of_line_a_second(logger: logging.Logger, records: RecentRecords) -> None:
    for _ in range(50):
        logger.warning("again and again")
    assert len(records.after(0, logging.DEBUG, 100)) == 1
