"""What one token holds: receipts of messages, transactions and streams."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from msmqwire.errors import InvalidValue
from msmqwire.qm.runtime.api.holding_session import HoldingSession
from msmqwire.qm.runtime.api.once import packed
from msmqwire.qm.runtime.api.problems import Problem, too_many
from msmqwire.qm.runtime.deliveries import EXPRESS

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.message_sessions import MessageSessions
    from msmqwire.qm.runtime.api.message_stream import MessageStream
    from msmqwire.qm.runtime.api.once import Keep

_RECEIPT_BYTES: Final = 16
"""Random bytes of a receipt: nobody guesses one."""


class Held(NamedTuple):
    """A message that a receipt stands for.

    Attributes:
        number: its receipt in the session.
        transaction: the transaction that it was received in.
        stream: the stream that has sent it.
    """

    number: int
    transaction: UUID | None = None
    stream: MessageStream | None = None


class _Begun:
    """A transaction that has not ended."""

    __slots__ = ("keys", "receipts", "users", "within_s")

    def __init__(self, within_s: int) -> None:
        self.within_s = within_s
        self.users = 0
        self.receipts: set[str] = set()
        self.keys: list[str] = []  # Idempotency-Keys of requests in it


class TokenSession:
    """The session of one token.

    Attributes:
        key: identifies the token.
        closed: whether it has ended, and all that it held is back in its queues.
    """

    def __init__(self, sessions: MessageSessions, key: str) -> None:
        self.key = key
        self._all = sessions
        self._session = HoldingSession(sessions.driver)
        self._receipts: dict[str, Held] = {}
        self._begun: dict[UUID, _Begun] = {}
        self._streams: set[MessageStream] = set()
        self._users = 0
        self.closed = False

    @contextmanager
    def in_use(self) -> Iterator[HoldingSession]:
        """Keep the session open during a request."""
        self._users += 1
        self._all.used(self)
        try:
            yield self._session
        finally:
            self._users -= 1
            self._rest()

    def _rest(self) -> None:
        if not (self._users or self.closed) and self._session.is_empty:
            self._all.unused(self)

    def close(self, problem: Problem) -> None:
        """End it for a reason: what it holds returns to its queues."""
        self.closed = True
        for stream in list(self._streams):
            stream.end(problem)
        for receipt in list(self._receipts):
            self._drop(receipt)
        for identifier in list(self._begun):
            self._forget_transaction(identifier)
        self._session.close()

    # -- sending --------------------------------------------------------------------------------------------

    async def send(
        self, request: Mapping[str, Any], key: str | None = None, keep: Keep | None = None
    ) -> list[str]:
        """Send messages, all or none, with an operation ``send`` of `LocalSession`; return the identifiers.

        `keep` is called with them before the commit; `key` is the Idempotency-Key, which ends with the
        transaction if there is one. Raises as `LocalSession` does, and Problem.
        """

        def sent(identifiers: list[str]) -> None:
            if keep is None or key is None:
                return
            if transaction is not None:
                self._begun[self._identifier(transaction)].keys.append(key)
            durable = transaction is None and any(one["delivery"] != EXPRESS for one in entries)
            keep(packed(identifiers), durable)

        transaction, entries = request.get("transaction"), request["messages"]
        with self.in_use() as session, self.within(transaction):
            return await session.send(request, sent)

    # -- transactions ---------------------------------------------------------------------------------------

    async def begin(self, within_s: int) -> str:
        """Begin a transaction that is aborted a number of seconds after its last use; return its name."""
        if len(self._all.transactions) >= self._all.limits.transactions:
            raise too_many("too many transactions are begun and not ended")
        with self.in_use() as session:
            told: str = (await session.run({"op": "begin"}))["transaction"]
            identifier = UUID(told)
            self._begun[identifier] = _Begun(within_s)
            self._all.transactions.add((self, identifier), within_s)
        return told

    async def commit(self, transaction: str, keep: Keep | None = None) -> None:
        """Commit a transaction. `keep` is called before the commit is durable.

        Raises Problem while another request in it is under way: what that receives would be deleted unseen.
        """
        identifier = self._identifier(transaction)
        if self._begun[identifier].users:
            why = "another request in the transaction is under way: commit it after that"
            raise Problem(409, why, name="TransactionInUse")
        self._forget_transaction(identifier)
        with self.in_use() as session:
            await session.commit(identifier, lambda: None if keep is None else keep(b"", True))

    async def abort(self, transaction: str) -> None:
        """Abort a transaction: its messages are back in their queues, those sent in it were never sent."""
        identifier = self._identifier(transaction)
        self._forget_transaction(identifier)
        with self.in_use() as session:
            await session.run({"op": "abort", "transaction": transaction})

    def abort_unused(self, identifier: UUID) -> None:
        """Abort a transaction whose time is over."""
        self._forget_transaction(identifier)
        self._session.abort_soon(identifier)
        self._rest()

    @contextmanager
    def within(self, transaction: object) -> Iterator[None]:
        """Use a transaction, or None: it is not aborted meanwhile. Raises Problem for one that has ended."""
        if transaction is None:
            yield
            return
        identifier = self._identifier(transaction)
        begun = self._begun[identifier]
        begun.users += 1
        self._all.transactions.discard((self, identifier))
        try:
            yield
        finally:
            begun.users -= 1
            if not begun.users and self._begun.get(identifier) is begun:
                self._all.transactions.add((self, identifier), begun.within_s)

    def _identifier(self, transaction: object) -> UUID:
        try:
            identifier = UUID(str(transaction))
        except ValueError:
            identifier = UUID(int=0)
        if identifier not in self._begun:
            raise Problem(404, "there is no such transaction, or it has ended", name="TransactionEnded")
        return identifier

    def _forget_transaction(self, identifier: UUID) -> None:
        begun = self._begun.pop(identifier)
        self._all.transactions.discard((self, identifier))
        for receipt in begun.receipts:
            if self._receipts.pop(receipt, None) is not None:
                self._all.held -= 1
        idempotency = self._all.driver.core.idempotency
        for key in begun.keys:
            idempotency.forget(self.key, key)

    # -- receiving ------------------------------------------------------------------------------------------

    async def receive(
        self,
        queue: str,
        count: int,
        wait_s: float,
        settle_within_s: int,
        transaction: str | None,
        gone: asyncio.Future[None],
    ) -> list[dict[str, Any]]:
        """Receive messages; return them, each with its receipt.

        Those received in a transaction are its own: its time is their time.

        Args:
            queue: the queue.
            count: the most messages.
            wait_s: seconds to wait for the first one.
            settle_within_s: seconds after which one that is not settled is back.
            transaction: a transaction to receive in.
            gone: done when nobody waits any more; nothing is received then.
        """
        request: dict[str, Any] = {"op": "receive", "queue": queue, "count": count}
        if transaction is not None:
            request["transaction"] = transaction
        with self.in_use() as session, self.within(transaction):
            self._all.check_receiving()
            if wait_s:
                request["wait_ms"] = int(wait_s * 1000)
                answer = await self._unless_gone(session.run(request), gone)
            else:
                answer = await session.run(request)
            messages: list[dict[str, Any]] = answer["messages"]
            if self.closed:
                raise Problem(401, "the token does not hold any more")
            identifier = None if transaction is None else UUID(transaction)
            if identifier is not None and identifier not in self._begun:
                raise Problem(404, "the transaction has ended meanwhile", name="TransactionEnded")
            for message in messages:
                receipt = self.grant(Held(message["receipt"], identifier), settle_within_s)
                message["receipt"], message["lookup_identifier"] = receipt, str(message["lookup_identifier"])
            return messages

    @staticmethod
    async def _unless_gone(work: Any, gone: asyncio.Future[None]) -> dict[str, Any]:
        task = asyncio.ensure_future(work)
        cancel = lambda _: task.cancel()  # noqa: E731
        gone.add_done_callback(cancel)
        try:
            answer: dict[str, Any] = await task
        except asyncio.CancelledError:
            if gone.done() and task.cancelled():
                raise ConnectionResetError("the client has gone") from None
            task.cancel()
            raise
        finally:
            gone.remove_done_callback(cancel)
        return answer

    def grant(self, held: Held, settle_within_s: float | None) -> str:
        """Return a new receipt of a message; with None it does not expire by itself."""
        receipt = secrets.token_urlsafe(_RECEIPT_BYTES)
        self._receipts[receipt] = held
        if held.stream is None:  # the whole window of a stream is counted
            self._all.held += 1
        if held.transaction is not None:
            self._begun[held.transaction].receipts.add(receipt)
        elif settle_within_s is not None:
            self._all.receipts.add((self, receipt), settle_within_s)
        return receipt

    async def settle(self, done: Sequence[str], back: Sequence[str]) -> None:
        """Delete messages, and return others to their queues: all or none. Raises Problem, InvalidValue."""
        for path, receipts in (("done", done), ("back", back)):
            for at, receipt in enumerate(receipts):
                if receipt not in self._receipts:
                    why = "no message is held with this receipt: it was settled, or its time is over"
                    raise Problem(409, why, name="ReceiptUnknown", path=f"{path}[{at}]")
        if len({*done, *back}) < len(done) + len(back):
            raise InvalidValue("a receipt is there twice", path="done")
        with self.in_use() as session:
            await session.settle([self._drop(one) for one in done], [self._drop(one) for one in back])

    def withdraw(self, receipts: Sequence[str]) -> None:
        """Return messages whose receipts nobody got."""
        numbers = [self._drop(receipt) for receipt in receipts if receipt in self._receipts]
        if numbers and not self.closed:
            self._session.withdraw(numbers)
            self._rest()

    def expired(self, receipts: Sequence[str]) -> None:
        """Return messages that were not settled in time."""
        self._session.give_back([self._drop(receipt) for receipt in receipts])
        self._rest()

    def _drop(self, receipt: str) -> int:
        """Forget a receipt; return its number in the session."""
        held = self._receipts.pop(receipt)
        if held.stream is None:
            self._all.held -= 1
        self._all.receipts.discard((self, receipt))
        if held.transaction is not None:
            self._begun[held.transaction].receipts.discard(receipt)
        if held.stream is not None:
            held.stream.settled(receipt)
        return held.number

    # -- streams --------------------------------------------------------------------------------------------

    def opened(self, stream: MessageStream) -> None:
        """Note a stream. Raises Problem if there are too many."""
        self._all.check_receiving()
        limits = self._all.limits
        if len(self._streams) >= limits.streams_per_token or self._all.streams >= limits.streams:
            raise too_many("too many streams of events are open")
        if self._all.held + stream.window > limits.held:
            raise too_many("too many messages are held, or may be sent")
        self._streams.add(stream)
        self._all.streams += 1
        self._all.held += stream.window

    def ended(self, stream: MessageStream, receipts: Sequence[str], settle_within_s: int) -> None:
        """Note the end of a stream; its messages are to be settled within a time from now on."""
        self._streams.discard(stream)
        self._all.streams -= 1
        self._all.held -= stream.window
        for receipt in receipts:
            if receipt in self._receipts:  # not after the end of the session
                self._receipts[receipt] = self._receipts[receipt]._replace(stream=None)
                self._all.held += 1
                self._all.receipts.add((self, receipt), settle_within_s)
        self._rest()
