"""``msmqwire lint``: departures from the specifications in captures or single packets."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final, TextIO, cast

from click import BadParameter
from click.exceptions import Exit

from msmqwire.analysis.dissection import Item
from msmqwire.analysis.lint import (
    BREACHES,
    Finding,
    lint,
    lint_malformed,
    lint_packet,
)
from msmqwire.capture import is_capture
from msmqwire.capture.paths import expand, local_path, open_file
from msmqwire.capture.record import RECORD_SIZE_MAX
from msmqwire.capture.stores import StorageOptions
from msmqwire.cli.captures.capture_input import (
    Cert,
    Key,
    MessageSecurity,
    RecordSizeMax,
    StorageOption,
    no_input,
    opened,
    report,
    storage_options_of,
)
from msmqwire.cli.captures.dissect import finding_text
from msmqwire.cli.captures.filter_options import Port
from msmqwire.cli.captures.readings import CaptureReading
from msmqwire.cli.common import EX_DATAERR, NoInput, from_hex, read_input, say, standard_input
from msmqwire.cli.options import Argument, Option
from msmqwire.cli.parse import AUTO, OWN, format_of, formats, protocol_of
from msmqwire.errors import LocatedError, MalformedPacket, UnsupportedStore
from msmqwire.json_text import dumps
from msmqwire.names.printable import counted, safe
from msmqwire.packets import parse


def run_packet(
    data: bytes,
    out: TextIO,
    err: TextIO,
    *,
    kind: str = AUTO,
    as_json: bool = False,
    check: bool = False,
) -> int:
    """Print the findings of one packet or message; return the exit status, with `check` also by them."""
    status = 0
    try:
        findings = _findings(data, kind)
    except MalformedPacket as exc:
        say(exc, err)
        findings, status = _findings_of_malformed(data, exc, kind), EX_DATAERR
    _print(findings, "", out, as_json=as_json)
    if check and any(finding.severity in BREACHES for finding in findings):
        status = EX_DATAERR
    return status


def _findings(data: bytes, kind: str) -> list[Finding]:
    joined = format_of(data, kind)
    if joined is not None and joined.packet is not None:
        return lint(cast(Any, joined.packet(data)))
    return lint_packet(parse(data, protocol=protocol_of(data, kind)), data)


def _findings_of_malformed(data: bytes, error: MalformedPacket, kind: str) -> list[Finding]:
    joined = format_of(data, kind)
    if joined is not None and joined.packet is not None:
        return lint(data, protocol=cast(Any, joined.name))
    return lint_malformed(data, error, protocol=protocol_of(data, kind))


def run_capture(items: Iterable[Item], out: TextIO, *, as_json: bool = False) -> Counter[str]:
    """Print the findings of all items and a summary; return the number of each severity."""
    counts: Counter[str] = Counter()
    ids: Counter[tuple[str, str]] = Counter()
    for item in items:
        frames = ",".join(str(frame) for frame in item.frames[:8])
        stream = "-" if item.stream is None else item.stream
        origin = f"{item.time or '-'} frame {frames} stream {stream} {item.kind}"
        for finding in item.findings:
            counts[finding.severity] += 1
            ids[finding.severity, finding.id] += 1
        _print(item.findings, origin, out, as_json=as_json, item=item)
    if not as_json:
        total = ", ".join(f"{count} {severity}" for severity, count in sorted(counts.items()))
        print(counted(sum(counts.values()), "finding") + (f": {total}" if total else ""), file=out)
        for (severity, name), count in sorted(ids.items()):
            print(f"  {count:>6}  {severity:<6}  {name}", file=out)
        if ids:
            print("The page Findings of the documentation explains each.", file=out)
    return counts


_STYLES: Final = {"ATTACK": "bold red", "MUST": "red", "SHOULD": "yellow", "NOTE": "dim"}
_INDENT: Final = 4
_WRAPPED_MIN: Final = 20
"""Characters of a line, at least, however narrow a terminal is."""


def _print(
    findings: Iterable[Finding], origin: str, out: TextIO, *, as_json: bool, item: Item | None = None
) -> None:
    console = None
    if not as_json and out.isatty():
        from rich.console import Console

        console = Console(file=out, highlight=False, markup=False, emoji=False)
    for finding in findings:
        if as_json:
            data = finding.to_json()
            if item is not None:
                data = {"time": item.time, "file": item.file, "frames": list(item.frames),
                        "stream": item.stream, "packet": item.kind, **data}  # fmt: skip
            print(dumps(data), file=out)
            continue
        before = f"{origin}{': ' if origin else ''}"
        if console is None:
            print(before + safe(finding_text(finding)), file=out)
        else:
            _print_wrapped(before, finding, console)


def _print_wrapped(before: str, finding: Finding, console: Any) -> None:
    """Print a finding in colours, in lines that fit a terminal; those after the first are indented."""
    from rich.text import Text

    style = _STYLES.get(finding.severity, "")
    place = f" {finding.path} byte {finding.offset}: "
    parts = (finding.severity, style), " ", (finding.id, style), (safe(place), "cyan"), safe(finding.message)
    text = Text.assemble((before, "dim"), *parts)
    for number, line in enumerate(text.wrap(console, max(_WRAPPED_MIN, console.width - _INDENT))):
        console.print(
            Text(" " * (_INDENT if number else 0)) + line, no_wrap=True, overflow="ignore", crop=False
        )


def _kinds() -> tuple[str, ...]:
    return (*OWN, *(one.name for one in formats() if one.packet is not None))


def command(
    files: Annotated[
        list[str],
        Argument(help="Captures, or files with one {judged each} each; - is standard input."),
    ],
    as_json: Annotated[bool, Option("--json", help="One JSON object a line.")] = False,
    hex_text: Annotated[bool, Option("--hex", help="The files are packets in hex text.")] = False,
    protocol: Annotated[str, Option(help="Content of files that are not captures.", choices=_kinds)] = AUTO,
    port: Port = None,
    check: Annotated[
        bool,
        Option("--check", help="End with status 65 on MUST and ATTACK findings, not on SHOULD and NOTE."),
    ] = False,
    record_size_max: RecordSizeMax = RECORD_SIZE_MAX,
    storage_option: StorageOption = None,
    key: Key = None,
    cert: Cert = None,
    reading: CaptureReading = None,
) -> None:
    """Judge {judged}{calls}.

    Findings are departures from the specifications, each with its requirement id.

    SHOULD and MUST are the strength of the requirement; ATTACK is a known shape of attack. A NOTE is unusual,
    but no fault of a program. The page Findings of the documentation explains each id.
    """
    security = MessageSecurity(key, cert, reading)
    try:
        storage_options = storage_options_of(storage_option)
        captures = [] if hex_text else [name for name in files if _is_capture(name, storage_options)]
        if captures:
            status = _captures(
                files, port or [], record_size_max, storage_options, security, as_json=as_json, check=check
            )
        else:
            if any(security):
                raise BadParameter("--key, --cert and --reading go with captures")
            status = 0
            for name in files:
                data = read_input(name, storage_options)
                status = max(
                    status,
                    run_packet(
                        from_hex(data) if hex_text else data,
                        sys.stdout,
                        sys.stderr,
                        kind=protocol,
                        as_json=as_json,
                        check=check,
                    ),
                )
    except LocatedError as exc:
        say(exc)
        raise Exit(EX_DATAERR) from None
    except (NoInput, OSError, UnsupportedStore) as exc:
        raise no_input(exc) from None
    raise Exit(status)


def _captures(
    files: list[str],
    ports: list[int],
    record_size_max: int,
    storage_options: StorageOptions,
    security: MessageSecurity,
    *,
    as_json: bool,
    check: bool,
) -> int:
    sources = [standard_input() if name == "-" else name for name in files]
    with opened(
        sources, ports, record_size_max=record_size_max, storage_options=storage_options, security=security
    ) as dissection:
        dissection.only_findings()
        counts = run_capture(dissection, sys.stdout, as_json=as_json)
        status = report(dissection, sys.stderr)
    if check and any(counts[severity] for severity in BREACHES):
        return EX_DATAERR
    return status


def _is_capture(name: str, storage_options: StorageOptions) -> bool:
    """Whether a file starts like a capture; folders and patterns are assumed to name captures."""
    if name == "-":
        return is_capture(standard_input().peek(4))
    files = expand([name], storage_options)
    if name not in files and Path(local_path(name)) not in files:
        return True
    with open_file(name, storage_options) as stream:
        return is_capture(stream.read(4) or b"")
