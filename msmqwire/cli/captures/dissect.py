"""``msmqwire dissect``: every MSMQ packet of a capture, and those of NetWare's queue services."""

from __future__ import annotations

import sys
from typing import Annotated, Any, TextIO

from click import BadParameter
from click.exceptions import Exit

from msmqwire.analysis.dissection import Dissection, Item
from msmqwire.capture.record import RECORD_SIZE_MAX
from msmqwire.cli import tables
from msmqwire.cli.captures import filters
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
from msmqwire.cli.captures.filter_options import (
    Columns,
    Endpoint,
    Findings,
    From,
    Kind,
    Label,
    Port,
    Queue,
    To,
    Where,
    column_names,
    say_no_match,
    shows_findings,
    wanted,
)
from msmqwire.cli.captures.item_table import FittingLines, WholeLines, to_table
from msmqwire.cli.captures.live import CaptureFilter, Follow, Interface, LiveInput, live_input
from msmqwire.cli.captures.readings import CaptureReading
from msmqwire.cli.common import EX_DATAERR, NoInput, say
from msmqwire.cli.options import Argument, Option
from msmqwire.cli.output import Output, binary, output
from msmqwire.cli.show import STYLES, hexdump, raw_dump
from msmqwire.errors import InvalidValue, UnsupportedStore
from msmqwire.names.printable import counted, safe
from msmqwire.schema import Record


def run(dissection: Dissection, is_wanted: filters.Filter, printer: Printer, err: TextIO) -> int:
    """Print the wanted items; return the exit status."""
    print_items(dissection, is_wanted, printer)
    return report(dissection, err)


def print_items(
    dissection: Dissection, is_wanted: filters.Filter, printer: Printer, live: LiveInput | None = None
) -> None:
    """Print the wanted items, those of live input as soon as they are known."""

    def show(item: Item) -> None:
        if is_wanted(item):
            printer.item(item)

    printer.begin()
    if live is not None:
        live.show_when_quiet(dissection, show)
    for item in dissection:
        show(item)


def print_counts(
    dissection: Dissection, is_wanted: filters.Filter | None, out: TextIO, *, as_json: bool
) -> int:
    """Print the counts of the wanted items, None for all, and return their number."""
    from msmqwire.cli.captures.stats import Statistics, print_stats

    counts = Statistics()
    dissection.follow_attempts()
    if is_wanted is None:
        counts.take(dissection)
    else:
        for item in dissection:
            if is_wanted(item):
                counts.add(item)
    print_stats(counts.to_json(dissection), out, as_json=as_json)
    return counts.packets


class Printer:
    """Output of items: JSON lines, a table, or fields beside their bytes.

    Attributes:
        flushes: whether each item is to be seen at once.
        printed: the number of items printed.
        with_findings: the number of these with findings.
    """

    def __init__(
        self,
        out: TextIO,
        *,
        as_json: bool = False,
        dump: bool = False,
        flushes: bool = False,
        wide: bool = False,
    ) -> None:
        """Print to `out`; lines fit a terminal unless they are to be `wide` or have bytes below them."""
        self.out, self.as_json, self.dump, self.flushes = out, as_json, dump, flushes
        self.printed = self.with_findings = 0
        self.console: Any = None
        if out.isatty() and not as_json:
            from rich.console import Console

            self.console = Console(file=out, highlight=False, soft_wrap=True, markup=False, emoji=False)
        fits = self.console is not None and not wide and not dump
        self.width: int | None = self.console.width if fits else None
        self._lines = WholeLines() if self.width is None else FittingLines(self.width)

    def line(self, text: str, style: str = "") -> None:
        if self.console is None:
            print(text, file=self.out)
        elif self.width is None:
            self.console.print(text, style=style or None)
        else:
            self.console.print(text, style=style or None, soft_wrap=False, no_wrap=True, overflow="ellipsis")

    def begin(self) -> None:
        if not self.as_json and not self.dump:
            self.line(self._lines.title(), "bold underline")

    def item(self, item: Item) -> None:
        self.printed += 1
        self.with_findings += bool(item.findings)
        self._print(item)
        if self.flushes:
            self.out.flush()

    def _print(self, item: Item) -> None:
        if self.as_json:
            print(item.json_text(), file=self.out)
            return
        style = STYLES.get(item.kind, "")
        *dates, row = self._lines.rows(item)
        for date in dates:
            self.line(date, "dim")
        self.line(row, style)
        if self.dump:
            lines = raw_dump(item.raw)
            if isinstance(item.packet, Record):
                lines = hexdump(item.packet, item.raw, item.decoded())
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


def command(
    captures: Annotated[
        list[str] | None,
        Argument(help="pcap or pcapng files, also gzip or zstd; folders; patterns; URLs of stores; - ."),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="One JSON object a line.")] = False,
    table: Annotated[
        bool, Option("--table", help="A table (the default); its columns are those of --columns.")
    ] = False,
    wide: Annotated[
        bool, Option("--wide", help="Lines of the table in full, also on a terminal that is narrower.")
    ] = False,
    dump: Annotated[bool, Option("--hexdump", help="Every field beside its bytes.")] = False,
    stats: Annotated[
        bool,
        Option("--stats", help="Only counts: kinds, queues, sessions, findings; with --json an object."),
    ] = False,
    port: Port = None,
    start: From = None,
    end: To = None,
    host: Endpoint = None,
    kind: Kind = None,
    label: Label = None,
    queue: Queue = None,
    findings: Findings = None,
    where: Where = None,
    no_lint: Annotated[bool, Option("--no-lint", help="Do not judge the packets: faster.")] = False,
    parquet: Annotated[
        str | None,
        Option(
            "--parquet",
            metavar="PATH",
            help="Write columns to this Parquet file or URL, or to packets.parquet in a folder.",
        ),
    ] = None,
    arrow: Annotated[
        str | None, Option("--arrow", metavar="PATH", help="Write columns to this Arrow file or URL.")
    ] = None,
    as_csv: Annotated[
        bool,
        Option("--csv", help="Columns as CSV; bytes as hex, an apostrophe before texts like formulas."),
    ] = False,
    csv_raw: Annotated[bool, Option("--csv-raw", help="Likewise, texts as they are: for programs.")] = False,
    columns: Columns = None,
    body_limit: Annotated[
        int | None,
        Option("--body-limit", min=0, metavar="BYTES", help="Largest number of bytes of a body in columns."),
    ] = None,
    workers: Annotated[
        int | None, Option("--workers", min=1, help="Threads that make columns. Default: 1.")
    ] = None,
    out: Output = None,
    record_size_max: RecordSizeMax = RECORD_SIZE_MAX,
    storage_option: StorageOption = None,
    follow: Follow = False,
    interface: Interface = None,
    capture_filter: CaptureFilter = None,
    key: Key = None,
    cert: Cert = None,
    reading: CaptureReading = None,
) -> None:
    """Dissect captures: name, decode and judge every MSMQ packet in them{over}.

    {also}

    With --interface packets are shown as they are captured, with --follow as a capture grows, until Ctrl-C
    or SIGTERM.

    Ends with status 65 if a file is cut off or damaged; the packets before the damage are printed.
    """
    if sum((as_json, table, dump, as_csv, csv_raw, parquet is not None, arrow is not None)) > 1:
        raise BadParameter("only one of --json, --table, --hexdump, --parquet, --arrow, --csv and --csv-raw")
    to_csv = as_csv or csv_raw
    if stats and (table or dump or to_csv or parquet is not None or arrow is not None):
        raise BadParameter("--stats goes with --json only", param_hint="--stats")
    table_of_columns = table and columns is not None
    to_columns = to_csv or parquet is not None or arrow is not None or table_of_columns
    if not to_columns and any(given is not None for given in (columns, body_limit, workers)):
        raise BadParameter(
            "--columns, --body-limit and --workers go with --parquet, --arrow, --csv, --csv-raw or --table"
        )
    if wide and (to_columns or as_json or stats) and not table_of_columns:
        raise BadParameter("it is for the table", param_hint="--wide")
    if no_lint and findings:
        raise BadParameter("it finds nothing with --no-lint", param_hint="--findings")
    packets = wanted(start, end, host, kind, label, queue, findings, where)
    names = column_names(columns)
    judges = packets.needs_lint or shows_findings(names)
    if no_lint and judges:
        hint = "--where" if packets.needs_lint else "--columns"
        raise BadParameter("there are no finding_ids with --no-lint", param_hint=hint)
    if out is not None and (parquet is not None or arrow is not None):
        raise BadParameter("--parquet and --arrow name the output already", param_hint="--output")
    try:
        storage_options = storage_options_of(storage_option)
        sink = None
        if parquet is not None or arrow is not None:
            sink = (
                tables.to_arrow(arrow, storage_options)
                if arrow is not None
                else tables.to_parquet(parquet or "", storage_options)
            )
        with (
            output(out, captures or [], storage_options) as file,
            live_input(captures or [], interface, capture_filter, follow=follow) as live,
            opened(
                live.sources,
                port or [],
                lint=not no_lint and (not to_columns or judges),
                record_size_max=record_size_max,
                storage_options=storage_options,
                security=MessageSecurity(key, cert, reading),
                shows_packets=not (to_columns or stats) and file.isatty(),
            ) as dissection,
        ):
            if to_csv:
                sink = tables.to_csv(binary(file), raw=csv_raw)
            elif table_of_columns:
                printer = Printer(file, wide=wide)
                sink = to_table(printer.line, printer.width)
            chosen = packets.test() if live.is_live or sink is not None else packets.choose(dissection)
            if stats:
                shown = counted(
                    print_counts(dissection, chosen if packets.are_some else None, file, as_json=as_json),
                    "packet",
                )
            elif sink is None:
                printer = Printer(file, as_json=as_json, dump=dump, flushes=live.is_live, wide=wide)
                print_items(dissection, chosen, printer, live)
                shown = f"{counted(printer.printed, 'packet')}, {printer.with_findings:,} with findings"
            else:
                rows = tables.write(
                    dissection, packets, sink, columns=names, body_limit=body_limit, workers=workers or 1
                )
                shown, left, asked, unit = counted(rows, "row"), rows, dissection.records, "frame"
                if not live.has_summary:
                    print(shown, file=sys.stderr)
            if sink is None:
                left, asked, unit = chosen.count, chosen.asked + dissection.left_out, "packet"
            if packets.are_some and not left:
                say_no_match(sys.stderr, "packet", asked, unit)
            of_live, of_files = live.end(dissection, sys.stderr, shown), report(dissection, sys.stderr)
            status = of_live or of_files
    except InvalidValue as exc:
        say(exc)
        raise Exit(EX_DATAERR) from None
    except UnsupportedStore as exc:
        raise no_input(exc) from None
    except (NoInput, OSError) as exc:
        raise no_input(exc) from None
    raise Exit(status)
