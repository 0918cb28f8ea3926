"""Messages with the same identity, and queue managers whose GUID is at two addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from msmqwire.analysis.dissection import dissect
from msmqwire.analysis.fate import State, fates, summary
from msmqwire.analysis.lint import checks
from msmqwire.analysis.lint import queue_managers as table
from msmqwire.analysis.lint.queue_managers import Place, QueueManagers
from tests.support import handmade as h
from tests.support.capture.fate_captures import (
    POSITIVE_RECEIVE,
    RECEIVER,
    SENDER,
    SENDER_QM,
    THIRD,
    Link,
    acknowledgement,
    capture,
    fates_in,
    message,
    session_ack,
    told,
)
from tests.support.paths import ROOT

CLONES = ROOT / "tests/vectors/cases/03_fate_one_number_two_messages/clone2.pcap"
CLONE, ROUTER_QM = "10.0.0.7", bytes(range(16))
ID = "DMPR-3.1.1-05"


def at_two(here: str, there: str, frame: int, guid: str = SENDER_QM) -> str:
    return (
        f"one queue manager GUID at two addresses: {guid} is at {here}, and at {there} (frame {frame}): "
        "machines cloned with their queue manager, a forged sender, or one machine with several addresses "
        "(DHCP, NAT, several networks)"
    )


def after(link: Link, client: str = CLONE, **more) -> Link:
    """A session of another machine under the sender's GUID."""
    return Link(client, start_ns=link.time_ns + 1_000_000, port=50_007, **more)


def address_findings(*links: Link) -> list[str]:
    items = dissect([capture(*links)])
    return [finding.message for item in items for finding in item.findings if finding.id == ID]


def test_the_messages_of_two_machines_with_one_guid() -> None:
    first, second = fates([CLONES])
    assert first.identity == second.identity == "557358d1-9150-9595-4997-b6e611ea26c6\\2286"
    assert (first.label, first.sender, first.body_size) == ("mqsender label", "10.0.0.1", 2000)
    assert (second.label, second.sender, second.body_size) == ("invoice 9", "10.0.0.7", 10)
    assert [fate.destination for fate in (first, second)] == [
        "DIRECT=OS:a04bm02\\q",
        "DIRECT=OS:a04bm02\\invoices",
    ]
    assert [(fate.state, fate.retransmissions) for fate in (first, second)] == [(State.RECEIVED, 0)] * 2
    assert told(first) == ["sent", "received"]
    assert told(second) == ["sent", "at a second address", "received"]
    assert 'same identity: "invoice 9" to DIRECT=OS:a04bm02\\invoices from 10.0.0.7 (frame 18)' in (
        first.explanation
    )
    words = at_two("10.0.0.7", "10.0.0.1", 9)
    assert words in second.explanation
    assert (first.findings, [finding.message for finding in second.findings]) == ((), [words])
    assert [(finding.id, finding.severity) for finding in second.findings] == [(ID, "NOTE")]
    assert [(one.queue, one.findings) for one in summary(fates([CLONES]))] == [
        ("DIRECT=OS:a04bm02\\invoices", (words,)),
        ("DIRECT=OS:a04bm02\\q", ()),
    ]


@pytest.mark.requirement("DMPR-3.1.1-05")
def test_the_finding_is_at_the_packet_that_shows_it() -> None:
    found = [(item.frames, f) for item in dissect(CLONES) for f in item.findings if f.id == ID]
    ((frames, finding),) = found
    assert (frames, finding.severity) == ((14,), "NOTE")
    assert (finding.path, finding.offset) == ("EstablishConnectionHeader.ClientGuid", 20)
    assert finding.message == at_two("10.0.0.7", "10.0.0.1", 4)
    (check,) = [check for check in checks() if check.id == ID]
    assert check.title == "One queue manager GUID at two addresses"


def test_it_is_seen_without_the_opening_of_sessions() -> None:
    """A message that no router has passed on is where its queue manager is."""
    first = Link(established=False).send(message(1))
    links = first, after(first, established=False).send(message(2))
    (words,) = address_findings(*links)
    assert words == at_two(CLONE, SENDER, 4)
    assert [[f.message for f in fate.findings] for fate in fates_in(*links)] == [[], [words]]


def test_the_guid_of_nobody_is_at_no_address() -> None:
    """Two senders that name no queue manager are not clones."""
    first = Link(established=False).send(message(1, source=bytes(16)))
    links = first, after(first, established=False).send(message(2, source=bytes(16)))
    assert address_findings(*links) == []
    assert [fate.findings for fate in fates_in(*links)] == [(), ()]


@pytest.mark.parametrize(
    ("there", "is_other"),
    [
        (SENDER, False),
        ("127.0.0.1", False),
        ("fd00::7", False),  # one machine has an address of each version
        (CLONE, True),
    ],
)
def test_which_addresses_are_others(there: str, is_other: bool) -> None:
    here = Place(SENDER, "a", 1)
    managers = QueueManagers()
    assert managers.add(SENDER_QM, here) is None
    assert managers.add(SENDER_QM, Place(there, "a", 2)) == (here if is_other else None)
    assert managers.add(SENDER_QM, Place(there, "a", 3)) is None  # it is told once
    assert managers.add(THIRD, Place(there, "a", 3)) is None


def test_queue_managers_and_addresses_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "GUIDS_MAX", 5)
    managers = QueueManagers()
    for number in range(100):
        assert managers.add(number, Place("10.0.0.1", None, number)) is None
        assert len(managers._by_guid) <= 5
    told_of = [managers.add(99, Place(f"10.0.1.{n}", None, n)) for n in range(100)]
    assert sum(place is not None for place in told_of) == table.ADDRESSES_MAX - 1


def test_a_message_that_routers_pass_on_is_one() -> None:
    """They change addresses and hop count, and claim nothing."""
    first = Link(server=THIRD, server_qm=ROUTER_QM).send(message(1))
    second = Link(THIRD, client_qm=ROUTER_QM, start_ns=first.time_ns).send(
        message(1, user={"flags": h.MP | 1})
    )
    (fate,) = fates_in(first, second)
    assert (told(fate)[0], fate.hops, fate.findings) == ("sent", 1, ())
    assert not address_findings(first, second)


def test_a_message_resent_from_another_address_is_one_message() -> None:
    first = Link().send(message(1))
    (fate,) = fates_in(first, after(first).send(message(1)))
    assert fate.retransmissions == 1
    assert "from another address" in [event.detail for event in fate.events]


@pytest.mark.parametrize(
    "more", [{"label": "another"}, {"body": b"another"}, {"user": {"sent_time": 5}}, {"message_class": 1}]
)
def test_what_stays_on_a_messages_way_tells_two_apart(more) -> None:
    link = Link().send(message(1, body=b"first!!")).send(message(1, **{"body": b"first!!"} | more))
    link.answer(session_ack(ack=2))
    assert [fate.retransmissions for fate in fates_in(link)] == [0, 0]


def test_acks_belong_to_the_message_whose_sender_gets_them() -> None:
    first = Link().send(message(1, acks=POSITIVE_RECEIVE, label="of the first"))
    first.answer(session_ack(ack=1))
    clone = after(first).send(message(1, acks=POSITIVE_RECEIVE, label="of the clone"))
    clone.answer(session_ack(ack=1))
    back = Link(
        RECEIVER, SENDER, client_qm=h.SERVER, server_qm=h.CLIENT, port=50_009, start_ns=clone.time_ns
    ).send(acknowledgement(1, 0x4000))
    states = {fate.label: fate.state for fate in fates_in(first, clone, back)}
    assert states == {"of the first": State.READ, "of the clone": State.RECEIVED}


def test_lint_and_report_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from msmqwire.cli import app

    for command in (["lint", str(CLONES)], ["report", str(CLONES), "-o", str(tmp_path / "page.html")]):
        with pytest.raises(SystemExit):
            app(command)
    assert at_two("10.0.0.7", "10.0.0.1", 4) in capsys.readouterr().out
    assert "One queue manager GUID at two addresses" in (tmp_path / "page.html").read_text()


def test_the_frame_is_named_with_its_file_if_that_is_another() -> None:
    first = Link().send(message(1))
    files = [capture(first), capture(after(first).send(message(2)))]
    for number, file in enumerate(files):
        file.name = f"{number}.pcap"  # type: ignore[attr-defined]
    (words,) = [f.message for item in dissect(files) for f in item.findings if f.id == ID]
    assert "(frame 4 of 0.pcap)" in words
    for file in files:
        file.seek(0)
    assert ["(frame 12 of 0.pcap)" in fate.explanation for fate in fates(files)] == [False, True]
