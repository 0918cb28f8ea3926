"""The steps of a session with a peer, and cases of them: plain data, kept in seed files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from msmqwire.errors import LocatedError
from msmqwire.names.printable import with_article

IDENTITY: Final = UUID("6d736d71-7769-7265-a66f-757a7a65726e")
"""The queue manager that sends, in the bytes of steps; each performance puts another one in its place, so
that nothing which the peer remembers of an earlier one matters."""

ADDRESS: Final = "127.77.77.10"
"""The address from which steps are sent, in their bytes; workers put another one of this length there."""

_DEFAULTS: Final = {"connection": 0, "cuts": (), "breaks": (), "expects": "", "note": ""}


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is done to a peer.

    Attributes:
        action: a word that the player of the protocol knows: ``connect``, ``send``, ``close``.
        connection: on which connection of the case.
        data: the bytes that are sent.
        cuts: the offsets at which they are divided into segments.
        breaks: the ids of the requirements that these bytes break on purpose.
        expects: the event that the specification requires then, a word that the player knows; empty for none
            in particular.
        note: a description of the bytes sent, for people.
    """

    action: str
    connection: int = 0
    data: bytes = b""
    cuts: tuple[int, ...] = ()
    breaks: tuple[str, ...] = ()
    expects: str = ""
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of a seed file; empty values are left out."""
        given: dict[str, Any] = {"action": self.action}
        if self.data:
            given["data"] = self.data.hex()
        for name, default in _DEFAULTS.items():
            value = getattr(self, name)
            if value != default:
                given[name] = list(value) if isinstance(value, tuple) else value
        return given

    @classmethod
    def from_json(cls, given: Any) -> Step:
        """Return the step of its JSON form. Raises LocatedError."""
        try:
            fields = dict(given)
            data = bytes.fromhex(fields.pop("data", ""))
            step = cls(fields.pop("action"), data=data)
            for name, value in fields.items():
                default = _DEFAULTS[name]
                if type(value) is not (list if isinstance(default, tuple) else type(default)):
                    raise TypeError(f"{name} is not {with_article(type(default).__name__)}")
                changed: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value}
                step = replace(step, **changed)
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise LocatedError(f"not a step: {exc}", path="steps") from None
        return step


@dataclass(frozen=True, slots=True)
class Case:
    """Steps of one queue manager against a peer, on one or more connections.

    Attributes:
        protocol: the name of the protocol.
        steps: the steps in order. requirements: the ids of the requirements that it tests.
        text: the behaviour of a correct peer, in one sentence; empty for a walk.
    """

    protocol: str
    steps: tuple[Step, ...]
    requirements: tuple[str, ...] = ()
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of a seed file."""
        return {
            "protocol": self.protocol,
            "requirements": list(self.requirements),
            "text": self.text,
            "steps": [step.to_json() for step in self.steps],
        }

    @classmethod
    def from_json(cls, given: Any) -> Case:
        """Return the case of its JSON form. Raises LocatedError."""
        try:
            steps = tuple(Step.from_json(step) for step in given["steps"])
            return cls(
                str(given["protocol"]), steps, tuple(map(str, given["requirements"])), str(given["text"])
            )
        except (KeyError, TypeError) as exc:
            raise LocatedError(f"not a case: {exc}", path="cases") from None


@dataclass(frozen=True, slots=True)
class Disguise:
    """The identity that performs a case: puts its GUID and address into the bytes of its steps.

    Attributes:
        identity: the identity of the sending queue manager. address: its IPv4 address, as long as `ADDRESS`
            when that is to be replaced.
    """

    identity: UUID
    address: str

    def dress(self, data: bytes) -> bytes:
        """Return the bytes of a step as this queue manager sends them."""
        for old, new in self._replacements().items():
            data = data.replace(old, new)
        return data

    def _replacements(self) -> Mapping[bytes, bytes]:
        replaced = {IDENTITY.bytes_le: self.identity.bytes_le}
        texts = {str(IDENTITY): str(self.identity), str(IDENTITY).upper(): str(self.identity).upper()}
        if len(self.address) == len(ADDRESS):
            texts[ADDRESS] = self.address
        for old, new in texts.items():
            replaced[old.encode()] = new.encode()
            replaced[old.encode("utf-16-le")] = new.encode("utf-16-le")
        return replaced
