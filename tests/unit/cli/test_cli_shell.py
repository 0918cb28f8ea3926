"""What a shell and man(1) are given: completion, and the manual page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from msmqwire.cli import app
from msmqwire.cli.man_page import man_page
from tests.support.paths import ROOT
from tests.support.running import in_process as command


def completed(*words: str) -> list[str]:
    """What bash is given for the last word."""
    given = {"_MSMQWIRE_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words)}
    environment = {**os.environ, **given, "COMP_CWORD": str(len(words) - 1), "PYTHONPATH": str(ROOT)}
    program = "import sys; sys.argv = ['msmqwire']; from msmqwire.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_commands_options_and_names_of_packets_are_completed() -> None:
    assert completed("msmqwire", "dis") == ["dissect"]
    assert sorted(completed("msmqwire", "netware", "que")) == ["queue", "queues"]
    assert completed("msmqwire", "pcap", "--conn") == ["--connections"]
    assert completed("msmqwire", "dissect", "--kind", "User") == ["UserMessage"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_learns_where_it_gets_its_words(shell: str) -> None:
    script = command("export", "completion", shell).stdout.decode()
    assert f"_MSMQWIRE_COMPLETE={shell}_complete" in script


def test_the_manual_page_has_every_command_and_option() -> None:
    page = man_page(app)
    assert page.startswith('.TH MSMQWIRE 1 "" "msmqwire ')
    for name in ("dissect", "queue create", "netware object create", "export man"):
        assert f"\n.SS {name}\n" in page
    assert "\n.B \\-\\-where EXPRESSION\n" in page
    assert "\n.B msmqwire fate examples/remote_read.pcap\n" in page
    assert command("export", "man").stdout.decode() == page


def test_no_text_is_a_request_of_roff() -> None:
    requests = {line.split()[0] for line in man_page(app).splitlines() if line.startswith((".", "'"))}
    assert requests == {".TH", ".SH", ".SS", ".B", ".PP", ".TP"}


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_has_nothing_to_complain_of() -> None:
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tascii"], input=man_page(app), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "--where EXPRESSION" in re.sub(".\x08", "", done.stdout)  # bold: each character twice
