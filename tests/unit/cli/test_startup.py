"""What starts the program imports no more than it needs: modules are counted, not time."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import click
import pytest

from msmqwire.cli import app, commands
from msmqwire.cli.netware import app as netware
from msmqwire.cli.protocols import protocols
from tests.support.paths import EXAMPLES, ROOT

HEAVY = {
    "Cryptodome", "aiohttp", "asyncio", "concurrent", "construct", "cryptography", "http", "logging", "lxml",
    "numba", "numpy", "pyarrow", "rich", "sqlite3", "ssl",
}  # fmt: skip


def imported(*arguments: str, status: int = 0) -> set[str]:
    """The modules that a command has imported when it ends with a status."""
    program = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        f"sys.argv = ['msmqwire', *{list(arguments)!r}]\n"
        "from msmqwire.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    return set(done.stderr.splitlines()[-1].split())


def heavy(modules: set[str]) -> set[str]:
    return HEAVY & {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("netware", "--help")], ids=" ".join)
def test_version_and_help_import_no_part(arguments: tuple[str, ...]) -> None:
    modules = imported(*arguments)
    assert heavy(modules) == set()
    ours = {name for name in modules if name.startswith("msmqwire")}
    registered = {name for name in ours if name.startswith("msmqwire.cli.protocols")}
    assert ours - registered <= {"msmqwire", "msmqwire.cli", "msmqwire.cli.commands", "msmqwire.cli.common",
                                 "msmqwire.cli.netware", "msmqwire.cli.netware.app", "msmqwire.cli.options",
                                 "msmqwire.json_text", "msmqwire.moved"}  # fmt: skip
    assert arguments != ("--version",) or not registered


def test_a_small_dissection_imports_no_columns_keys_or_sockets() -> None:
    modules = imported("dissect", str(EXAMPLES / "session.pcap"))
    assert "msmqwire.analysis.dissection" in modules
    assert heavy(modules) == set()
    above = {"tables", "qm", "schema.display.as_html"}
    above |= {f"analysis.{room}" for room in ("report", "fate", "diagrams")}
    assert {f"msmqwire.{part}" for part in above} & modules == set()


CLOSED = "127.0.0.1:9"
CAPTURES = {"capture", "analysis", "tables"}
SERVER = {"qm.core", "qm.runtime.engine_driver", "service.store.sqlite", "qm.runtime.operations"}
MESSAGES = {"bodies", "schema.display"}
"""What shows messages that have come."""


@pytest.mark.parametrize(
    "arguments, without",
    [
        (
            ("send", r"DIRECT=TCP:127.0.0.1\private$\orders", "--body", "a", "--port", "9", "--timeout", "1"),
            CAPTURES
            | MESSAGES
            | {"qm.runtime.server", "qm.runtime.operations", "cli.serve"}
            | {"qm.protocols.srmp.engine", "srmp.schema", "srmp.http_message"}
            | {"qm.protocols.remote_read.engine", "qm.client.remote_reading", "remote_read.sections"}
            | {"qm.protocols.srmp.redirections", "service.store.sqlite"}
            | {"rpc.ndr", "rpc.server_association", "qm.runtime.rpc.client"},
        ),
        (
            ("receive", "--remote", r"DIRECT=TCP:127.0.0.1\private$\orders", "--rpc-port", "9"),
            CAPTURES
            | SERVER
            | MESSAGES
            | {"srmp", "qm.security", "qm.rules", "qm.client.properties", "qm.client.manager"}
            | {"qm.runtime.message_json", "rpc.server_association"},
        ),
        (
            ("netware", "jobs", "LASER", "--connect", CLOSED, "--as", "ALICE"),
            CAPTURES | SERVER | {"netware.runtime.server", "headers", "srmp"},
        ),
    ],
    ids=["send", "receive --remote", "netware jobs"],
)
def test_a_client_imports_no_captures_and_no_server(arguments: tuple[str, ...], without: set[str]) -> None:
    assert all(find_spec(f"msmqwire.{part}") for part in without)
    modules = imported(*arguments, status=69)
    assert {f"msmqwire.{part}" for part in without} & modules == set()
    assert heavy(modules) & {"Cryptodome", "aiohttp", "construct", "cryptography", "lxml", "numba", "numpy",
                             "pyarrow", "rich"} == set()  # fmt: skip


def test_columns_list_the_values_of_filters_when_one_is_given() -> None:
    program = (
        "import msmqwire, sys\n"
        "from msmqwire.tables import possible_values\n"
        "msmqwire.read_capture(sys.argv[1])\n"
        "print(possible_values._all_classes.cache_info().currsize)\n"
        "msmqwire.read_capture(sys.argv[1], where=[('class_name', '==', '0x1234')])\n"
        "print(possible_values._all_classes.cache_info().currsize)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(EXAMPLES / "session.pcap")],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["0", "1"]


def test_a_missing_folder_is_reported_without_a_queue_manager() -> None:
    modules = imported("receive", r"private$\orders", "--data", "/nonexistent", status=66)
    assert {f"msmqwire.{part}" for part in SERVER} & modules == set()


def test_the_package_itself_imports_no_part() -> None:
    program = "import sys, msmqwire; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    modules = done.stdout.split()
    assert [name for name in modules if name.startswith("msmqwire")] == ["msmqwire.moved", "msmqwire"]


@pytest.mark.parametrize("group", [app, netware.app], ids=["msmqwire", "netware"])
def test_command_summaries_are_the_first_sentences_of_help(group: commands.LazyGroup) -> None:
    listed = [row for _, rows in group.sections(click.Context(group)) for row in rows]
    assert [name for name, _ in listed] == list(group.commands)
    for name, summary in listed:
        assert summary == " ".join((group.commands[name].help or "").partition("\n\n")[0].split())


def test_commands_have_no_further_list() -> None:
    joined = [one.commands.name for one in protocols() if one.commands is not None]
    assert app.list_commands(click.Context(app)) == [*commands.LazyGroup.places, *joined]
    assert joined == ["netware"]
