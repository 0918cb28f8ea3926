"""``msmqwire report``: captures as a page for the browser."""

from __future__ import annotations

import sys
from typing import Annotated

from click.exceptions import Exit

from msmqwire import __version__
from msmqwire.analysis.report import Limits, write_report
from msmqwire.analysis.report.limits import DETAILS_DEFAULT, PACKETS_DEFAULT
from msmqwire.capture.record import RECORD_SIZE_MAX
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
from msmqwire.cli.captures.filter_options import Port
from msmqwire.cli.captures.readings import CaptureReading
from msmqwire.cli.common import EX_DATAERR, NoInput, few_collections, say, standard_input
from msmqwire.cli.options import Option
from msmqwire.cli.output import refuse_to_overwrite
from msmqwire.errors import CaptureError, InvalidValue, UnsupportedStore
from msmqwire.names.printable import counted


def command(
    captures: Captures,
    output: Annotated[
        str, Option("--output", "-o", metavar="FILE", help="The page to write.")
    ] = "report.html",
    title: Annotated[
        str, Option("--title", help="Title of the page. Default: the name of the capture.")
    ] = "",
    packets: Annotated[
        int, Option("--packets", min=0, help="Largest number of rows in the table of packets.")
    ] = PACKETS_DEFAULT,
    details: Annotated[
        int,
        Option("--details", min=0, help="Largest number of packets shown with their fields and bytes."),
    ] = DETAILS_DEFAULT,
    port: Port = None,
    no_lint: Annotated[bool, Option("--no-lint", help="Do not judge the packets: faster.")] = False,
    record_size_max: RecordSizeMax = RECORD_SIZE_MAX,
    storage_option: StorageOption = None,
    key: Key = None,
    cert: Cert = None,
    reading: CaptureReading = None,
) -> None:
    """Write a report of captures: one page for the browser that works without a network.

    The page has a summary of the captures, messages and bytes over time, a ladder diagram for each session,
    findings with the bytes that they are about, and a table of all packets with filters.

    Ends with status 65 if a file is cut off or damaged; the report covers the packets before the damage. A
    file that is not a capture gets no report.
    """
    sources = [standard_input() if name == "-" else name for name in captures]
    try:
        storage_options = storage_options_of(storage_option)
        refuse_to_overwrite(output, captures, storage_options)
        with (
            few_collections(),
            opened(
                sources,
                port or [],
                lint=not no_lint,
                record_size_max=record_size_max,
                storage_options=storage_options,
                security=MessageSecurity(key, cert, reading),
            ) as dissection,
        ):
            try:
                written = write_report(
                    dissection,
                    output,
                    title=title,
                    version=__version__,
                    limits=Limits(packets=packets, details=details),
                )
            except CaptureError:
                raise Exit(report(dissection, sys.stderr)) from None
        counts = (written.packets, "packet"), (written.findings, "finding"), (written.size, "byte")
        print(f"{output}: {', '.join(counted(*one) for one in counts)}", file=sys.stderr)
        status = report(dissection, sys.stderr)
    except InvalidValue as exc:
        say(exc)
        raise Exit(EX_DATAERR) from None
    except (NoInput, OSError, UnsupportedStore) as exc:
        if isinstance(exc, OSError) and exc.filename == output:
            raise
        raise no_input(exc) from None
    raise Exit(status)
