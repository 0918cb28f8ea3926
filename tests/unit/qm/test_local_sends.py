"""Messages to queues of the same queue manager: delivered at once, with acknowledgements and journaling."""

from __future__ import annotations

from uuid import uuid4

import pytest

from msmqwire.constants import HResult, MessageClass
from msmqwire.errors import InvalidValue
from msmqwire.names import PrivateName, parse_format_name
from msmqwire.qm.core import Core
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import AcknowledgementsRequested, DeliveryGuarantee, QueueAccessType
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.store import memory_store


def core() -> Core:
    manager = Core(memory_store(), new_guid=uuid4, computer_name="alpha", quota=1 << 30)
    manager.at(0, 1_700_000_000)
    manager.start()
    return manager


def queue(manager: Core, name: str, *, transactional: bool = False) -> Queue:
    template = Queue(NULL_GUID)
    manager.queues.set_defaults(template)
    template.pathname, template.transactional = f"alpha\\private$\\{name}", transactional
    _, created = manager.queues.create(template)
    assert created is not None
    return created


def bodies(opened: Queue | None) -> list[bytes]:
    assert opened is not None
    return [position.message.body for position in opened.positions]


def message(manager: Core, admin: Queue, body: bytes) -> Message:
    return Message(
        body=body,
        acknowledgements_requested=AcknowledgementsRequested.ACK_FULL_REACH_QUEUE,
        administration=PrivateName(manager.queue_manager.identifier, admin.private_queue_number),
        positive_journaling_requested=True,
    )


def test_a_local_message_is_acknowledged_and_journaled_once() -> None:
    manager = core()
    orders, admin = queue(manager, "orders"), queue(manager, "admin")
    name = parse_format_name("DIRECT=OS:alpha\\private$\\orders")
    _, opened = manager.queues.open(name, QueueAccessType.SEND_ACCESS)
    assert opened is not None
    assert manager.send(opened, message(manager, admin, b"m")) == 0
    assert bodies(orders) == [b"m"]
    assert bodies(manager.queue_manager.system_journal_queue) == [b"m"]
    classes = [position.message.message_class for position in admin.positions]
    assert classes == [MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE]


def test_a_local_transaction_is_acked_with_its_commit_only() -> None:
    manager = core()
    orders, admin = queue(manager, "orders", transactional=True), queue(manager, "admin")
    name = parse_format_name("DIRECT=OS:alpha\\private$\\orders")
    _, opened = manager.queues.open(name, QueueAccessType.SEND_ACCESS)
    assert opened is not None
    new_guid = manager.context.new_guid
    aborted, committed = manager.transactions.create(new_guid()), manager.transactions.create(new_guid())
    manager.send(opened, message(manager, admin, b"no"), aborted)
    manager.send(opened, message(manager, admin, b"yes"), committed)
    assert not len(admin.positions)
    manager.transactions.abort(aborted.identifier)
    manager.commit(committed)
    assert bodies(orders) == bodies(manager.queue_manager.system_journal_queue) == [b"yes"]
    assert len(admin.positions) == 1


def test_the_queue_says_whether_a_transaction_is_needed() -> None:
    manager = core()
    queue(manager, "plain")
    queue(manager, "ordered", transactional=True)
    transaction = manager.transactions.create(manager.context.new_guid())
    for name, used in (("plain", transaction), ("ordered", None)):
        _, opened = manager.queues.open(
            parse_format_name(f"DIRECT=OS:alpha\\private$\\{name}"), QueueAccessType.SEND_ACCESS
        )
        assert opened is not None
        assert opened.queue is not None
        assert manager.send(opened, Message(), used) == HResult.MQ_ERROR_TRANSACTION_USAGE
        assert not len(opened.queue.positions)


@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.parametrize("host", ["alpha", "beta"])
def test_a_message_unfit_for_a_packet_changes_no_state(host: str, recoverable: bool) -> None:
    manager = core()
    queue(manager, "orders")
    name = parse_format_name(f"DIRECT=OS:{host}\\private$\\orders")
    _, opened = manager.queues.open(name, QueueAccessType.SEND_ACCESS)
    assert opened is not None
    assert opened.queue is not None
    too_long = Message(label="x" * 300, delivery_guarantee=DeliveryGuarantee(recoverable))
    with pytest.raises(InvalidValue, match="Label"):
        manager.send(opened, too_long)
    assert not len(opened.queue.positions)
    assert manager.queue_manager.total_bytes == 0


def test_a_sent_message_cannot_be_sent_again() -> None:
    manager = core()
    orders = queue(manager, "orders")
    _, opened = manager.queues.open(
        parse_format_name("DIRECT=OS:alpha\\private$\\orders"), QueueAccessType.SEND_ACCESS
    )
    assert opened is not None
    sent = Message(body=b"m")
    manager.send(opened, sent)
    with pytest.raises(InvalidValue, match="has been sent"):
        manager.send(opened, sent)
    assert bodies(orders) == [b"m"]
