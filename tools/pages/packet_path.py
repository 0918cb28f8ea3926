"""Prints the way of one received packet: the files that run from the socket to its acknowledgement.

python tools/pages/packet_path.py            prints the files, in the order in which they are entered
python tools/pages/packet_path.py --write    writes them into `docs/architecture.md`
python tools/pages/packet_path.py --check    fails if the files there are others

A queue manager serves a folder, and a client sends it two recoverable messages over TCP. The second one is
followed, in an established session and with everything imported: from the call of
`SessionConnection.data_received` with its bytes to the `write` of the transport that takes its SessionAck. A
file counts when a function of it is called meanwhile. Modules that mypyc has compiled can't be followed, so
this is for a checkout.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import inspect
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import msmqwire  # noqa: E402
from msmqwire.framing import Framer  # noqa: E402
from msmqwire.qm.runtime.connection import SessionConnection  # noqa: E402
from msmqwire.qm.runtime.server import Server, ServerOptions  # noqa: E402
from tools.pages.generated_pages import part_replaced  # noqa: E402

TARGET: Final = ROOT / "docs" / "architecture.md"
PART: Final = "way of a packet"
PACKAGE: Final = ROOT / "msmqwire"
LOOPBACK: Final = "127.0.0.1"
QUEUE: Final = r"private$\orders"
BODIES: Final = (b"the first message", b"the second message, which is followed")


@dataclass
class Way:
    """The code that ran for one packet.

    Attributes:
        functions: the functions of each file under msmqwire, by their qualified names, in the order of the
            first calls.
        received: the bytes of the packet.
        sent: the bytes that answered it.
    """

    functions: dict[str, list[str]] = field(default_factory=dict)
    received: bytes = b""
    sent: bytes = b""

    def profile(self, frame: FrameType, event: str, argument: Any) -> None:
        """Note a call; that of the transport's `write` is the last."""
        if event != "call":
            return
        code, caller = frame.f_code, frame.f_back
        if (
            code.co_name == "write"
            and caller is not None
            and caller.f_code is SessionConnection.flush.__code__
        ):
            sys.setprofile(None)
            self.sent = bytes(frame.f_locals["data"])
            return
        path = Path(code.co_filename)
        if path.is_relative_to(PACKAGE):
            names = self.functions.setdefault(path.relative_to(PACKAGE).as_posix(), [])
            if not code.co_name.startswith("<") and code.co_qualname not in names:
                names.append(code.co_qualname)


@contextmanager
def followed(body: bytes) -> Iterator[Way]:
    """Follow the packet with this body once the thread that runs this has received it."""
    if not inspect.isfunction(SessionConnection.data_received):
        raise SystemExit("msmqwire is compiled here: its functions can't be followed")
    way, thread, original = Way(), threading.get_ident(), SessionConnection.data_received

    def data_received(connection: SessionConnection, data: bytes) -> None:
        if body in data and threading.get_ident() == thread and not way.received:
            way.received = bytes(data)
            sys.setprofile(way.profile)
        original(connection, data)

    SessionConnection.data_received = data_received  # type: ignore[method-assign]
    try:
        yield way
    finally:
        sys.setprofile(None)
        SessionConnection.data_received = original  # type: ignore[method-assign]


def send(port: int) -> None:
    """Send the messages one after the other, each once the one before it is acknowledged."""
    with msmqwire.connect(rf"DIRECT=TCP:{LOOPBACK}\{QUEUE}", port=port) as queue:
        for body in BODIES:
            queue.send(body, recoverable=True).transferred(30)


async def follow() -> Way:
    """Follow the second message of a client at a server of this process."""
    with tempfile.TemporaryDirectory() as folder:
        options = ServerOptions(
            Path(folder), name="alpha", listen=(LOOPBACK, 0), ping=None, queues=(QUEUE,), min_free=0
        )
        server = Server(options)
        await server.start()
        try:
            with followed(BODIES[1]) as way:
                await asyncio.to_thread(send, server.listen[1])
        finally:
            await server.stop()
    received, sent = (Framer().feed(data) for data in (way.received, way.sent))
    kinds = [type(msmqwire.parse(packet)).__name__ for packet in (*received, *sent)]
    if kinds != ["UserMessage", "SessionAck"]:
        raise SystemExit(f"not one message and its acknowledgement, but {kinds}")
    return way


def listed(way: Way) -> str:
    """Return the files in Markdown."""
    lines = [
        f"{number}. `{path}`, {_code(names)}{_first_line(PACKAGE / path)}"
        for number, (path, names) in enumerate(way.functions.items(), 1)
    ]
    return "\n".join([f"{len(lines)} files, each with the function that is called there first:", "", *lines])


def _code(names: list[str]) -> str:
    return f"`{names[0]}`: " if names else ""


def _first_line(source: Path) -> str:
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].replace("``", "`").removesuffix(".")


def main(arguments: list[str] | None = None, target: Path = TARGET) -> int:
    parser = argparse.ArgumentParser(description="Prints the files that one received packet passes.")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help=f"write them into {target.name}")
    what.add_argument("--check", action="store_true", help=f"fail if {target.name} has others")
    given = parser.parse_args(arguments)
    text = listed(asyncio.run(follow()))
    if not given.write and not given.check:
        print(text)
        return 0
    before = target.read_text(encoding="utf-8")
    page = part_replaced(before, PART, text)
    if given.write:
        target.write_text(page, encoding="utf-8", newline="\n")
    elif page != before:
        print(f"{target} is not up to date: run python tools/pages/packet_path.py --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
