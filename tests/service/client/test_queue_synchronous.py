"""Queues as objects without asyncio."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import pytest

import msmqwire
from msmqwire.errors import InvalidValue, QueueError, ReadTimeout
from tests.support.patience import limit
from tests.support.qm.queues import POISON
from tests.support.running import LEDGER, ORDERS


def test_all_that_a_queue_does(folder: Path) -> None:
    with msmqwire.attach(folder) as manager:
        queue, poison = manager.queue(ORDERS), manager.queue(POISON)
        for body in (b"1", b"2", b"3", b"4"):
            queue.send(body, recoverable=True).transferred(0)
        first = queue.peek(0)
        assert queue.peek_by_lookup(first.lookup_identifier, "next").body == b"2"
        assert queue.receive_by_lookup(first.lookup_identifier, "next").body == b"2"
        with queue.cursor() as cursor:
            assert (cursor.peek(0).body, cursor.peek_next(0).body, cursor.receive(0).body) == (
                b"1",
                b"3",
                b"3",
            )
            assert [message.body for message in cursor] == [b"4"]
        with queue.receiving(0) as message:
            assert message.body == b"1"
        with suppress(ZeroDivisionError), queue.receiving(0) as message:
            assert message.body == b"4"
            raise ZeroDivisionError
        queue.move(queue.peek(0), POISON)
        for message in poison:
            assert message.body == b"4"
            break
        with pytest.raises(ReadTimeout):
            poison.receive(0)
        queue.send(b"5", recoverable=True)
        queue.purge()
        with pytest.raises(ReadTimeout):
            queue.peek(0)
        with pytest.raises(QueueError) as missing:
            manager.queue(r"private$\nothing").receive(0)
        assert missing.value.name == "MQ_ERROR_QUEUE_NOT_FOUND"
        assert (manager.name, queue.format_name) == ("alpha", r"DIRECT=OS:alpha\PRIVATE$\orders")
    with pytest.raises(InvalidValue, match="it was left"):
        queue.receive(0)


def test_transactions(folder: Path) -> None:
    with msmqwire.attach(folder) as manager:
        queue = manager.create_queue(LEDGER, transactional=True)
        with queue.transaction() as transaction:
            transaction.send(b"1")
            queue.send(b"2", transaction=transaction)
        with suppress(ZeroDivisionError), queue.transaction() as transaction:
            assert queue.receive(0, transaction=transaction).body == b"1"
            raise ZeroDivisionError
        with queue.transaction() as transaction:
            assert queue.receive(0, transaction=transaction).body == b"1"
        assert queue.receive(0).body == b"2"
        with pytest.raises(InvalidValue) as caught:
            queue.receive(0, transaction="t")  # type: ignore[arg-type]
        assert caught.value.path == "transaction"


def test_threads_share_a_queue_and_leaving_ends_their_waiting(folder: Path) -> None:
    received, codes = list[bytes](), list[str]()

    def take() -> None:
        try:
            for message in queue:
                received.append(message.body)
        except QueueError as exc:
            codes.append(exc.name)

    with msmqwire.attach(folder) as manager:
        queue = manager.queue(ORDERS)
        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(40):
            queue.send(b"%d" % number, recoverable=True)
        done = threading.Event()
        while len(received) < 40:
            done.wait(0.01)
    for thread in threads:
        thread.join(limit(60))
    assert sorted(received) == sorted(b"%d" % number for number in range(40))
    assert codes == ["MQ_ERROR_OPERATION_CANCELLED"] * 4


def test_several_queues_are_sent_to_only() -> None:
    with msmqwire.connect(r"DIRECT=OS:one.invalid\q,DIRECT=OS:two.invalid\q") as queue:
        for read in (
            lambda: queue.receive(0),
            lambda: queue.peek(0),
            queue.purge,
            lambda: queue.move(1, POISON),
        ):
            with pytest.raises(QueueError) as caught:
                read()
            assert caught.value.name == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"
