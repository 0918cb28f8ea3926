"""One line for a packet, for `summary()`."""

from __future__ import annotations

from typing import Final

from msmqwire.bodies import inspect_body
from msmqwire.constants import MessageClass, class_name
from msmqwire.errors import InvalidValue
from msmqwire.headers.queue_names import destination
from msmqwire.names.printable import cut, safe
from msmqwire.packets import FINAL_ACK, ORDER_ACK
from msmqwire.plugins.scapy.stack import Stack
from msmqwire.plugins.scapy.structure import Structure, partial

_TEXT_MAX: Final = 40
"""Characters of a body in a summary."""


def packet_summary(stack: Stack) -> str:
    """Return the kind of a packet and its main facts."""
    if stack.schema is None:
        return "MSMQ " + "/".join(type(layer).__name__.removeprefix("MSMQ") for layer in stack.layers)
    layers = {layer.schema.name: layer for layer in stack.layers if isinstance(layer, Structure)}
    if "UserHeader" in layers:
        body = "" if stack.schema in (ORDER_ACK, FINAL_ACK) else _body(layers)
        return f"MSMQ {stack.schema.name} {_message(layers)}{body}"
    details = {
        "EstablishConnectionHeader": lambda it: f"{it.ClientGuid} > {it.ServerGuid}",
        "ConnectionParametersHeader": lambda it: f"AckTimeout={it.AckTimeout} WindowSize={it.WindowSize}",
        "SessionHeader": lambda it: f"AckSequenceNumber={it.AckSequenceNumber}",
    }
    shown = next(details[name](layer) for name, layer in layers.items() if name in details)
    refused = " refused" if layers["InternalHeader"].CS else ""
    return f"MSMQ {stack.schema.name} {shown}{refused}"


def _body(layers: dict[str, Structure]) -> str:
    """Return the format of a body and the beginning of its text; nothing for bytes and encrypted bodies."""
    properties, security = layers["MessagePropertiesHeader"], layers.get("SecurityHeader")
    body, body_type, extension = properties.MessageBody, properties.BodyType, properties.ExtensionData
    if not body or not isinstance(body, bytes) or (security is not None and security.EB):
        return ""
    found = inspect_body(
        body,
        body_type=body_type if isinstance(body_type, int) else 0,
        extension=extension if isinstance(extension, bytes) else b"",
    )
    if found.format == "bytes":
        return ""
    return f" {found.format} {safe(cut(found.text, _TEXT_MAX))}".rstrip()


def _message(layers: dict[str, Structure]) -> str:
    user, properties = layers["UserHeader"], layers["MessagePropertiesHeader"]
    try:
        queue = destination(user.schema.make(partial(user)))
    except InvalidValue:
        queue = None
    shown = [f"MessageID={user.MessageID}", f"> {queue}" if queue else ""]
    if properties.MessageClass not in (None, MessageClass.MQMSG_CLASS_NORMAL):
        shown.append(class_name(properties.MessageClass))
    if properties.Label is not None:
        shown.append(repr(properties.Label))
    return " ".join(filter(None, shown))
