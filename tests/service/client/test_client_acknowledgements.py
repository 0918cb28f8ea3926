"""Acknowledgements and the outcome of messages, as the client that sent them sees them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from msmqwire.constants import MessageClass
from msmqwire.errors import InvalidValue, NotDelivered, Unreachable
from msmqwire.qm.client import Sent
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.server import SETTINGS
from tests.support.patience import limit
from tests.support.running import InThread, options, served
from tests.support.sending import LEDGER, ORDERS, arrived, connect, messages, receive_one, run

NOWHERE = r"private$\nothing"


@pytest.fixture
def outspoken(tmp_path: Path) -> Iterator[InThread]:
    """A server that tells unknown senders why it refuses a message."""
    settings = replace(SETTINGS, send_insecure_nacks=True)
    with served(options(tmp_path / "alpha", ORDERS, f"{LEDGER};transactional", settings=settings)) as server:
        yield server


@pytest.mark.parametrize("properties", [{}, {"recoverable": True}, {"transactional": True}], ids=str)
def test_arrived_and_received(server: InThread, properties: dict[str, Any]) -> None:
    queue = LEDGER if "transactional" in properties else ORDERS
    requested = ("pos_arrival", "pos_receive")
    with connect(server, queue) as client:
        sent = client.send(b"x", acknowledge=requested, **properties)
        arrival = sent.arrived()
        assert (arrival.class_name, arrival.negative, arrival.about_receive) == (
            "ACK_REACH_QUEUE", False, False,
        )  # fmt: skip
        receive_one(server, queue)
        receipt = sent.received()
        assert (receipt.class_name, receipt.negative, receipt.about_receive) == (
            "ACK_RECEIVE", False, True,
        )  # fmt: skip
        assert sent.acknowledgements == [arrival, receipt]
        assert 0 <= receipt.time - arrival.time < 3600


def test_each_message_has_its_own(server: InThread) -> None:
    async def send() -> None:
        async with connect(server) as client:
            sent = [await client.send(b"%d" % n, acknowledge="full_reach_queue") for n in range(100)]
            await asyncio.gather(*(message.arrived() for message in sent))
            assert [len(message.acknowledgements) for message in sent] == [1] * 100

    run(send())


def test_many_may_wait_for_the_same(server: InThread) -> None:
    async def send() -> None:
        async with connect(server) as client:
            sent = await client.send(b"x", acknowledge=["full_reach_queue", "pos_receive"])
            waiting = [asyncio.ensure_future(sent.received()) for _ in range(5)]
            waiting += [asyncio.ensure_future(sent.acknowledged(MessageClass.MQMSG_CLASS_ACK_RECEIVE))]
            await sent.arrived()
            await asyncio.get_running_loop().run_in_executor(None, receive_one, server)
            assert len(set(await asyncio.gather(*waiting))) == 1
            assert (await sent.acknowledged()).class_name == "ACK_REACH_QUEUE"

    run(send())


def test_acknowledged_waits_for_one_of_the_classes(server: InThread) -> None:
    with connect(server) as client:
        sent = client.send(b"x", acknowledge="full_receive")
        classes = (MessageClass.MQMSG_CLASS_NACK_Q_PURGED, MessageClass.MQMSG_CLASS_ACK_RECEIVE)
        arrived(server, 1)
        receive_one(server)
        assert sent.acknowledged(*classes).message_class == MessageClass.MQMSG_CLASS_ACK_RECEIVE


# -- negative -------------------------------------------------------------------------------------------


def check_refusal(caught: Any, sent: Any, name: str) -> None:
    """Check that a message was not delivered, because of an acknowledgement of this class."""
    expected = MessageClass[f"MQMSG_CLASS_{name}"]
    assert (caught.value.message_class, caught.value.why) == (expected, name)
    assert caught.value.identifier == sent.identifier
    assert sent.identifier in str(caught.value)


@pytest.mark.parametrize(
    "queue, properties, name",
    [
        (NOWHERE, {}, "NACK_BAD_DST_Q"),
        (NOWHERE, {"recoverable": True}, "NACK_BAD_DST_Q"),
        (NOWHERE, {"transactional": True}, "NACK_BAD_DST_Q"),
        (ORDERS, {"transactional": True}, "NACK_NOT_TRANSACTIONAL_Q"),
        (LEDGER, {"recoverable": True}, "NACK_NOT_TRANSACTIONAL_MSG"),
    ],
)
def test_refused(outspoken: InThread, queue: str, properties: dict[str, Any], name: str) -> None:
    with connect(outspoken, queue) as client:
        sent = client.send(b"x", acknowledge="full_reach_queue", **properties)
        with pytest.raises(NotDelivered) as caught:
            sent.arrived()
        check_refusal(caught, sent, name)
        with pytest.raises(NotDelivered):
            sent.arrived()
        assert [ack.class_name for ack in sent.acknowledgements] == [name]


def test_a_silent_server_says_nothing(server: InThread) -> None:
    with connect(server, NOWHERE) as client:
        sent = client.send(b"x", acknowledge="full_reach_queue")
        sent.transferred()
        with pytest.raises(TimeoutError, match=r"no acknowledgement within 0\.2 s"):
            sent.arrived(timeout=0.2)


@pytest.mark.parametrize("end, name", [("purge", "NACK_Q_PURGED"), ("delete", "NACK_Q_DELETED")])
def test_purged_and_deleted(server: InThread, end: str, name: str) -> None:
    with connect(server) as client:
        sent = client.send(b"x", acknowledge="full_receive")
        arrived(server, 1)
        with attach(server.data) as local:
            local.call(end, queue=ORDERS)
        with pytest.raises(NotDelivered) as caught:
            sent.received()
        check_refusal(caught, sent, name)


def test_not_received_in_time(server: InThread) -> None:
    with connect(server) as client:
        sent = client.send(b"x", acknowledge="full_receive", time_to_be_received=1)
        with pytest.raises(NotDelivered) as caught:
            sent.received()
        check_refusal(caught, sent, "NACK_RECEIVE_TIMEOUT")
    assert messages(server) == []


@pytest.mark.parametrize("properties", [{}, {"recoverable": True}, {"transactional": True}], ids=str)
def test_not_there_in_time(server: InThread, properties: dict[str, Any]) -> None:
    with connect(server, port=1) as client:
        sent = client.send(b"x", acknowledge="full_reach_queue", time_to_reach_queue=1, **properties)
        with pytest.raises(NotDelivered) as caught:
            sent.arrived()
        check_refusal(caught, sent, "NACK_REACH_QUEUE_TIMEOUT")
        with pytest.raises(NotDelivered, match="its time to reach the queue was over"):
            sent.transferred()


def test_given_up_without_an_acknowledgement(server: InThread) -> None:
    with connect(server, port=1) as client:
        sent = client.send(b"x", acknowledge="pos_arrival", time_to_reach_queue=1)
        with pytest.raises(NotDelivered, match="its time to reach the queue was over") as caught:
            sent.arrived()
        assert caught.value.message_class is None


def test_one_of_several_queues_refuses(outspoken: InThread) -> None:
    with connect(outspoken, rf"{ORDERS},DIRECT=TCP:{outspoken.address}\{NOWHERE}") as client:
        sent = client.send(b"x", acknowledge="full_reach_queue")
        with pytest.raises(NotDelivered) as caught:
            sent.arrived()
        check_refusal(caught, sent, "NACK_BAD_DST_Q")
    assert len(messages(outspoken)) == 1


# -- not requested, and where they go -------------------------------------------------------------------


def test_what_was_not_asked_for_is_not_waited_for(server: InThread) -> None:
    async def send() -> None:
        async with connect(server) as client:
            plain: Sent = await client.send(b"x")
            arrival = await client.send(b"x", acknowledge="full_reach_queue")
            elsewhere = await client.send(b"x", acknowledge="full_receive", admin_queue="DIRECT=OS:x\\a")
            waits = (
                plain.arrived, plain.received, plain.acknowledged, arrival.received, elsewhere.received,
                elsewhere.acknowledged,
            )  # fmt: skip
            for wait in waits:
                with pytest.raises(InvalidValue, match=r"not asked for|no acknowledgement") as caught:
                    await wait()
                assert caught.value.path == "acknowledge"

    run(send())


def test_they_go_to_the_queue_that_is_named(server: InThread) -> None:
    with attach(server.data) as local:
        local.call("create", queue=r"private$\answers")
    with connect(server) as client:
        sent = client.send(
            b"x", acknowledge="full_reach_queue", admin_queue=r"DIRECT=OS:alpha\private$\answers"
        )
        arrived(server, 1, r"private$\answers")
    (ack,) = messages(server, r"private$\answers")
    assert (ack["class_name"], ack["correlation"]) == ("ACK_REACH_QUEUE", sent.identifier)


def test_they_come_to_where_the_client_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.33", 0)) as reserved:
        port = reserved.getsockname()[1]
    overrides = AddressOverrides(hosts={"127.0.0.33": ("127.0.0.33", port)})
    listen = ("127.0.0.33", port)
    with (
        served(options(tmp_path / "alpha", ORDERS, overrides=overrides)) as server,
        connect(server, listen=listen) as client,
    ):
        sent = client.send(b"x", acknowledge="full_receive", recoverable=True)
        sent.transferred()
        receive_one(server)
        assert sent.received().class_name == "ACK_RECEIVE"
        assert server.do(lambda running: running.network.traffic.connected if running.network else 0) == 1


# -- the end of waiting ---------------------------------------------------------------------------------


def test_waiting_calls_end_when_it_is_left(server: InThread) -> None:
    async def send() -> None:
        async with connect(server) as client:
            sent = await client.send(b"x", acknowledge="full_receive")
            waits = [asyncio.ensure_future(wait()) for wait in (sent.received, sent.acknowledged)]
            await sent.transferred()
        for waiting in waits:
            with pytest.raises(Unreachable, match="the connection was left"):
                await waiting
        await sent.transferred()  # this is known
        with pytest.raises(Unreachable, match="the connection was left"):
            await sent.received(timeout=limit(60))

    run(send())


def test_an_aborted_transaction_tells_its_messages(server: InThread) -> None:
    async def send() -> None:
        async with connect(server, LEDGER) as client:
            try:
                async with client.transaction() as transaction:
                    sent = transaction.send(b"x", acknowledge="full_receive")
                    _ = 1 // 0
            except ZeroDivisionError:
                with pytest.raises(NotDelivered, match="its transaction was aborted"):
                    await sent.transferred()

    run(send())


def test_a_cancelled_wait_leaves_the_others(server: InThread) -> None:
    async def send() -> None:
        async with connect(server) as client:
            sent = await client.send(b"x", acknowledge=["full_reach_queue", "full_receive"])
            await sent.arrived()
            cancelled, other = (asyncio.ensure_future(sent.received()) for _ in range(2))
            await asyncio.sleep(0)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            await asyncio.get_running_loop().run_in_executor(None, receive_one, server)
            assert (await other).class_name == "ACK_RECEIVE"

    run(send())
