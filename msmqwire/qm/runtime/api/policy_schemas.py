"""The schemas of policies, and of the properties of queues that they have."""

from __future__ import annotations

from typing import Final

from msmqwire.qm.model.policies import DELIVERY_LIMIT_MAX, POISON, TIME_TO_LIVE_MAX, WHEN_FULL
from msmqwire.qm.runtime.api.values import Schema
from msmqwire.qm.runtime.policies import NAME, ORDER_MAX, PATTERN_MAX

GOVERNED: Final[dict[str, Schema]] = {
    "quota": {
        "type": ["integer", "null"],
        "minimum": 0,
        "maximum": 0xFFFFFFFF,
        "description": "KiB of messages; null for no limit",
    },
    "journal": {"type": "boolean", "description": "Whether received messages are kept in the journal"},
    "time_to_live": {
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": TIME_TO_LIVE_MAX,
        "description": "Seconds after which messages that arrive expire at the latest; null for no limit",
    },
    "when_full": {
        "type": "string",
        "enum": list(WHEN_FULL),
        "description": "What a full queue does with one more message",
    },
    "delivery_limit": {
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": DELIVERY_LIMIT_MAX,
        "description": "Deliveries without an end after which a message is poison; null for no limit",
    },
    "poison": {"type": "string", "enum": list(POISON), "description": "Where poison messages go"},
}
"""The properties that policies have."""
_NAME: Final[Schema] = {"type": "string", "pattern": f"^{NAME}$", "description": "Identifies it"}
_RULE: Final[dict[str, Schema]] = {
    "pattern": {
        "type": "string",
        "minLength": 1,
        "maxLength": PATTERN_MAX,
        "description": "A glob over the names of queues: `*` is any text, case is ignored",
    },
    "order": {
        "type": "integer",
        "minimum": -ORDER_MAX - 1,
        "maximum": ORDER_MAX,
        "description": "Of the policies of a queue the one with the highest order counts",
    },
}
POLICY_WITHOUT_NAME: Final[Schema] = {
    "type": "object",
    "required": ["pattern", "order"],
    "properties": {**_RULE, **GOVERNED},
    "additionalProperties": False,
}
POLICY: Final[Schema] = {
    "type": "object",
    "required": ["name", "pattern", "order"],
    "properties": {"name": _NAME, **_RULE, **GOVERNED},
    "additionalProperties": False,
}
