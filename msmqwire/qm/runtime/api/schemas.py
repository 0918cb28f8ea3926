"""The named schemas of the API's document: JSON Schema 2020-12."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.qm.runtime.api.policy_schemas import GOVERNED, POLICY
from msmqwire.qm.runtime.api.values import Schema
from msmqwire.qm.runtime.queue_properties import LABEL_MAX

_TEXT: Final[Schema] = {"type": "string"}
_TEXT_OR_NULL: Final[Schema] = {"type": ["string", "null"]}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_FLAG: Final[Schema] = {"type": "boolean"}
UINT32_MAX: Final = 0xFFFFFFFF
UINT32: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": UINT32_MAX}
_KILOBYTES_OR_NULL: Final[Schema] = {
    "type": ["integer", "null"],
    "minimum": 0,
    "maximum": UINT32_MAX,
    "description": "KiB; null for no limit",
}
_RIGHTS: Final[Schema] = {
    "type": "object",
    "description": "By user or group: rights",
    "additionalProperties": {"type": "array", "items": _TEXT},
}
_RIGHTS_CHANGES: Final[Schema] = {
    "description": "`USER:RIGHT,RIGHT`, as `anne:receive,send`; the words of `msmqwire queue set --allow`",
    "type": "array",
    "items": _TEXT,
    "maxItems": 100,
}
SETTABLE: Final[Mapping[str, Schema]] = {
    "label": {"type": "string", "maxLength": LABEL_MAX},
    "journal": _FLAG,
    "quota": _KILOBYTES_OR_NULL,
    "journal_quota": _KILOBYTES_OR_NULL,
    "authenticated": _FLAG,
    "privacy": {"type": "string", "enum": ["none", "optional", "body"]},
    "base_priority": {"type": "integer", "minimum": -0x8000, "maximum": 0x7FFF},
    "type": {"type": "string", "format": "uuid"},
    "multicast": {"type": ["string", "null"], "description": "Address and port, 234.1.1.1:8001"},
    "allow": _RIGHTS_CHANGES,
    "deny": _RIGHTS_CHANGES,
    **GOVERNED,
}
"""The properties of a queue that can be set."""

SCHEMAS: Final[dict[str, Schema]] = {
    "Policy": POLICY,
    "Problem": {
        "type": "object",
        "required": ["type", "title", "status", "detail", "name"],
        "properties": {
            "type": _TEXT,
            "title": _TEXT,
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "detail": {"type": "string", "description": "The reason, one sentence"},
            "name": {
                "type": "string",
                "description": "MQ_ERROR_… of a queue manager, or the kind of the error",
            },
            "path": {"type": "string", "description": "The value that is meant, as `messages[3].label`"},
        },
    },
    "Healthz": {"type": "object", "required": ["ok"], "properties": {"ok": _FLAG}},
    "Readiness": {
        "type": "object",
        "required": ["ok", "checks"],
        "properties": {
            "ok": _FLAG,
            "checks": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name", "ok", "detail"],
                    "properties": {"name": _TEXT, "ok": _FLAG, "detail": _TEXT},
                },
            },
        },
    },
    "Drain": {
        "type": "object",
        "required": ["draining", "held"],
        "properties": {
            "draining": _FLAG,
            "held": {**_COUNT, "description": "Messages that programs have received and not ended"},
        },
    },
    "DrainRequest": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"on": {**_FLAG, "description": "true, the default, to drain; false to resume"}},
    },
    "Queue": {
        "type": "object",
        "required": ["queue", "kind", "messages", "bytes"],
        "properties": {
            "queue": {"type": "string", "description": "Its name on this computer, as `private$\\orders`"},
            "kind": {"type": "string", "enum": ["private", "public", "system", "connector", "outgoing"]},
            "messages": _COUNT,
            "bytes": _COUNT,
            "format_name": _TEXT_OR_NULL,
            "identifier": _TEXT,
            "label": _TEXT,
            "transactional": _FLAG,
            "journal": _FLAG,
            "journal_messages": _COUNT,
            "quota": _KILOBYTES_OR_NULL,
            "journal_quota": _KILOBYTES_OR_NULL,
            "authenticated": _FLAG,
            "privacy": _TEXT,
            **GOVERNED,
            "policies": {
                "type": "object",
                "description": "By property: the policy that decides it",
                "additionalProperties": _TEXT,
            },
            "base_priority": {"type": "integer"},
            "type": _TEXT,
            "multicast": _TEXT_OR_NULL,
            "subqueues": {
                "type": "object",
                "description": "By name: messages",
                "additionalProperties": _COUNT,
            },
            "open": _COUNT,
            "owner": _TEXT,
            "allow": _RIGHTS,
            "deny": _RIGHTS,
        },
    },
}
"""By name; modules of endpoints add theirs with `RouteTable`."""
