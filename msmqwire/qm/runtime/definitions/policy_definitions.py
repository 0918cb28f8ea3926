"""Policies in definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msmqwire.errors import InvalidValue
from msmqwire.qm.model.policies import GOVERNED, Policy
from msmqwire.qm.rules.policies import POLICIES_MAX
from msmqwire.qm.runtime import policies
from msmqwire.qm.runtime.definitions.changes import CHANGE, CREATE, Plan, located, members

if TYPE_CHECKING:
    from msmqwire.qm.core import Core

_KIND: Final = "policy"
_MEMBERS: Final = ("name", "pattern", "order", *GOVERNED)


def exported(core: Core) -> list[dict[str, Any]]:
    """Return the policies, by name."""
    return policies.listed(core)


def check(plan: Plan, items: list[Any], path: str) -> None:
    """Check policies, and add to a plan what they change. Raises InvalidValue."""
    known = plan.core.queues.policies.by_name
    names = set(known)
    there: set[str] = set()
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        members(item, at, _MEMBERS, ("name", "pattern", "order"))
        policy: Policy = located(at, policies.policy_of, item)
        if policy.name in there:
            raise InvalidValue(f"{policy.name}: the policy is there twice", path=f"{at}.name")
        there.add(policy.name)
        names.add(policy.name)
        if len(names) > POLICIES_MAX:
            raise InvalidValue(f"more than {POLICIES_MAX:,} policies", path=at)
        former = known.get(policy.name)
        if former is None or former.to_json() != policy.to_json():
            plan.add(CREATE if former is None else CHANGE, _KIND, policy.name)
            plan.steps.append(_step(plan.core, policy, former))


def _step(core: Core, policy: Policy, former: Policy | None) -> Callable[[], Callable[[], None]]:
    held = core.queues.policies

    def put() -> Callable[[], None]:
        held.put(policy)
        return lambda: held.delete(policy.name) if former is None else held.put(former)

    return put
