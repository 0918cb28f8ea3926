"""Lines of commands on a terminal are not wider than that; elsewhere nothing is left out."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from msmqwire.analysis.dissection import dissect as dissected
from msmqwire.cli.captures import dissect, lint
from msmqwire.cli.captures.item_table import FittingLines
from tests.support.paths import EXAMPLES
from tests.support.running import in_process as command

SESSION, HOSTILE = EXAMPLES / "session.pcap", EXAMPLES / "hostile.pcapng"
REMOTE_READ = EXAMPLES / "remote_read.pcap"


class Terminal(io.StringIO):
    """What says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(params=[60, 80, 100, 120, 200])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The width of a terminal without colours."""
    monkeypatch.setenv("COLUMNS", str(request.param))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    return int(request.param)


def _shown(capture: Path, *, wide: bool = False) -> list[str]:
    terminal = Terminal()
    dissect.print_items(dissected(capture), lambda _item: True, dissect.Printer(terminal, wide=wide))
    return [_plain(line) for line in terminal.getvalue().splitlines()]


def _plain(text: str) -> str:
    """What a terminal shows of a text, without the codes of styles."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize(
    "capture", [SESSION, HOSTILE, EXAMPLES / "remote_read.pcap"], ids=lambda path: path.stem
)
def test_the_table_fits_the_terminal(width: int, capture: Path) -> None:
    lines = _shown(capture)
    assert max(map(len, lines)) <= width
    items = list(dissected(capture))
    dates = {item.time[:10] for item in items if item.time}
    assert [line for line in lines if line in dates] == sorted(dates)
    assert len(lines) == 1 + len(items) + len(dates)


def test_what_is_shortened_and_what_is_not(width: int) -> None:
    message = next(line for line in _shown(SESSION) if "UserMessage" in line)
    assert message.startswith("12:00:00.002 ")
    assert ("10.0.0.1:49759" in message) is (width >= 120)
    assert ('"mqsender label" 2,000 bytes' in message) is (width == 200)
    assert ("ConnectionParameters " in "".join(_shown(SESSION))) is (width >= 100)


def test_wide_lines_are_those_of_a_pipe(width: int) -> None:
    assert _shown(SESSION, wide=True) == command("dissect", SESSION).stdout.decode().splitlines()


def test_long_addresses_are_cut_in_their_middle() -> None:
    item = replace(next(iter(dissected(SESSION))), src="2001:db8:85a3:8d3:1319:8a2e:370:7348")
    assert " 2001:db…70:7348 " in [*FittingLines(80).rows(item)][-1]


def test_columns_of_a_table() -> None:
    done = command("dissect", SESSION, "--table", "--columns", "kind,size,label,body", "--body-limit", "3")
    assert done.returncode == 0
    header, *rows = done.stdout.decode().splitlines()
    assert header.split() == ["kind", "size", "label", "body"]
    assert len(rows) == 8
    assert rows[6].split("  ")[0] == "UserMessage"
    assert rows[6].endswith("mqsender label  610061")
    assert rows[6].index("2224") == header.index("size")


def test_columns_of_no_rows_have_their_header() -> None:
    done = command("dissect", SESSION, "--table", "--columns", "kind,size", "--label", "none")
    assert done.stdout == b"kind  size\n"


def test_columns_go_with_a_table_that_is_asked_for() -> None:
    assert command("dissect", SESSION, "--columns", "kind").returncode == 2
    assert command("dissect", SESSION, "--table", "--columns", "kind", "--json").returncode == 2
    assert command("dissect", SESSION, "--json", "--wide").returncode == 2


def test_findings_are_wrapped(width: int) -> None:
    terminal = Terminal()
    lint.run_capture(dissected(SESSION), terminal)
    shown = _plain(terminal.getvalue())
    assert max(map(len, shown.splitlines())) <= width
    piped = command("lint", SESSION).stdout.decode()
    assert "".join(shown.split()) == "".join(piped.split())


def test_findings_have_colours_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    lint.run_capture(dissected(HOSTILE), terminal)
    assert "\x1b[1;31mATTACK" in terminal.getvalue()
    assert b"\x1b" not in command("lint", HOSTILE).stdout
