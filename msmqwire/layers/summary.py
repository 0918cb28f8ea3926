"""One line for a packet, for `summary()`."""

from __future__ import annotations

from msmqwire.constants import MessageClass, class_name
from msmqwire.errors import InvalidValue
from msmqwire.headers.queue_names import destination
from msmqwire.layers.stack import Stack
from msmqwire.layers.structure import Structure, partial


def packet_summary(stack: Stack) -> str:
    """Return the kind of a packet and what matters of it."""
    if stack.schema is None:
        return "MSMQ " + "/".join(type(layer).__name__.removeprefix("MSMQ") for layer in stack.layers)
    layers = {layer.schema.name: layer for layer in stack.layers if isinstance(layer, Structure)}
    if "UserHeader" in layers:
        return f"MSMQ {stack.schema.name} {_message(layers)}"
    details = {
        "EstablishConnectionHeader": lambda it: f"{it.ClientGuid} > {it.ServerGuid}",
        "ConnectionParametersHeader": lambda it: f"AckTimeout={it.AckTimeout} WindowSize={it.WindowSize}",
        "SessionHeader": lambda it: f"AckSequenceNumber={it.AckSequenceNumber}",
    }
    shown = next(details[name](layer) for name, layer in layers.items() if name in details)
    refused = " refused" if layers["InternalHeader"].CS else ""
    return f"MSMQ {stack.schema.name} {shown}{refused}"


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
