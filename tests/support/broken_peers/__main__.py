r"""Run a peer: ``python -m tests.support.broken_peers --mistake loses_second --listen 127.0.0.1:0``.

One line of JSON says where it listens as soon as it does. It goes on until it is ended, by a signal or by
its mistake: then with status 134, like a process that has aborted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from typing import Any

from tests.support.broken_peers.manager import Manager
from tests.support.broken_peers.mistakes import MISTAKES
from tests.support.broken_peers.server import Server

_ABORTED = 134


def _place(text: str) -> tuple[str, int]:
    address, _, port = text.rpartition(":")
    return address.strip("[]"), int(port)


def _host(text: str) -> tuple[str, tuple[str, int]]:
    name, _, place = text.partition("=")
    return name, _place(place)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="broken_peers", description="A peer of MSMQ that makes a mistake.")
    add = parser.add_argument
    add("--mistake", choices=sorted(MISTAKES), metavar="NAME", help="the mistake; none by default")
    add("--list", action="store_true", help="print all mistakes as JSON, and end")
    add("--listen", type=_place, default=("127.0.0.1", 1801), metavar="ADDR:PORT")
    add("--ping", type=_place, metavar="ADDR:PORT", help="answer pings there; port 3527 is usual")
    add("--http", type=_place, metavar="ADDR:PORT", help="take SRMP messages there")
    add("--queue", action="append", metavar="PATH", help=r"private$\orders by default")
    add("--transactional-queue", action="append", metavar="PATH", help=r"private$\tx by default")
    add("--quota", type=int, default=1 << 62, metavar="BYTES", help="of each --queue")
    add("--reader", action="store_true", help="read each message as soon as it is there")
    add("--insecure-nacks", action="store_true", help="send the negative acknowledgements of 3.1.7.15 too")
    add("--host", type=_host, action="append", default=[], metavar="ADDR=ADDR:PORT",
        help="connect there instead of to port 1801 of a loopback address")  # fmt: skip
    return parser.parse_args(arguments)


def _crashed(why: BaseException) -> None:
    print(f"{type(why).__name__}: {why}", file=sys.stderr, flush=True)
    os._exit(_ABORTED)


async def _serve(options: argparse.Namespace) -> None:
    manager = Manager(
        asyncio.get_running_loop(),
        options.mistake,
        queues=tuple(options.queue or [r"private$\orders"]),
        transactional_queues=tuple(options.transactional_queue or [r"private$\tx"]),
        reader=options.reader,
        insecure_nacks=options.insecure_nacks,
        quota=options.quota,
    )
    server = Server(manager, crashed=_crashed, hosts=dict(options.host))
    places: dict[str, Any] = {"mistake": options.mistake, "pid": os.getpid()}
    places["listen"] = await server.listen(*options.listen)
    if options.ping is not None:
        places["ping"] = await server.answer_pings(*options.ping)
    if options.http is not None:
        places["http"] = await server.serve_http(*options.http)
    print(json.dumps({key: _text(value) for key, value in places.items()}), flush=True)
    await asyncio.Event().wait()


def _text(value: Any) -> Any:
    return f"{value[0]}:{value[1]}" if isinstance(value, tuple) else value


def main(arguments: list[str] | None = None) -> None:
    """Run a peer until it is interrupted."""
    options = _options(sys.argv[1:] if arguments is None else arguments)
    if options.list:
        print(json.dumps({name: mistake._asdict() for name, mistake in MISTAKES.items()}, indent=2))
        return
    try:
        asyncio.run(_serve(options))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
