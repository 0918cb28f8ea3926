"""``msmqwire body``: decodes the body of a message, and encodes a value as a body."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

from click import BadParameter
from click.exceptions import Exit

from msmqwire.bodies import decode
from msmqwire.cli.body_text import body_lines
from msmqwire.cli.body_types import BodyType, body_type_of
from msmqwire.cli.body_values import (
    FORMATS,
    FORMATS_HELP,
    HeadersFormat,
    TypeName,
    encoded,
    format_of,
    headers_format_of,
    headers_of,
)
from msmqwire.cli.common import EX_DATAERR, EX_NOINPUT, NoInput, from_hex, read_input, say
from msmqwire.cli.errors import status_of
from msmqwire.cli.options import Argument, Group, Option
from msmqwire.constants import variant_name
from msmqwire.errors import LocatedError
from msmqwire.json_text import dumps, dumps_deep
from msmqwire.names.nearest import nearest
from msmqwire.names.printable import counted, safe

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem


class _Bodies(Group):
    """A group of which any word that is not a command is the file of `decode`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with ``decode`` before those that name no command."""
        if args and args[0] not in self.commands and args[0] not in self.get_help_option_names(ctx):
            args = ["decode", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the completions that a shell offers: the commands, and files."""
        from click.shell_completion import CompletionItem

        return [*super().shell_complete(ctx, incomplete), CompletionItem(incomplete, type="file")]


app = _Bodies(
    "body",
    "Decode bodies of messages, and encode values as bodies.\n\n"
    "msmqwire body FILE is short for msmqwire body decode FILE.",
)


def run(
    data: bytes,
    out: TextIO,
    err: TextIO,
    *,
    body_type: int = 0,
    extension: bytes = b"",
    as_json: bool = False,
) -> int:
    """Print the decoded body; return the exit status."""
    try:
        body = decode(data, body_type=body_type, extension=extension)
    except LocatedError as exc:
        say(exc, err, see="without --body-type the content decides its format" if body_type else "")
        return EX_DATAERR
    if as_json or not out.isatty():
        print(dumps_deep(body.to_json(), indent=2) if out.isatty() else dumps(body.to_json()), file=out)
    else:
        for line in body_lines(body):
            print(line, file=out)
    return 0


def _read(name: str, *, is_hex: bool = False) -> bytes:
    """Return the bytes of an input; exit if there are none."""
    try:
        data = read_input(name)
        return from_hex(data) if is_hex else data
    except NoInput as exc:
        near = nearest(name, app.commands, most=1)
        see = f"; the command is msmqwire body {near[0]}" if near else ""
        say(f"{exc}{see}")
        raise Exit(EX_NOINPUT) from None
    except LocatedError as exc:
        say(exc)
        raise Exit(EX_DATAERR) from None


@app.command("decode")
def decode_(
    file: Annotated[
        str, Argument(metavar="FILE", help="File with the bytes of a body; - is standard input.")
    ],
    hex_text: Annotated[
        bool, Option("--hex", help="The input is hex text, as in parse and dissect.")
    ] = False,
    body_type: BodyType = None,
    extension: Annotated[
        str | None,
        Option(metavar="FILE", help="File with the extension of the message: headers of NServiceBus, Rebus."),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="JSON, also on a terminal.")] = False,
) -> None:
    """Decode a body: its format, its value, a summary in one line, its headers.

    Without --body-type the content decides. Prints text on a terminal, else one JSON object. Ends with 65 if
    the bytes can't be of the format that the type names; of a fault further on it prints the values before
    it, and the fault among the problems. docs/bodies.md has the formats and how values look in JSON.
    """
    number = body_type_of(body_type) or 0
    if file == extension == "-":
        raise BadParameter("standard input has the body already: a file", param_hint="--extension")
    content = _read(file, is_hex=hex_text)
    headers = b"" if extension is None else _read(extension)
    raise Exit(run(content, sys.stdout, sys.stderr, body_type=number, extension=headers, as_json=as_json))


@app.command("encode")
def encode_(
    format_name: Annotated[
        str,
        Option(
            "--format",
            metavar="FORMAT",
            help=f"Format of the body: {FORMATS_HELP}.",
            complete=lambda: FORMATS,
        ),
    ],
    file: Annotated[
        str, Argument(metavar="FILE", help="File with the JSON value; - is standard input.")
    ] = "-",
    type_name: TypeName = None,
    headers: Annotated[
        str | None,
        Option(metavar="FILE", help="File with a JSON object: headers of nservicebus or rebus by name."),
    ] = None,
    headers_format: HeadersFormat = None,
    out: Annotated[
        str | None,
        Option("-o", "--output", metavar="FILE", help="File to write the body to; - is standard output."),
    ] = None,
    extension_out: Annotated[
        str | None,
        Option(
            "--extension-output",
            metavar="FILE",
            help="File to write the extension to, which has the headers.",
        ),
    ] = None,
    as_json: Annotated[
        bool, Option("--json", help="One JSON object: body and extension in hex, the body type.")
    ] = False,
) -> None:
    """Write the body of a JSON value: its bytes to standard output, its body type to standard error.

    Values look as msmqwire body prints them: docs/bodies.md. nservicebus and rebus are JSON bodies with
    headers in the extension of the message. Ends with 65 if the input is not JSON, or the format or type has
    no such value.
    """
    if as_json and (out is not None or extension_out is not None):
        raise BadParameter(
            "it prints all in one object: without --output and --extension-output", param_hint="--json"
        )
    if headers == file == "-":
        raise BadParameter("standard input has the value already: a file", param_hint="--headers")
    name = format_of(format_name)
    headers_format_of(name, headers, headers_format, "" if extension_out is None else "--extension-output")
    content, more = _read(file), None if headers is None else _read(headers)
    try:
        body, number, extension = encoded(
            content, name, type_name, None if more is None else headers_of(more), headers_format
        )
    except LocatedError as exc:
        say(exc)
        raise Exit(status_of(exc)) from None
    if as_json:
        print(dumps({"body": body.hex(), "body_type": number, "extension": extension.hex()}))
        return
    _write_body(body, out)
    if extension_out is not None:
        Path(extension_out).write_bytes(extension)
    print(_about(body, number, extension, extension_out), file=sys.stderr)


def _write_body(body: bytes, path: str | None) -> None:
    if path not in (None, "-"):
        Path(path).write_bytes(body)
        return
    if sys.stdout.isatty() and not _is_text(body):
        raise BadParameter("a file: a terminal can't show bytes; or --json for hex", param_hint="--output")
    sys.stdout.buffer.write(body)
    sys.stdout.buffer.flush()


def _is_text(body: bytes) -> bool:
    try:
        return safe(text := body.decode().replace("\n", " ")) == text
    except UnicodeDecodeError:
        return False


def _about(body: bytes, number: int, extension: bytes, extension_out: str | None) -> str:
    text = f"{counted(len(body), 'byte')}, body type {number} ({variant_name(number)})"
    if not extension:
        return text
    where = "--extension-output FILE writes it" if extension_out is None else f"in {safe(extension_out)}"
    return f"{text}; an extension of {counted(len(extension), 'byte')}: {where}"
