"""The order of messages on a session against a search through all of its transfers."""

from __future__ import annotations

import random
import sys
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.names import DirectName
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.enumerations import OutgoingQueueState
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.states import SessionMessageState, SessionRole
from msmqwire.qm.protocols.binary.transfer import OutgoingMessagePosition, SessionTransfer

CONNECTED, HELD = OutgoingQueueState.CONNECTED, OutgoingQueueState.LOCKED


def urgency(message: OutgoingMessagePosition) -> tuple[int, int]:
    return message.transfer.queue.base_priority + message.priority, -message.position.number


class Scene:
    """Transfers that change sessions and states as the engine lets them."""

    def __init__(self, transfers: int, base_priorities: list[int] | None = None) -> None:
        self.sessions = [Session(number, SessionRole.INITIATOR, None) for number in range(2)]
        self.transfers: list[SessionTransfer] = []
        self.positions = 0
        for number in range(transfers):
            name = DirectName("TCP", "192.0.2.1", f"q{number}")
            queue = OutgoingQueue(UUID(int=number), destination=name)
            queue.base_priority = base_priorities[number] if base_priorities else 0
            self.transfers.append(SessionTransfer(queue, ("host", "192.0.2.1"), "192.0.2.1", direct=True))

    def serve(self, transfer: SessionTransfer, session: Session) -> None:
        """Let a session serve a transfer, which sends again what was sent over another one."""
        if transfer.session is not None:
            transfer.session.transfers.remove(transfer)
        transfer.session = session
        session.transfers.append(transfer)
        transfer.queue.state = CONNECTED
        sent = [
            message
            for message in transfer.table.values()
            if message.state is not SessionMessageState.WAITING_TO_SEND
        ]
        transfer.send_again(sent)

    def add(self, transfer: SessionTransfer, priority: int) -> None:
        """Add a message."""
        self.positions += 1
        transfer.add(MessagePosition(transfer.queue, self.positions, self.positions, 1), priority)

    def hold(self, transfer: SessionTransfer) -> None:
        """Pause a queue, or resume it."""
        held = transfer.queue.state is HELD
        transfer.queue.state = CONNECTED if held else HELD
        if held and transfer.session is not None:
            transfer.session.send_order.enter(transfer)

    def most_urgent(self, session: Session) -> OutgoingMessagePosition | None:
        """Return the message that is next, looking at all transfers."""
        first = [
            message
            for transfer in session.transfers
            if transfer.queue.state is CONNECTED and (message := transfer.next_waiting()) is not None
        ]
        return max(first, key=urgency, default=None)


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=6),
    st.lists(st.tuples(st.sampled_from("aaaassserhm"), st.integers(0, 5), st.integers(0, 7)), max_size=80),
)
def test_the_next_message_is_the_most_urgent_one(base_priorities, operations):
    scene = Scene(len(base_priorities), base_priorities)
    for transfer in scene.transfers:
        scene.serve(transfer, scene.sessions[0])
    for operation, number, priority in operations:
        transfer = scene.transfers[number % len(scene.transfers)]
        session = transfer.session
        assert session is not None
        match operation:
            case "a":
                scene.add(transfer, priority)
            case "s":
                if (message := session.send_order.first()) is not None:
                    message.state = SessionMessageState.WAITING_FOR_SESSION_ACK
            case "e":  # one of the messages expires
                if transfer.table:
                    transfer.remove(list(transfer.table.values())[priority % len(transfer.table)])
            case "r":
                transfer.send_again(
                    [m for m in transfer.table.values() if m.state is not SessionMessageState.WAITING_TO_SEND]
                )
            case "h":
                scene.hold(transfer)
            case "m":
                scene.serve(transfer, scene.sessions[priority % 2])
        for each in scene.sessions:
            assert each.send_order.first() is scene.most_urgent(each)


@pytest.mark.parametrize("waiting", [False, True], ids=["idle", "all waiting"])
def test_a_message_does_not_look_at_all_transfers(waiting):
    """One session of a peer can cause thousands of queues: each message has another administration queue."""
    scene = Scene(2_000)
    session = scene.sessions[0]
    for transfer in scene.transfers:
        scene.serve(transfer, session)
        if waiting:
            scene.add(transfer, 3)
    for number in random.Random(1).sample(range(2_000), 500):
        scene.add(scene.transfers[number], 3)
        lines = 0

        def trace(frame, event, argument):
            nonlocal lines
            lines += 1
            return trace

        sys.settrace(trace)
        try:
            message = session.send_order.first()
            assert message is not None
            message.state = SessionMessageState.WAITING_FOR_SESSION_ACK
            session.send_order.first()
        finally:
            sys.settrace(None)
        assert lines < 200


def test_messages_that_expire_are_not_kept():
    """While a peer acknowledges nothing, what has expired meanwhile leaves the order."""
    scene = Scene(2)
    urgent, other = scene.transfers
    for transfer in scene.transfers:
        scene.serve(transfer, scene.sessions[0])
    scene.add(urgent, 7)
    for _ in range(1_000):
        scene.add(other, 0)
        other.remove(next(iter(other.table.values())))
    assert len(scene.sessions[0].send_order._heap) < 50
