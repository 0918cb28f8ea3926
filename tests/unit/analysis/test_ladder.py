"""Sessions as ladders: text, colours and SVG."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

import msmqwire
from msmqwire.analysis.report.facts import Group
from tests.support import captures as c
from tests.support.paths import EXAMPLES

SESSION, HOSTILE = EXAMPLES / "session.pcap", EXAMPLES / "hostile.pcapng"
EVIL = "\x1b[2J\u202e</text><script>alert(1)</script>'\"&[red]"


def svg(ladder: msmqwire.Ladder) -> ElementTree.Element:
    """The HTML of a ladder, which is well-formed XML, too."""
    return ElementTree.fromstring(ladder._repr_html_())


def rungs(ladder: msmqwire.Ladder) -> list[ElementTree.Element]:
    return svg(ladder).findall("./svg/g")


def capture(*packets: bytes) -> io.BytesIO:
    talk = c.TcpConversation().handshake()
    for packet in packets:
        talk.send(packet)
    return io.BytesIO(c.pcap_bytes(talk.frames))


def message(label: str, number: int) -> bytes:
    fields: dict[str, Any] = {
        "UserHeader": {"MessageID": number, "SourceQueueManager": "557358d1-9150-9595-4997-b6e611ea26c6"},
        "MessagePropertiesHeader": {"Label": label},
    }
    return msmqwire.build({"packet": "UserMessage", "fields": fields})


def test_it_has_the_packets_of_the_first_connection_in_order() -> None:
    ladder = msmqwire.ladder(SESSION)
    items = [item for item in msmqwire.dissect(SESSION) if item.stream == 0]
    assert [rung.kind for rung in ladder.rungs] == [item.kind for item in items]
    assert [rung.time_ns for rung in ladder.rungs] == [item.time_ns for item in items]
    assert [rung.to_right for rung in ladder.rungs] == [item.src == "10.0.0.1" for item in items]
    assert [rung.findings for rung in ladder.rungs] == [len(item.findings) for item in items]
    assert repr(ladder) == (
        "<Ladder Stream 0: 10.0.0.1:49759 and 10.0.0.2:1801, MSMQ session, accepted, 6 packets, 4 findings>"
    )
    assert msmqwire.ladder(msmqwire.dissect(SESSION)).rungs == ladder.rungs
    assert msmqwire.ladder(list(msmqwire.dissect(SESSION))).rungs == ladder.rungs
    assert msmqwire.ladder([SESSION]).rungs == ladder.rungs


def test_the_text_has_lanes_and_arrows() -> None:
    title, ends, *lines = str(msmqwire.ladder(SESSION)).splitlines()
    assert title.startswith("Stream 0: ")
    assert ends.split() == ["10.0.0.1:49759", "10.0.0.2:1801"]
    assert len(lines) == 6
    assert re.fullmatch(r" +\+0\.000000 s \|-- EstablishConnection .* -*>\|", lines[0])
    assert re.fullmatch(r" +\+0\.002057 s \|<-- SessionAck received 1, window 64 -+\|", lines[5])
    assert lines[4].endswith("|  1 !")


def test_a_ladder_shows_the_chosen_stream_or_no_session() -> None:
    ladder = msmqwire.ladder(HOSTILE, stream=2)
    assert ladder.session is not None
    assert (ladder.session.stream, ladder.session.left) == (2, "10.0.0.66:50666")
    missing = msmqwire.ladder(HOSTILE, stream=77)
    assert (missing.session, missing.rungs, str(missing)) == (None, (), "No such session")
    assert "No such session" in missing._repr_html_()
    assert msmqwire.ladder([]).session is None


def test_other_sessions_are_not_in_it() -> None:
    items = list(msmqwire.dissect(HOSTILE))
    first = next(item.stream for item in items if item.stream is not None)
    ladder = msmqwire.ladder(HOSTILE)
    assert [rung.time_ns for rung in ladder.rungs] == [item.time_ns for item in items if item.stream == first]
    assert ladder.session is not None
    assert ladder.session.stream == first


def test_datagrams_alone_have_a_ladder() -> None:
    pings = [item for item in msmqwire.dissect(SESSION) if item.kind == "Ping"]
    ladder = msmqwire.ladder(pings)
    assert [(rung.kind, rung.to_right) for rung in ladder.rungs] == [("Ping", True), ("Ping", False)]


def test_retransmissions_and_gaps_are_marked() -> None:
    first, second = message("first", 1), message("second", 2)
    ladder = msmqwire.ladder(capture(first, second, first, b"\0" * 40, second))
    kinds = [(rung.kind, rung.is_again) for rung in ladder.rungs]
    assert kinds[:3] == [("UserMessage", False), ("UserMessage", False), ("UserMessage", True)]
    assert kinds[-1] == ("UserMessage", True)
    assert any(rung.group in (Group.GAP, Group.MALFORMED) for rung in ladder.rungs)
    assert "2 sent again" in ladder.title
    lines = str(ladder).splitlines()[2:]
    assert "|~~ again: UserMessage" in lines[2]
    drawn = rungs(ladder)
    assert [one.get("class") for one in drawn[:3]] == ["message", "message", "message again"]
    assert drawn[2].find("path").get("stroke-dasharray") == "9 4"  # type: ignore[union-attr]
    assert drawn[1].find("path").get("stroke-dasharray") == "none"  # type: ignore[union-attr]


def test_gaps_have_no_arrowhead() -> None:
    ladder = msmqwire.ladder(HOSTILE, stream=2)
    drawn = {one.get("class"): one for one in rungs(ladder)}
    assert len(drawn["gap"].findall("path")) == 1
    assert len(drawn["message"].findall("path")) == 2
    assert "1 gap" in ladder.title


def test_it_is_bounded_and_says_what_it_leaves_out() -> None:
    ladder = msmqwire.ladder(SESSION, limit=2)
    assert (len(ladder.rungs), ladder.left_out) == (2, 4)
    assert sum(ladder.session.packets) == 6  # type: ignore[union-attr]
    sentence = "4 more packets not drawn; a larger limit draws more."
    assert str(ladder).endswith(sentence)
    assert sentence in ladder._repr_html_()
    assert len(rungs(ladder)) == 2
    assert msmqwire.ladder(SESSION, limit=0).left_out == 6
    assert str(msmqwire.ladder(SESSION, limit=0)).count("\n") == 2
    with pytest.raises(ValueError, match="a limit is not negative"):
        msmqwire.ladder(SESSION, limit=-1)


def test_no_text_of_a_peer_is_markup() -> None:
    ladder = msmqwire.ladder(capture(message(EVIL * 5, 1)))
    assert {one.tag for one in svg(ladder).iter()} <= {
        "div",
        "strong",
        "svg",
        "g",
        "title",
        "text",
        "path",
        "span",
    }
    attributes = {name for one in svg(ladder).iter() for name in one.attrib}
    assert not any(name.startswith("on") or name == "href" for name in attributes)
    title = rungs(ladder)[0].find("title")
    assert title is not None
    assert "</text><script>" in (title.text or "")
    for text in (str(ladder), ladder._repr_html_()):
        assert all(char.isprintable() or char == "\n" for char in text)


def test_rich_has_it_as_wide_as_the_console() -> None:
    console = Console(file=io.StringIO(), width=72, color_system=None)
    console.print(msmqwire.ladder(SESSION))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(lines) == 8
    assert max(map(len, lines)) <= 72
    assert lines[-1].endswith("|")


def test_several_captures_are_parts_of_one(tmp_path: Path) -> None:
    frames = c.TcpConversation().handshake().send(message("one", 1)).send(message("two", 2)).frames
    halves = []
    for number, part in enumerate((frames[:4], frames[4:])):
        halves.append(tmp_path / f"{number}.pcap")
        halves[-1].write_bytes(c.pcap_bytes(part))
    assert [rung.kind for rung in msmqwire.ladder(halves).rungs] == ["UserMessage", "UserMessage"]
