"""``msmqwire dissect``: every MSMQ packet of a capture, and those of NetWare's queue services."""

from __future__ import annotations

import sys
from typing import Annotated, Any, TextIO

import typer

from msmqwire.capture.record import RECORD_SIZE_MAX
from msmqwire.cli import filters, tables
from msmqwire.cli.capture_input import (
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
from msmqwire.cli.common import EX_DATAERR, EX_USAGE, NoInput, dumps, say
from msmqwire.cli.live import CaptureFilter, Interface, live_input
from msmqwire.cli.readings import CaptureReading
from msmqwire.cli.show import STYLES, hexdump, raw_dump
from msmqwire.dissection import Dissection, Item
from msmqwire.dissection.summaries import summary
from msmqwire.errors import InvalidValue, UnsupportedStore
from msmqwire.names.printable import format_endpoint, safe
from msmqwire.schema import Record

_KIND_WIDTH = len("R_StartReceive response")


def run(dissection: Dissection, item_filters: list[filters.Filter], printer: Printer, err: TextIO) -> int:
    """Print the items that pass all filters; return the exit status."""
    print_items(dissection, item_filters, printer)
    return report(dissection, err)


def print_items(dissection: Dissection, item_filters: list[filters.Filter], printer: Printer) -> None:
    """Print the items that pass all filters."""
    printer.begin()
    for item in dissection:
        if all(test(item) for test in item_filters):
            printer.item(item)


class Printer:
    """Output of items: JSON lines, a table, or fields beside their bytes.

    Attributes:
        flushes: whether each item is to be seen at once.
        printed: how many items were printed.
        with_findings: how many of them have findings.
    """

    def __init__(
        self, out: TextIO, *, as_json: bool = False, dump: bool = False, flushes: bool = False
    ) -> None:
        self.out, self.as_json, self.dump, self.flushes = out, as_json, dump, flushes
        self.printed = self.with_findings = 0
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
        self.printed += 1
        self.with_findings += bool(item.findings)
        self._print(item)
        if self.flushes:
            self.out.flush()

    def _print(self, item: Item) -> None:
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


def command(
    captures: Annotated[
        list[str] | None,
        typer.Argument(
            help="pcap or pcapng files, also gzip or zstd; folders; patterns; URLs of stores; - ."
        ),
    ] = None,
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
        str | None, typer.Option("--parquet", help="Write columns to packets.parquet in this folder or URL.")
    ] = None,
    arrow: Annotated[
        str | None, typer.Option("--arrow", help="Write columns to this Arrow file or URL.")
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Columns as CSV; bytes as hex.")] = False,
    columns: Annotated[str | None, typer.Option("--columns", help="Names of columns, by commas.")] = None,
    body_limit: Annotated[
        int | None, typer.Option("--body-limit", min=0, help="Bytes of a body in columns, at the most.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Threads that make columns. Default: 1.")
    ] = None,
    record_size_max: RecordSizeMax = RECORD_SIZE_MAX,
    storage_option: StorageOption = None,
    interface: Interface = None,
    capture_filter: CaptureFilter = None,
    key: Key = None,
    cert: Cert = None,
    reading: CaptureReading = None,
) -> None:
    """Dissect captures: every MSMQ packet in them, named, decoded and judged; also over HTTP, PGM and RPC.

    NetWare's queue services, NCP over TCP and UDP, too: requests and their replies.

    With --interface packets are shown as they are captured, until Ctrl-C or SIGTERM.

    Ends with status 65 if a file is cut off or damaged; what precedes the damage is printed.
    """
    if sum((as_json, table, dump, as_csv, parquet is not None, arrow is not None)) > 1:
        raise typer.BadParameter("only one of --json, --table, --hexdump, --parquet, --arrow and --csv")
    to_columns = as_csv or parquet is not None or arrow is not None
    if not to_columns and any(given is not None for given in (columns, body_limit, workers)):
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
    out = sys.stdout  # a progress bar puts something else there
    try:
        storage_options = storage_options_of(storage_option)
        sink = tables.to_csv(sys.stdout.buffer) if as_csv else None
        if parquet is not None or arrow is not None:
            sink = (
                tables.to_arrow(arrow, storage_options)
                if arrow is not None
                else tables.to_parquet(parquet or "", storage_options)
            )
        with (
            live_input(captures or [], interface, capture_filter) as live,
            opened(
                live.sources,
                port or [],
                lint=not no_lint and (sink is None or bool(findings)),
                record_size_max=record_size_max,
                storage_options=storage_options,
                security=MessageSecurity(key, cert, reading),
            ) as dissection,
        ):
            if sink is None:
                printer = Printer(out, as_json=as_json, dump=dump, flushes=live.is_live)
                print_items(dissection, [filters.meets(conditions), *item_filters], printer)
                shown = f"{printer.printed} packets, {printer.with_findings} with findings"
            else:
                names = columns.split(",") if columns is not None else None
                rows = tables.write(
                    dissection, conditions, item_filters, sink,
                    columns=names, body_limit=body_limit, workers=workers or 1,
                )  # fmt: skip
                shown = f"{rows} rows"
                if not live.has_summary:
                    print(shown, file=sys.stderr)
            status = live.end(dissection, sys.stderr, shown) or report(dissection, sys.stderr)
    except InvalidValue as exc:
        say(exc)
        raise typer.Exit(EX_DATAERR) from None
    except UnsupportedStore as exc:
        raise no_input(exc) from None
    except ValueError as exc:
        raise typer.BadParameter(str(exc)) from None
    except (NoInput, OSError) as exc:
        raise no_input(exc) from None
    raise typer.Exit(status)
