"""The least that takes messages by HTTP: aiohttp stores each body that is posted in SQLite, then answers.

    python benchmarks/http_bare.py FILE

It answers once the body is durable. Requests of one turn of the loop are committed together, as in our
server, with the settings of our store: a log, synced at each commit. Prints its port.
"""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys
from typing import Final

from aiohttp import web

ADDRESS: Final = "127.0.0.1"


class Bodies:
    """A table of bodies."""

    def __init__(self, file: str) -> None:
        self._db = sqlite3.connect(file, isolation_level=None)
        for setting in ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 4000"):
            self._db.execute(f"PRAGMA {setting}")
        self._db.execute("CREATE TABLE body (number INTEGER PRIMARY KEY, body BLOB NOT NULL)")
        self._bodies: list[tuple[bytes]] = []
        self._waiting: list[asyncio.Future[None]] = []

    async def add(self, body: bytes) -> None:
        """Store a body; return when it is durable."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._commit)
        stored = loop.create_future()
        self._bodies.append((body,))
        self._waiting.append(stored)
        await stored

    def _commit(self) -> None:
        bodies, self._bodies = self._bodies, []
        waiting, self._waiting = self._waiting, []
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT INTO body (body) VALUES (?)", bodies)
        self._db.execute("COMMIT")
        for stored in waiting:
            stored.set_result(None)

    def count(self) -> int:
        """Return the number of bodies."""
        return int(self._db.execute("SELECT count(*) FROM body").fetchone()[0])


async def serve(file: str) -> None:
    """Serve until SIGTERM."""
    bodies = Bodies(file)

    async def post(request: web.Request) -> web.Response:
        await bodies.add(await request.read())
        return web.Response()

    async def get(_: web.Request) -> web.Response:
        return web.Response(text=str(bodies.count()))

    application = web.Application()
    application.add_routes([web.post("/bodies", post), web.get("/bodies", get)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, ADDRESS, 0)
    await site.start()
    print(f"ready {runner.addresses[0][1]}", flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
