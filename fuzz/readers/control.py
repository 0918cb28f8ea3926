"""Targets for the control channel of a server: its lines, and its operations on a queue manager."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

from fuzz.readers.inputs import pieces
from fuzz.readers.registry import target
from msmqwire.errors import InvalidValue
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.control_frames import Incoming
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import open_core
from msmqwire.qm.runtime.operations import LocalSession
from msmqwire.qm.store import memory_store
from msmqwire.service.control.server import FAULT, NAME, QUEUE, VALUE, ControlServer, _Client

ORDERS = "private$\\orders"
TO_ORDERS = rf"DIRECT=OS:alpha\{ORDERS}"
MESSAGE = {"body": "78", "label": "l", "recoverable": True}
REQUESTS: tuple[dict[str, Any], ...] = (
    {"op": "status"},
    {"op": "create", "queue": "private$\\new", "transactional": True},
    {"op": "set", "queue": ORDERS, "journal": True, "quota": 5},
    {"op": "send", "to": TO_ORDERS, "messages": [MESSAGE, MESSAGE]},
    {"op": "list"},
    {"op": "show", "queue": ORDERS},
    {"op": "peek", "queue": ORDERS, "count": 2, "after": 0},
    {"op": "receive", "queue": ORDERS, "count": 1, "wait_ms": 1},
    {"op": "end", "done": [1], "back": [2]},
    {"op": "subscribe", "subscription": 1, "queue": ORDERS, "window": 2},
    {"op": "done", "subscription": 1, "upto": 1},
    {"op": "unsubscribe", "subscription": 1, "upto": 2},
    {"op": "peek", "queue": ORDERS, "records": True},
    {"op": "open_cursor", "queue": ORDERS},
    {"op": "read", "queue": ORDERS, "action": "peek", "cursor": 1, "transaction": 1},
    {"op": "cancel", "read": 1},
    {"op": "close_cursor", "cursor": 1},
    {"op": "begin"},
    {"op": "move", "queue": ORDERS, "to": ORDERS + ";sub", "lookup_id": 1},
    {"op": "abort", "transaction": 1},
    {"op": "commit", "transaction": 1},
    {"op": "purge", "queue": ORDERS},
    {"op": "refresh_keys"},
    {"op": "keep_peer_keys", "keys": {}},
    {"op": "delete", "queue": ORDERS},
)


class Pipe:
    """A transport that keeps all bytes written to it."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading


class EchoServer:
    """A server whose sessions answer with the request, and refuse one without a text as op."""

    is_open = True
    is_crowded = False

    def new_session(self, client: object) -> EchoServer:
        return self

    async def run(self, request: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(request.get("op"), str):
            raise InvalidValue("no operation", path="op")
        return {"request": request}

    def notify(self, request: dict[str, Any]) -> bool:
        return False

    def stop_waiting(self) -> None:
        pass

    close = stop_waiting

    def forget(self, client: object) -> None:
        pass


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


async def _answered(server: object, data: bytes, choice: int) -> bytes:
    """Return all that a client is answered whose bytes come in these pieces."""
    client, pipe = _Client(cast(ControlServer, server)), Pipe()
    client.connection_made(cast(asyncio.Transport, pipe))
    for piece in pieces(data, choice):
        client.data_received(piece)
        await asyncio.sleep(0)
    await client.finish()
    return bytes(pipe.written)


def _lines() -> Iterator[bytes]:
    written = [json.dumps({"id": number, **request}).encode() for number, request in enumerate(REQUESTS)]
    yield b"\x05" + b"\n".join(written[:6]) + b"\n"
    yield b"\0" + b'[]\n{}\nnull\n{"id": [1]}\n\xff\n' + written[0] + b"\n" + written[1][:5]


def _words() -> Iterator[bytes]:
    yield from (
        b'"id":',
        b'"op":',
        b"\n",
        b"null",
        b"[]",
        b"{}",
        b"1e999",
        b"-1",
        b"18446744073709551616",
        b"NaN",
    )
    for request in REQUESTS:
        for name, value in request.items():
            yield json.dumps(name).encode()
            if isinstance(value, str):
                yield json.dumps(value).encode()


@target(seeds=_lines, words=_words, size_max=1024)
def lines(data: bytes) -> None:
    """Every line has its answer, with its id, wherever the bytes are cut; requests in their order."""
    if not data:
        return
    whole = _loop().run_until_complete(_answered(EchoServer(), data[1:], 0)).splitlines()
    again = _loop().run_until_complete(_answered(EchoServer(), data[1:], data[0])).splitlines()
    assert sorted(again) == sorted(whole)
    *requests, _ = data[1:].split(b"\n")
    started, refused = list[str](), 0
    for request in requests:
        try:
            sent = json.loads(request)
        except (ValueError, RecursionError):
            sent = None
        if isinstance(sent, dict):
            started.append(json.dumps([sent.get("id"), isinstance(sent.get("op"), str)]))
        else:
            refused += 1
    for lines_ in (whole, again):
        answers = [json.loads(line) for line in lines_]
        shown = [json.dumps([answer["id"], "answer" in answer]) for answer in answers]
        at_once = json.dumps([None, False])
        assert len(shown) == len(started) + refused
        assert [line for line in shown if line != at_once] == [line for line in started if line != at_once]


async def _operated(data: bytes) -> bytes:
    store = memory_store()
    core = open_core(store, "alpha")
    driver = EngineDriver(core, store)
    driver.start()
    driver.call(queues.create, core, {"queue": ORDERS})
    server = ControlServer(
        lambda sink: LocalSession(driver, sink=sink), cast(Any, None), refused=lambda: False
    )
    answers = await _answered(server, data, 0)
    assert server.clients == 0
    driver.abandon()
    return answers


def _operations() -> Iterator[bytes]:
    written = [
        json.dumps({"id": number, **request}).encode() + b"\n" for number, request in enumerate(REQUESTS)
    ]
    yield b"".join(written)
    yield from written
    for line in written[4:]:
        yield written[3] + line


@target(seeds=_operations, words=_words, size_max=2048)
def operations(data: bytes) -> None:
    """Any requests to a queue manager are answered, and refused by errors of ours, never by a fault."""
    answers: list[bytes] = []
    incoming = Incoming(answers.append, lambda subscription, receipt, record: None)
    incoming.feed(_loop().run_until_complete(_operated(data)))
    assert incoming.is_empty
    for answer in map(json.loads, answers):
        if "error" in answer:
            assert answer["error"]["kind"] in (VALUE, NAME, QUEUE), (FAULT, answer)
            assert answer["error"]["error"]
        else:
            assert isinstance(answer["answer"], dict)
