"""Properties of queues as requests give them: read, checked and set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from msmqwire.errors import InvalidValue
from msmqwire.names import parse_path_name
from msmqwire.qm.model import access
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import INFINITE, QueuePrivacy
from msmqwire.qm.model.policies import (
    DELIVERY_LIMIT_MAX,
    GOVERNED,
    POISON,
    SETTABLE,
    TIME_TO_LIVE_MAX,
    WHEN_FULL,
)
from msmqwire.qm.rules.lookup import group_of
from msmqwire.qm.runtime.message_json import flag, number
from msmqwire.qm.runtime.queue_access import access_changes, changed_access

if TYPE_CHECKING:
    from msmqwire.qm.core import Core

LABEL_MAX: Final = 124
"""Limit of the label of a queue in characters."""


def _label(value: object, path: str) -> str:
    if not isinstance(value, str) or len(value) > LABEL_MAX:
        raise InvalidValue(f"not a text of at most {LABEL_MAX} characters", path=path)
    return value


def _quota(value: object, path: str) -> int:
    return INFINITE if value is None else number(value, path)


def _privacy(value: object, path: str) -> QueuePrivacy:
    privacy = {level.value.lower(): level for level in QueuePrivacy}.get(str(value))
    if privacy is None:
        raise InvalidValue(f"{value!r:.100} is none of none, optional, body", path=path)
    return privacy


def _guid(value: object, path: str) -> UUID:
    try:
        return UUID(str(value))
    except ValueError:
        example = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
        raise InvalidValue(f"{value!r:.100} is not a GUID, as {example}", path=path) from None


def _priority(value: object, path: str) -> int:
    return number(value, path, 0x7FFF, -0x8000)


def _multicast(value: object, path: str) -> str | None:
    if value is None:
        return None
    group = group_of(value) if isinstance(value, str) else None  # MQMQ-2.3.1.23-02
    if group is None:
        raise InvalidValue(f"{value!r:.100} is not an address and port, 234.1.1.1:8001", path=path)
    address, port = group
    return f"{address}:{port}"


def _time_to_live(value: object, path: str) -> int:
    return INFINITE if value is None else number(value, path, TIME_TO_LIVE_MAX, 1)


def _delivery_limit(value: object, path: str) -> int:
    return 0 if value is None else number(value, path, DELIVERY_LIMIT_MAX, 1)


def _word(words: tuple[str, ...]) -> Callable[[object, str], str]:
    def read(value: object, path: str) -> str:
        if not isinstance(value, str) or value not in words:
            raise InvalidValue(f"{value!r:.100} is neither {' nor '.join(words)}", path=path)
        return value

    return read


DEFAULT: Final = "default"
"""The value that forgets what was set on a queue for a property; null does for a label."""
_FORGET: Final = object()
CHANGEABLE: Final[Mapping[str, tuple[str, Callable[[object, str], object]]]] = {
    "allow": ("allow", access_changes),
    "authenticated": ("authentication", flag),
    "base_priority": ("base_priority", _priority),
    "delivery_limit": ("delivery_limit", _delivery_limit),
    "deny": ("deny", access_changes),
    "journal": ("journaling", flag),
    "journal_quota": ("journal_quota", _quota),
    "label": ("label", _label),
    "multicast": ("multicast_address", _multicast),
    "poison": ("poison", _word(POISON)),
    "privacy": ("privacy_level", _privacy),
    "quota": ("quota", _quota),
    "time_to_live": ("time_to_live", _time_to_live),
    "type": ("type", _guid),
    "when_full": ("when_full", _word(WHEN_FULL)),
}
"""By property: the attribute of a queue and the function that reads it; `transactional` can't change.

Allowed and denied rights change entries of its descriptor.
"""


def settings_of(request: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """Return the properties that a request sets, by attribute; it has `others` as well.

    Raises InvalidValue.
    """
    settings: dict[str, Any] = {}
    for name, value in request.items():
        if name in SETTABLE and value == (None if name == "label" else DEFAULT):
            settings[SETTABLE[name].attribute] = _FORGET
        elif name in CHANGEABLE:
            attribute, read = CHANGEABLE[name]
            settings[attribute] = read(value, name)
        elif name not in ("op", "id", "queue", *others):  # MQMQ-2.3.1.3-02
            raise InvalidValue("not a property that can be set", path=name)  # MQMQ-2.3.1.3-02
    return settings


def governed_values(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties that a policy has, checked; null is for no limit. Raises InvalidValue."""
    values: dict[str, Any] = {}
    for name, value in request.items():
        if name not in GOVERNED:
            raise InvalidValue(f"none of {', '.join(GOVERNED)}, which policies have", path=name)
        CHANGEABLE[name][1](value, name)
        values[name] = value
    return values


def set_properties(core: Core, queue: Queue, settings: Mapping[str, Any]) -> None:
    """Set attributes, on the queue itself; the base priority of a private queue is kept.

    Raises InvalidValue for a multicast address of a transactional queue: no message could reach it.
    """
    if settings.get("multicast_address") not in (None, _FORGET) and queue.transactional:
        raise InvalidValue("a transactional queue gets no multicast messages", path="multicast")
    others = dict(settings)
    deny, allow = others.pop("deny", ()), others.pop("allow", ())
    if deny or allow:
        if queue.owner_queue is not None:
            raise InvalidValue("a subqueue is protected like its queue", path="deny" if deny else "allow")
        access.set_security(queue, changed_access(queue.security, deny, allow))
    private = parse_path_name(queue.pathname).private
    for name, settable in SETTABLE.items():
        value = others.get(settable.attribute, queue)
        if value is queue or (name == "base_priority" and private):  # MQMQ-2.3.1.6-03
            continue
        if value is _FORGET:
            core.queues.policies.forget(queue, name)
        else:
            setattr(queue, settable.attribute, value)
            queue.own[name] = settable.of(queue)
