"""Each length and count of each kind of packet, as its schema declares them, at the number that there is room
for, one more and one less: [MS-MQMQ] 2.2.19 and 2.2.20.

A number that counts bytes after the packet must end the session. Other bytes follow in the same segment, so
that a peer which reads beyond the packet finds some there, and is noticed by going on. The other numbers
leave the packet readable in part or in whole: the session may end or go on, but not hang.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fuzz.boundaries import Boundary, boundaries, filled
from fuzz.peer.binary import messages
from fuzz.peer.binary.cases import MALFORMED, OPENED, Draw, case, send
from fuzz.peer.binary.live import with_counts
from fuzz.peer.steps import Case, Step
from msmqwire.packets import USER_MESSAGE
from msmqwire.schema import Maybe, Record, Sub

_EMPTY: Final = {"Label": None, "MessageBody": b"", "ExtensionData": b""}
_BEYOND: Final = "A length or count that goes beyond the packet ends the session."
_SIZE: Final = "A PacketSize that is not that of the packet ends the session."
_WITHIN: Final = "After a wrong length or count within the packet the session ends or goes on."


def lengths(draw: Draw) -> Iterator[Case]:
    """Return the cases of this module."""
    identifier = draw.sequence()
    for steps, packet in (
        (OPENED[:1], messages.establish()),
        (OPENED[:2], messages.parameters()),
        (OPENED, messages.session_ack()),
        (OPENED, messages.order_ack(identifier, 1)),
        (OPENED, messages.final_ack(identifier, 1)),
    ):
        for boundary in boundaries(packet):
            yield from _tried(draw, steps, packet, boundary)
    seen: set[str] = set()
    for header, packet in _messages(draw):
        for boundary in boundaries(packet):
            # A field is tried once in any message, and again where its part is the one that is filled.
            last = boundary.path.startswith(f"{header}.") and boundary.field.value and not boundary.bounds
            if boundary.path not in seen or last:
                seen.add(boundary.path)
                yield from _tried(draw, OPENED, packet, boundary)


def _messages(draw: Draw) -> Iterator[tuple[str, Record]]:
    """Yield messages with each header, and the name of that, in which one counted part after the other is
    filled; the part is then followed by padding alone.
    """
    for part in USER_MESSAGE.parts:
        node = part.node if isinstance(part, Maybe) else part
        for fields in filled(node.header) if isinstance(node, Sub) else ():
            properties: dict[str, Any] = {"MessagePropertiesHeader": _EMPTY}
            yield part.name, draw.message(messages.merged(properties, {part.name: fields}), wants=messages.PA)
    body = {"MessagePropertiesHeader": {**_EMPTY, "MessageBody": b"msmqwire"}, "SessionHeader": {}}
    yield "MessagePropertiesHeader", draw.message(body, wants=messages.PA)


def _tried(draw: Draw, steps: tuple[Step, ...], packet: Record, boundary: Boundary) -> Iterator[Case]:
    ids = (*boundary.requirements[:1], MALFORMED)
    data = packet.to_bytes()
    if packet.get("SessionHeader") is not None:
        data = with_counts(data)
    sizes = boundary.path.endswith("PacketSize")
    for number in boundary.numbers:
        note = f"{packet.schema.name} with {boundary.name} {number} instead of {boundary.field.value}"
        wrong = boundary.put(data, number)
        if sizes or boundary.goes_beyond(number):
            after = draw.message().to_bytes() * 2
            yield case(ids, _SIZE if sizes else _BEYOND, *steps, send(wrong + after, "closed", note, ids))
        else:
            yield case(ids, _WITHIN, *steps, send(wrong, "either", note, ids))
