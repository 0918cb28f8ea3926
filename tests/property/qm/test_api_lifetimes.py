"""Receipts and transactions of tokens against a plain model: no message is lost, doubled or held for ever."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from msmqwire.errors import MsmqError
from msmqwire.qm.runtime.api.problems import Problem
from tests.support.qm.virtual_tokens import VirtualTokens
from tests.support.running import LEDGER

_SLACK_S = 0.5
"""Nothing is done so shortly before or after a time is over: a look may come a moment later."""


@dataclass
class Open:
    """A transaction in the model."""

    within_s: int
    used_at: float
    sent: list[str] = field(default_factory=list)
    received: list[str] = field(default_factory=list)


class TokensAgainstTheModel(RuleBasedStateMachine):
    """The model: labels in the queue, in hands (with the time of their receipt), and in transactions."""

    receipts = Bundle("receipts")
    transactions = Bundle("transactions")

    def __init__(self) -> None:
        super().__init__()
        self.tokens = VirtualTokens()
        self.queue: set[str] = set()
        self.hands: dict[str, tuple[str, float]] = {}  # by receipt: label and time
        self.open: dict[str, Open] = {}
        self.deliveries: dict[str, int] = {}
        self.number = 0

    @property
    def now(self) -> float:
        return self.tokens.loop.time()

    def refused(self, work: Any) -> bool:
        try:
            self.tokens.run(work)
        except Problem:
            return True
        return False

    @rule(count=st.integers(1, 3))
    def send(self, count: int) -> None:
        labels = [str(self.number + i) for i in range(count)]
        self.number += count
        self.tokens.send(self.tokens.bob, LEDGER, *labels)
        self.queue.update(labels)
        self.deliveries.update(dict.fromkeys(labels, 0))

    @rule(target=receipts, settle_s=st.sampled_from([1, 5, 5, 60]))
    def receive(self, settle_s: int) -> str:
        got = self.tokens.receive(self.tokens.ann, LEDGER, settle_s=settle_s)
        assert len(got) == min(1, len(self.queue))
        if not got:
            return "none"
        (message,) = got
        self.queue.remove(message["label"])
        assert message["deliveries"] == self.deliveries[message["label"]]
        self.hands[message["receipt"]] = message["label"], self.now + settle_s
        return str(message["receipt"])

    @rule(receipt=receipts, back=st.booleans())
    def settle(self, receipt: str, back: bool) -> None:
        settled = ([], [receipt]) if back else ([receipt], [])
        known = receipt in self.hands
        assert self.refused(self.tokens.of(self.tokens.ann).settle(*settled)) is not known
        if known:
            label, _ = self.hands.pop(receipt)
            self._back(label) if back else self.deliveries.pop(label)

    @rule(receipt=receipts)
    def settle_by_another_token(self, receipt: str) -> None:
        assert self.refused(self.tokens.of(self.tokens.bob).settle([receipt], []))

    @rule(target=transactions, within_s=st.sampled_from([1, 5, 60]))
    def begin(self, within_s: int) -> str:
        name = self.tokens.run(self.tokens.of(self.tokens.ann).begin(within_s))
        self.open[name] = Open(within_s, self.now)
        return name

    @rule(name=transactions)
    def send_within(self, name: str) -> None:
        label = str(self.number)
        self.number += 1
        request = {
            "to": f"DIRECT=OS:.\\{LEDGER}",
            "messages": [{"label": label, "delivery": "transactional"}],
            "transaction": name,
        }
        assert self.refused(self.tokens.of(self.tokens.ann).send(request)) is (name not in self.open)
        if name in self.open:
            self.open[name].used_at = self.now
            self.open[name].sent.append(label)

    @rule(name=transactions)
    def receive_within(self, name: str) -> None:
        try:
            got = self.tokens.receive(self.tokens.ann, LEDGER, 2, transaction=name)
        except Problem:
            assert name not in self.open
            return
        opened = self.open[name]
        opened.used_at = self.now
        assert len(got) == min(2, len(self.queue))
        for message in got:
            self.queue.remove(message["label"])
            opened.received.append(message["label"])

    @rule(name=consumes(transactions), commits=st.booleans())
    def end(self, name: str, commits: bool) -> None:
        ann = self.tokens.of(self.tokens.ann)
        ending = ann.commit(name) if commits else ann.abort(name)
        assert self.refused(ending) is (name not in self.open)
        opened = self.open.pop(name, None)
        if opened is not None and commits:
            self.queue.update(opened.sent)
            self.deliveries.update(dict.fromkeys(opened.sent, 0))
            for label in opened.received:
                del self.deliveries[label]
        elif opened is not None:
            self._aborted(opened)

    @rule(seconds=st.sampled_from([0.3, 1.0, 4.0, 30.0]))
    def time_passes(self, seconds: float) -> None:
        ends = [at for _, at in self.hands.values()]
        ends += [opened.used_at + opened.within_s for opened in self.open.values()]
        until = self.now + seconds
        while any(-0.01 <= until - at < _SLACK_S for at in ends):
            until += _SLACK_S
        self.tokens.wait(until - self.now)
        for receipt, (label, at) in list(self.hands.items()):
            if at <= self.now:
                del self.hands[receipt]
                self._back(label)
        for name, opened in list(self.open.items()):
            if opened.used_at + opened.within_s <= self.now:
                self._aborted(self.open.pop(name))

    @rule()
    def the_token_is_revoked(self) -> None:
        self.tokens.sessions.revoked(self.tokens.ann)
        self.tokens.wait(0)
        for label, _ in self.hands.values():
            self._back(label)
        for opened in self.open.values():
            self._aborted(opened)
        self.hands.clear()
        self.open.clear()

    def _back(self, label: str) -> None:
        self.queue.add(label)
        self.deliveries[label] += 1

    def _aborted(self, opened: Open) -> None:
        for label in opened.received:
            self._back(label)

    @invariant()
    def each_message_is_where_it_belongs(self) -> None:
        assert sorted(self.tokens.labels(LEDGER)) == sorted(self.queue)
        in_transactions = sum(len(opened.received) for opened in self.open.values())
        assert self.tokens.sessions.held == len(self.hands) + in_transactions
        sent = sum(len(opened.sent) for opened in self.open.values())
        assert self.tokens.held(LEDGER) == len(self.hands) + in_transactions + sent

    def teardown(self) -> None:
        try:
            self.tokens.sessions.close()
            self.tokens.wait(1)
            assert len(self.tokens.labels(LEDGER)) == len(self.deliveries)
        except MsmqError as exc:
            raise AssertionError(exc) from exc


TokensAgainstTheModel.TestCase.settings = settings(stateful_step_count=25)
TestTokensAgainstTheModel = TokensAgainstTheModel.TestCase
