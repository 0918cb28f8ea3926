"""Fuzzing a peer in SRMP: wrong peers are accused of what they do, a right one of nothing."""

from __future__ import annotations

import io
import random
import socket
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from fuzz.peer.failure import PeerFailure
from fuzz.peer.performing import Stage
from fuzz.peer.registry import FUZZED
from fuzz.peer.srmp import checks, http_checks, malformed, streams, taken
from fuzz.peer.srmp.cases import accepted
from fuzz.peer.srmp.messages import envelope, post, wants_receipt
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Ports, Target
from tests.support.peers.srmp_independent_peer import (
    NOBODY,
    PATH,
    SRMP,
    IndependentPeer,
    Message,
    Refused,
    Stream,
)

HOST = "127.0.0.73"
NOBODY_LISTENS = 9
OF_RECEIPTS = (
    "SRMP-2.2.4.3-02", "SRMP-2.2.5.4-05", "SRMP-2.2.5.4-07", "SRMP-3.1.1.3.4-04", "SRMP-3.1.5.1.5-03",
)  # fmt: skip
"""Requirements that every receipt shows."""


def stage_of(peer: IndependentPeer, bound: float) -> Stage:
    ports = Ports(NOBODY_LISTENS, srmp=peer.port)
    target = Target(HOST, ports, transactional_queue=r"private$\ledger", bound=bound)
    return Stage(target, {"srmp": FUZZED["srmp"]}, seed=1)


def failures(
    stage: Stage, requirement: str = "", every: int = 1, cases: Any = checks
) -> Iterator[PeerFailure]:
    """Perform the directed cases, those of a requirement, or each so-manieth; give what is wrong."""
    found = cases.checks(stage.target, random.Random(1))
    wanted = (case for case in found if not requirement or requirement in case.requirements)
    for case in islice(wanted, 0, None, every):
        failure = stage.perform(case).failure
        if failure is not None:
            yield failure


def test_a_right_peer_is_accused_of_nothing() -> None:
    with IndependentPeer(HOST) as peer:
        stage = stage_of(peer, bound=20)
        assert [failure.text for failure in failures(stage, every=4)] == []
    assert stage.packets > 150


class TakesTwice(IndependentPeer):
    def is_duplicate(self, identifier: str) -> bool:
        return False


class TakesNumbersOnce(IndependentPeer):
    """Compares Uniquifiers, whoever gave them."""

    def is_duplicate(self, identifier: str) -> bool:
        number = identifier.partition("@")[0]
        return identifier != NOBODY and any(seen.partition("@")[0] == number for seen in self.seen)


class NobodyOnce(IndependentPeer):
    def is_duplicate(self, identifier: str) -> bool:
        return identifier in self.seen


class RemembersRefused(IndependentPeer):
    def check_msmq(self, header: ET.Element) -> None:
        message = Message.__new__(Message)
        message.header = header
        try:
            super().check_msmq(header)
        except Refused:
            self.seen.add(self.identifier(message))
            raise


class TakesGaps(IndependentPeer):
    def follows(self, stream: Stream, current: int, previous: str | None) -> bool:
        return current > stream.number


class TakesNoGaps(IndependentPeer):
    def follows(self, stream: Stream, current: int, previous: str | None) -> bool:
        return current == stream.number + 1


class AcknowledgesMore(IndependentPeer):
    def acknowledge(self, stream: Stream) -> None:
        super().acknowledge(Stream(stream.identifier, stream.to, stream.number + 1))


class AcknowledgesNothing(IndependentPeer):
    def acknowledge(self, stream: Stream) -> None:
        pass


class OneStream(IndependentPeer):
    """Knows the first stream of a sender only."""

    def in_stream(self, message: Message, element: ET.Element, place: str) -> bool:
        identifier = element.findtext("{http://schemas.xmlsoap.org/srmp/}streamId") or ""
        known = self.streams.get((identifier.partition("\\")[0], place))
        return (known is None or known.identifier == identifier) and super().in_stream(
            message, element, place
        )


class TrustsLengths(IndependentPeer):
    def check_end(self, entity: bytes, stop: int) -> None:
        if stop > len(entity):
            raise OSError


class SplitsAtDelimiters(IndependentPeer):
    def parts(self, entity: bytes, delimiter: bytes) -> tuple[bytes, bytes | None]:
        pieces = entity.split(delimiter)
        if len(pieces) != 4:
            raise Refused(400)
        return pieces[1].partition(b"\r\n\r\n")[2], pieces[2].partition(b"\r\n\r\n")[2]


class UnderstandsAnything(IndependentPeer):
    def marked(self, element: ET.Element) -> None:
        pass


class TakesAnyId(IndependentPeer):
    def check_id(self, text: str) -> None:
        pass


class BlamesItself(IndependentPeer):
    """Answers what does not conform with 500, so that it comes again and again."""

    def message(self, kind: str, entity: bytes) -> Message:
        try:
            return super().message(kind, entity)
        except Refused:
            raise Refused(500) from None


class LosesTheSecond(IndependentPeer):
    """Forgets what came in one segment with a request."""

    def serve(self, sock: socket.socket) -> None:
        with suppress(OSError, EOFError, Refused), sock:
            while data := sock.recv(1 << 20):
                sock.sendall(self.response(self.one(io.BytesIO(data)), goes_on=True))


class OneAtATime(IndependentPeer):
    """Reads the request of one connection before it looks at another."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.reading = threading.Lock()

    def one(self, file: Any) -> int:
        with self.reading:
            return super().one(file)


class ReadsOnce(IndependentPeer):
    """Takes one segment for a request."""

    def serve(self, sock: socket.socket) -> None:
        with suppress(OSError), sock:
            while data := sock.recv(1 << 20):
                try:
                    status = self.one(io.BytesIO(data))
                except (Refused, EOFError):
                    status = 400
                sock.sendall(self.response(status, goes_on=status == 200))


class NoReceipts(IndependentPeer):
    def deliver(self, message: Message, identifier: str, to: str) -> None:
        pass


class TwoReceipts(IndependentPeer):
    def deliver(self, message: Message, identifier: str, to: str) -> None:
        super().deliver(message, identifier, to)
        super().deliver(message, identifier, to)


class OwnAddress(IndependentPeer):
    """Sends receipts in lower case, and to another queue."""

    def deliver(self, message: Message, identifier: str, to: str) -> None:
        super().deliver(message, identifier, to.replace("private$/d", "private$/e"))


class StartOverwrites(IndependentPeer):
    """Sends all receipts for the first message of a stream to its sendReceiptsTo."""

    def deliver(self, message: Message, identifier: str, to: str) -> None:
        stream = message.element(f"{SRMP}stream")
        start = None if stream is None else stream.findtext(f"{SRMP}start/{SRMP}sendReceiptsTo")
        super().deliver(message, identifier, start or to)


class AllToStart(IndependentPeer):
    """The same, and for later messages of the stream."""

    def deliver(self, message: Message, identifier: str, to: str) -> None:
        (stream,) = self.streams.values()
        super().deliver(message, identifier, stream.to)


class WrongIds(IndependentPeer):
    def deliver(self, message: Message, identifier: str, to: str) -> None:
        number, at, guid = identifier[5:].partition("@")
        super().deliver(message, f"uuid:{int(number) + 1}{at}{guid}", to)


class SwappedCorrelation(IndependentPeer):
    def send(self, to: str, action: str, receipt: str, kind: int, correlation: bytes) -> None:
        super().send(to, action, receipt, kind, correlation[::-1])


class NoLabel(IndependentPeer):
    def send(self, to: str, action: str, receipt: str, kind: int, correlation: bytes) -> None:
        super().send(to, "MSMQ:" if kind == 2 else action, receipt, kind, correlation)


class WrongClass(IndependentPeer):
    def send(self, to: str, action: str, receipt: str, kind: int, correlation: bytes) -> None:
        super().send(to, action, receipt, 0, correlation)


class OneNumber(IndependentPeer):
    """Gives all its receipts one identifier."""

    def send(self, to: str, action: str, receipt: str, kind: int, correlation: bytes) -> None:
        self.numbers = 0
        super().send(to, action, receipt, kind, correlation)


class Unasked(IndependentPeer):
    """Says of each message that an application has received it."""

    def deliver(self, message: Message, identifier: str, to: str) -> None:
        super().deliver(message, identifier, to)
        decided = "<decidedAt>20300101T000000</decidedAt><decision>positive</decision>"
        receipt = f"<commitmentReceipt>{decided}<id>{identifier}</id></commitmentReceipt>"
        self.send(to, message.text(f"{PATH}path", f"{PATH}action"), receipt, 0x4000, bytes(20))


class AnyQueue(IndependentPeer):
    def take(self, message: Message) -> None:
        self.ledger = self.orders = "elsewhere"


class NoHttp(IndependentPeer):
    def response(self, status: int, goes_on: bool) -> bytes:
        return super().response(status, goes_on).replace(b"\r\n", b"\n")


class Slow(IndependentPeer):
    def take(self, message: Message) -> None:
        time.sleep(1.5)  # twice the bound of the test


@pytest.mark.parametrize(
    ("kind", "cases", "requirement", "text"),
    [
        (TakesTwice, taken, "SRMP-3.1.5.1.11-02", "2 delivery receipts come for"),
        (TakesNumbersOnce, taken, "SRMP-3.1.5.1.11-04", "no delivery receipt comes"),
        (NobodyOnce, taken, "SRMP-3.1.5.1.11-01", "no delivery receipt comes"),
        (RemembersRefused, taken, "SRMP-3.1.5.1.11-03", "no delivery receipt comes"),
        (TakesGaps, streams, "SRMP-3.1.1.3.2-03", "lastOrdinal is 3, and no message after 1"),
        (TakesNoGaps, streams, "SRMP-3.1.5.1.6.3-03", "message 5 of a stream is not acknowledged"),
        (AcknowledgesMore, streams, "SRMP-3.1.1.3.2-03", "lastOrdinal is 2"),
        (AcknowledgesNothing, streams, "SRMP-3.1.2.3-01", "the highest lastOrdinal is none"),
        (OneStream, streams, "SRMP-3.1.5.1.6.3-01", "is not acknowledged"),
        (TrustsLengths, malformed, "SRMP-2.2.2-17", "ends the connection instead of answering"),
        (SplitsAtDelimiters, taken, "SRMP-2.2.2-16", "with 400, not with 200"),
        (
            UnderstandsAnything,
            malformed,
            "SRMP-2.2.5.1-02",
            "a message with properties without mustUnderstand",
        ),
        (TakesAnyId, malformed, "SRMP-2.2.4.3-07", "a message whose id is"),
        (BlamesItself, malformed, "SRMP-3.1.5.1.2-02", "with 500, not with 400"),
        (OneAtATime, http_checks, "SRMP-2.1.1-01", "does not answer"),
        (LosesTheSecond, http_checks, "SRMP-2.1.1-01", "does not answer two messages in one segment"),
        (ReadsOnce, http_checks, "SRMP-2.1.1-01", "400"),  # to nothing, or to the message, as segments arrive
        (NoReceipts, taken, "SRMP-2.2.5.2.2-05", "no delivery receipt comes"),
        (TwoReceipts, taken, "SRMP-2.2.5.2.2-05", "2 delivery receipts come for"),
        (OwnAddress, taken, "SRMP-2.2.5.4-05", "where no message has asked for one"),
        (WrongIds, taken, "SRMP-2.2.5.4-04", "id of a delivery receipt is uuid:2@"),
        (SwappedCorrelation, taken, "SRMP-2.2.5.4-07", "Correlation"),
        (NoLabel, taken, "SRMP-2.2.4.1-04", "action of a receipt is 'MSMQ:'"),
        (WrongClass, taken, "SRMP-3.1.5.1.5-03", "Msmq.Class"),
        (OneNumber, taken, "SRMP-2.2.4.3-02", "have the identifier uuid:1@"),
        (Unasked, taken, "SRMP-3.1.1.3.4-04", "a positive commitment receipt"),
        (AnyQueue, malformed, "SRMP-3.1.5.1.3-08", "with 200, not with 400"),
        (NoHttp, http_checks, "SRMP-2.1.1-01", "not HTTP"),
        (Slow, http_checks, "SRMP-2.1.1-01", "within 0.75 s"),
    ],
)
def test_a_wrong_peer_is_accused(
    kind: type[IndependentPeer], cases: Any, requirement: str, text: str
) -> None:
    with kind(HOST) as peer:
        tested = "" if requirement in OF_RECEIPTS else requirement
        failure = next(failures(stage_of(peer, bound=0.75), tested, cases=cases))
    assert requirement in failure.requirements
    assert text in failure.text


def test_what_is_uncertain_is_no_failure() -> None:
    """Two messages with one identifier, half a request behind another one, and a message after the stream."""
    with IndependentPeer(HOST) as peer:
        stage = stage_of(peer, bound=5)
        target = stage.target
        asks = post(target, taken.asking(target, 7))
        half = Step("half", 1, asks, (20,), expects="accepted")
        cases = [
            (
                Step("request", data=post(target, envelope(target, 7)), expects="accepted"),
                accepted("", asks, ""),
            ),
            (half, replace(half, cuts=(30,)), Step("rest", 1)),
            (half, accepted("", asks, "", 1), Step("rest", 1)),
            (streams.message(target, 1, 2), streams.message(target, 2, 1), streams.message(target, 3, 5)),
            (Step("bytes", data=asks), Step("wait", 50)),
        ]
        assert [stage.perform(Case("srmp", steps)).failure for steps in cases] == [None] * len(cases)


FIRST_ASKS = "SRMP-3.1.1.1.2.5-04"


def test_a_first_message_may_have_its_receipt_at_either_url() -> None:
    """At sendTo by SRMP-2.2.5.4-05, at sendReceiptsTo by SRMP-2.2.5.3.4-04."""
    for kind in (IndependentPeer, StartOverwrites):
        with kind(HOST) as peer:
            assert [*failures(stage_of(peer, bound=20), FIRST_ASKS, cases=streams)] == []


def test_a_later_message_has_its_receipt_at_send_to() -> None:
    with AllToStart(HOST) as peer:
        stage = stage_of(peer, bound=5)
        first, target = streams.message(stage.target, 1, 1), stage.target
        later = streams.message(target, 2, 2, FIRST_ASKS, more=wants_receipt(target, 2))
        failure = stage.perform(Case("srmp", (first, later))).failure
    assert failure is not None
    assert failure.requirements == ("SRMP-2.2.5.4-05",)


def test_a_peer_that_is_gone() -> None:
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    stage = Stage(Target(HOST, Ports(NOBODY_LISTENS, srmp=port)), {"srmp": FUZZED["srmp"]}, seed=1)
    failure = stage.fresh("srmp")
    assert failure is not None
    assert failure.what == "gone"


def test_steps_in_any_order_are_taken() -> None:
    steps = tuple(
        Step(action, at, data)
        for at, data in ((0, b""), (99, b"POST / HTTP/1.1\r\n\r\n"))
        for action in (
            "rest",
            "close",
            "shutdown",
            "await",
            "half",
            "rest",
            "reset",
            "bytes",
            "queue",
            "wait",
        )
    )
    with IndependentPeer(HOST) as peer:
        assert stage_of(peer, bound=5).perform(Case("srmp", steps)).failure is None
