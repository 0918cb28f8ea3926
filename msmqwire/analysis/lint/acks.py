"""Checks of OrderAck, FinalAck and Ping packets: [MS-MQQB] 2.2.4, 2.2.5 and 2.2.7.

A packet is an OrderAck or FinalAck only if it passes most of these rules. So those about headers are also
applied to a message that was meant as one: `meant_as`.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Any, Final

from msmqwire.analysis.lint.registry import FINAL_ACK, ORDER_ACK, PING, Problem, rule, value, zero
from msmqwire.constants import MessageClass, is_negative
from msmqwire.headers import USER_HEADER
from msmqwire.headers.acknowledgements import (
    ACK_BODY_SIZE,
    ACK_LABEL,
    ORDER_QUEUE_IDENTIFIER,
    ORDER_QUEUE_NAME,
)
from msmqwire.names.header_names import AT_DESTINATION, DIRECT
from msmqwire.ping import PING_SIGNATURE

ORDER_CLASS: Final = MessageClass.MQMSG_CLASS_ORDER_ACK.value
RECEIVE_CLASS: Final = MessageClass.MQMSG_CLASS_ACK_RECEIVE.value
# RC counts routing servers in any message: MQMQ-2.2.19.2-10.
ALLOWED_BITS: Final = sum(USER_HEADER.bits(f"Flags.{name}").mask for name in ("MP", "DM", "DQ", "RC"))
# MQQB-2.2.5-09 and the table of 3.1.7.17.
NEGATIVE_CLASSES: Final = frozenset(member.value for member in MessageClass if is_negative(member))
_TAIL = rf"\PRIVATE$\{ORDER_QUEUE_NAME}"
_IPX = re.compile(r"[0-9A-F]{8}\.[0-9A-F]{12}")


def meant_as(packet: Any) -> tuple[str, ...]:
    """Return the kinds of checks for a packet: its own, and the acknowledgement it was meant as."""
    kind: str = packet.schema.name
    if kind != "UserMessage":
        return (kind,)
    number = packet.MessagePropertiesHeader.MessageClass
    if number == ORDER_CLASS:
        return (kind, "OrderAck")
    if number >= RECEIVE_CLASS and _to_order_queue(packet.UserHeader):
        return (kind, "FinalAck")
    return (kind,)


def _to_order_queue(user: Any) -> bool:
    queue = user.DestinationQueue
    if queue is None:
        return False
    name = queue.get("DirectFormatName")
    if isinstance(name, str):
        return name.upper().endswith(_TAIL.upper())
    return bool(
        user.Flags.DQ == AT_DESTINATION and queue.get("PrivateQueueIdentifier") == ORDER_QUEUE_IDENTIFIER
    )


def _user_flags(packet: Any, *, express: bool) -> Problem:
    flags = packet.UserHeader.Flags
    # MQQB-2.2.4-03, MQQB-2.2.5-04
    if flags.DQ not in (AT_DESTINATION, DIRECT):
        return "UserHeader.Flags.DQ", f"{flags.DQ} is neither 3 nor 7"
    modes = (0, 1) if express else (1,)  # MQQB-2.2.4-03, MQQB-2.2.5-04
    if flags.DM not in modes:
        return "UserHeader.Flags.DM", f"{flags.DM} is not 1"
    wrong = int(flags) & ~ALLOWED_BITS  # MQQB-2.2.4-03, MQQB-2.2.5-04
    if wrong:
        names = [part.name for part in flags.schema.parts if part.mask & wrong]
        return f"UserHeader.Flags.{names[0]}", f"{', '.join(names)} not 0"
    return None


def _number(packet: Any) -> Problem:
    user = packet.UserHeader
    if user.DestinationQueue is None or user.Flags.DQ != AT_DESTINATION:
        return None
    number = user.DestinationQueue.get("PrivateQueueIdentifier", ORDER_QUEUE_IDENTIFIER)
    # MQQB-2.2.4-04, MQQB-2.2.5-05
    return None if number == ORDER_QUEUE_IDENTIFIER else f"{number} is not 4, the order queue"


def _split(packet: Any) -> tuple[str, str] | None:
    """Return protocol and address of a direct name of an order queue, else None."""
    queue = packet.UserHeader.DestinationQueue
    name = queue.get("DirectFormatName") if queue is not None else None
    if not isinstance(name, str):
        return None
    protocol, colon, rest = name.partition(":")
    # MQQB-2.2.4-05, MQQB-2.2.5-06
    if not colon or protocol.upper() not in ("TCP", "SPX") or not rest.upper().endswith(_TAIL.upper()):
        return None
    return protocol.upper(), rest[: -len(_TAIL)]


def _name(packet: Any) -> Problem:
    queue = packet.UserHeader.DestinationQueue
    if queue is None or queue.get("DirectFormatName") is None or _split(packet) is not None:
        return None
    return f"{queue.DirectFormatName!r} is not TCP:<address>{_TAIL} or SPX:<address>{_TAIL}"


def _address(packet: Any) -> Problem:
    split = _split(packet)
    if split is None:
        return None
    protocol, address = split
    if protocol == "SPX":  # MQQB-2.2.4-06
        return None if _IPX.fullmatch(address) else f"{address!r} is not 8 hexadecimal digits, a dot and 12"
    try:
        ip_address(address.strip("[]"))  # MQQB-2.2.4-06
    except ValueError:
        return f"{address!r} is not an IP address"
    return None


def _register(ids: dict[str, str], kinds: frozenset[str], *, express: bool, name: str) -> None:
    """Register the rules common to both acknowledgements."""
    # MQQB-2.2.4-02, MQQB-2.2.5-03
    zero(ids["base"], f"BaseHeader.Flags of {name} is not 0", "BaseHeader.Flags", kinds)
    rule(
        ids["user"], f"UserHeader.Flags of {name} has bits that it must not have", "UserHeader.Flags", kinds
    )(lambda packet: _user_flags(packet, express=express))
    queue = "UserHeader.DestinationQueue"
    rule(ids["number"], f"{name} does not go to queue 4", f"{queue}.PrivateQueueIdentifier", kinds)(_number)
    rule(ids["name"], f"{name} does not go to order_queue$", f"{queue}.DirectFormatName", kinds)(_name)
    rule(ids["address"], f"The destination of {name} has no address", f"{queue}.DirectFormatName", kinds)(
        _address
    )
    value(
        ids["label"],
        f"{name} has another label",
        "MessagePropertiesHeader.Label",
        kinds,
        lambda label: label == ACK_LABEL,  # MQQB-2.2.4-07, MQQB-2.2.5-07
        f"{{!r}} is not {ACK_LABEL!r}",
    )
    value(
        ids["size"],
        f"MessageSize of {name} is not 36",
        "MessagePropertiesHeader.MessageSize",
        kinds,
        lambda number: number == ACK_BODY_SIZE,  # MQQB-2.2.4-08, MQQB-2.2.5-07
        "{} is not 36",
    )
    # MQQB-2.2.4-09, MQQB-2.2.5-07
    zero(ids["flags"], f"{name} asks for acknowledgements", "MessagePropertiesHeader.Flags", kinds)
    # MQQB-2.2.4-11, MQQB-2.2.5-10
    zero(ids["type"], f"BodyType of {name} is not VT_EMPTY", "MessagePropertiesHeader.BodyType", kinds)


_register(
    {
        "base": "MQQB-2.2.4-02",
        "user": "MQQB-2.2.4-03",
        "number": "MQQB-2.2.4-04",
        "name": "MQQB-2.2.4-05",
        "address": "MQQB-2.2.4-06",
        "label": "MQQB-2.2.4-07",
        "size": "MQQB-2.2.4-08",
        "flags": "MQQB-2.2.4-09",
        "type": "MQQB-2.2.4-11",
    },
    ORDER_ACK,
    express=True,
    name="OrderAck",
)
_register(
    {
        "base": "MQQB-2.2.5-03",
        "user": "MQQB-2.2.5-04",
        "number": "MQQB-2.2.5-05",
        "name": "MQQB-2.2.5-06",
        "address": "MQQB-2.2.5-06-ADDRESS",
        "label": "MQQB-2.2.5-07",
        "size": "MQQB-2.2.5-07-SIZE",
        "flags": "MQQB-2.2.5-07-FLAGS",
        "type": "MQQB-2.2.5-10",
    },
    FINAL_ACK,
    express=False,
    name="FinalAck",
)

value(
    "MQQB-2.2.4-10",
    "MessageClass of OrderAck is not 0x00FF",
    "MessagePropertiesHeader.MessageClass",
    ORDER_ACK,
    lambda number: number == ORDER_CLASS,
    "{:#06x} is not 0x00ff",
)
value(
    "MQQB-2.2.5-09",
    "MessageClass of FinalAck is not one of a FinalAck",
    "MessagePropertiesHeader.MessageClass",
    FINAL_ACK,
    lambda number: number == RECEIVE_CLASS or number in NEGATIVE_CLASSES,
    "{:#06x} is none of them",
)

value(
    "MQQB-2.2.4.1-03",
    "TxSequenceNumber is 0",
    "OrderAckBody.TxSequenceNumber",
    ORDER_ACK,
    bool,
    "0 is not valid",
)
value(
    "MQQB-2.2.5.1-03",
    "TxSequenceNumber is 0",
    "FinalAckBody.TxSequenceNumber",
    FINAL_ACK,
    bool,
    "0 is not valid",
)


@rule(
    "MQQB-2.2.4.1-04",
    "TxPreviousSequenceNumber is not TxSequenceNumber - 1",
    "OrderAckBody.TxPreviousSequenceNumber",
    ORDER_ACK,
)
def _order_previous(packet: Any) -> Problem:
    number, previous = packet.OrderAckBody.TxSequenceNumber, packet.OrderAckBody.TxPreviousSequenceNumber
    return f"{previous} is not {number} - 1" if number and previous != number - 1 else None


value(
    "MQQB-2.2.4.1-05",
    "Reserved is not 0",
    "OrderAckBody.Reserved",
    ORDER_ACK,
    lambda data: not any(data),
    "not all of its bytes are 0",
    "SHOULD",
)


@rule(
    "MQQB-2.2.5.1-04",
    "TxPreviousSequenceNumber is not before TxSequenceNumber",
    "FinalAckBody.TxPreviousSequenceNumber",
    FINAL_ACK,
)
def _final_previous(packet: Any) -> Problem:
    number, previous = packet.FinalAckBody.TxSequenceNumber, packet.FinalAckBody.TxPreviousSequenceNumber
    return f"{previous} is not before {number}" if number and previous >= number else None


value(
    "MQQB-2.2.7-08",
    "Signature of a Ping is not 0x5548",
    "Signature",
    PING,
    lambda number: number == PING_SIGNATURE,
    "{:#06x} is not 0x5548",
)
