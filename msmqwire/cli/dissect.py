"""``msmqwire dissect``: every MSMQ packet of a capture, and those of NetWare's queue services."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple, TextIO

import typer

from msmqwire.capture import expand
from msmqwire.capture.record import RECORD_SIZE_MAX
from msmqwire.cli import filters, tables
from msmqwire.cli.common import (
    EX_DATAERR,
    EX_NOINPUT,
    EX_USAGE,
    NoInput,
    dumps,
    format_endpoint,
    safe,
    say,
    standard_input,
)
from msmqwire.cli.readings import CaptureReading, capture_readings_of
from msmqwire.cli.show import STYLES, hexdump, raw_dump, summary
from msmqwire.dissection import Dissection, Item, dissect
from msmqwire.errors import InvalidValue
from msmqwire.schema import Record

RecordSizeMax = Annotated[
    int,
    typer.Option(
        "--record-size-max",
        min=1,
        metavar="BYTES",
        help="Larger frames of a capture are damage, and skipped.",
    ),
]
Key = Annotated[
    list[str] | None,
    typer.Option(
        "--key",
        metavar="FILE",
        help="A private key of a receiving queue manager, PEM or DER: bodies are decrypted.",
    ),
]
Cert = Annotated[
    list[str] | None,
    typer.Option(
        "--cert",
        metavar="FILE",
        help="Certificates of senders, PEM or DER: whose signatures are valid.",
    ),
]


class MessageSecurity(NamedTuple):
    """The options about message security and readings, as given.

    Attributes:
        keys, certificates: files.
        readings: names with their values.
    """

    keys: list[str] | None = None
    certificates: list[str] | None = None
    readings: list[str] | None = None

    def arguments(self) -> dict[str, Any]:
        """Return them as arguments of `msmqwire.dissect`. Raises typer.BadParameter."""
        readings, ncp_readings = capture_readings_of(self.readings)
        keys, certificates = self.keys or (), self.certificates or ()
        return {
            "keys": keys,
            "certificates": certificates,
            "readings": readings,
            "ncp_readings": ncp_readings,
        }


_KIND_WIDTH = len("R_StartReceive response")


def run(dissection: Dissection, item_filters: list[filters.Filter], printer: Printer, err: TextIO) -> int:
    """Print the items that pass all filters; return the exit status."""
    printer.begin()
    for item in dissection:
        if all(test(item) for test in item_filters):
            printer.item(item)
    return report(dissection, err)


def report(dissection: Dissection, err: TextIO) -> int:
    """Report the files that could not be read to their end; return the exit status."""
    for error in dissection.errors:
        say(f"{error.file}: {error.why}", err, offset=error.offset)
    return EX_DATAERR if dissection.errors else 0


class Printer:
    """Output of items: JSON lines, a table, or fields beside their bytes."""

    def __init__(self, out: TextIO, *, as_json: bool = False, dump: bool = False) -> None:
        self.out, self.as_json, self.dump = out, as_json, dump
        self.console: Any = None
        self._kind_width = _KIND_WIDTH
        if out.isatty() and not as_json:
            from rich.console import Console

            self.console = Console(file=out, highlight=False, soft_wrap=True, markup=False, emoji=False)

    def line(self, text: str, style: str = "") -> None:
        if self.console is None:
            print(text, file=self.out)
        else:
            self.console.print(text, style=style or None)

    def begin(self) -> None:
        if not self.as_json and not self.dump:
            cells = ("time", "frames", "st", "from", "to", "packet", "size", "find", "about")
            self.line(_row(self._kind_width, *cells), "bold underline")

    def item(self, item: Item) -> None:
        if self.as_json:
            print(dumps(item.to_json()), file=self.out)
            return
        style = STYLES.get(item.kind, "")
        # There are calls with names of 38 characters: later rows are aligned with the widest so far.
        self._kind_width = max(self._kind_width, len(item.kind))
        self.line(_item_row(self._kind_width, item), style)
        if self.dump:
            lines = hexdump(item.packet, item.raw) if isinstance(item.packet, Record) else raw_dump(item.raw)
            for text in lines:
                self.line(f"  {text}")
            if item.body is not None:
                self.line("  the body decrypted")
                for text in raw_dump(item.body):
                    self.line(f"  {text}")
            for finding in item.findings:
                self.line(f"  {safe(finding_text(finding))}", "red")
            self.line("")


def finding_text(finding: Any) -> str:
    """Return a finding as one line."""
    return f"{finding.severity} {finding.id} {finding.path} byte {finding.offset}: {finding.message}"


def _row(kind_width: int, *cells: str) -> str:
    time, frames, stream, source, target, kind, size, findings, about = cells
    origin = f"{time:<30} {frames:>9} {stream:>3} {source:<21} {target:<21}"
    return f"{origin} {kind:<{kind_width}} {size:>7} {findings:>4}  {about}"


def _item_row(kind_width: int, item: Item) -> str:
    first, last = (item.frames[0], item.frames[-1]) if item.frames else ("", "")
    return _row(
        kind_width,
        item.time,
        str(first) if first == last else f"{first}-{last}",
        "" if item.stream is None else str(item.stream),
        format_endpoint(item.src, item.src_port),
        format_endpoint(item.dst, item.dst_port),
        item.kind,
        str(item.size),
        str(len(item.findings) or ""),
        summary(item),
    )


def no_input(error: NoInput | OSError) -> typer.Exit:
    """Report input that can't be opened; return the exit. An output error is raised again."""
    if isinstance(error, OSError) and error.filename is None:
        raise error
    say(f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error))
    return typer.Exit(EX_NOINPUT)


@contextmanager
def opened(
    paths: list[str],
    ports: list[int],
    *,
    lint: bool = True,
    record_size_max: int = RECORD_SIZE_MAX,
    security: MessageSecurity = MessageSecurity(),
) -> Iterator[Dissection]:
    """Dissect files, with a progress bar if output is redirected but standard error is a terminal."""
    for path in paths:
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    sources: list[Any] = [standard_input() if path == "-" else path for path in paths]
    sizes = [os.path.getsize(path) for path in expand(path for path in paths if path != "-")]
    shows_progress = sys.stderr.isatty() and not sys.stdout.isatty() and sum(sizes) > 1 << 22
    if not shows_progress:
        yield dissect(
            sources, ports=ports, lint=lint, record_size_max=record_size_max, **security.arguments()
        )
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=sum(sizes))
        yield dissect(
            sources,
            ports=ports,
            lint=lint,
            progress=lambda count: progress.advance(task, count),
            record_size_max=record_size_max,
            **security.arguments(),
        )


def command(
    captures: Annotated[
        list[str], typer.Argument(help="pcap or pcapng files, also gzip or zstd; patterns; - .")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    table: Annotated[bool, typer.Option("--table", help="A table (the default).")] = False,
    dump: Annotated[bool, typer.Option("--hexdump", help="Every field beside its bytes.")] = False,
    port: Annotated[
        list[int] | None, typer.Option("--port", min=1, max=65535, help="One more port of MSMQ, or of NCP.")
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="Not before this time (ISO 8601 or seconds).")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="Before this time.")] = None,
    host: Annotated[
        list[str] | None, typer.Option("--endpoint", help="To or from ADDRESS, ADDRESS:PORT or :PORT.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only packets of this name, like UserMessage or SrmpMessage."),
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", help="Only messages with such a label (* and ?).")
    ] = None,
    queue: Annotated[str | None, typer.Option("--queue", help="Only messages to such a queue.")] = None,
    findings: Annotated[
        list[str] | None,
        typer.Option(
            "--findings",
            help="Only packets with findings: any, MUST, SHOULD, ATTACK, an id or its beginning.",
        ),
    ] = None,
    no_lint: Annotated[bool, typer.Option("--no-lint", help="Do not judge the packets: faster.")] = False,
    parquet: Annotated[
        str | None, typer.Option("--parquet", help="Write columns to packets.parquet in this folder.")
    ] = None,
    arrow: Annotated[str | None, typer.Option("--arrow", help="Write columns to this Arrow file.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Columns as CSV; bytes as hex.")] = False,
    columns: Annotated[str | None, typer.Option("--columns", help="Names of columns, by commas.")] = None,
    body_limit: Annotated[
        int | None, typer.Option("--body-limit", min=0, help="Bytes of a body in columns, at the most.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Threads that make columns. Default: 1.")
    ] = None,
    record_size_max: RecordSizeMax = RECORD_SIZE_MAX,
    key: Key = None,
    cert: Cert = None,
    reading: CaptureReading = None,
) -> None:
    """Dissect captures: every MSMQ packet in them, named, decoded and judged; also over HTTP, PGM and RPC.

    NetWare's queue services, NCP over TCP and UDP, too: requests and their replies.

    Ends with status 65 if a file is cut off or damaged; what precedes the damage is printed.
    """
    if sum((as_json, table, dump, as_csv, parquet is not None, arrow is not None)) > 1:
        raise typer.BadParameter("only one of --json, --table, --hexdump, --parquet, --arrow and --csv")
    sink = tables.to_csv(sys.stdout.buffer) if as_csv else None
    if parquet is not None or arrow is not None:
        sink = tables.to_arrow(arrow) if arrow is not None else tables.to_parquet(parquet or "")
    if sink is None and any(given is not None for given in (columns, body_limit, workers)):
        raise typer.BadParameter("--columns, --body-limit and --workers go with --parquet, --arrow or --csv")
    try:
        conditions = filters.by_time(start, end)
    except ValueError as exc:
        say(f"not a time: {exc}")
        raise typer.Exit(EX_USAGE) from None
    item_filters = [filters.by_endpoint(text) for text in host or ()]
    for name in kind or ():
        if name.lower() not in filters.KINDS:
            raise typer.BadParameter(f"{name} is none of {', '.join(filters.KINDS.values())}")
    if kind:
        conditions.append(filters.by_kind(kind))
    if label is not None:
        item_filters.append(filters.by_label(label))
    if queue is not None:
        item_filters.append(filters.by_queue(queue))
    if findings:
        item_filters.append(filters.by_findings(findings))
    printer = Printer(sys.stdout, as_json=as_json, dump=dump)
    try:
        with opened(
            captures,
            port or [],
            lint=not no_lint and (sink is None or bool(findings)),
            record_size_max=record_size_max,
            security=MessageSecurity(key, cert, reading),
        ) as dissection:
            if sink is None:
                status = run(dissection, [filters.meets(conditions), *item_filters], printer, sys.stderr)
            else:
                names = columns.split(",") if columns is not None else None
                rows = tables.write(
                    dissection, conditions, item_filters, sink,
                    columns=names, body_limit=body_limit, workers=workers or 1,
                )  # fmt: skip
                print(f"{rows} rows", file=sys.stderr)
                status = report(dissection, sys.stderr)
    except InvalidValue as exc:
        say(exc)
        raise typer.Exit(EX_DATAERR) from None
    except ValueError as exc:
        raise typer.BadParameter(str(exc)) from None
    except (NoInput, OSError) as exc:
        raise no_input(exc) from None
    raise typer.Exit(status)
