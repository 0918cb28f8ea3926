"""`msmqwire.lint(packet)`, and the package of the same name."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

import msmqwire
from msmqwire.analysis.lint import Finding, lint_malformed_srmp, lint_packet, lint_srmp
from msmqwire.pgm import PgmPacket
from msmqwire.srmp.message import SrmpMessage, parse_message
from tests.support.capture.srmp_captures import samples
from tests.support.captures import pcap_bytes
from tests.support.installed import library
from tests.support.paths import EXAMPLES, ROOT

PACKET = next(item for item in msmqwire.dissect(EXAMPLES / "session.pcap") if item.kind == "UserMessage")


def ids(findings: list[Finding]) -> list[str]:
    return [finding.id for finding in findings]


def test_packets_bytes_and_items_have_the_same_findings() -> None:
    expected = ["MQMQ-2.2.19.2-26"]
    assert ids(msmqwire.lint(PACKET.packet)) == expected
    assert ids(msmqwire.lint(PACKET.raw)) == expected
    assert ids(msmqwire.lint(memoryview(PACKET.raw))) == expected
    assert ids(msmqwire.lint(PACKET)) == expected
    assert msmqwire.lint(PACKET.packet) == lint_packet(PACKET.packet)


def test_malformed_bytes_are_judged() -> None:
    assert "ATTACK-TRUNCATED" in ids(msmqwire.lint(PACKET.raw[:-10]))


@pytest.mark.parametrize(
    "name", ["session.pcap", "remote_read.pcap", "management.pcap", "netware.pcap", "hostile.pcapng"]
)
def test_items_that_were_judged_keep_all_of_their_findings(name: str) -> None:
    for item in msmqwire.dissect(EXAMPLES / name):
        assert msmqwire.lint(item) == list(item.findings)


@pytest.mark.parametrize("name", ["remote_read.pcap", "management.pcap", "netware.pcap", "session.pcap"])
def test_items_that_were_not_judged_are_by_their_packet(name: str) -> None:
    judged = msmqwire.dissect(EXAMPLES / name)
    for item, plain in zip(judged, msmqwire.dissect(EXAMPLES / name, lint=False), strict=True):
        assert not plain.findings
        found = msmqwire.lint(plain)
        assert set(ids(found)) <= set(ids(list(item.findings)))
        if plain.packet is not None:
            assert msmqwire.lint(plain.packet) == found


def test_messages_of_srmp() -> None:
    captures = [io.BytesIO(pcap_bytes(frames)) for frames in samples().values()]
    items = [item for capture in captures for item in msmqwire.dissect(capture)]
    messages = [item for item in items if isinstance(item.packet, SrmpMessage)]
    assert messages
    for item in messages:
        assert msmqwire.lint(item.packet) == lint_srmp(item.packet)
    cut = messages[0].raw[:30]
    with pytest.raises(msmqwire.MalformedPacket) as caught:
        parse_message(cut)
    assert msmqwire.lint(cut, protocol="srmp") == lint_malformed_srmp(cut, caught.value)


def test_of_pgm_nothing_is_judged() -> None:
    captures = [io.BytesIO(pcap_bytes(frames)) for frames in samples().values()]
    packets = [item.packet for capture in captures for item in msmqwire.dissect(capture)]
    judged = [msmqwire.lint(packet) for packet in packets if isinstance(packet, PgmPacket)]
    assert judged
    assert not any(judged)


def test_not_a_packet() -> None:
    with pytest.raises(TypeError, match="lint judges packets, bytes and items, not int"):
        msmqwire.lint(7)  # type: ignore[arg-type]


def test_it_is_the_package_whatever_was_imported_first() -> None:
    for first in (
        "import msmqwire",
        "import msmqwire.analysis.lint",
        "from msmqwire.analysis.lint import lint_packet",
    ):
        program = f"{first}\nimport msmqwire\nprint(msmqwire.lint(b''), msmqwire.analysis.lint.lint(b''))"
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.stdout.count("Finding(") >= 2, done.stderr


def test_types(tmp_path: Path) -> None:
    library("mypy")
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    head = "import msmqwire\nfrom msmqwire.analysis.lint import Finding, lint_packet\n"
    good.write_text(
        f"{head}def judged(data: bytes) -> list[Finding]:\n"
        "    for item in msmqwire.dissect('capture'):\n"
        "        msmqwire.lint(item)\n"
        "    return msmqwire.lint(msmqwire.parse(data)) + lint_packet(msmqwire.parse(data))\n"
    )
    bad.write_text(f"{head}number: int = msmqwire.lint(b'')\nmsmqwire.lint(7)\n")
    mypy = [sys.executable, "-m", "mypy", "--strict", str(good), str(bad)]
    done = subprocess.run(mypy, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert [line.rpartition("[")[2] for line in errors] == ["assignment]", "arg-type]"], done.stdout
    assert all(Path(line.partition(":")[0]).name == "bad.py" for line in errors)
