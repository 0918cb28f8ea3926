"""Advice for any report: never an exception, and nothing said that the report does not show."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from msmqwire.constants import CONNECTION_STATUS
from msmqwire.constants.explanations import QUEUE_STATES
from msmqwire.json_text import dumps
from msmqwire.management.advice import Commands, time_text
from msmqwire.management.report_json import queue_report_from_json
from msmqwire.management.reports import (
    ConnectionEvent,
    Eod,
    MachineReport,
    QueueReport,
    SequencePosition,
    Source,
    time_of,
)
from msmqwire.management.why import why, why_json, why_text

NOW: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)
NUMBER: Final = st.integers(0, 0xFFFFFFFF)
TEXT: Final = st.text(max_size=12)
HOPS: Final = st.sampled_from(["IP=10.0.0.5", "IPv6=::1", "FOREIGN=x", "IP=", "", "\x1b[2J", "\ud800"])
TIME: Final = st.none() | st.integers(1, 0xFFFFFFFF).map(time_of)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


POSITION: Final = maybe(st.builds(SequencePosition, st.integers(-(1 << 63), (1 << 63) - 1), NUMBER, NUMBER))
EODS: Final = st.builds(
    Eod,
    last_ack=POSITION,
    last_ack_time=TIME,
    last_ack_count=maybe(NUMBER),
    first_non_ack=POSITION,
    last_non_ack=POSITION,
    next_sequence=POSITION,
    no_read_count=maybe(NUMBER),
    no_ack_count=maybe(NUMBER),
    resend_time=TIME,
    resend_interval=maybe(NUMBER),
    resend_count=maybe(NUMBER),
)
EVENTS: Final = st.builds(
    ConnectionEvent,
    TIME,
    st.sampled_from(sorted(CONNECTION_STATUS)) | NUMBER,
    st.sampled_from([0, 0xC00E0069, 0x8007274D]) | NUMBER,
    st.lists(HOPS | TEXT, max_size=5).map(tuple),
)
SOURCES: Final = st.builds(Source, TEXT, st.uuids(), NUMBER, NUMBER, TIME, st.integers(0, 3) | NUMBER)
REPORTS: Final = st.builds(
    QueueReport,
    asked=TEXT | st.just(r"DIRECT=OS:beta\private$\orders"),
    path=maybe(TEXT),
    format_name=maybe(TEXT | st.just(r"DIRECT=TCP:10.0.0.5\x")),
    type=maybe(st.sampled_from(["PUBLIC", "PRIVATE", "MULTICAST"]) | TEXT),
    location=maybe(st.sampled_from(["LOCAL", "REMOTE", "REMOTE"]) | TEXT),
    transactional=maybe(st.booleans()),
    foreign=maybe(st.booleans()),
    messages=maybe(st.integers(0, 3) | NUMBER),
    bytes=maybe(NUMBER),
    journal_messages=maybe(NUMBER),
    journal_bytes=maybe(NUMBER),
    state=maybe(st.sampled_from(sorted(QUEUE_STATES)) | TEXT),
    next_hops=st.lists(HOPS | TEXT, max_size=5).map(tuple),
    eod=maybe(EODS),
    sources=st.lists(SOURCES, max_size=5).map(tuple),
    connection_history=st.lists(EVENTS, max_size=8).map(tuple),
    subqueues=maybe(st.lists(TEXT, max_size=2).map(tuple)),
    reason=st.none() | st.none() | TEXT,
    unavailable=st.dictionaries(
        st.sampled_from(["state", "messages", "eod.no_ack_count"]) | TEXT, TEXT, max_size=3
    ),
)
MACHINES: Final = maybe(st.builds(MachineReport, TEXT, connected=maybe(st.booleans())))

TIMES: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
OTHERS: Final = re.compile(r"0x[0-9A-F]+|, [\d,]+ (?:second|minute|hour|day)s? ago|4 GiB|TCP port 1801")
"""Codes, ages, and numbers of the words themselves."""
ESTABLISHED: Final = 2


def times_of(report: QueueReport) -> Iterator[str]:
    found = [one.time for one in report.connection_history] + [one.last_access for one in report.sources]
    if report.eod is not None:
        found += [report.eod.last_ack_time, report.eod.resend_time]
    yield from (time_text(time) for time in found if time is not None)


def failures(report: QueueReport) -> list[ConnectionEvent]:
    return [one for one in report.connection_history if one.failed]


def established(report: QueueReport) -> list[ConnectionEvent]:
    return [one for one in report.connection_history if one.status == ESTABLISHED]


@given(REPORTS, MACHINES, st.booleans())
def test_any_report_gets_advice(report: QueueReport, machine: MachineReport | None, served: bool) -> None:
    commands = Commands.of_folder("q", report.asked)
    advice = why(report, NOW, machine=machine, commands=commands, served=served)
    assert advice
    for one in advice:
        for text in (one.fact, one.meaning, *([one.action] if one.action else [])):
            assert text.endswith(".")
            assert text.isprintable()
            assert len(text) < 1_500
    text = why_text(report, advice)
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.count("\n") == 2 * len(advice) + sum(bool(one.action) for one in advice)
    assert json.loads(dumps(why_json(report, advice)))["why"] == [one.to_json() for one in advice]


@given(REPORTS, MACHINES)
def test_nothing_is_claimed_that_the_report_lacks(report: QueueReport, machine: MachineReport | None) -> None:
    """Names of the report are told apart from words by leaving them out."""
    plain = {"next_hops": (), "unavailable": {}, "reason": None}
    history = tuple(replace(one, addresses=()) for one in report.connection_history)
    sources = tuple(replace(one, rejected=0) for one in report.sources)
    state = report.state if report.state in QUEUE_STATES else None
    report = replace(report, state=state, connection_history=history, sources=sources, **plain)
    eod = report.eod or Eod()
    advice = why(report, NOW, machine=machine)
    facts = " ".join(one.fact for one in advice).replace("Its state is not reported", "")
    assert set(TIMES.findall(facts)) <= set(times_of(report))
    needs = {
        "Its state is ": report.state is not None and report.outgoing,
        "it holds ": report.messages is not None,
        "(4 GiB or more)": 0xFFFFFFFF in (report.bytes, report.journal_bytes),
        "The last connection failed": bool(failures(report)),
        "was established": bool(established(report)),
        "come and go": bool(failures(report)) and bool(established(report)),
        "under way": bool(report.connection_history),
        "lack": bool(eod.no_ack_count),
        "none ever came": bool(eod.no_ack_count) and eod.last_ack_time is None,
        "receive acknowledgement": bool(eod.no_read_count),
        "next attempt": eod.resend_time is not None,
        "Its journal holds": bool(report.journal_messages),
        "foreign": bool(report.foreign),
        "multicast": report.type == "MULTICAST",
        "disconnected from the network": machine is not None and machine.connected is False,
    }
    assert {words for words, known in needs.items() if words in facts and not known} == set()
    healthy = report.messages == 0 and (report.location == "LOCAL" or eod.no_ack_count == 0)
    assert healthy or not any("Nothing is stuck" in one.meaning for one in advice if report.outgoing)
    meanings = " ".join(one.meaning for one in advice)
    assert report.messages == 0 or "o message waits" not in meanings
    counts = [len(failures(report)), len(established(report)), *range(1, len(history) + 1)]
    counts += [eod.no_ack_count, eod.no_read_count, eod.resend_count, eod.resend_interval]
    counts += [report.messages, report.bytes, report.journal_messages, report.journal_bytes]
    numbers = re.findall(r"\d[\d,]*\d|\d", OTHERS.sub("", TIMES.sub("", facts)))
    assert {int(one.replace(",", "")) for one in numbers} <= {one for one in counts if one is not None}


@given(REPORTS)
def test_a_report_comes_back_from_its_json(report: QueueReport) -> None:
    """But for the name that was asked for, which `path` has where there is no other."""
    back = queue_report_from_json(json.loads(dumps(report.to_json())))
    assert back.to_json() == report.to_json()
    asked = report.path or report.asked
    assert back == replace(report, asked=asked, path=asked)
