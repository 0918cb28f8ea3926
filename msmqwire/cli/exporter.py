"""``msmqwire exporter``: metrics of many queue managers for Prometheus."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from msmqwire.cli.common import NoInput
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.options import Option
from msmqwire.cli.serving import (
    LogLevel,
    check_host_names,
    check_level,
    on_hangup,
    parse_endpoint,
    stop_event,
)
from msmqwire.errors import Unreachable
from msmqwire.exporter.scraping import AT_ONCE, QUEUES_MAX
from msmqwire.exporter.server import NAME_OPTION, PORT, Exporter, ExporterOptions
from msmqwire.exporter.targets import Target, read_targets
from msmqwire.names.printable import counted, format_endpoint, safe
from msmqwire.service import descriptors, logs
from msmqwire.service.endpoints import LOOPBACK


async def export(exporter: Exporter, targets: tuple[Target, ...]) -> None:
    """Answer Prometheus until SIGTERM or SIGINT; SIGHUP has the targets read again. Raises Unreachable."""
    try:
        await exporter.start(targets)
    except (OSError, UnicodeError) as exc:
        await exporter.stop()
        raise Unreachable(f"can't listen: {getattr(exc, 'strerror', None) or exc}") from None
    stop, again = stop_event(), asyncio.Event()
    on_hangup(again.set)

    async def reload() -> None:
        while True:
            await again.wait()
            again.clear()
            await exporter.reload()

    reloading = asyncio.ensure_future(reload())
    try:
        print(f"ready exporter http={format_endpoint(*exporter.listen)} targets={len(targets)}", flush=True)
        await asyncio.wait(
            (reloading, stopped := asyncio.ensure_future(stop.wait())), return_when="FIRST_COMPLETED"
        )
        stopped.cancel()
    finally:
        reloading.cancel()
        await exporter.stop()
    if reloading.done() and not reloading.cancelled():
        await reloading  # a fault of its own


def command(
    targets: Annotated[
        Path,
        Option(
            metavar="FILE",
            help="TOML: a table [[target]] for each queue manager, with its host, and if need be name, "
            "rpc_port, auth, user, password_file, queues, timeout. SIGHUP has it read again.",
        ),
    ],
    listen: Annotated[
        str, Option(metavar="ADDR:PORT", help="Address to answer Prometheus at; there is no login.")
    ] = f"{LOOPBACK}:{PORT}",
    metrics_name: Annotated[
        list[str] | None,
        Option(
            NAME_OPTION,
            metavar="NAME",
            help="A host name by which Prometheus reaches the exporter, besides localhost and addresses; may "
            "be repeated.",
        ),
    ] = None,
    at_once: Annotated[
        int,
        Option(
            min=1,
            max=1000,
            help="Targets that are asked at a time; those that did not answer the last time have as many "
            "places of their own.",
        ),
    ] = AT_ONCE,
    queues_max: Annotated[
        int, Option(min=1, max=100_000, help="Queues of a target that have metrics; others are counted.")
    ] = QUEUES_MAX,
    check: Annotated[
        bool, Option("--check", help="Only check the file of targets and the files of passwords.")
    ] = False,
    log: LogLevel = "info",
) -> None:
    """Export metrics of the queues of many computers, Windows or msmqwire, to Prometheus.

    Each scrape asks the targets by [MS-MQMR], the protocol by which MSMQ is administered: nothing is
    installed there. /metrics has all targets, /probe?target=NAME one.
    """
    check_level(log)
    check_host_names(NAME_OPTION, metrics_name)
    options = ExporterOptions(
        targets,
        parse_endpoint(listen, PORT),
        tuple(metrics_name or ()),
        at_once=at_once,
        queues_max=queues_max,
    )

    def run() -> None:
        exporter = None if check else Exporter(options)  # it names a missing extra
        try:
            found = read_targets(targets)
        except OSError as exc:
            text = str(exc.strerror or exc)
            raise NoInput(text if exc.filename is None else f"{exc.filename}: {text}") from None
        if exporter is None:
            print(f"{safe(str(targets))}: {counted(len(found), 'target')}")
            return
        logs.begin(log)
        descriptors.raise_limit()
        asyncio.run(export(exporter, found))

    run_reporting_errors(run)
