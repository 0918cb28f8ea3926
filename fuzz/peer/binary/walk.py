"""Walks through sessions of the binary protocol: a Hypothesis state machine whose rules are steps.

The outcome of each valid message is known, over up to three connections at a time. A breach that ends the
session is one of the steps; mutated packets go over a separate connection, for which the only expectation is
that the peer continues with the other connections.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from fuzz.peer.binary import messages
from fuzz.peer.binary.cases import MALFORMED, opened, send
from fuzz.peer.binary.live import Shift, with_counts
from fuzz.peer.steps import Step
from fuzz.peer.target import Target
from fuzz.strategies import mutated, packet_bytes
from msmqwire.packets import USER_MESSAGE
from msmqwire.schema import Record

CONNECTIONS: Final = 3
MUTATED: Final = 9
"""The connection for mutated packets."""
_LATE: Final = 1_000_000_000
_PROPERTIES: Final = st.fixed_dictionaries(
    {
        "MessageBody": st.binary(max_size=2000),
        "Label": st.text("abc\u00e4\u4e2d ", max_size=249),
        "ExtensionData": st.binary(max_size=20),
        "ApplicationTag": st.integers(0, 2**32 - 1),
        "CorrelationID": st.binary(min_size=20, max_size=20),
    }
)
_WANTS: Final = st.sampled_from([0, messages.PA, messages.NA, messages.PA | messages.NA])
_ACK: Final = messages.session_ack().to_bytes()
# Faults that end a session, by the requirement: the field and its value, or its shift.
_BREACHES: Final[tuple[tuple[tuple[str, ...], str, int], ...]] = (
    (("MQQB-3.1.5.1.2-02",), "BaseHeader.Signature", 0),
    (("MQQB-3.1.5.1.2-02",), "BaseHeader.VersionNumber", 1),
    ((MALFORMED, "MQMQ-2.2.19.1-19"), "BaseHeader.PacketSize", 15),
    (("MQMQ-2.2.19.1-21", MALFORMED), "BaseHeader.PacketSize", 0x00400001),
    ((MALFORMED, "MQMQ-2.2.18.1.5.2-05"), "UserHeader.DestinationQueue.Count", 0xFFFE),
    ((MALFORMED, "MQMQ-2.2.19.3-15"), "MessagePropertiesHeader.MessageSize", 0xFFFFFFFF),
    ((MALFORMED, "MQMQ-2.2.19.3-41"), "MessagePropertiesHeader.ExtensionSize", 0xFFFFFFFF),
)
_SHIFTS: Final = (
    (("MQQB-3.1.5.5.5-01",), Shift(sent=1)),
    (("MQQB-3.1.5.5.5-01",), Shift(recoverable=1)),
    (("MQMQ-2.2.20.4-14", MALFORMED), Shift(window=0)),
)


def walk(target: Target, perform: Callable[[Step], None]) -> type[RuleBasedStateMachine]:
    """Return the state machine of walks before a peer; it does its steps by `perform`."""
    samples = [
        messages.message(target, 0x6000_0000, wants=15),
        messages.message(target, 0x6000_0001, wants=15, recoverable=True, sequence=(1 << 33 | 1, 1, 0)),
        messages.message(target, 0x6000_0002, {"SessionHeader": {}, "UserHeader": {"Flags": {"RQ": 1}}}),
        messages.establish(),
        messages.parameters(),
        messages.session_ack(),
        messages.order_ack(1 << 33 | 1, 1),
        messages.final_ack(1 << 33 | 1, 1),
    ]
    valid = st.sampled_from([sample.to_bytes() for sample in samples])

    class Walk(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.number = self.place = 0
            self.sequence = 1 << 40
            self.breaches = 0

        def message(self, fields: dict[str, Any] | None = None, **more: Any) -> Record:
            self.number += 1
            return messages.message(target, self.number, fields, **more)

        def reopen(self, connection: int) -> None:
            for step in opened(connection):
                perform(step)

        @initialize()
        def open(self) -> None:
            for connection in range(CONNECTIONS):
                self.reopen(connection)

        @rule(
            connection=st.integers(0, CONNECTIONS - 1),
            kinds=st.lists(st.tuples(st.booleans(), _WANTS), min_size=1, max_size=5),
            properties=_PROPERTIES,
            cut=st.none() | st.integers(1, 600),
        )
        def taken(
            self, connection: int, kinds: list[tuple[bool, int]], properties: dict[str, Any], cut: int | None
        ) -> None:
            fields = {"MessagePropertiesHeader": properties}
            many = [self.message(fields, recoverable=kind, wants=wants) for kind, wants in kinds]
            data = b"".join(packet.to_bytes() for packet in many)
            cuts = () if cut is None else (cut,)
            note = f"{len(many)} messages in one segment" if len(many) > 1 else "a message"
            perform(send(data, "taken", note, (), connection, cuts))

        @rule(connection=st.integers(0, CONNECTIONS - 1), recoverable=st.booleans(), wants=_WANTS)
        def carrying(self, connection: int, recoverable: bool, wants: int) -> None:
            packet = self.message({"SessionHeader": {}}, recoverable=recoverable, wants=wants)
            data = with_counts(packet.to_bytes())
            perform(send(data, "taken", "a message with a SessionHeader", (), connection))

        @rule(connection=st.integers(0, CONNECTIONS - 1), window=st.integers(1, 0xFFFF))
        def acknowledge(self, connection: int, window: int) -> None:
            data = with_counts(_ACK, Shift(window=window))
            perform(send(data, "open", "a SessionAck", (), connection))

        @rule(connection=st.integers(0, CONNECTIONS - 1), wants=_WANTS)
        def refused(self, connection: int, wants: int) -> None:
            packet = self.message(queue=f"private$\\none_{self.number}", wants=wants)
            note = "a message for a queue that is not there"
            perform(send(packet, "maybe 8000", note, ("MQQB-3.1.5.8.2-09",), connection))

        @rule(connection=st.integers(0, CONNECTIONS - 1), wants=_WANTS, age=st.integers(0, 1000))
        def expired(self, connection: int, wants: int, age: int) -> None:
            fields = {"BaseHeader": {"TimeToReachQueue": age}, "UserHeader": {"SentTime": _LATE}}
            packet = self.message(fields, wants=wants)
            perform(
                send(packet, "class 8002", "a message that has expired", ("MQQB-3.1.5.8-04",), connection)
            )

        @precondition(lambda self: bool(target.transactional_queue))
        @rule(step=st.sampled_from(["next", "next", "next", "gap", "again", "skip", "new"]), wants=_WANTS)
        def transactional(self, step: str, wants: int) -> None:
            previous = self.place
            if step == "new":
                self.sequence, previous = self.sequence + 1, 0
                self.place = 0
            number = {"gap": previous + 2, "again": previous or 1, "skip": previous + 3}.get(
                step, previous + 1
            )
            before = number - 1 if step in ("gap", "again") else previous
            if step not in ("gap", "again") or (step == "again" and not previous):
                self.place = number
            packet = self.message(
                queue=target.transactional_queue, sequence=(self.sequence, number, before), wants=wants
            )
            note = f"number {number} after {before} of a sequence"
            perform(send(packet, "taken", note, ("MQQB-3.1.5.8.6-05",)))

        @rule(connection=st.integers(0, CONNECTIONS - 1))
        def fence(self, connection: int) -> None:
            perform(Step("fence", connection))

        @rule(connection=st.integers(1, CONNECTIONS - 1), how=st.sampled_from(["close", "reset", "shutdown"]))
        def end(self, connection: int, how: str) -> None:
            perform(Step("settle"))
            perform(Step(how, connection))
            self.reopen(connection)

        @rule(connection=st.integers(1, CONNECTIONS - 1), where=st.integers(1, 16) | st.integers(-60, -1))
        def half(self, connection: int, where: int) -> None:
            data = self.message(wants=messages.PA).to_bytes()  # cut outside of GUIDs, which are replaced
            perform(send(data[:where], "open", "half a message", (), connection))
            self.fence(0)
            perform(send(data[where:], "taken", "the other half", (), connection))

        @precondition(lambda self: self.breaches < 4)
        @rule(
            connection=st.integers(1, CONNECTIONS - 1),
            breach=st.sampled_from([*_BREACHES, *_SHIFTS]),
            data=st.data(),
        )
        def broken(self, connection: int, breach: Any, data: st.DataObject) -> None:
            self.breaches += 1
            perform(Step("settle"))
            if isinstance(breach[1], Shift):
                ids, shift = breach
                carrier = self.message({"SessionHeader": {}}).to_bytes()
                wrong = with_counts(data.draw(st.sampled_from([_ACK, carrier])), shift)
                note = "a wrong SessionHeader"
            else:
                ids, path, value = breach
                wrong = messages.changed(self.message(), path, value) + bytes(600)
                note = f"{path} of {value}"
            perform(send(wrong, "closed", note, ids, connection))
            self.reopen(connection)

        @rule(data=mutated(valid, USER_MESSAGE) | mutated(packet_bytes(), USER_MESSAGE), more=st.booleans())
        def mutation(self, data: bytes, more: bool) -> None:
            self.reopen(MUTATED)
            perform(send(data, "", "a mutated packet", (), MUTATED))
            if more:
                perform(send(self.message(), "", "a message after it", (), MUTATED))
            perform(Step("close", MUTATED))

        @rule(data=mutated(valid, USER_MESSAGE) | st.binary(max_size=700), state=st.integers(1, 2))
        def early(self, data: bytes, state: int) -> None:
            for step in opened(MUTATED)[:state]:
                perform(step)
            perform(send(data, "", "a mutated packet before the session is open", (), MUTATED))
            perform(Step("close", MUTATED))

    return Walk
