"""Metrics of a running queue manager for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msmqwire.qm.model.elements import OutgoingQueue, short_name
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.health import Health
from msmqwire.qm.runtime.joined import JoinedCarrier
from msmqwire.qm.runtime.queues import kind
from msmqwire.qm.runtime.rpc.network import RpcNetwork
from msmqwire.qm.runtime.transport import TcpNetwork
from msmqwire.service.control.server import ControlServer
from msmqwire.service.page_connections import PageTraffic
from msmqwire.service.page_server import PageServer

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

_COUNTS = (
    ("bytes_received", "Bytes received over TCP."),
    ("bytes_sent", "Bytes sent over TCP."),
    ("accepted", "TCP connections accepted."),
    ("refused", "TCP connections refused because there were too many."),
    ("evicted", "TCP connections ended to make room for others."),
    ("connected", "TCP connections opened."),
    ("connect_failed", "TCP connections that could not be opened."),
    ("datagrams_received", "Ping packets received."),
    ("pings_answered", "Ping requests answered."),
    ("partial_closed", "TCP connections ended because incomplete packets took too much memory."),
)

_RPC_COUNTS = (
    ("accepted", "Connections of RPC accepted."),
    ("refused", "Connections of RPC refused because there were too many."),
    ("evicted", "Connections of RPC ended to make room for others."),
    ("ended", "Connections of RPC ended because they took too much memory."),
    ("calls", "Remote calls."),
    ("faults", "Remote calls that were answered with a fault."),
    ("logins_failed", "Wrong passwords and unknown users."),
    ("logins_refused", "Attempts at passwords refused because too many had failed."),
)

_PAGE_COUNTS = (
    ("accepted", "Connections to the console and the metrics accepted."),
    ("refused", "Connections to them refused or ended because of too many, or too many bytes, in a second."),
    ("evicted", "Connections to them ended because a new one needed the place."),
)


class Metrics:
    """Answers ``GET /metrics`` with values collected at that moment.

    Needs prometheus_client and aiohttp, of the extra ``[qm]``; raises ModuleNotFoundError without them.

    Attributes:
        server: the server of its page.
        port: the port that it listens on; 0 before `start`.
    """

    def __init__(
        self,
        driver: EngineDriver,
        network: TcpNetwork,
        joined: Iterable[JoinedCarrier],
        rpc: RpcNetwork | None,
        control: ControlServer,
        *,
        names: Iterable[str],
        pages: PageServer,
        health: Health,
    ) -> None:
        """Make the page, at pages that answer already."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

        from msmqwire.qm.runtime.health_pages import health_handlers
        from msmqwire.service.metrics_page import metrics_application

        self._driver, self._network, self._joined, self._control = driver, network, joined, control
        self._rpc = rpc
        registry = CollectorRegistry()
        registry.register(self)
        self._application = metrics_application(
            CONTENT_TYPE_LATEST,
            lambda: generate_latest(registry),
            names,
            "--metrics-name",
            more=health_handlers(health),
        )
        self._health, self.server = health, pages
        self.port = 0
        self._pages = {"metrics": pages.connections.traffic}

    async def start(self, port: int) -> None:
        """Begin to answer, at a port at which the pages listen."""
        from msmqwire.service.metrics_page import refusal

        self.port = port
        await self.server.replace(self._application, refusal)

    def add_page(self, name: str, traffic: PageTraffic) -> None:
        """Report the connections of another server of pages as well."""
        self._pages[name] = traffic

    async def stop(self) -> None:
        """Stop listening."""
        await self.server.stop()

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics; prometheus_client calls this."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        yield from self._queue_metrics(GaugeMetricFamily)
        yield from self._session_metrics(GaugeMetricFamily)
        yield from self._driver_metrics(GaugeMetricFamily, CounterMetricFamily)
        yield from self._health_metrics(GaugeMetricFamily)
        for name, meaning in _COUNTS:
            yield CounterMetricFamily(f"msmqwire_{name}", meaning, getattr(self._network.traffic, name))
        for carrier in self._joined:
            for name, meaning, value in carrier.counts():
                yield CounterMetricFamily(f"msmqwire_{name}", meaning, value)
        yield from self._page_metrics(CounterMetricFamily)
        if self._rpc is not None:
            yield from self._rpc_metrics(self._rpc, GaugeMetricFamily, CounterMetricFamily)

    def _health_metrics(self, gauge: type[GaugeMetricFamily]) -> Iterator[Metric]:
        health, drain = self._health, self._driver.drain
        report = health.report()
        yield gauge("msmqwire_ready", "1 while all checks of /readyz hold.", float(report["ok"]))
        checks = gauge("msmqwire_check", "1 for each check of /readyz that holds.", labels=("check",))
        for check in report["checks"]:
            checks.add_metric((check["name"],), float(check["ok"]))
        yield checks
        yield gauge("msmqwire_draining", "1 while the server drains before a stop.", float(drain.on))
        yield gauge("msmqwire_held_messages", "Messages that programs received and did not end.", drain.held)
        meaning = "Seconds that opening and restoring the store took at the start."
        yield gauge("msmqwire_restore_seconds", meaning, health.restore_s)
        yield gauge(
            "msmqwire_oldest_unsynced_change_seconds",
            "Age of the oldest change that the disk refuses.",
            self._driver.oldest_unsynced_s,
        )

    def _queue_metrics(self, gauge: type[GaugeMetricFamily]) -> Iterator[Metric]:
        labels = ("queue", "kind")
        messages = gauge("msmqwire_queue_messages", "Messages in a queue.", labels=labels)
        sizes = gauge("msmqwire_queue_bytes", "Bytes of the messages in a queue.", labels=labels)
        core = self._driver.core
        for queue in core.queue_manager.queues.values():
            name = short_name(queue)
            if isinstance(queue, OutgoingQueue) and queue.acknowledged_peer is not None:
                name = f"acknowledgements to {queue.acknowledged_peer}"
            messages.add_metric((name, kind(queue)), len(queue.positions))
            sizes.add_metric((name, kind(queue)), queue.total_bytes)
        yield messages
        yield sizes

    def _session_metrics(self, gauge: type[GaugeMetricFamily]) -> Iterator[Metric]:
        sessions = gauge("msmqwire_sessions", "Sessions by role and state.", labels=("role", "state"))
        counts = Counter(
            (session.role.value, session.state.value)
            for session in self._driver.core.binary.sessions.values()
        )
        for key, count in counts.items():
            sessions.add_metric(tuple(map(str, key)), count)
        yield sessions
        yield gauge("msmqwire_connections", "TCP connections.", len(self._network.connections))
        yield gauge("msmqwire_control_users", "Connections to the control channel.", self._control.clients)

    def _page_metrics(self, counter: type[CounterMetricFamily]) -> Iterator[Metric]:
        for name, meaning in _PAGE_COUNTS:
            metric = counter(f"msmqwire_page_connections_{name}", meaning, labels=("page",))
            for page, traffic in self._pages.items():
                metric.add_metric((page,), getattr(traffic, name))
            yield metric

    def _rpc_metrics(
        self, rpc: RpcNetwork, gauge: type[GaugeMetricFamily], counter: type[CounterMetricFamily]
    ) -> Iterator[Metric]:
        traffic = {"remote read": rpc.traffic}
        if rpc.endpoint_mapper is not None:
            traffic["endpoint mapper"] = rpc.mapper_traffic
        for name, meaning in _RPC_COUNTS:
            metric = counter(f"msmqwire_rpc_{name}", meaning, labels=("interface",))
            for interface, counts in traffic.items():
                metric.add_metric((interface,), getattr(counts, name))
            yield metric
        shares = self._driver.core.remote_read.shares
        held = gauge("msmqwire_remote_read", "Queues, cursors and reads of remote readers.", labels=("kind",))
        for kind_of, share in (
            ("open queues", shares.handles),
            ("cursors", shares.cursors),
            ("waiting reads", shares.waiting),
            ("receives", shares.pending),
        ):
            held.add_metric((kind_of,), share.total)
        yield held
        managed = counter(
            "msmqwire_management_calls",
            "Calls of administrators at other computers by what they ask for.",
            labels=("action", "status"),
        )
        for (action, status), count in rpc.management.calls.items():
            managed.add_metric((action, f"0x{status:08X}"), count)
        yield managed
        yield counter(
            "msmqwire_management_faults",
            "Calls of administrators whose arguments could not be read.",
            rpc.management.faults,
        )

    def _driver_metrics(
        self, gauge: type[GaugeMetricFamily], counter: type[CounterMetricFamily]
    ) -> Iterator[Metric]:
        driver = self._driver
        yield counter("msmqwire_commits", "Commits of the store.", driver.commits)
        yield gauge("msmqwire_disk_refuses", "1 while the disk refuses commits.", float(driver.refused))
        yield gauge("msmqwire_accepts", "1 unless the disk is full, or almost full.", float(driver.accepts))
        if driver.room is not None:
            yield gauge("msmqwire_disk_free_bytes", "Bytes free for further messages.", driver.room.free())
            yield gauge(
                "msmqwire_disk_min_free_bytes",
                "Bytes below which no messages are accepted.",
                driver.room.least,
            )
        manager = driver.core.queue_manager
        yield gauge(
            "msmqwire_quota_bytes", "Limit of the bytes of all messages.", manager.queue_manager_quota
        )
        yield gauge("msmqwire_used_bytes", "Bytes of all messages.", manager.total_bytes)
        shares = driver.core.messages.quotas.shares
        by_standing = gauge("msmqwire_origin_bytes", "Bytes of all messages by origin.", labels=("origin",))
        for standing, used in shares.by_standing()._asdict().items():
            by_standing.add_metric((standing,), used)
        yield by_standing
        yield gauge(
            "msmqwire_origin_share_bytes", "Limit of the messages of one unknown origin.", shares.per_origin
        )
        pool = driver.core.messages.pool
        memory = gauge("msmqwire_memory_bytes", "Memory used on account of peers.", labels=("kind",))
        for use, used in pool.used.items():
            memory.add_metric((use.value,), used)
        yield memory
        yield gauge("msmqwire_memory_limit_bytes", "Limit of msmqwire_memory_bytes.", pool.limit)
        troubles = counter("msmqwire_troubles", "Trouble with messages of peers.", labels=("kind",))
        for name, count in driver.core.context.troubles.items():
            troubles.add_metric((name,), count)
        yield troubles
        refused = counter(
            "msmqwire_messages_refused",
            "Messages refused, dropped or expired.",
            labels=("reason", "queue"),
        )
        for pair, count in driver.core.context.refusals.counts.items():
            refused.add_metric(pair, count)
        yield refused
