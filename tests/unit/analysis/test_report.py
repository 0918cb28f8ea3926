"""The data of a report: counts as `dissect` has them, limits, and text that never becomes markup."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from msmqwire.analysis.dissection import dissect
from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.dissection.placed_fields import placed_fields
from msmqwire.analysis.fate import fates, summary
from msmqwire.analysis.lint import Finding
from msmqwire.analysis.report import Limits, write_report
from msmqwire.analysis.report.collecting import Collector
from msmqwire.analysis.report.facts import Group
from msmqwire.analysis.report.page import SCRIPTS, asset
from msmqwire.analysis.report.table_json import table_json
from msmqwire.analysis.report.texts import LEFT_OUT, Texts
from msmqwire.analysis.report.timeline import Timeline
from msmqwire.analysis.web_assets import CHART_SCRIPT, CHART_STYLE, COPIED_CELLS, web_asset
from msmqwire.names.printable import cut, safe
from msmqwire.schema import Record
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.fate_captures import Link, message
from tests.support.capture.fate_captures import capture as capture_of
from tests.support.capture.srmp_captures import samples
from tests.support.captures import pcap_bytes
from tests.support.paths import EXAMPLES, ROOT

CAPTURES = sorted(EXAMPLES.glob("*.pcap*"))
VENDOR = ROOT / "msmqwire" / "analysis" / "web_assets"


class Page:
    """A written report: its text, and the data in it."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text(encoding="utf-8")
        found = re.findall(r'<script type="([^"]+)" id="([^"]+)">([^<]*)</script>', self.text)
        self.parts = {name: content for _, name, content in found}
        self.report: dict[str, Any] = json.loads(self.parts["report"])
        self.packets: dict[str, Any] = self.unpacked("packet-table")
        self.lives: dict[str, Any] = self.unpacked("life-table")

    def unpacked(self, name: str) -> Any:
        return json.loads(gzip.decompress(base64.b64decode(self.parts[name])))

    def details(self) -> dict[int, dict[str, Any]]:
        """The details by row."""
        rows = self.report["details"]["rows"]
        pieces = sorted(
            (name for name in self.parts if name.startswith("details-")), key=lambda n: int(n.split("-")[1])
        )
        return dict(zip(rows, [one for name in pieces for one in self.unpacked(name)], strict=True))

    def column(self, name: str) -> list[int]:
        column: list[int] = self.packets["columns"][name]
        return column


def written(folder: Path, *captures: Path | str, limits: Limits | None = None, **arguments: Any) -> Page:
    path = folder / "report.html"
    write_report(dissect(list(captures), **arguments), path, version="1.2.3", limits=limits)
    return Page(path)


@pytest.fixture(params=CAPTURES, ids=lambda path: path.name)
def capture(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_the_numbers_are_those_of_dissect(capture: Path, tmp_path: Path) -> None:
    items = [item.to_json() for item in dissect(capture)]
    page = written(tmp_path, capture)
    totals = page.report["totals"]
    assert totals["packets"] == len(items) == page.packets["count"]
    assert totals["bytes"] == sum(item["size"] for item in items)
    assert totals["findings"] == sum(len(item["findings"]) for item in items)
    kinds = Counter(item["packet"] for item in items)
    assert {name: count for name, count, *_ in page.report["kinds"]} == kinds
    found = Counter((f["severity"], f["id"]) for item in items for f in item["findings"])
    assert {(one["severity"], one["id"]): one["count"] for one in page.report["requirements"]} == found
    names = page.packets["names"]
    assert [names[number] for number in page.column("kind")] == [item["packet"] for item in items]
    assert page.column("size") == [item["size"] for item in items]
    assert page.column("last_frame") == [item["frames"][-1] for item in items]
    assert page.column("findings") == [len(item["findings"]) for item in items]
    streams = [page.report["sessions"][number]["stream"] for number in page.column("session")]
    assert streams == [item["stream"] for item in items]


def test_the_lives_are_those_of_fates(capture: Path, tmp_path: Path) -> None:
    expected = list(fates(capture))
    page = written(tmp_path, capture)
    told = page.report["lives"]
    states = [state for state, _ in told["states"]]
    texts = page.lives["texts"]
    rows = page.lives["columns"]
    assert told["count"] == len(expected)
    assert [texts[number] for number in rows["identity"]] == [safe(fate.identity) for fate in expected]
    assert [states[number] for number in rows["state"]] == [fate.state for fate in expected]
    shown = [cut(safe(fate.explanation), Limits().text) for fate in expected]
    assert [texts[number] for number in rows["explanation"]] == shown
    assert rows["event_count"] == [len(fate.events) for fate in expected]
    assert [queue["messages"] for queue in told["queues"]] == [one.messages for one in summary(expected)]


def test_every_packet_has_its_bytes_and_fields_within_them(capture: Path, tmp_path: Path) -> None:
    items = list(dissect(capture))
    details = written(tmp_path, capture).details()
    assert list(details) == list(range(len(items)))
    for item, detail in zip(items, details.values(), strict=True):
        assert base64.b64decode(detail["bytes"]) == item.raw[: Limits().bytes]
        for path, offset, size, _ in detail["fields"]:
            assert path
            assert 0 <= offset < offset + size <= len(item.raw)
        assert [one[0] for one in detail.get("findings", [])] == [finding.id for finding in item.findings]


def test_fields_of_records_cover_all_bytes_in_order() -> None:
    for item in dissect(EXAMPLES / "session.pcap"):
        assert isinstance(item.packet, Record)
        at = 0
        for field in placed_fields(item):
            assert field.offset == at
            at += field.size
        assert at == len(item.raw)


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("netware.pcap", "NcpTcpRequest.Signature", b"DmdT"),
        ("netware.pcap", "NcpRequestHeader.RequestType", b"\x22\x22"),
        ("remote_read.pcap", "MessagePropertiesHeader.Label", "order 1\0".encode("utf-16-le")),
    ],
)
def test_fields_of_other_protocols_are_where_they_say(name: str, path: str, value: bytes) -> None:
    found = [
        item.raw[field.offset : field.offset + field.size]
        for item in dissect(EXAMPLES / name)
        for field in placed_fields(item)
        if field.path == path
    ]
    assert value in found


def test_a_malformed_packet_has_the_fields_before_the_error() -> None:
    item = next(
        item
        for item in dissect(EXAMPLES / "hostile.pcapng")
        if item.error is not None and item.error.path.startswith("MultiQueueFormatHeader")
    )
    fields = list(placed_fields(item))
    assert fields[0][:3] == ("BaseHeader.VersionNumber", 0, 1)
    assert "MessagePropertiesHeader.Label" in [field.path for field in fields]
    assert item.error is not None
    assert fields[-1].path == item.error.path
    assert fields[-1].offset == item.error.offset


def test_examples_of_findings_have_details_beyond_the_limit(tmp_path: Path) -> None:
    page = written(tmp_path, EXAMPLES / "hostile.pcapng", limits=Limits(details=0, examples=1))
    details = page.details()
    assert page.packets["count"] == 46
    for one in page.report["requirements"]:
        (row,) = one["examples"]
        assert one["id"] in [finding[0] for finding in details[row]["findings"]]
    assert len(details) < 27
    assert any("Fields and bytes are shown" in line for line in page.report["left_out"])


def test_limits_bound_every_table_and_the_page_says_so(tmp_path: Path) -> None:
    limits = Limits(
        packets=5, details=3, sessions=2, managers=1, endpoints=1, queues=1, requirements=2, texts=200,
        lives=2, identities=1, bytes=16, fields=4, examples=1,
    )  # fmt: skip
    page = written(tmp_path, EXAMPLES / "hostile.pcapng", limits=limits)
    report = page.report
    assert report["totals"]["packets"] == 46
    assert page.packets["count"] == len(page.column("kind")) <= 5 + 2
    assert [len(report[name]) for name in ("sessions", "managers", "endpoints", "queues")] == [2, 1, 1, 1]
    assert len(report["requirements"]) == 2
    assert len(page.lives["columns"]["state"]) == 2
    assert report["lives"]["count"] == 10
    assert sum(map(len, page.packets["texts"])) <= 200 + len(LEFT_OUT)
    for detail in page.details().values():
        assert len(base64.b64decode(detail["bytes"])) <= 16
        assert len(detail["fields"]) <= 4
    said = " ".join(report["left_out"])
    for words in (
        "packets are counted, but not in the table", "sessions beyond the first 2",
        "queue managers has the first 1",
        "computers has the first 1", "queues has the first 1", "requirements beyond the first 2",
        "labels, names and summaries are left out", "first 1 message.", "The life of 8 messages",
    ):  # fmt: skip
        assert words in said


def test_nothing_is_said_to_be_left_out_when_nothing_is(tmp_path: Path) -> None:
    assert written(tmp_path, EXAMPLES / "session.pcap").report["left_out"] == []


def test_details_end_when_their_room_is_used(tmp_path: Path) -> None:
    page = written(tmp_path, EXAMPLES / "netware.pcap", limits=Limits(detail_bytes=1))
    assert page.report["details"]["rows"] == list(range(64))
    assert any("took too much room" in line for line in page.report["left_out"])


def test_findings_beyond_the_examples_add_no_table_rows() -> None:
    found = next(item for item in dissect(EXAMPLES / "hostile.pcapng") if item.findings)
    plain = replace(found, findings=())
    collector = Collector(Limits(packets=64, details=64, detail_bytes=1))
    for item in [plain] * 64 + [found] * 100:
        collector.add(item)
    assert collector.details.is_full
    assert (collector.packets, collector.table.count, len(collector.details.rows)) == (164, 64, 64)
    assert [one.packets for one in collector.requirements.found.values()] == [100] * len(found.findings)


def test_the_ids_of_a_packet_are_not_cut() -> None:
    (first, *_) = dissect(EXAMPLES / "session.pcap")
    findings = [Finding(f"MQMQ-2.2.19.1-{n:02}", "MUST", "", 0, "why") for n in range(60)]
    collector = Collector(Limits())
    collector.add(replace(first, findings=findings))
    table = collector.table.data()
    (number,) = table["columns"]["ids"]
    assert table["names"][number].split(",") == [finding.id for finding in findings]


def test_events_and_packets_name_a_file_alike(tmp_path: Path) -> None:
    path = tmp_path / "a\u202eb\n.pcap"
    path.write_bytes((EXAMPLES / "session.pcap").read_bytes())
    page = written(tmp_path, path)
    of_packets = {page.packets["names"][number] for number in page.column("file")}
    of_events = {page.lives["texts"][number] for number in page.lives["events"]["file"]}
    assert of_packets == of_events == {f"{tmp_path}/a\\u202eb\\n.pcap"}


def test_an_answer_without_its_request_is_of_the_called_end() -> None:
    answer = [item for item in dissect(EXAMPLES / "session.pcap") if item.kind == "EstablishConnection"][1]
    header = answer.packet.EstablishConnectionHeader  # type: ignore[union-attr]
    collector = Collector(Limits(sessions=1))
    collector.add(answer)
    collector.add(replace(answer, stream=9))  # of a session that is not told apart
    (session,) = collector.sessions.sessions
    assert (session.left, session.state) == ("10.0.0.2:1801", "accepted")
    assert session.managers == [str(header.ServerGuid), ""]
    assert {guid: one.addresses for guid, one in collector.tallies.managers.items()} == {
        str(header.ServerGuid): ["10.0.0.2"]
    }


def test_long_names_of_queues_are_cut_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "long.pcap"
    link = Link()
    link.send(message(1, user={"destination": (7, h.direct_name("OS:a\\" + 20_000 * "\u202e"))}))
    path.write_bytes(capture_of(link).getvalue())
    report = written(tmp_path, path).report
    (name,) = [row[0] for row in report["queues"]]
    assert name == cut("DIRECT=OS:a\\" + r"\u202e" * 60, 300)
    assert [queue["queue"] for queue in report["lives"]["queues"]] == [name]
    assert len(written(tmp_path, path).parts["report"]) < 10_000


def test_a_message_sent_again_is_known(tmp_path: Path) -> None:
    page = written(tmp_path, EXAMPLES / "hostile.pcapng")
    texts = page.packets["texts"]
    again = [
        texts[label]
        for label, is_again in zip(page.column("label"), page.column("again"), strict=True)
        if is_again
    ]
    # Their MessageIDs are those of messages before, of the same queue manager and on the same way.
    assert again == ["on another port", "after the hole"]
    assert page.report["totals"]["again"] == 2


def test_answers_name_their_requests(tmp_path: Path) -> None:
    page = written(tmp_path, EXAMPLES / "remote_read.pcap")
    names = page.packets["names"]
    kinds = [names[number] for number in page.column("kind")]
    pairs = [
        (kinds[request], kinds[row]) for row, request in enumerate(page.column("answers")) if request >= 0
    ]
    assert ("R_OpenQueue request", "R_OpenQueue response") in pairs
    assert len(pairs) == sum(kind.endswith(" response") or kind == "fault" for kind in kinds)
    for request, response in pairs:
        assert response in (request.replace(" request", " response"), "fault")


def test_damage_is_reported(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes((EXAMPLES / "session.pcap").read_bytes()[:-10])
    page = written(tmp_path, cut)
    ((file, offset, why),) = page.report["damage"]
    assert file == str(cut)
    assert offset > 0
    assert why


# --- parts -------------------------------------------------------------------------------------------------


def test_texts_are_kept_once_and_within_their_room() -> None:
    texts = Texts(length=4, characters=10)
    assert [texts.number(one) for one in ("", "abcd", "abcd", "efgh", "abcdefgh")] == [0, 1, 1, 2, 3]
    assert texts.texts == ["", "abcd", "efgh", LEFT_OUT]
    assert texts.number("ijkl") == 3
    assert texts.left_out == 2
    assert Texts(length=4, characters=10).number("abcdefgh") == 1


def test_a_text_that_is_cut_says_so() -> None:
    texts = Texts(length=4, characters=10)
    texts.number("abcdefgh")
    assert texts.texts[1] == "abc…"


@pytest.mark.parametrize(
    "times", [[0], [0, 10**18], [5, 3, 10**19, 7], [10**9 + n * 7_919 for n in range(500)]]
)
def test_intervals_are_bounded_and_count_everything(times: list[int]) -> None:
    timeline = Timeline(Limits(timeline=50))
    for time in times:
        timeline.add(time, Group.MESSAGE, 3, 1)
    data = timeline.to_json()
    assert 1 <= len(data["bytes"]) <= 50
    assert sum(data["series"][0]) == len(times)
    assert sum(data["bytes"]) == 3 * len(times)
    assert sum(data["findings"]) == len(times)
    first = data["start"][0] * 10**9 + data["start"][1]
    assert first <= min(times)
    assert max(times) < first + data["width_ns"] * len(data["bytes"])
    counts = Counter((time - first) // data["width_ns"] for time in times)
    assert data["series"][0] == [counts[number] for number in range(len(data["bytes"]))]


def test_an_empty_timeline_has_no_intervals() -> None:
    assert Timeline(Limits()).to_json()["bytes"] == []


# --- the page ----------------------------------------------------------------------------------------------


def test_vendored_files_are_those_of_the_readme() -> None:
    readme = (VENDOR / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `([^`]+)` \| `([0-9a-f]{64})` \|$", readme, re.M))
    present = {path.name for path in VENDOR.iterdir() if path.is_file()} - {
        "README.md",
        "__init__.py",
        COPIED_CELLS,
    }
    assert listed.keys() == present
    for name, digest in listed.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest


def test_the_content_policy_allows_only_the_pages_own_code(tmp_path: Path) -> None:
    text = written(tmp_path, EXAMPLES / "session.pcap").text
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    directives = {one.split()[0]: one.split()[1:] for one in policy.split("; ")}
    assert directives["default-src"] == ["'none'"]
    styles = [web_asset(CHART_STYLE).decode(), asset("page.css")]
    shared = [web_asset(name).decode() for name in (CHART_SCRIPT, COPIED_CELLS)]
    scripts = [*shared, *(asset(name) for name in SCRIPTS)]
    for tag, directive, expected in (("script", "script-src", scripts), ("style", "style-src", styles)):
        contents = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        assert contents == expected
        digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in contents]
        assert directives[directive] == [f"'sha256-{digest}'" for digest in digests]
    assert not re.search(r'(?:src|href)="(?!#main")', text)


def test_a_hostile_title_and_names_stay_text(tmp_path: Path) -> None:
    hostile = tmp_path / "<img src=x onerror=alert(1)>.pcap"
    hostile.write_bytes((EXAMPLES / "session.pcap").read_bytes())
    page = written(tmp_path, hostile)
    assert "<img" not in page.text
    assert page.report["captures"] == [str(hostile)]
    assert "&lt;img src=x onerror=alert(1)&gt;.pcap" in page.text


def test_placeholders_in_a_title_are_text(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(dissect(EXAMPLES / "session.pcap"), path, title="{styles}{data}{policy}", version="1")
    assert "<title>{styles}{data}{policy}</title>" in path.read_text(encoding="utf-8")


def test_a_report_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("before")

    def failing(*arguments: Any) -> Any:
        yield "half"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("msmqwire.analysis.report.page", failing)
    with pytest.raises(OSError, match="No space left"):
        write_report(dissect(EXAMPLES / "session.pcap"), path)
    assert path.read_text() == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_the_same_captures_make_the_same_report(tmp_path: Path) -> None:
    first = written(tmp_path, EXAMPLES / "hostile.pcapng").text
    assert written(tmp_path, EXAMPLES / "hostile.pcapng").text == first


def test_no_item_of_any_kind_is_too_odd(tmp_path: Path) -> None:
    """An item without frames, with a time beyond every calendar and with a name of lone surrogates."""
    (item, *_) = dissect(EXAMPLES / "session.pcap")
    odd = replace(item, frames=(), time_ns=1 << 90, file="\ud800")
    assert isinstance(odd, Item)
    collector = Collector(Limits())
    collector.add(odd)
    table = json.loads(table_json(collector.table.data()))
    assert table["columns"]["first_frame"] == [0]
    assert table["columns"]["seconds"] == [1 << 53]


@pytest.mark.parametrize("name", sorted(samples()))
def test_fields_of_srmp_and_pgm_follow_each_other_up_to_the_end(name: str, tmp_path: Path) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap_bytes(samples()[name]))
    items = [item for item in dissect(path) if item.packet is not None]
    assert items
    for item in items:
        fields = list(placed_fields(item))
        ends = [0, *(field.offset + field.size for field in fields)]
        assert [field.offset for field in fields] == ends[:-1]
        assert ends[-1] == len(item.raw)
    page = written(tmp_path, path)
    assert page.report["totals"]["packets"] == sum(1 for _ in dissect(path))


def test_an_element_of_an_envelope_is_where_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap_bytes(samples()["pipelined"]))
    message = next(item for item in dissect(path) if b"POST" in item.raw)
    fields = {field.path: field for field in placed_fields(message)}
    assert fields["StartLine"].text.startswith("POST ")
    element = fields["Envelope.Header.path.to"]
    assert message.raw[element.offset :].startswith(b"<to>")


# -- bodies --------------------------------------------------------------------------------------------------

NSERVICEBUS = (
    b'<?xml version="1.0"?><ArrayOfHeaderInfo><HeaderInfo><Key>NServiceBus.EnclosedMessageTypes</Key>'
    b"<Value>Shop.Order, Shop</Value></HeaderInfo><HeaderInfo><Key>&lt;b&gt;\x1b[31m</Key><Value>x</Value>"
    b"</HeaderInfo></ArrayOfHeaderInfo>"
)


def with_bodies(folder: Path, *bodies: tuple[bytes, int, bytes], limits: Limits | None = None) -> Page:
    """The report of messages to one queue with these bodies, their types and extensions."""
    talk = c.TcpConversation(start_ns=c.START_NS).handshake()
    for number, (body, body_type, extension) in enumerate(bodies, 1):
        properties = h.properties_header(body=body, body_type=body_type, extension=extension)
        talk = talk.send(h.user_message(user=h.user_header(message_id=number), properties=properties))
    (folder / "capture.pcap").write_bytes(pcap_bytes(talk.close().frames))
    return written(folder, folder / "capture.pcap", limits=limits)


def test_a_body_has_its_format_text_value_headers_and_problems(tmp_path: Path) -> None:
    page = with_bodies(
        tmp_path,
        (b'{"Number": [1, 2]}', 0, NSERVICEBUS),
        (b"<a><b>1</b></a>", 0, b""),
        (b"\0\xff", 0, b""),
        (b"abc", 3, b""),
        (b"[" * 90_000 + b"]" * 90_000, 0, b""),
    )
    bodies = [detail["body"] for detail in page.details().values()]
    as_json, as_xml, raw, odd, deep = bodies
    assert (as_json["format"], as_json["text"]) == ("json", '{"Number": [1, 2]}')
    assert "value" not in as_json  # the text says it
    assert as_json["headers_format"] == "nservicebus"
    assert as_json["headers"][0] == ["NServiceBus.EnclosedMessageTypes", "Shop.Order, Shop"]
    assert as_json["headers"][1] == ["<b>\\x1b[31m", "x"]
    assert (as_xml["format"], as_xml["text"]) == ("xml", "<a><b>1</b></a>")
    assert as_xml["value"] == '{\n  "$type": "a",\n  "b": "1"\n}'
    assert (raw["format"], base64.b64decode(raw["bytes"])) == ("bytes", b"\0\xff")
    assert odd["format"] == "text"
    assert odd["problems"] == ["VT_I4, byte 3: VT_I4 takes 4 bytes, the body has 3"]
    assert deep["cut"]


def test_types_unlike_what_a_queue_mostly_carries(tmp_path: Path) -> None:
    usual = [(b"<Order><Number>1</Number></Order>", 0, b"")] * 40
    page = with_bodies(tmp_path, *usual, (b"<Other>1</Other>", 0, b""), *usual)
    queue = page.report["bodies"][0][0]
    assert page.report["bodies"] == [[queue, "xml Order", 80, 0, False], [queue, "xml Other", 1, 40, True]]


@pytest.mark.parametrize(
    "bodies",
    [
        [(b"<Order><N>1</N></Order>", 0, b"")] * 18 + [(b"<Other><N>1</N></Other>", 0, b"")],
        [(b"<T%d><N>1</N></T%d>" % (n % 30, n % 30), 0, b"") for n in range(60)],
        [(b"<Order><N>1</N></Order>", 0, b"")] * 30 + [(b"<Other><N>1</N></Other>", 0, b"")] * 10,
    ],
    ids=["few", "all kinds", "often enough"],
)
def test_no_type_is_unlike_the_others(bodies: list[tuple[bytes, int, bytes]], tmp_path: Path) -> None:
    page = with_bodies(tmp_path, *bodies)
    assert sum(row[2] for row in page.report["bodies"]) == len(bodies)
    assert not any(row[4] for row in page.report["bodies"])


def test_names_of_types_are_text_and_few(tmp_path: Path) -> None:
    bodies = [(b"<T%d><N>1</N></T%d>" % (n, n), 0, b"") for n in range(60)]
    page = with_bodies(tmp_path, (b"{}", 0, NSERVICEBUS), (b"\7\0\0\0", 3, b""), *bodies)
    names = [row[1] for row in page.report["bodies"]]
    assert {"json Shop.Order", "activex VT_I4"} < set(names)
    assert len(names) == 50
    assert (
        "The table of bodies leaves out 12 messages: there are too many queues or types."
        in page.report["left_out"]
    )
