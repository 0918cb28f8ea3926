"""The help of the commands: groups, examples that can be pasted, types in words, the look on a terminal."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from msmqwire.cli import app
from msmqwire.cli.examples import EXAMPLES
from msmqwire.cli.options import Command, Group
from tests.support.running import in_process
from tests.support.terminal import on_a_terminal


def contexts(group: Group, context: click.Context) -> Iterator[click.Context]:
    """The commands below a group, each in its context."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert isinstance(command, Command | Group)
        inner = click.Context(command, info_name=name, parent=context)
        yield inner
        if isinstance(command, Group):
            yield from contexts(command, inner)


ALL = {
    context.command_path.removeprefix("msmqwire "): context
    for context in contexts(app, click.Context(app, info_name="msmqwire"))
}
COMMANDS = [name for name, context in ALL.items() if isinstance(context.command, Command)]


def parsed(line: str) -> None:
    """Parse each ``msmqwire`` of a line for a shell, up to pipes and redirections."""
    ours = [part for part in re.split(r"[|>]", line) if part.split()[0] == "msmqwire"]
    assert ours, line
    for part in ours:
        words = shlex.split(part)[1:]
        command: click.Command = app
        path = ["msmqwire"]
        while isinstance(command, click.Group):
            path.append(words.pop(0))
            found = command.get_command(click.Context(command), path[-1])
            assert found is not None, line
            command = found
        command.make_context(" ".join(path), words)


def test_each_command_has_two_examples_of_its_own_that_parse() -> None:
    assert EXAMPLES.keys() == set(COMMANDS)
    for name, lines in EXAMPLES.items():
        assert len(set(lines)) == 2
        for line in lines:
            assert f"msmqwire {name}" in line
            parsed(line)


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_is_shown_everywhere(flag: str) -> None:
    for name in ["", *ALL]:
        done = in_process(*name.split(), flag)
        assert (done.returncode, done.stderr) == (0, b""), name
        text = done.stdout.decode()
        assert text.startswith(f"Usage: msmqwire {name}".rstrip())
        assert ("\nExamples:\n" in text) == (name in COMMANDS)
        titles = re.findall(r"^(\S[^\n]*):$", text, re.M)
        assert len(titles) == len(set(titles))
        assert "Positional arguments" not in titles


def test_types_are_words_of_people() -> None:
    for name, context in ALL.items():
        for parameter in context.command.get_params(context):
            record = parameter.get_help_record(context)
            assert record is not None
            assert not re.search(
                r"(?<!--)\b(str|int|integer|float|list|text|range|bool|uuid)\b|<", record[0]
            ), name
            assert not re.search(r"x>=|<=|default: \d+\.0]", record[1]), name


def test_the_commands_are_in_groups() -> None:
    text = in_process("--help").stdout.decode()
    parts = dict(re.findall(r"^(\S[^\n]*):\n((?:  .*\n)+)", text, re.M))
    words = {title: re.findall(r"^  (\w+)", part, re.M) for title, part in parts.items()}
    del words["Options"]
    firsts = {title: name for name, title in app.titles.items()} | {"NetWare": "netware"}
    assert {title: names[0] for title, names in words.items()} == firsts
    assert [name for names in words.values() for name in names] == list(app.commands)


def test_help_on_a_terminal_has_all_that_is_in_the_plain_one() -> None:
    shown = on_a_terminal("--help")
    assert all(title in shown for title in app.titles.values())
    assert all(re.search(rf"│ {name} ", shown) for name in app.commands)
    of_a_command = on_a_terminal("fate", "-h")
    for words in ("CAPTURES", "--stuck", "PATTERN", *EXAMPLES["fate"]):
        assert words in of_a_command
