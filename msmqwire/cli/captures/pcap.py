"""``msmqwire pcap``: the packets that are wanted, as a capture again."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any, BinaryIO, cast

from click import BadParameter
from click.exceptions import Exit

from msmqwire.analysis.dissection import Dissection
from msmqwire.analysis.dissection.excerpt import (
    Found,
    FrameSet,
    TooManyConnections,
    find,
    frames_of_connections,
)
from msmqwire.capture import Record, open_records
from msmqwire.capture.record import RECORD_SIZE_MAX
from msmqwire.capture.stores import StorageOptions
from msmqwire.capture.writing import PcapngWriter, PcapWriter
from msmqwire.cli.captures.capture_input import (
    Captures,
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
    Endpoint,
    Findings,
    From,
    Kind,
    Label,
    Port,
    Queue,
    To,
    Wanted,
    Where,
    say_no_match,
    wanted,
)
from msmqwire.cli.captures.readings import CaptureReading
from msmqwire.cli.common import EX_DATAERR, NoInput, say, standard_input
from msmqwire.cli.options import Option
from msmqwire.cli.output import refuse_to_overwrite
from msmqwire.durable import new_content
from msmqwire.errors import CaptureError, InvalidValue, UnsupportedStore
from msmqwire.names.printable import counted


def command(
    captures: Captures,
    out: Annotated[
        str,
        Option(
            "-o",
            "--output",
            metavar="FILE",
            help="File to write: pcap if its name ends in .pcap, else pcapng; - is standard output.",
        ),
    ],
    connections: Annotated[
        bool,
        Option(
            "--connections",
            help="All frames between the endpoints of these packets, not only frames that carry them.",
        ),
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
    record_size_max: RecordSizeMax = RECORD_SIZE_MAX,
    storage_option: StorageOption = None,
    key: Key = None,
    cert: Cert = None,
    reading: CaptureReading = None,
) -> None:
    """Write the frames that carry MSMQ packets to a capture: all of them, or those that the options choose.

    The options that choose packets are those of dissect. The captures are read twice, with --connections
    three times; standard input is kept in a temporary file meanwhile.

    Ends with status 65 if a file is cut off or damaged; the packets before the damage are written.
    """
    packets = wanted(start, end, host, kind, label, queue, findings, where)
    if out == "-" and sys.stdout.isatty():
        raise BadParameter("a capture is not written to a terminal", param_hint="--output")
    try:
        storage_options = storage_options_of(storage_option)
        with ExitStack() as stack:
            dissection, asked, found = _found(
                [stack.enter_context(_kept_input()) if path == "-" else path for path in captures],
                packets,
                MessageSecurity(key, cert, reading),
                {
                    "lint": packets.needs_lint,
                    "ports": port or [],
                    "record_size_max": record_size_max,
                    "storage_options": storage_options,
                },
            )
            if out != "-":
                refuse_to_overwrite(out, captures, storage_options)
            if connections:
                frames_of_connections(_records(dissection, storage_options), found)
            _write(out, _records(dissection, storage_options), found.frames)
    except InvalidValue as exc:
        say(exc)
        raise Exit(EX_DATAERR) from None
    except TooManyConnections as exc:
        say(f"--connections: {exc}")
        raise Exit(EX_DATAERR) from None
    except (UnsupportedStore, NoInput) as exc:
        raise no_input(exc) from None
    print(f"{counted(found.packets, 'packet')}, {counted(found.frames.count, 'frame')}", file=sys.stderr)
    if packets.are_some and not found.packets:
        say_no_match(sys.stderr, "packet", asked, "packet")
    raise Exit(report(dissection, sys.stderr))


def _found(
    paths: list[str], packets: Wanted, security: MessageSecurity, arguments: dict[str, Any]
) -> tuple[Dissection, int, Found]:
    """Find the wanted packets; return the dissection at its end, and the number of its packets, too.

    Raises NoInput: unreadable input.
    """
    try:
        with opened(paths, security=security, **arguments) as dissection:
            chosen = packets.choose(dissection)
            found = find(dissection, chosen)
            return dissection, chosen.asked + dissection.left_out, found
    except OSError as exc:
        raise NoInput(str(exc) if exc.filename is None else f"{exc.filename}: {exc.strerror}") from None


@contextmanager
def _kept_input() -> Iterator[str]:
    """Keep standard input in a temporary file, as it can be read only once; yield its path."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "<stdin>")
        with open(path, "wb") as file:
            shutil.copyfileobj(standard_input(), file)
        yield path


def _records(dissection: Dissection, storage_options: StorageOptions) -> Iterator[Record]:
    """Yield the records of all captures, numbered on from file to file; end each file where it is damaged."""
    before = 0
    for source in dissection.sources:
        last = before

        def skip(_: CaptureError) -> None:
            nonlocal last
            last += 1

        records = open_records(
            source,
            record_size_max=dissection.record_size_max,
            on_damage=skip,
            storage_options=storage_options,
        )
        try:
            for record in records:
                last = before + record.number
                yield record._replace(number=last) if before else record
        except CaptureError:
            pass  # the dissection has reported it
        before = last


def _write(out: str, records: Iterator[Record], frames: FrameSet) -> None:
    """Write some frames; a file appears under its name once it is whole."""
    if out == "-":
        _write_to(cast(BinaryIO, sys.stdout.buffer), records, frames, is_pcap=False)
        return
    with new_content(out) as file:
        _write_to(file, records, frames, is_pcap=out.endswith((".pcap", ".cap")))


def _write_to(file: BinaryIO, records: Iterator[Record], frames: FrameSet, *, is_pcap: bool) -> None:
    writer = PcapWriter(file) if is_pcap else PcapngWriter(file)
    write = writer.write
    for record in records:
        if record.number in frames:
            write(record)
    if isinstance(writer, PcapWriter):
        writer.close()
