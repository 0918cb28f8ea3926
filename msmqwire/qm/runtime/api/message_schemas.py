"""The schemas of messages: those that are sent, and those that are received."""

from __future__ import annotations

from typing import Final

from msmqwire.qm.model.message import LABEL_MAX
from msmqwire.qm.runtime.api.values import Schema
from msmqwire.qm.runtime.deliveries import DELIVERIES, EXPRESS, RECOVERABLE, TRANSACTIONAL
from msmqwire.qm.runtime.message_json import ACKNOWLEDGEMENTS
from msmqwire.qm.runtime.message_protection import CIPHERS

_UINT32_MAX: Final = 0xFFFFFFFF
_TEXT: Final[Schema] = {"type": "string"}
_TEXT_OR_NULL: Final[Schema] = {"type": ["string", "null"]}
_NUMBER: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": _UINT32_MAX}
_FLAG: Final[Schema] = {"type": "boolean"}
_BASE64: Final[Schema] = {"type": "string", "description": "base64"}
_BASE64_OR_NULL: Final[Schema] = {"type": ["string", "null"], "description": "base64"}
_TIME: Final[Schema] = {"type": ["string", "null"], "description": "ISO 8601, UTC"}
_SECONDS: Final[Schema] = {
    "type": ["integer", "null"],
    "minimum": 0,
    "maximum": _UINT32_MAX,
    "description": "Seconds; null for no limit",
}
_NAME_OR_NULL: Final[Schema] = {"type": ["string", "null"], "description": "A format name"}
_ACKNOWLEDGEMENTS: Final[Schema] = {
    "type": "array",
    "items": {"type": "string", "enum": list(ACKNOWLEDGEMENTS)},
    "maxItems": len(ACKNOWLEDGEMENTS),
}
RECEIPT: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 64}
"""A receipt, as clients send it."""

MESSAGE_TO_SEND: Final[Schema] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "body": _BASE64,
        "body_type": _NUMBER,
        "label": {"type": "string", "maxLength": LABEL_MAX},
        "delivery": {
            "type": "string",
            "enum": sorted(DELIVERIES),
            "description": f"`{TRANSACTIONAL}` by default in a transaction and to a transactional queue of "
            f"this computer, else `{RECOVERABLE}`; `{EXPRESS}` messages are lost in a restart",
        },
        "priority": {"type": "integer", "minimum": 0, "maximum": 7},
        "class": {"type": "integer", "minimum": 0, "maximum": 0xFFFF},
        "correlation": {
            "type": ["string", "null"],
            "description": "The identifier of another message, or 20 bytes in hex",
        },
        "application": _NUMBER,
        "extension": _BASE64_OR_NULL,
        "acknowledge": _ACKNOWLEDGEMENTS,
        "admin_queue": _NAME_OR_NULL,
        "response_queue": _NAME_OR_NULL,
        "journal": _FLAG,
        "dead_letter": _FLAG,
        "time_to_reach_queue": _SECONDS,
        "time_to_be_received": _SECONDS,
        "encrypt": {"type": ["string", "null"], "enum": [*CIPHERS, None]},
        "signature": {
            "type": ["object", "null"],
            "description": "A signature made by the client",
            "required": ["version", "hash", "sid", "certificate", "value"],
            "properties": {
                "version": _TEXT,
                "hash": _NUMBER,
                "sid": _BASE64,
                "certificate": _BASE64,
                "value": _BASE64,
            },
        },
    },
}

MESSAGE: Final[Schema] = {
    "type": "object",
    "required": ["identifier", "lookup_identifier", "body", "label", "class", "delivery", "priority"],
    "properties": {
        "identifier": {"type": "string", "description": "`guid\\number`"},
        "lookup_identifier": {"type": "string", "description": "Its place in the queue, a number as text"},
        "label": _TEXT,
        "body": _BASE64,
        "body_type": _NUMBER,
        "class": {"type": "integer"},
        "class_name": _TEXT_OR_NULL,
        "delivery": {"type": "string", "enum": sorted(DELIVERIES)},
        "priority": {"type": "integer"},
        "sent": _TIME,
        "arrived": _TIME,
        "time_to_reach_queue": _SECONDS,
        "time_to_be_received": _SECONDS,
        "source": _TEXT_OR_NULL,
        "sender": _TEXT_OR_NULL,
        "acknowledge": {"type": "array", "items": _TEXT},
        "admin_queue": _NAME_OR_NULL,
        "response_queue": _NAME_OR_NULL,
        "destination": _NAME_OR_NULL,
        "correlation": _TEXT_OR_NULL,
        "application": _NUMBER,
        "extension": _BASE64_OR_NULL,
        "journal": _FLAG,
        "dead_letter": _FLAG,
        "hops": {"type": "integer"},
        "authenticated": _FLAG,
        "signature": _TEXT_OR_NULL,
        "sender_certificate": _BASE64_OR_NULL,
        "encrypted": _TEXT_OR_NULL,
        "deliveries": {
            "type": "integer",
            "minimum": 0,
            "description": "Times that a program has received it and did not end it",
        },
        "reason": {"type": ["string", "null"], "description": "Why a policy moved it to its queue"},
    },
}

MESSAGE_SCHEMAS: Final[dict[str, Schema]] = {
    "Message": MESSAGE,
    "MessageToSend": MESSAGE_TO_SEND,
    "ReceivedMessage": {
        **MESSAGE,
        "required": [*MESSAGE["required"], "receipt"],
        "properties": {
            **MESSAGE["properties"],
            "receipt": {"type": "string", "description": "Settles the message, once, by the same token"},
        },
    },
}
"""By name."""
