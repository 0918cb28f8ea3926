"""Deliberate mistakes in message security; see `mistakes`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msmqwire.qm.protocols.binary.sending import SessionSending
from msmqwire.qm.rules import serialization
from msmqwire.qm.security.decryption import Decryption
from msmqwire.qm.security.protection import Protection
from msmqwire.qm.sim.violation import Invariant
from msmqwire.service.virtual.mistake import Mistake, false


def _resent_in_clear(original: Any) -> Any:
    def protected(self: SessionSending, outgoing: Any, session: Any, message: Any) -> Any:
        return message if outgoing.transmitted else original(self, outgoing, session, message)

    return protected


def _only_the_present_key(original: Any) -> Any:
    def unwrapped(self: Decryption, message: Any, provider: Any, configuration: Any) -> Any:
        return original(self, message, provider, configuration)[:1]

    return unwrapped


def _verified_before_decrypted(original: Any) -> Any:
    def refusal(self: Protection, message: Any, queue: Any, packet: Any) -> Any:
        body = message.body
        result = original(self, message, queue, packet)
        if message.decrypted and message.signature:
            clear, message.body = message.body, body
            result = original(self, message, queue, packet)
            message.body = clear
        return result

    return refusal


def _level_left_out(original: Any) -> Any:
    return lambda packet, kind, *, authenticated: packet


_PROTECTED: Final = frozenset({Invariant.PROTECTED})
_LOST: Final = frozenset(
    {Invariant.TRANSACTIONS_LOST, Invariant.RECOVERABLE, Invariant.JOURNALED_ONCE, Invariant.NOT_BOTH}
)

SECURITY_MISTAKES: Final[Mapping[str, Mistake]] = MappingProxyType(
    {
        "a message is sent again in clear": Mistake(
            SessionSending, "_protected", _resent_in_clear, _PROTECTED
        ),
        "earlier keys are forgotten": Mistake(
            Decryption, "_unwrapped", _only_the_present_key, _PROTECTED | _LOST
        ),
        "a signature is verified before the body is decrypted": Mistake(
            Protection, "refusal", _verified_before_decrypted, _PROTECTED | _LOST
        ),
        "the store says that clear bodies are encrypted": Mistake(
            serialization, "_is_clear", false, _LOST | {Invariant.HANGS}
        ),
        "the proof of a sender is not stored": Mistake(
            serialization, "mark_verified", _level_left_out, _PROTECTED
        ),
    }
)
