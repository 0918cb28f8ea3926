"""Operations on policies, as requests name them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msmqwire.constants import HResult
from msmqwire.errors import InvalidValue, QueueError
from msmqwire.qm.model.policies import Policy
from msmqwire.qm.rules.policies import POLICIES_MAX
from msmqwire.qm.runtime.message_json import number
from msmqwire.qm.runtime.queue_properties import governed_values

if TYPE_CHECKING:
    from msmqwire.qm.core import Core

PATTERN_MAX: Final = 512
"""Limit of a pattern in characters: names of queues are shorter."""
ORDER_MAX: Final = 0x7FFFFFFF
NAME: Final = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""The names that a policy may have."""
_OTHERS: Final = ("op", "id", "name", "pattern", "order", "missing")


def listed(core: Core) -> list[dict[str, Any]]:
    """Return all policies, by name."""
    policies = core.queues.policies.by_name
    return [policies[name].to_json() for name in sorted(policies)]


def all_of(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a request for all policies."""
    return {"policies": listed(core)}


def shown(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a policy. Raises QueueError if there is none of its name."""
    return _found(core, request).to_json()


def policy_of(request: Mapping[str, Any]) -> Policy:
    """Return the policy that a request describes. Raises InvalidValue with the path of the wrong value."""
    name, pattern = request.get("name"), request.get("pattern")
    if not isinstance(name, str) or re.fullmatch(NAME, name) is None:
        raise InvalidValue(
            "not a name of 1 to 64 letters, digits, dots, hyphens and underscores", path="name"
        )
    if not isinstance(pattern, str) or not 0 < len(pattern) <= PATTERN_MAX or not pattern.isprintable():
        why = f"not a pattern of 1 to {PATTERN_MAX} printable characters, as private$\\orders*"
        raise InvalidValue(why, path="pattern")
    order = number(request.get("order"), "order", ORDER_MAX, -ORDER_MAX - 1)
    given = {key: value for key, value in request.items() if key not in _OTHERS}
    properties = governed_values(given)
    if not properties:
        raise InvalidValue("the policy has no property: quota or delivery_limit, say", path="policy")
    return Policy(name, pattern, order, properties)


def put(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Add a policy, or replace the one of its name; with ``missing`` there must be none."""
    policy, policies = policy_of(request), core.queues.policies
    if request.get("missing") and policy.name in policies.by_name:
        why = f"{policy.name}: there is a policy of this name; policy set replaces it"
        raise QueueError(why, HResult.MQ_ERROR_QUEUE_EXISTS)
    if policy.name not in policies.by_name and len(policies.by_name) >= POLICIES_MAX:
        why = f"there are {POLICIES_MAX:,} policies, the most that there may be"
        raise QueueError(why, HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
    policies.put(policy)
    return policy.to_json()


def delete(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Delete a policy: its queues have what else holds."""
    policy = _found(core, request)
    core.queues.policies.delete(policy.name)
    return policy.to_json()


def _found(core: Core, request: Mapping[str, Any]) -> Policy:
    name = request.get("name")
    if not isinstance(name, str):
        raise InvalidValue("a text is missing", path="name")
    policy = core.queues.policies.by_name.get(name)
    if policy is None:
        raise QueueError(f"{name!r:.100}: there is no policy of this name", HResult.MQ_ERROR_QUEUE_NOT_FOUND)
    return policy
