"""``msmqwire netware serve``: a file server's queue service that runs until it is stopped."""

from __future__ import annotations

import asyncio
from math import isnan
from pathlib import Path
from typing import Annotated, Final

from click import BadParameter

from msmqwire.cli.captures.readings import named_values
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.options import Option
from msmqwire.cli.serving import LogLevel, check_level, is_served, parse_endpoint, stop_event, when_free
from msmqwire.errors import InvalidValue, NcpRefused, Unreachable
from msmqwire.names.printable import format_endpoint
from msmqwire.ncp.constants import JOBS_MAX, QUEUE_SERVERS_MAX
from msmqwire.ncp.headers import NCP_PORT
from msmqwire.ncp.readings import Readings
from msmqwire.netware.model.names import SERVER_NAME, object_name
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.runtime.folder import NetwareFolder
from msmqwire.netware.runtime.limits import NcpLimits
from msmqwire.netware.runtime.server import NetwareOptions, NetwareServer
from msmqwire.service import descriptors, logs
from msmqwire.service.disk import MIN_FREE
from msmqwire.service.endpoints import LOOPBACK
from msmqwire.service.faults import LoopFaults

_IN_USE_S: Final = 5.0
"""Seconds to wait for a command that has the folder open."""
_CONNECTIONS_MAX: Final = 0xFFFE
"""Service connections that have numbers."""
_SECONDS_MAX: Final = 1_000_000
_SETTINGS: Final = Settings()
_LIMITS: Final = NcpLimits()


async def serve(options: NetwareOptions) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises the subclasses of StoreError, Unreachable if it can't listen, and EngineFailed for a fault of
    msmqwire itself.
    """
    faults = LoopFaults()
    asyncio.get_running_loop().set_exception_handler(faults.handle)
    server = await _started(options)
    faults.watch(server)
    stop = stop_event()
    try:
        address = format_endpoint(*server.listen)
        print(f"ready netware tcp={address} data={options.data}", flush=True)
    except OSError:
        await server.stop()
        raise
    told = asyncio.ensure_future(stop.wait())
    await asyncio.wait((told, server.broken), return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    await server.stop()
    if server.broken.done():
        raise server.broken.result()


async def _started(options: NetwareOptions) -> NetwareServer:
    """Start a server; wait for a command that has the folder open, but not for another server."""

    async def start() -> NetwareServer:
        server = NetwareServer(options)
        try:
            await server.start()
        except (OSError, UnicodeError) as exc:
            raise Unreachable(f"can't listen: {getattr(exc, 'strerror', None) or exc}") from None
        return server

    return await when_free(start, lambda: is_served(NetwareFolder(options.data)), seconds=_IN_USE_S)


def command(
    data: Annotated[Path, Option(help="Folder of the bindery and the queues; made if it is missing.")],
    listen: Annotated[str, Option(metavar="ADDR:PORT", help="Address to accept NCP over TCP at.")] = (
        f"{LOOPBACK}:{NCP_PORT}"
    ),
    max_objects: Annotated[int, Option(min=1, help="Objects in the bindery.")] = _SETTINGS.objects_max,
    max_queues: Annotated[int, Option(min=0, help="Queues.")] = _SETTINGS.queues_max,
    max_jobs: Annotated[int, Option(min=1, max=JOBS_MAX, help="Jobs in a queue.")] = _SETTINGS.jobs_max,
    max_servers: Annotated[
        int, Option(min=1, max=QUEUE_SERVERS_MAX, help="Queue servers attached to a queue.")
    ] = _SETTINGS.servers_max,
    max_job_size: Annotated[
        int, Option(min=1, max=4096, help="MiB of the file of a job.")
    ] = _SETTINGS.file_bytes_max >> 20,
    max_files_size: Annotated[
        int, Option(min=1, help="MiB of all files together.")
    ] = _SETTINGS.files_bytes_max >> 20,
    files_per_origin: Annotated[
        int,
        Option(
            "--files-per-origin",
            min=1,
            max=100,
            help="Percent of the room for files that one object or address without a password may use.",
        ),
    ] = _SETTINGS.files_per_origin_percent,
    files_reserve: Annotated[
        int,
        Option(
            "--files-reserve",
            min=0,
            max=100,
            help="Percent of it in reserve for objects with a password, supervisors and operators.",
        ),
    ] = _SETTINGS.files_reserve_percent,
    name: Annotated[
        str, Option(metavar="NAME", help="Name of the file server, at most 47 characters, in capitals.")
    ] = SERVER_NAME,
    min_free: Annotated[
        int,
        Option(min=0, max=1 << 30, help="MiB of disk space below which no file is created or grows."),
    ] = MIN_FREE >> 20,
    max_open_files: Annotated[
        int, Option(min=1, help="Files that a connection has open.")
    ] = _SETTINGS.handles_max,
    max_connections: Annotated[
        int, Option(min=1, max=_CONNECTIONS_MAX, help="Service connections.")
    ] = _LIMITS.connections,
    max_connections_per_peer: Annotated[
        int,
        Option(min=1, help="TCP connections from one address, or one IPv6 network of 64 bits."),
    ] = _LIMITS.connections_per_peer,
    reserved: Annotated[
        int,
        Option(
            metavar="PERCENT",
            min=0,
            max=90,
            help="Percent of the connections that clients can't have before a login.",
        ),
    ] = _LIMITS.reserved_percent,
    max_held: Annotated[
        int, Option(min=1, help="MiB of incomplete requests and unread replies, of all connections.")
    ] = _LIMITS.held_bytes >> 20,
    partial: Annotated[
        float,
        Option(
            min=0.1,
            max=_SECONDS_MAX,
            help="Seconds for a request to end that has begun, for a reply to be read, and for a "
            "connection to attach.",
        ),
    ] = _LIMITS.partial_s,
    idle: Annotated[
        float,
        Option(min=0.1, max=_SECONDS_MAX, help="Seconds after which a connection that is not used ends."),
    ] = _LIMITS.idle_s,
    reading: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=VALUE",
            help="Byte order of a field on which sources disagree; may be repeated: "
            + "; ".join(f"{name}={' or '.join(values)}" for name, values in Readings.fields().items())
            + ". The first value is the default.",
        ),
    ] = None,
    log: LogLevel = "info",
) -> None:
    """Run the queue service of a NetWare file server: its bindery, its queues and their jobs, over NCP.

    Objects without a password log in by their names alone, and passwords travel in clear: see
    "msmqwire netware object password". Listen on trusted networks only.
    """
    check_level(log)
    for option, seconds in (("--partial", partial), ("--idle", idle)):
        if isnan(seconds):
            raise BadParameter(f"{option} is not a number")
    options = NetwareOptions(
        data,
        parse_endpoint(listen, NCP_PORT),
        settings=Settings(
            objects_max=max_objects,
            queues_max=max_queues,
            jobs_max=max_jobs,
            servers_max=max_servers,
            file_bytes_max=max_job_size << 20,
            files_bytes_max=max_files_size << 20,
            files_per_origin_percent=files_per_origin,
            files_reserve_percent=files_reserve,
            handles_max=max_open_files,
        ),
        limits=NcpLimits(
            connections=max_connections,
            connections_per_peer=max_connections_per_peer,
            reserved_percent=reserved,
            held_bytes=max_held << 20,
            partial_s=partial,
            idle_s=idle,
        ),
        readings=_readings(reading),
        min_free=min_free << 20,
        name=_server_name(name),
    )
    logs.begin(log)
    descriptors.raise_limit()
    run_reporting_errors(lambda: asyncio.run(serve(options)))


def _server_name(name: str) -> str:
    """Return the name in capitals. Raises BadParameter."""
    try:
        return object_name(name)
    except NcpRefused as exc:
        raise BadParameter(exc.why, param_hint="--name") from None


def _readings(texts: list[str] | None) -> Readings:
    """Parse the options. Raises BadParameter."""
    try:
        return Readings.of(named_values(texts))
    except InvalidValue as exc:
        raise BadParameter(exc.why, param_hint="--reading") from None
