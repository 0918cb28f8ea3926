"""The exporter: its targets, its file and its pages, from the start to the stop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.exporter.asking import Managed
from msmqwire.exporter.machine import Connect
from msmqwire.exporter.scraping import AT_ONCE, QUEUES_MAX, Scraping
from msmqwire.exporter.targets import Target, read_targets
from msmqwire.names.addresses import is_loopback
from msmqwire.names.printable import format_endpoint
from msmqwire.qm.client.management import ManagedHost
from msmqwire.qm.client.remote_options import RemoteOptions, credentials_of
from msmqwire.service.endpoints import LOOPBACK, Endpoint
from msmqwire.service.logs import log
from msmqwire.service.page_connections import PageLimits
from msmqwire.service.page_server import PageServer

PORT: Final = 9801
NAME_OPTION: Final = "--metrics-name"
_LIMITS: Final = PageLimits()


@dataclass(frozen=True, slots=True)
class ExporterOptions:
    """Options of an exporter.

    Attributes:
        targets: path of the file of targets.
        listen: address and port; the system chooses a port for 0.
        names: host names, besides ``localhost`` and addresses, by which scrapers may reach it.
        at_once: conversations at a time with targets.
        queues_max: queues of a target that have metrics.
    """

    targets: Path
    listen: Endpoint = (LOOPBACK, PORT)
    names: tuple[str, ...] = ()
    at_once: int = AT_ONCE
    queues_max: int = QUEUES_MAX


class Exporter:
    """Answers Prometheus.

    Needs aiohttp, of the extra ``[qm]``; raises ModuleNotFoundError without it.

    Attributes:
        listen: its address, with the port that the system has chosen.
        scraping: its targets.
    """

    def __init__(self, options: ExporterOptions, connect: Connect | None = None) -> None:
        """Make an exporter that does not listen yet.

        Args:
            options: its options.
            connect: makes the access to a target; by default by [MS-MQMR].
        """
        from msmqwire.exporter.pages import exporter_application
        from msmqwire.service.metrics_page import refusal

        self._options, self.listen = options, options.listen
        self.scraping = Scraping(connect or by_mqmr, at_once=options.at_once, queues_max=options.queues_max)
        application = exporter_application(
            self.scraping,
            options.names,
            NAME_OPTION,
            PageServer.extend,
        )
        self._pages = PageServer("exporter", application, refusal, _LIMITS, cancels=True)

    async def start(self, targets: Iterable[Target]) -> None:
        """Listen, with targets that `read_targets` has returned. Raises OSError."""
        await self.scraping.use(targets)
        address, port = self.listen
        self.listen = address, await self._pages.bind(address, port)
        self._pages.accept()
        if not is_loopback(address):
            log.warning(
                "whoever reaches this address sees the names of all queues: there is no login",
                extra={"listen": format_endpoint(*self.listen)},
            )

    async def reload(self) -> None:
        """Read the file of targets again; one that is wrong changes nothing."""
        try:
            targets = read_targets(self._options.targets)
        except (OSError, InvalidValue) as exc:
            self.scraping.keep()
            log.error("the file of targets is wrong; the old targets stay", extra={"error": str(exc)})
            return
        await self.scraping.use(targets)
        log.info("the file of targets was read again", extra={"targets": len(self.scraping.machines)})

    async def stop(self) -> None:
        """Stop listening, and end all connections."""
        await self._pages.stop()
        await self.scraping.close()


def by_mqmr(target: Target) -> Managed:
    """Return the access to a target by [MS-MQMR]; its first method connects."""
    credentials = credentials_of(target.user, target.password, target.auth)
    options = RemoteOptions(target.host, target.rpc_port, credentials=credentials)
    return ManagedHost(options, target.timeout)
