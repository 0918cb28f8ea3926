"""``msmqwire serve``: a queue manager that runs until it is stopped."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal

from click import BadParameter, get_current_context
from click.core import ParameterSource
from click.exceptions import Exit

from msmqwire.cli.captures.readings import Reading, readings_of
from msmqwire.cli.common import readable, say
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.network_options import (
    Pgm,
    PgmInterface,
    TlsAuthorities,
    TlsVerify,
    address_overrides,
)
from msmqwire.cli.options import Option
from msmqwire.cli.rpc_options import (
    LEVELS,
    Auth,
    Manage,
    Mapper,
    Pending,
    Rpc,
    RpcAuth,
    Users,
    check_rpc,
    with_users,
)
from msmqwire.cli.serving import (
    LogLevel,
    check_host_names,
    check_level,
    is_served,
    parse_endpoint,
    stop_event,
    when_free,
)
from msmqwire.cli.settings import show_settings
from msmqwire.cli.srmp_files import SrmpFiles, srmp_configuration
from msmqwire.errors import InvalidValue, Unreachable
from msmqwire.names.addresses import HTTP_PORTS
from msmqwire.names.printable import format_endpoint
from msmqwire.pgm.constants import TXW_MAX_RTE
from msmqwire.ping import PING_PORT
from msmqwire.qm.model.enumerations import ManageAccess, Relay
from msmqwire.qm.model.settings import KeptSettings
from msmqwire.qm.runtime.addresses import TCP_PORT
from msmqwire.qm.runtime.console import PORT as CONSOLE_PORT
from msmqwire.qm.runtime.console import ConsoleOptions
from msmqwire.qm.runtime.data_folder import DataFolder
from msmqwire.qm.runtime.http.options import HttpOptions
from msmqwire.qm.runtime.limits import LIMITS, Limits
from msmqwire.qm.runtime.multicast import PgmOptions, parse_pgm_options
from msmqwire.qm.runtime.multicast.options import TTL
from msmqwire.qm.runtime.named_values import with_named_values
from msmqwire.qm.runtime.rpc.network import PENDING_S, RpcOptions
from msmqwire.qm.runtime.server import SETTINGS, Server, ServerOptions
from msmqwire.remote_read.constants import DEFAULT_PORT
from msmqwire.rpc.constants import ENDPOINT_MAPPER_PORT
from msmqwire.service import descriptors, logs
from msmqwire.service.disk import MIN_FREE
from msmqwire.service.endpoints import LOOPBACK
from msmqwire.service.faults import LoopFaults
from msmqwire.service.supervisor import Supervisor

_GC_THRESHOLD: Final = 20_000
"""New objects that trigger a garbage collection: messages create many, but leave no cycles."""
_IN_USE_S: Final = 5.0
"""Seconds to wait for a command that has the folder open."""
_RESEND_TIMES: Final = 4
_DWORD_MAX: Final = 0xFFFFFFFF
_DWORD_DIGITS: Final = len(str(_DWORD_MAX))
HTTP_PORT: Final = HTTP_PORTS["HTTP"]
HTTPS_PORT: Final = HTTP_PORTS["HTTPS"]


def kept_settings(insecure_nacks: bool | None, resend_times: str | None) -> KeptSettings:
    """Parse the options that the folder keeps. Raises BadParameter."""
    if resend_times is None:
        return KeptSettings(insecure_nacks)
    texts = resend_times.split(",")
    if len(texts) != _RESEND_TIMES or not all(text.isascii() and text.isdigit() for text in texts):
        raise BadParameter(
            f"--resend-times {resend_times:.80}: not four numbers of seconds as 30,300,1800,21600"
        )
    times = [int(text) for text in texts if len(text) <= _DWORD_DIGITS]
    if len(times) != _RESEND_TIMES or not all(0 < seconds <= _DWORD_MAX for seconds in times):
        raise BadParameter(f"--resend-times {resend_times:.80}: each is 1 to {_DWORD_MAX} seconds")
    return KeptSettings(insecure_nacks, *times)


async def serve(options: ServerOptions) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises StoreError if the store fails meanwhile, and EngineFailed for a fault of msmqwire itself.
    """
    faults = LoopFaults()
    asyncio.get_running_loop().set_exception_handler(faults.handle)
    supervisor, stop = Supervisor(), stop_event()
    stopped = asyncio.ensure_future(stop.wait())
    gc.disable()  # a collection would scan millions of restored messages, and stop the loop for that
    try:
        server = await _started_unless(stopped, options, supervisor)
        if server is None:
            return
        # Restored messages contain no cycles: the garbage collector need not scan them.
        gc.freeze()
        gc.set_threshold(_GC_THRESHOLD)
        gc.enable()
        await _serve(server, stopped, faults, supervisor)
    finally:
        gc.enable()
        stopped.cancel()
        supervisor.end()


async def _serve(
    server: Server, stopped: asyncio.Task[Literal[True]], faults: LoopFaults, supervisor: Supervisor
) -> None:
    """Serve until the stop that is awaited, or a fault. Raises as `serve`."""
    assert server.driver is not None, "it has started"
    faults.watch(server.driver)
    try:
        print(_ready(server), flush=True)
    except OSError:
        await server.stop()
        raise
    supervisor.ready()
    broken = server.driver.broken
    await asyncio.wait((stopped, broken), return_when=asyncio.FIRST_COMPLETED)
    supervisor.stopping()
    await server.stop()
    if broken.done():
        raise broken.result()
    if server.driver.unsaved is not None:
        raise server.driver.unsaved


async def _started_unless(
    stopped: asyncio.Task[Literal[True]], options: ServerOptions, supervisor: Supervisor
) -> Server | None:
    """Start a server, unless a stop comes first; return None then, with nothing changed."""
    starting = asyncio.ensure_future(_started(options, supervisor))
    await asyncio.wait((starting, stopped), return_when=asyncio.FIRST_COMPLETED)
    if starting.done() or not stopped.done():
        return await starting
    supervisor.stopping()
    starting.cancel()
    with suppress(asyncio.CancelledError):
        await (await starting).stop()  # it may have started at the last moment
    logs.log.info("stopped before it was ready")
    return None


async def _started(options: ServerOptions, supervisor: Supervisor | None = None) -> Server:
    """Start a server; wait for a command that has the folder open, but not for another server."""

    async def start() -> Server:
        server = Server(options)
        health = server.health
        if supervisor is not None:
            supervisor.watch(lambda: health.words, health.goes_on)
        try:
            await server.start()
        except (OSError, UnicodeError) as exc:
            raise Unreachable(f"can't listen: {getattr(exc, 'strerror', None) or exc}") from None
        return server

    return await when_free(start, lambda: is_served(DataFolder(options.data)), seconds=_IN_USE_S)


def _ready(server: Server) -> str:
    """Return the line that says where a server listens."""
    places = server.endpoints
    texts = {"tcp": "", "ping": "off"} | {name: format_endpoint(*at) for name, at in places.items()}
    where = " ".join(f"{name}={text}" for name, text in texts.items())
    return f"ready {server.name} {where} data={server.options.data}"


def command(
    data: Annotated[Path, Option(help="Folder of the queue manager; made if it is missing.")],
    listen: Annotated[str, Option(metavar="ADDR:PORT", help="Address to accept sessions at.")] = (
        f"{LOOPBACK}:{TCP_PORT}"
    ),
    ping: Annotated[
        str | None,
        Option(
            metavar="ADDR:PORT",
            help=f"Address to answer pings at, or off; by default UDP port {PING_PORT} of the address of "
            f"--listen.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        Option(metavar="NAME", help="Name of the computer in names of queues; it can't change later."),
    ] = None,
    domain: Annotated[
        str,
        Option(metavar="DOMAIN", help="DNS domain of the computer, whose full name is NAME.DOMAIN."),
    ] = "",
    queue: Annotated[
        list[str] | None,
        Option(metavar="QUEUE[;transactional]", help="A queue to create if it is missing; may be repeated."),
    ] = None,
    host: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=ADDR[:PORT]",
            help="Address of another computer whose name does not lead to it; also GUID=ADDR for names "
            "PRIVATE=.",
        ),
    ] = None,
    remote_port: Annotated[
        int, Option(min=1, max=0xFFFF, metavar="PORT", help="TCP port of other queue managers.")
    ] = TCP_PORT,
    remote_ping_port: Annotated[
        int, Option(min=1, max=0xFFFF, metavar="PORT", help="UDP port of other queue managers.")
    ] = PING_PORT,
    metrics: Annotated[
        str | None, Option(metavar="ADDR:PORT", help="Address to answer Prometheus at.")
    ] = None,
    metrics_name: Annotated[
        list[str] | None,
        Option(
            metavar="NAME",
            help="A host name by which Prometheus reaches the metrics, besides localhost and addresses; may "
            "be repeated.",
        ),
    ] = None,
    console: Annotated[
        str | None,
        Option(
            metavar="ADDR:PORT",
            help=f"Address of the console for browsers; port {CONSOLE_PORT} unless another is given.",
        ),
    ] = None,
    console_write: Annotated[
        bool,
        Option("--console-write", help="Let the console purge, move, delete and pause; else it only shows."),
    ] = False,
    console_name: Annotated[
        list[str] | None,
        Option(
            metavar="NAME",
            help="A host name by which browsers reach the console, besides localhost and addresses; may be "
            "repeated.",
        ),
    ] = None,
    http: Annotated[
        str | None,
        Option(metavar="ADDR:PORT", help=f"Address to accept messages by HTTP at; usually port {HTTP_PORT}."),
    ] = None,
    https: Annotated[
        str | None,
        Option(
            metavar="ADDR:PORT",
            help=f"The same by HTTPS, usually port {HTTPS_PORT}; needs --tls-cert and --tls-key.",
        ),
    ] = None,
    tls_cert: Annotated[
        Path | None,
        Option(metavar="FILE", help="PEM: the certificate of --https, followed by its issuers."),
    ] = None,
    tls_key: Annotated[
        Path | None, Option(metavar="FILE", help="PEM: the key of that certificate, not encrypted.")
    ] = None,
    tls_ca: TlsAuthorities = None,
    tls_verify: TlsVerify = True,
    redirections: Annotated[
        Path | None, Option(metavar="FILE", help="JSON: redirections of messages by HTTP.")
    ] = None,
    http_sign_cert: Annotated[
        Path | None, Option(metavar="FILE", help="PEM: the certificate that signs messages by HTTP.")
    ] = None,
    http_sign_key: Annotated[
        Path | None, Option(metavar="FILE", help="PEM: the key of that certificate, RSA or DSA.")
    ] = None,
    http_trust: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="PEM: the certificates whose signatures of messages by HTTP are trusted."
        ),
    ] = None,
    rpc: Rpc = None,
    endpoint_mapper: Mapper = None,
    rpc_users: Users = None,
    rpc_auth: Auth = RpcAuth.PRIVACY,
    rpc_manage: Manage = ManageAccess.NONE,
    rpc_pending: Pending = PENDING_S,
    quota: Annotated[int | None, Option(min=1, help="MiB of all messages.")] = None,
    min_free: Annotated[
        int, Option(min=0, max=1 << 30, help="MiB of disk space below which no new messages are taken.")
    ] = MIN_FREE >> 20,
    max_connections: Annotated[
        int, Option(min=1, help="TCP connections from other computers.")
    ] = LIMITS.connections,
    insecure_nacks: Annotated[
        bool | None,
        Option(
            "--insecure-nacks/--no-insecure-nacks",
            help="Send negative acknowledgements also for refusals that reveal something of this computer; "
            "the folder keeps it.",
        ),
    ] = None,
    resend_times: Annotated[
        str | None,
        Option(
            metavar="S,S,S,S",
            help="Seconds between resends of transactional messages: three times each of the first three, "
            "then the last; the folder keeps them.",
        ),
    ] = None,
    relay: Annotated[
        Relay,
        Option(
            help="Messages to forward from one computer to another: none; known, those for computers in the "
            "directory, in --host, or that an application of this computer sends to; or all."
        ),
    ] = Relay.KNOWN,
    memory: Annotated[
        int | None,
        Option(
            min=1,
            help="MiB for express messages and for the state that other computers make the server keep.",
        ),
    ] = None,
    set_values: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="NAME=VALUE",
            help="A timer or limit by its name; overrides other options, and may be repeated.",
        ),
    ] = None,
    reading: Reading = None,
    pgm: Pgm = None,
    pgm_interface: PgmInterface = None,
    pgm_ttl: Annotated[
        int, Option(min=1, max=255, help="Routers, plus one, that multicast messages pass.")
    ] = TTL,
    pgm_rate: Annotated[
        int, Option(min=1000, max=1_000_000_000, help="Bytes a second sent to a multicast group.")
    ] = int(TXW_MAX_RTE),
    print_settings: Annotated[
        bool,
        Option(
            "--print-settings",
            help="Print each setting, host and route, and whether it is of an option, of the folder or the "
            "default; serve nothing.",
        ),
    ] = False,
    as_json: Annotated[bool, Option("--json", help="With --print-settings: one JSON object a line.")] = False,
    log: LogLevel = "info",
) -> None:
    """Run a queue manager: it keeps queues in a folder, and exchanges messages with other computers."""
    check_level(log)
    if https and not (tls_cert and tls_key):
        raise BadParameter("--https needs --tls-cert and --tls-key")
    if (tls_cert or tls_key) and not https:
        raise BadParameter("--tls-cert and --tls-key are for --https")
    if (console_write or console_name) and console is None:
        raise BadParameter("--console-write and --console-name are for --console")
    if as_json and not print_settings:
        raise BadParameter("--json is for --print-settings")
    if metrics_name and metrics is None:
        raise BadParameter("--metrics-name is for --metrics")
    check_host_names("--console-name", console_name)
    check_host_names("--metrics-name", metrics_name)
    check_rpc(rpc, endpoint_mapper, rpc_users, rpc_auth, rpc_manage)
    at = parse_endpoint(listen, TCP_PORT)
    settings, limits = replace(SETTINGS, relay=relay), Limits(max_connections)
    if memory is not None:
        settings = replace(settings, memory=memory << 20)
    try:
        settings, limits = with_named_values(settings, limits, set_values or ())
    except InvalidValue as exc:
        raise BadParameter(str(exc), param_hint="--set") from None
    options = ServerOptions(
        data,
        name,
        domain,
        listen=at,
        ping=None if ping == "off" else parse_endpoint(ping, PING_PORT) if ping else (at[0], PING_PORT),
        queues=tuple(queue or ()),
        metrics=parse_endpoint(metrics, 9101) if metrics else None,
        metrics_names=tuple(metrics_name or ()),
        console=None
        if console is None
        else ConsoleOptions(
            parse_endpoint(console, CONSOLE_PORT), write=console_write, names=tuple(console_name or ())
        ),
        rpc=_rpc_options(rpc, endpoint_mapper, rpc_auth, rpc_manage, rpc_pending) if rpc else None,
        quota=None if quota is None else quota << 20,
        min_free=min_free << 20,
        settings=settings,
        keep=kept_settings(insecure_nacks, resend_times),
        limits=limits,
        readings=readings_of(reading),
        overrides=address_overrides(host or [], remote_port, remote_ping_port),
        protocols={"multicast": _pgm_options(pgm, pgm_interface, pgm_ttl, pgm_rate)},
        given=_given(set_values or ()),
    )
    if print_settings:
        run_reporting_errors(lambda: show_settings(options, as_json))
        return
    by_http = HttpOptions(
        parse_endpoint(http, HTTP_PORT) if http else None,
        parse_endpoint(https, HTTPS_PORT) if https else None,
        tls_cert,
        tls_key,
        tls_ca,
        tls_verify,
    )
    logs.begin(log)
    descriptors.raise_limit()
    files = SrmpFiles(redirections, http_sign_cert, http_sign_key, http_trust)
    files.check()
    run_reporting_errors(lambda: _run(options, by_http, (tls_cert, tls_key, tls_ca), files, rpc_users))


_NAMED_OPTIONS: Final = {"relay": "relay", "memory": "memory", "max_connections": "connections"}
"""The named values that options besides ``--set`` give, by parameter."""


def _given(set_values: Iterable[str]) -> frozenset[str]:
    """Return the names of the settings and limits that were given on the command line."""
    context = get_current_context()
    typed = {
        name
        for parameter, name in _NAMED_OPTIONS.items()
        if context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE
    }
    return frozenset(typed | {text.partition("=")[0].strip() for text in set_values})


def _pgm_options(text: str | None, interface: str | None, ttl: int, rate: int) -> PgmOptions:
    """Parse the options of multicast. Raises BadParameter."""
    try:
        return parse_pgm_options(text, interface, ttl=ttl, rate=rate)
    except InvalidValue as exc:
        raise BadParameter(f"--{exc.path.replace('_', '-')}: {exc.why}") from None


def _rpc_options(
    rpc: str, endpoint_mapper: str | None, auth: RpcAuth, manage: ManageAccess, pending_s: int
) -> RpcOptions:
    """Parse the options of remote read. Raises BadParameter."""
    at = parse_endpoint(rpc, DEFAULT_PORT)
    return RpcOptions(
        at,
        next_port=at != parse_endpoint(rpc, 0),  # no port was given
        endpoint_mapper=parse_endpoint(endpoint_mapper, ENDPOINT_MAPPER_PORT) if endpoint_mapper else None,
        level=LEVELS[auth],
        manage=manage,
        pending_s=pending_s,
    )


def _run(
    options: ServerOptions,
    by_http: HttpOptions,
    certificates: tuple[Path | None, ...],
    files: SrmpFiles,
    rpc_users: Path | None,
) -> None:
    readable(*certificates)
    by_http = replace(by_http, srmp=srmp_configuration(files))
    protocols = {**options.protocols, "srmp": by_http}
    options = replace(options, protocols=protocols, rpc=with_users(options.rpc, rpc_users))
    asyncio.run(serve(options))


def _fail(message: str, status: int) -> None:
    say(message)
    raise Exit(status)
