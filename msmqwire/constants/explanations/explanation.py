"""A code and what it means."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Texts(NamedTuple):
    """The words for a code.

    Attributes:
        meaning: a clause that completes "it failed: …": without a capital and a full stop.
        causes: what usually causes it, in sentences.
        action: what to do, in sentences.
    """

    meaning: str
    causes: str
    action: str


class CodeKind(StrEnum):
    """What a code is a value of."""

    RESULT = "result of MSMQ"
    NTSTATUS = "NTSTATUS"
    WIN32 = "error of Windows"
    RPC = "status of remote calls"
    MESSAGE_CLASS = "message class"
    CONNECTION_STATUS = "connection status"
    QUEUE_STATE = "state of an outgoing queue"


class Explanation(NamedTuple):
    """A code and what it means.

    Attributes:
        kind: what it is a value of.
        name: its name, ``MQ_ERROR_QUEUE_NOT_FOUND``.
        number: its number; None for a state, which is a text on the wire.
        texts: the words.
    """

    kind: CodeKind
    name: str
    number: int | None
    texts: Texts

    @property
    def meaning(self) -> str:
        """The meaning as a sentence."""
        first = self.texts.meaning
        return f"{first[0].upper()}{first[1:]}."

    @property
    def code(self) -> str | None:
        """The number as the field writes it: four digits for a class, eight for others."""
        if self.number is None:
            return None
        return f"0x{self.number:0{4 if self.kind is CodeKind.MESSAGE_CLASS else 8}X}"

    def to_json(self) -> dict[str, object]:
        """Return it as ``msmqwire explain --json`` prints it."""
        return {
            "kind": self.kind.value,
            "name": self.name,
            "code": self.code,
            "meaning": self.meaning,
            "causes": self.texts.causes,
            "action": self.texts.action,
        }
