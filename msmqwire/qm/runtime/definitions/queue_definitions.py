"""Queues in definitions: what was set on each, its rights, and its private number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msmqwire.constants import MQ_OK, HResult
from msmqwire.errors import InvalidValue, MalformedPacket, QueueError
from msmqwire.headers.security_descriptor import descriptor_parts
from msmqwire.names import parse_path_name
from msmqwire.qm.model import access
from msmqwire.qm.model.elements import Queue, short_name
from msmqwire.qm.model.enumerations import QueueType
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.policies import SETTABLE
from msmqwire.qm.runtime.definitions.changes import CHANGE, CREATE, Plan, located, members, text_of
from msmqwire.qm.runtime.local_names import path_of
from msmqwire.qm.runtime.message_json import flag, number
from msmqwire.qm.runtime.queue_access import access_json, changed_access
from msmqwire.qm.runtime.queue_properties import CHANGEABLE, set_properties, settings_of

if TYPE_CHECKING:
    from msmqwire.qm.core import Core

_KIND: Final = "queue"
_DESCRIPTOR: Final = "security_descriptor"
_MEMBERS: Final = ("queue", "transactional", "private_number", _DESCRIPTOR, *CHANGEABLE)
_NUMBER_MAX: Final = 0xFFFFFFFF
_FIRST_NUMBER: Final = 5
"""The private numbers below it are those of system queues."""


def is_defined(queue: Queue) -> bool:
    """Whether a queue is in definitions: private ones, without journals and subqueues."""
    return queue.queue_type is QueueType.PRIVATE and queue.owner_queue is None


def exported(core: Core) -> list[dict[str, Any]]:
    """Return the queues, by name."""
    plain = _rights(core.queues.default_security(None))
    queues = [queue for queue in core.queue_manager.queues.values() if is_defined(queue)]
    return sorted((_item(queue, plain) for queue in queues), key=lambda item: item["queue"].lower())


def _item(queue: Queue, plain: Mapping[str, Any]) -> dict[str, Any]:
    item = {"queue": short_name(queue), "transactional": queue.transactional}
    if queue.private_queue_number:
        item["private_number"] = queue.private_queue_number
    item |= {name: queue.own[name] for name in sorted(queue.own)}
    rights = _rights(queue.security)
    return item if rights == plain else item | rights


def _rights(descriptor: bytes) -> dict[str, Any]:
    """Return the rights of a descriptor: as texts, or the whole of it where texts can't say them."""
    shown = access_json(descriptor)
    words = [word for kind in ("allow", "deny") for listed in shown[kind].values() for word in listed]
    if any(word.startswith("0x") for word in words) or descriptor_parts(descriptor).dacl is None:
        return {_DESCRIPTOR: descriptor.hex()}
    return {
        kind: sorted(f"{user}:{','.join(listed)}" for user, listed in shown[kind].items())
        for kind in ("allow", "deny")
        if shown[kind] or kind == "allow"
    }


def check(plan: Plan, items: list[Any], path: str) -> None:
    """Check queues, and add to a plan what they change. Raises InvalidValue."""
    core = plan.core
    known = {
        short_name(queue).lower(): queue for queue in core.queue_manager.queues.values() if is_defined(queue)
    }
    numbers = {queue.private_queue_number for queue in core.queue_manager.queues.values()}
    there: set[str] = set()
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        members(item, at, _MEMBERS, ("queue",))
        name = text_of(item, "queue", at)
        full = located(f"{at}.queue", path_of, name, core.queue_manager.computer_name)
        parsed = parse_path_name(full)
        if parsed.subqueue is not None or parsed.system or not parsed.private:
            why = "not a private queue, private$\\NAME: others come from the directory, or by themselves"
            raise InvalidValue(f"{name!r:.100}: {why}", path=f"{at}.queue")
        if not core.queues.lookup.is_local(parsed.computer):
            raise InvalidValue(f"{name!r:.100}: a queue of another computer", path=f"{at}.queue")
        key = f"private$\\{parsed.queue}".lower()
        if key in there:
            raise InvalidValue(f"{name!r:.100}: the queue is there twice", path=f"{at}.queue")
        there.add(key)
        transactional = flag(item.get("transactional", False), f"{at}.transactional")
        wanted = (
            number(item["private_number"], f"{at}.private_number", _NUMBER_MAX, _FIRST_NUMBER)
            if ("private_number" in item)
            else 0
        )
        properties = _properties(item)
        settings = located(at, settings_of, properties)
        if settings.get("multicast_address") is not None and transactional:
            raise InvalidValue("a transactional queue gets no multicast messages", path=f"{at}.multicast")
        queue = known.get(key)
        base = core.queues.default_security(None) if queue is None else queue.security
        security = _descriptor(item, base, at)
        if queue is None:
            if wanted in numbers:
                wanted = 0
            numbers.add(wanted)
            plan.add(CREATE, _KIND, name)
            plan.steps.append(_creation(core, full, transactional, settings, security, wanted))
        else:
            if "transactional" in item and queue.transactional != transactional:
                kind = "transactional" if queue.transactional else "not transactional"
                raise InvalidValue(
                    f"{name!r:.100}: the queue is there, and {kind}", path=f"{at}.transactional"
                )
            if _differs(queue, properties, security):
                plan.add(CHANGE, _KIND, name)
                plan.steps.append(_change(core, queue, settings, security))


def _properties(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in item.items() if name in CHANGEABLE and name not in ("allow", "deny")
    }


def _descriptor(item: Mapping[str, Any], present: bytes, path: str) -> bytes | None:
    """Return the descriptor that an item asks for; None to leave it. Raises InvalidValue."""
    if _DESCRIPTOR in item:
        try:
            data = bytes.fromhex(text_of(item, _DESCRIPTOR, path, 0x20000))
            access_json(data)
        except (ValueError, MalformedPacket):
            raise InvalidValue("not a security descriptor in hex", path=f"{path}.{_DESCRIPTOR}") from None
        return data
    if "allow" not in item and "deny" not in item:
        return None

    def read() -> bytes:
        allow, deny = (CHANGEABLE[name][1](item.get(name, []), name) for name in ("allow", "deny"))
        before = access_json(present)
        users = {*before["allow"], *before["deny"]}
        removed = CHANGEABLE["deny"][1]([f"{user}:none" for user in sorted(users)], "deny")
        emptied = changed_access(present, deny=removed)  # type: ignore[arg-type]
        return changed_access(emptied, deny=deny, allow=allow)  # type: ignore[arg-type]

    found: bytes = located(path, read)
    return found


def _differs(queue: Queue, properties: Mapping[str, Any], security: bytes | None) -> bool:
    private = ("base_priority",)  # MQMQ-2.3.1.6-03
    if security is not None and _rights(security) != _rights(queue.security):
        return True
    for name, value in properties.items():
        if name in private:
            continue
        forgets = value == (None if name == "label" else "default")
        if (name in queue.own) if forgets else queue.own.get(name, _MISSING) != _stored(name, value):
            return True
    return False


_MISSING: Final = object()


def _stored(name: str, value: Any) -> Any:
    """Return a value of JSON as `Queue.own` has it."""
    holder = Queue(NULL_GUID)
    attribute, read = CHANGEABLE[name]
    setattr(holder, attribute, read(value, name))
    return SETTABLE[name].of(holder)


def _creation(
    core: Core,
    pathname: str,
    transactional: bool,
    settings: Mapping[str, Any],
    security: bytes | None,
    wanted: int,
) -> Callable[[], Callable[[], None]]:
    def create() -> Callable[[], None]:
        template = Queue(NULL_GUID)
        core.queues.set_defaults(template)
        template.pathname, template.transactional = pathname, transactional
        if security is not None:
            access.set_security(template, security)
        set_properties(core, template, settings)
        status, queue = core.queues.create(template, number=wanted)
        if queue is None or status != MQ_OK:
            code = status if isinstance(status, int) else HResult.MQ_ERROR
            raise QueueError(f"{pathname}: the queue can't be made", code)

        def undo() -> None:
            core.queues.delete(queue)

        return undo

    return create


def _change(
    core: Core, queue: Queue, settings: Mapping[str, Any], security: bytes | None
) -> Callable[[], Callable[[], None]]:
    def change() -> Callable[[], None]:
        own, before = dict(queue.own), queue.security
        if security is not None:
            access.set_security(queue, security)
        set_properties(core, queue, settings)
        core.queues.changed(queue)

        def undo() -> None:
            for name in list(queue.own):
                core.queues.policies.forget(queue, name)
            set_properties(core, queue, settings_of(own))
            access.set_security(queue, before)
            core.queues.changed(queue)

        return undo

    return change
