"""``msmqwire.connect``: messages arrive as they were sent."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import msmqwire
from msmqwire.errors import InvalidValue
from tests.support.running import InThread, bodies, options, served
from tests.support.sending import LEDGER, ORDERS, arrived, connect, messages, run

pytestmark = pytest.mark.uvloop

OTHER = UUID("01234567-89ab-cdef-0123-456789abcdef")


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("delivery", ["express", "recoverable", "transactional"])
def test_each_kind_of_message_comes(server: InThread, delivery: str, plain: bool) -> None:
    queue = LEDGER if delivery == "transactional" else ORDERS
    properties: dict[str, Any] = {} if delivery == "express" else {delivery: True}
    if plain:
        with connect(server, queue) as client:
            sent = client.send(b"\0body\xff", label="one", **properties)
            sent.transferred()
    else:

        async def send() -> Any:
            async with connect(server, queue) as client:
                sent = await client.send(b"\0body\xff", label="one", **properties)
                await sent.transferred()
                return sent

        sent = run(send())
    (message,) = messages(server, queue)
    assert (message["delivery"], message["label"], b64decode(message["body"])) == (
        delivery,
        "one",
        b"\0body\xff",
    )
    assert message["identifier"] == sent.identifier
    assert sent.acknowledgements == []


def test_leaving_waits_until_all_is_there(server: InThread) -> None:
    expected = [b"%d" % number for number in range(500)]
    with connect(server) as client:
        for body in expected:
            client.send(body, recoverable=True)
    assert bodies(messages(server)) == expected


PROPERTIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "label": ({"label": "\N{SNOWMAN} " + "x" * 247}, {"label": "\N{SNOWMAN} " + "x" * 247}),
    "recoverable": ({"recoverable": True}, {"delivery": "recoverable"}),
    "acknowledge": (
        {"acknowledge": ["pos_arrival", "neg_receive"], "admin_queue": r"DIRECT=OS:x\private$\a"},
        {"acknowledge": ["pos_arrival", "neg_receive"], "admin_queue": r"DIRECT=OS:x\PRIVATE$\a"},
    ),
    "response_queue": (
        {"response_queue": rf"PRIVATE={OTHER}\a"}, {"response_queue": rf"PRIVATE={OTHER}\0000000a"},
    ),
    "correlation as text": ({"correlation": rf"{OTHER}\7"}, {"correlation": rf"{OTHER}\7"}),
    "correlation as bytes": (
        {"correlation": OTHER.bytes_le + (7).to_bytes(4, "little")}, {"correlation": rf"{OTHER}\7"},
    ),
    "lowest priority": ({"priority": 0}, {"priority": 0}),
    "highest priority": ({"priority": 7}, {"priority": 7}),
    "body_type": ({"body_type": 0x1011}, {"body_type": 0x1011}),
    "message_class": ({"message_class": 0x01}, {"class": 0x01}),
    "application": ({"application": 0xFFFFFFFF}, {"application": 0xFFFFFFFF}),
    "extension": ({"extension": b"\0more"}, {"extension": "AG1vcmU="}),
    "journal": ({"journal": True}, {"journal": True}),
    "dead_letter": ({"dead_letter": True}, {"dead_letter": True}),
    "time_to_reach_queue": ({"time_to_reach_queue": 3600}, {"time_to_reach_queue": 3600}),
    "time_to_be_received": ({"time_to_be_received": 7200}, {"time_to_be_received": 7200}),
}  # fmt: skip
DEFAULTS = {
    "label": "", "body": "", "body_type": 0, "class": 0, "delivery": "express", "priority": 3,
    "time_to_reach_queue": 4 * 86_400, "time_to_be_received": None, "acknowledge": [], "admin_queue": None,
    "response_queue": None, "correlation": None, "application": 0, "extension": None, "journal": False,
    "dead_letter": False, "hops": 0,
}  # fmt: skip


@pytest.mark.parametrize("name", PROPERTIES)
def test_each_property_comes_as_it_is_and_no_other_is_set(server: InThread, name: str) -> None:
    properties, expected = PROPERTIES[name]
    with connect(server) as client:
        client.send(**properties)
    (message,) = messages(server)
    all_expected = {**DEFAULTS, **expected}
    for limit in ("time_to_reach_queue", "time_to_be_received"):
        if all_expected[limit] is not None:  # some of it may have elapsed
            assert all_expected[limit] - 600 <= message[limit] <= all_expected[limit]
            all_expected[limit] = message[limit]
    assert {key: message[key] for key in all_expected} == all_expected


def test_all_properties_at_once(server: InThread) -> None:
    properties: dict[str, Any] = {}
    expected: dict[str, Any] = {}
    for name, (values, result) in PROPERTIES.items():
        if not name.startswith("time"):
            properties |= values
            expected |= result
    with connect(server) as client:
        client.send(b"body", **properties)
    (message,) = messages(server)
    assert {key: message[key] for key in expected} == expected
    assert b64decode(message["body"]) == b"body"


@pytest.mark.parametrize("text", ["", "text", "\N{SNOWMAN}\N{PILE OF POO}\0", "\ud800"])
def test_a_text_is_a_bstr(server: InThread, text: str) -> None:
    with connect(server) as client:
        client.send(text)
        client.send(text, body_type=31)
    received = messages(server)
    assert [(message["body_type"], b64decode(message["body"])) for message in received] == [
        (8, text.encode("utf-16-le", "surrogatepass")),
        (31, text.encode("utf-16-le", "surrogatepass")),
    ]


@pytest.mark.parametrize("body", [bytearray(b"abc"), memoryview(b"xabc")[1:]])
def test_other_kinds_of_bytes(server: InThread, body: Any) -> None:
    with connect(server) as client:
        client.send(body)
    assert bodies(messages(server)) == [b"abc"]


@pytest.mark.parametrize("size", [0, 1, 65_536, 4_000_000])
def test_bodies_of_all_sizes(server: InThread, size: int) -> None:
    with connect(server) as client:
        client.send(b"\xa5" * size, recoverable=True)
    assert bodies(messages(server)) == [b"\xa5" * size]


# -- transactions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True])
def test_the_messages_of_a_transaction_come_all_in_their_order(server: InThread, plain: bool) -> None:
    expected = [b"%d" % number for number in range(50)]
    if plain:
        with connect(server, LEDGER) as client, client.transaction() as transaction:
            for body in expected:
                transaction.send(body, label="tx")
    else:

        async def send() -> None:
            async with connect(server, LEDGER) as client, client.transaction() as transaction:
                for body in expected:
                    transaction.send(body, label="tx")

        run(send())
    received = messages(server, LEDGER)
    assert bodies(received) == expected
    assert {message["delivery"] for message in received} == {"transactional"}


@pytest.mark.parametrize("plain", [False, True])
def test_an_exception_sends_nothing_of_the_transaction(server: InThread, plain: bool) -> None:
    if plain:
        with connect(server, LEDGER) as client:
            with suppress(ZeroDivisionError), client.transaction() as transaction:
                transaction.send(b"not this")
                _ = 1 // 0
            client.send(b"but this", transactional=True)
    else:

        async def send() -> None:
            async with connect(server, LEDGER) as client:
                with suppress(ZeroDivisionError):
                    async with client.transaction() as transaction:
                        transaction.send(b"not this")
                        _ = 1 // 0
                await client.send(b"but this", transactional=True)

        run(send())
    assert bodies(messages(server, LEDGER)) == [b"but this"]


def test_an_invalid_message_aborts_the_transaction_unless_caught(server: InThread) -> None:
    with connect(server, LEDGER) as client:
        with suppress(InvalidValue), client.transaction() as transaction:
            transaction.send(b"not this")
            transaction.send(b"nor this", priority=8)
        with client.transaction() as transaction:
            transaction.send(b"1")
            with pytest.raises(InvalidValue):
                transaction.send(b"2", label="x" * 250)
            transaction.send(b"3")
    assert bodies(messages(server, LEDGER)) == [b"1", b"3"]


def test_overlapping_transactions_arrive_in_commit_order(server: InThread) -> None:
    async def send() -> None:
        async with connect(server, LEDGER) as client:
            async with client.transaction() as outer:
                outer.send(b"outer 1")
                async with client.transaction() as inner:
                    inner.send(b"inner 1")
                    outer.send(b"outer 2")
                    inner.send(b"inner 2")
            await client.send(b"last", transactional=True)

    run(send())
    assert bodies(messages(server, LEDGER)) == [b"inner 1", b"inner 2", b"outer 1", b"outer 2", b"last"]


# -- several clients and queues -------------------------------------------------------------------------


def test_two_clients_at_once(server: InThread) -> None:
    async def send(name: bytes) -> None:
        async with connect(server, LEDGER) as client:
            for number in range(100):
                await client.send(b"%s %d" % (name, number), transactional=True)

    async def send_both() -> None:
        await asyncio.gather(send(b"first"), send(b"second"))

    run(send_both())
    received = bodies(messages(server, LEDGER))
    for name in (b"first", b"second"):
        assert [body for body in received if body.startswith(name)] == [
            b"%s %d" % (name, n) for n in range(100)
        ]
    assert len(received) == 200


def test_one_message_to_several_queues(server: InThread, tmp_path: Path) -> None:
    with served(options(tmp_path / "beta", ORDERS, address="127.0.0.32", name="beta")) as beta:
        names = [rf"DIRECT=TCP:{receiver.address}\{ORDERS}" for receiver in (server, beta)]
        hosts = {"127.0.0.32": ("127.0.0.32", beta.port)}
        with connect(server, f"{ORDERS},{names[1]}", hosts=hosts) as client:
            sent = client.send(b"for both", recoverable=True, acknowledge="full_reach_queue")
            assert sent.arrived().class_name == "ACK_REACH_QUEUE"
            assert len(sent.acknowledgements) == 2
        for receiver in (server, beta):
            (message,) = messages(receiver)
            assert (b64decode(message["body"]), message["identifier"]) == (b"for both", sent.identifier)


def test_one_message_to_several_transactional_queues(server: InThread, tmp_path: Path) -> None:
    second = f"{LEDGER};transactional"
    with served(options(tmp_path / "beta", second, address="127.0.0.32", name="beta")) as beta:
        hosts = {"127.0.0.32": ("127.0.0.32", beta.port)}
        with connect(server, rf"{LEDGER},DIRECT=TCP:{beta.address}\{LEDGER}", hosts=hosts) as client:
            with client.transaction() as transaction:
                sent = [transaction.send(b"%d" % n, journal=True) for n in range(3)]
            for message in sent:
                message.transferred()
            assert bodies(messages(server, LEDGER)) == [b"0", b"1", b"2"]
            assert bodies(messages(beta, LEDGER)) == [b"0", b"1", b"2"]


def test_a_name_that_only_hosts_knows(server: InThread) -> None:
    hosts = {"Alpha.Example": (server.address, server.port)}
    with msmqwire.connect(rf"DIRECT=OS:alpha.example\{ORDERS}", port=1, hosts=hosts) as client:
        client.send(b"by name", recoverable=True)
    assert arrived(server, 1) == [b"by name"]


def test_the_computer_itself(tmp_path: Path) -> None:
    with served(options(tmp_path / "alpha", ORDERS, address="127.0.0.1")) as server:
        with msmqwire.connect(rf"DIRECT=OS:.\{ORDERS}", port=server.port) as client:
            client.send(b"to this computer")
        assert bodies(messages(server)) == [b"to this computer"]
