"""Samples of a target: names, labels, values, and what a peer can't do to a page."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from msmqwire.exporter import families
from msmqwire.exporter.families import OF_MACHINES, OF_QUEUES, OUTGOING_STATE, Family, page
from msmqwire.exporter.samples import STATES, samples
from msmqwire.management.reports import Eod, MachineReport, QueueReport
from tests.support.fake_targets import OUTGOING, local, outgoing

MACHINE = MachineReport("alpha", connected=True, bytes_all_queues=1000)


def lines(
    *queues: QueueReport, machine: MachineReport = MACHINE, left_out: int = 0, refused: int = 0
) -> list[str]:
    blocks = samples("a", machine, queues, left_out=left_out, refused=refused)
    text = b"".join(page((*OF_MACHINES, *OF_QUEUES), [blocks])).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_a_local_queue() -> None:
    labels = r'{target="a",name="alpha\\private$\\orders"}'
    assert lines(local()) == [
        'msmq_connected{target="a"} 1',
        'msmq_bytes_all_queues{target="a"} 1000',
        'msmq_queues{target="a"} 1',
        'msmq_queues_left_out{target="a"} 0',
        'msmq_queues_refused{target="a"} 0',
        f"windows_msmq_messages_in_queue{labels} 7",
        f"windows_msmq_bytes_in_queue{labels} 700",
        f"windows_msmq_messages_in_journal_queue{labels} 2",
        f"windows_msmq_bytes_in_journal_queue{labels} 64",
    ]


def test_an_outgoing_queue() -> None:
    labels = r'{target="a",name="DIRECT=OS:beta\\private$\\orders"}'
    found = [line for line in lines(outgoing()) if "outgoing" in line or "connection_" in line]
    states = [line for line in found if line.startswith("msmq_outgoing_state")]
    assert [line for line in found if line not in states] == [
        f"msmq_outgoing_messages{labels} 3",
        f"msmq_outgoing_bytes{labels} 300",
        f"msmq_outgoing_unacknowledged_messages{labels} 2",
        f"msmq_outgoing_unread_messages{labels} 1",
        f"msmq_outgoing_resends{labels} 4",
        f"msmq_outgoing_last_acknowledgement_timestamp_seconds{labels} 1772366400.0",
        f"msmq_connection_failures{labels} 2",
        f"msmq_connection_last_failure_timestamp_seconds{labels} 1772370000.0",
    ]
    assert [line for line in states if line.endswith(" 1")] == [
        r'msmq_outgoing_state{target="a",name="DIRECT=OS:beta\\private$\\orders",state="WAITING"} 1'
    ]
    assert len(states) == len(STATES) == 9


def test_an_outgoing_queue_is_not_among_the_local_ones() -> None:
    assert not any(line.startswith("windows_") for line in lines(outgoing()))


def test_never_is_no_time() -> None:
    """A time of 0 would be an age of 50 years."""
    found = lines(outgoing(eod=Eod(no_ack_count=0), connection_history=()))
    assert not any("timestamp" in line for line in found)
    assert any(line.startswith("msmq_connection_failures") and line.endswith(" 0") for line in found)


def test_what_is_not_reported_has_no_sample() -> None:
    queue = QueueReport("q", path="q", location="LOCAL", messages=1)
    found = lines(queue, machine=MachineReport("alpha"))
    assert found == [
        'msmq_queues{target="a"} 1',
        'msmq_queues_left_out{target="a"} 0',
        'msmq_queues_refused{target="a"} 0',
        'windows_msmq_messages_in_queue{target="a",name="q"} 1',
    ]
    old = outgoing(
        unavailable={"connection_history": "an old system"}, connection_history=(), eod=None, state=None
    )
    assert [line.partition("{")[0] for line in lines(old)][-2:] == [
        "msmq_outgoing_messages",
        "msmq_outgoing_bytes",
    ]


def test_an_unknown_state_is_another_one() -> None:
    """Texts of a peer don't become values of the label: their number has no limit."""
    found = [line for line in lines(outgoing(state="ODD")) if line.startswith(OUTGOING_STATE.name)]
    assert [line for line in found if line.endswith(" 1")] == [found[-1]]
    assert 'state="OTHER"' in found[-1]


def test_two_queues_with_one_name_are_one_sample() -> None:
    """Prometheus refuses a whole page with a sample twice."""
    found = lines(local(messages=1), local(messages=2), outgoing(), outgoing())
    assert len(found) == len({line.rpartition(" ")[0] for line in found})
    assert r'windows_msmq_messages_in_queue{target="a",name="alpha\\private$\\orders"} 1' in found
    assert 'msmq_queues{target="a"} 2' in found


def test_a_journal_is_not_its_queue() -> None:
    """Its path name is that of its queue; whichever comes first, both have their own number."""
    path = r"alpha\private$\orders"
    journal = replace(local(path, 5), asked=f"{path};journal", format_name=f"DIRECT=OS:{path};JOURNAL")
    for queues in ((local(path, 7), journal), (journal, local(path, 7))):
        found = lines(*queues)
        assert r'windows_msmq_messages_in_queue{target="a",name="alpha\\private$\\orders"} 7' in found
        assert r'windows_msmq_messages_in_queue{target="a",name="alpha\\private$\\orders;JOURNAL"} 5' in found


@pytest.mark.parametrize(
    "name, shown",
    [
        ('a"} 1\nup 1\n', 'a\\"} 1\\nup 1\\n'),
        ("back\\slash", "back\\\\slash"),
        ("half \ud800 pair", "half ? pair"),
        ("x" * 600, "x" * 512),
    ],
    ids=["quote and line", "backslash", "lone surrogate", "long"],
)
def test_a_name_can_be_anything(name: str, shown: str) -> None:
    found = lines(QueueReport("q", path=name, location="LOCAL", messages=1))
    assert found[-1] == f'windows_msmq_messages_in_queue{{target="a",name="{shown}"}} 1'


def test_counts_of_queues_without_metrics() -> None:
    assert {'msmq_queues_left_out{target="a"} 5', 'msmq_queues_refused{target="a"} 2'} <= set(
        lines(left_out=5, refused=2)
    )


def test_the_newest_failure_counts_wherever_it_stands() -> None:
    history = outgoing().connection_history
    newest = [line for line in lines(outgoing(connection_history=history[::-1])) if "last_failure" in line]
    assert float(newest[0].rpartition(" ")[2]) == datetime(2026, 3, 1, 13, tzinfo=UTC).timestamp()


def test_a_family_stands_once_with_its_meaning() -> None:
    blocks = [samples(name, MACHINE, [local(), outgoing(OUTGOING)], left_out=0, refused=0) for name in "ab"]
    text = b"".join(page((*OF_MACHINES, *OF_QUEUES), blocks)).decode()
    heads = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(heads) == len(set(heads)) == len((*OF_MACHINES, *OF_QUEUES))
    found: list[str] = []
    for line in text.splitlines():
        name = line.split()[2] if line.startswith("#") else line.partition("{")[0]
        if name not in found[-1:]:
            found.append(name)
    assert len(found) == len(set(found)), "the lines of a family stand together"


def test_meanings_are_one_line() -> None:
    all_of_them = [one for one in vars(families).values() if isinstance(one, Family)]
    assert len(all_of_them) == 25
    assert [one.name for one in all_of_them if "\n" in one.help or "\\" in one.help] == []
    assert [one.name for one in all_of_them if one.name.endswith("_total") != (one.type == "counter")] == []
