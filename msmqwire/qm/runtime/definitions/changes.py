"""The changes that an import would make, found before any of them is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msmqwire.errors import InvalidName, InvalidValue, MsmqError, QueueError
from msmqwire.names.printable import counted
from msmqwire.qm.runtime.kept_options import KeptOptions
from msmqwire.qm.runtime.key_ring import KeyRing

if TYPE_CHECKING:
    from msmqwire.qm.core import Core

CREATE: Final = "create"
CHANGE: Final = "change"


class Change(NamedTuple):
    """One item that an import creates or changes.

    Attributes:
        change: `CREATE` or `CHANGE`.
        kind: ``queue``, ``policy``, ``certificate`` and so on.
        name: the name of the item.
    """

    change: str
    kind: str
    name: str

    def to_json(self) -> dict[str, str]:
        """Return the change as one JSON object."""
        return self._asdict()


@dataclass
class Plan:
    """All changes of an import.

    Attributes:
        core: the queue manager.
        ring: the keys of the folder.
        registered: by digest and SID of the certificates that are registered, the groups of their users.
        options: the options that the folder is to keep, as changed so far.
        changes: what changes.
        steps: make the changes in the store of queues, in order; each returns what undoes it.
        secrets: the changes of keys and of the directory, which are made after those of the store.
    """

    core: Core
    ring: KeyRing
    registered: dict[tuple[str, str], list[str]]
    options: KeptOptions
    changes: list[Change] = field(default_factory=list)
    steps: list[Callable[[], Callable[[], None]]] = field(default_factory=list)
    secrets: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, change: str, kind: str, name: str) -> None:
        """Note a change."""
        self.changes.append(Change(change, kind, name))

    def later(self, kind: str, item: Mapping[str, Any]) -> None:
        """Note an item for keys or directory."""
        self.secrets.setdefault(kind, []).append(dict(item))


def located(path: str, check: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `check` returns of arguments.

    Raises InvalidValue below `path` for its InvalidValue, InvalidName or QueueError.
    """
    try:
        return check(*arguments)
    except InvalidValue as exc:
        raise InvalidValue(exc.why, path=f"{path}.{exc.path}" if exc.path else path) from None
    except (InvalidName, QueueError) as exc:
        raise InvalidValue(_why(exc), path=path) from None


def _why(exc: MsmqError) -> str:
    why = getattr(exc, "why", None)
    return str(exc) if why is None else str(why)


def members(item: object, path: str, known: tuple[str, ...], needed: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return an item that is an object with known members. Raises InvalidValue with the path of another."""
    if not isinstance(item, dict):
        raise InvalidValue("not an object", path=path)
    for name in item:
        if name not in known:
            raise InvalidValue(f"no member of it: {', '.join(known)}", path=f"{path}.{name[:100]}")
    for name in needed:
        if name not in item:
            raise InvalidValue("the member is missing", path=f"{path}.{name}")
    return item


def text_of(item: Mapping[str, Any], name: str, path: str, longest: int = 1000) -> str:
    """Return a member that is a text, not empty. Raises InvalidValue."""
    value = item.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise InvalidValue(
            f"not a text of at most {counted(longest, 'character')}, or empty", path=f"{path}.{name}"
        )
    return value
