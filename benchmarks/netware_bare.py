"""The least that keeps jobs in a queue over TCP: asyncio, and SQLite with one commit for all of a turn.

    python benchmarks/netware_bare.py FILE

A request is a byte with the operation, four with a number and four with the length of the following body; a
reply is the number of a job and a body, in the same form. A change is answered once it is durable, with the
settings of our store: a log, synced at each commit. Prints its port.
"""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import struct
import sys
from typing import Final

ADDRESS: Final = "127.0.0.1"
HEAD: Final = struct.Struct(">BII")
CREATE, START, TAKE, FINISH, SHOW = range(5)
_OPEN, _READY, _TAKEN = range(3)


class Jobs:
    """A table of jobs, in their order."""

    def __init__(self, file: str) -> None:
        self._db = sqlite3.connect(file, isolation_level=None)
        for setting in ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 4000"):
            self._db.execute(f"PRAGMA {setting}")
        self._db.execute("CREATE TABLE job (number INTEGER PRIMARY KEY, state INTEGER, body BLOB)")
        self._db.execute("CREATE INDEX ready ON job (state, number)")
        self._waiting: list[asyncio.Future[None]] = []

    async def do(self, operation: int, number: int, body: bytes) -> tuple[int, bytes]:
        """Perform an operation; return the number of a job, 0 for none, and a body, once that is durable."""
        if operation == SHOW:
            row = self._db.execute("SELECT body FROM job WHERE number = ?", (number,)).fetchone()
            return (number, row[0]) if row else (0, b"")
        if not self._waiting:
            self._db.execute("BEGIN IMMEDIATE")
            asyncio.get_running_loop().call_soon(self._commit)
        durable = asyncio.get_running_loop().create_future()
        self._waiting.append(durable)
        result = self._change(operation, number, body)
        await durable
        return result

    def _change(self, operation: int, number: int, body: bytes) -> tuple[int, bytes]:
        run = self._db.execute
        match operation:
            case 0:  # CREATE
                made = run("INSERT INTO job (state, body) VALUES (?, ?)", (_OPEN, body))
                return made.lastrowid or 0, b""
            case 1:  # START
                run("UPDATE job SET state = ? WHERE number = ?", (_READY, number))
            case 2:  # TAKE
                first = "SELECT number, body FROM job WHERE state = ? ORDER BY number LIMIT 1"
                row = run(first, (_READY,)).fetchone()
                if row is None:
                    return 0, b""
                run("UPDATE job SET state = ? WHERE number = ?", (_TAKEN, row[0]))
                return int(row[0]), bytes(row[1])
            case _:  # FINISH
                run("DELETE FROM job WHERE number = ?", (number,))
        return number, b""

    def _commit(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._db.execute("COMMIT")
        for durable in waiting:
            durable.set_result(None)


async def serve(file: str) -> None:
    """Serve until SIGTERM."""
    jobs = Jobs(file)

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                operation, number, size = HEAD.unpack(await reader.readexactly(HEAD.size))
                number, body = await jobs.do(operation, number, await reader.readexactly(size))
                writer.write(HEAD.pack(operation, number, len(body)) + body)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):  # at the end
            writer.close()

    server = await asyncio.start_server(client, ADDRESS, 0)
    print(f"ready {server.sockets[0].getsockname()[1]}", flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
