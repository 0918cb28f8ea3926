"""A manual page of all commands, made from their own help: the source of man(7)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, Final

from msmqwire import __version__

_EXIT_STATUS: Final = (
    ("0", "Success."),
    ("2", "Wrong usage."),
    ("65", "Bad data; an error is one JSON object with its reason, path and offset."),
    ("66", "A file, folder or queue that is not there."),
    ("69", "A peer or server that can't be reached, or refuses."),
    ("70", "A fault of msmqwire itself."),
    ("74", "Output that can't be written."),
)


def man_page(command: Any) -> str:
    """Return the page of a command and of all its subcommands."""
    from click import Context

    context = Context(command, info_name="msmqwire")
    lines = [
        f'.TH MSMQWIRE 1 "" "msmqwire {__version__}" "User Commands"',
        ".SH NAME",
        _text(f"msmqwire - {_first_lower(command.help)}"),
        ".SH SYNOPSIS",
        ".B msmqwire",
        _text("COMMAND [ARGS]..."),
        ".SH DESCRIPTION",
        _text(command.help),
        _text("Data goes to standard output, all else to standard error."),
        ".SH OPTIONS",
        *_options(command, context),
        ".SH COMMANDS",
        *_commands(command, context),
        ".SH EXIT STATUS",
    ]
    for status, meaning in _EXIT_STATUS:
        lines += [".TP", f".B {status}", _text(meaning)]
    return "\n".join(lines) + "\n"


def _commands(group: Any, context: Any) -> Iterator[str]:
    from click import Context

    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = Context(command, info_name=name, parent=context)
        pieces = " ".join(command.collect_usage_pieces(inner))
        yield f".SS {_escaped(inner.command_path.removeprefix('msmqwire '))}"
        yield f".B {_escaped(inner.command_path)}"
        yield _text(pieces)
        for paragraph in textwrap.dedent(command.help or "").strip().split("\n\n"):
            yield ".PP"
            yield _text(" ".join(paragraph.split()))
        yield from _options(command, inner)
        for example in command.examples(inner):
            yield from (".PP", ".B " + _escaped(example))
        if hasattr(command, "list_commands"):
            yield from _commands(command, inner)


def _options(command: Any, context: Any) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            names, meaning = record
            yield from (".TP", f".B {_escaped(names)}", _text(meaning))


def _text(text: str) -> str:
    """Return a line of text that no request of roff can begin."""
    escaped = _escaped(" ".join(text.split()))
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _escaped(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")


def _first_lower(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")
