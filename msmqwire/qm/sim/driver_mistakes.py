"""Deliberate mistakes of the driver and of the TCP carrier, against two rules: changes are durable before
their effects, and each effect happens once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msmqwire.qm.model.effects import Send, TransactionReply
from msmqwire.qm.runtime.transport import TcpNetwork
from msmqwire.qm.sim.violation import Invariant
from msmqwire.service.driver import Driver
from msmqwire.service.virtual.mistake import Mistake


def effects_at_once(*kinds: type) -> Callable[[Any], Any]:
    """Return the replacement of `Driver.part`: effects of some or all kinds do not wait for the commit."""

    def replaced(original: Any) -> Any:
        def part(self: Any) -> None:
            original(self)
            batch = self._pending
            at_once = [effect for effect in batch.effects if not kinds or isinstance(effect, kinds)]
            batch.effects = [effect for effect in batch.effects if kinds and not isinstance(effect, kinds)]
            _carry_out(self, at_once)

        return part

    return replaced


def _carry_out(driver: Any, effects: list[Any]) -> None:
    for effect in effects:
        perform = driver._performers.get(type(effect))
        if perform is not None:
            perform(effect)
    for flush in driver._flushing:
        flush()


def _after_a_refusal(original: Any) -> Any:
    def refuse(self: Any, exc: Any) -> None:
        batch = self._ready[0] if self._ready else self._pending
        effects, batch.effects = batch.effects, []
        _carry_out(self, effects)
        original(self, exc)

    return refuse


def _woken_before_the_sync(original: Any) -> Any:
    def end_turn(self: Any) -> None:
        self._pending.wake()
        original(self)

    return end_turn


def _put_off_is_durable(original: Any) -> Any:
    async def durable(self: Any) -> None:
        if self._deferred is None:
            await original(self)

    return durable


def _not_awaited(_original: Any) -> Any:
    async def durable(self: Any) -> None:
        """Wait for nothing."""

    return durable


def _forgotten_when_refused(original: Any) -> Any:
    def refuse(self: Any, exc: Any) -> None:
        original(self, exc)
        (self._ready[0] if self._ready else self._pending).changes.changes.rows.clear()

    return refuse


def _informed_of_each_commit(original: Any) -> Any:
    def settle(self: Any, batch: Any) -> None:
        original(self, batch)
        self.guest.committed()

    return settle


def _sent_again_after_a_reconnect(_original: Any) -> Any:
    def send(self: Any, effect: Send) -> None:
        number, data = effect
        target = self.connections.get(number)
        if target is None:
            return
        kept = self.__dict__.setdefault("_kept", {})
        if number not in kept and kept:
            target.unsent += kept[max(kept)]  # the bytes of the last connection go over this one too
        kept.setdefault(number, []).append(data)
        target.unsent.append(data)
        self._unflushed[number] = target

    return send


_DURABLE: Final = frozenset({Invariant.DURABLE})

DRIVER_MISTAKES: Final[Mapping[str, Mistake]] = MappingProxyType(
    {
        "effects are carried out before the commit": Mistake(
            Driver, "part", effects_at_once(), frozenset({Invariant.DURABLE, Invariant.SENT_ONLY})
        ),
        "effects are carried out after a refusal": Mistake(
            Driver, "_refuse", _after_a_refusal, frozenset({Invariant.DURABLE, Invariant.SENT_ONLY})
        ),
        "changes refused by the disk are forgotten": Mistake(
            Driver,
            "_refuse",
            _forgotten_when_refused,
            frozenset({Invariant.DURABLE, Invariant.SENT_ONLY, Invariant.BOUNDED, Invariant.HANGS}),
        ),
        "tasks are woken before the sync": Mistake(Driver, "_end_turn", _woken_before_the_sync, _DURABLE),
        "a put-off commit is acknowledged early": Mistake(Driver, "durable", _put_off_is_durable, _DURABLE),
        "the commit is not awaited": Mistake(Driver, "durable", _not_awaited, _DURABLE),
        "the coordinator has a reply before the rows of its transaction": Mistake(
            Driver, "part", effects_at_once(TransactionReply), _DURABLE
        ),
        "a core considers changes durable that wait after a refused commit": Mistake(
            Driver, "_settle", _informed_of_each_commit, _DURABLE
        ),
        "a carrier sends twice after a reconnect": Mistake(
            TcpNetwork,
            "send",
            _sent_again_after_a_reconnect,
            frozenset(
                {
                    Invariant.DURABLE, Invariant.NOT_TWICE, Invariant.NO_ERRORS, Invariant.HANGS,
                    Invariant.ACKNOWLEDGED, Invariant.SENT_ONLY, Invariant.ONCE,
                }
            ),
        ),
    }
)  # fmt: skip
