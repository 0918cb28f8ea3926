"""The entrance of programs that connect to a queue."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, Literal

from msmqwire.errors import InvalidArgument, InvalidValue
from msmqwire.names.meant import EXAMPLE, wanted_format_name
from msmqwire.qm.client.connection import Connection
from msmqwire.qm.client.remote_options import RemoteOptions, credentials_of, readable
from msmqwire.qm.runtime.addresses import TCP_PORT, AddressOverrides
from msmqwire.qm.runtime.joined import client_transports
from msmqwire.rpc.constants import ENDPOINT_MAPPER_PORT

_PORT_MAX: Final = 0xFFFF


def connect(
    format_name: str,
    *,
    state: str | os.PathLike[str] | None = None,
    port: int = TCP_PORT,
    hosts: Mapping[str, tuple[str, int | None]] | None = None,
    listen: tuple[str, int] | None = None,
    drain: float = 30.0,
    tls_ca: str | os.PathLike[str] | None = None,
    tls_verify: bool = True,
    pgm: str | None = None,
    pgm_interface: str | None = None,
    rpc_port: int | None = None,
    endpoint_mapper: int = ENDPOINT_MAPPER_PORT,
    user: str | None = None,
    password: str | None = None,
    auth: Literal["none", "connect", "integrity", "privacy"] | None = None,
) -> Connection:
    r"""Return a connection to a queue of any queue manager that accepts [MS-MQQB] sessions over TCP.

    If it offers remote read ([MS-MQRR]), its queues ``DIRECT=TCP:`` and ``DIRECT=OS:`` can be read, too. Its
    port is looked up on the first read.

    Enter it with ``async with``, which gives a `Queue`, or with ``with``, which gives a `SyncQueue`: the same
    without ``await``, for any number of threads. A small queue manager runs inside until the block is left.
    It stores messages, retransmits them and handles their acknowledgements as the protocol requires. Leaving
    waits until everything is transferred, unless an exception leaves the block. It raises NotDelivered if a
    message was refused or given up and the program has not been informed.

    Args:
        format_name: the queue, for example ``DIRECT=TCP:10.0.0.5\private$\orders``; several are separated by
            commas. The computer ``.`` is this one.
        state: a file for recoverable messages not transferred yet, created if it is missing. They are sent
            when the same file is used again. Without a file they are in memory only, and lost with the
            process.
        port: the TCP port of the queue manager.
        hosts: addresses of computers whose names can't be resolved: by name, an address and a port or None;
            for queues ``PRIVATE=``, by the identifier of the queue manager.
        listen: address and port at which the other side can reach this one, for acknowledgements. Without it
            they come back over the session that carried the message.
        drain: the longest wait on leaving, in seconds.
        tls_ca: for HTTPS, a PEM file with the authorities that issue the servers' certificates; the system's
            authorities by default.
        tls_verify: whether their certificates are verified.
        pgm: the carrier of multicast messages, ``raw``, ``udp[:MULTICAST[:UNICAST]]`` or ``off``; by default
            IP where the process is permitted to use it, else UDP.
        pgm_interface: the address of the interface for multicast messages; by default the system chooses.
        rpc_port: the TCP port of remote read; by default the endpoint mapper of the other side is asked.
        endpoint_mapper: the TCP port of the endpoint mapper.
        user: the reader, ``DOMAIN\user``; None for an anonymous reader.
        password: of the user, or ``$NT$`` and the 32 hexadecimal digits of its NT hash.
        auth: the protection of remote read: ``none``; ``connect``, the identity of the user; ``integrity``,
            protection of all calls against changes; ``privacy``, encryption as well, the default with a user.

    Raises:
        InvalidName: the format name is invalid.
        InvalidValue: another argument is invalid; its name is the path.
    """
    if not isinstance(format_name, str):
        why = f"{format_name!r:.100} is not text; write a format name as {EXAMPLE}"
        raise InvalidArgument(why, path="format_name")
    direct = readable(wanted_format_name(format_name))
    if state is not None and not isinstance(state, str | os.PathLike):
        raise InvalidValue(f"{state!r:.100} is not the name of a file", path="state")
    _check_port(port, "port")
    addresses: dict[str, tuple[str, int | None]] = {".": ("127.0.0.1", None)}
    for name, address in (hosts or {}).items():
        addresses[name.lower()] = _check_address(address, f"hosts[{name}]")
    if listen is not None:
        _check_address(listen, "listen", least=0)
    if isinstance(drain, bool) or not isinstance(drain, int | float) or not drain >= 0:
        raise InvalidValue(f"{drain!r:.100} is not a number of seconds", path="drain")
    if rpc_port is not None:
        _check_port(rpc_port, "rpc_port")
    _check_port(endpoint_mapper, "endpoint_mapper")
    credentials = credentials_of(user, password, auth)
    transports = client_transports(
        {"tls_ca": tls_ca, "tls_verify": tls_verify, "pgm": pgm, "pgm_interface": pgm_interface}
    )
    overrides = AddressOverrides(port, hosts=addresses)
    remote = None
    if direct is not None:
        host = addresses.get(direct.host.lower(), (direct.host, None))[0]
        remote = direct, RemoteOptions(host, rpc_port, endpoint_mapper, credentials)
    return Connection(format_name, state, overrides, listen, drain, transports, remote)


def _check_port(port: object, path: str, least: int = 1) -> None:
    if isinstance(port, bool) or not isinstance(port, int) or not least <= port <= _PORT_MAX:
        raise InvalidArgument(
            f"{port!r:.100} is not a port: {least} to {_PORT_MAX}, as {TCP_PORT}", path=path
        )


def _check_address(
    address: tuple[str, int | None], path: str, least: int | None = None
) -> tuple[str, int | None]:
    """Return an address and a port; the port may be None unless `least` is given."""
    if not isinstance(address, tuple) or len(address) != 2 or not isinstance(address[0], str):
        raise InvalidValue(
            f"{address!r:.100} is not an address and port, as ('10.0.0.5', {TCP_PORT})", path=path
        )
    if least is not None or address[1] is not None:
        _check_port(address[1], path, 1 if least is None else least)
    return address
