"""The policies of a queue manager, and the properties of queues that follow from them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.policies import GOVERNED, SETTABLE, Policy, is_governed
from msmqwire.qm.model.tables import Table
from msmqwire.service.store.changes import Key

POLICIES_MAX: Final = 1_000
"""Limit of policies: each is compared with the name of each new queue."""


class Policies:
    """All policies, and the rule of precedence.

    A queue has what was set on it, else what the policy of the highest order has, of equals the first by
    name, else the default.

    Attributes:
        by_name: the policies.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.by_name: dict[str, Policy] = {}
        self._ranked: list[Policy] = []

    def restore(self, rows: Iterable[tuple[Key, bytes]]) -> None:
        """Read the policies of a store. Raises ValueError and KeyError for a damaged row."""
        for key, row in rows:
            assert isinstance(key, bytes)
            content = json.loads(row)
            policy = Policy(key.decode(), content["pattern"], content["order"], content["properties"])
            self.by_name[policy.name] = policy
        self._rank()

    def put(self, policy: Policy) -> None:
        """Add a policy or replace the one of its name; it holds at once."""
        content = {"pattern": policy.pattern, "order": policy.order, "properties": dict(policy.properties)}
        self._context.changes.put(Table.POLICY, policy.name.encode(), json.dumps(content).encode())
        former = self.by_name.get(policy.name)
        self.by_name[policy.name] = policy
        self._changed(*filter(None, [former]), policy)

    def delete(self, name: str) -> None:
        """Delete a policy: queues have what else holds at once."""
        self._context.changes.delete(Table.POLICY, name.encode())
        self._changed(self.by_name.pop(name))

    def _rank(self) -> None:
        self._ranked = sorted(self.by_name.values(), key=lambda one: (-one.order, one.name))

    def _changed(self, *policies: Policy) -> None:
        self._rank()
        for queue in self._context.queue_manager.queues.values():
            if is_governed(queue):  # there may be a hundred thousand
                name = _name(queue)
                for policy in policies:
                    if policy.glob.matches(name):
                        self._apply(queue, name)
                        break

    def apply(self, queue: Queue) -> None:
        """Set the properties of a queue that policies have, as the rule of precedence says."""
        if is_governed(queue):
            self._apply(queue, _name(queue))

    def _apply(self, queue: Queue, name: str) -> None:
        values = dict(_DEFAULTS)
        for policy in reversed(self._ranked):
            if policy.glob.matches(name):
                values.update(policy.attributes)
        for attribute, value in values.items():
            setattr(queue, attribute, value)
        for one in GOVERNED.keys() & queue.own.keys():
            GOVERNED[one].set(queue, queue.own[one])

    def names(self, queue: Queue) -> dict[str, str]:
        """Return which policy decides each property that is of a policy."""
        return {name: policy.name for name, policy in sorted(self._governing(queue).items())}

    def _governing(self, queue: Queue) -> dict[str, Policy]:
        """Return the policies that decide properties of a queue, by property."""
        found: dict[str, Policy] = {}
        if self._ranked and is_governed(queue):
            name = _name(queue)
            wanted = GOVERNED.keys() - queue.own.keys()
            for policy in self._ranked:
                new = wanted & policy.properties.keys() - found.keys()
                if new and policy.glob.matches(name):
                    found.update(dict.fromkeys(new, policy))
                    if len(found) == len(wanted):
                        break
        return found

    def adopt(self, queue: Queue, *, fresh: bool = False) -> None:
        """Count as set on a queue what is neither its default nor what was set or governs it.

        A queue of an older store has such properties, and one that the directory or another program has
        changed. No policy governs a `fresh` one yet.
        """
        if not is_governed(queue):
            return
        governing = {} if fresh else self._governing(queue)
        for name, settable in SETTABLE.items():
            value = settable.of(queue)
            if name in queue.own:
                expected: Any = queue.own[name]
            elif name in governing:
                expected = governing[name].properties[name]
            else:
                expected = settable.of(_DEFAULT)
            if value != expected:
                queue.own[name] = value

    def forget(self, queue: Queue, name: str) -> None:
        """Forget what was set on a queue for a property: it has what else holds."""
        queue.own.pop(name, None)
        setattr(queue, SETTABLE[name].attribute, SETTABLE[name].default)
        self.apply(queue)


def _name(queue: Queue) -> str:
    """Return the name that patterns are compared with."""
    return queue.pathname.partition("\\")[2].lower()


_DEFAULT: Final = Queue(NULL_GUID)
_DEFAULTS: Final = {settable.attribute: settable.default for settable in GOVERNED.values()}
